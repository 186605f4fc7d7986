// Threads: any thread calls a Store. One thread at a time uses a Lease and the Transfers that it lends.
// Lock: mutex_ guards idle_transfers_ and missing_objects_. It is never held while a request is made, so a
// slow answer delays only the thread that waits for it.
// Memory: every function may allocate. If ~Lease() has no memory to keep its Transfers, the process ends.
// Ctrl-C: this file does not check for a signal. A request that a signal ends returns `interrupted`
// (transfers.hpp).
#include "io_backends/s3/store.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <random>

#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/random.hpp"

namespace penstock::s3 {

Store::Lease::Lease(Store& store) : store_(store) {
  {
    const std::lock_guard lock(store.mutex_);
    if (!store.idle_transfers_.empty()) {
      transfers_ = std::move(store.idle_transfers_.back());
      store.idle_transfers_.pop_back();
    }
  }
  if (!transfers_) transfers_ = std::make_unique<Transfers>(store.settings_);
}

Store::Lease::~Lease() {
  // A Transfers with unfinished requests or untaken answers is destroyed instead of kept, because the next
  // user must not get those answers. Its destructor ends the requests and closes the connections.
  if (transfers_->in_flight() > 0 || transfers_->any_done()) return;
  const std::lock_guard lock(store_.mutex_);
  store_.idle_transfers_.push_back(std::move(transfers_));
}

Result<Answer> Store::perform(Request request) {
  Lease transfers(*this);
  transfers->start(0, std::move(request));
  while (!transfers->any_done()) transfers->drive(true);
  return transfers->take_done().answer;
}

Result<Answer> Store::head(std::string_view name, bool confirms_change) {
  PENSTOCK_ASSIGN(Answer answer,
                  perform({.method = Method::head, .key = key(name), .confirms_change = confirms_change}));
  if (answer.ok() || answer.status == 404) return answer;
  Request get_request{.key = key(name), .headers = {{"range", "bytes=0-0"}}, .wants_text = true};
  PENSTOCK_ASSIGN(Answer with_text, perform(std::move(get_request)));
  if (!with_text.ok()) answer.refusal = std::move(with_text.refusal);
  return answer;
}

Result<Listing> Store::list_page(std::string_view folder, unsigned max_entries, bool one_level,
                                 const std::string& token) {
  Request request{.wants_text = true, .result_element = "ListBucketResult"};
  request.query = {{"list-type", "2"},
                   {"encoding-type", "url"},
                   {"max-keys", std::to_string(max_entries)},
                   {"prefix", folder.empty() ? key("") : key(folder) + "/"}};
  if (one_level) request.query.emplace_back("delimiter", "/");
  if (!token.empty()) request.query.emplace_back("continuation-token", token);
  PENSTOCK_ASSIGN(const Answer answer, perform(std::move(request)));
  if (!answer.ok()) return refusal_error(answer, settings_, "cannot list", folder);
  PENSTOCK_ASSIGN(Listing listing, parse_listing(answer.text));
  const std::string prefix = folder.empty() ? key("") : key(folder) + "/";
  std::vector<std::string> names = listing.prefixes;
  for (const Listing::Object& one : listing.objects) names.push_back(one.key);
  for (const std::string& name : names)
    if (!name.starts_with(prefix))
      return make_error(Errc::corrupt, "the server's listing of '" + std::string(folder) + "' has '" +
                                           printable(name) + "', which is not below it");
  return listing;
}

Result<bool> Store::has_folder(std::string_view name) {
  PENSTOCK_ASSIGN(const Listing listing, list_page(name, 1, false, ""));
  return !listing.objects.empty();
}

Error Store::missing_object_error(std::string_view name, std::string_view operation) {
  const Result<bool> folder = has_folder(name);
  if (!folder.ok()) return folder.error();
  return errno_error(*folder ? EISDIR : ENOENT, operation, name);
}

Error Store::read_error(const Answer& answer, std::string_view name) {
  if (answer.status == 404 && answer.refusal.code != "NoSuchBucket")
    return missing_object_error(name, "cannot open");
  if (answer.status == 412) return errno_error(ESTALE, "another client replaced, since it was opened,", name);
  return refusal_error(answer, settings_, "cannot read", name);
}

// Some stores answer 403 in place of 404 to users who may not list the bucket.
bool says_no_object(const Answer& answer) {
  return answer.status == 404 || answer.status == 403;
}

Result<void> Store::check_parents(std::string_view name, std::string_view operation) {
  constexpr size_t kMaxKnownNames = 100'000;
  for (size_t end = name.find('/'); end != std::string_view::npos; end = name.find('/', end + 1)) {
    const std::string_view parent = name.substr(0, end);
    {
      const std::lock_guard lock(mutex_);
      if (missing_objects_.contains(parent)) continue;
    }
    // The lock is not held during the request. So two threads may ask the server for the same name. That does
    // no harm, because they get the same answer.
    PENSTOCK_ASSIGN(const Answer answer, head(parent));
    if (answer.ok()) return errno_error(ENOTDIR, operation, name);
    if (!says_no_object(answer)) return refusal_error(answer, settings_, operation, parent);
    const std::lock_guard lock(mutex_);
    if (missing_objects_.size() >= kMaxKnownNames) missing_objects_.clear();
    missing_objects_.emplace(parent);
  }
  return success();
}

void Store::published(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto found = missing_objects_.find(name);
  if (found != missing_objects_.end()) missing_objects_.erase(found);
}

Result<void> Store::remove(std::string_view name) {
  PENSTOCK_ASSIGN(Answer answer, perform({.method = Method::remove, .key = key(name)}));
  if (answer.status == 204) return success();
  // S3 answers a removal with status 204. After any other success status the object may still exist, so this
  // asks for it.
  if (answer.ok() || answer.lacks_result) {
    PENSTOCK_ASSIGN(const Answer existing, head(name, true));
    if (existing.status == 404) return success();
    answer.lacks_result = true;
  }
  return refusal_error(answer, settings_, "cannot remove", name);
}

std::string random_mark() {
  static std::atomic<uint64_t> count{0};
  std::random_device device;
  const uint64_t bits = uint64_t{device()} << 32U | device();
  const std::string text = std::to_string(bits ^ mix64(++count));
  return hex(sha256(std::as_bytes(std::span(text)))).substr(0, 32);
}

}  // namespace penstock::s3
