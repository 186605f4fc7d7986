// fio (version 2 and later, json and json+, also with --client): one record for each job and direction (read,
// write, trim) in which the job did something. A job that did nothing becomes one failed record. Clones of a
// job (numjobs without group_reporting) become one record, and the wall time is that of the slowest clone.
// Latencies are fio's own percentiles. Those of several clones are merged from the distributions of json+.
// Without these they are left out. Of the objects that --status-interval writes, the last has all of the run.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <system_error>
#include <tuple>
#include <utility>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/units.hpp"
#include "results/import/import_parts.hpp"
#include "results/record/json_members.hpp"

namespace penstock {
namespace {

// "mixed" is the sum of read, write and trim (fio's option unified_rw_reporting)
constexpr std::array<std::string_view, 4> kDirections{"read", "write", "trim", "mixed"};
constexpr std::string_view kSumOfClients = "All clients";
constexpr double kMostErrno = 4096;
constexpr double kMostCount = 1e9;

// The value of a fio option: the job's own value, or else the value in the global options; "" if neither has
// the option.
std::string option(const Json& fio, const Json& job, std::string_view name) {
  const std::string job_value = member_text(member_object(job, "job options"), name);
  return job_value.empty() ? member_text(member_object(fio, "global options"), name) : job_value;
}

std::string first_option(const Json& fio, const Json& job, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (std::string text = option(fio, job, name); !text.empty()) return text;
  return "";
}

double parse_number(const std::string& text) {
  double number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() && number >= 0 ? number : 0;
}

// Parses a number of jobs or of operations in flight. 1 if the text is empty or invalid.
uint64_t count_of(const std::string& text) {
  const double number = parse_number(text);
  return number >= 1 && number <= kMostCount ? uint64_t(number) : 1;
}

// The results of one job in one direction, one for each of its clones (numjobs).
using Clones = std::vector<const Json*>;

// Whether the result is from fio before 2.99, which reported bytes in KiB, rates in KiB/s and latencies in
// microseconds.
bool is_from_early_fio(const Json& direction) {
  return member(direction, "io_kbytes") == nullptr && member(direction, "bw_bytes") == nullptr;
}

double bytes_of(const Json& direction) {
  return member_number(direction, "io_bytes").value_or(0) * (is_from_early_fio(direction) ? 1024 : 1);
}

double sum_of(const Clones& clones, std::string_view name) {
  double sum = 0;
  for (const Json* clone : clones) sum += member_number(*clone, name).value_or(0);
  return sum;
}

double seconds_of(const Clones& clones) {
  double longest_ms = 0;
  for (const Json* clone : clones)
    longest_ms = std::max(longest_ms, member_number(*clone, "runtime").value_or(0));
  return longest_ms * 1e-3;
}

struct Latencies {
  std::string_view name;  // "lat": from submission; "clat": without the time that submission took
  std::vector<const Json*> clones;
  double ns_per_unit = 1;
};

// The total latencies (lat_percentiles) if every clone reports them. Otherwise the completion latencies if
// every clone reports those. Absent if not every clone reports the same kind.
std::optional<Latencies> latencies_of(const Clones& clones) {
  for (const auto& [name, fio_name, ns_per_unit] :
       {std::tuple("lat", "lat_ns", 1.0), std::tuple("clat", "clat_ns", 1.0),
        std::tuple("clat", "clat", 1e3)}) {
    Latencies found{name, {}, ns_per_unit};
    for (const Json* clone : clones) {
      const Json& latency = member_object(*clone, fio_name);
      if (!member_object(latency, "percentile").empty() || !member_object(latency, "bins").empty())
        found.clones.push_back(&latency);
    }
    if (found.clones.size() == clones.size()) return found;
  }
  return std::nullopt;
}

// A percentile of the operations of all clones together: the smallest latency within which `percent` of these
// operations completed.
std::optional<double> merged_percentile(const Latencies& latencies, double percent) {
  std::map<double, double> bins;
  for (const Json* latency : latencies.clones) {
    const Json& fio_bins = member_object(*latency, "bins");
    if (fio_bins.empty()) return std::nullopt;
    for (const auto& [time, count] : fio_bins.items()) {
      const double number = count.is_number() ? count.get<double>() : 0;
      if (number <= 0) continue;
      bins[parse_number(time)] += number;
    }
  }
  return imported::percentile_of_bins(bins, percent);
}

std::optional<double> percentile_of(const Latencies& latencies, double percent) {
  const auto found = latencies.clones.size() == 1
                         ? member_number(member_object(*latencies.clones.front(), "percentile"),
                                         fmt::format("{:.6f}", percent))
                         : std::nullopt;
  const auto latency = found ? found : merged_percentile(latencies, percent);
  // With --gtod_reduce and the like fio measures no latencies and writes zeros.
  return latency && *latency > 0 ? std::optional(*latency * latencies.ns_per_unit) : std::nullopt;
}

constexpr MetricInfo kFioRate{"payload_bytes_per_s", "B/s", Better::higher, "run", kHeadline};
constexpr MetricInfo kErrors{"errors", "1", Better::lower, "run", kHeadline};
constexpr MetricInfo kPayloadBytes{"payload_bytes", "B"};
constexpr MetricInfo kWallTime{"wall_s", "s"};
constexpr MetricInfo kLatency{"latency_ns_*", "ns", Better::lower};
constexpr MetricInfo kFioMetrics[] = {kFioRate, kErrors, kOpRate, kPayloadBytes, kWallTime, kLatency};

void add_latencies(Record& record, const Clones& clones) {
  const auto latencies = latencies_of(clones);
  if (!latencies) return;
  const size_t metrics_before = record.metrics.size();
  for (const double percent : {50.0, 95.0, 99.0, 99.9})
    if (const auto time = percentile_of(*latencies, percent))
      add_sample(record, kLatency, percent == 99.9 ? "p999" : fmt::format("p{:.0f}", percent), *time);
  if (record.metrics.size() > metrics_before) record.parameters["latency"] = latencies->name;
}

// The rate of bytes and of operations. Absent if fio did not write it and the run was too short for its
// clock, which counts milliseconds: fio writes a rate of 0 then.
void add_rates(Record& record, const Clones& clones) {
  const double seconds = seconds_of(clones);
  double bytes = 0;
  for (const Json* clone : clones) bytes += bytes_of(*clone);
  const double ios = sum_of(clones, "total_ios");
  const auto per_second = [&](double amount) {
    return seconds > 0 && ios > 0 ? std::optional(amount / seconds) : std::nullopt;
  };
  std::optional<double> bytes_per_s = per_second(bytes);
  std::optional<double> ops_per_s = per_second(ios);
  if (clones.size() == 1) {  // a single clone: take fio's own rates, which are exact to the microsecond
    const Json& only_clone = *clones.front();
    auto rate = member_number(only_clone, "bw_bytes");
    if (const auto rate_kib = member_number(only_clone, "bw"); !rate && rate_kib) rate = *rate_kib * 1024;
    if (rate && (*rate > 0 || bytes == 0)) bytes_per_s = rate;
    if (const auto ops = member_number(only_clone, "iops"); ops && (*ops > 0 || ios == 0)) ops_per_s = ops;
  }
  imported::add_if_known(record, kFioRate, bytes_per_s);
  imported::add_if_known(record, kOpRate, ops_per_s);
  add_sample(record, kPayloadBytes, bytes);
  if (seconds > 0) add_sample(record, kWallTime, seconds);
}

// Records the block size, the size of one operation. fio can have a size for each direction (read, write,
// trim). Then the size of this direction is recorded, or for "mixed" all sizes as one text.
void add_block(Record& record, const std::string& text, size_t direction) {
  std::vector<std::string> sizes;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    sizes.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  const bool mixed_sizes = kDirections[direction] == "mixed" && sizes.size() > 1;
  const std::string& block_text = mixed_sizes ? text : sizes[std::min(direction, sizes.size() - 1)];
  const auto bytes = parse_size(block_text);
  record.parameters["block"] = bytes.ok() ? Json(*bytes) : Json(block_text);
}

void add_tier(Record& record, const Json& fio, const Json& job) {
  const std::string folder = option(fio, job, "directory");
  std::string path = option(fio, job, "filename");
  path = path.substr(0, path.find(':'));  // if the job has several paths, take the first
  if (!folder.empty() && !path.starts_with('/')) path = path.empty() ? folder : folder + "/" + path;
  if (path.empty()) return;
  record.parameters["tier"] = path;
  record.tiers["data"] = Json{{"name", path}, {"backend", option(fio, job, "ioengine")}, {"root", path}};
}

// Records the options of the job as parameters.
void add_parameters(Record& record, const Json& fio, const Json& job, size_t direction, size_t clones) {
  add_tier(record, fio, job);
  Json& parameters = record.parameters;
  parameters["job"] = member_text(job, "jobname");
  parameters["operation"] = kDirections[direction];
  const std::string pattern = first_option(fio, job, {"rw", "readwrite"});
  parameters["rw"] = pattern.empty() ? "read" : pattern;
  parameters["threads"] = std::max<uint64_t>(count_of(option(fio, job, "numjobs")), clones);
  parameters["depth"] = count_of(option(fio, job, "iodepth"));
  const std::string block = first_option(fio, job, {"bs", "blocksize"});
  add_block(record, block.empty() ? "4k" : block, direction);
  const std::string direct = option(fio, job, "direct");
  parameters["direct"] = direct == "1";
  if (const std::string engine = option(fio, job, "ioengine"); !engine.empty())
    parameters["ioengine"] = engine;
  record.cache["client_data"] = direct == "1" ? "bypassed" : "unverified";
}

void add_failures(Record& record, const std::vector<const Json*>& jobs) {
  double errors = 0;
  for (const Json* job : jobs) {
    if (const auto failed = member_number(*job, "error"); failed && *failed > 0 && *failed < kMostErrno)
      add_verdict(record.verdict, record.reason, Verdict::failed,
                  fmt::format("fio ended with: {}", std::generic_category().message(int(*failed))));
    errors += member_number(*job, "total_err").value_or(0);
  }
  if (errors <= 0) return;
  add_sample(record, kErrors, errors);
  add_verdict(record.verdict, record.reason, Verdict::degraded,
              fmt::format("fio counted {} and continued", penstock::count_of(uint64_t(errors), "error")));
}

Record record_of(const Json& fio, const std::vector<const Json*>& jobs, size_t direction) {
  const Json& first = *jobs.front();
  Clones clones;
  for (const Json* job : jobs) clones.push_back(&member_object(*job, kDirections[direction]));
  Record record;
  record.command = "fio";
  record.argv = {"fio"};
  const std::string version = member_text(fio, "fio version");
  record.label["peer"] = version;
  record.environment["versions"] = Json{{"fio", version.substr(version.starts_with("fio-") ? 4 : 0)}};
  if (const std::string host = member_text(first, "hostname"); !host.empty())
    record.environment["host"] = host;
  add_parameters(record, fio, first, direction, jobs.size());
  const double end_time_s = member_number(fio, "timestamp").value_or(0);
  record.started = imported::utc_time(
      member_number(first, "job_start").value_or((end_time_s - seconds_of(clones)) * 1e3) * 1e-3);
  add_rates(record, clones);
  add_latencies(record, clones);
  // The tier is where a job works, so it is not part of the work.
  record.work.emplace();
  for (const auto& [name, value] : record.parameters.items())
    if (name != "tier") record.work->push_back(name);
  add_failures(record, jobs);
  return record;
}

bool has_work(const std::vector<const Json*>& jobs, size_t direction) {
  return std::any_of(jobs.begin(), jobs.end(), [&](const Json* job) {
    const Json& results = member_object(*job, kDirections[direction]);
    return member_number(results, "io_bytes").value_or(0) > 0 ||
           member_number(results, "total_ios").value_or(0) > 0;
  });
}

// The direction that the job's options ask for first. A job that did nothing gets a record of this direction.
size_t requested_direction(const Json& fio, const Json& job) {
  const std::string pattern = first_option(fio, job, {"rw", "readwrite"});
  return pattern.find("trim") != std::string::npos ? 2 : pattern.find("write") != std::string::npos ? 1 : 0;
}

bool is_clone(const Json& one, const Json& other) {
  for (const std::string_view name : {"jobname", "groupid", "hostname", "job options"}) {
    const Json* const value = member(one, name);
    const Json* const other_value = member(other, name);
    if ((value == nullptr) != (other_value == nullptr) || (value != nullptr && *value != *other_value))
      return false;
  }
  return true;
}

bool is_fio(const Json& json) {
  const Json* const jobs = member(json, "jobs");
  const Json* const clients = member(json, "client_stats");
  return !member_text(json, "fio version").empty() &&
         ((jobs != nullptr && jobs->is_array()) || (clients != nullptr && clients->is_array()));
}

double total_of(const Json& job, std::string_view name) {
  double total = 0;
  for (const std::string_view direction : kDirections)
    total += member_number(member_object(job, direction), name).value_or(0);
  return total;
}

const Json& jobs_of(const Json& fio) {
  const Json* const jobs = member(fio, "jobs");
  return jobs != nullptr && jobs->is_array() ? *jobs : fio.at("client_stats");
}

// When fio wrote the object, and when its job began to measure or at least existed; in milliseconds.
double written_ms(const Json& fio) {
  return member_number(fio, "timestamp_ms").value_or(member_number(fio, "timestamp").value_or(0) * 1e3);
}
double begin_ms(const Json& fio, const Json& job) {
  double runtime_ms = 0;
  for (const std::string_view direction : kDirections)
    runtime_ms = std::max(runtime_ms, member_number(member_object(job, direction), "runtime").value_or(0));
  if (runtime_ms == 0) runtime_ms = member_number(job, "elapsed").value_or(0) * 1e3;
  return written_ms(fio) - runtime_ms;
}

// Whether `later` is of the same run as `earlier`: it has the same jobs, which began before `earlier` was
// written.
bool replaces_fio(const Json& earlier, const Json& later) {
  const Json& early_jobs = jobs_of(earlier);
  const Json& late_jobs = jobs_of(later);
  if (early_jobs.size() != late_jobs.size() || early_jobs.empty() ||
      member_object(earlier, "global options") != member_object(later, "global options"))
    return false;
  for (size_t i = 0; i < early_jobs.size(); ++i) {
    if (!early_jobs[i].is_object() || !late_jobs[i].is_object() || !is_clone(early_jobs[i], late_jobs[i]) ||
        begin_ms(later, late_jobs[i]) >= written_ms(earlier) ||
        total_of(late_jobs[i], "io_bytes") < total_of(early_jobs[i], "io_bytes"))
      return false;
  }
  return true;
}

void import_fio(const Json& json, const std::string& id, Imported& imported) {
  std::vector<std::vector<const Json*>> groups;
  for (const Json& job : jobs_of(json)) {
    if (!job.is_object() || member_text(job, "jobname") == kSumOfClients) continue;
    const auto same_group =
        std::find_if(groups.begin(), groups.end(),
                     [&](const std::vector<const Json*>& group) { return is_clone(*group.front(), job); });
    if (same_group == groups.end())
      groups.push_back({&job});
    else
      same_group->push_back(&job);
  }
  size_t number = 0;
  const auto add_record = [&](Record record) {
    record.id = fmt::format("{}-{}", id, number++);
    imported.records.push_back(std::move(record));
  };
  for (const std::vector<const Json*>& group : groups) {
    const size_t records_before = imported.records.size();
    for (size_t direction = 0; direction < kDirections.size(); ++direction)
      if (has_work(group, direction)) add_record(record_of(json, group, direction));
    if (imported.records.size() > records_before) continue;
    Record empty_record = record_of(json, group, requested_direction(json, *group.front()));
    empty_record.metrics.clear();
    add_verdict(empty_record.verdict, empty_record.reason, Verdict::failed, "fio did nothing in this job");
    add_record(std::move(empty_record));
  }
}

}  // namespace

const Importer importer_fio{.command = "fio",
                            .program = "fio",
                            .form = "--output-format=json",
                            .metrics = kFioMetrics,
                            .is_document = is_fio,
                            .import_document = import_fio,
                            .replaces = replaces_fio};

}  // namespace penstock
