#include "profiling/exporters/session_records.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/utc_time.hpp"
#include "io_backends/tiers/tier.hpp"
#include "profiling/exporters/session_metrics.hpp"
#include "profiling/session/layers.hpp"
#include "profiling/session/roll_up.hpp"
#include "profiling/session/session_reading.hpp"
#include "profiling/session/session_summary.hpp"
#include "results/record/environment.hpp"
#include "results/record/store.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

struct TierSum {
  std::string_view name;
  bool is_named = false;  // true: the user named the tier with --tier
  std::string root;
  LayerSum all;
  uint64_t files = 0;
  uint64_t last_file_key = 0;
  int64_t first_read_ns = INT64_MAX;
  int64_t last_read_ns = INT64_MIN;
  ThreadReadings threads;
  uint64_t mapped_bytes = 0;
  std::set<const ProcessFile*> process_files;

  std::map<std::string, uint64_t, std::less<>> bytes_below{};  // bytes read below each folder of the tier
  uint64_t bytes_of_paths = 0;                                 // bytes read of all files
  std::string_view main_folder;                                // see find_main_folder()
  uint64_t main_bytes = 0;                                     // bytes read below main_folder

  // Adds the bytes to every folder on the path.
  void add_path(std::string_view path, uint64_t bytes_read) {
    bytes_of_paths += bytes_read;
    for (size_t end = path.rfind('/'); end != std::string_view::npos && end > 0;
         end = path.rfind('/', end - 1)) {
      const std::string_view folder = path.substr(0, end);
      const auto found = bytes_below.find(folder);
      (found == bytes_below.end() ? bytes_below.emplace(folder, 0).first : found)->second += bytes_read;
    }
  }

  // Finds the deepest folder that has nearly all bytes that were read. Other files do not count in the rate:
  // a program may read its settings long before its data. In a tier that the user named, every file counts.
  void find_main_folder() {
    constexpr double kNearlyAll = 0.95;
    for (const auto& [folder, bytes] : bytes_below)
      if (!is_named && bytes > 0 && double(bytes) >= kNearlyAll * double(bytes_of_paths) &&
          folder.size() > main_folder.size())
        main_folder = folder;
  }

  void add(const penstock_counters& counters, const ProcessFile& process_file, std::string_view path) {
    const SessionClock& clock = process_file.view().clock();
    all.add(counters, clock);
    if (files == 0 || last_file_key != counters.file) ++files;
    last_file_key = counters.file;
    mapped_bytes += counters.mapped_bytes;
    if (!main_folder.empty() && !is_within(path, main_folder)) return;
    process_files.insert(&process_file);
    if (counters.bytes_read == 0) return;
    main_bytes += counters.bytes_read;
    const ThreadReading& thread = add_reading(threads, counters, process_file);
    first_read_ns = std::min(first_read_ns, thread.first_ns);
    last_read_ns = std::max(last_read_ns, thread.last_ns);
  }
};

// Removes mounts with less than 1% of all bytes, such as one with a log or with files of /etc, and mounts
// that were only written to: their records would have no rate. Mounts that the user named as tiers are kept.
void remove_small_tiers(std::map<std::string_view, TierSum>& by_root) {
  uint64_t total_moved = 0;
  uint64_t total_mapped = 0;
  for (const auto& [root, tier] : by_root) {
    total_moved += tier.all.bytes_read + tier.all.bytes_written;
    total_mapped += tier.mapped_bytes;
  }
  const auto is_enough = [](uint64_t part, uint64_t whole) { return part > 0 && part >= whole / 100; };
  std::erase_if(by_root, [&](const auto& entry) {
    const TierSum& tier = entry.second;
    if (tier.is_named) return false;
    if (tier.all.bytes_read == 0 && tier.mapped_bytes == 0) return true;
    return !is_enough(tier.all.bytes_read + tier.all.bytes_written, total_moved) &&
           !is_enough(tier.mapped_bytes, total_mapped);
  });
}

Reading reading_of(const TierSum& tier) {
  Reading reading{.bytes = tier.main_bytes, .threads = threads_at_once(tier.threads, tier.main_bytes)};
  if (tier.first_read_ns < tier.last_read_ns)
    reading.wall_s = (double(tier.last_read_ns) - double(tier.first_read_ns)) / 1e9;
  return reading;
}

