#include "io_backends/core/system/cgroup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

#include "io_backends/core/system/placement.hpp"
#include "io_backends/core/text.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

// The text of a file, without white space at both ends; absent if it cannot be read.
std::optional<std::string> file_text(const fs::path& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return std::string(trim(text.str(), " \t\n"));
}

// Sets `key` to `number` unless it already has a smaller one.
template <class T>
void keep_smaller(Json& json, const char* key, T number) {
  if (!json.contains(key) || json[key].get<T>() > number) json[key] = number;
}

// Sets "memory_free_bytes" to what the group may still use, unless it already has a smaller value. Inactive
// pages of files do not count as used, because the kernel drops them first.
void keep_smaller_free(const fs::path& folder, uint64_t limit_bytes, const char* usage_file,
                       std::string_view inactive_key, Json& limits) {
  const auto text = file_text(folder / usage_file);
  const auto used_bytes = text ? parse_digits<uint64_t>(*text) : std::nullopt;
  if (!used_bytes) return;
  uint64_t inactive_bytes = 0;
  std::ifstream in(folder / "memory.stat");
  std::string name;
  uint64_t number = 0;
  while (in >> name >> number)
    if (name == inactive_key) inactive_bytes = number;
  const uint64_t taken_bytes = *used_bytes - std::min(*used_bytes, inactive_bytes);
  keep_smaller(limits, "memory_free_bytes", limit_bytes - std::min(limit_bytes, taken_bytes));
}

// Reads from the file cpu.stat of a group how long its processes were kept from running by its quota. Of
// several groups, the longest time counts.
void keep_larger_throttled(const fs::path& folder, std::string_view key, double unit_s, Json& limits) {
  std::ifstream in(folder / "cpu.stat");
  std::string name;
  uint64_t number = 0;
  while (in >> name >> number)
    if (name == key)
      limits["throttled_s"] = std::max(limits.value("throttled_s", 0.0), double(number) * unit_s);
}

void inspect_v2(const fs::path& mount, const std::string& path, Json& limits) {
  limits["version"] = 2;
  limits["path"] = path;
  fs::path folder = mount / fs::path(path).relative_path();
  for (;; folder = folder.parent_path()) {
    if (const auto text = file_text(folder / "memory.max"))
      if (const auto number = parse_digits<uint64_t>(*text)) {
        keep_smaller(limits, "memory_bytes", *number);
        keep_smaller_free(folder, *number, "memory.current", "inactive_file", limits);
      }
    if (const auto text = file_text(folder / "cpu.max")) {
      std::istringstream words(*text);
      std::string quota;
      double period = 0;
      if (words >> quota >> period; period > 0)
        if (const auto number = parse_digits<uint64_t>(quota))
          keep_smaller(limits, "cpus", double(*number) / period);
    }
    keep_larger_throttled(folder, "throttled_usec", 1e-6, limits);
    if (const auto text = file_text(folder / "io.max"); text && !text->empty() && !limits.contains("io"))
      limits["io"] = *text;
    if (folder == mount || !folder.has_relative_path()) return;
  }
}

