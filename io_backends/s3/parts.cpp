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
      most_(store.shape().at_once(store.shape().streams)),
      transfers_(store.client()) {}

Result<std::unique_ptr<Parts>> Parts::make(Store& store, std::string_view name, std::string_view upload) {
  std::unique_ptr<Parts> parts(new Parts(store, name, upload));
  try {
    parts->thread_ = std::jthread([raw = parts.get()](const std::stop_token& stop) {
      try {
        raw->work(stop);
      } catch (const std::bad_alloc&) {
        raw->run_out();
      }
    });
  } catch (const std::system_error& error) {
    return no_more_threads(error, 1);
  }
  return parts;
}

Parts::~Parts() {
  thread_.request_stop();
  transfers_->wake();
}

Result<void> Parts::send(Part& part) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failed_ || parts_.size() < most_; });
    PENSTOCK_TRY(failure());
    etags_.emplace_back();
    parts_[sent_ + 1] = std::exchange(part, {});
    waiting_.push_back(++sent_);
    if (!spare_.empty()) {
      part = std::move(spare_.back());
      spare_.pop_back();
    }
  }
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
    transfers_->drive(number == 0);
    collect();
  }
  transfers_->wind_up();
  while (transfers_->in_flight() > 0) {
    transfers_->drive(true);
    collect();
  }
}

void Parts::run_out() {
  {
    const std::lock_guard lock(mutex_);
    if (!failed_) failed_ = make_error(Errc::exhausted, "out of memory");
  }
  changed_.notify_all();
}

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
      const std::lock_guard lock(mutex_);
      Result<void> outcome = arrived(number, done.answer);
      if (!outcome.ok() && !failed_) failed_ = outcome.error();
      spare_.push_back(std::move(parts_.extract(number).mapped()));
      spare_.back().clear();
    }
    changed_.notify_all();
  }
}

Result<void> Parts::arrived(std::size_t number, Result<Answer>& answer) {
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
