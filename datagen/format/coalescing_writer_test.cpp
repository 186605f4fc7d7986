#include "datagen/format/coalescing_writer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "datagen/format/object_window.hpp"
#include "datagen/objects/scripted_backend.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/random.hpp"

namespace penstock {
namespace {

// What a RecordingWriter has received: the bytes, and the addresses from which they came.
struct ReceivedWrites {
  std::vector<std::byte> bytes;
  std::vector<size_t> calls;              // number of bytes of each call
  std::vector<const std::byte*> sources;  // address of each piece
  bool published = false;
};

class RecordingWriter final : public Writer {
 public:
  explicit RecordingWriter(ReceivedWrites& received) : received_(received) {}
  Result<void> append(std::span<const std::byte> bytes) override { return append({&bytes, 1}); }
  Result<void> append(std::span<const std::span<const std::byte>> pieces) override {
    size_t sum = 0;
    for (const auto piece : pieces) {
      received_.bytes.insert(received_.bytes.end(), piece.begin(), piece.end());
      received_.sources.push_back(piece.data());
      sum += piece.size();
    }
    received_.calls.push_back(sum);
    return success();
  }
  Result<void> write_at(uint64_t offset, std::span<const std::byte> bytes) override {
    std::copy(bytes.begin(), bytes.end(), received_.bytes.begin() + ptrdiff_t(offset));
    return success();
  }
  Result<void> publish(Durability /*wanted*/, IfExists /*if_exists*/) override {
    received_.published = true;
    return success();
  }

