// The names of a bucket below a prefix. S3 has no folders: each part of a key before a '/' counts as one.
//
// Threads: any thread calls any function at any time.
// Lock: this file has no mutex. A lock of lock() is an object that names its holder. lock() may sleep for 0.5
// s before it knows whether this process has the lock.
// Memory: names, requests and errors allocate.
// Ctrl-C: a request that a signal ends returns `interrupted` (transfers.hpp).
// Crash: the lock of a dead process remains. A process on the same host replaces it. On other hosts it stays
// `busy` until the user removes the object.
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <thread>

#include "io_backends/s3/store.hpp"

namespace penstock::s3 {
namespace {

constexpr unsigned kPage = 1000;  // the largest listing that S3 returns
constexpr std::chrono::milliseconds kPauseForOtherWriters{500};

// The holder of a lock, as its object contains it. The mark is different for each holder. Host and process
// show whether the holder has ended.
struct Holder {
  std::string mark;
  std::string host;
  long process = 0;
};

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::string text_of(const Holder& holder) {
  return holder.mark + " " + std::to_string(holder.process) + " " + holder.host + "\n";
}

std::optional<Holder> parse_holder(std::string_view text) {
  const std::size_t first = text.find(' ');
  const std::size_t second = first == std::string_view::npos ? first : text.find(' ', first + 1);
  if (second == std::string_view::npos || !text.ends_with('\n')) return std::nullopt;
  Holder holder{std::string(text.substr(0, first)), std::string(text.substr(second + 1)), 0};
  holder.host.pop_back();
  holder.process = std::atol(std::string(text.substr(first + 1, second - first - 1)).c_str());
  if (holder.process <= 0) return std::nullopt;
  return holder;
}

bool has_ended(const Holder& holder) {
  return holder.host == host_name() && ::kill(static_cast<pid_t>(holder.process), 0) != 0 && errno == ESRCH;
}

class S3Lock final : public Lock {
 public:
  S3Lock(Store& store, std::string_view name, std::string mark)
      : store_(store), name_(name), mark_(std::move(mark)) {}
  ~S3Lock() override {
    // Removes the lock only if it still has this holder's mark: another process may have taken it over.
    const Result<Answer> existing = store_.head(name_, true);
    if (existing.ok() && existing->ok() && existing->mark == mark_) static_cast<void>(store_.remove(name_));
  }

 private:
  Store& store_;
  const std::string name_;
  const std::string mark_;
};

class S3Names final : public Namespace {
 public:
  explicit S3Names(Store& store) : store_(store) {}

  // Skips nothing: an object store has only objects and prefixes.
  Result<void> list_all(std::string_view folder, const std::function<bool(const Entry&)>& visit,
                        const std::function<void(std::string_view name)>& /*skipped*/) override {
    PENSTOCK_TRY(check_folder_name(folder));
    const std::size_t prefix = store_.settings().endpoint.prefix.size();
    const std::string own = folder.empty() ? store_.key("") : store_.key(folder) + "/";
    bool any = folder.empty();
    std::string token;
    do {
      PENSTOCK_ASSIGN(const Listing page, store_.page(folder, kPage, true, token));
      if (!page.next.empty() && page.next == token)
        return make_error(Errc::corrupt, "the server's listing of '" + std::string(folder) + "' never ends");
      any = any || !page.objects.empty() || !page.prefixes.empty();
      for (const std::string& key : page.prefixes)
        if (key.starts_with(own) && key.size() > own.size() &&
            !visit({key.substr(prefix, key.size() - prefix - 1), 0, true}))
          return success();
      for (const Listing::Object& object : page.objects)
        if (object.key.starts_with(own) && object.key.size() > own.size() &&
            !visit({object.key.substr(prefix), object.bytes, false}))
          return success();
      token = page.next;
    } while (!token.empty());
    return any ? success() : errno_error(ENOENT, "cannot list", folder);
  }

  Result<Entry> stat(std::string_view name) override {
    PENSTOCK_TRY(check_folder_name(name));
    if (!name.empty()) {
      PENSTOCK_ASSIGN(const Answer answer, store_.head(name));
      if (answer.ok()) return Entry{std::string(name), answer.total, false};
      if (answer.status != 404) return refused(answer, store_.settings(), "cannot look at", name);
    }
    PENSTOCK_ASSIGN(const bool folder, store_.has_folder(name));
    if (folder || name.empty()) return Entry{std::string(name), 0, true};
    return errno_error(ENOENT, "cannot look at", name);
  }

  // Creates nothing: a folder exists when an object below it does. Fails if an object has the name of one of
  // the folders.
  Result<void> make_folders(std::string_view folder) override {
    PENSTOCK_TRY(check_folder_name(folder));
    if (folder.empty()) return success();
    return store_.check_parents(std::string(folder) + "/", "cannot make folder");
  }

  // A copy and then a removal, so it is not atomic. Only for objects, not for folders.
  Result<void> rename_noreplace(std::string_view from, std::string_view to) override {
    PENSTOCK_TRY(check_object_name(from));
    PENSTOCK_TRY(check_object_name(to));
    PENSTOCK_ASSIGN(const Entry entry, stat(from));
    if (entry.folder)
      return make_error(Errc::unsupported,
                        "cannot rename '" + std::string(from) + "': object stores do not rename folders");
    const Result<Entry> existing = stat(to);
    if (existing.ok()) return errno_error(EEXIST, "cannot rename to", to);
    if (existing.error().code != Errc::not_found) return existing.error();
    PENSTOCK_TRY(store_.check_parents(to, "cannot rename to"));
    const std::string source =
        "/" + uri_encode(store_.settings().endpoint.bucket + "/" + store_.key(from), true);
    const Result<Answer> copied = store_.perform({.method = Method::put,
                                                  .key = store_.key(to),
                                                  .headers = {{"x-amz-copy-source", source}},
                                                  .result = "CopyObjectResult"});
    if ((!copied.ok() || !copied->ok()) && !is_copy(from, to)) {
      if (!copied.ok()) return copied.error();
      return refused(*copied, store_.settings(), "cannot rename", from);
    }
    store_.published(to);
    return store_.remove(from);
  }

