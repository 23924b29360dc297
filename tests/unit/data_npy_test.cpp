#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "core/base/error.hpp"
#include "core/data/npy.hpp"

namespace pipewright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A file of format 1.0 with this dictionary and these numbers; the header is 118 bytes long.
template <class T>
std::string npy(std::string dict, const std::vector<T>& values, int version = 1) {
  dict.append(117 - dict.size(), ' ');
  dict += '\n';
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  file += static_cast<char>(dict.size());
  file.append(version == 1 ? 1 : 3, '\0');
  file += dict;
  file.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return file;
}

std::string dict(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }";
}

template <class T = double>
NpyArray<T> read(const std::string& bytes, const NpyOptions& options = {}) {
  std::istringstream stream(bytes);
  return read_npy<T>(stream, "X.npy", options);
}

template <class T = double>
std::string error_of(const std::string& bytes, const NpyOptions& options = {}) {
  try {
    read<T>(bytes, options);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Npy, ReadsEveryTypeThatFits) {
  EXPECT_THAT(read(npy<double>(dict("<f8", "(3,)"), {1.5, -2, 0.1})).values,
              ElementsAre(1.5, -2, 0.1));
  EXPECT_THAT(read(npy<float>(dict("<f4", "(2,)"), {1.5f, 0.1f})).values, ElementsAre(1.5, 0.1f));
  EXPECT_THAT(read(npy<std::int32_t>(dict("<i4", "(2,)"), {-7, 9})).values, ElementsAre(-7, 9));
  EXPECT_THAT(read(npy<std::uint8_t>(dict("|u1", "(2,)"), {0, 255})).values, ElementsAre(0, 255));
  EXPECT_THAT(read<std::int64_t>(npy<std::int8_t>(dict("|i1", "(2,)"), {-1, 5})).values,
              ElementsAre(-1, 5));
  EXPECT_THAT(read<std::int64_t>(npy<std::int16_t>(dict("<i2", "(1,)"), {-300})).values,
              ElementsAre(-300));
  EXPECT_THAT(read<std::int64_t>(npy<std::uint16_t>(dict("<u2", "(1,)"), {65535})).values,
              ElementsAre(65535));
  EXPECT_THAT(read<std::int64_t>(npy<std::uint32_t>(dict("<u4", "(1,)"), {4000000000u})).values,
              ElementsAre(4000000000));
  EXPECT_THAT(read<std::int64_t>(npy<std::int64_t>(dict("<i8", "(1,)"), {INT64_MIN})).values,
              ElementsAre(INT64_MIN));
  EXPECT_THAT(read<std::int64_t>(npy<double>(dict("<f8", "(1,)"), {12})).values, ElementsAre(12));
  EXPECT_THAT(read<float>(npy<double>(dict("<f8", "(1,)"), {0.25})).values, ElementsAre(0.25f));
}

TEST(Npy, RefusesValuesThatTheTypeCannotHold) {
  EXPECT_EQ(error_of<float>(npy<double>(dict("<f8", "(2,)"), {1, 0.1})),
            "X.npy: element [1] (byte 136) is 0.1 in float64, which float32 cannot hold exactly");
  EXPECT_EQ(error_of<std::int64_t>(npy<float>(dict("<f4", "(1,)"), {1.5f})),
            "X.npy: element [0] (byte 128) is 1.5 in float32, which int64 cannot hold exactly");
  EXPECT_THAT(error_of<std::int64_t>(npy<double>(dict("<f8", "(1,)"), {0x1p63})),
              HasSubstr("which int64 cannot hold exactly"));
  EXPECT_THAT(error_of<std::int64_t>(npy<std::uint64_t>(dict("<u8", "(1,)"), {UINT64_MAX})),
              HasSubstr("is 18446744073709551615 in uint64, which int64 cannot hold exactly"));
  const std::int64_t odd = (std::int64_t{1} << 53) + 1;
  EXPECT_THAT(error_of(npy<std::int64_t>(dict("<i8", "(1,)"), {odd})),
              HasSubstr("is 9007199254740993 in int64, which float64 cannot hold exactly"));
  EXPECT_THAT(error_of(npy<std::int64_t>(dict("<i8", "(1,)"), {INT64_MAX})),
              HasSubstr("which float64 cannot hold exactly"));
  EXPECT_THAT(error_of(npy<std::uint64_t>(dict("<u8", "(1,)"), {UINT64_MAX})),
              HasSubstr("which float64 cannot hold exactly"));
  EXPECT_THAT(error_of<float>(npy<std::int32_t>(dict("<i4", "(1,)"), {16777217})),
              HasSubstr("which float32 cannot hold exactly"));
}

TEST(Npy, ReadsVersionsTwoAndThree) {
  for (const int version : {2, 3}) {
    EXPECT_THAT(read(npy<double>(dict("<f8", "(1,)"), {4}, version)).values, ElementsAre(4));
  }
}

TEST(Npy, TransposesFortranOrder) {
  const std::vector<double> stored{0, 10, 1, 11, 2, 12};  // a[i][j] = 10 i + j, columns first
  const auto matrix = read(npy(dict("<f8", "(2, 3)", true), stored));
  EXPECT_EQ(matrix.shape, (Shape{2, 3}));
  EXPECT_THAT(matrix.values, ElementsAre(0, 1, 2, 10, 11, 12));

  std::vector<double> cube;  // a[i][j][k] = 100 i + 10 j + k
  for (int k = 0; k < 4; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i) cube.push_back(100 * i + 10 * j + k);
    }
  }
  const auto array = read(npy(dict("<f8", "(2, 3, 4)", true), cube));
  std::size_t at = 0;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) ASSERT_EQ(array.values[at++], 100 * i + 10 * j + k);
    }
  }
}

