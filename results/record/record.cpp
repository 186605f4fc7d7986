#include "results/record/record.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <system_error>

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/system/fd.hpp"
#include "results/record/statistics.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRecordFileSuffix = ".jsonl";
constexpr size_t kShortIdChars = 8;

// How many intervals have a known length: all, or without lengths_s all but the last.
size_t known_intervals(const Series& series) {
  const size_t all = series.values.size();
  return series.lengths_s.empty() && all > 0 ? all - 1 : all;
}

Json metric_json(const Metric& metric) {
  Json json = Json::object();
  const bool has_value = std::any_of(metric.samples.begin(), metric.samples.end(),
                                     [](double sample) { return std::isfinite(sample); });
  json["value"] = has_value ? Json(metric.value()) : Json();
  json["unit"] = metric.unit;
  json["better"] = better_name(metric.better);
  json["per"] = metric.per;
  if (metric.headline) json["headline"] = true;
  json["samples"] = metric.samples;
  return json;
}

// Makes a text safe as a part of a file name: keeps only letters, digits and `also_allowed`. So
// "2026-11-20T09:30:00Z" becomes "20261120T093000Z". The text may come from an untrusted record; it cannot
// make a path that leads out of the folder.
std::string file_name_part(std::string_view text, std::string_view also_allowed) {
  std::string out;
  for (const char c : text) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (is_plain || also_allowed.find(c) != std::string_view::npos) out += c;
  }
  return out;
}

// Tests whether a file can be made in `folder`: makes one and removes it. Returns 0, or the errno of the step
// that failed.
// If `folder` is missing, it makes the missing folders below a folder with a unique name instead. With their
// real names, another process could begin to use them just before they are removed. `made_folders` gets the
// folders that were made, the outermost first; the caller removes them.
int try_file_in(const fs::path& folder, std::vector<fs::path>& made_folders) {
  std::error_code code;
  fs::path existing = folder;
  while (!fs::exists(fs::symlink_status(existing, code)) && existing.has_relative_path())
    existing = existing.parent_path();
  if (existing != folder) {
    const fs::path missing = folder.lexically_relative(existing);
    std::string unique_folder = (existing / ".penstock-XXXXXX").string();
    if (::mkdtemp(unique_folder.data()) == nullptr) return errno;
    made_folders.push_back(existing = unique_folder);
    for (const fs::path& name : missing) {
      if (name.empty()) continue;  // a slash at the end of the path gives an empty name
      existing /= name;
      if (::mkdir(existing.c_str(), 0777) != 0) return errno;
      made_folders.push_back(existing);
    }
  }
  std::string file = (existing / ".penstock-XXXXXX").string();
  const Fd fd(::mkstemp(file.data()));
  if (!fd) return errno;
  return ::unlink(file.c_str()) == 0 ? 0 : errno;
}

}  // namespace

void add_verdict(Verdict& verdict, std::string& reason, Verdict added, std::string_view added_reason) {
  if (added == verdict) return;
  const Verdict lesser = std::min(verdict, added);
  const std::string lesser_reason = added > verdict ? reason : std::string(added_reason);
  if (added > verdict) {
    verdict = added;
    reason = added_reason;
  }
  const std::string also_text = "; also " + std::string(verdict_name(lesser)) + ": ";
  if (lesser != Verdict::ok && verdict_exit_code(verdict) == 0 && reason.find(also_text) == std::string::npos)
    reason += also_text + lesser_reason;
}

double Metric::value() const {
  return median(samples);
}

void add_sample(Record& record, const MetricInfo& metric, double value) {
  add_sample(record, metric, "", value);
}

void add_sample(Record& record, const MetricInfo& family, std::string_view part, double value) {
  const auto [at, fresh] = record.metrics.try_emplace(family.with(part));
  if (fresh)
    at->second = {std::string(family.unit), family.better, std::string(family.per), {}, family.headline};
  at->second.samples.push_back(value);
}

bool is_declared(std::string_view name, const Metric& metric, std::span<const MetricInfo> table) {
  return std::any_of(table.begin(), table.end(), [&](const MetricInfo& info) {
    return info.matches(name) && info.unit == metric.unit && info.better == metric.better &&
           info.per == metric.per && info.headline == metric.headline;
  });
}

void Series::append_seconds(std::span<const double> by_second, double wall_s) {
  const size_t intervals = std::max<size_t>(1, size_t(std::max(0.0, wall_s) + kSecondTolerance_s));
  const size_t first = values.size();
  values.resize(first + intervals, 0.0);
  lengths_s.resize(first + intervals, 1.0);
  for (size_t i = 0; i < by_second.size(); ++i) values[first + std::min(i, intervals - 1)] += by_second[i];
  lengths_s.back() = wall_s - double(intervals - 1);
}

