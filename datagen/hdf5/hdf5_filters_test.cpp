// Tests that chunks which HDF5's own library wrote with any of its filters come back, and that nothing which
// happens to the library ends this process.
#include <fmt/format.h>
#include <hdf5.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "datagen/codec/library_filters.hpp"
#include "datagen/format/form_reader.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

constexpr uint16_t kSzip = 4;
constexpr uint16_t kTestFilter = 300;  // test_filter.cpp

// A chunk as the library stores it.
struct LibraryChunk {
  std::vector<ChunkFilter> filters{};
  uint32_t not_applied = 0;
  std::vector<std::byte> stored{};
  std::vector<std::byte> plain{};
};

// Numbers from 0 to 999, as the type `type` has them.
std::vector<std::byte> numbers(hid_t type, size_t count) {
  std::vector<std::byte> values(count * 8);
  for (size_t i = 0; i < count; ++i) {
    const double value = double(i * 37 % 1000);
    std::memcpy(values.data() + i * 8, &value, 8);
  }
  EXPECT_GE(H5Tconvert(H5T_NATIVE_DOUBLE, type, count, values.data(), nullptr, H5P_DEFAULT), 0);
  values.resize(count * H5Tget_size(type));
  return values;
}

// Has the library store the values in one chunk; `set_filters` sets the filters.
template <typename SetFilters>
LibraryChunk written(hid_t type, const std::vector<std::byte>& values, SetFilters set_filters) {
  const hsize_t count = values.size() / H5Tget_size(type);
  LibraryChunk chunk;
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  EXPECT_GE(H5Pset_fapl_core(access, 1 << 16, 0), 0);
  const hid_t file = H5Fcreate("chunk", H5F_ACC_TRUNC, H5P_DEFAULT, access);
  const hid_t space = H5Screate_simple(1, &count, nullptr);
  const hid_t how = H5Pcreate(H5P_DATASET_CREATE);
  EXPECT_GE(H5Pset_chunk(how, 1, &count), 0);
  set_filters(how);
  const hid_t set = H5Dcreate2(file, "d", type, space, H5P_DEFAULT, how, H5P_DEFAULT);
  EXPECT_GE(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  EXPECT_GE(H5Fflush(file, H5F_SCOPE_GLOBAL), 0);
  hsize_t bytes = 0;
  const hsize_t first = 0;
  EXPECT_GE(H5Dget_chunk_storage_size(set, &first, &bytes), 0);
  chunk.stored.resize(bytes);
  EXPECT_GE(H5Dread_chunk(set, H5P_DEFAULT, &first, &chunk.not_applied, chunk.stored.data()), 0);
  const hid_t made = H5Dget_create_plist(set);
  for (unsigned i = 0; i < unsigned(H5Pget_nfilters(made)); ++i) {
    std::array<unsigned, 64> parameters{};
    size_t parameter_count = parameters.size();
    unsigned flags = 0;
    const auto number =
        H5Pget_filter2(made, i, &flags, &parameter_count, parameters.data(), 0, nullptr, nullptr);
    chunk.filters.push_back(
        {uint16_t(number), {parameters.begin(), parameters.begin() + ptrdiff_t(parameter_count)}});
  }
  H5Dclose(set);
  // What the library itself makes of it: lossy filters change the numbers.
  const hid_t again = H5Dopen2(file, "d", H5P_DEFAULT);
  chunk.plain.resize(count * H5Tget_size(type));
  EXPECT_GE(H5Dread(again, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, chunk.plain.data()), 0);
  H5Dclose(again);
  for (const hid_t list : {access, how, made}) H5Pclose(list);
  H5Sclose(space);
  H5Fclose(file);
  return chunk;
}

template <typename SetFilters>
LibraryChunk written(hid_t type, size_t count, SetFilters set_filters) {
  return written(type, numbers(type, count), set_filters);
}

Result<std::vector<std::byte>> opened(const LibraryChunk& chunk) {
  ChunkOpener opener;
  PENSTOCK_TRY(opener.use(chunk.filters, chunk.plain.size()));
  PENSTOCK_ASSIGN(const auto bytes, opener.open(chunk.stored, chunk.not_applied));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

bool can_write(uint16_t number) {
  unsigned flags = 0;
  return H5Zfilter_avail(number) > 0 && H5Zget_filter_info(number, &flags) >= 0 &&
         (flags & H5Z_FILTER_CONFIG_ENCODE_ENABLED) != 0;
}

class Hdf5Filters : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("HDF5_PLUGIN_PATH", PENSTOCK_TEST_FILTERS, 1); }
  void TearDown() override { simulate_interrupt(0); }
  // A chunk of the plug-in test_filter.cpp.
  static LibraryChunk inverted(size_t bytes) {
    LibraryChunk chunk{.filters = {{kTestFilter, {}}}};
    for (size_t i = 0; i < bytes; ++i) {
      chunk.plain.push_back(std::byte(i * 7 % 200));
      chunk.stored.push_back(~chunk.plain.back());
    }
    return chunk;
  }
};

