// Tests samples that are stored in chunks or in compressed streams: what scans find of them, and reading them
// by their forms.
#include "datagen/format/unpacked_window.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "datagen/codec/gzip.hpp"
#include "datagen/format/byte_order.hpp"
#include "datagen/format/form_reader.hpp"
#include "datagen/format/format_testing.hpp"
#include "datagen/format/npy_header.hpp"
#include "io_backends/core/checksums/crc32.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/checksums/tfrecord_framing.hpp"
#include "io_backends/core/random.hpp"

namespace penstock {
namespace {

using Bytes = std::vector<std::byte>;
using Chunk = ChunkedArray::Chunk;

void append(Bytes& out, std::span<const std::byte> more) {
  out.insert(out.end(), more.begin(), more.end());
}

// Bytes that compress to about half.
Bytes random_bytes(size_t count, uint64_t seed) {
  const RandomStream random(seed, "unpacked");
  Bytes out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<std::byte>(random.bits(i) & 0x0fU);
  return out;
}

Bytes gzip(std::span<const std::byte> bytes) {
  GzipMaker maker = GzipMaker::start().value();
  Bytes out;
  EXPECT_OK(maker.make({&bytes, 1}, [&](std::span<const std::byte> made) {
    append(out, made);
    return success();
  }));
  return out;
}

struct Scanned {
  std::string label;
  std::string codec;
  Placement placement;
  SampleForm form;
  SampleExtent extent;
};

class UnpackedScan : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!gzip_available().ok()) GTEST_SKIP() << gzip_available().error().what;
  }

  Result<std::vector<Scanned>> scan(std::string_view format, std::string_view name, const Bytes& object) {
    const Tier tier = open_tier("mem:unpacked", kNoNamedTiers).value();
    PENSTOCK_ASSIGN(const auto writer, tier.backend->create(name));
    PENSTOCK_TRY(writer->append(object));
    PENSTOCK_TRY(writer->publish(Durability::visible));
    std::vector<Scanned> found;
    PENSTOCK_TRY(format_of(format)->scan(*tier.backend, {.name = std::string(name), .bytes = object.size()},
                                         [&](const Format::FoundSample& one) {
                                           found.push_back({std::string(one.label_name),
                                                            std::string(one.codec), one.placement, one.form,
                                                            one.extent});
                                         }));
    return found;
  }

  // Reads a sample from no more than the stored bytes that its placement names.
  static Result<Bytes> read(const Bytes& object, const Scanned& sample, FormReader& reader) {
    MemoryWindow stored{std::span(object).subspan(sample.placement.offset, sample.placement.length),
                        sample.placement.offset};
    PENSTOCK_ASSIGN(const auto bytes, reader.read(stored, sample.extent));
    return Bytes(bytes.begin(), bytes.end());
  }

  static void expect_samples(const Bytes& object, const std::vector<Scanned>& found,
                             const std::vector<Bytes>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    FormReader reader;
    SampleForm in_use;
    // In order, and then each after one that is far away.
    for (size_t i = 0; i < 2 * found.size(); ++i) {
      const size_t n = i < found.size() ? i : i * 7 % found.size();
      ASSERT_TRUE(found[n].form);
      if (found[n].form != in_use) {
        auto form = decode_form(*found[n].form);
        ASSERT_TRUE(form);
        EXPECT_LE(found[n].extent.offset + found[n].extent.bytes, form_bytes(*form));
        ASSERT_OK(reader.use(*std::move(form)));
        in_use = found[n].form;
      }
      const auto bytes = read(object, found[n], reader);
      ASSERT_OK(bytes);
      EXPECT_EQ(*bytes, expected[n]) << n;
    }
  }
};

Bytes record(std::span<const std::byte> payload) {
  Bytes out;
  append(out, tfrecord_header(payload.size()));
  append(out, payload);
  append(out, tfrecord_footer(crc32c(payload)));
  return out;
}

// Records that are no tf.Example; a record is one sample then.
struct Records {
  std::vector<Bytes> payloads;
  Bytes plain;
};

Records records(size_t count, size_t bytes) {
  Records out;
  for (size_t i = 0; i < count; ++i) {
    out.payloads.push_back(random_bytes(bytes + i * 13 % 97, i));
    append(out.plain, record(out.payloads.back()));
  }
  return out;
}

