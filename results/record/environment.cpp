#include "results/record/environment.hpp"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/build_info.hpp"
#include "io_backends/core/system/cgroup.hpp"
#include "io_backends/core/system/placement.hpp"
#include "io_backends/core/text.hpp"
#include "io_backends/decorators/traced.hpp"
#include "io_backends/files/page_cache.hpp"
#include "io_backends/tiers/tier.hpp"
#include "results/record/statistics.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBlanks = " \t\n";

// The text of a file, without white space at both ends; absent if it cannot be read.
std::optional<std::string> file_text(const fs::path& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return std::string(trim(text.str(), kBlanks));
}

// The value after "key:" or "key=" in the first line with that key; "" if there is none.
std::string line_value(const fs::path& path, std::string_view key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const auto divider = line.find_first_of(":=", key.size());
    const std::string_view text = line;
    if (divider == std::string::npos || !trim(text.substr(key.size(), divider - key.size()), kBlanks).empty())
      continue;
    std::string value(trim(text.substr(divider + 1), kBlanks));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
      value = value.substr(1, value.size() - 2);
    return value;
  }
  return "";
}

// The text if it is a list of memory nodes ("0-1,3"), else "".
std::string node_list(const std::string& text) {
  constexpr uint64_t kMostNodes = 1024;  // of Linux, with the largest CONFIG_NODES_SHIFT
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find_first_of("-,"), rest.size());
    const auto node = parse_digits<uint64_t>(rest.substr(0, end));
    if (!node || *node >= kMostNodes) return "";
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return text;
}

int cpu_count() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  return ::sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus)
                                                         : int(::sysconf(_SC_NPROCESSORS_ONLN));
}

std::string cpu_model() {
  std::string model = line_value("/proc/cpuinfo", "model name");
  // On ARM /proc/cpuinfo has no model name, only numbers such as this one.
  if (model.empty()) model = line_value("/proc/cpuinfo", "CPU implementer");
  return model;
}

Json build_json() {
  Json build{
      {"compiler", build_info().compiler}, {"type", build_info().build_type}, {"flags", build_info().flags}};
  if (!build_info().sanitizers.empty()) build["sanitizer"] = build_info().sanitizers;
  return build;
}

Json versions_json() {
  Json versions{{"penstock", build_info().version}};
  for (const auto& [name, version] : library_versions()) versions[std::string(name)] = version;
  return versions;
}

}  // namespace

uint64_t memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long size = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? uint64_t(pages) * uint64_t(size) : 0;
}

double clock_read_ns() {
  constexpr int kClockReads = 1000;
  std::array<double, 9> samples{};
  for (double& sample : samples) {
    const auto begin = std::chrono::steady_clock::now();
    auto end = begin;
    for (int i = 0; i < kClockReads; ++i) end = std::chrono::steady_clock::now();
    sample = std::chrono::duration<double, std::nano>(end - begin).count() / kClockReads;
  }
  return median(samples);
}

Json inspect_environment() {
  Json json = Json::object();
  utsname system_names{};
  if (::uname(&system_names) == 0) {
    json["host"] = system_names.nodename;
    json["kernel"] = std::string(system_names.sysname) + " " + system_names.release;
    json["machine"] = system_names.machine;
  }
  json["os"] = line_value("/etc/os-release", "PRETTY_NAME");
  json["cpu"] = cpu_model();
  json["cpus"] = cpu_ranges(allowed_cpus());
  json["cpu_count"] = cpu_count();
  json["numa"] = node_list(line_value("/proc/self/status", "Mems_allowed_list"));
  json["governor"] = file_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").value_or("");
  json["memory_bytes"] = memory_bytes();
  json["cgroup"] = cgroup_limits();
  for (const char* const key : {"throttled_s", "memory_free_bytes"})
    json["cgroup"].erase(key);  // these are no limits, and change with time
  json["build"] = build_json();
  json["versions"] = versions_json();
  json["clock_read_ns"] = clock_read_ns();
  return json;
}

namespace {

Json calls_json(const TimesByCall& times) {
  Json json = Json::object();
  for (const auto& [call, of_call] : times) {
    const Histogram& ns = of_call.ns;
    json[std::string(timed_call_name(call))] = {
        {"count", ns.count()},         {"errors", of_call.errors},
        {"bytes", of_call.bytes},      {"total_s", ns.mean() * double(ns.count()) * 1e-9},
        {"ns_p50", ns.percentile(50)}, {"ns_p95", ns.percentile(95)},
        {"ns_p99", ns.percentile(99)}, {"ns_p999", ns.percentile(99.9)},
        {"ns_max", ns.max()}};
  }
  return json;
}

}  // namespace

Json tier_json(const Tier& tier) {
  Json json{{"name", tier.name},
            {"backend", tier.backend_name},
            {"root", tier.root},
            {"spec", tier.spec},
            {"fs_type", tier.facts.fs_type},
            {"device", tier.facts.device},
            {"mount_point", tier.facts.mount_point},
            {"mount_options", tier.facts.mount_options},
            {"striping", tier.facts.striping},
            {"network", tier.facts.network},
            {"memory", tier.facts.memory}};
  if (const std::vector<std::string> remarks = tier.remarks(); !remarks.empty()) json["remarks"] = remarks;
  if (TimedCalls* const calls = tier.backend == nullptr ? nullptr : timed_calls(*tier.backend))
    json["calls"] = calls_json(calls->totals());
  if (!tier.ceilings.empty()) {
    json["ceilings"] = Json::object();
    for (const auto& [probe, bytes_per_s] : tier.ceilings) json["ceilings"][probe] = bytes_per_s;
  }
  return json;
}

Json cache_json(const CacheState& cache) {
  Json json{{"client_data", cache.client_data},
            {"client_metadata", cache.client_metadata},
            {"server", cache.server},
            {"host", cache.host},
            {"method", cache.method}};
  if (cache.resident_fraction_before) json["resident_fraction_before"] = *cache.resident_fraction_before;
  if (cache.device_bytes_fraction) json["device_bytes_fraction"] = *cache.device_bytes_fraction;
  return json;
}

}  // namespace penstock
