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

/// False when the file is not there.
template <class Chunk>
bool LinkListener::Upload::send_part(DaemonLink& link, RunId run) {
  Chunk chunk{run, files[file], offset, {}, false};
  std::ifstream in(folder + "/" + chunk.name, std::ios::binary);
  if (in) {
    in.seekg(static_cast<std::streamoff>(offset));
    chunk.data.resize(file_chunk_bytes_max);
    in.read(chunk.data.data(), static_cast<std::streamsize>(chunk.data.size()));
    chunk.data.resize(static_cast<std::size_t>(in.gcount()));
    chunk.last = in.peek() == std::ifstream::traits_type::eof();
    offset += chunk.data.size();
    link.send(chunk);
    if (!chunk.last) return true;
  }
  ++file;
  offset = 0;
  return chunk.last;
}

LinkListener::~LinkListener() {
  for (const auto& [run, kept] : runs_) remove(kept.files.folder);
}

LinkListener::Kept& LinkListener::kept(RunId run) {
  const auto at = runs_.find(run);
  if (at != runs_.end()) return at->second;
  const std::string file = spool_ + "/points-" + std::to_string(run.job) + "-" +
                           std::to_string(run.run) + "-" + std::to_string(run.attempt);
  return runs_.try_emplace(run, file, use_).first->second;
}

void LinkListener::attach(DaemonLink& link) {
  link_ = &link;
  for (auto& [run, kept] : runs_) {
    if (kept.maker) link.send(RunStarted{run, *kept.maker});
    if (kept.wanted) link.send(*kept.wanted);
    kept.points.rewind();
    if (kept.checkpoint) {
      kept.checkpoint->files.rewind();
      kept.checkpoint->is_sent = false;
    }
    kept.files.rewind();
    kept.end_is_sent = false;
  }
}

void LinkListener::started(RunId run, const Maker& maker) {
  kept(run).maker = maker;
  if (link_ != nullptr) link_->send(RunStarted{run, maker});
}

void LinkListener::points(RunId run, std::uint64_t first_index, std::vector<Point> points) {
  const std::uint64_t end = first_index + points.size();
  kept(run).points.add(end, encode_pool_frame(RunPoints{run, first_index, std::move(points)}));
}

void LinkListener::progress(RunId run, const Progress& progress) {
  if (link_ != nullptr) link_->send(RunProgress{run, progress});
}

void LinkListener::log(RunId run, LogLine line) {
  kept(run).log.push_back(std::move(line));
}

void LinkListener::ended(RunId run, RunOutcome outcome, const std::string& message,
                         const std::string& folder, const Value& summary) {
  Kept& kept = this->kept(run);
  kept.end = RunEnded{run, outcome, message,
                      outcome == RunOutcome::succeeded ? to_json(summary) : std::string()};
  if (!folder.empty()) kept.files = {folder, ResultFiles::names()};
}

void LinkListener::checkpoint(RunId run, Tick tick, const std::string& folder,
                              const std::vector<std::string>& files) {
  kept(run).checkpoint = Checkpoint{tick, {folder, files}};
}

void LinkListener::want_checkpoint(const CheckpointWanted& wanted) {
  kept(wanted.run).wanted = wanted;
  if (link_ != nullptr) link_->send(wanted);
}

bool LinkListener::keeps_up() const {
  if (use_.memory_bytes > use_.memory_bytes_max) return false;  // the disk is full
  if (link_ == nullptr) return use_.bytes < bytes_max;
  return has_room() && use_.bytes < memory_bytes_max;
}

void LinkListener::on(const PointsStored& stored) {
  const auto at = runs_.find(stored.run);
  if (at != runs_.end()) at->second.points.acknowledge(stored.next_index);
}

void LinkListener::on(const RunEndStored& stored) {
  const auto gone = runs_.extract(stored.run);
  if (!gone.empty()) remove(gone.mapped().files.folder);
}

bool LinkListener::on(const CheckpointStored& stored) {
  const auto at = runs_.find(stored.run);
  if (at == runs_.end() || !at->second.checkpoint || at->second.checkpoint->tick != stored.tick) {
    return false;
  }
  at->second.checkpoint.reset();
  return true;
}

std::vector<RunId> LinkListener::ended_runs() const {
  std::vector<RunId> runs;
  for (const auto& [run, kept] : runs_) {
    if (kept.end) runs.push_back(run);
  }
  return runs;
}

bool LinkListener::pump() {
  bool moved = false;
  for (auto& [run, kept] : runs_) moved = (has_room() && send_next(run, kept)) || moved;
  return moved;
}

bool LinkListener::send_next(RunId run, Kept& kept) {
  if (auto frame = kept.points.next()) {
    link_->send_encoded(std::move(*frame));
  } else if (!kept.log.empty()) {
    link_->send(RunLog{run, std::move(kept.log.front())});
    kept.log.pop_front();
  } else if (kept.checkpoint && !kept.checkpoint->is_sent) {
    return send_checkpoint(run, kept);
  } else if (!kept.files.done()) {
    // A file that is not there (the weights of a diverged run) is left out.
    kept.files.send_part<RunFileChunk>(*link_, run);
  } else if (kept.end && !std::exchange(kept.end_is_sent, true)) {
    link_->send(*kept.end);
  } else {
    return false;
  }
  return true;
}

bool LinkListener::send_checkpoint(RunId run, Kept& kept) {
  Checkpoint& checkpoint = *kept.checkpoint;
  if (!checkpoint.files.send_part<CheckpointChunk>(*link_, run)) {
    kept.checkpoint.reset();  // the run has ended, and its files have gone with it
  } else if (checkpoint.files.done()) {
    checkpoint.is_sent = true;
    link_->send(CheckpointSent{run, checkpoint.tick});
  }
  return true;
}

}  // namespace pipewright
