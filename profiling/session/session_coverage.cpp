#include "profiling/session/session_coverage.hpp"

#include <algorithm>
#include <compare>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiling/session/kernel_processes.hpp"

namespace penstock {
namespace {

// The bytes of one process according to the kernel and according to the recorded calls. The kernel adds the
// counts of a child to its parent, so they are subtracted from the parent here. Until all children are
// handled, a sum may be below zero (then it wraps around).
struct ProcessCounts {
  uint64_t kernel_read = 0;
  uint64_t kernel_written = 0;
  uint64_t recorded_read = 0;
  uint64_t recorded_written = 0;
  bool all_ends_known = true;                // the kernel's counts at the end of every process file are known
  bool lacks_earlier_end = false;            // the end of a process file before the last one is unknown
  bool is_cut = false;                       // the file was cut, so recorded calls are missing
  std::optional<size_t> counted_in_process;  // index of the parent whose kernel counts include this process
};

// Returns the pid by which this process knows the process that writes the file; 0 if that process does not
// run on this machine. A process of a container has another pid there than here.
uint32_t running_writer(const ProcessFile& process_file, std::string_view this_host) {
  const penstock_session_header& header = process_file.header();
  if (header.state != PENSTOCK_RUNNING || process_file.host() != this_host) return 0;
  for (const uint32_t pid : {header.pid, header.kernel_pid})
    if (process_runs(pid, header.process_start)) return pid;
  return 0;
}

// Returns the kernel's counts at the end of the process file, or its current counts if the process still
// runs. nullopt if the process was killed and could not write them.
std::optional<penstock_kernel_io> final_counts_of(const ProcessFile& process_file, const std::string& host) {
  const penstock_session_header& header = process_file.header();
  if (header.kernel_end_known != 0) {
    penstock_kernel_io end = header.kernel_end;
    // Calls of the last handlers and destructors, which were made after kernel_end was read. A file that was
    // cut short may lack threads.
    if (header.counted_end_is_known == 1) {
      uint64_t read = 0;
      uint64_t written = 0;
      process_file.view().each<penstock_thread>(PENSTOCK_BLOCK_THREADS,
                                                [&](const penstock_thread& thread, uint64_t) {
                                                  read += thread.kernel_read;
                                                  written += thread.kernel_written;
                                                });
      end.rchar += read - std::min(read, header.counted_end_read);
      end.wchar += written - std::min(written, header.counted_end_written);
    }
    return end;
  }
  penstock_kernel_io current{};
  if (const uint32_t pid = running_writer(process_file, host); pid != 0 && read_kernel_io(pid, current))
    return current;
  return std::nullopt;
}

void add_recorded(const ProcessFile& process_file, ProcessCounts& counts, SessionCoverage& coverage) {
  process_file.view().each<penstock_thread>(
      PENSTOCK_BLOCK_THREADS, [&](const penstock_thread& thread, uint64_t) {
        counts.recorded_read += thread.kernel_read;
        counts.recorded_written += thread.kernel_written;
        coverage.ring_bytes += thread.ring_read + thread.ring_written;
        coverage.spliced_bytes += thread.spliced;
        coverage.mapped_bytes += thread.mapped;
        coverage.missed_calls += thread.missed;
        coverage.missed_ns += process_file.view().clock().duration_ns(thread.missed_ticks);
        ++coverage.threads;
      });
}

class ProcessTree {
 public:
  explicit ProcessTree(const Session& session) : processes_(session.processes) {
    for (size_t i = 0; i < processes_.size(); ++i) {
      by_pid_.emplace(own_key(processes_[i].first()), i);
      for (const ProcessFile* const process_file : processes_[i].process_files)
        process_file->view().each_event([&](const penstock_event& event, std::string_view) {
          if (event.pid == 0) return;  // a child whose pid is not known
          if (event.kind == PENSTOCK_EVENT_FORK || event.kind == PENSTOCK_EVENT_SPAWN) {
            starters_.emplace(Key{process_file->host(), process_file->header().pid_namespace, event.pid}, i);
            outer_starters_.emplace(Key{process_file->host(), 0, event.pid}, i);
            children_.emplace(i, event.pid);
          } else if (event.kind == PENSTOCK_EVENT_REAP) {
            reaped_children_.emplace(i, event.pid);
          }
        });
    }
  }

