// Tests that files which HDF5's own library wrote are read with the same values: chunks by every index, and
// files that were damaged by hand.
#include <fmt/format.h>
#include <hdf5.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "datagen/format/hdf5/hdf5_reader.hpp"
#include "datagen/format/hdf5/hdf5_view.hpp"
#include "datagen/format/scan_fixture.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

constexpr hsize_t kUnlimited = H5S_UNLIMITED;
using Sides = std::vector<hsize_t>;
using Bytes = std::vector<std::byte>;

struct LibraryFile {
  Bytes bytes;
  std::vector<int32_t> values;  // of the dataset "d"
};

// What a file and its dataset "d" of numbers have. All elements but the first `unwritten` are written.
struct Wanted {
  Sides shape;
  Sides most{};   // {}: the shape cannot change
  Sides chunk{};  // {}: contiguous
  bool latest = true;
  hsize_t unwritten = 0;  // of the first dimension
  std::function<void(hid_t)> set_dataset{};
  std::function<void(hid_t)> set_file{};  // if given, there is a dataset "c" like "d", without values
};

LibraryFile written(const Wanted& wanted) {
  LibraryFile out;
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  if (wanted.latest) {
    EXPECT_GE(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST), 0);
  }
  const hid_t make_file = H5Pcreate(H5P_FILE_CREATE);
  if (wanted.set_file) wanted.set_file(make_file);
  const std::string path = ::testing::TempDir() + fmt::format("penstock-hdf5-files-{}", ::getpid());
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, make_file, access);
  const auto dimensions = int(wanted.shape.size());
  const hid_t space =
      H5Screate_simple(dimensions, wanted.shape.data(), wanted.most.empty() ? nullptr : wanted.most.data());
  const hid_t make = H5Pcreate(H5P_DATASET_CREATE);
  const int32_t fill = 77;
  EXPECT_GE(H5Pset_fill_value(make, H5T_NATIVE_INT32, &fill), 0);
  if (!wanted.chunk.empty()) {
    EXPECT_GE(H5Pset_chunk(make, dimensions, wanted.chunk.data()), 0);
  }
  if (wanted.set_dataset) wanted.set_dataset(make);
  if (wanted.set_file) H5Dclose(H5Dcreate2(file, "c", H5T_STD_I32LE, space, H5P_DEFAULT, make, H5P_DEFAULT));
  const hid_t set = H5Dcreate2(file, "d", H5T_STD_I32LE, space, H5P_DEFAULT, make, H5P_DEFAULT);
  Sides first(wanted.shape.size());
  Sides count = wanted.shape;
  first[0] = wanted.unwritten;
  count[0] -= wanted.unwritten;
  EXPECT_GE(H5Sselect_hyperslab(space, H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr), 0);
  const auto elements = size_t(H5Sget_select_npoints(space));
  for (size_t i = 0; i < elements; ++i) out.values.push_back(int32_t(i) + 1);
  const hsize_t memory_side = elements;
  const hid_t memory = H5Screate_simple(1, &memory_side, nullptr);
  EXPECT_GE(H5Dwrite(set, H5T_NATIVE_INT32, memory, space, H5P_DEFAULT, out.values.data()), 0);
  H5Sclose(memory);
  H5Dclose(set);
  // What the library itself reads.
  const hid_t again = H5Dopen2(file, "d", H5P_DEFAULT);
  const hid_t whole = H5Dget_space(again);
  out.values.resize(size_t(H5Sget_simple_extent_npoints(whole)));
  EXPECT_GE(H5Dread(again, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.values.data()), 0);
  H5Sclose(whole);
  H5Dclose(again);
  for (const hid_t list : {access, make_file, make}) H5Pclose(list);
  H5Sclose(space);
  H5Fclose(file);
  std::ifstream in(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(path);
  const auto bytes = std::as_bytes(std::span(content));
  out.bytes.assign(bytes.begin(), bytes.end());
  return out;
}

Result<std::vector<int32_t>> read_back(const Bytes& file) {
  const Hdf5ArrayRequest request{"d"};
  PENSTOCK_ASSIGN(const auto arrays, hdf5_arrays(file, {&request, 1}));
  std::vector<int32_t> values;
  for (uint64_t row = 0; row < arrays.front().rows(); ++row) {
    const auto bytes = arrays.front().row(row);
    values.resize(values.size() + bytes.size() / 4);
    std::memcpy(values.data() + values.size() - bytes.size() / 4, bytes.data(), bytes.size());
  }
  return values;
}

