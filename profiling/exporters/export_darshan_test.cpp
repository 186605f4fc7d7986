// Reads logs back by the offsets in Darshan's header files, not by the structs that wrote the logs.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#ifdef PENSTOCK_HAS_ZLIB
#include <zlib.h>
#endif

#include "io_backends/testing/testing.hpp"
#include "profiling/exporters/session_export.hpp"
#include "profiling/exporters/zlib_stream.hpp"
#include "profiling/session/session_ranks.hpp"
#include "profiling/session/session_summary.hpp"
#include "profiling/session/session_testing.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

std::string text_of_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The content of a zlib stream that has only stored blocks, which begin at byte boundaries.
std::string content_of_stored_blocks(std::string_view stream) {
  std::string out;
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(stream.at(at)); };
  EXPECT_EQ((byte(0) * 256U + byte(1)) % 31, 0U) << "a zlib header";
  size_t at = 2;
  for (bool last = false; !last;) {
    last = byte(at) == 1;
    EXPECT_LE(byte(at), 1) << "a stored block";
    const size_t length = byte(at + 1) + 256U * byte(at + 2);
    EXPECT_EQ(length ^ (byte(at + 3) + 256U * byte(at + 4)), 0xffffU);
    out += stream.substr(at + 5, length);
    at += 5 + length;
  }
  uint32_t a = 1;
  uint32_t b = 0;
  for (const char c : out) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  EXPECT_EQ(at + 4, stream.size());
  uint32_t sum = 0;
  for (size_t i = 0; i < 4; ++i) sum = sum << 8U | byte(at + i);
  EXPECT_EQ(b << 16U | a, sum);
  return out;
}

std::string inflated(std::string_view stream) {
#ifdef PENSTOCK_HAS_ZLIB
  std::string out(size_t{16} << 20U, '\0');
  uLongf length = out.size();
  const auto* const in = reinterpret_cast<const Bytef*>(stream.data());
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(out.data()), &length, in, stream.size()), Z_OK);
  out.resize(length);
  return out;
#else
  return content_of_stored_blocks(stream);
#endif
}

class Log {
 public:
  explicit Log(const fs::path& path) : bytes_(text_of_file(path)) {}

  template <class T>
  static T at(std::string_view text, size_t offset) {
    T value{};
    if (offset + sizeof value > text.size()) throw std::out_of_range("the log ends before");
    std::memcpy(&value, text.data() + offset, sizeof value);
    return value;
  }
  template <class T>
  T head(size_t offset) const {
    return at<T>(bytes_, offset);
  }
  std::string_view bytes() const { return bytes_; }
  std::string job() const {
    return inflated(std::string_view(bytes_).substr(1328, head<uint64_t>(32) - 1328));
  }
  std::string names() const { return region(32); }
  std::string module(size_t number) const { return region(48 + 16 * number); }
  uint32_t version(size_t module) const { return head<uint32_t>(1072 + 4 * module); }

 private:
  std::string region(size_t map) const {
    const auto offset = head<uint64_t>(map);
    const auto length = head<uint64_t>(map + 8);
    return length == 0 ? "" : inflated(std::string_view(bytes_).substr(offset, length));
  }
  std::string bytes_;
};

std::map<uint64_t, std::string> names_of(const std::string& text) {
  std::map<uint64_t, std::string> names;
  for (size_t at = 0; at < text.size();) {
    const std::string name = text.c_str() + at + 8;
    EXPECT_TRUE(names.emplace(Log::at<uint64_t>(text, at), name).second) << name;
    at += 8 + name.size() + 1;
  }
  return names;
}

// Counter number `index` of a record.
int64_t counter(std::string_view record, size_t index) {
  return Log::at<int64_t>(record, 16 + 8 * index);
}

constexpr size_t kPosixBytes = 704;
constexpr size_t kStdioBytes = 248;

class DarshanTest : public testing::Test {
 protected:
  Log export_of(const std::vector<const SessionBytes*>& process_files, const SessionFilter& filter = {}) {
    for (const SessionBytes* const process_file : process_files)
      const_cast<SessionBytes*>(process_file)->write(folder_.path());
    const fs::path paths[] = {folder_.path()};
    session_ = open_session(paths).value();
    const FileSums sums(session_);
    summary_ = summarise(session_, sums, filter);
    const fs::path path = folder_.path() / "log.darshan";
    Result<WholeFile> file = WholeFile::create(path.string(), "the log");
    counts_ = export_darshan(session_, sums, filter, *file).value();
    EXPECT_TRUE(file->publish().ok());
    return Log(path);
  }
  static void add_call(SessionBytes& to, std::string_view path, unsigned call, uint64_t offset,
                       uint64_t length, uint64_t at_ns, unsigned layer = PENSTOCK_POSIX) {
    to.add(penstock_segment{.file = key_for_test(path),
                            .offset = offset,
                            .length = length,
                            .begin_ticks = 1'000'000'000 + at_ns,
                            .end_ticks = 1'000'000'000 + at_ns + 500,
                            .thread = 100,
                            .call = uint8_t(call),
                            .layer = uint8_t(layer),
                            .failed = 0});
  }

