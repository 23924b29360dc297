// A fuzz target without libFuzzer, for every compiler: takes each file of a corpus as it is, cut at
// several places, and with a few bytes changed (from a fixed seed), so that a test run goes the
// same way every time. What it looks for is what libFuzzer would: see fuzz.hpp.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

constexpr std::size_t cuts = 8;
constexpr int changed = 24;

void take(const std::string& input) {
  // Of its own size, so that a sanitizer sees a read past the end.
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

void take_variations(const std::string& input, std::minstd_rand& random) {
  take(input);
  for (std::size_t i = 0; i < std::min(cuts, input.size()); ++i) {
    take(input.substr(0, input.size() * i / cuts));
  }
  for (int i = 0; i < changed && !input.empty(); ++i) {
    std::string other = input;
    for (int bytes = 1 + i % 3; bytes > 0; --bytes) {
      other[random() % other.size()] = static_cast<char>(random());
    }
    take(other);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || !fs::is_directory(argv[1])) {
    std::cerr << "usage: " << argv[0] << " FOLDER_OF_INPUTS\n";
    return 2;
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(argv[1])) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::minstd_rand random(1);
  for (const fs::path& file : files) {
    std::cout << file.string() << std::endl;  // the last one that stands there is at fault
    std::ifstream in(file, std::ios::binary);
    take_variations({std::istreambuf_iterator<char>(in), {}}, random);
  }
  return files.empty() ? 1 : 0;
}
