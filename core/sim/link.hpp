// How long a message is on its way between neighbouring stages.
#pragma once

#include "core/base/ids.hpp"
#include "core/base/params.hpp"

namespace pipewright {

/// Latency per hop. With latency 0 an output can be used from the tick after it was made.
class LinkModel {
 public:
  LinkModel() = default;
  explicit LinkModel(Tick latency) : latency_(latency) {}

  /// When a message sent at `sent` can be used at the other end.
  Tick arrival(Tick sent) const { return sent + latency_; }
  Tick latency() const { return latency_; }

  /// The `link` map of a job file.
  static ParamSpec spec();
  static LinkModel from(const Value& parameters);

 private:
  Tick latency_{0};
};

}  // namespace pipewright