std::vector<double> Series::rates() const {
  std::vector<double> all;
  for (size_t i = 0; i < known_intervals(*this); ++i)
    all.push_back(values[i] / (lengths_s.empty() ? interval_s : lengths_s[i]));
  return all;
}

std::vector<double> Series::ends_s() const {
  std::vector<double> all;
  double end_s = 0;
  for (size_t i = 0; i < known_intervals(*this); ++i) {
    end_s = lengths_s.empty() ? interval_s * double(i + 1) : end_s + lengths_s[i];
    all.push_back(end_s);
  }
  return all;
}

Json to_json(const Record& record) {
  Json json{{"schema", record.schema},
            {"id", record.id},
            {"started", record.started},
            {"command", record.command},
            {"argv", record.argv}};
  json["label"] = Json::object();
  for (const auto& [key, value] : record.label) json["label"][key] = value;
  json["seed"] = record.seed;
  json["parameters"] = record.parameters;
  if (record.work) json["work"] = *record.work;
  json["tiers"] = record.tiers;
  json["cache"] = record.cache;
  json["corpus"] = record.corpus;
  json["environment"] = record.environment;
  json["metrics"] = Json::object();
  for (const auto& [name, metric] : record.metrics) json["metrics"][name] = metric_json(metric);
  json["series"] = Json::object();
  for (const auto& [name, series] : record.series) {
    json["series"][name] = Json{{"interval_s", series.interval_s}, {"values", series.values}};
    if (!series.lengths_s.empty()) json["series"][name]["lengths_s"] = series.lengths_s;
  }
  if (!record.pair.empty()) json["pair"] = record.pair;
  json["verdict"] = verdict_name(record.verdict);
  json["reason"] = record.reason;
  return json;
}

std::string record_line(const Record& record) {
  return one_line(to_json(record));
}

std::string seal_line(std::string_view record, size_t line, size_t lines) {
  // The record without its last '}': the seal, which has its own '}', is appended to it.
  std::string sealed(record.substr(0, record.size() - 1));
  sealed += fmt::format(R"(,"seal":{{"line":{},"of":{})", line, lines);
  return sealed + seal_checksum(sealed);
}

std::string seal_checksum(std::string_view text) {
  return fmt::format("{}{:08x}{}", kChecksumBegin, crc32c(std::as_bytes(std::span(text))), kChecksumEnd);
}

Result<void> make_results_folder(const fs::path& folder) {
  std::error_code code;
  if (fs::is_directory(folder, code)) return success();
  fs::create_directories(folder, code);
  if (code) return errno_error(code.value(), "cannot make the results folder", folder.string());
  const fs::path parent = fs::absolute(folder, code).lexically_normal().parent_path();
  return sync_folder(parent.empty() ? fs::path(".") : parent);
}

Result<fs::path> write_records(const fs::path& folder, std::span<const Record> records,
                               const FileStepHook& hook) {
  if (records.empty()) return make_error(Errc::internal, "there is no record to write");
  PENSTOCK_TRY(make_results_folder(folder));
  std::string text;
  for (size_t i = 0; i < records.size(); ++i)
    text += seal_line(record_line(records[i]), i + 1, records.size()) + "\n";
  const Record& first = records.front();
  const std::string stem =
      file_name_part(first.started, "") + "-" + file_name_part(first.command, "_-") + "-";
  std::string id = file_name_part(first.id, "").substr(0, kShortIdChars);
  if (id.size() < kShortIdChars) id = random_id(kShortIdChars);
  for (int attempt = 0;; ++attempt) {
    const std::string name = stem + id + std::string(kRecordFileSuffix);
    const Result<void> written = write_durable_file(folder, name, text, false, hook);
    if (written) return folder / name;
    if (written.error().code != Errc::already_exists || attempt == 8) return written.error();
    id = random_id(kShortIdChars);
  }
}

Result<void> check_results_folder(const fs::path& folder) {
  std::error_code code;
  std::vector<fs::path> made_folders;
  const int error_number = try_file_in(fs::absolute(folder, code).lexically_normal(), made_folders);
  for (auto at = made_folders.rbegin(); at != made_folders.rend(); ++at) ::rmdir(at->c_str());
  if (error_number == 0) return success();
  Error error = errno_error(error_number, "cannot write records into", folder.string());
  error.what += " (--results DIR names another folder)";
  return error;
}

}  // namespace penstock
