// Reads what was written for TensorBoard, using only the protobuf wire format.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <vector>

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/checksums/tfrecord_framing.hpp"
#include "io_backends/testing/testing.hpp"
#include "profiling/exporters/session_export.hpp"
#include "profiling/exporters/xplane_file.hpp"
#include "profiling/session/session_testing.hpp"
#include "profiling/session/transfers.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

template <class T>
T number_at(std::string_view text, size_t offset = 0) {
  T value{};
  EXPECT_LE(offset + sizeof value, text.size());
  std::memcpy(&value, text.data() + offset, sizeof value);
  return value;
}

// The fields of a message by number: integers as eight bytes, everything else unchanged.
struct Message {
  explicit Message(std::string_view text) {
    while (!text.empty()) {
      const uint64_t tag = varint(text);
      const unsigned type = tag & 7U;
      size_t bytes = type == 1 ? 8 : type == 5 ? 4 : 0;
      std::string value;
      if (type == 0) {
        const uint64_t number = varint(text);
        value.assign(reinterpret_cast<const char*>(&number), sizeof number);
      } else {
        if (type == 2) bytes = varint(text);
        EXPECT_LE(bytes, text.size());
        value = text.substr(0, bytes);
        text.remove_prefix(std::min(bytes, text.size()));
      }
      fields[unsigned(tag >> 3U)].push_back(value);
    }
  }
  static uint64_t varint(std::string_view& text) {
    uint64_t value = 0;
    for (unsigned shift = 0; !text.empty() && shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(text.front());
      text.remove_prefix(1);
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    ADD_FAILURE() << "a number has no end";
    return 0;
  }
  bool has(unsigned field) const { return fields.contains(field); }
  const std::string& text(unsigned field) const { return fields.at(field).at(0); }
  Message message(unsigned field) const { return Message(text(field)); }
  uint64_t number(unsigned field) const { return has(field) ? number_at<uint64_t>(text(field)) : 0; }

  std::map<unsigned, std::vector<std::string>> fields;
};

std::vector<std::string> records_of(std::string_view text) {
  std::vector<std::string> records;
  while (!text.empty()) {
    const auto length = number_at<uint64_t>(text);
    const auto crc_of = [&](size_t from, size_t bytes) {
      return tfrecord_masked(crc32c_portable(std::as_bytes(std::span(text.substr(from, bytes)))));
    };
    EXPECT_EQ(number_at<uint32_t>(text, 8), crc_of(0, 8));
    EXPECT_EQ(number_at<uint32_t>(text, 12 + length), crc_of(12, length));
    records.emplace_back(text.substr(12, length));
    text.remove_prefix(16 + length);
  }
  return records;
}

class TensorBoardTest : public testing::Test {
 protected:
  void write(SessionBytes& bytes, const SessionFilter& filter = {}) {
    bytes.write(folder_.path());
    const fs::path paths[] = {folder_.path()};
    session_ = open_session(paths).value();
    const FileSums sums(session_);
    Result<WholeFile> events = WholeFile::create((folder_.path() / "events").string(), "events");
    Result<WholeFile> trace = WholeFile::create((folder_.path() / "trace").string(), "the trace");
    counts_ = export_tensorboard(session_, sums, filter, *events, &*trace).value();
    EXPECT_TRUE(events->publish().ok());
    EXPECT_TRUE(trace->publish().ok());
    const std::vector<std::string> records = records_of(text_of("events"));
    EXPECT_EQ(Message(records.at(0)).text(3), "brain.Event:2");
    for (size_t i = 1; i < records.size(); ++i) {
      const Message event(records[i]);
      const Message value = event.message(5).message(1);
      values_[value.text(1)].push_back({number_at<double>(event.text(1)), event.number(2), value});
    }
  }
  std::string text_of(const char* name) const {
    std::ostringstream text;
    text << std::ifstream(folder_.path() / name, std::ios::binary).rdbuf();
    return text.str();
  }
  double sum_of(const std::string& tag) const {
    double sum = 0;
    for (const Value& value : values_.at(tag)) sum += number_at<float>(value.message.text(2));
    return sum;
  }
  static penstock_segment call_of(std::string_view path, unsigned call, uint64_t length, uint64_t begin_ns,
                                  uint64_t ns) {
    return {.file = key_for_test(path),
            .offset = 0,
            .length = length,
            .begin_ticks = 1'000'000'000 + begin_ns,
            .end_ticks = 1'000'000'000 + begin_ns + ns,
            .thread = 100,
            .call = uint8_t(call),
            .layer = PENSTOCK_POSIX,
            .failed = 0};
  }

