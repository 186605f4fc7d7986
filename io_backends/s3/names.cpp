// The names of a bucket below a prefix. S3 has no folders: each part of a key before a '/' counts as a
// folder.
//
// Threads: any thread calls any function at any time.
// Lock: this file has no mutex. The lock that lock() makes is an object that names its holder. lock() may
// sleep for 0.5 s before it knows whether this process has the lock.
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

constexpr unsigned kPageEntries = 1000;  // most entries that S3 returns in one listing
constexpr std::chrono::milliseconds kPauseForOtherWriters{500};

// The process that has a lock. The content of the lock's object is holder_text() of this. `mark` is a random
// text, different for each holder. By `host` and `process_id` other processes of that host find out whether
// the holder has ended.
struct Holder {
  std::string mark;
  std::string host;
  long process_id = 0;
};

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::string holder_text(const Holder& holder) {
  return holder.mark + " " + std::to_string(holder.process_id) + " " + holder.host + "\n";
}

std::optional<Holder> parse_holder(std::string_view text) {
  const size_t first_blank = text.find(' ');
  const size_t second_blank =
      first_blank == std::string_view::npos ? first_blank : text.find(' ', first_blank + 1);
  if (second_blank == std::string_view::npos || !text.ends_with('\n')) return std::nullopt;
  Holder holder{std::string(text.substr(0, first_blank)), std::string(text.substr(second_blank + 1)), 0};
  holder.host.pop_back();
  holder.process_id =
      std::atol(std::string(text.substr(first_blank + 1, second_blank - first_blank - 1)).c_str());
  if (holder.process_id <= 0) return std::nullopt;
  return holder;
}

bool has_ended(const Holder& holder) {
  return holder.host == host_name() && ::kill(static_cast<pid_t>(holder.process_id), 0) != 0 &&
         errno == ESRCH;
}

