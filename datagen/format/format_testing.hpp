// For tests only: writes objects with any fields in a given format and reads them back. Also checks that
// damage gives an error or does no harm.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/format/format.hpp"
#include "datagen/format/scan_fixture.hpp"
#include "io_backends/decorators/wrapper.hpp"
#include "io_backends/testing/testing.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// A back end that can only append.
class AppendingBackend final : public BackendWrapper {
 public:
  explicit AppendingBackend(std::unique_ptr<Backend> inner)
      : BackendWrapper(std::move(inner)), caps_(BackendWrapper::caps()) {
    caps_.write_at = false;
  }
  const Caps& caps() const override { return caps_; }

 private:
  Caps caps_;
};

inline std::unique_ptr<Format> format_of(std::string_view name, const std::vector<OptionWord>& words = {}) {
  const FormatInfo* const info = format_registry().find(name).value();
  return info->make(Options::parse(info->options, words, "format option").value()).value();
}

// One sample: a label, and the bytes of each field.
struct TestSample {
  uint32_t label = 0;
  std::vector<std::vector<std::byte>> fields;
};

inline std::vector<TestSample> test_samples(std::span<const Field> fields, size_t count) {
  std::vector<TestSample> samples(count);
  for (size_t i = 0; i < count; ++i) {
    samples[i].label = uint32_t(i * 7 % 10);
    for (size_t f = 0; f < fields.size(); ++f) {
      const size_t bytes =
          fields[f].varies ? i * 13 % 29 * element_bytes(fields[f].element) : size_t(field_bytes(fields[f]));
      samples[i].fields.push_back(pattern(bytes, unsigned(i * 11 + f)));
    }
  }
  return samples;
}

// Returns two fields that are arrays of the same length: a signal and its time axis.
inline std::vector<Field> two_signals() {
  const Field signal{
      .name = "signal", .codec = "raw", .extension = ".bin", .element = Element::f64, .shape = {1000}};
  Field time = signal;
  time.name = "time";
  return {signal, time};
}

struct MadeObject {
  uint64_t bytes = 0;
  std::vector<Placement> placed;
};

inline Result<MadeObject> make_object(Backend& backend, const Format& format, std::string_view name,
                                      std::span<const Field> fields, std::span<const TestSample> samples) {
  PENSTOCK_ASSIGN(const auto writer,
                  format.create(backend, {.name = name, .samples = samples.size(), .fields = fields}));
  MadeObject made;
  for (const TestSample& sample : samples) {
    std::vector<std::span<const std::byte>> pieces(sample.fields.begin(), sample.fields.end());
    std::vector<FieldBytes> bytes;
    bytes.reserve(pieces.size());
    for (const auto& piece : pieces) bytes.push_back({.pieces = {&piece, 1}, .bytes = piece.size()});
    const std::string key = "k" + std::to_string(made.placed.size());
    PENSTOCK_ASSIGN(const Placement placement,
                    writer->add({.key = key, .label = sample.label, .label_name = {}, .fields = bytes}));
    made.placed.push_back(placement);
  }
  PENSTOCK_ASSIGN(const PublishedObject object, writer->publish(Durability::visible));
  made.bytes = object.bytes;
  return made;
}

inline std::vector<std::byte> content(Backend& backend, std::string_view name) {
  const auto reader = backend.open(name).value();
  std::vector<std::byte> bytes(size_t(reader->size().value()));
  EXPECT_OK(reader->read_at(0, bytes));
  return bytes;
}

inline void put(Backend& backend, std::string_view name, std::span<const std::byte> bytes) {
  const auto writer = backend.create(name).value();
  ASSERT_OK(writer->append(bytes));
  ASSERT_OK(writer->publish(Durability::visible));
}

struct ScannedSample {
  Placement placement;
  std::string label;
  std::string codec;
};

inline Result<std::vector<ScannedSample>> scan_object(Backend& backend, const Format& format,
                                                      std::string_view name) {
  PENSTOCK_ASSIGN(const Entry entry, backend.names().stat(name));
  std::vector<ScannedSample> samples;
  PENSTOCK_TRY(format.scan(backend, entry, [&](const Format::FoundSample& found) {
    samples.push_back({found.placement, std::string(found.label_name), std::string(found.codec)});
  }));
  return samples;
}

// Writes a signal and its time axis. A scan must find one sample, the signal, and must not take the other
// array for a sample.
inline void expect_one_sample_of_two_signals(Backend& backend, std::string_view format) {
  const std::vector<OptionWord> one{{"samples_per_file", "1"}};
  const std::vector<Field> fields = two_signals();
  auto samples = test_samples(fields, 1);
  samples[0].label = kNoLabel;
  ASSERT_OK(make_object(backend, *format_of(format, one), "signals", fields, samples));
  const auto scanned = scan_object(backend, *format_of(format), "signals");
  ASSERT_OK(scanned);
  ASSERT_EQ(scanned->size(), 1U);
  EXPECT_EQ((*scanned)[0].placement.length, 8000U);
}

// Checks that a scan fails for every truncation of the object. Also flips bits of every byte outside
// [payload_begin, payload_end), and sets the byte to 0x00 and 0xff. The result must then pass the checks of
// ScanFixture.
inline void expect_hardened(ScanFixture& fixture, std::span<const std::byte> whole, size_t payload_begin,
                            size_t payload_end) {
  ASSERT_OK(fixture.scan(whole));
  for (size_t length = 0; length < whole.size(); ++length)
    ASSERT_FALSE(fixture.scan(whole.first(length)).ok()) << "cut to " << length << " bytes";
  std::vector<std::byte> damaged(whole.begin(), whole.end());
  for (size_t at = 0; at < whole.size(); ++at) {
    if (at >= payload_begin && at < payload_end) continue;
    for (unsigned bit = 0; bit < 8; ++bit) {
      damaged[at] = whole[at] ^ static_cast<std::byte>(1U << bit);
      (void)fixture.scan(damaged);
    }
    for (const std::byte value : {std::byte{0x00}, std::byte{0xff}}) {
      damaged[at] = value;
      (void)fixture.scan(damaged);
    }
    damaged[at] = whole[at];
  }
}

}  // namespace penstock
