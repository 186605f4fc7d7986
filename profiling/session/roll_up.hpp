// Adds up the files of a session by mount, by folder or by process.
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

// The mounts of this machine at present. They may differ from the mounts during the run.
class MountTable {
 public:
  explicit MountTable(std::vector<std::string> mount_points);
  static MountTable of_this_machine();
  // The mount point of an absolute path; "" for any other text. The result is valid as long as the table.
  std::string_view mount_of(std::string_view path) const;
  // True for a mount point whose files the kernel makes: /proc, /sys, mounts below them, and mounts of types
  // that only the kernel fills, such as /dev if it is a devtmpfs (in some containers it is a tmpfs). False
  // for mounts of another machine, which are not known here.
  bool is_pseudo(std::string_view mount) const { return pseudo_mounts_.contains(mount); }

 private:
  std::vector<std::string> mount_points_;  // the longest first
  std::set<std::string, std::less<>> pseudo_mounts_;
};

// One row of a roll-up: the sum of the files of a mount or of a folder.
struct RollUp {
  std::string_view name;
  uint64_t files = 0;
  LayerSum all;
  std::string_view largest_file;  // path of the file with the most bytes read and written
  uint64_t largest_bytes = 0;
};

// Collects the rows of a roll-up. Each thread fills a RollUps of its own; at the end they are added up.
class RollUps {
 public:
  void add(std::string_view name, const FileSum& file);
  void add(const RollUps& more);
  // The largest rows, at most `max_rows`: sorted by bytes, then by time, then by name.
  std::vector<RollUp> largest_rows(size_t max_rows) const;
  size_t size() const { return rows_.size(); }

 private:
  void add(std::string_view name, uint64_t files, const LayerSum& all, std::string_view largest,
           uint64_t largest_bytes);
  std::unordered_map<std::string_view, RollUp> rows_;
};

// The folder of a path: "/a" for "/a/b"; "/" for "/b"; "" for a path without a slash.
std::string_view folder_of(std::string_view path);

// What one process did to the files that the filter wants.
struct ProcessSum {
  const SessionProcess* process = nullptr;
  uint64_t files = 0;
  uint32_t threads = 0;  // threads that did any I/O
  LayerSum all;
};
// Returns an entry for each process of the session, in the order of Session::processes.
std::vector<ProcessSum> sum_by_process(const Session& session, const FileSums& sums,
                                       const SessionFilter& filter);

// Selects the files with the highest values of `figure`, at most `max_files` of them.
class TopFiles {
 public:
  TopFiles(size_t max_files, double (*figure)(const FileSum&)) : max_files_(max_files), figure_(figure) {}
  void add(const FileSum& file);
  void add(const TopFiles& more);
  // returns the selected files, the highest first; files whose figure is 0 are not selected
  std::vector<FileSum> ranked() const;
  // the number of files that were not selected although their figure is not 0
  uint64_t skipped() const { return counted_files_ - heap_.size(); }

 private:
  bool ranks_higher(const FileSum& a, const FileSum& b) const;  // `a` ranks higher than `b`
  void push(const FileSum& file);
  size_t max_files_;
  uint64_t counted_files_ = 0;  // files whose figure is not 0
  double (*figure_)(const FileSum&);
  std::vector<FileSum> heap_;  // the selected files as a heap: the one with the lowest figure is in front
};

double by_bytes(const FileSum& file);
double by_time(const FileSum& file);
double by_size(const FileSum& file);

}  // namespace penstock