TEST(Hdf5Files, ChunksOfEveryIndexComeBack) {
  const auto early = [](hid_t make) { H5Pset_alloc_time(make, H5D_ALLOC_TIME_EARLY); };
  const auto plain_edges = [](hid_t make) {
    H5Pset_deflate(make, 6);
    H5Pset_chunk_opts(make, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
  };
  const auto deflate = [](hid_t make) { H5Pset_deflate(make, 1); };
  const struct {
    const char* what;
    Wanted wanted;
  } kCases[] = {
      {"extensible array", {.shape = {900}, .most = {kUnlimited}, .chunk = {1}}},
      // By default, the data blocks from chunk 131,060 on have several pages each.
      {"extensible array, paged", {.shape = {135'000}, .most = {kUnlimited}, .chunk = {1}}},
      {"extensible array, paged, filtered",
       {.shape = {135'000, 2}, .most = {kUnlimited, 2}, .chunk = {1, 2}, .set_dataset = deflate}},
      {"extensible array, the end alone",
       {.shape = {140'000, 1}, .most = {kUnlimited, 1}, .chunk = {1, 1}, .unwritten = 130'000}},
      {"extensible array, later dimension", {.shape = {3, 700}, .most = {4, kUnlimited}, .chunk = {2, 3}}},
      {"fixed array", {.shape = {30, 5}, .most = {60, 5}, .chunk = {2, 5}}},
      {"fixed array, paged", {.shape = {3000}, .most = {5000}, .chunk = {1}}},
      {"fixed array, paged, the end alone", {.shape = {5000, 2}, .chunk = {1, 1}, .unwritten = 4000}},
      {"fixed array, other dimensions", {.shape = {5, 5, 5}, .most = {7, 6, 11}, .chunk = {2, 2, 2}}},
      {"implicit", {.shape = {4, 4}, .chunk = {2, 2}, .set_dataset = early}},
      {"implicit, may grow", {.shape = {4, 4}, .most = {4, 8}, .chunk = {2, 2}, .set_dataset = early}},
      {"implicit, may grow in all dimensions",
       {.shape = {3, 4, 5}, .most = {5, 9, 14}, .chunk = {2, 2, 2}, .set_dataset = early}},
      {"tree of version 2",
       {.shape = {90, 90}, .most = {kUnlimited, kUnlimited}, .chunk = {4, 7}, .set_dataset = deflate}},
      {"tree of version 1",
       {.shape = {90, 90},
        .most = {kUnlimited, 90},
        .chunk = {4, 7},
        .latest = false,
        .set_dataset = deflate}},
      {"one chunk", {.shape = {9, 9}, .chunk = {9, 9}, .set_dataset = deflate}},
      {"edge chunks without filters", {.shape = {5, 7}, .chunk = {2, 3}, .set_dataset = plain_edges}},
      {"edge chunks without filters, may grow",
       {.shape = {7, 7}, .most = {kUnlimited, 8}, .chunk = {3, 4}, .set_dataset = plain_edges}},
  };
  for (const auto& [what, wanted] : kCases) {
    SCOPED_TRACE(what);
    const LibraryFile file = written(wanted);
    const auto values = read_back(file.bytes);
    ASSERT_OK(values);
    EXPECT_TRUE(*values == file.values);
  }
}

// A dataset's messages can be in a heap of the file that all objects share.
TEST(Hdf5Files, SharedMessagesAreNamed) {
  const auto share = [](unsigned kind) {
    return [kind](hid_t make) {
      H5Pset_shared_mesg_nindexes(make, 1);
      H5Pset_shared_mesg_index(make, 0, kind, 1);
    };
  };
  const LibraryFile shape = written({.shape = {8, 2}, .set_file = share(H5O_SHMESG_SDSPACE_FLAG)});
  MemoryWindow window(shape.bytes);
  Hdf5Reader reader(window, shape.bytes.size());
  ASSERT_OK(reader.open());
  EXPECT_EQ(reader.arrays().size() + reader.unread().parts.count, 2U);
  ASSERT_FALSE(reader.unread().errors.empty());
  EXPECT_NE(reader.unread().errors.front().error.what.find("shape"), std::string::npos);
  const LibraryFile fill =
      written({.shape = {8, 2}, .chunk = {2, 2}, .set_file = share(H5O_SHMESG_FILL_FLAG)});
  const auto all = read_back(fill.bytes);
  ASSERT_OK(all) << "all of it was written";
  EXPECT_EQ(*all, fill.values);
  const auto part =
      written({.shape = {8, 2}, .chunk = {2, 2}, .unwritten = 4, .set_file = share(H5O_SHMESG_FILL_FLAG)});
  const auto refused = read_back(part.bytes);
  ASSERT_TRUE(fails_with(Errc::unsupported, refused));
  EXPECT_NE(refused.error().what.find("fill value"), std::string::npos) << refused.error().what;
}

template <typename T>
void replace_all(Bytes& bytes, std::vector<T> from, std::vector<T> to) {
  const auto old_bytes = std::as_bytes(std::span(from));
  const auto new_bytes = std::as_bytes(std::span(to));
  int count = 0;
  for (auto at = bytes.begin();;) {
    at = std::search(at, bytes.end(), old_bytes.begin(), old_bytes.end());
    if (at == bytes.end()) break;
    at = std::copy(new_bytes.begin(), new_bytes.end(), at);
    ++count;
  }
  EXPECT_GT(count, 0);
}

// Sizes that no file can have, in headers without a checksum.
TEST(Hdf5Files, SizesThatAreTooLargeAreErrors) {
  const auto deflate = [](hid_t make) { H5Pset_deflate(make, 1); };
  ScanFixture fixture("hdf5");
  LibraryFile file =
      written({.shape = {5, 6, 7}, .chunk = {5, 6, 7}, .latest = false, .set_dataset = deflate});
  replace_all<uint64_t>(file.bytes, {5, 6, 7}, {1, uint64_t{1} << 31U, uint64_t{1} << 30U});
  replace_all<uint32_t>(file.bytes, {5, 6, 7, 4}, {1, 1U << 31U, 1U << 30U, 4});
  EXPECT_ERRC(Errc::unsupported, fixture.scan(file.bytes));
  file = written({.shape = {5, 6}, .chunk = {5, 6}, .latest = false, .set_dataset = deflate});
  replace_all<uint32_t>(file.bytes, {5, 6, 4}, {65536, 65537, 4});
  const auto refused = fixture.scan(file.bytes);
  ASSERT_TRUE(fails_with(Errc::unsupported, refused));
  EXPECT_NE(refused.error().what.find("4 GiB"), std::string::npos) << refused.error().what;
}

}  // namespace
}  // namespace penstock
