#include "miniapps/staging/session_work.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "io_backends/core/parallel/parallel.hpp"
#include "io_backends/files/page_cache.hpp"
#include "profiling/session/session_reading.hpp"
#include "profiling/session/session_summary.hpp"
#include "results/record/record.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

// Returns the prefixes that a path below the root may have: the root as given, and the root with its symbolic
// links resolved. Each ends with "/".
std::vector<std::string> roots_of(const fs::path& root) {
  std::vector<std::string> roots{fs::absolute(root).lexically_normal().string()};
  std::error_code failed;
  if (const fs::path real = fs::canonical(root, failed); !failed) roots.push_back(real.string());
  for (std::string& one : roots)
    if (!one.ends_with('/')) one += '/';
  return roots;
}

// Returns the part of the path after one of the roots; "" if the path is below none of them.
std::string below_root(const std::vector<std::string>& roots, std::string_view path) {
  const bool is_normal =
      path.find("/.") == std::string_view::npos && path.find("//") == std::string_view::npos;
  const std::string normal = is_normal ? std::string(path) : fs::path(path).lexically_normal().string();
  for (const std::string& root : roots)
    if (normal.size() > root.size() && normal.starts_with(root)) return normal.substr(root.size());
  return "";
}

bool is_utf8(const std::string& name) {
  try {
    static_cast<void>(Json(name).dump());
    return true;
  } catch (const JsonError&) {
    return false;
  }
}

bool is_penstock_file(std::string_view name) {
  return name.starts_with(".penstock/") || name.find("/.penstock/") != std::string_view::npos;
}

// What was read of one file, under all of its names ("a//b", a path through a link to the root).
struct FileReads {
  uint64_t bytes = 0;  // bytes that were read
  uint64_t requests = 0;
  uint64_t seen_size = 0;
  int64_t first_ns = INT64_MAX;
  double busy_s = 0;
  bool written = false;

  void add(const FileSum& file) {
    const LayerSum& all = file.all;
    const bool mapped = all.bytes_read == 0 && file.mapped_bytes != 0;
    bytes += mapped ? file.mapped_bytes : all.bytes_read;
    requests += mapped ? all.maps : all.reads - std::min(all.reads, all.consecutive_reads);
    seen_size = std::max(seen_size, file.size);
    first_ns = std::min(first_ns, mapped ? file.first_ns : file.first_read_ns);
    busy_s += (all.read_ns + all.meta_ns) / 1e9;
    written = written || all.bytes_written != 0;
  }
};
using FoundFiles = std::map<std::string, FileReads>;

