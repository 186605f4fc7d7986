// Threads: one thread calls prepare(). prepare() starts helper threads (parallel_for), which ask the kernel
// about files, evict them or read them. It joins them before it returns.
// Lock: the local mutex of measure_residency() guards the sums of all files. It is not held during a system
// call.
// Ctrl-C: helpers check for it before each file, and prepare() then fails with `interrupted`. A file that is
// being read is read to its end.
// Memory: paths, errors and JSON allocate.
// Crash: no file changes. At most, the kernel has already written back pages that other programs changed.
// Ranks: prepare_together() makes one collective call, also on a rank where prepare() failed. Nothing else
// here communicates.
#include "datagen/cache/cache_control.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <mutex>
#include <thread>
#include <utility>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/parallel/parallel.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/files/mounts.hpp"
#include "results/record/environment.hpp"
#include "results/record/gather_json.hpp"
#include "results/record/json_members.hpp"

namespace penstock {
namespace {

constexpr std::chrono::milliseconds kPauseBetweenTries{50};

// The state of a host's cache of this machine's disks: "none" on bare metal, and "unknown" in a virtual
// machine, because its host may cache them. "unknown" also if /proc and /sys do not tell which of them this
// machine is. Only x86 tells it by a processor flag.
std::string host_cache() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  bool is_x86 = false;
  for (std::string line; std::getline(cpuinfo, line);) {
    if (!line.starts_with("flags")) continue;
    is_x86 = true;
    if (line.find(" hypervisor") != std::string::npos) return "unknown";
  }
  return is_x86 && std::filesystem::exists("/sys/kernel") && !std::filesystem::exists("/sys/hypervisor/type")
             ? "none"
             : "unknown";
}

Json outcome_json(const CacheOutcome& outcome) {
  return {
      {"state", cache_json(outcome.state)}, {"verdict", int(outcome.verdict)}, {"reason", outcome.reason}};
}

CacheOutcome parse_outcome(const Json& json) {
  CacheOutcome outcome;
  const Json& state = json["state"];
  state["client_data"].get_to(outcome.state.client_data);
  state["client_metadata"].get_to(outcome.state.client_metadata);
  state["server"].get_to(outcome.state.server);
  state["host"].get_to(outcome.state.host);
  state["method"].get_to(outcome.state.method);
  outcome.state.resident_fraction_before = member_number(state, "resident_fraction_before");
  outcome.verdict = static_cast<Verdict>(json["verdict"].get<int>());
  json["reason"].get_to(outcome.reason);
  return outcome;
}

Json join_outcomes(const std::vector<Json>& rank_results) {
  std::optional<CacheOutcome> combined;
  for (const Json& one : rank_results) {
    if (one.contains("error")) return {{"error", one["error"]}};
    if (!one.contains("outcome")) continue;
    const CacheOutcome node = parse_outcome(one["outcome"]);
    if (!combined) {
      combined = node;
      continue;
    }
    combine_cache_states(combined->state, node.state);
    add_verdict(combined->verdict, combined->reason, node.verdict, node.reason);
  }
  return {{"outcome", outcome_json(combined.value_or(CacheOutcome{}))}};
}

}  // namespace

Result<void> check_cache_request(const Tier& tier, CacheRequest requested) {
  if (requested != CacheRequest::cold || tier.backend_name != "mmap") return success();
  PENSTOCK_ASSIGN(const TierSpec spec, parse_tier(tier.spec, kNoNamedTiers));
  const bool keeps_mappings =
      std::any_of(spec.options.begin(), spec.options.end(),
                  [](const OptionWord& word) { return word.key == "keep" && word.value == "1"; });
  if (!keeps_mappings) return success();
  return make_error(Errc::invalid_argument, "tier '" + tier.name +
                                                "' keeps objects mapped (keep=1), and mapped objects stay in "
                                                "memory: leave out keep=1 or --cache cold");
}

CacheControl::CacheControl(const Tier& tier, const Manifest& manifest, const SampleList& samples,
                           CacheRequest requested, ColdMethod method, unsigned helpers, PageCacheCalls calls)
    : tier_(tier),
      manifest_(manifest),
      samples_(samples),
      requested_(requested),
      cold_method_(method),
      helper_threads_(std::max(helpers, 1U)),
      calls_(std::move(calls)),
      host_cache_(host_cache()) {}

