#include "profiling/session/roll_up.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <utility>

#include "io_backends/files/mounts.hpp"
#include "io_backends/tiers/tier.hpp"
#include "profiling/session/layers.hpp"

namespace penstock {

MountTable::MountTable(std::vector<std::string> mount_points) : mount_points_(std::move(mount_points)) {
  std::sort(mount_points_.begin(), mount_points_.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  mount_points_.erase(std::unique(mount_points_.begin(), mount_points_.end()), mount_points_.end());
}

MountTable MountTable::of_this_machine() {
  std::ifstream mountinfo("/proc/self/mountinfo");
  std::vector<std::string> points = mount_points(mountinfo);
  points.emplace_back("/");
  MountTable table(std::move(points));
  for (const std::string& point : table.mount_points_) {
    mountinfo.clear();
    mountinfo.seekg(0);
    // Finds mounts whose files the kernel makes. The type of the file system is not enough: /sys/fs/cgroup
    // may be a tmpfs. So the path counts as well.
    if (point.starts_with("/proc/") || point.starts_with("/sys/") ||
        is_pseudo_file_system(facts_from_mountinfo(mountinfo, point).fs_type))
      table.pseudo_mounts_.insert(point);
  }
  return table;
}

std::string_view MountTable::mount_of(std::string_view path) const {
  if (!path.starts_with('/')) return "";
  for (const std::string& point : mount_points_)
    if (point == "/" || is_within(path, point)) return point;
  return "";
}

void RollUps::add(std::string_view name, uint64_t files, const LayerSum& all, std::string_view largest,
                  uint64_t largest_bytes) {
  RollUp& row = rows_[name];
  row.name = name;
  row.files += files;
  row.all.add(all);
  if (row.largest_file.empty() || largest_bytes > row.largest_bytes) {
    row.largest_file = largest;
    row.largest_bytes = largest_bytes;
  }
}

void RollUps::add(std::string_view name, const FileSum& file) {
  add(name, file.kind == PENSTOCK_DIRECTORY ? 0 : 1, file.all, file.path, file.all.bytes());
}

void RollUps::add(const RollUps& more) {
  for (const auto& [name, row] : more.rows_)
    add(name, row.files, row.all, row.largest_file, row.largest_bytes);
}

std::vector<RollUp> RollUps::largest_rows(size_t max_rows) const {
  std::vector<RollUp> rows;
  rows.reserve(rows_.size());
  for (const auto& [name, row] : rows_) rows.push_back(row);
  const auto ranks_before = [](const RollUp& a, const RollUp& b) {
    if (a.all.bytes() != b.all.bytes()) return a.all.bytes() > b.all.bytes();
    return a.all.io_ns() != b.all.io_ns() ? a.all.io_ns() > b.all.io_ns() : a.name < b.name;
  };
  const size_t count = std::min(max_rows, rows.size());
  std::partial_sort(rows.begin(), rows.begin() + ptrdiff_t(count), rows.end(), ranks_before);
  rows.resize(count);
  return rows;
}

std::string_view folder_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return "";
  return slash == 0 ? path.substr(0, 1) : path.substr(0, slash);
}

std::vector<ProcessSum> sum_by_process(const Session& session, const FileSums& sums,
                                       const SessionFilter& filter) {
  std::vector<ProcessSum> rows(session.processes.size());
  std::map<const ProcessFile*, size_t> row_of;
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].process = &session.processes[i];
    for (const ProcessFile* const process_file : session.processes[i].process_files) row_of[process_file] = i;
  }
  std::vector<std::set<uint32_t>> threads(rows.size());
  std::vector<uint64_t> last_file_key(rows.size(), 0);
  std::vector<bool> has_counters(rows.size(), false);
  const ProcessFile* previous_file = nullptr;
  size_t row = 0;
  sums.each_entry([&](const penstock_counters& counters, const ProcessFile& process_file,
                      std::string_view path, unsigned kind) {
    const bool moved_bytes = (counters.bytes_read | counters.bytes_written | counters.mapped_bytes) != 0;
    if (!moves_bytes_of_its_own(counters.layer) || !filter.wants(path, kind, moved_bytes, process_file))
      return;
    if (&process_file != previous_file) {
      row = row_of[&process_file];
      previous_file = &process_file;
    }
    LayerSum sum;
    sum.add(counters, process_file.view().clock());
    if (sum.operations() == 0) return;
    rows[row].all.add(sum);
    threads[row].insert(counters.thread);
    if (has_counters[row] && last_file_key[row] == counters.file) return;
    has_counters[row] = true;
    last_file_key[row] = counters.file;
    rows[row].files += kind == PENSTOCK_DIRECTORY ? 0 : 1;
  });
  for (size_t i = 0; i < rows.size(); ++i) rows[i].threads = uint32_t(threads[i].size());
  return rows;
}

bool TopFiles::ranks_higher(const FileSum& a, const FileSum& b) const {
  const double a_figure = figure_(a);
  const double b_figure = figure_(b);
  return a_figure != b_figure ? a_figure > b_figure : a.path < b.path;
}

void TopFiles::add(const FileSum& file) {
  if (figure_(file) <= 0) return;
  ++counted_files_;
  push(file);
}

void TopFiles::push(const FileSum& file) {
  if (max_files_ == 0) return;
  const auto higher = [this](const FileSum& a, const FileSum& b) { return ranks_higher(a, b); };
  if (heap_.size() == max_files_) {
    if (!ranks_higher(file, heap_.front())) return;
    std::pop_heap(heap_.begin(), heap_.end(), higher);
    heap_.pop_back();
  }
  heap_.push_back(file);
  std::push_heap(heap_.begin(), heap_.end(), higher);
}

void TopFiles::add(const TopFiles& more) {
  counted_files_ += more.counted_files_;
  for (const FileSum& file : more.heap_) push(file);
}

std::vector<FileSum> TopFiles::ranked() const {
  std::vector<FileSum> files = heap_;
  std::sort(files.begin(), files.end(),
            [this](const FileSum& a, const FileSum& b) { return ranks_higher(a, b); });
  return files;
}

double by_bytes(const FileSum& file) {
  return double(file.all.bytes_read) + double(file.all.bytes_written);
}
double by_time(const FileSum& file) {
  return file.all.io_ns();
}
double by_size(const FileSum& file) {
  return file.kind == PENSTOCK_DIRECTORY ? 0 : double(file.size);
}

}  // namespace penstock
