// Threads: one thread of a command calls walk_folders(), which lists folders with several threads. Each
// thread fills its own FolderWalk, without a lock. The threads share only the FolderQueue. The FolderWalks
// are merged after the threads have ended.
// Lock: FolderQueue::mutex_. It is not held while a folder is listed.
// Memory: everything but objects() allocates. A std::bad_alloc in a thread stops all of them (AtScopeEnd),
// and on_threads() turns it into an error.
// Ctrl-C: a thread checks for it at each entry and then stops the other threads, including those that wait in
// wait_for_folder().
// Crash: nothing is written.
#include "datagen/objects/folder_walk.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "datagen/format/sample_type.hpp"
#include "io_backends/core/parallel/parallel.hpp"
#include "io_backends/core/system/threads.hpp"
#include "io_backends/core/system/scope.hpp"

namespace penstock {

namespace {

constexpr std::string_view kOtherExtensions = "...";

// Folders that are not listed yet. Any thread may use it. The walk ends when waiting_folders_ is empty and no
// thread is listing a folder: a thread that lists a folder may still find subfolders.
class FolderQueue {
 public:
  explicit FolderQueue(std::string root) { waiting_folders_.push_back(std::move(root)); }

  // Waits for a folder to list. Returns false if none is left or stop() was called. After true, the thread
  // must call finish_folder() or stop(); otherwise the other threads wait for ever.
  bool wait_for_folder(std::string& folder) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !waiting_folders_.empty() || listing_threads_ == 0 || stopped_; });
    if (waiting_folders_.empty() || stopped_) return false;
    folder = std::move(waiting_folders_.back());
    waiting_folders_.pop_back();
    ++listing_threads_;
    return true;
  }
  // Tells the queue that this thread has listed its folder and has found `subfolders` in it. Both
  // changes are made under one lock. Otherwise another thread could see no waiting folder and no listing
  // thread, and end the walk too early.
  void finish_folder(std::vector<std::string> subfolders) {
    {
      std::lock_guard lock(mutex_);
      --listing_threads_;
      for (std::string& folder : subfolders) waiting_folders_.push_back(std::move(folder));
    }
    changed_.notify_all();
  }
  // Stops all threads for good. Threads that wait in wait_for_folder() return. Threads that are listing a
  // folder finish that folder first.
  void stop() {
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> waiting_folders_;
  size_t listing_threads_ = 0;  // number of threads that are listing a folder
  bool stopped_ = false;
};

// Counts an object that is left out, by its extension. Extensions of more than 32 bytes are counted together,
// under "...".
void count_left_out(FolderWalk& walk, std::string_view extension) {
  constexpr size_t kMostExtensionBytes = 32;
  if (extension.size() > kMostExtensionBytes) extension = kOtherExtensions;
  const auto counted = walk.left_out_by_extension.find(extension);
  if (counted != walk.left_out_by_extension.end())
    ++counted->second;
  else
    walk.left_out_by_extension.emplace(extension, 1);
}