  Result<void> remove(std::string_view name) override {
    PENSTOCK_TRY(check_object_name(name));
    PENSTOCK_ASSIGN(const Answer answer, store_.head(name));
    if (answer.ok()) return store_.remove(name);
    if (answer.status != 404) return refused(answer, store_.settings(), "cannot remove", name);
    PENSTOCK_ASSIGN(const Listing below, store_.page(name, 2, false, ""));
    if (below.objects.empty()) return errno_error(ENOENT, "cannot remove", name);
    // Other programs make an empty folder as an object whose name is the folder's name and a '/'.
    const std::string marker = std::string(name) + "/";
    if (below.objects.size() == 1 && below.objects.front().key == store_.key(marker))
      return store_.remove(marker);
    return errno_error(ENOTEMPTY, "cannot remove", name);
  }

  // Nothing to do: an object that the server has accepted is durable.
  Result<void> sync_dir(std::string_view folder) override { return check_folder_name(folder); }

  Result<std::unique_ptr<Lock>> lock(std::string_view name) override;

  Result<std::uint64_t> free_bytes() override {
    return make_error(Errc::unsupported, "object stores do not say how much they would still take");
  }

 private:
  // Whether the copy was made although its answer was lost or replaced. `to` did not exist before.
  bool is_copy(std::string_view from, std::string_view to) {
    const Result<Answer> source = store_.head(from, true), target = store_.head(to, true);
    if (!source.ok() || !source->ok() || !target.ok() || !target->ok()) return false;
    const bool same_mark = !source->mark.empty() && source->mark == target->mark;
    const bool same_version = !source->etag.empty() && source->etag == target->etag;
    return source->total == target->total && (same_mark || same_version);
  }

  // The ETag of a lock whose holder has ended; no value if no lock exists; busy if a process holds the lock.
  Result<std::optional<std::string>> stale_lock_etag(std::string_view name);

  Store& store_;
};

Result<std::optional<std::string>> S3Names::stale_lock_etag(std::string_view name) {
  std::vector<std::byte> bytes(1024);
  PENSTOCK_ASSIGN(Answer answer, store_.perform({.key = store_.key(name), .out = bytes}));
  if (answer.status == 404) return std::optional<std::string>();
  if (!answer.ok()) return store_.unreadable(answer, name);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              static_cast<std::size_t>(answer.bytes));
  const auto holder = parse_holder(text);
  if (holder && has_ended(*holder)) return std::optional(std::move(answer.etag));
  std::string who = "somebody";
  if (holder) who = "process " + std::to_string(holder->process) + " on " + holder->host;
  return make_error(Errc::busy, "'" + std::string(name) + "' is locked by " + who +
                                    "; if that is gone for good, remove the object");
}

Result<std::unique_ptr<Lock>> S3Names::lock(std::string_view name) {
  PENSTOCK_TRY(check_object_name(name));
  PENSTOCK_TRY(store_.check_parents(name, "cannot lock"));
  PENSTOCK_ASSIGN(const bool folder, store_.has_folder(name));
  if (folder) return errno_error(EISDIR, "cannot lock", name);
  PENSTOCK_ASSIGN(const std::optional<std::string> stale_etag, stale_lock_etag(name));
  const Holder self{random_mark(), host_name(), static_cast<long>(::getpid())};
  const std::string text = text_of(self);
  // The lock of an ended process is replaced, never removed, because another process may hold it by this
  // time.
  Request request{.method = Method::put,
                  .key = store_.key(name),
                  .headers = {{std::string(kMark), self.mark}},
                  .body = std::as_bytes(std::span(text))};
  const Request plain = request;
  if (!stale_etag) request.headers.emplace_back("if-none-match", "*");
  if (stale_etag && !stale_etag->empty()) request.headers.emplace_back("if-match", *stale_etag);
  PENSTOCK_ASSIGN(Answer answer, store_.perform(request));
  bool alone = !stale_etag;  // if no lock existed, another writer at the same time is unlikely
  if (answer.status == 501) {
    PENSTOCK_ASSIGN(answer, store_.perform(plain));
    alone = false;
  }
  const bool too_late = answer.status == 412 || (stale_etag && answer.status == 404);
  if (!answer.ok() && !too_late && !answer.lacks_result)
    return refused(answer, store_.settings(), "cannot lock", name);
  // A server that ignores conditions accepts every write, and the last writer has the lock. So a process that
  // takes over a lock waits and then reads whose mark is in it. Two cases remain in which two processes hold
  // the lock. A second process may write after that pause. Or, if no lock existed, no process pauses, and one
  // may write after the other has checked. The second case is rare.
  if (answer.ok() && !alone) std::this_thread::sleep_for(kPauseForOtherWriters);
  // Also check after 412: an earlier try of this request may have made the lock while its answer was lost.
  PENSTOCK_ASSIGN(const Answer existing, store_.head(name, true));
  if (existing.ok() && existing.mark == self.mark)
    return std::unique_ptr<Lock>(std::make_unique<S3Lock>(store_, name, self.mark));
  if (answer.lacks_result) return refused(answer, store_.settings(), "cannot lock", name);
  return make_error(Errc::busy, "'" + std::string(name) + "' was locked by somebody else just now");
}

}  // namespace

std::unique_ptr<Namespace> make_names(Store& store) {
  return std::make_unique<S3Names>(store);
}

}  // namespace penstock::s3
