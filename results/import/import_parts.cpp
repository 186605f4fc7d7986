#include "results/import/import_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <utility>

#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/text.hpp"
#include "io_backends/core/utc_time.hpp"
#include "results/record/json_members.hpp"

namespace penstock::imported {
namespace {

constexpr double kLatestUnixTime_s = 32503680000;  // times after the year 3000 are errors

// Replaces the values of options such as --s3key, --s3secret and --S3.secret-key=VALUE.
void hide_secrets(std::vector<std::string>& words) {
  constexpr std::string_view kSecrets[] = {"key", "secret", "token", "password", "cred"};
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const std::string name = lower_case(words[i].substr(0, equals));
    const bool is_secret = name.starts_with('-') &&
                           std::any_of(std::begin(kSecrets), std::end(kSecrets), [&](std::string_view part) {
                             return name.find(part) != std::string::npos;
                           });
    if (!is_secret) continue;
    if (equals != std::string::npos)
      words[i].replace(equals + 1, std::string::npos, "***");
    else if (i + 1 < words.size() && !words[i + 1].starts_with('-'))
      words[i + 1] = "***";
  }
}

}  // namespace

std::optional<double> finite_number(std::string_view text) {
  text = trim(text);
  double number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  return is_whole && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::optional<double> number_of(const Json& object, std::string_view name) {
  if (const auto number = member_number(object, name)) return number;
  return finite_number(member_text(object, name));
}

void add_if_known(Record& record, const MetricInfo& metric, std::optional<double> value, double factor) {
  if (value && *value >= 0 && std::isfinite(*value * factor)) add_sample(record, metric, *value * factor);
}

void add_counts(Record& record, const Json& object, std::span<const NamedText> names) {
  for (const auto& [parameter, name] : names)
    if (const auto count = number_of(object, name); count && *count >= 0 && *count < 1e18)
      record.parameters[std::string(parameter)] = uint64_t(*count);
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    valid += length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(0, length);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return valid;
}

std::string utc_time(double seconds) {
  if (!(seconds > 0) || seconds > kLatestUnixTime_s) return "";
  return utc_text(static_cast<std::time_t>(seconds));
}

std::string utc_of_date(const std::string& date) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, taken = 0;
  const int fields = std::sscanf(date.c_str(), "%4d-%2d-%2d%*1[T ]%2d:%2d:%2d%n", &year, &month, &day, &hour,
                                 &minute, &second, &taken);
  const std::chrono::year_month_day calendar_day{std::chrono::year(year), std::chrono::month(unsigned(month)),
                                                 std::chrono::day(unsigned(day))};
  if (fields < 6 || !calendar_day.ok()) return "";
  const std::string offset = date.substr(std::min(date.find_first_of("+-Z", size_t(taken)), date.size()));
  int offset_hours = 0, offset_minutes = 0;
  if (std::sscanf(offset.c_str(), "%*1[+-]%2d:%2d", &offset_hours, &offset_minutes) < 2)
    std::sscanf(offset.c_str(), "%*1[+-]%2d%2d", &offset_hours, &offset_minutes);
  const int offset_s = (offset.starts_with('-') ? -1 : 1) * (offset_hours * 60 + offset_minutes) * 60;
  const auto midnight = std::chrono::sys_days(calendar_day).time_since_epoch() / std::chrono::seconds(1);
  return utc_time(double(midnight + hour * 3600 + minute * 60 + second - offset_s));
}

Record new_record(std::string_view command, std::string_view program, std::string_view version) {
  Record record;
  record.command = command;
  record.argv = {std::string(program)};
  record.label["peer"] = std::string(program) + (version.empty() ? "" : "-") + std::string(version);
  if (!version.empty()) record.environment["versions"] = Json{{std::string(program), std::string(version)}};
  for (const char* const layer : {"client_data", "client_metadata", "server", "host"})
    record.cache[layer] = "unknown";
  return record;
}

void set_tier(Record& record, const std::string& path, std::string_view backend) {
  if (path.empty()) return;
  record.parameters["tier"] = path;
  record.tiers["data"] = Json{{"name", path}, {"backend", std::string(backend)}, {"root", path}};
}

void set_work(Record& record) {
  record.work.emplace();
  for (const auto& [name, value] : record.parameters.items())
    if (name != "tier") record.work->push_back(name);
}

std::vector<std::string> command_arguments(std::string_view command) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (const char c : command) {
    if (quote == 0 && (c == ' ' || c == '\t')) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    } else {
      words.back() += c;
    }
  }
  hide_secrets(words);
  return words;
}

std::string options_text(const std::vector<std::string>& words, size_t begin,
                         std::span<const std::string_view> outputs) {
  std::string text;
  for (size_t i = begin; i < words.size(); ++i) {
    const std::string& word = words[i];
    const size_t equals = word.find('=');
    const std::string_view key = std::string_view(word).substr(0, equals);
    const auto output = std::find_if(outputs.begin(), outputs.end(), [&](std::string_view name) {
      return (name.ends_with('=') ? name.substr(0, name.size() - 1) : name) == key;
    });
    if (output == outputs.end()) {
      text += (text.empty() ? "" : " ") + word;
    } else if (output->ends_with('=') && equals == std::string::npos) {
      ++i;
    }
  }
  return text;
}

std::optional<double> percentile_of_bins(const std::map<double, double>& bins, double percent) {
  double total = 0;
  for (const auto& [bound, count] : bins) total += count;
  double seen = 0;
  for (const auto& [bound, count] : bins)
    if ((seen += count) >= total * percent / 100) return bound;
  return std::nullopt;
}

void add_repeat(Imported& found, Record record) {
  const Json work{record.command, record.parameters, record.label, record.environment,
                  verdict_name(record.verdict)};
  const auto [at, is_new] = found.repeats.emplace(work.dump(), found.records.size());
  if (is_new) {
    found.records.push_back(std::move(record));
    return;
  }
  Record& same = found.records[at->second];
  std::erase_if(same.metrics, [&](const auto& one) { return !record.metrics.contains(one.first); });
  for (auto& [name, metric] : same.metrics) {
    const std::vector<double>& samples = record.metrics[name].samples;
    metric.samples.insert(metric.samples.end(), samples.begin(), samples.end());
  }
}

}  // namespace penstock::imported
