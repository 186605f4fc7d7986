#include "datagen/generate/size_for.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "io_backends/core/options.hpp"
#include "io_backends/core/text.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

constexpr uint64_t kMinSteps = 500;
constexpr uint64_t kMemoryMultiple = 5;
constexpr int64_t kMostCount = 1'000'000;

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

Result<SizeFor> parse_size_for(std::string_view text, uint64_t own_memory_bytes) {
  // Samples per step of each application, from the workload files of MLPerf Storage for the H100.
  static const std::map<std::string_view, uint64_t> batch_of_app{
      {"cosmoflow", 1}, {"resnet50", 400}, {"unet3d", 7}};
  const std::string_view app = text.substr(0, text.find(','));
  const auto app_row = batch_of_app.find(app);
  if (app_row == batch_of_app.end()) {
    std::vector<std::string_view> names;
    names.reserve(batch_of_app.size());
    for (const auto& [name, batch] : batch_of_app) names.push_back(name);
    return unknown_name("application of --size-for", app, names);
  }
  PENSTOCK_ASSIGN(const Options options,
                  Options::parse(kKeys, arguments_after_app(text), "key of --size-for"));
  if (!options.given("accelerators"))
    return make_error(
        Errc::invalid_argument,
        "--size-for {0}: the number of accelerators is missing; write --size-for {0},accelerators=8", text);
  for (const char* key : {"accelerators", "hosts", "batch"})
    if (options.has(key) && options.integer(key) > kMostCount)
      return make_error(Errc::invalid_argument, "--size-for: {}={}: at most {}", key, options.integer(key),
                        kMostCount);
  const auto number = [&](std::string_view key) { return uint64_t(options.integer(key)); };
  SizeFor rule{.app = std::string(app),
               .batch = options.given("batch") ? number("batch") : app_row->second,
               .accelerators = number("accelerators"),
               .hosts = number("hosts"),
               .memory_bytes = options.given("memory") ? options.size("memory") : own_memory_bytes};
  if (rule.memory_bytes == 0)
    return make_error(
        Errc::invalid_argument,
        "--size-for: the memory size of this machine is unknown: add memory=SIZE (of one host)");
  return rule;
}

std::string size_for_warning(std::string_view app, std::string_view recipe) {
  if (app == recipe) return "";
  return fmt::format(
      "--size-for {0} sizes the data set for steps of {0}, whose recipe is '{0}': with recipe '{1}' the "
      "number of samples is the same, but the data set does not follow the rules of MLPerf Storage",
      app, recipe);
}

SampleCount samples_for(const SizeFor& rule, double mean_sample_bytes, uint64_t per_object) {
  const uint64_t samples_by_steps = kMinSteps * rule.batch * rule.accelerators;
  const double data_bytes = double(rule.memory_bytes) * double(rule.hosts) * kMemoryMultiple;
  const auto samples_by_memory =
      uint64_t(std::min(std::ceil(data_bytes / std::max(1.0, mean_sample_bytes)), 9e17));
  const uint64_t samples = std::max(samples_by_steps, samples_by_memory);
  const uint64_t objects = (samples + per_object - 1) / per_object;
  SampleCount count{.samples = objects * per_object};
  count.explanation = fmt::format(
      "{} steps x batch {} x {} accelerators = {} samples; {} x {} hosts x {} bytes / {:.12g} bytes per "
      "sample = {}; the larger",
      kMinSteps, rule.batch, rule.accelerators, samples_by_steps, kMemoryMultiple, rule.hosts,
      rule.memory_bytes, mean_sample_bytes, samples_by_memory);
  if (count.samples != samples) count.explanation += fmt::format(", in whole files of {}", per_object);
  return count;
}

}  // namespace penstock
