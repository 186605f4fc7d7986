#include "datagen/dry_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "datagen/command_output.hpp"
#include "io_backends/base/units.hpp"
#include "results/table.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kEnough = std::chrono::milliseconds(250);

// Copies the pieces as a writer would, through a buffer that is used again.
void copy(const FieldBytes& field, std::span<std::byte> buffer) {
  for (std::span<const std::byte> piece : field.pieces)
    while (!piece.empty()) {
      const std::size_t bytes = std::min(piece.size(), buffer.size());
      std::memcpy(buffer.data(), piece.data(), bytes);
      piece = piece.subspan(bytes);
    }
}

// Of all of it, if the storage takes it as fast as it is made.
double seconds_at_least(const Generation& generation, const MakingRate& rate, unsigned threads) {
  return static_cast<double>(generation.payload_expected) / std::max(1.0, static_cast<double>(rate.bytes)) *
         rate.seconds / threads;
}

}  // namespace

Result<MakingRate> measure_making(const Recipe& recipe) {
  PENSTOCK_ASSIGN(const auto maker, recipe.maker());
  std::vector<std::byte> buffer(std::size_t{1} << 20U);
  std::uint64_t next = 0;
  const auto make_for_a_while = [&]() -> Result<MakingRate> {
    MakingRate rate;
    const Clock::time_point start = Clock::now();
    do {
      PENSTOCK_ASSIGN(const std::span<const FieldBytes> fields, maker->make(next++ % recipe.samples()));
      for (const FieldBytes& field : fields) {
        copy(field, buffer);
        rate.bytes += field.bytes;
      }
      ++rate.samples;
      rate.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    } while (Clock::now() - start < kEnough);
    return rate;
  };
  PENSTOCK_TRY(make_for_a_while());  // stocks are made as they are first asked for
  return make_for_a_while();
}

Result<void> show_plan(const Output& output, const Generation& generation, Tier& tier, unsigned threads,
                       std::string_view refused) {
  const GenerationState& state = generation.state;
  const Result<std::uint64_t> free = tier.backend->names().free_bytes();
  PENSTOCK_ASSIGN(const MakingRate rate, measure_making(*generation.recipe));
  const double seconds = seconds_at_least(generation, rate, threads);
  if (output.json) {
    Json row{{"kind", "plan"},
             {"recipe", state.recipe},
             {"format", state.format},
             {"samples", state.samples},
             {"objects", generation.objects},
             {"bytes", generation.bytes_expected},
             {"bytes_at_most", generation.bytes_at_most},
             {"payload_bytes", generation.payload_expected},
             {"labels", generation.recipe->label_names().size()},
             {"seed", state.seed},
             {"settings", state.settings},
             {"threads", threads},
             {"seconds_at_least", seconds},
             {"out", tier.root}};
    if (!generation.how_many.empty()) row["size_for"] = generation.how_many;
    if (free.ok()) row["free_bytes"] = *free;
    if (!refused.empty()) row["refused"] = refused;
    print_json(row);
    return success();
  }
  Table table({{"", Align::left}, {"", Align::left}});
  table.row({"recipe", state.recipe});
  table.row({"format", state.format});
  table.row({"samples", format_count(state.samples)});
  if (!generation.how_many.empty()) table.row({"", generation.how_many});
  table.row({"objects", format_count(generation.objects)});
  table.row({"bytes", fmt::format("{} {}", generation.about(),
                                  format_bytes(static_cast<double>(generation.bytes_expected), output))});
  table.row({"seed", std::to_string(state.seed)});
  for (const auto& [key, value] : state.settings) table.row({key, value});
  table.row(
      {"time",
       fmt::format(
           "{} or more on {} threads: {} samples made into memory just now, {} {} a thread; "
           "{} makes it longer",
           format_seconds(seconds), threads, rate.samples,
           format_rate(static_cast<double>(rate.bytes) / rate.seconds, output), rate_unit(output),
           generation.bytes_at_most ? "compressing them, which is not in it," : "storage that takes less")});
  table.row({"out", tier.root});
  if (free.ok()) table.row({"free there", format_bytes(static_cast<double>(*free), output)});
  print_text(table.text());
  return success();
}

}  // namespace penstock