  struct Value {
    double wall_s;
    uint64_t step;
    Message message;
  };
  ScratchFolder folder_;
  Session session_;
  ExportCounts counts_;
  std::map<std::string, std::vector<Value>> values_;
};

TEST_F(TensorBoardTest, SeriesAddUpToWhatWasMoved) {
  SessionBytes bytes(100);
  penstock_counters counters = bytes.counters_of("/data/a", 100, 4, 1 << 20);
  counters.last_ticks = counters.last_read_ticks = 3'000'000'000;
  bytes.add(counters);
  write(bytes);
  const auto& read = values_.at("bandwidth_MiB_per_s/read");
  ASSERT_LE(read.size(), 300U);
  const double interval_s = double(read[0].step) / 1000;
  EXPECT_NEAR(interval_s * double(read.size()), 10, interval_s) << "the whole session";
  EXPECT_NEAR(sum_of("bandwidth_MiB_per_s/read") * interval_s, 4, 1e-5);
  EXPECT_NEAR(sum_of("operations_per_s/read") * interval_s, 4, 1e-5);
  EXPECT_NEAR(sum_of("operations_per_s/metadata") * interval_s, 2, 1e-5) << "an open and a close";
  EXPECT_FALSE(values_.contains("operations_per_s/write"));
  EXPECT_NEAR(read[0].wall_s, 1001 + interval_s, 1e-6);
  EXPECT_NEAR(number_at<float>(read[1].message.text(2)), 2, 0.1) << "four in two seconds";
  EXPECT_EQ(number_at<float>(read.back().message.text(2)), 0) << "nothing was read in the end";
  EXPECT_EQ(counts_.calls, 0U);
  EXPECT_NE(values_.at("summary/session")[0].message.text(8).find("not recorded individually"),
            std::string::npos);
}

TEST_F(TensorBoardTest, HistogramsHaveTheReportsBuckets) {
  SessionBytes bytes(100);
  penstock_counters counters = bytes.counters_of("/data/a", 100, 7, 1000);
  counters.read_sizes[0] = 0;
  counters.read_sizes[1] = 4;
  counters.read_sizes[3] = 3;
  bytes.add(counters);
  write(bytes);
  const Message histogram = values_.at("sizes/read").at(0).message.message(5);
  EXPECT_EQ(number_at<double>(histogram.text(1)), 100) << "none is smaller";
  EXPECT_EQ(number_at<double>(histogram.text(2)), 102400);
  EXPECT_EQ(number_at<double>(histogram.text(3)), 7);
  EXPECT_EQ(number_at<double>(histogram.text(4)), 7000);
  const std::string& ends = histogram.text(6);
  const std::string& counts = histogram.text(7);
  ASSERT_EQ(ends.size(), 3 * sizeof(double));
  ASSERT_EQ(counts.size(), ends.size());
  const double expected_ends[] = {1024, 10240, 102400};
  const double expected_counts[] = {4, 0, 3};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(number_at<double>(ends, 8 * i), expected_ends[i]);
    EXPECT_EQ(number_at<double>(counts, 8 * i), expected_counts[i]);
  }
  EXPECT_FALSE(values_.contains("sizes/write")) << "nothing was written";
  EXPECT_EQ(number_at<double>(values_.at("sizes/file").at(0).message.message(5).text(3)), 1);
}

TEST_F(TensorBoardTest, TextsAreTextWhateverFilesAreCalled) {
  SessionBytes bytes(100);
  bytes.add_file("/data/<img src=x>|a_b_\xff", 100, 2, 1000);
  write(bytes);
  const Message& value = values_.at("summary/files_most_bytes").at(0).message;
  EXPECT_EQ(value.message(9).message(1).text(1), "text");
  const Message tensor = value.message(8);
  EXPECT_EQ(tensor.number(1), 7U) << "a string";
  const std::string& markdown = tensor.text(8);
  EXPECT_NE(markdown.find("&lt;img src=x\\>\\|a\\_b\\_\\\\xff"), std::string::npos) << markdown;
  EXPECT_EQ(markdown.find('<'), std::string::npos);
}

