// Threads: the writer's thread calls make(), send(), state(), finish() and the destructor. The thread that
// make() starts runs work(), start(), collect(), record_outcome() and out_of_memory(). Only that thread uses
// transfers_, except that any thread may call wake().
// Lock: mutex_ guards waiting_, parts_, spare_, etags_ and failed_. It is never held during network I/O.
// Memory: every function may allocate, also while it holds the lock. A std::bad_alloc in the thread ends in
// out_of_memory(). A std::bad_alloc in send() reaches the writer's caller.
// Ctrl-C: no wait here ends because of it. Transfers then makes no more tries, so a part in flight gets its
// answer or its timeout. That ends the waits. The writer's caller sees the signal and destroys the writer.
// Crash: the parts that arrived stay at the server as an incomplete upload. No object becomes visible.
#include "io_backends/s3/parts.hpp"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "io_backends/core/system/threads.hpp"

namespace penstock::s3 {

Parts::Parts(Store& store, std::string_view name, std::string_view upload)
    : store_(store),
      name_(name),
      upload_(upload),
      most_(store.settings().at_once(store.settings().streams)),
      transfers_(store) {}

Result<std::unique_ptr<Parts>> Parts::make(Store& store, std::string_view name, std::string_view upload) {
  std::unique_ptr<Parts> parts(new Parts(store, name, upload));
  try {
    parts->thread_ = std::jthread([raw = parts.get()](const std::stop_token& stop) {
      try {
        raw->work(stop);
      } catch (const std::bad_alloc&) {
        raw->out_of_memory();
      }
    });
  } catch (const std::system_error& error) {
    return no_more_threads(error, 1);
  }
  return parts;
}

// After the body of the destructor the members are destroyed in reverse order. thread_ is joined first. Then
// the lease of transfers_ ends. Only then are the bodies in parts_ freed: libcurl may read them until then.
Parts::~Parts() {
  // Both calls are needed. The thread waits for changed_ when no request is in flight, else inside libcurl.
  thread_.request_stop();
  transfers_->wake();
}

Result<void> Parts::send(Part& part) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failed_ || parts_.size() < most_; });
    PENSTOCK_TRY(failure());
    // One lock for all three: the thread never sees a number without its body and without an entry in etags_.
    etags_.emplace_back();
    parts_[sent_ + 1] = std::exchange(part, {});
    waiting_.push_back(++sent_);
    if (!spare_.empty()) {
      part = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  // libcurl remembers a wake() that comes before its wait, so none is lost.
  changed_.notify_all();
  transfers_->wake();
  return success();
}

Result<void> Parts::state() {
  const std::lock_guard lock(mutex_);
  return failure();
}

Result<std::vector<std::string>> Parts::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failed_ || parts_.empty(); });
  PENSTOCK_TRY(failure());
  return etags_;
}

// The loop of the thread. While a request is in flight it waits in drive() without the lock, because only
// drive() moves bytes.
void Parts::work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::size_t number = 0;
    {
      std::unique_lock lock(mutex_);
      if (transfers_->in_flight() == 0 && !changed_.wait(lock, stop, [&] { return !waiting_.empty(); }))
        break;
      if (!waiting_.empty()) {
        number = waiting_.front();
        waiting_.pop_front();
      }
    }
    if (number > 0) start(number);
    // After a start() drive() must not wait: waiting_ may already have another part.
    transfers_->drive(number == 0);
    collect();
  }
  // The destructor stopped the thread. A completely sent part gets its answer first: S3 may keep a part that
  // arrives after the abort.
  transfers_->stop_retries();
  while (transfers_->in_flight() > 0) {
    transfers_->drive(true);
    collect();
  }
}

// The thread has no memory left and ends. The exception has released the lock. The text is short enough to
// need no allocation. Without this function the writer would wait for ever.
void Parts::out_of_memory() {
  {
    const std::lock_guard lock(mutex_);
    if (!failed_) failed_ = make_error(Errc::exhausted, "out of memory");
  }
  changed_.notify_all();
}

// The body is read without the lock. That is safe: only this thread takes a part out of parts_, and a map
// does not move its values when send() adds others.
void Parts::start(std::size_t number) {
  std::span<const std::byte> body;
  {
    const std::lock_guard lock(mutex_);
    body = parts_.at(number);
  }
  transfers_->start(number, {.method = Method::put,
                             .key = store_.key(name_),
                             .query = {{"partNumber", std::to_string(number)}, {"uploadId", upload_}},
                             .body = body});
}

void Parts::collect() {
  while (transfers_->any_done()) {
    Transfers::Done done = transfers_->next();
    const std::size_t number = done.tag;
    {
      // Store the outcome before the part leaves parts_: finish() returns once parts_ is empty, and then
      // reads failed_ and etags_.
      const std::lock_guard lock(mutex_);
      Result<void> outcome = record_outcome(number, done.answer);
      if (!outcome.ok() && !failed_) failed_ = outcome.error();
      spare_.push_back(std::move(parts_.extract(number).mapped()));
      spare_.back().clear();
    }
    changed_.notify_all();
  }
}

// The caller holds the lock, because send() may be growing etags_.
Result<void> Parts::record_outcome(std::size_t number, Result<Answer>& answer) {
  const std::string operation = "cannot write part " + std::to_string(number) + " of";
  if (!answer.ok()) {
    answer.error().what = operation + " '" + name_ + "': " + answer.error().what;
    return answer.error();
  }
  if (!answer->ok()) return refused(*answer, store_.settings(), operation, name_);
  etags_[number - 1] = std::move(answer->etag);
  return success();
}

}  // namespace penstock::s3
