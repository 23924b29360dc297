#include "worker/runtime/run_checkpoints.hpp"

#include <utility>

#include "core/base/error.hpp"

namespace pipewright {

RunCheckpoints::RunCheckpoints(RunListener& listener, RunId run, std::string folder,
                               std::vector<std::string> files)
    : listener_(listener), run_(run), folder_(std::move(folder)), files_(std::move(files)) {
  ask();
}

void RunCheckpoints::ask() {
  if (!fetched()) listener_.want_checkpoint(CheckpointWanted{run_, files_[fetched_], offset_});
}

void RunCheckpoints::on(const CheckpointPiece& piece) {
  if (fetched() || piece.name != files_[fetched_] || piece.offset_bytes != offset_) {
    throw ProtocolError("a part of " + piece.name + " that was not asked for");
  }
  folder_.append(piece.name, piece.offset_bytes, piece.data, piece.last);
  offset_ += piece.data.size();
  if (piece.last) {
    ++fetched_;
    offset_ = 0;
  }
  ask();
}

std::vector<std::string> RunCheckpoints::open(CheckpointOrigin origin, int rows, Maker maker) {
  rows_ = rows;
  store_.emplace(folder_.path(), std::move(origin), rows, std::move(maker));
  return store_->find();
}

void RunCheckpoints::on(StateChunk chunk) {
  if (!store_) throw ProtocolError("a row's state that was not asked for");
  std::string& state = coming_[chunk.row];
  state += chunk.data;
  if (!chunk.last) return;
  store_->put_row(chunk.tick, chunk.row, state);
  coming_.erase(chunk.row);
  part_is_there(chunk.tick, CheckpointPart::name_of(chunk.row.value, chunk.tick));
}

void RunCheckpoints::put_values(const ControlCheckpoint& part) {
  store_->put_values(part.tick, part.values);
  part_is_there(part.tick, CheckpointPart::name_of(CheckpointPart::values_row, part.tick));
}

void RunCheckpoints::part_is_there(Tick tick, std::string name) {
  parts_.push_back(std::move(name));
  if (parts_.size() < static_cast<std::size_t>(rows_) + 1) return;
  listener_.checkpoint(run_, tick, folder_.path().string(), std::exchange(parts_, {}));
}

void RunCheckpoints::stored(RunControl& control) {
  folder_.clear();
  while (!control.checkpoint_part_stored()) {
  }
}

}  // namespace pipewright