TEST_F(TensorBoardTest, TheTraceHasALineForEachThreadAndFile) {
  SessionBytes bytes(100);
  bytes.add_file("/data/a", 100, 2, 1000);
  bytes.add_file("/data/b\xff", 100, 0, 0);
  bytes.add(call_of("/data/a", PENSTOCK_CALL_READ, 1000, 5000, 2000));
  bytes.add(call_of("/data/a", PENSTOCK_CALL_READ, 1000, 2000, 1000));
  bytes.add(call_of("/data/b\xff", PENSTOCK_CALL_STAT, 0, 9000, 500));
  bytes.add(penstock_span{1'000'001'000, 1'000'009'000, 3, 500, 1, 101, PENSTOCK_READ, 0, 0});
  write(bytes);
  EXPECT_EQ(counts_.calls, 3U);
  EXPECT_EQ(counts_.calls_left_out, 0U);
  EXPECT_NE(values_.at("summary/session")[0].message.text(8).find("Every call was recorded"), std::string::npos);
  const Message space(text_of("trace"));
  EXPECT_EQ(space.text(4), "testhost");
  ASSERT_EQ(space.fields.at(1).size(), 2U);
  std::map<std::string, std::vector<std::pair<uint64_t, uint64_t>>> lines;
  std::map<uint64_t, std::string> names;
  for (const std::string& text : space.fields.at(1)) {
    const Message plane(text);
    for (const std::string& entry : plane.fields.at(4))
      names[Message(entry).number(1)] = Message(entry).message(2).text(2);
    for (const std::string& line_text : plane.fields.at(3)) {
      const Message line(line_text);
      auto& events = lines[plane.text(2) + " " + line.text(2)];
      for (const std::string& event_text : line.fields.at(4)) {
        const Message event(event_text);
        events.emplace_back(event.number(2), event.number(3));
        EXPECT_TRUE(names.contains(event.number(1)));
      }
    }
  }
  using Events = std::vector<std::pair<uint64_t, uint64_t>>;
  const Events reads{{2'000'000, 1'000'000}, {5'000'000, 2'000'000}};
  EXPECT_EQ(lines.at("/device:CUSTOM:files /data/a"), reads) << "in picoseconds, by time";
  EXPECT_EQ(lines.at("/device:CUSTOM:files /data/b\\xff"), (Events{{9'000'000, 500'000}}));
  EXPECT_EQ(lines.at("/host:CPU program (100) thread 100").size(), 3U);
  EXPECT_EQ(lines.at("/host:CPU program (100) thread 101"), (Events{{1'000'000, 8'000'000}})) << "a span";
  EXPECT_EQ(lines.size(), 4U);
}

TEST_F(TensorBoardTest, TheLongestCallsAreKept) {
  SessionBytes bytes(100);
  bytes.add_file("/data/a", 100, 2, 1000);
  for (uint64_t i = 0; i < 10; ++i)
    bytes.add(call_of("/data/a", PENSTOCK_CALL_READ, 1, 1000 * i, 100 + (i % 3)));
  bytes.write(folder_.path());
  const fs::path paths[] = {folder_.path()};
  const Session session = open_session(paths).value();
  Result<WholeFile> file = WholeFile::create((folder_.path() / "trace").string(), "the trace");
  const NamedFiles files(session, FileSums(session), {});
  ExportCounts counts;
  ASSERT_TRUE(write_xplane(session, files, 1'001'000'000'000, 4, *file, counts).ok());
  EXPECT_EQ(counts.calls, 4U);
  EXPECT_EQ(counts.calls_left_out, 6U);
  ASSERT_TRUE(file->publish().ok());
  const Message line = Message(Message(text_of("trace")).text(1)).message(3);
  std::multiset<uint64_t> lengths;
  for (const std::string& event : line.fields.at(4)) lengths.insert(Message(event).number(3));
  EXPECT_EQ(lengths.count(102'000), 3U) << "all of the longest";
  EXPECT_EQ(lengths.count(101'000), 1U);
}

TEST(Transfers, CallsWhereAllWereKeptElseCounters) {
  SessionBytes bytes(100);
  bytes.add_file("/data/a", 100, 2, 1000);
  bytes.add_file("/data/a", 100, 2, 1000, PENSTOCK_MPIIO);
  bytes.add_file("/other/b", 100, 1, 50);
  bytes.add({.file = key_for_test("/data/a"),
             .offset = 0,
             .length = 999,
             .begin_ticks = 1'000'005'000,
             .end_ticks = 1'000'005'500,
             .thread = 100,
             .call = PENSTOCK_CALL_READ,
             .layer = PENSTOCK_POSIX,
             .failed = 0});
  std::vector<std::unique_ptr<ProcessFile>> process_files;
  process_files.push_back(ProcessFile::from_bytes(bytes.bytes()).value());
  const Session session = session_of(std::move(process_files));
  const FileSums sums(session);
  for (const bool every_call : {false, true}) {
    uint64_t read = 0;
    std::vector<double> series;
    const TransferSeries over_time(1'001'000'000'000, 0.001, 10);
    each_transfer(session, sums, {.include = {"/data/*"}, .exclude = {}}, every_call,
                  [&](const Transfer& transfer) {
                    if (transfer.kind != TransferKind::read) return;
                    read += transfer.bytes;
                    EXPECT_LE(transfer.begin_ns, transfer.end_ns);
                    over_time.add(series, transfer, transfer.bytes);
                  });
    EXPECT_EQ(read, every_call ? 999U : 2000U);
    EXPECT_NEAR(std::accumulate(series.begin(), series.end(), 0.0), double(read), 1e-6)
        << "what ends behind the last interval is in it";
  }
}

}  // namespace
}  // namespace penstock