void inspect_v1(const fs::path& mount, const std::string& controllers, const std::string& path,
                Json& limits) {
  const std::string comma_separated = "," + controllers + ",";
  const auto has_controller = [&](std::string_view name) {
    return comma_separated.find(fmt::format(",{},", name)) != std::string::npos;
  };
  // Calls `visit` with the folders of this process's cgroup for a controller and of all its parents. In a
  // container the path that the kernel gives may not exist. Then the container sees its own cgroup as the
  // root of the mounted file system.
  const auto each_folder = [&](std::string_view controller, const auto& visit) {
    const fs::path root = mount / controller;
    fs::path folder = root / fs::path(path).relative_path();
    std::error_code ignored;
    if (!fs::exists(folder, ignored)) folder = root;
    for (;; folder = folder.parent_path()) {
      visit(folder);
      if (folder == root || !folder.has_relative_path()) return;
    }
  };
  if (has_controller("memory"))
    each_folder("memory", [&](const fs::path& folder) {
      // If there is no limit, this file has a huge number: the largest signed 64-bit number, rounded down to
      // whole pages.
      if (const auto text = file_text(folder / "memory.limit_in_bytes"))
        if (const auto number = parse_digits<uint64_t>(*text); number && *number < (uint64_t{1} << 60)) {
          keep_smaller(limits, "memory_bytes", *number);
          keep_smaller_free(folder, *number, "memory.usage_in_bytes", "total_inactive_file", limits);
        }
    });
  if (has_controller("cpu"))
    each_folder("cpu", [&](const fs::path& folder) {
      const auto quota = file_text(folder / "cpu.cfs_quota_us");
      const auto period = file_text(folder / "cpu.cfs_period_us");
      if (quota && period)
        if (const auto q = parse_digits<uint64_t>(*quota), p = parse_digits<uint64_t>(*period);
            q && p && *p > 0)
          keep_smaller(limits, "cpus", double(*q) / double(*p));
      keep_larger_throttled(folder, "throttled_time", 1e-9, limits);
    });
  if (has_controller("blkio"))
    each_folder("blkio", [&](const fs::path& folder) {
      if (limits.contains("io")) return;
      std::string lines;
      for (const char* limit : {"read_bps", "write_bps", "read_iops", "write_iops"})
        if (const auto text = file_text(folder / (std::string("blkio.throttle.") + limit + "_device"));
            text && !text->empty())
          lines += (lines.empty() ? "" : "; ") + std::string(limit) + " " + *text;
      if (!lines.empty()) limits["io"] = lines;
    });
}

}  // namespace

Json cgroup_limits(const fs::path& root) {
  Json limits = Json::object();
  const fs::path mount = root / "sys/fs/cgroup";
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const auto first_colon = line.find(':');
    const auto second_colon =
        line.find(':', first_colon == std::string::npos ? first_colon : first_colon + 1);
    if (second_colon == std::string::npos) continue;
    const std::string controllers = line.substr(first_colon + 1, second_colon - first_colon - 1);
    const std::string path = line.substr(second_colon + 1);
    if (!controllers.empty()) {
      inspect_v1(mount, controllers, path, limits);
    } else if (std::error_code ignored; fs::exists(mount / "unified", ignored)) {
      inspect_v2(mount / "unified", path, limits);
    } else if (fs::exists(mount / "cgroup.controllers", ignored)) {
      inspect_v2(mount, path, limits);
    }
  }
  return limits;
}

uint64_t available_memory(const fs::path& root) {
  std::optional<uint64_t> bytes;
  const auto keep_smaller = [&](uint64_t other) { bytes = std::min(bytes.value_or(other), other); };
  std::ifstream meminfo(root / "proc/meminfo");
  for (std::string line; std::getline(meminfo, line);) {
    constexpr std::string_view kKey = "MemAvailable:";
    if (!line.starts_with(kKey)) continue;
    const std::string_view value = trim(std::string_view(line).substr(kKey.size()));
    const auto kib = parse_digits<uint64_t>(value.substr(0, value.find(' ')));
    if (kib && *kib <= UINT64_MAX / 1024) keep_smaller(*kib * 1024);
  }
  const Json limits = cgroup_limits(root);
  for (const char* const key : {"memory_bytes", "memory_free_bytes"})
    if (limits.contains(key)) keep_smaller(limits[key].get<uint64_t>());
  // 0 means unknown, so a group that is full has 1 byte.
  return bytes ? std::max<uint64_t>(*bytes, 1) : 0;
}

std::optional<double> throttled_seconds() {
  const Json limits = cgroup_limits();
  const auto found = limits.find("throttled_s");
  if (found == limits.end()) return std::nullopt;
  return found->get<double>();
}

unsigned usable_cpus() {
  size_t allowed = allowed_cpus().size();
  if (allowed == 0) allowed = std::thread::hardware_concurrency();  // unknown: allowed_cpus() failed
  const double quota = cgroup_limits().value("cpus", double(allowed));
  return unsigned(std::max(1.0, std::min(double(allowed), std::ceil(quota))));
}

}  // namespace penstock
