#include "profiling/session/session_coverage.hpp"

#include <algorithm>
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

// The counts of one process for the comparison. The counts of children are subtracted from their parent, so
// an unsigned sum may wrap below zero in between. It is right again at the end.
struct Share {
  std::uint64_t kernel_read = 0;
  std::uint64_t kernel_written = 0;
  std::uint64_t seen_read = 0;
  std::uint64_t seen_written = 0;
  bool known = true;                        // the end of the last image is known
  bool broken = false;                      // an image before the last one has no known end
  bool cut = false;                         // the file was cut, so recorded calls are missing
  std::optional<std::size_t> counted_with;  // the process whose counters contain this one's final counts
};

// The final counters of the image. If it has none and the process runs, the kernel's current counters.
std::optional<penstock_kernel_io> end_of(const SessionImage& image, const std::string& host) {
  if (image.header().kernel_end_known != 0) return image.header().kernel_end;
  penstock_kernel_io now{};
  if (lives(image, host) && read_kernel_io(image.header().pid, now)) return now;
  return std::nullopt;
}

void add_seen(const SessionImage& image, Share& share, SessionCoverage& all) {
  image.view().each<penstock_thread>(PENSTOCK_BLOCK_THREADS,
                                     [&](const penstock_thread& thread, std::uint64_t) {
                                       share.seen_read += thread.kernel_read;
                                       share.seen_written += thread.kernel_written;
                                       all.ring_bytes += thread.ring_read + thread.ring_written;
                                       all.spliced_bytes += thread.spliced;
                                       all.mapped_bytes += thread.mapped;
                                       all.missed += thread.missed;
                                       all.missed_ns += image.view().clock().duration_ns(thread.missed_ticks);
                                       ++all.threads;
                                     });
}

class Tree {
 public:
  explicit Tree(const Session& session) : processes_(session.processes) {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      by_pid_.emplace(key(processes_[i].first(), processes_[i].first().header().pid), i);
      for (const SessionImage* const image : processes_[i].images)
        image->view().each_event([&](const penstock_event& event, std::string_view) {
          if (event.kind == PENSTOCK_EVENT_FORK || event.kind == PENSTOCK_EVENT_SPAWN) {
            begot_.emplace(key(*image, event.pid), i);
            children_.emplace(i, event.pid);
          } else if (event.kind == PENSTOCK_EVENT_REAP) {
            reaped_.emplace(i, event.pid);
          }
        });
    }
  }

  // The process that started `child`. If that process left no file (it only forked), the result is the
  // recorded process that started it.
  std::optional<std::size_t> parent_of(std::size_t child) const {
    const SessionImage& born = processes_[child].first();
    const auto parent = key(born, born.header().parent_pid);
    const auto found = latest(by_pid_, parent, child);
    return found ? found : latest(begot_, parent, child);
  }

  // True if the parent recorded that it started this child, and did not record that it waited for the child.
  // Children that libc starts (system(), popen()) are not recorded, and libc waits for them.
  bool left_alone(std::size_t parent, std::size_t child) const {
    const std::pair both{parent, processes_[child].first().header().pid};
    return children_.contains(both) && !reaped_.contains(both);
  }

 private:
  using Key = std::pair<std::string_view, std::uint32_t>;
  static Key key(const SessionImage& image, std::uint32_t pid) { return {image.host(), pid}; }

  // The newest process with this id that is not later than the child. Pids are used again, so there may be
  // several. The begin of a process is compared, not its first I/O: that may be later than the end of the
  // child.
  std::optional<std::size_t> latest(const std::multimap<Key, std::size_t>& among, const Key& pid,
                                    std::size_t child) const {
    std::optional<std::size_t> best;
    const auto [from, to] = among.equal_range(pid);
    for (auto at = from; at != to; ++at) {
      if (at->second == child || is_later(at->second, child)) continue;
      if (!best || is_later(at->second, *best)) best = at->second;
    }
    return best;
  }
  bool is_later(std::size_t a, std::size_t b) const {
    const penstock_session_header& one = processes_[a].first().header();
    const penstock_session_header& other = processes_[b].first().header();
    if (one.process_start != 0 && other.process_start != 0) return one.process_start > other.process_start;
    return one.begin.monotonic_ns > other.begin.monotonic_ns;
  }

  const std::vector<SessionProcess>& processes_;
  std::multimap<Key, std::size_t> by_pid_;
  std::multimap<Key, std::size_t> begot_;
  std::set<std::pair<std::size_t, std::uint32_t>> children_;  // (number of the parent, pid of the child)
  std::set<std::pair<std::size_t, std::uint32_t>> reaped_;
};