// Keeps the extensions of which most objects were left out, and counts the others together, under "...". Only
// at the end, when all counts are known: else a count could lack some objects.
void join_rare_extensions(FolderWalk& walk) {
  constexpr size_t kMostKinds = 32;
  if (walk.left_out_by_extension.size() <= kMostKinds) return;
  std::vector<std::pair<uint64_t, std::string>> by_count;
  for (const auto& [extension, count] : walk.left_out_by_extension)
    if (extension != kOtherExtensions) by_count.emplace_back(count, extension);
  std::stable_sort(by_count.begin(), by_count.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (size_t i = kMostKinds - 1; i < by_count.size(); ++i) {
    walk.left_out_by_extension[std::string(kOtherExtensions)] += by_count[i].first;
    walk.left_out_by_extension.erase(by_count[i].second);
  }
}

std::string_view last_part(std::string_view name) {
  return name.substr(name.rfind('/') + 1);  // if there is no '/', this is the whole name: npos + 1 is 0
}

// Adds the objects of one folder to `walk`, and its subfolders to `subfolders`. Runs without a lock on the
// thread that took the folder. Only this thread uses `walk` and `subfolders`.
Result<void> list_folder(Namespace& names, const std::string& folder,
                         const std::function<uint16_t(const Entry&)>& classify,
                         const std::function<bool(const Entry&)>& enters_link, FolderWalk& walk,
                         std::vector<std::string>& subfolders) {
  FolderListing listing;
  listing.path = folder;
  bool stopped = false;
  bool too_long = false;
  bool is_empty = !folder.empty();
  const auto visit = [&](const Entry& entry) {
    stopped = interrupted();
    const std::string_view name = last_part(entry.name);
    is_empty = is_empty && name.starts_with('.');
    if (name.starts_with('.')) {
      ++walk.hidden_entries;
    } else if (entry.folder) {
      const bool is_left_out = entry.link && !(enters_link && enters_link(entry));
      const bool valid = is_left_out || check_object_name(entry.name).ok();
      (is_left_out ? walk.folder_links : valid ? subfolders : walk.too_long_names).push_back(entry.name);
    } else if (entry.dangling) {
      walk.dangling_links.push_back(entry.name);
    } else if (const uint16_t kind = classify(entry); kind == kNotWanted) {
      count_left_out(walk, extension_of(name));
    } else if (!check_object_name(entry.name).ok()) {
      walk.too_long_names.push_back(entry.name);
    } else {
      too_long = too_long || name.size() > UINT16_MAX || listing.names.size() + name.size() > UINT32_MAX;
      listing.items.push_back({entry.bytes, uint32_t(listing.names.size()), uint16_t(name.size()), kind});
      listing.names += name;
      walk.linked_objects += entry.link ? 1 : 0;
    }
    return !stopped && !too_long;
  };
  PENSTOCK_TRY(names.list_all(folder, visit, [&](std::string_view name) {
    if (last_part(name).starts_with('.')) return;
    is_empty = false;
    walk.special_files.emplace_back(name);
  }));
  if (stopped) return check_interrupt();
  if (too_long) return make_error(Errc::exhausted, "more than 4 GiB of names in the folder '" + folder + "'");
  std::sort(listing.items.begin(), listing.items.end(),
            [&](const auto& a, const auto& b) { return listing.name(a) < listing.name(b); });
  if (!listing.items.empty()) walk.folders.push_back(std::move(listing));
  if (is_empty) walk.empty_folders.push_back(folder);
  return success();
}

}  // namespace

std::string_view FolderListing::full_name(const Item& item, std::string& scratch) const {
  scratch.assign(path);
  if (!path.empty()) scratch += '/';
  scratch.append(name(item));
  return scratch;
}

uint64_t FolderWalk::objects() const {
  uint64_t count = 0;
  for (const FolderListing& folder : folders) count += folder.items.size();
  return count;
}

Result<FolderWalk> walk_folders(Namespace& names, unsigned threads,
                                const std::function<uint16_t(const Entry&)>& classify,
                                const std::function<bool(const Entry&)>& enters_link) {
  FolderQueue queue("");
  std::vector<FolderWalk> parts(threads);
  const auto work = [&](unsigned worker) -> Result<void> {
    std::string folder;
    while (queue.wait_for_folder(folder)) {
      // `stop` must follow wait_for_folder() directly: if this thread fails from here on, it stops the queue.
      // Otherwise the other threads would wait for ever for this thread to finish its folder.
      AtScopeEnd stop([&] { queue.stop(); });
      std::vector<std::string> subfolders;
      PENSTOCK_TRY(list_folder(names, folder, classify, enters_link, parts[worker], subfolders));
      queue.finish_folder(std::move(subfolders));
      stop.cancel();
    }
    return success();
  };
  PENSTOCK_TRY(on_threads(threads, work));
  // Which part contains a folder depends on the threads. The sorts below make the result independent of that.
  FolderWalk merged = std::move(parts[0]);
  for (size_t i = 1; i < parts.size(); ++i) {
    std::move(parts[i].folders.begin(), parts[i].folders.end(), std::back_inserter(merged.folders));
    for (const auto& [extension, count] : parts[i].left_out_by_extension)
      merged.left_out_by_extension[extension] += count;
    merged.hidden_entries += parts[i].hidden_entries;
    merged.linked_objects += parts[i].linked_objects;
  }
  join_rare_extensions(merged);
  std::sort(merged.folders.begin(), merged.folders.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  for (const auto list : {&FolderWalk::empty_folders, &FolderWalk::folder_links, &FolderWalk::dangling_links,
                          &FolderWalk::special_files, &FolderWalk::too_long_names}) {
    for (size_t i = 1; i < parts.size(); ++i)
      std::move((parts[i].*list).begin(), (parts[i].*list).end(), std::back_inserter(merged.*list));
    std::sort((merged.*list).begin(), (merged.*list).end());
  }
  return merged;
}

}  // namespace penstock