CacheState CacheControl::initial_state() const {
  CacheState state;
  state.server = is_on_this_machine(tier_.facts) ? "none" : "unknown";
  state.host = host_cache_;
  return state;
}

// Returns true if the cache state depends only on where the data is, so that no preparation can change it. In
// this case it also sets `client_data` of `state`, and for data in memory `client_metadata`.
bool CacheControl::state_is_fixed(CacheState& state) const {
  if (tier_.facts.memory || tier_.backend->caps().volatile_memory) {
    state.client_data = "memory";
    state.client_metadata = "memory";
    return true;
  }
  if (tier_.backend->caps().bypasses_cache) {
    state.client_data = "bypassed";
    return true;
  }
  if (!tier_.backend->caps().native_path) {
    state.client_data = "none";
    return true;
  }
  return false;
}

bool CacheControl::empties_cache() const {
  CacheState state = initial_state();
  return requested_ == CacheRequest::cold && (!state_is_fixed(state) || cold_method_ == ColdMethod::drop);
}

// Adds up how much of each file is in the page cache. Each helper thread asks the kernel about one file at a
// time. With `warm_missing`, it reads the file if the kernel does not report it as completely cached, and
// asks again. A missing file is skipped. After any other error the result is not `verified`.
Result<Residency> CacheControl::measure_residency(bool warm_missing) {
  Residency all_files{.verified = true};
  std::mutex mutex;
  PENSTOCK_TRY(
      parallel_for(manifest_.objects(), helper_threads_, 1, [&](unsigned, uint64_t object) -> Result<void> {
        const auto path = tier_.backend->native_path(samples_.name(uint32_t(object)));
        if (!path) return success();
        Result<Residency> file_residency = calls_.residency(*path);
        uint64_t warmed = 0;
        const bool is_known = file_residency.ok() && file_residency->verified;
        if (warm_missing && (!is_known || file_residency->resident_bytes < file_residency->total_bytes)) {
          if (calls_.warm(*path).ok()) warmed = manifest_.object_bytes(object);
          file_residency = calls_.residency(*path);
        }
        std::lock_guard lock(mutex);
        warmed_bytes_ += warmed;
        if (!file_residency.ok()) {
          if (file_residency.error().code != Errc::not_found) all_files.verified = false;
          return success();
        }
        if (!file_residency->verified) all_files.verified = false;
        all_files.resident_bytes += file_residency->resident_bytes;
        all_files.total_bytes += file_residency->total_bytes;
        return success();
      }));
  return all_files;
}

bool CacheControl::drop_all(CacheState& state) {
  if (cold_method_ != ColdMethod::drop) return false;
  ::sync();  // needed because the kernel drops only clean pages
  if (const Result<void> dropped = calls_.drop(); !dropped.ok()) {
    drop_error_ = dropped.error().message();
    cold_method_ = ColdMethod::evict;
    return false;
  }
  state.method = "drop";
  return true;
}

Result<void> CacheControl::make_cold(CacheState& state) {
  if (drop_all(state)) return success();
  state.method = "evict";
  std::mutex mutex;
  return parallel_for(manifest_.objects(), helper_threads_, 1, [&](unsigned, uint64_t object) {
    // An error does not end this: measure_residency() later checks all files.
    const auto path = tier_.backend->native_path(samples_.name(uint32_t(object)));
    if (!path) return success();
    if (const Result<void> evicted = calls_.evict(*path);
        !evicted.ok() && evicted.error().code != Errc::not_found) {
      const std::lock_guard lock(mutex);
      if (evict_error_.empty()) evict_error_ = evicted.error().message();
    }
    return success();
  });
}