TEST_F(UnpackedScan, RecordsOfOneGzipStream) {
  for (const auto& [count, bytes] : {std::pair<size_t, size_t>{200, 40}, {40, 300000}, {3, 5 << 20}}) {
    const Records written = records(count, bytes);
    const Bytes object = gzip(written.plain);
    const auto found = scan("tfrecord", "a.tfrecord.gz", object);
    ASSERT_OK(found);
    expect_samples(object, *found, written.payloads);
    EXPECT_EQ(found->front().codec, "raw");
    EXPECT_EQ(found->front().form, found->back().form);
  }
}

TEST_F(UnpackedScan, AReadBeginsNearTheSample) {
  const Records written = records(100, 200000);
  const Bytes object = gzip(written.plain);
  const auto found = scan("tfrecord", "a.tfrecord.gz", object);
  ASSERT_OK(found);
  const StoredForm form = decode_form(*found->front().form).value();
  const auto& stream = std::get<CompressedStream>(form);
  EXPECT_GE(stream.points.size(), 7U);
  EXPECT_LE(stream.points.size(), 10U);
  for (const Scanned& sample : *found) EXPECT_LT(sample.placement.length, object.size() / 5);
}

TEST_F(UnpackedScan, RecordsMayCrossMembers) {
  const Records written = records(50, 30000);
  Bytes object;
  for (std::span<const std::byte> rest(written.plain); !rest.empty();) {
    const auto part = rest.first(std::min<size_t>(rest.size(), 65280));
    append(object, gzip(part));
    rest = rest.subspan(part.size());
  }
  const auto found = scan("tfrecord", "a.tfrecord.gz", object);
  ASSERT_OK(found);
  expect_samples(object, *found, written.payloads);
}

TEST_F(UnpackedScan, RecordsOfAZlibStream) {
  // A stream of zlib with stored blocks: two header bytes, blocks of at most 65535 bytes, Adler-32.
  const Records written = records(30, 9000);
  Bytes object{std::byte{0x78}, std::byte{0x01}};
  for (std::span<const std::byte> rest(written.plain); !rest.empty();) {
    const auto part = rest.first(std::min<size_t>(rest.size(), 50000));
    rest = rest.subspan(part.size());
    const auto length = uint16_t(part.size());
    object.push_back(rest.empty() ? std::byte{1} : std::byte{0});
    for (const uint16_t number : {length, uint16_t(~length)})
      for (unsigned shift = 0; shift < 16; shift += 8)
        object.push_back(static_cast<std::byte>(number >> shift));
    append(object, part);
  }
  uint32_t a = 1;
  uint32_t b = 0;
  for (const std::byte byte : written.plain) {
    a = (a + uint32_t(byte)) % 65521;
    b = (b + a) % 65521;
  }
  for (unsigned shift = 0; shift < 32; shift += 8)
    object.push_back(static_cast<std::byte>((b << 16U | a) >> (24 - shift)));
  const auto found = scan("tfrecord", "a.tfrecord", object);
  ASSERT_OK(found);
  expect_samples(object, *found, written.payloads);
  object.back() ^= std::byte{1};
  EXPECT_ERRC(Errc::corrupt, scan("tfrecord", "a.tfrecord", object));
}

TEST_F(UnpackedScan, BytesThatOnlyBeginAsZlibAreNoStream) {
  Bytes object = random_bytes(500, 9);
  object[0] = std::byte{0x78};
  object[1] = std::byte{0x9c};
  EXPECT_ERRC(Errc::corrupt, scan("tfrecord", "a.tfrecord", object), "not a TFRecord");
  // zlib's stream of no bytes
  const Bytes empty{std::byte{0x78}, std::byte{0x9c}, std::byte{3}, std::byte{0},
                    std::byte{0},    std::byte{0},    std::byte{0}, std::byte{1}};
  const auto none = scan("tfrecord", "a.tfrecord", empty);
  ASSERT_OK(none);
  EXPECT_TRUE(none->empty());
}

TEST_F(UnpackedScan, DamageOfAStreamIsFound) {
  const Records written = records(20, 400);
  const Bytes whole = gzip(written.plain);
  for (size_t cut = 20; cut < whole.size(); cut += 37)
    EXPECT_FALSE(
        scan("tfrecord", "a.tfrecord.gz", Bytes(whole.begin(), whole.begin() + ptrdiff_t(cut))).ok());
  for (size_t bit = 8 * 10; bit < 8 * whole.size(); bit += 131) {
    Bytes bytes = whole;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_FALSE(scan("tfrecord", "a.tfrecord.gz", bytes).ok()) << bit;
  }
}

