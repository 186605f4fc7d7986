#include "datagen/generate/generate_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/json.hpp"
#include "io_backends/core/text.hpp"

namespace penstock {
namespace {

// Version of the state file. It is also increased when a format begins to write the same samples in a
// different way. So a data set that an older build began is not continued.
constexpr uint64_t kSchema = 3;
constexpr size_t kMostStateBytes = 1U << 20;
constexpr size_t kRowsAtOnce = 32768;  // number of rows (1 MiB) that are read or written in one call

// A row of the journal on disk, in little endian like the manifest. An object has a row of its own, followed
// by one row per sample.
struct Row {
  uint64_t index;     // index of the sample; in an object's row: of its first sample
  uint64_t offset;    // offset of the sample; in an object's row: its number of samples
  uint64_t length;    // length of the sample or the object
  uint32_t crc32c;    // CRC32C of the sample or the object
  uint32_t checksum;  // checksum of the other fields
};
static_assert(sizeof(Row) == 32);

// Mixed into the checksum of a row, so that rows of samples and rows of objects cannot be confused. In a file
// that lost its bytes, rows are all zeros; their checksum is then wrong for both kinds.
constexpr uint32_t kSampleRow = 0x70656e73U;
constexpr uint32_t kObjectRow = 0x6f626a65U;

uint32_t checksum_of(const Row& row, uint32_t kind, uint32_t key) {
  return crc32c(std::as_bytes(std::span(&row, 1)).first(offsetof(Row, checksum)), kind ^ key);
}

void append_row(std::vector<Row>& rows, uint32_t kind, uint32_t key, Row row) {
  row.checksum = checksum_of(row, kind, key);
  rows.push_back(row);
}

// Builds a JournalSegment from the rows of its file. Leaves out objects with a damaged or missing row,
// and counts their rows as damaged.
class SegmentBuilder {
 public:
  SegmentBuilder(JournalSegment& segment, uint32_t key, uint64_t& damaged_parts)
      : segment_(segment), key_(key), damaged_parts_(damaged_parts) {}

  void add(const Row& row) {
    if (row.checksum == checksum_of(row, kObjectRow, key_) && row.offset > 0) {
      drop_unfinished();
      object_ = {{row.length, row.crc32c}, segment_.samples.size(), 0};
      next_sample_ = row.index;
      missing_samples_ = row.offset;
    } else if (row.checksum == checksum_of(row, kSampleRow, key_) && missing_samples_ > 0 &&
               row.index == next_sample_) {
      segment_.samples.push_back({row.index, row.offset, row.length, row.crc32c});
      ++next_sample_;
      if (--missing_samples_ > 0) return;
      object_.end = segment_.samples.size();
      segment_.objects.push_back(object_);
    } else {
      ++damaged_parts_;
    }
  }

  // Drops the current object if some of its samples are missing.
  void drop_unfinished() {
    if (missing_samples_ == 0) return;
    damaged_parts_ += 1 + segment_.samples.size() - object_.begin;
    segment_.samples.resize(object_.begin);
    missing_samples_ = 0;
  }