class S3Lock final : public Lock {
 public:
  S3Lock(Store& store, std::string_view name, std::string mark)
      : store_(store), name_(name), mark_(std::move(mark)) {}
  ~S3Lock() override {
    // Another process may have taken the lock over. So its object is removed only if it still has the mark of
    // this holder.
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

  // Lists a folder. It never calls `skipped`, because an object store has only objects and prefixes.
  Result<void> list_all(std::string_view folder, const std::function<bool(const Entry&)>& visit,
                        const std::function<void(std::string_view name)>& /*skipped*/) override {
    PENSTOCK_TRY(check_folder_name(folder));
    const size_t prefix_bytes = store_.settings().endpoint.prefix.size();
    const std::string folder_key = folder.empty() ? store_.key("") : store_.key(folder) + "/";
    bool folder_exists = folder.empty();
    std::string token;
    do {
      PENSTOCK_ASSIGN(const Listing page, store_.list_page(folder, kPageEntries, true, token));
      if (!page.next_token.empty() && page.next_token == token)
        return make_error(Errc::corrupt, "the server's listing of '" + std::string(folder) +
                                             "' never ends: it repeats its last page");
      folder_exists = folder_exists || !page.objects.empty() || !page.prefixes.empty();
      for (const std::string& key : page.prefixes)
        if (key.starts_with(folder_key) && key.size() > folder_key.size() &&
            !visit({key.substr(prefix_bytes, key.size() - prefix_bytes - 1), 0, true}))
          return success();
      for (const Listing::Object& object : page.objects)
        if (object.key.starts_with(folder_key) && object.key.size() > folder_key.size() &&
            !visit({object.key.substr(prefix_bytes), object.bytes, false}))
          return success();
      token = page.next_token;
    } while (!token.empty());
    return folder_exists ? success() : errno_error(ENOENT, "cannot list", folder);
  }

  Result<Entry> stat(std::string_view name) override {
    PENSTOCK_TRY(check_folder_name(name));
    if (!name.empty()) {
      PENSTOCK_ASSIGN(const Answer answer, store_.head(name));
      if (answer.ok()) return Entry{std::string(name), answer.object_bytes, false};
      if (answer.status != 404) return refusal_error(answer, store_.settings(), "cannot inspect", name);
    }
    PENSTOCK_ASSIGN(const bool folder, store_.has_folder(name));
    if (folder || name.empty()) return Entry{std::string(name), 0, true};
    return errno_error(ENOENT, "cannot inspect", name);
  }

  // Makes nothing, because a folder exists as soon as an object below it does. Fails if an object has the
  // name of the folder or of one of its parents.
  Result<void> make_folders(std::string_view folder) override {
    PENSTOCK_TRY(check_folder_name(folder));
    if (folder.empty()) return success();
    return store_.check_parents(std::string(folder) + "/", "cannot make folder");
  }

  // Copies the object to the new name and then removes the old one, so the rename is not atomic. It renames
  // objects, but not folders.
  Result<void> rename_noreplace(std::string_view from, std::string_view to) override {
    PENSTOCK_TRY(check_object_name(from));
    PENSTOCK_TRY(check_object_name(to));
    PENSTOCK_ASSIGN(const Entry entry, stat(from));
    if (entry.folder)
      return make_error(Errc::unsupported,
                        "cannot rename '" + std::string(from) + "': object stores cannot rename folders");
    const Result<Entry> existing = stat(to);
    if (existing.ok()) return errno_error(EEXIST, "cannot rename to", to);
    if (existing.error().code != Errc::not_found) return existing.error();
    PENSTOCK_TRY(store_.check_parents(to, "cannot rename to"));
    const std::string source =
        "/" + uri_encode(store_.settings().endpoint.bucket + "/" + store_.key(from), true);
    const Result<Answer> copy_answer = store_.perform({.method = Method::put,
                                                       .key = store_.key(to),
                                                       .headers = {{"x-amz-copy-source", source}},
                                                       .result_element = "CopyObjectResult"});
    if ((!copy_answer.ok() || !copy_answer->ok()) && !is_copy(from, to)) {
      if (!copy_answer.ok()) return copy_answer.error();
      return refusal_error(*copy_answer, store_.settings(), "cannot rename", from);
    }
    store_.published(to);
    return store_.remove(from);
  }

  Result<void> remove(std::string_view name) override {
    PENSTOCK_TRY(check_object_name(name));
    PENSTOCK_ASSIGN(const Answer answer, store_.head(name));
    if (answer.ok()) return store_.remove(name);
    if (answer.status != 404) return refusal_error(answer, store_.settings(), "cannot remove", name);
    PENSTOCK_ASSIGN(const Listing listing, store_.list_page(name, 2, false, ""));
    if (listing.objects.empty()) return errno_error(ENOENT, "cannot remove", name);
    // Other programs make an object "FOLDER/" for an empty folder. If it is the only object of the folder, it
    // is removed.
    const std::string folder_marker = std::string(name) + "/";
    if (listing.objects.size() == 1 && listing.objects.front().key == store_.key(folder_marker))
      return store_.remove(folder_marker);
    return errno_error(ENOTEMPTY, "cannot remove", name);
  }

  // Nothing to do: an object that the server has accepted is durable.
  Result<void> sync_dir(std::string_view folder) override { return check_folder_name(folder); }

  Result<std::unique_ptr<Lock>> lock(std::string_view name) override;

  Result<uint64_t> free_bytes() override {
    return make_error(Errc::unsupported, "object stores do not report their free space");
  }

 private:
  // Whether the object `to` is a copy of `from`. Called after a copy request that seems to have failed,
  // because its answer may have been lost or replaced. If `to` is a copy, the request succeeded, because `to`
  // did not exist before.
  bool is_copy(std::string_view from, std::string_view to) {
    const Result<Answer> source = store_.head(from, true), target = store_.head(to, true);
    if (!source.ok() || !source->ok() || !target.ok() || !target->ok()) return false;
    const bool same_mark = !source->mark.empty() && source->mark == target->mark;
    const bool same_version = !source->etag.empty() && source->etag == target->etag;
    return source->object_bytes == target->object_bytes && (same_mark || same_version);
  }

  // Returns the ETag of a lock whose holder has ended; no value if no lock exists. Fails with `busy` if the
  // holder may still exist.
  Result<std::optional<std::string>> stale_lock_etag(std::string_view name);

  Store& store_;
};

Result<std::optional<std::string>> S3Names::stale_lock_etag(std::string_view name) {
  std::vector<std::byte> bytes(1024);
  PENSTOCK_ASSIGN(Answer answer, store_.perform({.key = store_.key(name), .out = bytes}));
  if (answer.status == 404) return std::optional<std::string>();
  if (!answer.ok()) return store_.read_error(answer, name);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), size_t(answer.bytes));
  const auto holder = parse_holder(text);
  if (holder && has_ended(*holder)) return std::optional(std::move(answer.etag));
  std::string holder_name = "an unknown process";
  if (holder) holder_name = "process " + std::to_string(holder->process_id) + " on " + holder->host;
  return make_error(Errc::busy, "'" + std::string(name) + "' is locked by " + holder_name +
                                    "; if that process has ended, remove the lock object");
}