TEST_F(Hdf5Filters, ChunksOfTheLibraryComeBack) {
  const hid_t seventeen_bits = H5Tcopy(H5T_STD_I32LE);
  ASSERT_GE(H5Tset_precision(seventeen_bits, 17), 0);
  using SetFilters = void (*)(hid_t);
  const struct {
    const char* what;
    hid_t type;
    SetFilters set_filters;
  } kCases[] = {
      {"n-bit", seventeen_bits, [](hid_t how) { H5Pset_nbit(how); }},
      {"n-bit of floats", H5T_IEEE_F32LE, [](hid_t how) { H5Pset_nbit(how); }},
      {"n-bit, deflate", seventeen_bits,
       [](hid_t how) {
         H5Pset_nbit(how);
         H5Pset_deflate(how, 6);
       }},
      {"scale-offset", H5T_STD_I32LE, [](hid_t how) { H5Pset_scaleoffset(how, H5Z_SO_INT, 0); }},
      {"scale-offset, big-endian", H5T_STD_U16BE, [](hid_t how) { H5Pset_scaleoffset(how, H5Z_SO_INT, 0); }},
      {"scale-offset of floats", H5T_IEEE_F64LE,
       [](hid_t how) { H5Pset_scaleoffset(how, H5Z_SO_FLOAT_DSCALE, 2); }},
      {"shuffle, scale-offset, fletcher32", H5T_STD_I16LE,
       [](hid_t how) {
         H5Pset_shuffle(how);
         H5Pset_scaleoffset(how, H5Z_SO_INT, 0);
         H5Pset_fletcher32(how);
       }},
      {"fletcher32, scale-offset, deflate, fletcher32", H5T_STD_I32LE,
       [](hid_t how) {
         H5Pset_scaleoffset(how, H5Z_SO_INT, 0);
         H5Pset_deflate(how, 1);
         H5Pset_fletcher32(how);
       }},
      {"szip", H5T_STD_I32LE,
       [](hid_t how) {
         if (can_write(kSzip)) H5Pset_szip(how, H5_SZIP_NN_OPTION_MASK, 8);
       }},
      {"szip of bytes, deflate", H5T_STD_U8LE,
       [](hid_t how) {
         if (can_write(kSzip)) H5Pset_szip(how, H5_SZIP_EC_OPTION_MASK, 16);
         H5Pset_deflate(how, 6);
       }},
  };
  for (const auto& [what, type, set_filters] : kCases)
    for (const size_t count : {size_t{40}, size_t{1000}, size_t{300'000}}) {
      SCOPED_TRACE(fmt::format("{}, {} numbers", what, count));
      const LibraryChunk chunk = written(type, count, set_filters);
      for (const ChunkFilter& filter : chunk.filters)
        EXPECT_TRUE(!filter.needs_library() || LibraryFilters::find(filter.number).ok());
      const auto bytes = opened(chunk);
      ASSERT_OK(bytes);
      EXPECT_EQ(*bytes, chunk.plain);
    }
  H5Tclose(seventeen_bits);
}

TEST_F(Hdf5Filters, AFilterThatWasNotAppliedIsNotUndone) {
  LibraryChunk chunk = written(H5T_STD_I32LE, 1000, [](hid_t how) {
    H5Pset_scaleoffset(how, H5Z_SO_INT, 0);
    H5Pset_fletcher32(how);
  });
  chunk.stored = chunk.plain;
  chunk.not_applied = 3;
  auto bytes = opened(chunk);
  ASSERT_OK(bytes);
  EXPECT_EQ(*bytes, chunk.plain);
  // Of two that need the library, one was applied.
  chunk = inverted(500);
  chunk.filters.insert(chunk.filters.begin(), {32015, {}});
  chunk.not_applied = 1;
  bytes = opened(chunk);
  ASSERT_OK(bytes);
  EXPECT_EQ(*bytes, chunk.plain);
}

TEST_F(Hdf5Filters, PlugInsAreFoundOrMissedByName) {
  EXPECT_OK(LibraryFilters::find(kTestFilter));
  const auto bytes = opened(inverted(70'000));
  ASSERT_OK(bytes);
  EXPECT_EQ(*bytes, inverted(70'000).plain);
  EXPECT_ERRC(Errc::unsupported, LibraryFilters::find(0));
  for (const uint16_t number : {uint16_t{32001}, uint16_t{301}}) {
    const auto found = LibraryFilters::find(number);
    ASSERT_TRUE(fails_with(Errc::unsupported, found));
    EXPECT_NE(found.error().what.find("HDF5_PLUGIN_PATH"), std::string::npos);
  }
}

TEST_F(Hdf5Filters, ACrashIsAnErrorAndTheNextChunkIsRead) {
  const LibraryChunk good = inverted(1000);
  LibraryChunk bad = good;
  bad.stored.front() = std::byte{1};
  LibraryFilters library;
  for (int i = 0; i < 3; ++i) {
    const auto failed = library.undo(bad.filters, 0, bad.stored, bad.plain.size());
    ASSERT_TRUE(fails_with(Errc::corrupt, failed));
    EXPECT_NE(failed.error().what.find(fmt::format("signal {}", SIGABRT)), std::string::npos);
    const auto bytes = library.undo(good.filters, 0, good.stored, good.plain.size());
    ASSERT_OK(bytes);
    EXPECT_TRUE(std::equal(bytes->begin(), bytes->end(), good.plain.begin(), good.plain.end()));
  }
}

TEST_F(Hdf5Filters, AHangEndsAndTheNextChunkIsRead) {
  const LibraryChunk good = inverted(1000);
  LibraryChunk bad = good;
  bad.stored.front() = std::byte{2};
  LibraryFilters library(std::chrono::seconds(5));
  EXPECT_ERRC(Errc::unsupported, library.undo(bad.filters, 0, bad.stored, bad.plain.size()));
  EXPECT_OK(library.undo(good.filters, 0, good.stored, good.plain.size()));
}

TEST_F(Hdf5Filters, AfterThreeHangsNothingIsTried) {
  LibraryChunk bad = inverted(1000);
  bad.stored.front() = std::byte{2};
  LibraryFilters library(std::chrono::seconds(0));
  for (int i = 0; i < 4; ++i) {
    const auto failed = library.undo(bad.filters, 0, bad.stored, bad.plain.size());
    ASSERT_TRUE(fails_with(Errc::unsupported, failed));
    EXPECT_EQ(failed.error().what.find("a chunk was skipped") != std::string::npos, i == 3) << failed.error().what;
  }
}

TEST_F(Hdf5Filters, OneArrayThatHangsIsNotTheEndOfOthers) {
  const LibraryChunk good = inverted(1000);
  LibraryChunk bad = good;
  bad.stored.front() = std::byte{2};
  ChunkOpener opener(std::make_unique<LibraryFilters>(std::chrono::seconds(0)));
  ASSERT_OK(opener.use(bad.filters, bad.plain.size()));
  for (int i = 0; i < 4; ++i) EXPECT_ERRC(Errc::unsupported, opener.open(bad.stored, 0));
  ASSERT_OK(opener.use(good.filters, good.plain.size()));
  EXPECT_OK(opener.open(good.stored, 0));
}

// A filter that gets no memory says nothing about its chunk, unless what it asks for is more than an intact
// chunk needs.
TEST_F(Hdf5Filters, LittleMemoryIsNoDamage) {
#if defined(PENSTOCK_ADDRESS_SANITIZER) || defined(PENSTOCK_THREAD_SANITIZER)
  GTEST_SKIP() << "a sanitizer reserves more memory than this limit";
#endif
  LibraryChunk chunk = written(H5T_STD_I32LE, 500, [](hid_t how) { H5Pset_scaleoffset(how, H5Z_SO_INT, 0); });
  constexpr size_t kElements = 2;  // the parameter that says how many there are
  chunk.filters[0].parameters.at(kElements) = 1U << 29U;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  for (const bool is_limited : {true, false}) {
    const rlim_t most = is_limited ? 512U << 20U : before.rlim_cur;
    const rlimit during{std::min(before.rlim_cur, most), before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &during), 0);
    LibraryFilters library;
    const auto failed = library.undo(chunk.filters, 0, chunk.stored, chunk.plain.size());
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
    EXPECT_ERRC(is_limited ? Errc::unsupported : Errc::corrupt, failed);
  }
}

TEST_F(Hdf5Filters, AConnectionThatTimedOutIsNotKept) {
  LibraryChunk bad = inverted(1000);
  bad.stored.front() = std::byte{2};
  auto library = std::make_unique<LibraryFilters>(std::chrono::seconds(0));
  EXPECT_ERRC(Errc::unsupported, library->undo(bad.filters, 0, bad.stored, bad.plain.size()));
  LibraryFilters::keep(std::move(library));
  EXPECT_OK(opened(inverted(1000)));  // the connection that was kept last is used first; it would not wait
}

// A filter that is missing is no damage of the chunk.
TEST_F(Hdf5Filters, AMissingPlugInIsNamed) {
  LibraryChunk chunk = inverted(1000);
  chunk.filters.front().number = 302;
  const auto missing = opened(chunk);
  ASSERT_TRUE(fails_with(Errc::unsupported, missing));
  EXPECT_NE(missing.error().what.find("HDF5_PLUGIN_PATH"), std::string::npos) << missing.error().what;
}

TEST_F(Hdf5Filters, TooManyFiltersOrParametersAreRefused) {
  const LibraryChunk good = inverted(1000);
  LibraryFilters library;
  const std::vector<ChunkFilter> filters(9, ChunkFilter{kTestFilter, {}});
  EXPECT_ERRC(Errc::invalid_argument, library.undo(filters, 0, good.stored, good.plain.size()));
  const std::vector<ChunkFilter> one{{kTestFilter, std::vector<uint32_t>(65)}};
  EXPECT_ERRC(Errc::invalid_argument, library.undo(one, 0, good.stored, good.plain.size()));
}

// Finds the processes by their parent, this one.
std::vector<pid_t> filter_processes() {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream stat(entry.path() / "stat");
    std::string pid;
    std::string name;
    std::string state;
    pid_t parent = 0;
    if (stat >> pid >> name >> state >> parent && parent == ::getpid() && name.starts_with("(penstock_hdf5"))
      found.push_back(std::stoi(pid));
  }
  return found;
}

TEST_F(Hdf5Filters, AProcessThatWasKilledIsReplaced) {
  const LibraryChunk good = inverted(1000);
  LibraryFilters library;
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(library.undo(good.filters, 0, good.stored, good.plain.size()));
    const std::vector<pid_t> processes = filter_processes();
    ASSERT_FALSE(processes.empty());
    for (const pid_t process : processes) ::kill(process, SIGKILL);
  }
}

TEST_F(Hdf5Filters, OpenersShareProcesses) {
  const LibraryChunk good = inverted(1000);
  ASSERT_OK(opened(good));
  const size_t processes = filter_processes().size();
  EXPECT_GE(processes, 1U);
  for (int i = 0; i < 5; ++i) ASSERT_OK(opened(good));
  EXPECT_EQ(filter_processes().size(), processes);
}

// HDF5 opens what has the name of a file in memory.
TEST_F(Hdf5Filters, NamesInTheWorkingFolderDoNotMatter) {
  const ScratchFolder scratch;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(scratch.path());
  std::filesystem::create_directory("chunk");
  LibraryFilters library;
  const LibraryChunk good = inverted(1000);
  EXPECT_OK(library.undo(good.filters, 0, good.stored, good.plain.size()));
  std::filesystem::current_path(before);
}

TEST_F(Hdf5Filters, AnInterruptEndsTheWait) {
  LibraryChunk bad = inverted(1000);
  bad.stored.front() = std::byte{2};
  LibraryFilters library;
  std::jthread later([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    simulate_interrupt(SIGINT);
  });
  EXPECT_ERRC(Errc::interrupted, library.undo(bad.filters, 0, bad.stored, bad.plain.size()));
}

TEST_F(Hdf5Filters, AChunkOfAnotherSizeIsDamage) {
  const LibraryChunk chunk = inverted(1000);
  LibraryFilters library;
  ASSERT_OK(library.undo(chunk.filters, 0, chunk.stored, 1000));
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{999}, uint64_t{1001}, uint64_t{5'000'000}})
    EXPECT_ERRC(Errc::corrupt, library.undo(chunk.filters, 0, chunk.stored, bytes)) << bytes;
  EXPECT_ERRC(Errc::corrupt, library.undo(chunk.filters, 0, {}, 1000));
  EXPECT_ERRC(Errc::corrupt, library.undo(chunk.filters, 0, chunk.stored, UINT64_MAX));
}

// Scale-offset stores equal numbers in some 20 bytes, however many there are.
TEST_F(Hdf5Filters, FewBytesMayHoldALargeChunk) {
  constexpr uint64_t kBytes = uint64_t{64} << 20U;
  const LibraryChunk chunk =
      written(H5T_STD_I32LE, std::vector<std::byte>(kBytes, std::byte{7}), [](hid_t how) {
        H5Pset_fill_value(how, H5T_STD_I32LE, nullptr);  // it would have to fit, too
        H5Pset_scaleoffset(how, H5Z_SO_INT, 0);
      });
  ASSERT_LT(chunk.stored.size(), 100U);
  const std::vector<ChunkedArray::Chunk> chunks{ChunkedArray::Chunk::make(0, chunk.stored.size(), 0)};
  FormReader reader;
  ASSERT_OK(reader.use(
      ChunkedArray{.shape = {kBytes}, .chunk_shape = {kBytes}, .filters = chunk.filters, .chunks = chunks}));
  MemoryWindow stored(chunk.stored);
  const auto bytes = reader.read(stored, {kBytes - 1000, 1000});
  ASSERT_OK(bytes);
  EXPECT_TRUE(std::ranges::all_of(*bytes, [](std::byte byte) { return byte == std::byte{7}; }));
}

// Bytes of chunks at random. Whatever the library does with them, the answer is a whole chunk or `corrupt`,
// and the next chunk that is not damaged comes back.
TEST_F(Hdf5Filters, DamagedChunksAreErrorsOrWholeChunks) {
  const LibraryChunk chunks[] = {
      written(H5T_STD_I32LE, 500, [](hid_t how) { H5Pset_scaleoffset(how, H5Z_SO_INT, 0); }),
      written(H5T_IEEE_F32LE, 500, [](hid_t how) { H5Pset_nbit(how); }),
      written(H5T_STD_I32LE, 500,
              [](hid_t how) {
                if (can_write(kSzip))
                  H5Pset_szip(how, H5_SZIP_NN_OPTION_MASK, 8);
                else
                  H5Pset_scaleoffset(how, H5Z_SO_INT, 0);
              }),
  };
  uint64_t random = 7;
  const auto next = [&](uint64_t below) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    return size_t((random >> 33U) % below);
  };
  LibraryFilters library;
  for (int i = 0; i < 200; ++i) {
    const LibraryChunk& good = chunks[next(std::size(chunks))];
    LibraryChunk bad = good;
    for (size_t k = 0; k <= next(4); ++k) bad.stored[next(bad.stored.size())] = std::byte(next(256));
    if (next(3) == 0) bad.stored.resize(1 + next(bad.stored.size()));
    if (next(4) == 0 && !bad.filters[0].parameters.empty())
      bad.filters[0].parameters[next(bad.filters[0].parameters.size())] = uint32_t(next(1U << 31U));
    const uint64_t chunk_bytes = next(5) == 0 ? 1 + next(5000) : good.plain.size();
    const auto bytes = library.undo(bad.filters, 0, bad.stored, chunk_bytes);
    EXPECT_TRUE(bytes.ok() ? bytes->size() == chunk_bytes : bytes.error().code == Errc::corrupt);
  }
  for (const LibraryChunk& good : chunks) {
    const auto bytes = library.undo(good.filters, good.not_applied, good.stored, good.plain.size());
    ASSERT_OK(bytes);
    EXPECT_TRUE(std::equal(bytes->begin(), bytes->end(), good.plain.begin(), good.plain.end()));
  }
}

}  // namespace
}  // namespace penstock
