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
  hid_t type = -1;        // -1: H5T_STD_I32LE
  std::function<void(hid_t)> set_dataset{};
  std::function<void(hid_t)> set_file{};  // if given, there is a dataset "c" like "d", without values
};

// Removes the file.
Bytes content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(path);
  const auto bytes = std::as_bytes(std::span(content));
  return {bytes.begin(), bytes.end()};
}

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
  const hid_t type = wanted.type < 0 ? H5T_STD_I32LE : wanted.type;
  if (wanted.set_file) H5Dclose(H5Dcreate2(file, "c", type, space, H5P_DEFAULT, make, H5P_DEFAULT));
  const hid_t set = H5Dcreate2(file, "d", type, space, H5P_DEFAULT, make, H5P_DEFAULT);
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
  out.bytes = content_of(path);
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

// The library moves the bits of such numbers when it reads them.
TEST(Hdf5Files, NumbersThatAreAPartOfTheirBits) {
  const struct {
    const char* what;
    hid_t base;
    size_t precision;
    size_t offset;
    bool is_read;
  } kCases[] = {
      {"as they are", H5T_STD_I32LE, 32, 0, true},        {"unsigned, 12 bits", H5T_STD_U32LE, 12, 0, true},
      {"signed, 12 bits", H5T_STD_I32LE, 12, 0, false},   {"signed, shifted", H5T_STD_I32LE, 12, 4, false},
      {"unsigned, shifted", H5T_STD_U32LE, 12, 4, false},
  };
  for (const auto& one : kCases) {
    SCOPED_TRACE(one.what);
    const hid_t type = H5Tcopy(one.base);
    EXPECT_GE(H5Tset_precision(type, one.precision), 0);
    EXPECT_GE(H5Tset_offset(type, one.offset), 0);
    for (const bool packs : {false, true}) {
      const LibraryFile file =
          written({.shape = {50, 2}, .chunk = {7, 2}, .type = type, .set_dataset = [&](hid_t make) {
                     if (packs) H5Pset_nbit(make);
                   }});
      const auto values = read_back(file.bytes);
      EXPECT_EQ(values.ok(), one.is_read);
      if (values.ok()) {
        EXPECT_EQ(*values, file.values);
      }
      const auto scanned = ScanFixture("hdf5").scan(file.bytes);
      if (!one.is_read) {
        EXPECT_ERRC(Errc::unsupported, scanned);
      }
    }
    H5Tclose(type);
  }
}

// The same bytes of a heap, or of a type, are needed for each of them.
TEST(Hdf5Files, ManyLinksAndOneTypeOfMany) {
  const std::string path = ::testing::TempDir() + fmt::format("penstock-hdf5-links-{}", ::getpid());
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  const hid_t links = H5Gcreate2(file, "links", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  for (int i = 0; i < 20'000; ++i)
    EXPECT_GE(H5Lcreate_soft("/nothing", links, fmt::format("link{}", i).c_str(), H5P_DEFAULT, H5P_DEFAULT),
              0);
  const hid_t type = H5Tenum_create(H5T_STD_I16LE);
  for (int16_t i = 0; i < 1000; ++i)
    EXPECT_GE(H5Tenum_insert(type, fmt::format("the name of class {}", i).c_str(), &i), 0);
  EXPECT_GE(H5Tcommit2(file, "type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), 0);
  const hsize_t side = 3;
  const hid_t space = H5Screate_simple(1, &side, nullptr);
  for (int i = 0; i < 200; ++i)
    H5Dclose(
        H5Dcreate2(file, fmt::format("d{}", i).c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Sclose(space);
  H5Tclose(type);
  H5Gclose(links);
  H5Pclose(access);
  H5Fclose(file);
  const Bytes bytes = content_of(path);
  MemoryWindow window(bytes);
  Hdf5Reader reader(window, bytes.size());
  ASSERT_OK(reader.open());
  EXPECT_EQ(reader.arrays().size(), 200U);
}

TEST(Hdf5Files, LabelsThatWereNeverWrittenAreLeftOut) {
  const std::string path = ::testing::TempDir() + fmt::format("penstock-hdf5-label-{}", ::getpid());
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const Sides sides{3, 2};
  for (const char* name : {"data", "label"}) {
    const bool is_data = std::string(name) == "data";
    const hid_t space = H5Screate_simple(is_data ? 2 : 1, sides.data(), nullptr);
    const hid_t set = H5Dcreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const std::vector<int32_t> values{1, 2, 3, 4, 5, 6};
    if (is_data) {
      EXPECT_GE(H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    }
    H5Dclose(set);
    H5Sclose(space);
  }
  H5Fclose(file);
  const auto samples = ScanFixture("hdf5").scan(content_of(path));
  ASSERT_OK(samples);
  ASSERT_EQ(samples->size(), 3U);
  EXPECT_EQ((*samples)[0].label, "");
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