  ScratchFolder folder_;
  Session session_;
  SessionSummary summary_;
  ExportCounts counts_;
};

TEST_F(DarshanTest, HeaderAndJobAreWhereReadersLook) {
  SessionBytes bytes(100);
  bytes.set_command({"tar", "xf", "two words"});
  bytes.add_file("/data/a", 100, 2, 1000);
  const Log log = export_of({&bytes});
  EXPECT_STREQ(log.bytes().substr(0, 8).data(), "3.41");
  EXPECT_EQ(log.head<int64_t>(8), 6567223);
  EXPECT_EQ(log.bytes()[16], 0) << "zlib";
  EXPECT_EQ(log.head<uint64_t>(24), 0U) << "nothing is missing";
  EXPECT_EQ(log.version(1), 4U);
  EXPECT_EQ(log.version(15), 1U);
  const std::string job = log.job();
  ASSERT_LE(job.size(), 4096U);
  EXPECT_EQ(Log::at<int64_t>(job, 8), 1001);  // started, in seconds since 1970
  EXPECT_EQ(Log::at<int64_t>(job, 24), 1011);
  EXPECT_EQ(Log::at<int64_t>(job, 40), 1);    // processes
  EXPECT_EQ(Log::at<int64_t>(job, 48), 100);  // the job's id
  EXPECT_TRUE(std::string(job.c_str() + 56).starts_with("lib_ver=penstock-"));
  const std::string rest = job.c_str() + 1080;
  EXPECT_TRUE(rest.starts_with("tar xf two words\n")) << rest;
  EXPECT_NE(rest.find("\t/"), std::string::npos) << "a mount";
  EXPECT_EQ(job.back(), '\0');
}

TEST_F(DarshanTest, RecordsHoldWhatTheReportSays) {
  SessionBytes bytes(100);
  bytes.add_file("/data/a", 100, 2, 1000);
  bytes.add_file("/data/a", 101, 3, 10);
  bytes.add_file("/data/a", 100, 4, 5, PENSTOCK_STDIO);
  bytes.add_file("/data/b", 100, 1, 7, PENSTOCK_RING);
  bytes.add_file("/data/b", 100, 9, 9, PENSTOCK_MPIIO);
  const Log log = export_of({&bytes});
  const auto names = names_of(log.names());
  const std::string posix = log.module(1);
  ASSERT_EQ(posix.size(), 2 * kPosixBytes);
  const std::string stdio = log.module(9);
  ASSERT_EQ(stdio.size(), kStdioBytes);
  EXPECT_EQ(counts_.records, 3U);
  int64_t read = counter(stdio, 7);
  for (size_t at = 0; at < posix.size(); at += kPosixBytes) {
    const auto record = std::string_view(posix).substr(at, kPosixBytes);
    const std::string& name = names.at(Log::at<uint64_t>(record, 0));
    EXPECT_EQ(Log::at<int64_t>(record, 8), 0) << "its rank";
    EXPECT_EQ(counter(record, 14), name == "/data/a" ? 2030 : 7);
    EXPECT_EQ(counter(record, 3), name == "/data/a" ? 5 : 1);
    EXPECT_EQ(counter(record, 0), name == "/data/a" ? 2 : 1);
    EXPECT_EQ(counter(record, 29), name == "/data/a" ? 5 : 1)
        << "reads of up to 100 bytes, as the counters say";
    EXPECT_EQ(counter(record, 12), -1) << "nobody watched renames";
    EXPECT_NEAR(Log::at<double>(record, 16 + 8 * (69 + 1)), 1e-6, 1e-9) << "the first read";
    EXPECT_NEAR(Log::at<double>(record, 16 + 8 * (69 + 8)), name == "/data/a" ? 5e-6 : 1e-6, 1e-9);
    read += counter(record, 14);
  }
  EXPECT_EQ(counter(stdio, 7), 20);
  EXPECT_EQ(counter(stdio, 2), 4);
  EXPECT_EQ(read, int64_t(summary_.included.all.bytes_read));
}