// Returns the name of the program; for a Python interpreter, the name of its script.
std::string program_of(const Session& session) {
  const ProcessFile& process_file = session.processes.front().last();
  if (process_file.is_python())
    for (const std::string_view word : process_file.command())
      if (word.ends_with(".py")) return std::string(base_name(word));
  return std::string(process_file.program());
}

// How many processes of the session are above the one that read most: 0 if the program read itself, 1 if a
// worker process did that it started. Two runs that differ in this did not do the same work, although both
// read with one thread.
uint64_t process_depth(const Session& session, const ThreadReadings& threads) {
  using Process = std::pair<std::string_view, uint32_t>;
  const auto process_of = [](const ProcessFile& file) { return Process{file.host(), file.header().pid}; };
  std::map<Process, uint64_t> bytes;
  for (const auto& [key, thread] : threads) bytes[process_of(*key.first)] += thread.bytes;
  const auto most = std::max_element(bytes.begin(), bytes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == bytes.end()) return 0;
  std::map<Process, uint32_t> parents;
  for (const SessionProcess& process : session.processes)
    parents[process_of(process.first())] = process.first().header().parent_pid;
  uint64_t depth = 0;
  for (Process process = most->first; depth < parents.size(); ++depth) {
    process.second = parents.at(process);
    if (!parents.contains(process)) break;
  }
  return depth;
}

Json environment_of(const ProcessFile& process_file) {
  std::array<char, 256> own_host{};
  ::gethostname(own_host.data(), own_host.size() - 1);
  if (process_file.host() == own_host.data()) return inspect_environment();
  return Json{{"host", process_file.host()}};
}

Record record_of(const Session& session, const TierSum& tier, const Reading& reading) {
  Record record;
  record.command = "profile";
  record.parameters = Json{{"tier", tier.name},
                           {"threads", reading.threads},
                           {"processes", tier.process_files.size()},
                           {"program", program_of(session)},
                           {"cache", "asis"}};
  if (const uint64_t depth = process_depth(session, tier.threads); depth > 0)
    record.parameters["process_depth"] = depth;
  Tier data_tier;
  data_tier.name = tier.name;
  data_tier.backend_name = "posix";
  data_tier.root = tier.root;
  data_tier.spec = "posix:" + tier.root;
  data_tier.facts = inspect_path(tier.root);
  record.tiers["data"] = tier_json(data_tier);
  record.cache = Json{{"client_data", data_tier.facts.memory ? "memory" : "unknown"},
                      {"client_metadata", "unknown"},
                      {"server", "unknown"},
                      {"host", "unknown"},
                      {"method", "none"}};
  record.corpus = Json{{"recipe", program_of(session)}, {"format", "session"}};
  if (!tier.main_folder.empty()) record.corpus["folder"] = tier.main_folder;
  const Reading call_reading = reading_of(tier);
  const auto add = [&](const MetricInfo& metric, double value) { add_sample(record, metric, value); };
  for (const double rate : reading.bytes_per_s) add(session_metrics::kPayloadRateOfEpoch, rate);
  if (reading.bytes_per_s.empty() && reading.wall_s > 0)
    add(session_metrics::kPayloadRate, double(reading.bytes) / reading.wall_s);
  const auto all_bytes = double(tier.all.bytes_read);
  if (call_reading.wall_s > 0)
    add(session_metrics::kReadCallRate, double(call_reading.bytes) / call_reading.wall_s);
  add(session_metrics::kPayloadBytes, double(reading.bytes));
  add(session_metrics::kWallTime, reading.wall_s);
  add(shared_metrics::kTierBytesRead, all_bytes);
  add(session_metrics::kBytesMapped, double(tier.mapped_bytes));
  add(session_metrics::kBytesWritten, double(tier.all.bytes_written));
  add(session_metrics::kReadTime, tier.all.read_ns / 1e9);
  add(session_metrics::kReads, double(tier.all.reads));
  add(session_metrics::kFiles, double(tier.files));
  return record;
}

// Returns the reason why the figures of a record may be too small, because data are missing. "" if no data
// are known to be missing.
std::string missing_data_reason(const Session& session) {
  if (session.unread_files > 0)
    return fmt::format("{} of the session cannot be read completely", count_of(session.unread_files, "file"));
  if (!session.unwatched.empty())
    return fmt::format("{} of the session wrote no file", count_of(session.unwatched.size(), "program"));
  const uint64_t dropped = drops_of(session).operations;
  return dropped == 0 ? ""
                      : fmt::format("{} {} not counted", count_of(dropped, "operation"),
                                    dropped == 1 ? "was" : "were");
}

}  // namespace

