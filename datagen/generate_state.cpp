#include "datagen/generate_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <exception>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "io_backends/base/crc32c.hpp"

namespace penstock {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;
constexpr std::size_t kMostStateBytes = 1U << 20;

// On disk, little endian as the manifest.
struct Row {
  std::uint64_t index;
  std::uint64_t offset;
  std::uint64_t length;
  std::uint32_t crc32c;
  std::uint32_t check;  // of the bytes before
};
static_assert(sizeof(Row) == 32);

std::uint32_t check_of(const Row& row) {
  // Not 0 for a row of zeros, which is what a file that lost its bytes is full of.
  return crc32c(std::as_bytes(std::span(&row, 1)).first(offsetof(Row, check)), 0x70656e73U);
}

Result<void> gone_is_fine(Result<void> removed) {
  if (!removed.ok() && removed.error().code == Errc::not_found) return success();
  return removed;
}

Result<std::vector<std::byte>> read_whole(Backend& backend, std::string_view name) {
  PENSTOCK_ASSIGN(const auto reader, backend.open(name));
  PENSTOCK_ASSIGN(const std::uint64_t size, reader->size());
  std::vector<std::byte> bytes(size);
  PENSTOCK_TRY(reader->read_at(0, bytes));
  return bytes;
}

std::string segment_name(std::uint64_t number) {
  return fmt::format("{}/{:08}", kJournalFolder, number);
}

// The numbers of the segments, ascending.
Result<std::vector<std::uint64_t>> segments(Backend& backend) {
  std::vector<std::uint64_t> numbers;
  Result<void> listed = backend.names().list(kJournalFolder, [&](const Entry& entry) {
    const std::string_view digits = std::string_view(entry.name).substr(kJournalFolder.size() + 1);
    std::uint64_t number = 0;
    const auto [stop, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (failure == std::errc{} && stop == digits.data() + digits.size()) numbers.push_back(number);
    return true;
  });
  PENSTOCK_TRY(gone_is_fine(std::move(listed)));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

std::string to_text(const GenerationState& state) {
  Json json{{"schema", kSchema},  {"recipe", state.recipe},   {"format", state.format},
            {"seed", state.seed}, {"samples", state.samples}, {"settings", state.settings}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<GenerationState> parse_generation_state(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    if (json.at("schema").get<int>() != kSchema)
      return make_error(
          Errc::unsupported,
          fmt::format("{} is of another version of penstock: remove the folder", kGenerationStateName));
    return GenerationState{.recipe = json.at("recipe").get<std::string>(),
                           .format = json.at("format").get<std::string>(),
                           .seed = json.at("seed").get<std::uint64_t>(),
                           .samples = json.at("samples").get<std::uint64_t>(),
                           .settings = json.at("settings").get<std::map<std::string, std::string>>()};
  } catch (const std::exception& problem) {
    return make_error(Errc::corrupt, fmt::format("cannot read {} ({}): remove the folder and start again",
                                                 kGenerationStateName, problem.what()));
  }
}

std::string difference(const GenerationState& there, const GenerationState& wanted) {
  if (there.recipe != wanted.recipe) return fmt::format("recipe {}, not {}", there.recipe, wanted.recipe);
  if (there.format != wanted.format) return fmt::format("--format {}, not {}", there.format, wanted.format);
  if (there.seed != wanted.seed) return fmt::format("--seed {}, not {}", there.seed, wanted.seed);
  if (there.samples != wanted.samples)
    return fmt::format("{} samples, not {}", there.samples, wanted.samples);
  for (const auto& [key, value] : there.settings) {
    const auto other = wanted.settings.find(key);
    if (other == wanted.settings.end()) return fmt::format("--set {}={}", key, value);
    if (other->second != value) return fmt::format("--set {}={}, not {}", key, value, other->second);
  }
  for (const auto& [key, value] : wanted.settings)
    if (!there.settings.contains(key)) return fmt::format("no --set {}={}", key, value);
  return "";
}

Result<std::optional<GenerationState>> read_generation_state(Backend& backend) {
  const Result<Entry> there = backend.names().stat(kGenerationStateName);
  if (!there.ok()) {
    if (there.error().code == Errc::not_found) return std::optional<GenerationState>();
    return there.error();
  }
  if (there->bytes > kMostStateBytes)
    return make_error(Errc::corrupt, fmt::format("{} is no state file of generate", kGenerationStateName));
  PENSTOCK_ASSIGN(const std::vector<std::byte> bytes, read_whole(backend, kGenerationStateName));
  PENSTOCK_ASSIGN(GenerationState state,
                  parse_generation_state({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  return std::optional<GenerationState>(std::move(state));
}

Result<void> write_generation_state(Backend& backend, const GenerationState& state) {
  const std::string text = to_text(state);
  PENSTOCK_ASSIGN(const auto writer, backend.create(kGenerationStateName, text.size()));
  PENSTOCK_TRY(writer->append(std::as_bytes(std::span(text))));
  return writer->publish(Durability::file_and_name);
}

Result<void> JournalWriter::append(const std::vector<JournalEntry>& entries) {
  if (entries.empty()) return success();
  std::vector<Row> rows;
  rows.reserve(entries.size());
  for (const JournalEntry& entry : entries) {
    Row row{entry.index, entry.offset, entry.length, entry.crc32c, 0};
    row.check = check_of(row);
    rows.push_back(row);
  }
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = next_++;
  }
  const auto bytes = std::as_bytes(std::span(rows));
  PENSTOCK_ASSIGN(const auto writer, backend_.create(segment_name(number), bytes.size()));
  PENSTOCK_TRY(writer->append(bytes));
  return writer->publish(Durability::visible, IfExists::fail);
}

Result<JournalRead> read_journal(Backend& backend,
                                 const std::function<Result<void>(const std::vector<JournalEntry>&)>& visit) {
  PENSTOCK_ASSIGN(const std::vector<std::uint64_t> numbers, segments(backend));
  JournalRead read;
  std::vector<JournalEntry> entries;
  for (const std::uint64_t number : numbers) {
    PENSTOCK_ASSIGN(const std::vector<std::byte> bytes, read_whole(backend, segment_name(number)));
    entries.clear();
    for (std::size_t at = 0; at + sizeof(Row) <= bytes.size(); at += sizeof(Row)) {
      Row row{};
      std::memcpy(&row, bytes.data() + at, sizeof row);
      if (row.check == check_of(row))
        entries.push_back({row.index, row.offset, row.length, row.crc32c});
      else
        ++read.damaged;
    }
    if (bytes.size() % sizeof(Row) != 0) ++read.damaged;
    read.next_segment = number + 1;
    PENSTOCK_TRY(visit(entries));
  }
  return read;
}

Result<void> remove_generation_state(Backend& backend) {
  PENSTOCK_ASSIGN(const std::vector<std::uint64_t> numbers, segments(backend));
  for (const std::uint64_t number : numbers)
    PENSTOCK_TRY(gone_is_fine(backend.names().remove(segment_name(number))));
  PENSTOCK_TRY(gone_is_fine(backend.names().remove(kJournalFolder)));
  return gone_is_fine(backend.names().remove(kGenerationStateName));
}

}  // namespace penstock
