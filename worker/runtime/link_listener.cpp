#include "worker/runtime/link_listener.hpp"

#include <filesystem>
#include <fstream>
#include <utility>

#include "core/train/result_files.hpp"

namespace pipewright {

namespace {

void remove(const std::string& folder) {
  std::error_code ignored;
  if (!folder.empty()) std::filesystem::remove_all(folder, ignored);
}

}  // namespace

LinkListener::~LinkListener() {
  for (const Upload& upload : uploads_) remove(upload.folder);
}

void LinkListener::ended(RunId run, RunOutcome outcome, const std::string& message,
                         const std::string& folder, const Value& summary) {
  RunEnded end{run, outcome, message,
               outcome == RunOutcome::succeeded ? to_json(summary) : std::string()};
  uploads_.push_back({std::move(end), folder, 0, 0});
}

bool LinkListener::upload() {
  if (!keeps_up()) return false;
  if (!checkpoints_.empty()) {
    send_part(checkpoints_.front());
    return true;
  }
  if (uploads_.empty()) return false;
  Upload& upload = uploads_.front();
  if (upload.folder.empty() || upload.file == ResultFiles::names().size()) {
    link_.send(upload.end);
    remove(upload.folder);
    uploads_.pop_front();
    return true;
  }
  send_part(upload);
  return true;
}

namespace {

/// Sends the next part of a file; false when there is none.
template <class Chunk>
bool send_next(DaemonLink& link, const std::string& folder, Chunk& chunk) {
  std::ifstream in(folder + "/" + chunk.name, std::ios::binary);
  if (!in) return false;
  in.seekg(static_cast<std::streamoff>(chunk.offset_bytes));
  chunk.data.resize(file_chunk_bytes_max);
  in.read(chunk.data.data(), static_cast<std::streamsize>(chunk.data.size()));
  chunk.data.resize(static_cast<std::size_t>(in.gcount()));
  chunk.last = in.peek() == std::ifstream::traits_type::eof();
  link.send(chunk);
  return true;
}

}  // namespace

void LinkListener::send_part(Upload& upload) {
  RunFileChunk chunk{upload.end.run, ResultFiles::names()[upload.file], upload.offset, {}, false};
  const bool sent = send_next(link_, upload.folder, chunk);
  upload.offset += chunk.data.size();
  // A file that is not there (the weights of a diverged run) is left out.
  if (!sent || chunk.last) {
    ++upload.file;
    upload.offset = 0;
  }
}

void LinkListener::send_part(CheckpointUpload& upload) {
  CheckpointChunk chunk{upload.end.run, upload.files[upload.file], upload.offset, {}, false};
  if (!send_next(link_, upload.folder, chunk)) {
    // The run has ended, and its files have gone with it.
    checkpoints_.pop_front();
    return;
  }
  upload.offset += chunk.data.size();
  if (!chunk.last) return;
  upload.offset = 0;
  if (++upload.file < upload.files.size()) return;
  link_.send(upload.end);
  checkpoints_.pop_front();
}

}  // namespace pipewright
