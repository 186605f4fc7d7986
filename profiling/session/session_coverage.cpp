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

// What one process adds to the comparison. A parent gives to its children, so that a sum may fall below zero
// on the way: it then wraps, and comes back.
struct Share {
  std::uint64_t kernel_read = 0;
  std::uint64_t kernel_written = 0;
  std::uint64_t seen_read = 0;
  std::uint64_t seen_written = 0;
  bool known = true;                        // to its end
  bool broken = false;                      // the end of an image that is not the last is unknown
  bool cut = false;                         // a file lacks some of what was seen
  std::optional<std::size_t> counted_with;  // a process whose counters hold the end of this one's
};

// The image's last word, or what the kernel says now.
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

  // The process that `child` was started by. One that did nothing but fork left no file: then its own parent,
  // which has noted it, stands for it.
  std::optional<std::size_t> parent_of(std::size_t child) const {
    const SessionImage& born = processes_[child].first();
    const auto parent = key(born, born.header().parent_pid);
    const auto found = latest(by_pid_, parent, child);
    return found ? found : latest(begot_, parent, child);
  }

  // A child that its parent was seen to begin and not to wait for. Those that libc began (system, popen) it
  // reaps unseen.
  bool left_alone(std::size_t parent, std::size_t child) const {
    const std::pair both{parent, processes_[child].first().header().pid};
    return children_.contains(both) && !reaped_.contains(both);
  }

 private:
  using Key = std::pair<std::string_view, std::uint32_t>;
  static Key key(const SessionImage& image, std::uint32_t pid) { return {image.host(), pid}; }

  // Of those of that number the one that started last before the child. A process may do its first I/O, and
  // have its file started, after the end of a child: what counts is its own begin.
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
  std::set<std::pair<std::size_t, std::uint32_t>> children_;  // of which process, their number
  std::set<std::pair<std::size_t, std::uint32_t>> reaped_;
};

// From each image's begin to its end, as far as ends are known.
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

// What the kernel handed on to whoever reaped it, as far as it is known.
penstock_kernel_io handed_on(const SessionProcess& process, const std::string& host) {
  return end_of(process.last(), host).value_or(process.last().header().kernel_begin);
}

bool below_zero(std::uint64_t sum) {
  return sum > static_cast<std::uint64_t>(INT64_MAX);
}

// Children that had ended, but that a parent which died at that moment had not looked at yet, are told by its
// counters: there would be less than nothing left. The last to end are the first to be taken back.
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

// Whether the end of this process's counters is known, or part of those of one that is.
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
  std::map<std::size_t, std::vector<std::size_t>> reaped_by;  // of a parent, its children
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
    if (shares[i].broken) shares[*parent].broken = true;  // it holds bytes of an unknown process
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
