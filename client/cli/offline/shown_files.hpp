// Files of this machine, the reading of which is shown while it takes longer than a moment.
#pragma once

#include "client/cli/offline/progress.hpp"
#include "core/data/file_source.hpp"

namespace pipewright::cli {

class ShownFiles : public DiskFiles {
 public:
  std::unique_ptr<std::istream> open(const std::string& path) override;
};

}  // namespace pipewright::cli
