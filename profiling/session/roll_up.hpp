// Files of a session added up by where they lie or by who used them.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiling/session/file_sums.hpp"
#include "profiling/session/session_filter.hpp"
#include "profiling/session/session_summary.hpp"

namespace penstock {

// The mounts of this machine as they are now, which may not be those of the run.
class MountTable {
 public:
  explicit MountTable(std::vector<std::string> mount_points);
  static MountTable of_this_machine();
  // The mount point that an absolute path lies on; "" for any other text. Lives as long as the table.
  std::string_view mount_of(std::string_view path) const;
  // Whether such a mount point holds what the kernel says of itself: /proc, /sys and what is mounted below
  // them, /dev (but not /dev/shm). Known of this machine alone.
  bool is_pseudo(std::string_view mount) const { return pseudo_.contains(mount); }

 private:
  std::vector<std::string> longest_first_;
  std::set<std::string, std::less<>> pseudo_;
};

// A row of a roll-up: a mount, a folder, a process or a file.
struct RollUp {
  std::string_view name;
  std::uint64_t files = 0;
  LayerSum all;
  std::string_view largest;  // the path of the file that most bytes were moved of
  std::uint64_t largest_bytes = 0;
};

// By name. One for each thread, then added.
class RollUps {
 public:
  void add(std::string_view name, const FileSum& file);
  void add(const RollUps& more);
  // By bytes moved, then by time, then by name; at most `most`.
  std::vector<RollUp> largest(std::size_t most) const;
  std::size_t size() const { return rows_.size(); }

 private:
  void add(std::string_view name, std::uint64_t files, const LayerSum& all, std::string_view largest,
           std::uint64_t largest_bytes);
  std::unordered_map<std::string_view, RollUp> rows_;
};

// "/a" of "/a/b"; "/" of "/b"; "" where there is no slash.
std::string_view folder_of(std::string_view path);

// What each process did to the files that are wanted, in the order of the session's processes.
struct ProcessSum {
  const SessionProcess* process = nullptr;
  std::uint64_t files = 0;
  std::uint32_t threads = 0;  // that did anything
  LayerSum all;
};
std::vector<ProcessSum> sum_by_process(const Session& session, const FileSums& sums,
                                       const SessionFilter& filter);

// Keeps the files that rank highest by some figure.
class TopFiles {
 public:
  TopFiles(std::size_t most, double (*figure)(const FileSum&)) : most_(most), figure_(figure) {}
  void add(const FileSum& file);
  void add(const TopFiles& more);
  std::vector<FileSum> ranked() const;                            // the highest first; none whose figure is 0
  std::uint64_t skipped() const { return seen_ - heap_.size(); }  // that rank below them

 private:
  bool before(const FileSum& a, const FileSum& b) const;  // ranks higher
  void keep(const FileSum& file);
  std::size_t most_;
  std::uint64_t seen_ = 0;  // whose figure is not 0
  double (*figure_)(const FileSum&);
  std::vector<FileSum> heap_;  // the lowest in front
};

double by_bytes(const FileSum& file);
double by_time(const FileSum& file);
double by_size(const FileSum& file);

}  // namespace penstock
