// A test program: all ranks of a job read a data set of HDF5 files with the MPI drivers. Each rank reads its
// share of the samples and compares every sample with the manifest's checksum. The test cli.ranks starts it
// under mpirun:
//
//   hdf5_mpio_check CORPUS DATA_SET ELEMENT
//   hdf5_mpio_check out/climate climate/data float32
//
// For each driver, rank 0 prints how many samples were right. The program exits with 77 if this build or
// machine lacks a part that it needs.
#include <fmt/format.h>

#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "datagen/corpus/corpus.hpp"
#include "datagen/hdf5/hdf5_input.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/ranks/launcher.hpp"

namespace penstock {
namespace {

Result<Element> parse_element(std::string_view name) {
  for (const Element element : {Element::u8, Element::i32, Element::i64, Element::f32, Element::f64})
    if (element_name(element) == name) return element;
  return make_error(Errc::invalid_argument, "unknown element '" + std::string(name) + "'");
}

struct RankResult {
  Communicator& ranks;
  uint64_t verified = 0;  // samples that this rank has verified so far
};

// Checks this rank's share of the samples in `file`. The file has `count` samples, from number `first` of the
// manifest on. Each sample is a row of the data set. If `count` is 1, the sample may also be the whole data
// set.
Result<void> check_file(const Corpus& corpus, Hdf5Input& file, uint64_t first, uint64_t count,
                        const std::string& data_set, Element element, RankResult& result) {
  PENSTOCK_ASSIGN(const std::vector<uint64_t> shape, file.shape(data_set));
  const bool rows_are_samples = !shape.empty() && shape.front() == count;
  if (!rows_are_samples && count != 1)
    return make_error(Errc::corrupt, "'{}' has not {} rows", data_set, count);
  const auto rank_count = uint64_t(result.ranks.size());
  std::vector<std::byte> bytes;
  for (uint64_t round = 0; round < count; round += rank_count) {
    const uint64_t row = round + uint64_t(result.ranks.rank());
    const bool has_row = row < count;
    std::vector<uint64_t> begin(shape.size(), 0);
    std::vector<uint64_t> counts = shape;
    if (rows_are_samples) begin.front() = has_row ? row : 0;
    if (rows_are_samples) counts.front() = 1;
    if (!has_row) counts.front() = 0;
    uint64_t elements = 1;
    for (const uint64_t side : counts) elements *= side;
    bytes.resize(elements * element_bytes(element));
    PENSTOCK_TRY(file.read(data_set, begin, counts, element, bytes));
    if (!has_row) continue;
    if (crc32c(bytes) != corpus.manifest.sample(first + row).crc32c)
      return make_error(Errc::corrupt, "wrong bytes in row {} of '{}'", row, data_set);
    ++result.verified;
  }
  return success();
}

Result<void> check_driver(Corpus& corpus, Hdf5Driver driver, const std::string& data_set, Element element,
                          Communicator& ranks) {
  RankResult result{ranks};
  const Manifest& manifest = corpus.manifest;
  std::string name_buffer;
  for (uint64_t first = 0; first < manifest.samples();) {
    const auto object = manifest.sample(first).object;
    uint64_t end = first;
    while (end < manifest.samples() && manifest.sample(end).object == object) ++end;
    PENSTOCK_ASSIGN(const auto file,
                    Hdf5Input::open(*corpus.tier.backend, manifest.object_name(object, name_buffer), driver));
    PENSTOCK_TRY(check_file(corpus, *file, first, end - first, data_set, element, result));
    first = end;
  }
  PENSTOCK_TRY(ranks.all_reduce(std::span(&result.verified, 1), Reduction::sum));
  if (result.verified != manifest.samples())
    return make_error(Errc::internal, "{} samples were read, not {}", result.verified, manifest.samples());
  if (ranks.root())
    fmt::print("{}: {} samples verified by {} rank{}\n", hdf5_driver_name(driver), result.verified,
               ranks.size(), ranks.size() == 1 ? "" : "s");
  return success();
}

Result<void> check_drivers(std::span<char*> arguments, Communicator& ranks) {
  if (arguments.size() != 4)
    return make_error(Errc::invalid_argument, "usage: hdf5_mpio_check CORPUS DATA_SET ELEMENT");
  PENSTOCK_ASSIGN(Corpus corpus, open_corpus(arguments[1], {}));
  PENSTOCK_ASSIGN(const Element element, parse_element(arguments[3]));
  std::vector<Hdf5Driver> drivers{Hdf5Driver::mpio, Hdf5Driver::mpio_collective};
  // The MPI drivers use the HDF5 library of the module. Between them, also checks a driver that uses the
  // program's own library: this tests that both libraries work in one process.
  if (hdf5_available().ok()) drivers.insert(drivers.begin() + 1, Hdf5Driver::reader);
  for (const Hdf5Driver driver : drivers)
    PENSTOCK_TRY(check_driver(corpus, driver, arguments[2], element, ranks));
  return success();
}

int print_error(const Error& error) {
  fmt::print(stderr, "hdf5_mpio_check: {}\n", error.message());
  return error.code == Errc::unsupported ? 77 : 1;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  using namespace penstock;
  auto ranks = join_ranks(look_for_launcher());
  if (!ranks.ok()) return print_error(ranks.error());
  const Result<void> checked = check_drivers({argv, size_t(argc)}, **ranks);
  if (checked.ok()) return 0;
  const int code = print_error(checked.error());
  (*ranks)->abandon(code);  // ends the other ranks, which may wait for this one
  return code;
}
