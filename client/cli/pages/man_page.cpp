#include "client/cli/pages/man_page.hpp"

#include <algorithm>
#include <cctype>

#include "core/base/text.hpp"

namespace pipewright::cli {

namespace {

/// A text that begins a line of roff.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";  // or it becomes a hyphen that cannot be pasted into a shell
    } else if (c == '~') {
      out += "\\(ti";
    } else if (c == '^') {
      out += "\\(ha";
    } else if (c == '`') {
      out += "\\(ga";
    } else if (c == '\'') {
      out += "\\(aq";
    } else {
      out += c;
    }
  }
  return out.starts_with('.') ? "\\&" + out : out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

/// "--json" and the like bold, what stands for a value in italics.
std::string term(std::string_view text) {
  std::string out;
  bool first = true;
  for (const std::string_view word : split(text, ' ')) {
    if (word.empty()) continue;
    const bool bold = first || word.starts_with('-');
    // CLI11 says of choices that they are text.
    const std::string_view shown = word.starts_with("TEXT:{") ? word.substr(5) : word;
    out += (first ? "" : " ") + std::string(bold ? "\\fB" : "\\fI") + roff(shown) + "\\fR";
    first = false;
  }
  return out;
}

bool is_heading(std::string_view line) {
  return line.size() > 1 && line.ends_with(':') && line.front() >= 'A' && line.front() <= 'Z' &&
         line.find(' ') == std::string_view::npos;
}

std::size_t indent_of(std::string_view line) {
  const std::size_t at = line.find_first_not_of(' ');
  return at == std::string_view::npos ? line.size() : at;
}

class Page {
 public:
  void line(std::string_view text) {
    if (text.starts_with("Usage: ")) {
      usage_ = trim(text.substr(6));
      in_body_ = true;
    } else if (!in_body_) {
      description_.emplace_back(text);
    } else if (is_heading(text)) {
      heading(text.substr(0, text.size() - 1));
    } else if (trim(text).empty()) {
      end_example();
    } else {
      body(text);
    }
  }

  std::string usage_;
  std::vector<std::string> description_;
  std::string body_;

  void end_example() {
    if (in_lines_) body_ += ".EE\n";
    in_lines_ = false;
  }

 private:
  void heading(std::string_view name) {
    end_example();
    examples_ = name.starts_with("Example");
    paragraph_ = false;
    body_ += ".SH " + upper(name) + "\n";
  }

  void body(std::string_view text) {
    const std::size_t indent = indent_of(text);
    const std::string_view content = trim(text);
    if (indent == 0) {
      end_example();
      // What stands behind the examples is a note of its own.
      if (!paragraph_) body_ += examples_ || body_.empty() ? ".SH NOTES\n" : ".PP\n";
      paragraph_ = true;
      body_ += roff(content) + "\n";
    } else if (examples_) {
      if (!in_lines_) body_ += ".EX\n";
      in_lines_ = true;
      body_ += roff(text.substr(std::min<std::size_t>(indent, 2))) + "\n";
    } else if (indent <= 4) {
      item(content);
    } else {
      body_ += roff(content) + "\n";
    }
  }

  void item(std::string_view content) {
    const std::size_t gap = content.find("  ");
    body_ += ".TP\n" + term(content.substr(0, gap)) + "\n";
    if (gap != std::string_view::npos) body_ += roff(trim(content.substr(gap))) + "\n";
  }

  bool in_body_ = false, examples_ = false, in_lines_ = false, paragraph_ = false;
};

/// The first sentence, for NAME.
std::string summary_of(const std::vector<std::string>& description) {
  const std::string text = description.empty() ? std::string() : description.front();
  std::size_t end = text.find(". ");
  end = std::min({end, text.find(": "), text.find(", with ")});
  std::string out = text.substr(0, end);
  if (out.ends_with('.')) out.pop_back();
  return out;
}

}  // namespace

std::string man_page(const std::string& name, std::string_view help, const std::string& version,
                     const std::vector<std::string>& see_also) {
  Page page;
  for (const std::string_view line : split(help, '\n')) page.line(line);
  page.end_example();
  std::string out = ".\\\" Made from the help text; not to be edited.\n.TH " + upper(name) +
                    " 1 \"\" \"pipewright " + version + "\" \"User Commands\"\n.SH NAME\n" +
                    roff(name) + " \\- " + roff(summary_of(page.description_)) +
                    "\n.SH SYNOPSIS\n" + term(page.usage_) + "\n.SH DESCRIPTION\n";
  for (const std::string& line : page.description_) {
    if (!line.empty()) out += roff(line) + "\n";
  }
  out += page.body_;
  if (see_also.empty()) return out;
  std::vector<std::string> links;
  for (const std::string& other : see_also) links.push_back("\\fB" + roff(other) + "\\fR(1)");
  return out + ".SH SEE ALSO\n" + join(links, ",\n") + "\n";
}

}  // namespace pipewright::cli