  // Returns the parent of `child`. If the parent wrote no file (it only forked), returns the recorded process
  // that started the parent.
  std::optional<size_t> parent_of(size_t child) const {
    const ProcessFile& first = processes_[child].first();
    const penstock_session_header& header = first.header();
    // The first process of a PID namespace has no parent there. If it was executed, and not forked by a
    // recorded process, its parent knows it by its pid in the namespace of /proc.
    if (header.parent_pid == 0)
      return find_latest(outer_starters_, Key{first.host(), 0, header.kernel_pid}, child);
    // older files have 0 in parent_namespace and in pid_namespace
    const Key parent{first.host(), header.parent_namespace, header.parent_pid};
    const auto found = find_latest(by_pid_, parent, child);
    return found ? found : find_latest(starters_, parent, child);
  }

  // Returns whether the parent recorded that it waited for this child; false also if it only recorded that it
  // started the child. nullopt if it recorded nothing of the child: system() and popen() start children and
  // wait for them inside libc.
  std::optional<bool> was_reaped(size_t parent, size_t child) const {
    for (const uint32_t pid : pids_in(parent, child)) {
      if (reaped_children_.contains({parent, pid})) return true;
      if (children_.contains({parent, pid})) return false;
    }
    return std::nullopt;
  }

 private:
  struct Key {
    std::string_view host;
    uint32_t pid_namespace;
    uint32_t pid;
    auto operator<=>(const Key&) const = default;
  };
  static Key own_key(const ProcessFile& process_file) {
    return {process_file.host(), process_file.header().pid_namespace, process_file.header().pid};
  }

  // The pids by which the parent may know the child.
  std::vector<uint32_t> pids_in(size_t parent, size_t child) const {
    const penstock_session_header& header = processes_[child].first().header();
    if (processes_[parent].first().header().pid_namespace == header.pid_namespace) return {header.pid};
    return header.kernel_pid == header.pid ? std::vector<uint32_t>{} : std::vector{header.kernel_pid};
  }

  // Returns the newest process in `among` that has this key and began no later than the child. Several
  // processes may have had the same pid, because the kernel uses pids again. Their begins are compared and
  // not their first I/O: a parent's first I/O may be later than the end of its child.
  std::optional<size_t> find_latest(const std::multimap<Key, size_t>& among, const Key& key,
                                    size_t child) const {
    std::optional<size_t> newest;
    const auto [from, to] = among.equal_range(key);
    for (auto at = from; at != to; ++at) {
      if (at->second == child || is_later(at->second, child)) continue;
      if (!newest || is_later(at->second, *newest)) newest = at->second;
    }
    return newest;
  }
  bool is_later(size_t a, size_t b) const {
    const penstock_session_header& a_header = processes_[a].first().header();
    const penstock_session_header& b_header = processes_[b].first().header();
    if (a_header.process_start != 0 && b_header.process_start != 0)
      return a_header.process_start > b_header.process_start;
    return a_header.begin.monotonic_ns > b_header.begin.monotonic_ns;
  }