Result<NamedTier> parse_named_tier(std::string_view text) {
  const size_t equals_sign = text.find('=');
  if (equals_sign == std::string_view::npos || equals_sign == 0 || equals_sign + 1 == text.size())
    return make_error(Errc::invalid_argument, "--tier '{}' is not NAME=PATH", text);
  std::error_code failed;
  const fs::path path = fs::absolute(text.substr(equals_sign + 1), failed).lexically_normal();
  std::string root = path.string();
  while (root.size() > 1 && root.ends_with('/')) root.pop_back();
  return NamedTier{std::string(text.substr(0, equals_sign)), std::move(root)};
}

std::vector<Record> records_of(const Session& session, const FileSums& sums, const SessionFilter& filter,
                               const std::vector<NamedTier>& tiers, const std::vector<std::string>& argv) {
  const MountTable mounts = MountTable::of_this_machine();
  std::map<std::string_view, TierSum> by_root;
  const auto tier_of = [&](std::string_view path) -> TierSum* {
    for (const NamedTier& tier : tiers)
      if (is_within(path, tier.path)) {
        TierSum& sum = by_root[tier.path];
        sum.name = tier.name;
        sum.is_named = true;
        return &sum;
      }
    const std::string_view mount = mounts.mount_of(path);
    if (mount.empty() || mounts.is_pseudo(mount)) return nullptr;
    TierSum& sum = by_root[mount];
    if (sum.name.empty()) sum.name = mount == "/" ? mount : base_name(mount);
    return &sum;
  };
  const auto each_wanted = [&](const auto& visit) {
    sums.each_entry([&](const penstock_counters& counters, const ProcessFile& process_file,
                        std::string_view path, unsigned kind) {
      const bool moved = (counters.bytes_read | counters.bytes_written | counters.mapped_bytes) != 0;
      if (!moves_bytes_of_its_own(counters.layer) || !moved || !filter.wants(path, kind, moved, process_file))
        return;
      if (TierSum* const tier = tier_of(path); tier != nullptr) visit(*tier, counters, process_file, path);
    });
  };
  each_wanted([](TierSum& tier, const penstock_counters& counters, const ProcessFile&,
                 std::string_view path) { tier.add_path(path, counters.bytes_read); });
  for (auto& [root, tier] : by_root) tier.find_main_folder();
  each_wanted([](TierSum& tier, const penstock_counters& counters, const ProcessFile& process_file,
                 std::string_view path) { tier.add(counters, process_file, path); });
  remove_small_tiers(by_root);
  std::vector<Record> records;
  const Json environment = environment_of(session.processes.front().last());
  const Reading span_reading = reading_of_spans(session);
  const std::string missing = missing_data_reason(session);
  const auto tiers_read = std::count_if(by_root.begin(), by_root.end(),
                                        [](const auto& tier) { return tier.second.all.bytes_read > 0; });
  int64_t begin_ns = INT64_MAX;
  for (const auto& process_file : session.process_files)
    begin_ns = std::min(begin_ns, process_file->header().begin_realtime_ns);
  for (auto& [root, tier] : by_root) {
    if (!tiers.empty() && !tier.is_named) continue;
    tier.root = root;
    const bool uses_spans = span_reading.bytes > 0 && tiers_read == 1 && tier.all.bytes_read > 0;
    Record record = record_of(session, tier, uses_spans ? span_reading : reading_of(tier));
    record.id = random_id(12);
    record.started = utc_text(begin_ns / 1'000'000'000);
    record.argv = argv;
    record.environment = environment;
    record.parameters["measured_by"] = uses_spans ? "spans" : "calls";
    if (tier.all.bytes_read > 0 && !record.metrics.contains("payload_bytes_per_s")) {
      record.verdict = Verdict::short_time;
      record.reason = "all reads happened at one moment, so there is no rate";
    }
    if (tier.all.bytes_read == 0) {
      record.parameters.erase("threads");
      record.verdict = Verdict::skipped;
      record.reason = tier.mapped_bytes > 0
                          ? "no call read its files: they were memory-mapped, and the bytes read are unknown"
                          : "none of its files was read";
    }
    if (!missing.empty()) add_verdict(record.verdict, record.reason, Verdict::degraded, missing);
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace penstock