TEST_F(DarshanTest, ProcessesAreRanksAndLaunchedOnesTheLaunchers) {
  SessionBytes launcher(10);
  launcher.add_file("/data/hosts", 10, 1, 10);
  SessionBytes third(13);
  third.header().rank = 2;
  third.header().ranks = 3;
  third.add_file("/data/a", 13, 1, 100);
  SessionBytes child(14);  // a child process of the same rank
  child.header().rank = 2;
  child.header().ranks = 3;
  child.add_file("/data/a", 14, 1, 1000);
  SessionBytes forged(15);
  forged.header().rank = UINT32_MAX - 1;
  forged.header().ranks = UINT32_MAX;
  forged.add_file("/data/a", 15, 1, 10000);
  const Log log = export_of({&launcher, &third, &child, &forged});
  EXPECT_EQ(Log::at<int64_t>(log.job(), 40), 5) << "three ranks, and two that have none";
  const std::string posix = log.module(1);
  std::map<int64_t, int64_t> read;
  for (size_t at = 0; at < posix.size(); at += kPosixBytes)
    read[Log::at<int64_t>(posix, at + 8)] += counter(std::string_view(posix).substr(at), 14);
  EXPECT_EQ(read, (std::map<int64_t, int64_t>{{2, 1100}, {3, 10}, {4, 10000}}));
  EXPECT_EQ(SessionRanks(session_).host(2), "testhost");
  EXPECT_EQ(SessionRanks(session_).host(0), "") << "nobody saw it";
}

TEST_F(DarshanTest, SegmentsStandByFileAndRankWritesFirst) {
  SessionBytes bytes(100);
  bytes.add_file("/data/a", 100, 2, 1000);
  add_call(bytes, "/data/a", PENSTOCK_CALL_READ, 1000, 1000, 3000);
  add_call(bytes, "/data/a", PENSTOCK_CALL_READ, 0, 1000, 2000);
  add_call(bytes, "/data/a", PENSTOCK_CALL_WRITE, UINT64_MAX, 5, 9000);
  add_call(bytes, "/data/a", PENSTOCK_CALL_STAT, 0, 0, 9500);
  add_call(bytes, "/data/a", PENSTOCK_CALL_READ, 0, 77, 9900, PENSTOCK_STDIO);
  const Log log = export_of({&bytes});
  EXPECT_EQ(counts_.calls, 3U);
  EXPECT_EQ(log.version(10), 1U);
  const std::string dxt = log.module(10);
  ASSERT_EQ(dxt.size(), 104 + 3 * 32U);
  EXPECT_EQ(names_of(log.names()).at(Log::at<uint64_t>(dxt, 0)), "/data/a");
  EXPECT_STREQ(dxt.c_str() + 24, "testhost");
  EXPECT_EQ(Log::at<int64_t>(dxt, 88), 1);
  EXPECT_EQ(Log::at<int64_t>(dxt, 96), 2);
  const auto segment = [&](size_t i) { return std::string_view(dxt).substr(104 + 32 * i, 32); };
  EXPECT_EQ(Log::at<int64_t>(segment(0), 0), -1) << "a write that has no offset";
  EXPECT_EQ(Log::at<int64_t>(segment(0), 8), 5);
  EXPECT_EQ(Log::at<int64_t>(segment(1), 0), 0) << "reads by time";
  EXPECT_EQ(Log::at<int64_t>(segment(2), 0), 1000);
  EXPECT_NEAR(Log::at<double>(segment(2), 16), 3e-6, 1e-9);
  EXPECT_NEAR(Log::at<double>(segment(2), 24), 3.5e-6, 1e-9);
}

