#include "results/compare/comparable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

namespace penstock {
namespace {

using Values = std::set<std::string>;

// The value behind a path of keys, as text; "" where there is none.
std::string text_at(const Json& json, std::span<const std::string_view> path) {
  const Json* at = &json;
  for (const std::string_view key : path) {
    if (!at->is_object()) return "";
    const auto found = at->find(std::string(key));
    if (found == at->end() || found->is_null()) return "";
    at = &*found;
  }
  return at->is_string() ? at->get<std::string>() : at->dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class Read>
Values values_of(std::span<const Record* const> records, Read read) {
  Values values;
  for (const Record* const record : records)
    if (std::string text = read(*record); !text.empty()) values.insert(std::move(text));
  return values;
}

std::string listed(const Values& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : " and ") + value;
  return text;
}

// "" where either side does not say.
std::string difference(std::string_view what, const Values& base, const Values& candidate) {
  if (base.empty() || candidate.empty() || base == candidate) return "";
  return fmt::format("{}: {} in the base, {} in the candidate", what, listed(base), listed(candidate));
}

struct Place {
  std::string_view words;
  std::array<std::string_view, 2> path;
  std::span<const std::string_view> keys() const { return std::span(path).first(path[1].empty() ? 1U : 2U); }
};

constexpr std::array<Place, 8> kMachine{{
    {"another host", {"host", ""}},
    {"another architecture", {"machine", ""}},
    {"another processor", {"cpu", ""}},
    {"other processors allowed", {"cpus", ""}},
    {"other memory nodes allowed", {"numa", ""}},
    {"another limit of processors", {"cgroup", "cpus"}},
    {"another limit of memory", {"cgroup", "memory_bytes"}},
    {"another limit of devices", {"cgroup", "io"}},
}};

constexpr std::array<Place, 8> kRemarked{{
    {"the kernel", {"kernel", ""}},
    {"the operating system", {"os", ""}},
    {"the governor", {"governor", ""}},
    {"the build's type", {"build", "type"}},
    {"the build's flags", {"build", "flags"}},
    {"the compiler", {"build", "compiler"}},
    {"the sanitizer", {"build", "sanitizer"}},
    {"the versions", {"versions", ""}},
}};

std::optional<double> memory_of(std::span<const Record* const> records) {
  for (const Record* const record : records)
    if (const auto at = record->environment.find("memory_bytes");
        at != record->environment.end() && at->is_number())
      return at->get<double>();
  return std::nullopt;
}

std::string file_system_difference(const Cell& cell) {
  std::set<std::string> roles;
  for (const Record* const record : cell.base)
    for (const auto& [role, tier] : record->tiers.items()) roles.insert(role);
  for (const std::string& role : roles) {
    const auto read = [&](const Record& record) {
      const std::array<std::string_view, 2> path{role, "fs_type"};
      return text_at(record.tiers, path);
    };
    std::string found = difference("another file system under the tier '" + role + "'",
                                   values_of(cell.base, read), values_of(cell.candidate, read));
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace

std::string machine_difference(const Cell& cell) {
  for (const Place& place : kMachine) {
    const auto read = [&](const Record& record) { return text_at(record.environment, place.keys()); };
    std::string found = difference(place.words, values_of(cell.base, read), values_of(cell.candidate, read));
    if (!found.empty()) return found;
  }
  constexpr double kSameMemory = 0.05;  // kernels keep more or less of it for themselves
  const auto before = memory_of(cell.base);
  const auto now = memory_of(cell.candidate);
  if (before && now && std::abs(*now - *before) > kSameMemory * std::max(*before, *now))
    return fmt::format("another size of memory: {:.1f} GiB in the base, {:.1f} GiB in the candidate",
                       *before / 0x1p30, *now / 0x1p30);
  return file_system_difference(cell);
}

std::string work_difference(const Cell& cell) {
  constexpr std::array<Place, 2> kCorpus{
      {{"other data: bytes", {"bytes", ""}}, {"other data: checksum", {"checksum", ""}}}};
  for (const Place& place : kCorpus) {
    const auto read = [&](const Record& record) { return text_at(record.corpus, place.keys()); };
    std::string found = difference(place.words, values_of(cell.base, read), values_of(cell.candidate, read));
    if (!found.empty()) return found;
  }
  const auto state = [](const Record& record) {
    const std::array<std::string_view, 1> path{"client_data"};
    return text_at(record.cache, path);
  };
  return difference("another cache state", values_of(cell.base, state), values_of(cell.candidate, state));
}

std::vector<std::string> environment_remarks(std::span<const Record* const> base,
                                             std::span<const Record* const> candidate) {
  std::vector<std::string> remarks;
  for (const Place& place : kRemarked) {
    const auto read = [&](const Record& record) { return text_at(record.environment, place.keys()); };
    if (std::string found = difference(place.words, values_of(base, read), values_of(candidate, read));
        !found.empty())
      remarks.push_back(std::move(found));
  }
  return remarks;
}

}  // namespace penstock
