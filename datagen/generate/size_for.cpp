#include "datagen/generate/size_for.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "io_backends/core/options.hpp"
#include "io_backends/core/text.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

constexpr std::uint64_t kMinSteps = 500;
constexpr std::uint64_t kMemoryMultiple = 5;
constexpr std::int64_t kMostPerKey = 1'000'000;  // limit of each number

struct App {
  std::string_view name;
  std::uint64_t batch;  // from the workload files for H100
};
constexpr App kApps[] = {{"cosmoflow", 1}, {"resnet50", 400}, {"unet3d", 7}};

constexpr OptionSpec kKeys[] = {
    {.name = "accelerators",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .at_least = 1},
    {.name = "hosts",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "H",
     .fallback = "1",
     .at_least = 1},
    {.name = "batch", .role = OptionRole::work, .type = OptionType::integer, .value = "B", .at_least = 1},
    {.name = "memory", .role = OptionRole::work, .type = OptionType::size, .value = "SIZE", .at_least = 1},
};

std::vector<OptionWord> arguments_after_app(std::string_view text) {
  std::vector<OptionWord> words;
  while (text.find(',') != std::string_view::npos) {
    take_part(text, ',');
    std::string_view value = text.substr(0, text.find(','));
    const std::string_view key = take_part(value, '=');
    words.push_back({std::string(key), std::string(value)});
  }
  return words;
}

}  // namespace

Result<SizeFor> parse_size_for(std::string_view text, std::uint64_t own_memory) {
  const std::string_view app = text.substr(0, text.find(','));
  const auto known =
      std::find_if(std::begin(kApps), std::end(kApps), [&](const App& row) { return row.name == app; });
  if (known == std::end(kApps)) {
    std::vector<std::string_view> names;
    names.reserve(std::size(kApps));
    for (const App& row : kApps) names.push_back(row.name);
    return unknown_name("application of --size-for", app, names);
  }
  PENSTOCK_ASSIGN(const Options options,
                  Options::parse(kKeys, arguments_after_app(text), "key of --size-for"));
  if (!options.given("accelerators"))
    return make_error(Errc::invalid_argument, fmt::format("--size-for {}: say accelerators=N", text));
  for (const char* key : {"accelerators", "hosts", "batch"})
    if (options.has(key) && options.integer(key) > kMostPerKey)
      return make_error(Errc::invalid_argument,
                        fmt::format("--size-for: {}={}: at most {}", key, options.integer(key), kMostPerKey));
  const auto number = [&](std::string_view key) { return static_cast<std::uint64_t>(options.integer(key)); };
  SizeFor rule{.app = std::string(app),
               .batch = options.given("batch") ? number("batch") : known->batch,
               .accelerators = number("accelerators"),
               .hosts = number("hosts"),
               .memory_bytes = options.given("memory") ? options.size("memory") : own_memory};
  if (rule.memory_bytes == 0)
    return make_error(
        Errc::invalid_argument,
        "--size-for: this machine does not say how much memory it has: say memory=SIZE of one host");
  return rule;
}

std::string size_for_warning(std::string_view app, std::string_view recipe) {
  if (app == recipe) return "";
  return fmt::format(
      "--size-for {0} counts steps of {0}, whose data set is the recipe '{0}': of '{1}' it makes as many "
      "samples, but no data set by the rules of MLPerf Storage",
      app, recipe);
}

SampleCount samples_for(const SizeFor& rule, double mean_sample_bytes, std::uint64_t per_object) {
  const std::uint64_t by_steps = kMinSteps * rule.batch * rule.accelerators;
  const double memory =
      static_cast<double>(rule.memory_bytes) * static_cast<double>(rule.hosts) * kMemoryMultiple;
  const auto by_memory =
      static_cast<std::uint64_t>(std::min(std::ceil(memory / std::max(1.0, mean_sample_bytes)), 9e17));
  const std::uint64_t samples = std::max(by_steps, by_memory);
  const std::uint64_t objects = (samples + per_object - 1) / per_object;
  SampleCount sized{.samples = objects * per_object};
  sized.explanation = fmt::format(
      "{} steps x batch {} x {} accelerators = {} samples; {} x {} hosts x {} / {:.0f} bytes a sample = {}; "
      "the "
      "larger",
      kMinSteps, rule.batch, rule.accelerators, by_steps, kMemoryMultiple, rule.hosts,
      format_size(rule.memory_bytes), mean_sample_bytes, by_memory);
  if (sized.samples != samples) sized.explanation += fmt::format(", in whole files of {}", per_object);
  return sized;
}

}  // namespace penstock