Result<std::unique_ptr<Lock>> S3Names::lock(std::string_view name) {
  PENSTOCK_TRY(check_object_name(name));
  PENSTOCK_TRY(store_.check_parents(name, "cannot lock"));
  PENSTOCK_ASSIGN(const bool folder, store_.has_folder(name));
  if (folder) return errno_error(EISDIR, "cannot lock", name);
  PENSTOCK_ASSIGN(const std::optional<std::string> stale_etag, stale_lock_etag(name));
  const Holder own_holder{random_mark(), host_name(), long(::getpid())};
  const std::string text = holder_text(own_holder);
  // The lock of an ended process is replaced by a conditional write (if-match). It is never removed: another
  // process may have taken it over by now, and would lose the lock by a removal.
  Request request{.method = Method::put,
                  .key = store_.key(name),
                  .headers = {{std::string(kMarkHeader), own_holder.mark}},
                  .body = std::as_bytes(std::span(text))};
  const Request unconditional = request;
  if (!stale_etag) request.headers.emplace_back("if-none-match", "*");
  if (stale_etag && !stale_etag->empty()) request.headers.emplace_back("if-match", *stale_etag);
  PENSTOCK_ASSIGN(Answer answer, store_.perform(request));
  // no pause if no lock existed: it is unlikely that another process writes at the same moment
  bool no_other_writer = !stale_etag;
  if (answer.status == 501) {
    PENSTOCK_ASSIGN(answer, store_.perform(unconditional));
    no_other_writer = false;
  }
  const bool too_late = answer.status == 412 || (stale_etag && answer.status == 404);
  if (!answer.ok() && !too_late && !answer.lacks_result)
    return refusal_error(answer, store_.settings(), "cannot lock", name);
  // A server that ignores conditions accepts every write, and the last writer has the lock. So a process that
  // takes over a lock pauses here, and then reads whose mark the lock has.
  // Two processes may still believe that they hold the lock, in two cases. (1) Another process writes after
  // this pause. (2) No lock existed, so no process pauses, and one process writes its mark after the other
  // one has read the mark of the lock. Both cases are rare.
  if (answer.ok() && !no_other_writer) std::this_thread::sleep_for(kPauseForOtherWriters);
  // The mark is read even after status 412 (the condition failed). The answer to an earlier try of this
  // request may have been lost, and then the existing lock is this process's own.
  PENSTOCK_ASSIGN(const Answer existing, store_.head(name, true));
  if (existing.ok() && existing.mark == own_holder.mark)
    return std::unique_ptr<Lock>(std::make_unique<S3Lock>(store_, name, own_holder.mark));
  if (answer.lacks_result) return refusal_error(answer, store_.settings(), "cannot lock", name);
  return make_error(Errc::busy, "'" + std::string(name) + "' was just locked by another process: try again");
}

}  // namespace

std::unique_ptr<Namespace> make_names(Store& store) {
  return std::make_unique<S3Names>(store);
}

}  // namespace penstock::s3
