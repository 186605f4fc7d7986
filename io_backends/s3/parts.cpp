// Threads: the writer's thread calls make(), send(), check(), finish() and the destructor. The thread that
// make() starts runs work(), start(), collect(), record_outcome() and out_of_memory(). Only that thread uses
// transfers_, except that any thread may call wake().
// Lock: mutex_ guards waiting_numbers_, parts_, spare_buffers_, etags_ and error_. It is never held during
// network I/O.
// Memory: every function may allocate, also while it holds the lock. A std::bad_alloc in the thread ends in
// out_of_memory(). A std::bad_alloc in send() reaches the writer's caller.
// Ctrl-C: a signal does not end a wait here directly. But after a signal the class Transfers does not retry.
// So each part in flight soon gets its answer or its timeout, and then the waits end. The writer's caller
// sees the signal and destroys the writer.
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
      upload_id_(upload),
      max_parts_(store.settings().limit_requests(store.settings().max_streams)),
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

// Ends the thread and its requests. After this body, the members are destroyed in reverse order. thread_ is
// joined first. Then transfers_ ends its requests. The bodies in parts_ are freed last, because libcurl may
// read them until then.
Parts::~Parts() {
  // Both calls are needed, because the thread waits in one of two places. Without a request in flight it
  // waits for changed_; request_stop() ends that wait. Otherwise it waits inside libcurl; wake() ends that
  // wait.
  thread_.request_stop();
  transfers_->wake();
}

Result<void> Parts::send(Part& part) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return error_ || parts_.size() < max_parts_; });
    PENSTOCK_TRY(failure());
    // etags_, parts_ and waiting_numbers_ change under one lock. So whenever the thread finds a number in
    // waiting_numbers_, the body is in parts_ and there is an entry in etags_.
    etags_.emplace_back();
    parts_[sent_count_ + 1] = std::exchange(part, {});
    waiting_numbers_.push_back(++sent_count_);
    if (!spare_buffers_.empty()) {
      part = std::move(spare_buffers_.back());
      spare_buffers_.pop_back();
    }
  }
  // The thread never misses wake(): if the call comes before the thread waits inside libcurl, libcurl
  // remembers it and ends that wait at once.
  changed_.notify_all();
  transfers_->wake();
  return success();
}

Result<void> Parts::check() {
  const std::lock_guard lock(mutex_);
  return failure();
}

Result<std::vector<std::string>> Parts::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || parts_.empty(); });
  PENSTOCK_TRY(failure());
  return etags_;
}

// The loop of the thread: starts waiting parts and collects the outcomes of finished ones. While a request is
// in flight it waits in drive(), without the lock. It must call drive() then, because only drive() moves
// bytes.
void Parts::work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    size_t number = 0;
    {
      std::unique_lock lock(mutex_);
      if (transfers_->in_flight() == 0 &&
          !changed_.wait(lock, stop, [&] { return !waiting_numbers_.empty(); }))
        break;
      if (!waiting_numbers_.empty()) {
        number = waiting_numbers_.front();
        waiting_numbers_.pop_front();
      }
    }
    if (number > 0) start(number);
    // After the start of a part, drive() must not wait, because waiting_numbers_ may already have another
    // part.
    transfers_->drive(number == 0);
    collect();
  }
  // The destructor has asked the thread to stop. A part that is completely sent still gets its answer before
  // the caller aborts the upload. Otherwise S3 may keep a part that it finishes after the abort.
  transfers_->stop_retries();
  while (transfers_->in_flight() > 0) {
    transfers_->drive(true);
    collect();
  }
}

// Stores the error when the thread ends because it has no memory left. Without that error the writer would
// wait for ever. The exception has already released the lock. The text of the error is short enough to need
// no allocation.
void Parts::out_of_memory() {
  {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = make_error(Errc::exhausted, "out of memory");
  }
  changed_.notify_all();
}

// The body is read without the lock. That is safe: only this thread removes parts from parts_, and a map does
// not move its values when send() adds parts.
void Parts::start(size_t number) {
  std::span<const std::byte> body;
  {
    const std::lock_guard lock(mutex_);
    body = parts_.at(number);
  }
  transfers_->start(number, {.method = Method::put,
                             .key = store_.key(name_),
                             .query = {{"partNumber", std::to_string(number)}, {"uploadId", upload_id_}},
                             .body = body});
}

void Parts::collect() {
  while (transfers_->any_done()) {
    Transfers::Done done = transfers_->take_done();
    const size_t number = done.tag;
    {
      // The outcome is stored and the part leaves parts_ under one lock. Otherwise finish(), which returns
      // once parts_ is empty, could read error_ and etags_ too early.
      const std::lock_guard lock(mutex_);
      Result<void> outcome = record_outcome(number, done.answer);
      if (!outcome.ok() && !error_) error_ = outcome.error();
      spare_buffers_.push_back(std::move(parts_.extract(number).mapped()));
      spare_buffers_.back().clear();
    }
    changed_.notify_all();
  }
}

// Stores the ETag of the part, or returns its error. The caller holds the lock, because send() may be growing
// etags_.
Result<void> Parts::record_outcome(size_t number, Result<Answer>& answer) {
  const std::string operation = "cannot write part " + std::to_string(number) + " of";
  if (!answer.ok()) {
    answer.error().what = operation + " '" + name_ + "': " + answer.error().what;
    return answer.error();
  }
  if (!answer->ok()) return refusal_error(*answer, store_.settings(), operation, name_);
  etags_[number - 1] = std::move(answer->etag);
  return success();
}

}  // namespace penstock::s3