 private:
  JournalSegment& segment_;
  const uint32_t key_;
  uint64_t& damaged_parts_;
  JournalObject object_;
  uint64_t next_sample_ = 0;
  uint64_t missing_samples_ = 0;
};

std::string segment_name(uint64_t number) {
  return fmt::format("{}/{:08}", kJournalFolder, number);
}

// The numbers of all segments, in ascending order.
Result<std::vector<uint64_t>> segment_numbers(Backend& backend) {
  std::vector<uint64_t> numbers;
  Result<void> listed = backend.names().list(kJournalFolder, [&](const Entry& entry) {
    const std::string_view digits = std::string_view(entry.name).substr(kJournalFolder.size() + 1);
    if (const auto number = parse_digits<uint64_t>(digits)) numbers.push_back(*number);
    return true;
  });
  if (!listed.ok() && listed.error().code != Errc::not_found) return std::move(listed).error();
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

std::string to_text(const GenerationState& state) {
  Json json{{"schema", kSchema},         {"recipe", state.recipe}, {"fingerprint", state.fingerprint},
            {"format", state.format},    {"seed", state.seed},     {"samples", state.samples},
            {"settings", state.settings}};
  return indented(json, 2) + "\n";
}

uint32_t journal_key(const GenerationState& state) {
  const std::string text = to_text(state);
  return crc32c(std::as_bytes(std::span(text)));
}

namespace {

// Reads an unsigned number. Throws if the value is not one; Json's get() would silently convert it.
uint64_t unsigned_number(const Json& json) {
  if (!json.is_number_unsigned()) throw std::invalid_argument("not a count");
  return json.get<uint64_t>();
}

uint32_t fingerprint_of(const Json& json) {
  const uint64_t number = unsigned_number(json.at("fingerprint"));
  if (number > UINT32_MAX) throw std::invalid_argument("not a fingerprint");
  return uint32_t(number);
}

}  // namespace

Result<GenerationState> parse_generation_state(std::string_view text, std::string_view name) {
  try {
    const Json json = Json::parse(text);
    if (unsigned_number(json.at("schema")) != kSchema)
      return make_error(Errc::unsupported,
                        "'{}' was written by another version of penstock: resume with that version, or "
                        "remove the folder and start again",
                        name);
    return GenerationState{.recipe = json.at("recipe").get<std::string>(),
                           .fingerprint = fingerprint_of(json),
                           .format = json.at("format").get<std::string>(),
                           .seed = unsigned_number(json.at("seed")),
                           .samples = unsigned_number(json.at("samples")),
                           .settings = json.at("settings").get<std::map<std::string, std::string>>()};
  } catch (const std::exception&) {
    return make_error(Errc::corrupt,
                      "'{}' is damaged, and no other file lists what the folder should contain: remove the "
                      "folder and start again",
                      name);
  }
}

std::string difference(const GenerationState& existing, const GenerationState& requested) {
  if (existing.recipe != requested.recipe)
    return fmt::format("recipe {}, not {}", existing.recipe, requested.recipe);
  if (existing.format != requested.format)
    return fmt::format("--format {}, not {}", existing.format, requested.format);
  if (existing.seed != requested.seed) return fmt::format("--seed {}, not {}", existing.seed, requested.seed);
  if (existing.samples != requested.samples)
    return fmt::format("{} samples, not {}", existing.samples, requested.samples);
  for (const auto& [key, value] : existing.settings) {
    const auto other = requested.settings.find(key);
    if (other == requested.settings.end()) return fmt::format("--set {}={}", key, value);
    if (other->second != value) return fmt::format("--set {}={}, not {}", key, value, other->second);
  }
  for (const auto& [key, value] : requested.settings)
    if (!existing.settings.contains(key)) return fmt::format("no --set {}={}", key, value);
  return "";
}

Result<std::optional<GenerationState>> read_generation_state(Backend& backend, std::string_view root) {
  const std::string name =
      fmt::format("{}{}{}", root, root.empty() || root.ends_with('/') ? "" : "/", kGenerationStateName);
  const Result<Entry> existing = backend.names().stat(kGenerationStateName);
  if (!existing.ok()) {
    if (existing.error().code == Errc::not_found) return std::optional<GenerationState>();
    return existing.error();
  }
  if (existing->bytes > kMostStateBytes)
    return make_error(Errc::corrupt,
                      "'{}' is too large for a state file of generate: remove the folder and start again",
                      name);
  PENSTOCK_ASSIGN(const std::string text, read_text(backend, kGenerationStateName, kMostStateBytes));
  PENSTOCK_ASSIGN(GenerationState state, parse_generation_state(text, name));
  return std::optional<GenerationState>(std::move(state));
}

Result<void> write_generation_state(Backend& backend, const GenerationState& state) {
  const std::string text = to_text(state);
  return put_object(backend, kGenerationStateName, std::as_bytes(std::span(text)), Durability::file_and_name);
}

void JournalSegment::append(const JournalSegment& other) {
  for (const JournalObject& object : other.objects)
    objects.push_back({object.published, samples.size() + object.begin, samples.size() + object.end});
  samples.insert(samples.end(), other.samples.begin(), other.samples.end());
}

// Threads: any thread of the rank may call it. The lock protects only the choice of a number, so threads
// write their segments at the same time.
// Numbers: ranks use different numbers (stride_). If a second process writes the same journal, publish()
// fails because the segment exists already (IfExists::fail).
// A segment is not made durable: if it is lost, its objects are only made again.
Result<void> JournalWriter::append(const JournalSegment& segment) {
  if (segment.objects.empty()) return success();
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = next_number_;
    next_number_ += stride_;
  }
  PENSTOCK_ASSIGN(
      const auto writer,
      backend_.create(segment_name(number), (segment.objects.size() + segment.samples.size()) * sizeof(Row)));
  std::vector<Row> rows;
  for (const JournalObject& object : segment.objects) {
    const auto samples = segment.samples_of(object);
    append_row(rows, kObjectRow, key_,
               {samples.front().index, samples.size(), object.published.bytes, object.published.crc32c, 0});
    for (const JournalSample& sample : samples) {
      append_row(rows, kSampleRow, key_, {sample.index, sample.offset, sample.length, sample.crc32c, 0});
      if (rows.size() < kRowsAtOnce) continue;
      PENSTOCK_TRY(writer->append(std::as_bytes(std::span(rows))));
      rows.clear();
    }
  }
  PENSTOCK_TRY(writer->append(std::as_bytes(std::span(rows))));
  return writer->publish(Durability::visible, IfExists::fail);
}

namespace {

// Whether the error is about this segment alone (truncated, missing or unreadable), and not about the storage
// as a whole.
bool concerns_segment(const Error& error) {
  return error.code == Errc::io || error.code == Errc::truncated || error.code == Errc::not_found;
}

// Reads a segment up to the first error. If there is one, `segment` still gets the objects before it.
Result<void> read_segment(Backend& backend, uint32_t key, uint64_t number, JournalSegment& segment,
                          uint64_t& damaged_parts) {
  PENSTOCK_ASSIGN(const auto reader, backend.open(segment_name(number)));
  PENSTOCK_ASSIGN(const uint64_t size, reader->size());
  SegmentBuilder builder(segment, key, damaged_parts);
  std::vector<Row> rows;
  const uint64_t count = size / sizeof(Row);
  for (uint64_t at = 0; at < count; at += rows.size()) {
    rows.resize(std::min<uint64_t>(kRowsAtOnce, count - at));
    PENSTOCK_TRY(reader->read_at(at * sizeof(Row), std::as_writable_bytes(std::span(rows))));
    for (const Row& row : rows) builder.add(row);
  }
  builder.drop_unfinished();
  if (size % sizeof(Row) != 0) ++damaged_parts;
  return success();
}

}  // namespace

Result<JournalRead> read_journal(Backend& backend, uint32_t key,
                                 const std::function<Result<void>(const JournalSegment&)>& visit) {
  PENSTOCK_ASSIGN(const std::vector<uint64_t> numbers, segment_numbers(backend));
  JournalRead journal;
  JournalSegment segment;
  for (const uint64_t number : numbers) {
    segment.clear();
    journal.next_segment = number + 1;
    const Result<void> done = read_segment(backend, key, number, segment, journal.damaged_parts);
    if (!done.ok() && !concerns_segment(done.error())) return done.error();
    if (!done.ok()) ++journal.damaged_parts;
    PENSTOCK_TRY(visit(segment));
  }
  return journal;
}

// The state file is removed last, because it shows that files of an unfinished data set may exist. If a kill
// interrupts the removal, the next call removes the rest.
Result<void> remove_generation_state(Backend& backend) {
  PENSTOCK_ASSIGN(const std::vector<uint64_t> numbers, segment_numbers(backend));
  for (const uint64_t number : numbers) PENSTOCK_TRY(remove_if_there(backend.names(), segment_name(number)));
  PENSTOCK_TRY(remove_if_there(backend.names(), kJournalFolder));
  return remove_if_there(backend.names(), kGenerationStateName);
}

}  // namespace penstock