TEST(Npy, ReadsEmptyArraysAndFourDimensions) {
  EXPECT_TRUE(read(npy<double>(dict("<f8", "(0,)"), {})).values.empty());
  EXPECT_TRUE(read(npy<double>(dict("<f8", "(3, 0)", true), {})).values.empty());
  EXPECT_EQ(read(npy<double>(dict("<f8", "(1, 2, 1, 1)"), {1, 2})).shape, (Shape{1, 2, 1, 1}));
}

TEST(Npy, AcceptsKeysInAnyOrderAndBothQuotes) {
  EXPECT_THAT(
      read(npy<double>("{\"shape\": (1,), 'fortran_order':False,'descr':\"<f8\"}", {4})).values,
      ElementsAre(4));
}

TEST(Npy, RefusesOtherTypesByName) {
  const auto error_for = [](const std::string& descr) {
    return error_of(npy<double>(dict(descr, "(1,)"), {1}));
  };
  const std::string right =
      "; right are little-endian float32, float64 and integers ('<f4', '<f8', '<i4', '<i8', '|u1')";
  EXPECT_EQ(error_for(">f8"),
            "X.npy: byte 20: in the NPY header: dtype '>f8' is big-endian" + right);
  EXPECT_THAT(error_for("<c16"), HasSubstr("dtype '<c16' holds complex numbers"));
  EXPECT_THAT(error_for("|O"), HasSubstr("dtype '|O' holds Python objects"));
  EXPECT_THAT(error_for("<U5"), HasSubstr("dtype '<U5' holds text"));
  EXPECT_THAT(error_for("|b1"), HasSubstr("dtype '|b1' holds booleans"));
  EXPECT_THAT(error_for("<M8[ns]"), HasSubstr("dtype '<M8[ns]' holds times"));
  EXPECT_THAT(error_for("<f2"), HasSubstr("dtype '<f2' is not known"));
  EXPECT_THAT(error_for("|f8"), HasSubstr("dtype '|f8' is not known"));
  EXPECT_THAT(error_for(""), HasSubstr("dtype '' is not known"));
  EXPECT_THAT(error_of(npy<double>(
                  "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }", {1})),
              HasSubstr("the dtype is a structured one, '[('a', '<f8')]"));
}

TEST(Npy, RefusesMalformedHeaders) {
  const auto error_for = [](const std::string& text) { return error_of(npy<double>(text, {1})); };
  EXPECT_EQ(error_for("{'descr': '<f8', 'fortran_order': 0, 'shape': (1,), }"),
            "X.npy: byte 44: in the NPY header: fortran_order must be True or False, found "
            "'0, 'shape': (1,), } '");
  EXPECT_THAT(error_for("{'descr': '<f8', 'fortran_order': False}"),
              HasSubstr("byte 10: in the NPY header: the key 'shape' is missing"));
  EXPECT_THAT(error_for("{'descr': '<f8', 'descr': '<f8', 'shape': (1,)}"),
              HasSubstr("byte 27: in the NPY header: the key 'descr' comes twice"));
  EXPECT_THAT(error_for("{'descr': '<f8', 'order': False, 'shape': (1,)}"),
              HasSubstr("unknown key 'order'"));
  EXPECT_THAT(error_for(dict("<f8", "(1,)") + " 5"), HasSubstr("text after the dictionary"));
  EXPECT_THAT(error_for("dict(descr='<f8')"),
              HasSubstr("byte 10: in the NPY header: expected '{'"));
  EXPECT_THAT(error_for("{'descr"), HasSubstr("a quote without an end"));
  EXPECT_THAT(error_for("{descr: 1}"), HasSubstr("expected a quoted word, found 'descr: 1}"));
  EXPECT_THAT(error_for(dict("<f8", "(1)")), HasSubstr("needs a comma: (5,)"));
  EXPECT_THAT(error_for(dict("<f8", "(-1,)")), HasSubstr("expected a size (a whole number)"));
  EXPECT_THAT(error_for(dict("<f8", "(1 1)")), HasSubstr("expected ',' or ')'"));
  EXPECT_THAT(error_for(dict("<f8", "(1.5,)")), HasSubstr("expected ',' or ')'"));
  EXPECT_THAT(error_for(dict("<f8", "(,)")), HasSubstr("expected a size (a whole number)"));
  EXPECT_THAT(error_for(dict("<f8", "1")), HasSubstr("expected '('"));
  EXPECT_THAT(error_for(dict("<f8", "()")), HasSubstr("a single number (shape ())"));
  EXPECT_THAT(error_for(dict("<f8", "(1, 1, 1, 1, 1)")), HasSubstr("more than 4 dimensions"));
  EXPECT_THAT(error_for(dict("<f8", "(4611686018427387904, 4)")), HasSubstr("impossibly large"));
  EXPECT_THAT(error_for(dict("<f8", "(99999999999999999999,)")), HasSubstr("expected a size"));
}

