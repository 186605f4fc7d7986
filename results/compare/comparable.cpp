#include "results/compare/comparable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "results/cells/cells.hpp"
#include "results/record/json_members.hpp"

namespace penstock {
namespace {

using Values = std::set<std::string>;

template <class Read>
Values values_of(std::span<const Record* const> records, Read read) {
  Values values;
  for (const Record* const record : records)
    if (std::string text = read(*record); !text.empty()) values.insert(std::move(text));
  return values;
}

// Says in a sentence how the values of base and candidate differ. "" if they are equal, or if base or
// candidate has no values.
std::string difference(std::string_view subject, const Values& base, const Values& candidate) {
  if (base.empty() || candidate.empty() || base == candidate) return "";
  return fmt::format("{}: {} in the base, {} in the candidate", subject, fmt::join(base, " and "),
                     fmt::join(candidate, " and "));
}

// A fact of a record's environment: the environment's member `name`, or, if `object` is set, member `name` of
// the object `object`.
struct Fact {
  std::string_view description;
  std::string_view name;
  std::string_view object = {};
};

constexpr Fact kMachineFacts[] = {
    {"different host", "host"},
    {"different architecture", "machine"},
    {"different CPU model", "cpu"},
    {"different allowed CPUs", "cpus"},
    {"different allowed memory nodes", "numa"},
    {"different CPU limit", "cpus", "cgroup"},
    {"different memory limit", "memory_bytes", "cgroup"},
    {"different device limit", "io", "cgroup"},
};

constexpr Fact kRemarkFacts[] = {
    {"the kernel", "kernel"},
    {"the operating system", "os"},
    {"the governor", "governor"},
    {"the build's type", "type", "build"},
    {"the build's flags", "flags", "build"},
    {"the compiler", "compiler", "build"},
    {"the sanitizer", "sanitizer", "build"},
    {"the versions", "versions"},
};

// Says in a sentence how base and candidate differ in a fact; "" if they do not.
std::string difference(const Fact& fact, std::span<const Record* const> base,
                       std::span<const Record* const> candidate) {
  const auto fact_of = [&](const Record& record) {
    const Json& facts = record.environment;
    return member_any_text(fact.object.empty() ? facts : member_object(facts, fact.object), fact.name);
  };
  return difference(fact.description, values_of(base, fact_of), values_of(candidate, fact_of));
}

std::optional<double> memory_of(std::span<const Record* const> records) {
  for (const Record* const record : records)
    if (const auto bytes = member_number(record->environment, "memory_bytes")) return bytes;
  return std::nullopt;
}

std::string file_system_difference(const Cell& cell) {
  std::set<std::string> roles;
  for (const Record* const record : cell.base)
    for (const auto& [role, tier] : record->tiers.items()) roles.insert(role);
  for (const std::string& role : roles) {
    const auto read = [&](const Record& record) {
      return member_any_text(member_object(record.tiers, role), "fs_type");
    };
    std::string found = difference("different file system under the tier '" + role + "'",
                                   values_of(cell.base, read), values_of(cell.candidate, read));
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace

std::string machine_difference(const Cell& cell) {
  for (const Fact& fact : kMachineFacts)
    if (std::string found = difference(fact, cell.base, cell.candidate); !found.empty()) return found;
  const auto nodes = [](const Record& record) { return std::to_string(node_count(record)); };
  if (std::string found = difference("different number of nodes", values_of(cell.base, nodes),
                                     values_of(cell.candidate, nodes));
      !found.empty())
    return found;
  // Memory sizes that differ by no more than this are equal: kernels reserve different amounts for
  // themselves.
  constexpr double kMemoryTolerance = 0.05;
  const auto base_bytes = memory_of(cell.base);
  const auto candidate_bytes = memory_of(cell.candidate);
  if (base_bytes && candidate_bytes &&
      std::abs(*candidate_bytes - *base_bytes) > kMemoryTolerance * std::max(*base_bytes, *candidate_bytes))
    return fmt::format("different memory size: {:.1f} GiB in the base, {:.1f} GiB in the candidate",
                       *base_bytes / 0x1p30, *candidate_bytes / 0x1p30);
  return file_system_difference(cell);
}

std::string work_difference(const Cell& cell) {
  for (const std::string_view name : {"bytes", "checksum"}) {
    const auto read = [&](const Record& record) { return corpus_text(record, name); };
    std::string found = difference(fmt::format("different data: {}", name), values_of(cell.base, read),
                                   values_of(cell.candidate, read));
    if (!found.empty()) return found;
  }
  const auto state = [](const Record& record) { return cache_text(record, "client_data"); };
  return difference("different cache state", values_of(cell.base, state), values_of(cell.candidate, state));
}

std::vector<std::string> environment_remarks(std::span<const Record* const> base,
                                             std::span<const Record* const> candidate) {
  std::vector<std::string> remarks;
  for (const Fact& fact : kRemarkFacts)
    if (std::string found = difference(fact, base, candidate); !found.empty())
      remarks.push_back(std::move(found));
  return remarks;
}

}  // namespace penstock
