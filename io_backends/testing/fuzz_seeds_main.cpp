// Runs a fuzz target without libFuzzer, so that every build can be tested with the seeds. `fuzz_TARGET
// FOLDER` gives the target every file of the folder, first as it is, and then copies that are cut short or
// have one flipped bit. Exits 77 if the folder has no seeds.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

// largest number of changed copies of one seed that are tested; they are spread evenly over all possible ones
constexpr size_t kMaxVariants = 500;

using Bytes = std::vector<uint8_t>;

// Gives the target the first `size` bytes, in memory of exactly that size. So a sanitizer reports if the
// target reads a byte after them.
void feed(const Bytes& bytes, size_t size) {
  const Bytes copy(bytes.begin(), bytes.begin() + ptrdiff_t(size));
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
}

void feed_variants(Bytes bytes) {
  feed(bytes, bytes.size());
  // Nine variants for each byte: eight have one bit of this byte flipped, and one ends before this byte.
  const size_t variants = 9 * bytes.size();
  const size_t step = variants / kMaxVariants + 1;
  for (size_t i = 0; i < variants; i += step) {
    const size_t position = i / 9;
    if (i % 9 == 8) {
      feed(bytes, position);
      continue;
    }
    const auto bit = uint8_t(1U << (i % 9));
    bytes[position] = uint8_t(bytes[position] ^ bit);
    feed(bytes, bytes.size());
    bytes[position] = uint8_t(bytes[position] ^ bit);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  size_t seeds = 0;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1], failure)) {
    std::ifstream file(entry.path(), std::ios::binary);
    feed_variants({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
    ++seeds;
  }
  std::printf("%zu seeds of '%s'\n", seeds, argv[1]);
  return seeds == 0 ? 77 : 0;
}
