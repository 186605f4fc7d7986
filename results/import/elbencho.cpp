// elbencho (--jsonfile and --csvfile): one record for each phase, with the iterations of the same phase as
// samples. A phase that mixes reads and writes (RWMIX) becomes one record for its writes and one for its
// reads. Rates are those until the last worker was done; `stonewall_bytes_per_s` is that until the first was.
// CSV has rates in whole MiB/s: one of 0 is unknown. Latencies are the upper bounds of elbencho's buckets
// (--lathisto), as in its own output. The tier is the first path on the command line. Its options that have
// no field of their own are `options`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/text.hpp"
#include "results/import/import_parts.hpp"
#include "results/record/json_members.hpp"

namespace penstock {
namespace {

constexpr MetricInfo kPhaseOpRate{kOpRate.name, "1/s", Better::higher, "repeat", kHeadline};
constexpr MetricInfo kEntryRate{"entries_per_s", "1/s", Better::higher, "repeat"};
constexpr MetricInfo kStonewallRate{"stonewall_bytes_per_s", "B/s", Better::higher, "repeat"};
constexpr MetricInfo kElbenchoMetrics[] = {
    imported::kPayloadRate,  kPhaseOpRate,        kEntryRate,        kStonewallRate,
    imported::kPayloadBytes, imported::kWallTime, imported::kLatency};

// Where a column of the CSV is in the JSON: its title, then the names of members, from the outermost, with
// nullptr after the last. Columns that are not here are not read.
constexpr std::array<const char*, 5> kColumns[] = {
    {"ISO date", "iso_start_date"},
    {"label", "label"},
    {"operation", "phase_type"},
    {"path type", "config", "path_type"},
    {"paths", "config", "paths"},
    {"hosts", "config", "hosts"},
    {"threads", "config", "threads"},
    {"dirs", "config", "dirs"},
    {"files", "config", "files"},
    {"file size", "config", "file_size"},
    {"block size", "config", "block_size"},
    {"direct IO", "config", "direct_io"},
    {"random", "config", "random_offsets"},
    {"random aligned", "config", "random_aligned"},
    {"IO depth", "config", "io_depth"},
    {"shared paths", "config", "shared_service_paths"},
    {"truncate", "config", "truncate_files"},
    {"version", "config", "version"},
    {"command", "config", "command"},
    {"time ms [last]", "last_done", "elapsed_time_ms"},
    {"entries/s [last]", "last_done", "entries/s"},
    {"IOPS [last]", "last_done", "iops"},
    {"MiB/s [first]", "first_done", "bytes/s"},
    {"MiB/s [last]", "last_done", "bytes/s"},
    {"Ent lat us [avg]", "last_done", "latency", "entries", "avg_us"},
    {"IO lat us [avg]", "last_done", "latency", "IO", "avg_us"},
    {"rwmix read entries/s [last]", "last_done", "rwmix_read", "entries/s"},
    {"rwmix read IOPS [last]", "last_done", "rwmix_read", "iops"},
    {"rwmix read MiB/s [first]", "first_done", "rwmix_read", "bytes/s"},
    {"rwmix read MiB/s [last]", "last_done", "rwmix_read", "bytes/s"}};
constexpr double kBytesPerMiB = 1 << 20;
constexpr std::string_view kHeaderBegin = "ISO date,label,path type,";

// Parameters that elbencho's configuration has. The first name is the record's.
constexpr NamedText kNumbers[] = {{"threads", "threads"},
                                  {"hosts", "hosts"},
                                  {"depth", "io_depth"},
                                  {"block", "block_size"},
                                  {"paths", "paths"},
                                  {"dirs", "dirs"},
                                  {"files", "files"},
                                  {"file_size", "file_size"},
                                  {"custom_tree_dirs", "custom_tree_dirs"},
                                  {"files_not_shared", "files_not_shared"},
                                  {"custom_tree_files_shared", "custom_tree_files_shared"}};
constexpr NamedText kFlags[] = {{"direct", "direct_io"},
                                {"random", "random_offsets"},
                                {"random_aligned", "random_aligned"},
                                {"truncate", "truncate_files"},
                                {"shared_paths", "shared_service_paths"}};
// Options that are parameters of their own, say which phases there are, or how results are shown. A '=' at
// the end: it has a value.
constexpr std::string_view kElbenchoOptions[] = {"-t=",           "--threads=",
                                                 "-b=",           "--block=",
                                                 "-s=",           "--size=",
                                                 "-n=",           "--dirs=",
                                                 "-N=",           "--files=",
                                                 "--iodepth=",    "--direct",
                                                 "--rand",        "-w",
                                                 "--write",       "-r",
                                                 "--read",        "-d",
                                                 "--mkdirs",      "-D",
                                                 "--deldirs",     "-F",
                                                 "--delfiles",    "--stat",
                                                 "--iterations=", "-i=",
                                                 "--hosts=",      "--hostsfile=",
                                                 "--label=",      "--nolive",
                                                 "--live1",       "--live1n",
                                                 "--jsonfile=",   "--csvfile=",
                                                 "--resfile=",    "--livecsv=",
                                                 "--livejson=",   "--liveint=",
                                                 "--lat",         "--latpercent",
                                                 "--lathisto",    "--latpercent9s=",
                                                 "--allelapsed",  "--cpu",
                                                 "--base10",      "--nocsvlabels",
                                                 "--opslog=",     "--log=",
                                                 "--svcping",     "--dirstats"};

bool is_path(const std::vector<std::string>& words, size_t at) {
  if (words[at].starts_with('-') || words[at].find('/') == std::string::npos) return false;
  return at == 0 || !words[at - 1].starts_with("--") || !words[at - 1].ends_with("file");
}

// Takes the paths out of the command line, which has them at its end or right after the program, and returns
// the first. "" if they are at neither place.
std::string take_path(std::vector<std::string>& words) {
  if (words.empty()) return "";
  size_t begin = words.size();
  while (begin > 1 && is_path(words, begin - 1)) --begin;
  size_t end = words.size();
  if (begin == end)
    for (begin = end = 1; end < words.size() && is_path(words, end);) ++end;
  if (begin >= end) return "";
  std::string path = words[begin];
  words.erase(words.begin() + ptrdiff_t(begin), words.begin() + ptrdiff_t(end));
  return path.starts_with("file://") ? path.substr(7) : path;
}

void add_bucket_percentiles(Record& record, const Json& buckets) {
  std::map<double, double> bins;
  if (buckets.is_array())
    for (const Json& bucket : buckets) {
      std::string range = member_text(bucket, "range");  // "76-91us"
      range = range.substr(range.find('-') + 1);
      const auto bound_us = imported::finite_number(range.substr(0, range.find("us")));
      const auto count = imported::number_of(bucket, "count");
      if (bound_us && count && *count > 0) bins[*bound_us] += *count;
    }
  for (const auto& [part, percent] : {std::pair("p50", 50.0), {"p95", 95.0}, {"p99", 99.0}, {"p999", 99.9}})
    if (const auto bound_us = imported::percentile_of_bins(bins, percent))
      add_sample(record, imported::kLatency, part, *bound_us * 1e3);
}

// `mix` is "rwmix_read" for the reads of a mixed phase, else "".
void add_figures(Record& record, const Json& document, const std::string& mix) {
  const auto part = [&](const Json& whole) -> const Json& {
    return mix.empty() ? whole : member_object(whole, mix);
  };
  const Json& last = member_object(document, "last_done");
  const auto bytes_per_s = imported::number_of(part(last), "bytes/s");
  const auto iops = imported::number_of(part(last), "iops");
  const auto entries_per_s = imported::number_of(part(last), "entries/s");
  imported::add_if_known(record, imported::kPayloadRate, bytes_per_s);
  if (bytes_per_s || iops)
    imported::add_if_known(record, kOpRate, iops);
  else
    imported::add_if_known(record, kPhaseOpRate, entries_per_s);
  imported::add_if_known(record, kEntryRate, entries_per_s);
  imported::add_if_known(record, kStonewallRate,
                         imported::number_of(part(member_object(document, "first_done")), "bytes/s"));
  imported::add_if_known(record, imported::kPayloadBytes, imported::number_of(part(last), "bytes"));
  // It is in whole milliseconds: 0 is unknown.
  if (const auto elapsed_ms = imported::number_of(last, "elapsed_time_ms"); elapsed_ms && *elapsed_ms > 0)
    add_sample(record, imported::kWallTime, *elapsed_ms / 1e3);
  const bool has_blocks = bytes_per_s || iops;
  const Json& latency = member_object(member_object(last, "latency"), has_blocks ? "IO" : "entries");
  if (const auto mean_us = imported::number_of(part(latency), "avg_us"))
    add_sample(record, imported::kLatency, "mean", *mean_us * 1e3);
  const Json& histogram = part(member_object(latency, "histogram"));
  if (const Json* const buckets = member(histogram, "buckets")) add_bucket_percentiles(record, *buckets);
}

void add_parameters_of(Record& record, const Json& config) {
  imported::add_counts(record, config, kNumbers);
  for (const auto& [name, elbencho_name] : kFlags)
    if (const std::string text = member_any_text(config, elbencho_name); !text.empty())
      record.parameters[std::string(name)] = text == "1" || text == "true";
  if (const std::string type = member_text(config, "path_type"); !type.empty())
    record.parameters["path_type"] = type;
  std::vector<std::string> words = imported::command_arguments(member_text(config, "command"));
  if (!words.empty()) record.argv = words;
  imported::set_tier(record, take_path(words), "");
  if (const std::string options = imported::options_text(words, 1, kElbenchoOptions); !options.empty())
    record.parameters["options"] = options;
}

void import_elbencho(const Json& document, const std::string&, Imported& found) {
  const Json& config = member_object(document, "config");
  const std::string phase = member_text(document, "phase_type");
  const std::string date = member_text(document, "iso_start_date");
  // The same id, whether this phase was read from CSV or from JSON.
  const std::string key = date.substr(0, 19) + phase + member_text(config, "command");
  const std::string id = fmt::format("{:08x}", crc32c(std::as_bytes(std::span(key))));
  const bool is_mix = phase.starts_with("RWMIX");
  for (const std::string mix : {"", "rwmix_read"}) {
    if (!mix.empty() && member_object(member_object(document, "last_done"), mix).empty()) continue;
    Record record = imported::new_record("elbencho", "elbencho", member_text(config, "version"));
    record.id = fmt::format("{}-{}", id, mix.empty() ? 0 : 1);
    record.started = imported::utc_of_date(date);
    if (const std::string label = member_text(document, "label"); !label.empty())
      record.label["label"] = label;
    record.parameters["operation"] = !mix.empty() ? "read" : is_mix ? "write" : lower_case(phase);
    record.parameters["phase"] = phase;
    add_parameters_of(record, config);
    if (record.parameters.value("direct", false)) record.cache["client_data"] = "bypassed";
    imported::set_work(record);
    add_figures(record, document, mix);
    if (record.metrics.empty()) {
      // SYNC and DROPCACHE move nothing; they are no measurement.
      if (phase == "SYNC" || phase == "DROPCACHE") continue;
      add_verdict(record.verdict, record.reason, Verdict::failed,
                  fmt::format("elbencho wrote no figure of its phase {}", phase));
    }
    imported::add_repeat(found, std::move(record));
  }
}

bool is_elbencho(const Json& document) {
  return !member_text(document, "phase_type").empty() && member(document, "last_done") != nullptr &&
         member(member_object(document, "config"), "threads") != nullptr;
}

std::vector<std::string_view> csv_fields(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::string_view rest = line;;) {
    const size_t comma = rest.find(',');
    fields.push_back(rest.substr(0, comma));
    if (comma == std::string_view::npos) return fields;
    rest.remove_prefix(comma + 1);
  }
}

// A row of the CSV as the JSON that elbencho would have written.
Json document_of_row(const std::vector<std::string_view>& titles,
                     const std::vector<std::string_view>& fields) {
  Json document = Json::object();
  for (const char* const part : {"config", "first_done", "last_done"}) document[part] = Json::object();
  for (const auto& column : kColumns) {
    const auto title = std::find(titles.begin(), titles.end(), std::string_view(column[0]));
    if (title == titles.end()) continue;
    const std::string_view field = fields[size_t(title - titles.begin())];
    // A rate in MiB/s is rounded down, so that 0 is unknown. The JSON has it in bytes per second.
    const bool is_rate = title->find("MiB/s") != std::string_view::npos;
    const auto mib_per_s = is_rate ? imported::finite_number(field) : std::nullopt;
    if (field.empty() || (is_rate && mib_per_s.value_or(0) <= 0)) continue;
    Json* at = &document;
    for (const char* const name : std::span(column).subspan(1))
      if (name != nullptr) at = &(*at)[name];
    *at = is_rate ? Json(*mib_per_s * kBytesPerMiB) : Json(field);
  }
  return document;
}

bool is_elbencho_csv(std::string_view text) {
  return text.starts_with(kHeaderBegin) ||
         text.find("\n" + std::string(kHeaderBegin)) != std::string_view::npos;
}

void import_elbencho_csv(std::string_view text, const std::string& id, Imported& found) {
  std::vector<std::string_view> titles;
  size_t bad_rows = 0;
  std::string first_bad_row;
  for (size_t line_number = 1; !text.empty(); ++line_number) {
    const bool is_cut = text.find('\n') == std::string_view::npos;
    const std::string_view line = trim(take_part(text, '\n'), "\r");
    if (line.starts_with(kHeaderBegin)) {
      titles = csv_fields(line);
      continue;
    }
    if (titles.empty() || trim(line).empty()) continue;
    const std::vector<std::string_view> fields = csv_fields(line);
    const bool is_whole = !is_cut && fields.size() == titles.size();
    const Json document = is_whole ? document_of_row(titles, fields) : Json::object();
    if (is_elbencho(document)) {
      import_elbencho(document, id, found);
    } else if (bad_rows++ == 0) {
      first_bad_row = is_cut     ? fmt::format("line {} has no end, so the file is truncated", line_number)
                      : is_whole ? fmt::format("line {} names no operation", line_number)
                                 : fmt::format("line {} has {} fields where the first line has {}",
                                               line_number, fields.size(), titles.size());
    }
  }
  if (bad_rows > 0)
    found.problems.push_back(
        fmt::format("{}{}: it is not read", first_bad_row,
                    bad_rows == 1 ? "" : fmt::format(", and {} more such lines", bad_rows - 1)));
}

}  // namespace

const Importer importer_elbencho{.command = "elbencho",
                                 .program = "elbencho",
                                 .form = "--jsonfile, --csvfile",
                                 .metrics = kElbenchoMetrics,
                                 .is_document = is_elbencho,
                                 .import_document = import_elbencho,
                                 .is_text = is_elbencho_csv,
                                 .import_text = import_elbencho_csv};

}  // namespace penstock