// Makes a ZIP archive of compressed members. The deflate stream of a gzip member is between its header of 10
// bytes and its trailer of 8.
Bytes zip_of(const std::vector<std::pair<std::string, Bytes>>& files) {
  Bytes out;
  Bytes directory;
  const auto put = [](Bytes& to, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) to.push_back(static_cast<std::byte>(value >> (8 * i)));
  };
  for (const std::pair<std::string, Bytes>& file : files) {
    const std::string& name = file.first;
    const Bytes& content = file.second;
    const Bytes member = gzip(content);
    const auto deflated = std::span(member).subspan(10, member.size() - 18);
    const size_t begin = out.size();
    const auto put_common = [&](Bytes& to) {
      put(to, 20, 2);
      put(to, 0, 2);
      put(to, 8, 2);
      put(to, 0, 4);
      put(to, crc32(content), 4);
      put(to, deflated.size(), 4);
      put(to, content.size(), 4);
      put(to, name.size(), 2);
      put(to, 0, 2);
    };
    put(out, 0x04034b50, 4);
    put_common(out);
    append(out, std::as_bytes(std::span(name)));
    append(out, deflated);
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);
    put_common(directory);
    put(directory, 0, 6);
    put(directory, 0, 4);
    put(directory, begin, 4);
    append(directory, std::as_bytes(std::span(name)));
  }
  const size_t begin = out.size();
  append(out, directory);
  put(out, 0x06054b50, 4);
  put(out, 0, 4);
  put(out, files.size(), 2);
  put(out, files.size(), 2);
  put(out, directory.size(), 4);
  put(out, begin, 4);
  put(out, 0, 2);
  return out;
}

Bytes npy_of(Element element, const std::vector<uint64_t>& shape, std::span<const std::byte> bytes) {
  Bytes out = npy_header(element, shape);
  append(out, bytes);
  return out;
}

TEST_F(UnpackedScan, RowsOfACompressedArchive) {
  const Bytes pixels = random_bytes(30 * 70000, 5);
  Bytes labels;
  for (uint8_t i = 0; i < 30; ++i) labels.push_back(static_cast<std::byte>(i % 4));
  const Bytes object = zip_of(
      {{"y.npy", npy_of(Element::u8, {30}, labels)}, {"x.npy", npy_of(Element::u8, {30, 700, 100}, pixels)}});
  const auto found = scan("npz", "a.npz", object);
  ASSERT_OK(found);
  std::vector<Bytes> expected;
  for (size_t i = 0; i < 30; ++i)
    expected.emplace_back(pixels.begin() + ptrdiff_t(70000 * i), pixels.begin() + ptrdiff_t(70000 * (i + 1)));
  expect_samples(object, *found, expected);
  EXPECT_EQ((*found)[7].label, "3");
}

TEST_F(UnpackedScan, EachArrayOfACompressedArchiveHasAForm) {
  std::vector<std::pair<std::string, Bytes>> files;
  std::vector<Bytes> expected;
  for (size_t i = 0; i < 12; ++i) {
    expected.push_back(random_bytes(6000, i));
    files.emplace_back("arr_" + std::to_string(i) + ".npy", npy_of(Element::u8, {60, 100}, expected.back()));
  }
  const Bytes object = zip_of(files);
  const auto found = scan("npz", "a.npz", object);
  ASSERT_OK(found);
  expect_samples(object, *found, expected);
  EXPECT_NE(found->front().form, found->back().form);
}

TEST_F(UnpackedScan, DamageOfACompressedArchiveIsFound) {
  const Bytes pixels = random_bytes(4000, 5);
  const Bytes whole = zip_of({{"x.npy", npy_of(Element::u8, {4, 1000}, pixels)}});
  for (size_t bit = 8 * 40; bit < 8 * (whole.size() - 80); bit += 11) {
    Bytes bytes = whole;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_FALSE(scan("npz", "a.npz", bytes).ok()) << bit;
  }
}