Result<CacheOutcome> CacheControl::prepare() {
  CacheOutcome outcome;
  outcome.state = initial_state();
  CacheState& state = outcome.state;
  if (state_is_fixed(state)) {
    // Direct reads bypass the page cache, but the names and inodes of the files are still cached. A drop
    // removes these from the cache, so that they are read from the device too.
    if (state.client_data == "bypassed" && requested_ == CacheRequest::cold) {
      PENSTOCK_TRY(check_interrupt());
      if (drop_all(state)) state.client_metadata = "cold";
    }
    return outcome;
  }

  Residency all_files;
  bool state_reached = requested_ == CacheRequest::asis;
  int attempt = 0;
  evict_error_.clear();
  while (attempt < kMostCacheTries) {
    // Before another try, wait a little: pages that a read-ahead is still filling cannot be evicted, and a
    // read-ahead ends soon.
    if (attempt++ > 0) std::this_thread::sleep_for(kPauseBetweenTries);
    if (requested_ == CacheRequest::cold) PENSTOCK_TRY(make_cold(state));
    if (requested_ == CacheRequest::warm) state.method = "reread";
    PENSTOCK_ASSIGN(all_files, measure_residency(requested_ == CacheRequest::warm));
    if (requested_ == CacheRequest::cold) state_reached = all_files.fraction() <= kMostCachedIfCold;
    if (requested_ == CacheRequest::warm)
      state_reached = all_files.total_bytes == 0 || all_files.fraction() >= kLeastCachedIfWarm;
    if (!all_files.verified || state_reached || !evict_error_.empty()) break;
  }
  state.client_metadata = "warm";
  if (!all_files.verified) {
    state.client_data = "unverified";
  } else {
    if (all_files.total_bytes > 0) state.resident_fraction_before = all_files.fraction();
    state.client_data = state_reached ? std::string(cache_request_name(requested_)) : "unknown";
  }
  if (all_files.verified && !state_reached) {
    outcome.verdict = requested_ == CacheRequest::cold ? Verdict::not_cold : Verdict::not_warm;
    outcome.reason = "after " + count_of(uint64_t(attempt), "try", "tries") + " " +
                     std::to_string(int(all_files.fraction() * 100)) + "% of '" + tier_.name +
                     "' is in the page cache; " + std::string(cache_request_name(requested_)) + " means at " +
                     (requested_ == CacheRequest::cold ? "most 1%" : "least 99%") +
                     (evict_error_.empty() ? "" : "; " + evict_error_);
  }
  if (state.method == "drop" && calls_.drop().ok()) state.client_metadata = "cold";
  return outcome;
}

Result<CacheOutcome> prepare_together(Communicator& ranks, CacheControl& cache) {
  if (ranks.size() == 1) return cache.prepare();
  Json own_result = Json::object();
  if (cache.prepares_on_each_rank() || ranks.rank_on_node() == 0) {
    const Result<CacheOutcome> outcome = cache.prepare();
    own_result = outcome.ok() ? Json{{"outcome", outcome_json(*outcome)}}
                              : Json{{"error", error_json(outcome.error())}};
  }
  // Every rank must make this call, also after an error, because the other ranks wait in it.
  PENSTOCK_ASSIGN(const GatheredJson all, gather_json(ranks, own_result, join_outcomes));
  if (all.json.contains("error")) return error_from_json(all.json["error"]);
  CacheOutcome outcome = parse_outcome(all.json["outcome"]);
  outcome.stopped = all.signal != 0;
  return outcome;
}

void combine_cache_states(CacheState& state, const CacheState& other) {
  if (other.client_data != state.client_data)
    state.client_data = other.client_data == "unverified" ? "unverified" : "unknown";
  if (other.client_metadata != state.client_metadata)
    state.client_metadata =
        other.client_metadata == "warm" || state.client_metadata == "warm" ? "warm" : "unknown";
  if (!other.resident_fraction_before) {
    state.resident_fraction_before.reset();
  } else if (state.resident_fraction_before) {
    const double a = *state.resident_fraction_before;
    const double b = *other.resident_fraction_before;
    state.resident_fraction_before = state.client_data == "warm" ? std::min(a, b) : std::max(a, b);
  }
}

std::string_view cache_request_name(CacheRequest requested) {
  constexpr std::string_view kNames[] = {"cold", "warm", "asis"};
  return kNames[size_t(requested)];
}

CacheRequest parse_cache_request(std::string_view name) {
  for (const CacheRequest requested : {CacheRequest::cold, CacheRequest::warm})
    if (name == cache_request_name(requested)) return requested;
  return CacheRequest::asis;
}

std::optional<uint64_t> device_bytes_read() {
  std::ifstream counters("/proc/self/io");
  std::string key;
  uint64_t value = 0;
  while (counters >> key >> value)
    if (key == "read_bytes:") return value;
  return std::nullopt;
}

}  // namespace penstock
