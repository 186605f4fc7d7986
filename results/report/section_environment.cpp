// The section about the tiers and environments of the records. It marks the facts in which they differ.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/text.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/verdicts_parts.hpp"
#include "results/record/json_members.hpp"
#include "results/report/html.hpp"
#include "results/report/sections.hpp"

namespace penstock::report {
namespace {

using Kind = HtmlTable::Kind;
using Facts = std::map<std::string, std::string>;

std::string fact_value(const std::string& name, const Json& value, const Output& output) {
  if (value.is_number() && name.ends_with("memory_bytes")) return format_bytes(value.get<double>(), output);
  if (value.is_number_float()) return format_number(value.get<double>(), output);
  return any_text(value);
}

// Puts the members of nested objects into one map: "build.flags" -> text. The recursion is bounded, because
// the reader of records limits how deep objects are nested.
void flatten(const Json& json, const std::string& prefix, const Output& output, Facts& facts,
             std::vector<std::string>& order) {
  for (const auto& [key, value] : json.items()) {
    std::string name = prefix;
    if (!name.empty()) name += '.';
    name += key;
    if (name == "plan") continue;  // every command plans another time
    if (value.is_object()) {
      flatten(value, name, output, facts, order);
      continue;
    }
    // Leave out these facts: they differ between runs, but the runs are still comparable.
    if (name == "clock_read_ns" || name == "results" || name == "warnings" || name == "ranks") continue;
    const std::string text = fact_value(name, value, output);
    if (text.empty()) continue;
    facts[name] = text;
    if (std::find(order.begin(), order.end(), name) == order.end()) order.push_back(name);
  }
}

std::string tiers_html(const std::vector<Record>& records) {
  constexpr NamedText kColumns[] = {
      {"name", "tier"},         {"backend", "back end"}, {"fs_type", "file system"},
      {"device", "device"},     {"root", "folder"},      {"mount_options", "mount options"},
      {"striping", "striping"}, {"spec", "as given"},    {"emulated", "emulated"}};
  std::vector<HtmlTable::Column> columns;
  for (const auto& [key, title] : kColumns) columns.push_back({std::string(title), Kind::words});
  HtmlTable table("Tiers", columns);
  std::set<std::vector<std::string>> shown_rows;
  for (const Record& record : records)
    for (const auto& [role, facts] : record.tiers.items()) {
      if (!facts.is_object() || facts.empty()) continue;
      std::vector<std::string> row;
      for (const auto& [key, title] : kColumns)
        row.push_back(key == "emulated" ? emulation(facts) : member_text(facts, key));
      if (shown_rows.insert(row).second) table.row(row);
    }
  return table.empty() ? "" : table.html();
}

// The distinct environments in the order of the records, each with the numbers of its records.
struct Environments {
  std::vector<std::string> fact_names;  // names of all facts, in the order in which they first appear
  std::vector<std::pair<Facts, std::vector<size_t>>> distinct;
};

Environments environments_of(const std::vector<Record>& records, const Output& output) {
  Environments environments;
  std::map<Facts, size_t> index;
  for (size_t i = 0; i < records.size(); ++i) {
    Facts facts;
    flatten(records[i].environment, "", output, facts, environments.fact_names);
    if (facts.empty()) continue;
    const auto [at, inserted] = index.emplace(facts, environments.distinct.size());
    if (inserted) environments.distinct.push_back({std::move(facts), {}});
    environments.distinct[at->second].second.push_back(i + 1);
  }
  // What matters most to a reader comes first, versions of libraries and the build last.
  const auto importance = [](const std::string& name) {
    constexpr std::string_view kFirst[] = {"host", "cpu", "cpu_count", "memory_bytes", "kernel", "os"};
    const auto at = std::find(std::begin(kFirst), std::end(kFirst), name);
    if (at != std::end(kFirst)) return at - std::begin(kFirst);
    return std::ssize(kFirst) + (name.starts_with("versions.") || name.starts_with("build.") ? 1 : 0);
  };
  std::stable_sort(environments.fact_names.begin(), environments.fact_names.end(),
                   [&](const std::string& a, const std::string& b) { return importance(a) < importance(b); });
  return environments;
}

std::string fact_text(std::string name) {
  if (name == "memory_bytes") name = "memory";
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '_' || c == '.'; }, ' ');
  return name;
}

constexpr const char* kUnknownValue = "<span class=\"none\">unknown</span>";

// Value -> numbers (on the page) of the records that have it.
using Values = std::map<std::string, std::vector<size_t>>;