Error nothing_read_error(const Tier& slow, const std::map<std::string, uint64_t>& folders) {
  const auto most = std::max_element(folders.begin(), folders.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::string hint =
      most == folders.end() ? "it read no files" : fmt::format("most bytes were read in '{}'", most->first);
  return make_error(
      Errc::not_found,
      "the session read nothing below {}, the root of tier '{}' ({}): set --slow to the tier with its files",
      slow.root, slow.name, hint);
}

Result<FoundFiles> find_files(const FileSums& sums, const SessionFilter& filter, const Tier& slow) {
  const std::vector<std::string> roots = roots_of(slow.root);
  FoundFiles found;
  std::map<std::string, uint64_t> bytes_elsewhere;
  bool any_left_out = false;
  bool any_start_up = false;  // what Python reads to start, which no option includes
  sums.each(
      [&](std::string_view path, unsigned kind, bool moved, const ProcessFile& process_file) {
        const bool wanted = filter.wants(path, kind, moved, process_file);
        if (!wanted && kind == PENSTOCK_REGULAR && !below_root(roots, path).empty()) {
          const bool is_start_up = process_file.is_python() && is_start_up_noise(path, kind, moved);
          (is_start_up ? any_start_up : any_left_out) = true;
        }
        return wanted;
      },
      [&](const FileSum& file) {
        if (file.kind != PENSTOCK_REGULAR || (file.all.bytes_read == 0 && file.mapped_bytes == 0)) return;
        const std::string name = below_root(roots, file.path);
        if (name.empty())
          bytes_elsewhere[fs::path(file.path).parent_path().string()] += file.all.bytes_read;
        else if (!is_penstock_file(name))
          found[name].add(file);
      });
  if (found.empty() && any_left_out)
    return make_error(Errc::not_found,
                      "--include and --exclude leave out all files that the session read below {}, the root "
                      "of tier '{}': change them",
                      slow.root, slow.name);
  if (found.empty() && any_start_up)
    return make_error(Errc::not_found,
                      "the session read only Python start-up files below {}, the root of tier '{}', and "
                      "these are never staged: set --slow to the tier with the data",
                      slow.root, slow.name);
  if (found.empty()) return nothing_read_error(slow, bytes_elsewhere);
  return found;
}

// Finds from the calls how the program read below the root: how many threads at once, and the time from their
// first read to their last.
Reading reading_of_calls(const FileSums& sums, const Tier& slow, const FoundFiles& found) {
  const std::vector<std::string> roots = roots_of(slow.root);
  ThreadReadings threads;
  Reading reading;
  int64_t first = INT64_MAX;
  int64_t last = INT64_MIN;
  sums.each_entry([&](const penstock_counters& counters, const ProcessFile& process_file,
                      std::string_view path, unsigned) {
    const bool is_upper_layer = counters.layer == PENSTOCK_MPIIO || counters.layer >= PENSTOCK_HDF5;
    if (is_upper_layer || counters.bytes_read == 0 || !found.contains(below_root(roots, path))) return;
    const ThreadReading& thread = add_reading(threads, counters, process_file);
    reading.bytes += counters.bytes_read;
    first = std::min(first, thread.first_ns);
    last = std::max(last, thread.last_ns);
  });
  reading.threads = threads_at_once(threads, reading.bytes);
  if (first < last) reading.wall_s = double(last - first) / 1e9;
  for (const auto& [name, file] : found) reading.busy_s += file.busy_s;
  return reading;
}

double epochs_of(const FoundFiles& found) {
  std::vector<double> reads_per_file;
  for (const auto& [name, file] : found)
    if (file.seen_size != 0) reads_per_file.push_back(double(file.bytes) / double(file.seen_size));
  if (reads_per_file.empty()) return 1;
  const auto middle = reads_per_file.begin() + ptrdiff_t(reads_per_file.size() / 2);
  std::nth_element(reads_per_file.begin(), middle, reads_per_file.end());
  return std::max(*middle, 1.0);
}

void take_file(const std::string& name, const FileReads& found, const Tier& slow, SessionWork& work) {
  struct stat current {};
  const std::string path = (fs::path(slow.root) / name).string();
  if (found.written) {
    ++work.written_files;
  } else if (::stat(path.c_str(), &current) != 0 || !S_ISREG(current.st_mode)) {
    ++work.gone_files;
  } else if (!is_utf8(name) || !check_object_name(name).ok()) {
    ++work.odd_names;
  } else if (uint64_t(current.st_size) < found.seen_size) {
    ++work.shrunk_files;
  } else {
    FileThatWasRead& file = work.files.emplace_back();
    file.name = name;
    file.bytes = uint64_t(current.st_size);
    file.mtime_ns = int64_t{current.st_mtim.tv_sec} * 1'000'000'000 + current.st_mtim.tv_nsec;
    const auto requests = double(std::max<uint64_t>(found.requests, 1));
    file.requests = requests / work.epochs;
    file.request_bytes = double(found.bytes) / requests;
    file.first_ns = found.first_ns;
  }
}

Result<void> find_cached_fractions(const Tier& slow, SessionWork& work) {
  return parallel_for(work.files.size(), worker_threads(0), 16, [&](unsigned, uint64_t i) -> Result<void> {
    FileThatWasRead& file = work.files[i];
    const auto resident = residency(fs::path(slow.root) / file.name);
    if (resident.ok() && resident->verified) file.cached = resident->fraction();
    return success();
  });
}

}  // namespace

uint64_t SessionWork::bytes() const {
  return std::accumulate(files.begin(), files.end(), uint64_t{0},
                         [](uint64_t sum, const FileThatWasRead& file) { return sum + file.bytes; });
}

double SessionWork::cached_bytes() const {
  return std::accumulate(files.begin(), files.end(), 0.0, [](double sum, const FileThatWasRead& file) {
    return sum + file.cached * double(file.bytes);
  });
}

Result<SessionWork> work_of(const Session& session, const SessionFilter& filter, const Tier& slow,
                            bool look_in_cache) {
  if (!slow.backend->native_path(""))
    return make_error(
        Errc::invalid_argument,
        "tier '{}' is not a local folder, and a session contains only local files: name a folder", slow.name);
  const FileSums sums(session);
  PENSTOCK_ASSIGN(const FoundFiles found, find_files(sums, filter, slow));
  SessionWork work;
  work.epochs = epochs_of(found);
  for (const auto& [name, file] : found) take_file(name, file, slow, work);
  if (work.files.empty())
    return make_error(
        Errc::not_found,
        "none of the {} files that the session read below {} can be staged: {} were deleted, {} are shorter "
        "now, {} were written by the program itself, {} have names that are not UTF-8 or too long",
        found.size(), slow.root, work.gone_files, work.shrunk_files, work.written_files, work.odd_names);
  uint64_t bytes_read = 0;
  for (const auto& [name, file] : found) bytes_read += file.bytes;
  work.epoch_bytes = uint64_t(double(bytes_read) / work.epochs);
  Reading reading = reading_of_spans(session);
  work.by_spans = reading.bytes != 0;
  if (!work.by_spans) reading = reading_of_calls(sums, slow, found);
  work.threads = unsigned(std::max<uint64_t>(reading.threads, 1));
  if (reading.bytes != 0) {
    const double epoch_share = double(work.epoch_bytes) / double(reading.bytes);
    work.observed_s = reading.wall_s * epoch_share;
    work.think_s = std::max(reading.wall_s * work.threads - reading.busy_s, 0.0) * epoch_share;
  }
  if (look_in_cache) PENSTOCK_TRY(find_cached_fractions(slow, work));
  return work;
}

}  // namespace penstock
