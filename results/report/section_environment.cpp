// The section about tiers and environments, which marks the facts in which they differ.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "io_backends/core/cli/table.hpp"
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
  if (value.is_number_float()) return format_number(value.get<double>());
  return any_text(value);
}

// Puts the members of nested objects into one map: "build.flags" -> text. The reader of records limits the
// nesting, so the recursion is bounded.
void flatten(const Json& json, const std::string& prefix, const Output& output, Facts& facts,
             std::vector<std::string>& order) {
  for (const auto& [key, value] : json.items()) {
    std::string name = prefix;
    if (!name.empty()) name += '.';
    name += key;
    if (value.is_object()) {
      flatten(value, name, output, facts, order);
      continue;
    }
    // These differ between runs, but do not make runs incomparable.
    if (name == "clock_read_ns" || name == "results" || name == "warnings" || name == "ranks") continue;
    const std::string text = fact_value(name, value, output);
    if (text.empty()) continue;
    facts[name] = text;
    if (std::find(order.begin(), order.end(), name) == order.end()) order.push_back(name);
  }
}

std::string tiers_html(const std::vector<Record>& records) {
  struct Column {
    std::string_view key;
    const char* title;
  };
  constexpr Column kColumns[] = {
      {"name", "tier"},         {"backend", "back end"}, {"fs_type", "file system"},
      {"device", "device"},     {"root", "root"},        {"mount_options", "mounted with"},
      {"striping", "striping"}, {"spec", "as given"},    {"emulated", "emulated"}};
  std::vector<HtmlTable::Column> columns;
  for (const Column& column : kColumns) columns.push_back({column.title, Kind::words});
  HtmlTable table("Tiers", columns);
  std::set<std::vector<std::string>> seen;
  for (const Record& record : records)
    for (const auto& [role, facts] : record.tiers.items()) {
      if (!facts.is_object() || facts.empty()) continue;
      std::vector<std::string> row;
      for (const Column& column : kColumns)
        row.push_back(column.key == "emulated" ? emulation(facts) : member_text(facts, column.key));
      if (seen.insert(row).second) table.row(row);
    }
  return table.empty() ? "" : table.html();
}

// The distinct environments in order of appearance, each with the numbers of its records.
struct Environments {
  std::vector<std::string> fact_names;  // names of facts, in order of appearance
  std::vector<std::pair<Facts, std::vector<std::size_t>>> all;
};

Environments environments_of(const std::vector<Record>& records, const Output& output) {
  Environments environments;
  std::map<Facts, std::size_t> index;
  for (std::size_t i = 0; i < records.size(); ++i) {
    Facts facts;
    flatten(records[i].environment, "", output, facts, environments.fact_names);
    if (facts.empty()) continue;
    const auto [at, fresh] = index.emplace(facts, environments.all.size());
    if (fresh) environments.all.push_back({std::move(facts), {}});
    environments.all[at->second].second.push_back(i + 1);
  }
  return environments;
}

std::string fact_text(std::string name) {
  if (name == "memory_bytes") name = "memory";
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '_' || c == '.'; }, ' ');
  return name;
}

constexpr const char* kUnknownValue = "<span class=\"none\">not said</span>";

using Values =
    std::map<std::string, std::vector<std::size_t>>;  // value -> numbers of the records that have it

// The facts that differ between records, with their values.
std::vector<std::pair<std::string, Values>> differences(const Environments& environments,
                                                        const std::vector<Record>& records) {
  std::vector<std::pair<std::string, Values>> found;
  for (const std::string& name : environments.fact_names) {
    Values values;
    for (const auto& [facts, numbers] : environments.all) {
      const auto at = facts.find(name);
      auto& numbers_of_value = values[at == facts.end() ? "" : at->second];
      numbers_of_value.insert(numbers_of_value.end(), numbers.begin(), numbers.end());
    }
    if (values.size() > 1) found.emplace_back(fact_text(name), std::move(values));
  }
  std::map<std::string, Values> of_tiers;
  for (std::size_t i = 0; i < records.size(); ++i)
    for (const auto& [role, facts] : records[i].tiers.items()) {
      const Json* const name = member(facts, "name");
      if (name == nullptr || !name->is_string()) continue;
      for (const auto& [key, words] :
           {std::pair{"fs_type", "file system"}, std::pair{"device", "device"},
            std::pair{"mount_options", "mounted with"}, std::pair{"striping", "striping"}}) {
        auto& numbers =
            of_tiers[fmt::format("tier {}: {}", name->get<std::string>(), words)][member_text(facts, key)];
        if (numbers.empty() || numbers.back() != i + 1) numbers.push_back(i + 1);
      }
    }
  for (auto& [name, values] : of_tiers)
    if (values.size() > 1) found.emplace_back(name, std::move(values));
  return found;
}