TEST(Npy, RefusesWhatIsNoNpyFile) {
  EXPECT_EQ(error_of("hello, world"),
            "X.npy: byte 0: not an NPY file (those begin with \\x93NUMPY)");
  EXPECT_THAT(error_of(""), HasSubstr("byte 0: not an NPY file"));
  EXPECT_EQ(error_of(std::string("\x93NUMPY\x04\0", 8)),
            "X.npy: byte 6: NPY version 4.0; versions 1.0, 2.0 and 3.0 are read");
  EXPECT_EQ(error_of(std::string("\x93NUMPY\x01\0\x76", 9)),
            "X.npy: the file ends at byte 9, within the NPY header");
  EXPECT_EQ(error_of(std::string("\x93NUMPY\x01\0\x76\0{'des", 15)),
            "X.npy: the file ends at byte 15, within the NPY header");
  EXPECT_THAT(error_of(std::string("\x93NUMPY\x02\0\xff\xff\xff\xff{", 13)),
              HasSubstr("byte 8: an NPY header of 4294967295 bytes; at most 65536"));
}

TEST(Npy, SaysWhereATruncatedFileEnds) {
  const std::string whole = npy<double>(dict("<f8", "(60, 22)"), std::vector<double>(1320, 1.0));
  EXPECT_EQ(error_of(whole.substr(0, 5003)),
            "X.npy: shape (60, 22) of float64 needs 10560 bytes from byte 128, the file ends at "
            "byte 5003");
  EXPECT_EQ(error_of(whole + "x"),
            "X.npy: shape (60, 22) of float64 ends at byte 10688, the file goes on after it");
}

TEST(Npy, DoesNotAllocateWhatAHostileHeaderClaims) {
  const std::string file = npy<double>(dict("<f8", "(100000000000000, 50)"), {1, 2});
  EXPECT_EQ(error_of(file),
            "X.npy: shape (100000000000000, 50) of float64 needs 40000000000000000 bytes from byte "
            "128, the file ends at byte 144");
}

TEST(Npy, RefusesNonFiniteValuesWithTheirPlaceUnlessAsked) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::string file = npy<double>(dict("<f8", "(2, 2)"), {1, 2, -inf, NAN});
  EXPECT_EQ(error_of(file),
            "X.npy: element [1, 0] (byte 144) is -inf; only finite numbers are right here");
  EXPECT_EQ(error_of(npy<double>(dict("<f8", "(2, 2)", true), {1, 2, NAN, 0})),
            "X.npy: element [0, 1] (byte 144) is nan; only finite numbers are right here");
  const auto kept = read(file, {.finite_only = false});
  EXPECT_EQ(kept.values[2], -inf);
  EXPECT_TRUE(std::isnan(kept.values[3]));
  EXPECT_THAT(
      error_of<std::int64_t>(npy<double>(dict("<f8", "(1,)"), {NAN}), {.finite_only = false}),
      HasSubstr("is nan in float64, which int64 cannot hold exactly"));
}

TEST(Npy, WritesWhatItReads) {
  std::ostringstream out;
  write_npy(out, std::vector<float>{1.5f, -0.0f, 1e-40f});
  EXPECT_EQ(out.str().size(), 128u + 12u);
  EXPECT_EQ(out.str()[127], '\n');
  const auto back = read<float>(out.str());
  EXPECT_THAT(back.values, ElementsAre(1.5f, -0.0f, 1e-40f));
  EXPECT_TRUE(std::signbit(back.values[1]));

  std::ostringstream none;
  write_npy(none, std::span<const double>{});
  EXPECT_EQ(read(none.str()).shape, (Shape{0}));
}

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

TEST(Npy, WritesTheBytesThatNumpyWrites) {
  const std::filesystem::path golden = PIPEWRIGHT_SOURCE_DIR "/../shared/golden";
  if (!std::filesystem::exists(golden)) GTEST_SKIP() << "no " << golden;
  int doubles = 0;
  int floats = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden)) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(".npy")) continue;
    const std::string bytes = bytes_of(entry.path());
    std::ostringstream out;
    if (name.ends_with("_y.npy")) {
      write_npy(out, read(bytes).values);
      ++doubles;
    } else if (name.starts_with("lm_stage")) {
      write_npy(out, read<float>(bytes).values);
      ++floats;
    } else {
      continue;
    }
    EXPECT_TRUE(out.str() == bytes) << name;
  }
  EXPECT_GE(doubles, 5);
  EXPECT_GE(floats, 8);
}

}  // namespace
}  // namespace pipewright
