#include "results/sweep/launching.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>
#include <utility>

#include "io_backends/configuration/config_file.hpp"

namespace penstock {
namespace {

constexpr std::array<std::string_view, 3> kPlaces{"{ranks}", "{nodes}", "{tasks-per-node}"};

std::vector<std::string> split(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(std::move(word));
  return words;
}

std::uint64_t most_on_a_node(const SweepSpec& spec, const SweepCell& cell) {
  const std::uint64_t nodes = std::max<std::uint64_t>(1, cell.nodes);
  return spec.tasks_per_node > 0 ? spec.tasks_per_node : (cell.ranks + nodes - 1) / nodes;
}

std::vector<std::string> srun_arguments(const SweepSpec& spec, const SweepCell& cell) {
  std::vector<std::string> words{"srun", fmt::format("--ntasks={}", cell.ranks)};
  if (cell.nodes > 0) {
    words.push_back(fmt::format("--nodes={}", cell.nodes));
    words.push_back(fmt::format("--ntasks-per-node={}", most_on_a_node(spec, cell)));
  }
  if (!spec.slurm.mpi.empty()) words.push_back("--mpi=" + spec.slurm.mpi);
  // Threads of a rank may use all processors of its node, which is the sweep's alone.
  words.emplace_back("--cpu-bind=none");
  words.emplace_back("--kill-on-bad-exit=1");
  words.insert(words.end(), spec.slurm.srun.begin(), spec.slurm.srun.end());
  return words;
}

}  // namespace

std::vector<std::string> launcher_arguments(const SweepSpec& spec, const SweepCell& cell, bool by_srun) {
  if (cell.ranks == 0) return {};
  if (spec.launcher.empty() && by_srun) return srun_arguments(spec, cell);
  std::vector<std::string> words = spec.launcher.empty() ? site_launcher() : split(spec.launcher);
  const std::array<std::uint64_t, 3> values{cell.ranks, std::max<std::uint64_t>(1, cell.nodes),
                                            most_on_a_node(spec, cell)};
  for (std::string& word : words)
    for (std::size_t i = 0; i < kPlaces.size(); ++i)
      for (std::size_t at = 0; (at = word.find(kPlaces[i], at)) != std::string::npos;)
        word.replace(at, kPlaces[i].size(), std::to_string(values[i]));
  return words;
}

Result<void> check_launcher(const SweepSpec& spec) {
  if (spec.launcher.empty()) return success();
  if (spec.ranks.empty() && spec.nodes.empty())
    return make_error(Errc::invalid_argument, "'launcher' needs 'ranks' or 'nodes', too");
  for (const std::string& word : split(spec.launcher)) {
    std::string rest = word;
    for (const std::string_view place : kPlaces)
      for (std::size_t at = 0; (at = rest.find(place)) != std::string::npos;) rest.erase(at, place.size());
    if (rest.find_first_of("{}") != std::string::npos)
      return make_error(Errc::invalid_argument,
                        fmt::format("'launcher' has '{}'; it may have {}", word, fmt::join(kPlaces, ", ")));
  }
  return success();
}

}  // namespace penstock
