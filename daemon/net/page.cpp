#include "daemon/net/page.hpp"

#include <array>
#include <fstream>
#include <iterator>

#include "core/base/error.hpp"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> types{
    {{".html", "text/html; charset=utf-8"},
     {".js", "text/javascript; charset=utf-8"},
     {".css", "text/css; charset=utf-8"},
     {".svg", "image/svg+xml"}}};

std::string content_type_of(const fs::path& file) {
  for (const auto& [extension, type] : types) {
    if (file.extension() == extension) return std::string(type);
  }
  throw ConfigError(file.string() + ": a file of this type is no part of the page");
}

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) throw ConfigError(file.string() + ": cannot be read");
  return text;
}

}  // namespace

Page Page::load(const fs::path& folder) {
  Page page;
  if (!fs::exists(folder / "index.html")) return page;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().lexically_relative(folder).generic_string();
    page.files_.emplace(name, File{content_type_of(entry.path()), read(entry.path())});
  }
  return page;
}

const Page::File* Page::find(std::string_view name) const {
  const auto at = files_.find(name);
  return at == files_.end() ? nullptr : &at->second;
}

}  // namespace pipewright
