// Tests HDF5's own library on Penstock's back ends: it must read its own files through any of them.
#include "datagen/hdf5/hdf5_input.hpp"

#include <hdf5.h>

#include <array>
#include <fstream>
#include <iterator>
#include <thread>

#include "io_backends/testing/testing.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

constexpr std::array<hsize_t, 2> kSides{64, 96};

float value_at(uint64_t row, uint64_t column) {
  return float(row * 1000 + column);
}

// Makes a file with the data sets "group/chunked" and "plain", both f32, by HDF5's library only.
void make_file(const std::filesystem::path& path) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t group = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(2, kSides.data(), nullptr);
  const hid_t chunked = H5Pcreate(H5P_DATASET_CREATE);
  const std::array<hsize_t, 2> chunk{16, 32};
  H5Pset_chunk(chunked, 2, chunk.data());
  std::vector<float> values;
  for (uint64_t row = 0; row < kSides[0]; ++row)
    for (uint64_t column = 0; column < kSides[1]; ++column) values.push_back(value_at(row, column));
  const std::array<std::pair<const char*, hid_t>, 2> sets{
      {{"group/chunked", chunked}, {"plain", H5P_DEFAULT}}};
  for (const auto& [name, how] : sets) {
    const hid_t set = H5Dcreate2(file, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    EXPECT_GE(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    H5Dclose(set);
  }
  H5Pclose(chunked);
  H5Sclose(space);
  H5Gclose(group);
  EXPECT_GE(H5Fclose(file), 0);
}

class Hdf5 : public testing::Test {
 protected:
  void SetUp() override {
    make_file(scratch_.path() / "file.h5");
    auto tier = open_tier("t=posix:" + scratch_.path().string(), kNoNamedTiers);
    ASSERT_OK(tier);
    files_ = std::move(tier->backend);
  }
  std::unique_ptr<Backend> tier(const std::string& text) const {
    auto tier = open_tier(text, kNoNamedTiers);
    EXPECT_OK(tier);
    return std::move(tier->backend);
  }
  std::string folder() const { return scratch_.path().string(); }

  static void check_block(Hdf5Input& input, const std::string& set) {
    std::vector<float> out(size_t{5} * 40);
    const std::array<uint64_t, 2> begin{10, 20};
    const std::array<uint64_t, 2> counts{5, 40};
    ASSERT_OK(input.read(set, begin, counts, Element::f32, std::as_writable_bytes(std::span(out))));
    for (uint64_t row = 0; row < counts[0]; ++row)
      for (uint64_t column = 0; column < counts[1]; ++column)
        ASSERT_EQ(out[row * counts[1] + column], value_at(begin[0] + row, begin[1] + column));
  }

  ScratchFolder scratch_;
  std::unique_ptr<Backend> files_;
};

TEST_F(Hdf5, ReadsBlocksByEveryDriver) {
  for (const Hdf5Driver driver : {Hdf5Driver::reader, Hdf5Driver::sec2, Hdf5Driver::core}) {
    EXPECT_EQ(parse_hdf5_driver(hdf5_driver_name(driver)).value(), driver);
    const auto input = Hdf5Input::open(*files_, "file.h5", driver);
    ASSERT_OK(input);
    for (const std::string set : {"group/chunked", "plain"}) {
      const auto shape = (*input)->shape(set);
      ASSERT_OK(shape);
      EXPECT_EQ(*shape, (std::vector<uint64_t>{64, 96}));
      check_block(**input, set);
    }
  }
}

TEST_F(Hdf5, ReadsThroughAnyBackEndAndCountsItThere) {
  std::ifstream file(scratch_.path() / "file.h5", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (const std::string& text : {std::string("t=mem:hdf5"), "t=posix:" + folder() + ",latency=100us"}) {
    const auto backend = tier(text);
    if (backend->caps().volatile_memory) {
      const auto writer = backend->create("file.h5");
      ASSERT_OK(writer);
      ASSERT_OK((*writer)->append(bytes_of(bytes)));
      ASSERT_OK((*writer)->publish(Durability::visible));
    }
    const auto input = Hdf5Input::open(*backend, "file.h5", Hdf5Driver::reader);
    ASSERT_OK(input);
    const uint64_t before = backend->moved_bytes().read;
    check_block(**input, "plain");
    EXPECT_GE(backend->moved_bytes().read - before, 5U * 40U * sizeof(float));
  }
  const auto memory = tier("t=mem:hdf5");
  for (const Hdf5Driver driver : {Hdf5Driver::sec2, Hdf5Driver::mpio, Hdf5Driver::mpio_collective}) {
    EXPECT_EQ(parse_hdf5_driver(hdf5_driver_name(driver)).value(), driver);
    EXPECT_TRUE(fails_with(Errc::unsupported, Hdf5Input::open(*memory, "file.h5", driver), "driver reader"));
  }
}

TEST_F(Hdf5, ConvertsElementsToTheRequestedType) {
  const auto input = Hdf5Input::open(*files_, "file.h5", Hdf5Driver::reader);
  ASSERT_OK(input);
  std::array<int64_t, 3> out{};
  const std::array<uint64_t, 2> begin{2, 3};
  const std::array<uint64_t, 2> counts{1, 3};
  ASSERT_OK((*input)->read("plain", begin, counts, Element::i64, std::as_writable_bytes(std::span(out))));
  EXPECT_EQ(out, (std::array<int64_t, 3>{2003, 2004, 2005}));
}

TEST_F(Hdf5, ReportsMistakes) {
  std::ofstream(scratch_.path() / "text.h5") << std::string(4'000, 'x');
  std::ofstream(scratch_.path() / "empty.h5");
  std::filesystem::copy_file(scratch_.path() / "file.h5", scratch_.path() / "cut.h5");
  std::filesystem::resize_file(scratch_.path() / "cut.h5", 1'000);
  for (const Hdf5Driver driver : {Hdf5Driver::reader, Hdf5Driver::sec2, Hdf5Driver::core}) {
    EXPECT_ERRC(Errc::not_found, Hdf5Input::open(*files_, "absent.h5", driver));
    for (const std::string name : {"text.h5", "empty.h5", "cut.h5"})
      EXPECT_TRUE(fails_with(Errc::corrupt, Hdf5Input::open(*files_, name, driver), name));
    const auto input = Hdf5Input::open(*files_, "file.h5", driver);
    ASSERT_OK(input);
    EXPECT_TRUE(fails_with(Errc::not_found, (*input)->shape("group/absent"), "group/absent"));
    std::array<float, 4> out{};
    const auto read = [&](std::array<uint64_t, 2> begin, std::array<uint64_t, 2> counts) {
      return (*input)->read("plain", begin, counts, Element::f32, std::as_writable_bytes(std::span(out)));
    };
    EXPECT_OK(read({63, 92}, {1, 4}));
    EXPECT_ERRC(Errc::invalid_argument, read({63, 93}, {1, 4}));
    EXPECT_ERRC(Errc::invalid_argument, read({UINT64_MAX, 0}, {2, 2}));
    EXPECT_ERRC(Errc::invalid_argument, read({0, 0}, {1, 5}));
    const std::array<uint64_t, 1> flat{4};
    EXPECT_ERRC(Errc::invalid_argument,
                (*input)->read("plain", flat, flat, Element::f32, std::as_writable_bytes(std::span(out))));
  }
  EXPECT_ERRC(Errc::invalid_argument, parse_hdf5_driver("sec3"));
}

TEST_F(Hdf5, AFaultOfTheBackEndIsTheErrorAtAnyRead) {
  size_t faults = 0;
  for (uint64_t n = 1; n < 40; ++n) {
    const auto faulty = tier("t=posix:" + folder() + ",fail=read:eio@#" + std::to_string(n));
    const auto input = Hdf5Input::open(*faulty, "file.h5", Hdf5Driver::reader);
    if (!input.ok()) {
      EXPECT_EQ(input.error().sys_errno, EIO) << input.error().message();
      ++faults;
      continue;
    }
    std::vector<float> out(kSides[0] * kSides[1]);
    const std::array<uint64_t, 2> begin{0, 0};
    const std::array<uint64_t, 2> counts{kSides[0], kSides[1]};
    const auto read =
        (*input)->read("group/chunked", begin, counts, Element::f32, std::as_writable_bytes(std::span(out)));
    if (read.ok()) break;
    EXPECT_EQ(read.error().sys_errno, EIO) << read.error().message();
    ++faults;
  }
  EXPECT_GT(faults, 3U);
}

TEST_F(Hdf5, AnEarlierFaultIsNotTheErrorOfALaterFailure) {
  size_t faults = 0;
  for (uint64_t n = 1; n < 40; ++n) {
    const auto faulty = tier("t=posix:" + folder() + ",fail=read:eio@#" + std::to_string(n));
    const auto input = Hdf5Input::open(*faulty, "file.h5", Hdf5Driver::reader);
    if (!input.ok()) continue;
    std::array<float, 1> out{};
    const std::array<uint64_t, 2> begin{0, 0};
    const std::array<uint64_t, 2> counts{1, 1};
    const auto read =
        (*input)->read("plain", begin, counts, Element::f32, std::as_writable_bytes(std::span(out)));
    if (read.ok()) break;
    EXPECT_EQ(read.error().sys_errno, EIO) << read.error().message();
    ++faults;
    EXPECT_ERRC(Errc::not_found, (*input)->shape("absent"));
    EXPECT_OK((*input)->shape("plain"));
  }
  EXPECT_GT(faults, 0U);
}

TEST_F(Hdf5, ThreadsReadAtOnce) {
  const auto input = Hdf5Input::open(*files_, "file.h5", Hdf5Driver::reader);
  ASSERT_OK(input);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        check_block(**input, round % 2 == 0 ? "plain" : "group/chunked");
        EXPECT_OK(Hdf5Input::open(*files_, "file.h5", Hdf5Driver::reader));
      }
    });
}

}  // namespace
}  // namespace penstock