  const std::vector<SessionProcess>& processes_;
  std::multimap<Key, size_t> by_pid_;
  std::multimap<Key, size_t> starters_;             // by the child's pid in the namespace of its parent
  std::multimap<Key, size_t> outer_starters_;       // the same, without the namespace
  std::set<std::pair<size_t, uint32_t>> children_;  // (index of the parent in processes_, pid of the child)
  std::set<std::pair<size_t, uint32_t>> reaped_children_;
};

// Whether the kernel has added the counts of a child to those of its parent.
enum class Given { no, yes, unknown };

Given is_given_to_parent(const Session& session, const ProcessTree& tree, size_t parent, size_t child,
                         const std::string& host) {
  const ProcessFile& last = session.processes[child].last();
  if (last.header().state == PENSTOCK_STOPPED || writer_runs(last, host)) return Given::no;
  if (const auto was_reaped = tree.was_reaped(parent, child)) return *was_reaped ? Given::yes : Given::no;
  const ProcessFile& parents_last = session.processes[parent].last();
  if (parents_last.end_monotonic_ns() >= last.end_monotonic_ns()) return Given::yes;
  // Only the file of a process that was killed does not tell how long the process lived.
  return parents_last.header().end_monotonic_ns != 0 ? Given::no : Given::unknown;
}

// Adds what the kernel counted from the begin to the end of each process file. Process files whose end counts
// are not known are left out.
void add_kernel(const SessionProcess& process, const std::string& host, ProcessCounts& counts) {
  for (const ProcessFile* const process_file : process.process_files) {
    const auto end_counts = final_counts_of(*process_file, host);
    if (!end_counts || process_file->header().kernel_begin_is_known == 2) {
      counts.all_ends_known = false;
      counts.lacks_earlier_end = counts.lacks_earlier_end || process_file != process.process_files.back();
      continue;
    }
    counts.kernel_read += end_counts->rchar - process_file->header().kernel_begin.rchar;
    counts.kernel_written += end_counts->wchar - process_file->header().kernel_begin.wchar;
  }
}

// Returns the counts that the kernel added to the parent when the parent waited for this process. If they are
// not known, returns the counts at the begin of the last process file.
penstock_kernel_io counts_given_to_parent(const SessionProcess& process, const std::string& host) {
  return final_counts_of(process.last(), host).value_or(process.last().header().kernel_begin);
}

bool is_negative(uint64_t sum) {
  return sum > uint64_t(INT64_MAX);
}

// Adds back counts of children that were wrongly subtracted from their parent. This happens if a parent died
// before it waited for a child: then the kernel did not add the child's counts to it. A parent with counts
// below zero shows that this has happened. The counts of its children are added back, the child that ended
// last first, until no count is below zero.
void restore_unreaped_children(const std::vector<SessionProcess>& processes, const std::string& host,
                               std::vector<ProcessCounts>& all_counts,
                               std::map<size_t, std::vector<size_t>>& reaped_by) {
  for (auto& [parent, children] : reaped_by) {
    ProcessCounts& counts = all_counts[parent];
    std::ranges::sort(children, {}, [&](size_t child) { return processes[child].last().end_monotonic_ns(); });
    while (!children.empty() && counts.all_ends_known &&
           (is_negative(counts.kernel_read) || is_negative(counts.kernel_written))) {
      const size_t child = children.back();
      const penstock_kernel_io child_counts = counts_given_to_parent(processes[child], host);
      counts.kernel_read += child_counts.rchar;
      counts.kernel_written += child_counts.wchar;
      all_counts[child].counted_in_process.reset();
      children.pop_back();
    }
  }
}

// True if the kernel's counts and the recorded bytes of this process can be compared: its final counts are
// known, or its parent's known final counts contain them (or those of the parent's parent, and so on).
bool is_comparable(const std::vector<ProcessCounts>& counts, size_t process) {
  constexpr int kMostSteps = 64;
  for (int steps = 0; steps < kMostSteps; ++steps) {
    if (counts[process].lacks_earlier_end || counts[process].is_cut) return false;
    if (counts[process].all_ends_known) return true;
    if (!counts[process].counted_in_process) return false;
    process = *counts[process].counted_in_process;
  }
  return false;
}

uint64_t not_negative(uint64_t sum) {
  return is_negative(sum) ? 0 : sum;
}

}  // namespace

double Coverage::fraction() const {
  if (kernel_bytes == 0) return recorded_bytes == 0 ? 1 : std::numeric_limits<double>::quiet_NaN();
  return double(recorded_bytes) / double(kernel_bytes);
}

bool writer_runs(const ProcessFile& process_file, std::string_view this_host) {
  return running_writer(process_file, this_host) != 0;
}

size_t waiting_children(const Session& session) {
  const std::string host = this_host();
  const uint32_t pid_namespace = own_pid_namespace();
  std::map<uint32_t, std::string> parents_files;  // pid of a child -> name of its parent's file
  std::set<uint32_t> with_file;                   // pids of processes that have a file
  for (const auto& process_file : session.process_files) {
    const uint32_t files_namespace = process_file->header().pid_namespace;
    if (process_file->host() != host || (files_namespace != 0 && files_namespace != pid_namespace)) continue;
    with_file.insert(process_file->header().pid);
    process_file->view().each_event([&](const penstock_event& event, std::string_view) {
      if (event.kind == PENSTOCK_EVENT_FORK && event.pid != 0)
        parents_files[event.pid] = process_file->path().filename().string();
      else if (event.kind == PENSTOCK_EVENT_REAP)
        parents_files.erase(event.pid);
    });
  }
  return size_t(std::ranges::count_if(parents_files, [&](const auto& child) {
    return !with_file.contains(child.first) && maps_file(child.first, child.second);
  }));
}

SessionCoverage coverage_of(const Session& session) {
  SessionCoverage coverage;
  coverage.waiting_children = waiting_children(session);
  const std::string host = this_host();
  const ProcessTree tree(session);
  std::vector<ProcessCounts> counts(session.processes.size());
  // index of a parent -> indexes of the children that it waited for
  std::map<size_t, std::vector<size_t>> reaped_by;
  for (size_t i = 0; i < counts.size(); ++i) {
    for (const ProcessFile* const process_file : session.processes[i].process_files)
      add_recorded(*process_file, counts[i], coverage);
    add_kernel(session.processes[i], host, counts[i]);
    counts[i].is_cut = std::ranges::any_of(
        session.processes[i].process_files,
        [](const ProcessFile* process_file) { return process_file->missing_bytes() > 0; });
    if (counts[i].is_cut) ++coverage.cut_processes;
  }
  for (size_t i = counts.size(); i-- > 0;) {  // children come first: they began after their parents
    const SessionProcess& process = session.processes[i];
    if (writer_runs(process.last(), host)) ++coverage.running_processes;
    const auto parent = tree.parent_of(i);
    if (!parent) continue;
    const Given given = is_given_to_parent(session, tree, *parent, i, host);
    if (given == Given::no) continue;
    if (given == Given::unknown || counts[i].lacks_earlier_end)
      // the parent's counts contain an unknown number of bytes of the child
      counts[*parent].lacks_earlier_end = true;
    if (given == Given::unknown) continue;
    const penstock_kernel_io child_counts = counts_given_to_parent(process, host);
    counts[*parent].kernel_read -= child_counts.rchar;
    counts[*parent].kernel_written -= child_counts.wchar;
    if (!counts[i].all_ends_known) counts[i].counted_in_process = parent;
    reaped_by[*parent].push_back(i);
  }
  restore_unreaped_children(session.processes, host, counts, reaped_by);
  uint64_t kernel_read = 0;
  uint64_t kernel_written = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (!is_comparable(counts, i)) {
      ++coverage.unknown_processes;
      continue;
    }
    kernel_read += counts[i].kernel_read;
    kernel_written += counts[i].kernel_written;
    coverage.rchar.recorded_bytes += counts[i].recorded_read;
    coverage.wchar.recorded_bytes += counts[i].recorded_written;
  }
  coverage.rchar.kernel_bytes = not_negative(kernel_read);
  coverage.wchar.kernel_bytes = not_negative(kernel_written);
  return coverage;
}

}  // namespace penstock