// An array in chunks without filters, whose bytes are those of an array in one piece.
struct Cut {
  ChunkedArray array;
  std::vector<Chunk> chunks;
  Bytes object;
  Bytes plain;
};

std::unique_ptr<Cut> cut(std::vector<uint64_t> shape, std::vector<uint64_t> chunk_shape,
                         uint64_t item_bytes) {
  auto out = std::make_unique<Cut>();
  out->array = {.item_bytes = item_bytes, .shape = std::move(shape), .chunk_shape = std::move(chunk_shape)};
  const ChunkedArray& array = out->array;
  out->plain = random_bytes(array.bytes(), 3);
  std::vector<uint64_t> grid;
  uint64_t count = 1;
  for (size_t d = 0; d < array.shape.size(); ++d) {
    grid.push_back(array.grid(d));
    count *= grid.back();
  }
  out->chunks.resize(count);
  // Chunks are stored in the reverse of their order.
  for (uint64_t number = count; number-- > 0;) {
    out->chunks[number] = Chunk::make(out->object.size(), array.chunk_bytes(), 0);
    for (uint64_t item = 0; item < array.chunk_bytes() / item_bytes; ++item) {
      uint64_t rest_of_number = number;
      uint64_t rest_of_item = item;
      uint64_t at = 0;
      uint64_t step = 1;
      bool is_inside = true;
      for (size_t d = array.shape.size(); d-- > 0;) {
        const uint64_t index =
            rest_of_number % grid[d] * array.chunk_shape[d] + rest_of_item % array.chunk_shape[d];
        rest_of_number /= grid[d];
        rest_of_item /= array.chunk_shape[d];
        is_inside = is_inside && index < array.shape[d];
        at += index * step;
        step *= array.shape[d];
      }
      for (uint64_t b = 0; b < item_bytes; ++b)
        out->object.push_back(is_inside ? out->plain[at * item_bytes + b] : std::byte{0xee});
    }
  }
  out->array.chunks = out->chunks;
  return out;
}

TEST(FormReader, PutsRowsTogether) {
  using Sides = std::vector<uint64_t>;
  struct Case {
    Sides shape;
    Sides chunk_shape;
    uint64_t item_bytes;
  };
  for (const Case& one : {Case{{7}, {3}, 4},
                          {{10, 6}, {4, 6}, 1},
                          {{10, 6}, {3, 4}, 2},
                          {{5, 4, 6}, {2, 4, 6}, 1},
                          {{5, 4, 6}, {2, 3, 6}, 8},
                          {{5, 4, 6}, {2, 3, 4}, 1},
                          {{5, 4, 6}, {5, 4, 1}, 2},
                          {{3, 2, 5, 3}, {2, 2, 2, 3}, 4},
                          {{1, 1, 9}, {4, 4, 4}, 1}}) {
    const auto made = cut(one.shape, one.chunk_shape, one.item_bytes);
    const auto words = encode_form(made->array);
    FormReader reader;
    ASSERT_OK(reader.use(decode_form(words).value()));
    const uint64_t row_bytes = made->array.bytes() / one.shape.front();
    for (uint64_t i = 0; i < 2 * one.shape.front(); ++i) {
      const SampleExtent row{i * 3 % one.shape.front() * row_bytes, row_bytes};
      const Extent range = stored_range(made->array, row);
      MemoryWindow stored{std::span(made->object).subspan(range.offset, range.length), range.offset};
      const auto bytes = reader.read(stored, row);
      ASSERT_OK(bytes);
      EXPECT_TRUE(std::ranges::equal(*bytes, std::span(made->plain).subspan(row.offset, row.bytes)));
    }
    MemoryWindow all(made->object);
    const auto bytes = reader.read(all, {0, made->array.bytes()});
    ASSERT_OK(bytes);
    EXPECT_TRUE(std::ranges::equal(*bytes, made->plain));
    const auto odd = reader.read(all, {1, made->array.bytes() - 2});
    ASSERT_OK(odd);
    EXPECT_TRUE(std::ranges::equal(*odd, std::span(made->plain).subspan(1, made->plain.size() - 2)));
  }
}

