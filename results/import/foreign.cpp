#include "results/import/foreign.hpp"

#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/text.hpp"
#include "io_backends/core/utc_time.hpp"
#include "results/record/json_members.hpp"

namespace penstock {
namespace {

constexpr double kLatestUnixTime_s = 32503680000;            // times after the year 3000 are errors
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // of UTF-8; editors on Windows write it
// The root's mount point contains every path, so it says nothing about the tier.
constexpr std::string_view kRootMount = "/";

// The text from the '{' at `begin` to the last '}' that starts a line.
std::string_view object_at(std::string_view text, size_t begin) {
  const size_t end = text.rfind("\n}");
  return end == std::string_view::npos || end < begin ? text.substr(begin)
                                                      : text.substr(begin, end + 2 - begin);
}

// How long the word for NaN or infinity is with which `text` begins, as C and Python print them: "-nan",
// "inf", "NaN", "-Infinity", "nan(ind)". 0: it begins with none.
size_t non_finite_length(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  const size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  for (const std::string_view word : {"infinity", "inf", "nan"}) {
    if (!equals_ignoring_case(text.substr(sign, word.size()), word)) continue;
    const size_t end = sign + word.size();
    if (!text.substr(end).starts_with('(')) return end;
    const size_t close = text.find_first_not_of(kLetters, end + 1);
    return close == std::string_view::npos || text[close] != ')' ? 0 : close + 1;
  }
  return 0;
}

// Replaces NaN and infinity by null. Google Benchmark and fio write them, although JSON does not allow them.
std::string replace_non_finite_numbers(std::string_view text) {
  std::string json;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      json += text.substr(i, 2);
      ++i;
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    const size_t length = in_string ? 0 : non_finite_length(text.substr(i));
    json += length == 0 ? std::string_view(&text[i], 1) : std::string_view("null");
    if (length > 0) i += length - 1;
  }
  return json;
}

// The JSON in the output of a program; nothing if there is none.
std::optional<Json> parse_object(std::string_view object) {
  std::optional<Json> json = Json::try_parse(object);
  return json ? json : Json::try_parse(replace_non_finite_numbers(object));
}

// The JSON object of a program's output, and its text. It begins at the first '{' that starts a line. If that
// is no JSON, it begins at the last one: fio writes an object at each --status-interval, and the last object
// has the sums of the whole run.
std::pair<std::optional<Json>, std::string_view> find_json_object(std::string_view text) {
  const size_t line = text.find("\n{");
  if (!text.starts_with('{') && line == std::string_view::npos) return {};
  std::string_view object = object_at(text, text.starts_with('{') ? 0 : line + 1);
  std::optional<Json> json = parse_object(object);
  if (!json && line != std::string_view::npos) {
    object = object_at(text, text.rfind("\n{") + 1);
    json = parse_object(object);
  }
  return {std::move(json), object};
}

bool is_below(const std::filesystem::path& path, const std::filesystem::path& folder) {
  if (folder.empty() || path.empty()) return false;
  const std::filesystem::path relative =
      path.lexically_normal().lexically_relative(folder.lexically_normal());
  return !relative.empty() && *relative.begin() != "..";
}

using TierFolders = std::map<std::string, std::string>;  // folder -> name of the tier in it

// The name of the tier whose folder contains `path`. If several do, it is the one with the longest path; ""
// if none does.
std::string nearest_tier(const TierFolders& folders, const std::string& path) {
  std::string_view nearest;
  std::string name;
  for (const auto& [folder, tier] : folders)
    if (is_below(path, folder) && (name.empty() || folder.size() > nearest.size())) {
      nearest = folder;
      name = tier;
    }
  return name;
}

}  // namespace

std::string utc_time(double seconds) {
  if (!(seconds > 0) || seconds > kLatestUnixTime_s) return "";
  return utc_text(static_cast<std::time_t>(seconds));
}

std::optional<Imported> import_foreign(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const auto [json, object] = find_json_object(text);
  if (!json || !json->is_object()) return std::nullopt;
  const std::string id = fmt::format("{:08x}", crc32c(std::as_bytes(std::span(object))));
  if (is_google_benchmark(*json)) return import_google_benchmark(*json, id);
  if (is_fio(*json)) return import_fio(*json, id);
  return std::nullopt;
}

bool is_json(std::string_view text) {
  const std::string_view first_line = text.substr(0, text.find('\n'));
  return Json::try_parse(text) || Json::try_parse(first_line) || find_json_object(text).first;
}

std::string json_fault(std::string_view text) {
  const bool is_whole = text.starts_with('{') || text.starts_with('[');
  const size_t line = is_whole ? std::string_view::npos : text.find("\n{");
  const size_t begin = line == std::string_view::npos ? 0 : line + 1;
  try {
    std::ignore = Json::parse(text.substr(begin));
    return "";
  } catch (const JsonError& error) {
    if (error.byte == 0) return error.what();
    return fmt::format("byte {}{}: {}", begin + error.byte,
                       begin + error.byte > text.size() ? ", at the end" : "", printable(error.what()));
  }
}

void name_fio_tiers(std::span<Record* const> records) {
  TierFolders roots;
  TierFolders mounts;
  for (const Record* record : records) {
    const Json& data = member_object(record->tiers, "data");
    const std::string root = member_text(data, "root");
    const std::string name = member_text(data, "name");
    if (record->command == "fio" || root.empty() || name.empty()) continue;
    roots.emplace(root, name);
    if (const std::string mount = member_text(data, "mount_point"); mount != kRootMount)
      mounts.emplace(mount, name);
  }
  for (Record* record : records) {
    const std::string path = member_text(member_object(record->tiers, "data"), "root");
    if (record->command != "fio" || path.empty()) continue;
    std::string name = nearest_tier(roots, path);
    if (name.empty()) name = nearest_tier(mounts, path);
    if (name.empty()) continue;
    record->tiers["data"]["name"] = name;
    record->parameters["tier"] = name;
  }
}

}  // namespace penstock