TEST_F(DarshanTest, HeatmapsLoseNoByte) {
  SessionBytes bytes(100);
  penstock_counters counters = bytes.counters_of("/data/a", 100, 3, 333'333);
  counters.last_ticks = counters.last_read_ticks = 8'000'000'000;
  bytes.add(counters);
  bytes.add_file("/data/a", 100, 1, 12345, PENSTOCK_STDIO);
  SessionBytes other(101);
  other.add_file("/data/b", 101, 1, 777);
  const Log log = export_of({&bytes, &other});
  const std::string heat = log.module(15);
  const auto names = names_of(log.names());
  const auto bins = size_t(Log::at<int64_t>(heat, 24));
  ASSERT_LE(bins, 200U);
  ASSERT_GE(Log::at<double>(heat, 16) * double(bins), 10.0) << "the whole session";
  const size_t size = 48 + 16 * bins;
  ASSERT_EQ(heat.size(), 3 * size);
  std::map<std::pair<std::string, int64_t>, int64_t> read;
  size_t used = 0;
  for (size_t at = 0; at < heat.size(); at += size) {
    const auto record = std::string_view(heat).substr(at, size);
    ASSERT_EQ(Log::at<int64_t>(record, 24), int64_t(bins));
    auto& sum = read[{names.at(Log::at<uint64_t>(record, 0)), Log::at<int64_t>(record, 8)}];
    for (size_t i = 0; i < bins; ++i) {
      EXPECT_EQ(Log::at<int64_t>(record, 48 + 8 * i), 0) << "nothing was written";
      const auto bytes_read = Log::at<int64_t>(record, 48 + 8 * (bins + i));
      sum += bytes_read;
      used += at == 0 && bytes_read > 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(read.at({"heatmap:POSIX", 0}), 999'999);
  EXPECT_EQ(read.at({"heatmap:STDIO", 0}), 12345);
  EXPECT_EQ(read.at({"heatmap:POSIX", 1}), 777);
  EXPECT_NEAR(double(used) / double(bins), 0.7, 0.02) << "seven seconds of ten";
}

TEST_F(DarshanTest, NamesThatShareAKeyStayApartAndOddOnesAreText) {
  SessionBytes bytes(100);
  penstock_counters one = bytes.counters_of("/data/one", 100, 1, 1);
  penstock_counters two = one;
  two.name = bytes.add_name(one.file, "/data/t\nw\xffo");
  two.bytes_read = 2;
  penstock_counters unknown = one;
  unknown.file = 77;
  unknown.name = 0;
  unknown.bytes_read = 4;
  for (const penstock_counters& counters : {one, two, unknown}) bytes.add(counters);
  const Log log = export_of({&bytes});
  const auto names = names_of(log.names());
  const std::string posix = log.module(1);
  std::map<std::string, int64_t> read;
  for (size_t at = 0; at < posix.size(); at += kPosixBytes)
    read[names.at(Log::at<uint64_t>(posix, at))] = counter(std::string_view(posix).substr(at), 14);
  EXPECT_EQ(read,
            (std::map<std::string, int64_t>{{"/data/one", 1}, {"/data/t\\nw\\xffo", 2}, {"<no name>", 4}}));
}

TEST_F(DarshanTest, FiltersAndDropsAreSaid) {
  SessionBytes bytes(100);
  bytes.add_file("/data/a", 100, 1, 10);
  bytes.add_file("/other/b", 100, 1, 10);
  bytes.header().dropped_operations = 3;
  const Log log = export_of({&bytes}, {.include = {"/data/*"}, .exclude = {}});
  EXPECT_EQ(log.head<uint64_t>(24), (1U << 1U) | (1U << 9U)) << "incomplete: POSIX and STDIO";
  EXPECT_EQ(log.module(1).size(), kPosixBytes);
  EXPECT_EQ(log.module(9), "");
  EXPECT_EQ(names_of(log.names()).size(), 3U) << "a file and two heatmaps";
}

TEST_F(DarshanTest, WithoutAnyFileTheJobStands) {
  SessionBytes bytes(100);
  const Log log = export_of({&bytes});
  EXPECT_EQ(Log::at<int64_t>(log.job(), 40), 1);
  EXPECT_EQ(log.module(1) + log.module(9) + log.module(10) + log.module(15), "");
}

TEST(Darshan, APipeIsRefused) {
  SessionBytes bytes(100);
  std::vector<std::unique_ptr<ProcessFile>> process_files;
  process_files.push_back(ProcessFile::from_bytes(bytes.bytes()).value());
  const Session session = session_of(std::move(process_files));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  {
    Result<WholeFile> file = WholeFile::create("/proc/self/fd/" + std::to_string(ends[1]), "the log");
    ASSERT_TRUE(file.ok()) << file.error().message();
    const auto counts = export_darshan(session, FileSums(session), {}, *file);
    ASSERT_FALSE(counts.ok());
    EXPECT_EQ(counts.error().code, Errc::invalid_argument);
  }
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(ZlibStream, HoldsWhatItWasGivenHoweverItIsCut) {
  std::string text;
  for (size_t i = 0; i < 200'000; ++i) text += char(i * i >> 7U);
  for (const auto packing : {ZlibStream::Packing::smallest, ZlibStream::Packing::stored}) {
    for (const size_t piece : {size_t{1000}, size_t{65535}, text.size()}) {
      std::string packed;
      ZlibStream stream(
          [&](std::span<const std::byte> bytes) {
            packed += as_text(bytes);
            return success();
          },
          packing);
      for (int again = 0; again < 2; ++again) {
        packed.clear();
        for (size_t at = 0; at < text.size(); at += piece)
          ASSERT_TRUE(stream.add(std::as_bytes(std::span<const char>(text.substr(at, piece)))).ok());
        ASSERT_TRUE(stream.end().ok());
        if (packing == ZlibStream::Packing::stored) {
          EXPECT_EQ(content_of_stored_blocks(packed), text);
        }
        EXPECT_EQ(inflated(packed), text);
      }
      packed.clear();
      ASSERT_TRUE(stream.end().ok());
      EXPECT_EQ(inflated(packed), "");
    }
  }
}

}  // namespace
}  // namespace penstock