// Adds the kernel's counts from the begin to the end of each image, as far as the ends are known.
void add_kernel(const SessionProcess& process, const std::string& host, Share& share) {
  for (const SessionImage* const image : process.images) {
    const auto end = end_of(*image, host);
    if (!end) {
      share.known = false;
      share.broken = share.broken || image != process.images.back();
      continue;
    }
    share.kernel_read += end->rchar - image->header().kernel_begin.rchar;
    share.kernel_written += end->wchar - image->header().kernel_begin.wchar;
  }
}

// The counts that the kernel added to the parent when it waited for this process, as far as they are known.
penstock_kernel_io handed_on(const SessionProcess& process, const std::string& host) {
  return end_of(process.last(), host).value_or(process.last().header().kernel_begin);
}

bool below_zero(std::uint64_t sum) {
  return sum > static_cast<std::uint64_t>(INT64_MAX);
}

// Corrects the case of a parent that died before it waited for all its children. The counts of a child that
// was not waited for must not be subtracted from its parent. Such a case shows as a parent with counts below
// zero. Then the children are added back, the last that ended first.
void take_back(const std::vector<SessionProcess>& processes, const std::string& host,
               std::vector<Share>& shares, std::map<std::size_t, std::vector<std::size_t>>& reaped_by) {
  for (auto& [parent, children] : reaped_by) {
    Share& share = shares[parent];
    std::ranges::sort(children, {},
                      [&](std::size_t child) { return processes[child].last().end_monotonic_ns(); });
    while (!children.empty() && share.known &&
           (below_zero(share.kernel_read) || below_zero(share.kernel_written))) {
      const std::size_t child = children.back();
      const penstock_kernel_io given = handed_on(processes[child], host);
      share.kernel_read += given.rchar;
      share.kernel_written += given.wchar;
      shares[child].counted_with.reset();
      children.pop_back();
    }
  }
}

// True if the final counters of this process are known, or are contained in those of a process that has them.
bool is_compared(const std::vector<Share>& shares, std::size_t process) {
  constexpr int kDeepest = 64;
  for (int steps = 0; steps < kDeepest; ++steps) {
    if (shares[process].broken || shares[process].cut) return false;
    if (shares[process].known) return true;
    if (!shares[process].counted_with) return false;
    process = *shares[process].counted_with;
  }
  return false;
}

std::uint64_t whole(std::uint64_t sum) {
  return below_zero(sum) ? 0 : sum;
}

}  // namespace

double Coverage::fraction() const {
  if (kernel == 0) return seen == 0 ? 1 : std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(seen) / static_cast<double>(kernel);
}

bool lives(const SessionImage& image, std::string_view this_host) {
  const penstock_session_header& header = image.header();
  return header.state == PENSTOCK_RUNNING && image.host() == this_host &&
         process_runs(header.pid, header.process_start);
}

SessionCoverage coverage_of(const Session& session) {
  SessionCoverage all;
  const std::string host = this_host();
  const Tree tree(session);
  std::vector<Share> shares(session.processes.size());
  std::map<std::size_t, std::vector<std::size_t>> reaped_by;  // the children of each parent
  for (std::size_t i = 0; i < shares.size(); ++i) {
    for (const SessionImage* const image : session.processes[i].images) add_seen(*image, shares[i], all);
    add_kernel(session.processes[i], host, shares[i]);
    shares[i].cut = std::ranges::any_of(session.processes[i].images,
                                        [](const SessionImage* image) { return image->missing_bytes() > 0; });
    if (shares[i].cut) ++all.cut_processes;
  }
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const SessionProcess& process = session.processes[i];
    if (lives(process.last(), host)) ++all.running_processes;
    const auto parent = tree.parent_of(i);
    if (!parent) continue;
    const SessionProcess& begetter = session.processes[*parent];
    const bool reaped = begetter.last().end_monotonic_ns() >= process.last().end_monotonic_ns() &&
                        process.last().header().state != PENSTOCK_STOPPED && !lives(process.last(), host) &&
                        !tree.left_alone(*parent, i);
    if (!reaped) continue;
    if (shares[i].broken) shares[*parent].broken = true;  // its counts contain bytes of an unknown process
    const penstock_kernel_io given = handed_on(process, host);
    shares[*parent].kernel_read -= given.rchar;
    shares[*parent].kernel_written -= given.wchar;
    if (!shares[i].known) shares[i].counted_with = parent;
    reaped_by[*parent].push_back(i);
  }
  take_back(session.processes, host, shares, reaped_by);
  std::uint64_t kernel_read = 0;
  std::uint64_t kernel_written = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (!is_compared(shares, i)) {
      ++all.unknown_processes;
      continue;
    }
    kernel_read += shares[i].kernel_read;
    kernel_written += shares[i].kernel_written;
    all.rchar.seen += shares[i].seen_read;
    all.wchar.seen += shares[i].seen_written;
  }
  all.rchar.kernel = whole(kernel_read);
  all.wchar.kernel = whole(kernel_written);
  return all;
}

}  // namespace penstock
