#include "profiling/session/session_filter.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <array>

namespace penstock {
namespace {

bool matches_glob(const std::string& pattern, const std::string& text) {
  return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

bool is_device(std::string_view path) {
  return is_within(path, "/dev") && !is_within(path, "/dev/shm");
}

bool has_digit_after(std::string_view path, std::string_view part) {
  const size_t at = path.find(part);
  return at != std::string_view::npos && at + part.size() < path.size() && path[at + part.size()] >= '0' &&
         path[at + part.size()] <= '9';
}

bool is_in_python_library(std::string_view path) {
  return has_digit_after(path, "/lib/python") || has_digit_after(path, "/lib64/python") ||
         path.find("/site-packages") != std::string_view::npos ||
         path.find("/dist-packages") != std::string_view::npos;
}

bool is_code_file(std::string_view path) {
  static constexpr std::array<std::string_view, 8> kSuffixes{".py",  ".pyc", ".pyo",      ".pyi",
                                                             ".pth", ".so",  ".egg-link", "/METADATA"};
  return std::any_of(kSuffixes.begin(), kSuffixes.end(),
                     [&](std::string_view end) { return path.ends_with(end); }) ||
         path.find(".so.") != std::string_view::npos;
}

// True for configuration files and the standard library's archive (python3X.zip), which a Python interpreter
// looks for when it starts. Only the name of the file is compared, because the interpreter looks in many
// folders.
bool is_interpreters_own(std::string_view path) {
  const std::string_view name = base_name(path);
  return name == "pyvenv.cfg" || name == "pybuilddir.txt" || name.ends_with("._pth") ||
         (name.starts_with("python3") && name.ends_with(".zip"));
}

constexpr std::array<std::string_view, 11> kSystemPaths{"/proc",
                                                        "/sys",
                                                        "/etc/ld.so.cache",
                                                        "/etc/localtime",
                                                        "/etc/nsswitch.conf",
                                                        "/usr/lib/locale",
                                                        "/usr/share/locale",
                                                        "/usr/share/zoneinfo",
                                                        "/usr/lib/x86_64-linux-gnu/gconv",
                                                        "/usr/lib/aarch64-linux-gnu/gconv",
                                                        "/usr/lib64/gconv"};

}  // namespace

bool is_within(std::string_view path, std::string_view folder) {
  if (folder == "/") return path.starts_with('/');
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

bool matches(std::string_view pattern, std::string_view path) {
  const std::string text(path);
  std::string glob(pattern);
  if (glob.ends_with('/')) glob += '*';
  if (glob.starts_with('/') || glob.starts_with('*')) return matches_glob(glob, text);
  if (glob.find('/') == std::string::npos) return matches_glob(glob, text.substr(text.rfind('/') + 1));
  return matches_glob("*/" + glob, text);
}

bool is_start_up_noise(std::string_view path, unsigned kind, bool moved_bytes) {
  if (is_device(path)) return true;
  if (std::any_of(kSystemPaths.begin(), kSystemPaths.end(),
                  [&](std::string_view own) { return is_within(path, own); }))
    return true;
  if (is_interpreters_own(path)) return true;
  return is_in_python_library(path) && (is_code_file(path) || kind == PENSTOCK_DIRECTORY || !moved_bytes);
}

bool SessionFilter::wants(std::string_view path, unsigned kind, bool moved_bytes,
                          const ProcessFile& process_file) const {
  const auto matches_any = [&](const std::vector<std::string>& patterns) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const std::string& pattern) { return matches(pattern, path); });
  };
  if (!include.empty() && !matches_any(include)) return false;
  if (matches_any(exclude)) return false;
  if (all_files) return true;
  if (kind == PENSTOCK_OTHER_FILE || is_device(path)) return false;
  return !process_file.is_python() || !is_start_up_noise(path, kind, moved_bytes);
}

}  // namespace penstock
