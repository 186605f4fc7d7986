// Where it was measured: tiers and machines, with what differs between them marked.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "results/cells.hpp"
#include "results/report/html.hpp"
#include "results/report/sections.hpp"
#include "results/table.hpp"

namespace penstock::report {
namespace {

using Kind = HtmlTable::Kind;
using Facts = std::map<std::string, std::string>;

std::string value_text(const std::string& name, const Json& value, const Output& output) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() && name.ends_with("memory_bytes")) return format_bytes(value.get<double>(), output);
  if (value.is_number_float()) return format_number(value.get<double>());
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// "build.flags" -> text. Depth is bounded by what the store reads.
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
    // These differ from run to run without making two runs incomparable.
    if (name == "clock_read_ns" || name == "results" || name == "warnings") continue;
    const std::string text = value_text(name, value, output);
    if (text.empty()) continue;
    facts[name] = text;
    if (std::find(order.begin(), order.end(), name) == order.end()) order.push_back(name);
  }
}

std::string tiers_html(const std::vector<Record>& records) {
  struct Column {
    const char* key;
    const char* title;
  };
  constexpr Column kColumns[] = {
      {"name", "tier"},         {"backend", "back end"}, {"fs_type", "file system"},
      {"device", "device"},     {"root", "root"},        {"mount_options", "mounted with"},
      {"striping", "striping"}, {"spec", "as given"},    {"emulated", "emulated"}};
  std::vector<HtmlTable::Column> columns;
  for (const Column& column : kColumns) columns.push_back({column.title, Kind::words, ""});
  HtmlTable table("Tiers", columns);
  std::set<std::vector<std::string>> seen;
  for (const Record& record : records)
    for (const auto& [role, facts] : record.tiers.items()) {
      if (!facts.is_object() || facts.empty()) continue;
      std::vector<std::string> row;
      for (const Column& column : kColumns) {
        if (std::string_view(column.key) == "emulated") {
          row.push_back(emulation(facts));
          continue;
        }
        const auto at = facts.find(column.key);
        row.push_back(at != facts.end() && at->is_string() ? at->get<std::string>() : "");
      }
      if (seen.insert(row).second) table.row(row);
    }
  return table.empty() ? "" : table.html();
}

std::string machines_html(const std::vector<Record>& records, const Output& output) {
  std::vector<std::string> order;
  std::vector<std::pair<Facts, std::size_t>> machines;  // and how many records each has
  for (const Record& record : records) {
    Facts facts;
    flatten(record.environment, "", output, facts, order);
    if (facts.empty()) continue;
    const auto at =
        std::find_if(machines.begin(), machines.end(), [&](const auto& one) { return one.first == facts; });
    if (at == machines.end())
      machines.emplace_back(std::move(facts), 1);
    else
      ++at->second;
  }
  if (machines.empty()) return "";
  std::vector<HtmlTable::Column> columns{{"", Kind::words, ""}};
  for (std::size_t i = 0; i < machines.size(); ++i)
    columns.push_back({machines.size() == 1
                           ? "every record"
                           : fmt::format("environment {}, {} record{}", i + 1, machines[i].second,
                                         machines[i].second == 1 ? "" : "s"),
                       Kind::words, ""});
  HtmlTable table(
      machines.size() == 1 ? "One environment for all records" : "Environments; rows that differ are marked",
      columns);
  for (const std::string& name : order) {
    std::vector<Markup> row;
    std::set<std::string> values;
    for (const auto& [facts, count] : machines) {
      const auto at = facts.find(name);
      const std::string value = at == facts.end() ? "" : at->second;
      values.insert(value);
      row.push_back(value.empty() ? Markup{"<span class=\"none\">not said</span>"} : text(value));
    }
    const bool differs = values.size() > 1;
    std::string words = name;
    if (words == "memory_bytes") words = "memory";
    std::replace_if(
        words.begin(), words.end(), [](char c) { return c == '_' || c == '.'; }, ' ');
    row.insert(row.begin(), Markup{escape(words) + (differs ? " <span class=\"mark\">differs</span>" : "")});
    table.row(std::move(row), differs ? "differs" : "");
  }
  return table.html();
}

}  // namespace

std::string environment_section(const std::vector<Record>& records, PageState& state) {
  const std::string tiers = tiers_html(records);
  const std::string machines = machines_html(records, state.output);
  if (tiers.empty() && machines.empty()) return "";
  return state.open_section("environment", "Environment",
                            "What someone needs to believe these numbers, or to compare them with others.") +
         tiers + machines + "</section>\n";
}

}  // namespace penstock::report
