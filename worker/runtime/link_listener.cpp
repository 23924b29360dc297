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
  if (uploads_.empty() || !keeps_up()) return false;
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

void LinkListener::send_part(Upload& upload) {
  const std::string& name = ResultFiles::names()[upload.file];
  std::ifstream in(upload.folder + "/" + name, std::ios::binary);
  RunFileChunk chunk{upload.end.run, name, upload.offset, {}, false};
  if (in) {
    in.seekg(static_cast<std::streamoff>(upload.offset));
    chunk.data.resize(file_chunk_bytes_max);
    in.read(chunk.data.data(), static_cast<std::streamsize>(chunk.data.size()));
    chunk.data.resize(static_cast<std::size_t>(in.gcount()));
    chunk.last = in.peek() == std::ifstream::traits_type::eof();
    upload.offset += chunk.data.size();
    link_.send(chunk);
  }
  // A file that is not there (the weights of a diverged run) is left out.
  if (!in.good() || chunk.last) {
    ++upload.file;
    upload.offset = 0;
  }
}

}  // namespace pipewright
