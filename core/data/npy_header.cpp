#include "core/data/npy_header.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <vector>

#include "core/base/error.hpp"
#include "core/data/lines.hpp"

namespace pipewright {

namespace {

struct TypeFacts {
  std::string_view code;  // without byte order
  std::int64_t size;
  std::string_view name;
};

constexpr std::array<TypeFacts, 10> type_facts{{{"f4", 4, "float32"},
                                                {"f8", 8, "float64"},
                                                {"i1", 1, "int8"},
                                                {"i2", 2, "int16"},
                                                {"i4", 4, "int32"},
                                                {"i8", 8, "int64"},
                                                {"u1", 1, "uint8"},
                                                {"u2", 2, "uint16"},
                                                {"u4", 4, "uint32"},
                                                {"u8", 8, "uint64"}}};

const TypeFacts& facts_of(NpyType type) {
  return type_facts[static_cast<std::size_t>(type)];
}

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::int64_t header_bytes_max = 64 << 10;  // numpy itself stops at 10,000

/// Reads the dictionary literal that numpy writes, and no other Python: three keys in any order.
class DictParser {
 public:
  DictParser(std::string_view text, std::int64_t start, const std::string& name)
      : text_(text), start_(start), name_(name) {}

  NpyHeader parse() {
    NpyHeader header;
    std::vector<std::string_view> seen;
    expect('{');
    while (!take('}')) {
      const std::size_t key_at = skip_spaces();
      const std::string_view key = quoted();
      if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
        fail(key_at, "the key " + excerpt(key) + " comes twice");
      }
      seen.push_back(key);
      expect(':');
      value_of(key, key_at, header);
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (at_ != text_.size()) fail(at_, "text after the dictionary");
    for (const std::string_view key : {"descr", "fortran_order", "shape"}) {
      if (std::find(seen.begin(), seen.end(), key) == seen.end()) {
        fail(0, "the key '" + std::string(key) + "' is missing");
      }
    }
    return header;
  }

 private:
  [[noreturn]] void fail(std::size_t at, const std::string& what) const {
    throw DataError(name_ + ": byte " + std::to_string(start_ + static_cast<std::int64_t>(at)) +
                    ": in the NPY header: " + what);
  }

  std::size_t skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(at_, std::string("expected '") + c + "', found " + found());
  }
  std::string found() const {
    return at_ == text_.size() ? "the end" : excerpt(text_.substr(at_, 20));
  }
  bool take_word(std::string_view word) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  std::string_view quoted() {
    skip_spaces();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail(at_, "expected a quoted word, found " + found());
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail(at_, "a quote without an end");
    const std::string_view word = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return word;
  }

  void value_of(std::string_view key, std::size_t key_at, NpyHeader& header) {
    if (key == "descr") {
      header.type = dtype();
    } else if (key == "fortran_order") {
      if (take_word("True")) {
        header.fortran_order = true;
      } else if (!take_word("False")) {
        fail(at_, "fortran_order must be True or False, found " + found());
      }
    } else if (key == "shape") {
      header.shape = shape(header.elements);
    } else {
      fail(key_at, "unknown key " + excerpt(key));
    }
  }

  NpyType dtype() {
    const std::size_t at = skip_spaces();
    if (at_ < text_.size() && text_[at_] == '[') {
      fail(at, "the dtype is a structured one, " + excerpt(text_.substr(at_)) + right_dtypes);
    }
    const std::string_view descr = quoted();
    const char order = descr.empty() ? '\0' : descr.front();
    const std::string_view code = descr.substr(std::min<std::size_t>(1, descr.size()));
    const auto known = std::find_if(type_facts.begin(), type_facts.end(),
                                    [&](const TypeFacts& facts) { return facts.code == code; });
    if (known == type_facts.end())
      fail(at, "dtype " + excerpt(descr) + kind_of(code) + right_dtypes);
    if (order == '>' && known->size > 1) {
      fail(at, "dtype " + excerpt(descr) + " is big-endian" + right_dtypes);
    }
    if (order != '<' && !(order == '|' && known->size == 1)) {
      fail(at, "dtype " + excerpt(descr) + " is not known" + right_dtypes);
    }
    return static_cast<NpyType>(known - type_facts.begin());
  }