 private:
  ReceivedWrites& received_;
};

std::vector<std::byte> some_bytes(size_t count, uint64_t stream) {
  const RandomStream random(3, stream);
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(random.bits(i));
  return bytes;
}

TEST(CoalescingWriter, SmallPiecesAreWrittenTogetherInOrder) {
  ReceivedWrites received;
  CoalescingWriter writer(std::make_unique<RecordingWriter>(received));
  std::vector<std::byte> all;
  for (uint64_t i = 0; i < 5000; ++i) {
    EXPECT_EQ(writer.offset(), all.size());
    std::vector<std::byte> bytes = some_bytes(i % 1000, i);
    all.insert(all.end(), bytes.begin(), bytes.end());
    const std::array pieces{std::span<const std::byte>(bytes).first(bytes.size() / 2),
                            std::span<const std::byte>(bytes).subspan(bytes.size() / 2)};
    ASSERT_TRUE(writer.append({.pieces = pieces, .bytes = bytes.size()}).ok());
    bytes.assign(bytes.size(), std::byte{});  // append() must not use the bytes after it has returned
  }
  EXPECT_FALSE(received.published);
  const PublishedObject object = writer.publish(Durability::visible).value();
  EXPECT_EQ(object.bytes, all.size());
  EXPECT_EQ(object.crc32c, crc32c(all));
  EXPECT_TRUE(received.published);
  EXPECT_EQ(received.bytes, all);
  EXPECT_EQ(received.calls.size(), all.size() / CoalescingWriter::kBatchBytes + 1);
}

TEST(CoalescingWriter, LargePiecesAreNotCopiedAndSmallOnesAreWrittenWithThem) {
  ReceivedWrites received;
  CoalescingWriter writer(std::make_unique<RecordingWriter>(received));
  const std::vector<std::byte> large = some_bytes(CoalescingWriter::kNotCopiedBytes, 1);
  const std::span<const std::byte> half = std::span<const std::byte>(large).first(large.size() / 2);
  const std::array pieces{half, std::span<const std::byte>(large).subspan(half.size())};
  ASSERT_TRUE(writer.append("head").ok());
  ASSERT_TRUE(writer.append({.pieces = pieces, .bytes = large.size(), .crc32c = crc32c(large)}).ok());
  ASSERT_TRUE(writer.append("tail").ok());
  EXPECT_EQ(received.calls, (std::vector<size_t>{large.size()})) << "whole pages";
  ASSERT_EQ(received.sources.size(), 3U);
  EXPECT_EQ(received.sources[1], pieces[0].data());
  EXPECT_EQ(received.sources[2], pieces[1].data());
  const PublishedObject object = writer.publish(Durability::visible).value();
  EXPECT_EQ(object.bytes, large.size() + 8);
  EXPECT_EQ(object.crc32c, crc32c(received.bytes));
  EXPECT_EQ(received.calls.back(), 8U);
}

TEST(CoalescingWriter, LargePiecesEndWithAPage) {
  ReceivedWrites received;
  CoalescingWriter writer(std::make_unique<RecordingWriter>(received));
  std::vector<std::byte> all;
  for (uint64_t i = 0; i < 100; ++i) {
    std::vector<std::byte> bytes = some_bytes(CoalescingWriter::kNotCopiedBytes + 997 * i, i);
    all.insert(all.end(), bytes.begin(), bytes.end());
    // The bytes after the last whole page come in several pieces, one of which is empty.
    const std::span<const std::byte> whole(bytes);
    const std::array pieces{whole.first(bytes.size() - 3000), whole.first(0), whole.last(3000).first(2900),
                            whole.last(100)};
    ASSERT_TRUE(writer.append({.pieces = pieces, .bytes = bytes.size()}).ok());
    bytes.assign(bytes.size(), std::byte{});
    EXPECT_EQ(received.bytes.size() % CoalescingWriter::kPageBytes, 0U);
    EXPECT_LT(all.size() - received.bytes.size(), CoalescingWriter::kPageBytes);
  }
  const PublishedObject object = writer.publish(Durability::visible).value();
  EXPECT_EQ(object.bytes, all.size());
  EXPECT_EQ(object.crc32c, crc32c(all));
  EXPECT_EQ(received.bytes, all);
}

TEST(CoalescingWriter, APlaceholderIsReplacedAndTheChecksumIsRight) {
  for (const size_t bytes_after : {size_t{0}, size_t{1}, CoalescingWriter::kNotCopiedBytes}) {
    ReceivedWrites received;
    CoalescingWriter writer(std::make_unique<RecordingWriter>(received));
    const std::vector<std::byte> tail = some_bytes(bytes_after, 1);
    ASSERT_TRUE(writer.append("head").ok());
    ASSERT_TRUE(writer.append_placeholder(some_bytes(100, 2)).ok());
    ASSERT_TRUE(writer.append(tail).ok());
    EXPECT_EQ(writer.replace_placeholder(some_bytes(99, 3)).error().code, Errc::internal);
    ASSERT_TRUE(writer.replace_placeholder(some_bytes(100, 3)).ok());
    const PublishedObject object = writer.publish(Durability::visible).value();
    EXPECT_EQ(object.bytes, 104 + bytes_after);
    ASSERT_EQ(received.bytes.size(), object.bytes);
    EXPECT_EQ(object.crc32c, crc32c(received.bytes)) << bytes_after;
    std::vector<std::byte> placeholder(received.bytes.begin() + 4, received.bytes.begin() + 104);
    EXPECT_EQ(placeholder, some_bytes(100, 3));
  }
}

TEST(ObjectWindow, ReadsNearOffsetsTogetherAndFarOffsetsInSmallPieces) {
  constexpr size_t kBytes = 16 << 20;
  ScriptedBackend backend;
  const std::vector<std::byte> content = some_bytes(kBytes, 9);
  backend.put("object", content);
  const Entry entry{.name = "object", .bytes = kBytes};
  {
    auto window = ObjectWindow::open(backend, entry).value();
    for (size_t at = 0; at + 12 <= kBytes; at += 5000)
      ASSERT_EQ(window.at(at, 12).value().front(), content[at]);
    EXPECT_LE(backend.reads().size(), 18U);
    EXPECT_LE(backend.moved_bytes().read, kBytes + 18 * kBufferAlignment);
  }
  const uint64_t before = backend.moved_bytes().read;
  auto window = ObjectWindow::open(backend, entry).value();
  for (size_t at = 0; at + 12 <= kBytes; at += 4 << 20)
    ASSERT_EQ(window.at(at, 12).value().front(), content[at]);
  EXPECT_LE(backend.moved_bytes().read - before, ObjectWindow::kWindowBytes + (uint64_t{192} << 10U));
}

TEST(ObjectWindow, SaysWhereAnObjectEndsTooEarly) {
  ScriptedBackend backend;
  backend.put("object", some_bytes(100, 1));
  auto window = ObjectWindow::open(backend, {.name = "object", .bytes = 100}).value();
  EXPECT_EQ(window.at(90, 10).value().size(), 10U);
  EXPECT_EQ(window.at(100, 0).value().size(), 0U);
  for (const auto& [offset, length] :
       std::vector<std::pair<uint64_t, size_t>>{{91, 10}, {101, 0}, {UINT64_MAX, 1}, {50, SIZE_MAX}}) {
    const auto bytes = window.at(offset, length);
    ASSERT_FALSE(bytes.ok()) << offset;
    EXPECT_EQ(bytes.error().code, Errc::truncated);
    EXPECT_NE(bytes.error().what.find("'object' at byte " + std::to_string(offset)), std::string::npos)
        << bytes.error().what;
  }
}

}  // namespace
}  // namespace penstock