TEST(FormReader, ACheckUsesNothingThatWasReadBefore) {
  const auto made = cut({10, 6}, {5, 4}, 1);
  ManifestBuilder builder(ManifestFacts{});
  builder.add_object("a", made->object.size());
  const uint32_t form = builder.add_form(encode_form(made->array));
  for (uint64_t i = 0; i < 10; ++i) {
    const Extent range = stored_range(made->array, {6 * i, 6});
    builder.add_sample({.offset = range.offset, .length = range.length, .form = form}, {6 * i, 6});
  }
  const Manifest manifest = Manifest::from_bytes(builder.finish().value()).value();
  SampleUnpacker unpacker(manifest);
  Bytes object = made->object;
  const auto stored = [&](uint64_t sample) {
    const SampleEntry& entry = manifest.sample(sample);
    return std::span<const std::byte>(object).subspan(entry.offset, entry.length);
  };
  const uint32_t right = unpacker.crc32c_of(1, stored(1)).value();
  EXPECT_EQ(right, crc32c(std::span(made->plain).subspan(6, 6)));
  // Sample 1 is in the same chunks as sample 0, which is unpacked before the object changes.
  ASSERT_OK(unpacker.open(0, stored(0)));
  for (std::byte& byte : object) byte ^= std::byte{1};
  EXPECT_NE(unpacker.crc32c_of(1, stored(1)).value(), right);
}

TEST(FormReader, TwoCompressingFiltersMayMakeMoreThanOne) {
  // In the format of LZF: one zero, and 4,000 references of 264 bytes to the byte before. It repeats itself
  // every three bytes, so that it is compressed a second time in the same way.
  Bytes inner{std::byte{0}, std::byte{0}};
  const auto add_reference = [](Bytes& out, uint8_t length_minus_9, uint8_t distance_minus_1) {
    out.insert(out.end(), {std::byte{0xe0}, std::byte{length_minus_9}, std::byte{distance_minus_1}});
  };
  for (int i = 0; i < 4000; ++i) add_reference(inner, 255, 0);
  Bytes outer{std::byte{4}};
  append(outer, std::span(inner).first(5));
  for (size_t left = inner.size() - 5; left > 0;) {
    const size_t length = std::min<size_t>(left, 264);
    add_reference(outer, uint8_t(length - 9), 2);
    left -= length;
  }
  constexpr uint64_t kBytes = 1 + 4000 * 264;
  ASSERT_GT(kBytes / outer.size(), kMostGzipInflation);
  const std::vector<Chunk> chunks{Chunk::make(0, outer.size(), 0)};
  const auto words = encode_form(ChunkedArray{.shape = {kBytes},
                                              .chunk_shape = {kBytes},
                                              .filters = {{ChunkFilter::kLzf, {}}, {ChunkFilter::kLzf, {}}},
                                              .chunks = chunks});
  FormReader reader;
  ASSERT_OK(reader.use(decode_form(words).value()));
  MemoryWindow stored(outer);
  const auto bytes = reader.read(stored, {0, kBytes});
  ASSERT_OK(bytes);
  EXPECT_TRUE(std::all_of(bytes->begin(), bytes->end(), [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(FormReader, MissingBytesAreErrors) {
  const auto made = cut({10, 6}, {3, 4}, 2);
  FormReader reader;
  const auto words = encode_form(made->array);
  ASSERT_OK(reader.use(decode_form(words).value()));
  const SampleExtent row{12, 12};
  const Extent range = stored_range(made->array, row);
  for (uint64_t bytes = 0; bytes < range.length; ++bytes) {
    MemoryWindow stored{std::span(made->object).subspan(range.offset, bytes), range.offset};
    EXPECT_ERRC(Errc::truncated, reader.read(stored, row));
  }
}

TEST(FormReader, ClaimsThatNoBytesCanHoldAreErrors) {
  const std::vector<Chunk> chunks{Chunk::make(0, 10, 0)};
  FormReader reader;
  const auto words = encode_form(ChunkedArray{.item_bytes = 1,
                                              .shape = {uint64_t{1} << 31},
                                              .chunk_shape = {uint64_t{1} << 31},
                                              .filters = {},
                                              .chunks = chunks});
  ASSERT_OK(reader.use(decode_form(words).value()));
  const Bytes object(10);
  MemoryWindow stored(object);
  EXPECT_ERRC(Errc::corrupt, reader.read(stored, {0, uint64_t{1} << 31}));
  EXPECT_ERRC(Errc::corrupt, reader.read(stored, {0, 1}));
}

}  // namespace
}  // namespace penstock