  static std::string kind_of(std::string_view code) {
    const char kind = code.empty() ? '\0' : code.front();
    switch (kind) {
      case 'c':
        return " holds complex numbers";
      case 'O':
        return " holds Python objects";
      case 'V':
        return " holds raw records";
      case 'S':
      case 'U':
        return " holds text";
      case 'b':
        return " holds booleans";
      case 'M':
      case 'm':
        return " holds times";
      default:
        return " is not known";
    }
  }

  Shape shape(std::int64_t& elements) {
    const std::size_t at = skip_spaces();
    Shape shape;
    bool comma = true;  // (5) is a number in Python, (5,) a shape
    elements = 1;
    expect('(');
    while (!take(')')) {
      if (!comma) fail(at_, "expected ',' or ')', found " + found());
      const std::int64_t size = whole_number();
      if (shape.rank == 4) fail(at, "the array has more than 4 dimensions");
      shape.dims[static_cast<std::size_t>(shape.rank++)] = size;
      if (size != 0 && elements > elements_max / size) fail(at, "the shape is impossibly large");
      elements *= size;
      comma = take(',');
    }
    if (shape.rank == 0)
      fail(at, "the array is a single number (shape ()), not a vector or matrix");
    if (shape.rank == 1 && !comma) fail(at, "a shape of one number needs a comma: (5,)");
    return shape;
  }

  std::int64_t whole_number() {
    skip_spaces();
    std::int64_t value = 0;
    const auto [stop, fault] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (fault != std::errc{} || value < 0) {
      fail(at_, "expected a size (a whole number), found " + found());
    }
    at_ = static_cast<std::size_t>(stop - text_.data());
    return value;
  }

  static constexpr std::int64_t elements_max = std::numeric_limits<std::int64_t>::max() / 16;
  static constexpr const char* right_dtypes =
      "; right are little-endian float32, float64 and integers ('<f4', '<f8', '<i4', '<i8', '|u1')";

  std::string_view text_;
  std::int64_t start_;  // byte of the file at which text_ begins
  const std::string& name_;
  std::size_t at_ = 0;
};

/// Reads exactly `size` bytes.
std::string read_bytes(std::istream& stream, std::int64_t size, std::int64_t at,
                       const std::string& name) {
  std::string bytes(static_cast<std::size_t>(size), '\0');
  stream.read(bytes.data(), size);
  if (stream.gcount() != size) {
    throw DataError(name + ": the file ends at byte " + std::to_string(at + stream.gcount()) +
                    ", within the NPY header");
  }
  return bytes;
}

std::int64_t little_endian(std::string_view bytes) {
  std::int64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value * 256 + static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

}  // namespace

std::int64_t size_of(NpyType type) {
  return facts_of(type).size;
}
std::string_view name_of(NpyType type) {
  return facts_of(type).name;
}

std::string npy_shape_text(const Shape& shape) {
  std::string out = "(";
  for (int i = 0; i < shape.rank; ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(shape.dims[static_cast<std::size_t>(i)]);
  }
  return out + (shape.rank == 1 ? ",)" : ")");
}

NpyHeader read_npy_header(std::istream& stream, const std::string& name) {
  std::string start(magic.size() + 2, '\0');
  stream.read(start.data(), static_cast<std::streamsize>(start.size()));
  const auto got = static_cast<std::size_t>(stream.gcount());
  if (got < start.size() || !start.starts_with(magic)) {
    throw DataError(name + ": byte 0: not an NPY file (those begin with \\x93NUMPY)");
  }
  const int major = static_cast<unsigned char>(start[6]);
  const int minor = static_cast<unsigned char>(start[7]);
  if (major < 1 || major > 3 || minor != 0) {
    throw DataError(name + ": byte 6: NPY version " + std::to_string(major) + "." +
                    std::to_string(minor) + "; versions 1.0, 2.0 and 3.0 are read");
  }
  const std::int64_t length_bytes = major == 1 ? 2 : 4;
  const std::int64_t length = little_endian(read_bytes(stream, length_bytes, 8, name));
  if (length > header_bytes_max) {
    throw DataError(name + ": byte 8: an NPY header of " + std::to_string(length) +
                    " bytes; at most " + std::to_string(header_bytes_max) + " are read");
  }
  const std::int64_t dict_start = 8 + length_bytes;
  const std::string dict = read_bytes(stream, length, dict_start, name);
  NpyHeader header = DictParser(dict, dict_start, name).parse();
  header.data_start = dict_start + length;
  return header;
}

}  // namespace pipewright
