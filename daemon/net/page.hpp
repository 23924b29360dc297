// The web page: the files of client/web as they were built, read once at the start. Only what was
// read then is ever served, so no path of a request reaches the disk.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace pipewright {

class Page {
 public:
  struct File {
    std::string content_type;
    std::string body;
  };

  /// No page.
  Page() = default;
  /// `folder` holds index.html and assets/, whose files carry a hash of their content in their
  /// names. A folder that is not there gives no page. Throws ConfigError for a file that cannot be
  /// read, or has a type that a page of ours has not.
  static Page load(const std::filesystem::path& folder);

  bool empty() const { return files_.empty(); }
  /// By its name from the folder on ("index.html", "assets/index-1a2b3c4d.js"); null: there is
  /// none.
  const File* find(std::string_view name) const;

 private:
  std::map<std::string, File, std::less<>> files_;
};

/// What a browser may do for the page: nothing but with what this daemon serves.
inline constexpr std::string_view page_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

}  // namespace pipewright