std::string differences_html(const std::vector<std::pair<std::string, Values>>& found) {
  HtmlTable table("What differs between the records",
                  {{"fact", Kind::words}, {"value", Kind::words}, {"records", Kind::words}});
  for (const auto& [name, values] : found)
    for (const auto& [value, unsorted] : values) {
      std::vector<std::size_t> numbers = unsorted;
      std::sort(numbers.begin(), numbers.end());
      table.row({Markup{escape(name) + " <span class=\"mark\">differs</span>"},
                 value.empty() ? Markup{kUnknownValue} : text(value), Markup{record_ranges_html(numbers)}},
                "differs");
    }
  return table.empty() ? "" : table.html();
}

std::string environments_html(const Environments& environments) {
  constexpr std::size_t kColumns = 6;  // the table of differences above covers more environments
  if (environments.all.empty()) return "";
  const std::size_t shown = std::min(environments.all.size(), kColumns);
  std::vector<HtmlTable::Column> columns{{"", Kind::words}};
  for (std::size_t i = 0; i < shown; ++i)
    columns.push_back(
        {environments.all.size() == 1
             ? "every record"
             : fmt::format("environment {}, {} record{}", i + 1, environments.all[i].second.size(),
                           environments.all[i].second.size() == 1 ? "" : "s"),
         Kind::words, ""});
  const std::string title = environments.all.size() == 1 ? "One environment for all records"
                            : environments.all.size() == shown
                                ? "Environments; rows that differ are marked"
                                : fmt::format("The first {} of {} environments; rows that differ are marked",
                                              shown, environments.all.size());
  HtmlTable table(title, columns);
  for (const std::string& name : environments.fact_names) {
    std::vector<Markup> row;
    std::set<std::string> values;
    for (std::size_t i = 0; i < environments.all.size(); ++i) {
      const auto at = environments.all[i].first.find(name);
      const std::string value = at == environments.all[i].first.end() ? "" : at->second;
      values.insert(value);
      if (i < shown) row.push_back(value.empty() ? Markup{kUnknownValue} : text(value));
    }
    const bool differs = values.size() > 1;
    row.insert(row.begin(),
               Markup{escape(fact_text(name)) + (differs ? " <span class=\"mark\">differs</span>" : "")});
    table.row(std::move(row), differs ? "differs" : "");
  }
  return table.html();
}

std::string environment_answer(const Environments& environments,
                               const std::vector<std::pair<std::string, Values>>& found) {
  if (found.empty())
    return environments.all.empty()
               ? ""
               : answer_html("Nothing differs: all records come from one machine, kernel and build.", "");
  std::vector<std::string> names;
  for (const auto& [name, values] : found) names.push_back(name);
  return answer_html(
      fmt::format("{} thing{} differ{} between these records, and may be why figures do: {}.", found.size(),
                  found.size() == 1 ? "" : "s", found.size() == 1 ? "s" : "", verdicts::enumerate(names, 8)),
      "differences", "the values");
}

}  // namespace

std::string environment_section(const std::vector<Record>& records, PageState& state) {
  const std::string tiers = tiers_html(records);
  const Environments environments = environments_of(records, state.output);
  if (tiers.empty() && environments.all.empty()) return "";
  const auto found = differences(environments, records);
  return state.open_section("environment", "Environment",
                            "What someone needs to believe these numbers, or to compare them with others.",
                            environment_answer(environments, found)) +
         "<div id=\"differences\">" + differences_html(found) + "</div>\n" + tiers +
         environments_html(environments) + "</section>\n";
}

}  // namespace penstock::report