// The facts in which records differ. Each has its values, with the records that have them.
std::vector<std::pair<std::string, Values>> differences(const Environments& environments,
                                                        const std::vector<Record>& records) {
  std::vector<std::pair<std::string, Values>> different_facts;
  for (const std::string& name : environments.fact_names) {
    Values values;
    for (const auto& [facts, numbers] : environments.distinct) {
      const auto at = facts.find(name);
      auto& numbers_of_value = values[at == facts.end() ? "" : at->second];
      numbers_of_value.insert(numbers_of_value.end(), numbers.begin(), numbers.end());
    }
    if (values.size() > 1) different_facts.emplace_back(fact_text(name), std::move(values));
  }
  std::map<std::string, Values> tier_facts;
  for (size_t i = 0; i < records.size(); ++i)
    for (const auto& [role, facts] : records[i].tiers.items()) {
      const Json* const name = member(facts, "name");
      if (name == nullptr || !name->is_string()) continue;
      for (const auto& [key, words] :
           {std::pair{"fs_type", "file system"}, std::pair{"device", "device"},
            std::pair{"mount_options", "mount options"}, std::pair{"striping", "striping"}}) {
        auto& record_numbers =
            tier_facts[fmt::format("tier {}: {}", name->get<std::string>(), words)][member_text(facts, key)];
        if (record_numbers.empty() || record_numbers.back() != i + 1) record_numbers.push_back(i + 1);
      }
    }
  for (auto& [name, values] : tier_facts)
    if (values.size() > 1) different_facts.emplace_back(name, std::move(values));
  return different_facts;
}

std::string differences_html(const std::vector<std::pair<std::string, Values>>& different_facts) {
  HtmlTable table("What differs between the records",
                  {{"fact", Kind::words}, {"value", Kind::words}, {"records", Kind::words}});
  for (const auto& [name, values] : different_facts)
    for (const auto& [value, unsorted] : values) {
      std::vector<size_t> numbers = unsorted;
      std::sort(numbers.begin(), numbers.end());
      table.row({Markup{escape(name) + " <span class=\"mark\">differs</span>"},
                 value.empty() ? Markup{kUnknownValue} : text(value), Markup{record_ranges_html(numbers)}},
                "differs");
    }
  return table.empty() ? "" : table.html();
}

std::string environments_html(const Environments& environments) {
  // With more environments than this, only the table of differences above shows them all.
  constexpr size_t kMostEnvironments = 6;
  if (environments.distinct.empty()) return "";
  const size_t shown_count = std::min(environments.distinct.size(), kMostEnvironments);
  std::vector<HtmlTable::Column> columns{{"fact", Kind::words}};
  for (size_t i = 0; i < shown_count; ++i)
    columns.push_back({environments.distinct.size() == 1
                           ? "every record"
                           : fmt::format("environment {}, {}", i + 1,
                                         count_of(environments.distinct[i].second.size(), "record")),
                       Kind::words, ""});
  const std::string title = environments.distinct.size() == 1 ? "One environment for all records"
                            : environments.distinct.size() == shown_count
                                ? "Environments; rows that differ are marked"
                                : fmt::format("The first {} of {} environments; rows that differ are marked",
                                              shown_count, environments.distinct.size());
  HtmlTable table(title, columns);
  HtmlTable versions("Versions and build", columns);  // those that do not differ
  for (const std::string& name : environments.fact_names) {
    std::vector<Markup> row;
    std::set<std::string> values;
    for (size_t i = 0; i < environments.distinct.size(); ++i) {
      const auto at = environments.distinct[i].first.find(name);
      const std::string value = at == environments.distinct[i].first.end() ? "" : at->second;
      values.insert(value);
      if (i < shown_count) row.push_back(value.empty() ? Markup{kUnknownValue} : text(value));
    }
    const bool differs = values.size() > 1;
    row.insert(row.begin(),
               Markup{escape(fact_text(name)) + (differs ? " <span class=\"mark\">differs</span>" : "")});
    const bool is_version = name.starts_with("versions.") || name.starts_with("build.");
    (is_version && !differs ? versions : table).row(std::move(row), differs ? "differs" : "");
  }
  return table.html() + (versions.empty()
                             ? ""
                             : "<details class=\"part\"><summary>Versions and build</summary>\n" +
                                   versions.html() + "</details>\n");
}

std::string environment_answer(const Environments& environments,
                               const std::vector<std::pair<std::string, Values>>& different_facts) {
  if (different_facts.empty())
    return environments.distinct.empty()
               ? ""
               : answer_html("Nothing differs: all records come from one machine, kernel and build.", "");
  std::vector<std::string> names;
  for (const auto& [name, values] : different_facts) names.push_back(name);
  return answer_html(fmt::format("{} between these records, which may explain different figures: {}.",
                                 count_of(different_facts.size(), "fact differs", "facts differ"),
                                 verdicts::enumerate(names, 8)),
                     "differences", "the values");
}

}  // namespace

std::string environment_section(const std::vector<Record>& records, PageState& state) {
  const std::string tiers = tiers_html(records);
  const Environments environments = environments_of(records, state.output);
  if (tiers.empty() && environments.distinct.empty()) return "";
  const auto different_facts = differences(environments, records);
  return state.open_section(
             "environment", "Environment",
             "The machines, tiers and versions: what others need to compare their numbers with these.",
             environment_answer(environments, different_facts)) +
         "<div id=\"differences\">" + differences_html(different_facts) + "</div>\n" + tiers +
         environments_html(environments) + "</section>\n";
}

}  // namespace penstock::report
