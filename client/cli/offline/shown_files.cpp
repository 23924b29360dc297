#include "client/cli/offline/shown_files.hpp"

#include <filesystem>
#include <streambuf>
#include <vector>

#include "client/cli/view/text.hpp"

namespace pipewright::cli {

namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 18;

/// Reads another stream through a buffer, and counts.
class CountingBuffer : public std::streambuf {
 public:
  CountingBuffer(std::unique_ptr<std::istream> inner, const std::string& path)
      : inner_(std::move(inner)), name_(std::filesystem::path(path).filename().string()) {
    std::error_code fault;  // of what has no size only the bytes are told
    const auto size = std::filesystem::file_size(path, fault);
    if (!fault) total_ = static_cast<double>(size);
  }

 protected:
  int_type underflow() override {
    inner_->read(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
    const std::streamsize count = inner_->gcount();
    if (count <= 0) {
      line_.clear();
      return traits_type::eof();
    }
    setg(bytes_.data(), bytes_.data(), bytes_.data() + count);
    done_ += static_cast<double>(count);
    line_.update(total_ > 0 ? std::optional(std::min(1.0, done_ / total_)) : std::nullopt,
                 [&] { return "reading " + printable(name_) + ", " + format_si(done_) + "B"; });
    return traits_type::to_int_type(*gptr());
  }

 private:
  std::unique_ptr<std::istream> inner_;
  std::string name_;
  std::vector<char> bytes_ = std::vector<char>(buffer_bytes);
  double done_ = 0, total_ = 0;
  ProgressLine line_;
};

class CountingStream : public std::istream {
 public:
  CountingStream(std::unique_ptr<std::istream> inner, const std::string& path)
      : std::istream(nullptr), buffer_(std::move(inner), path) {
    rdbuf(&buffer_);
  }

 private:
  CountingBuffer buffer_;
};

}  // namespace

std::unique_ptr<std::istream> ShownFiles::open(const std::string& path) {
  return std::make_unique<CountingStream>(DiskFiles::open(path), path);
}

}  // namespace pipewright::cli
