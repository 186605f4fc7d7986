// Sends the parts of a multipart upload on its own thread, while the caller makes the next part. libcurl
// moves bytes only while a thread calls it, and a caller that computes does not call it. The thread also
// computes the checksums of the bodies.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "io_backends/s3/store.hpp"

namespace penstock::s3 {

using Part = std::vector<std::byte>;

// Only one thread may call this class. It has at most Settings::max_streams parts in memory, including parts
// that wait for their next try and spare buffers. A writer has one more part in memory: the part that the
// caller fills.
class Parts {
 public:
  // Starts the thread for the parts of this upload. Fails with `exhausted` if the system cannot create a
  // thread.
  static Result<std::unique_ptr<Parts>> make(Store& store, std::string_view name, std::string_view upload);
  // Cancels the requests whose body is not completely sent. Waits until each other request has its answer or
  // its timeout. After that the caller can abort the upload. If the thread ran out of memory, the destructor
  // cancels all requests.
  ~Parts();
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  // Sends `part` as the next part and replaces it by an empty buffer. Waits while the maximum number of parts
  // is in memory. Fails if an earlier part failed (the error has the number of that part) or the thread ran
  // out of memory. check() and finish() fail for the same reasons.
  Result<void> send(Part& part);
  Result<void> check();
  size_t sent_count() const { return sent_count_; }
  // Waits until all parts have arrived, and returns their ETags.
  Result<std::vector<std::string>> finish();

 private:
  Parts(Store& store, std::string_view name, std::string_view upload);

  void work(const std::stop_token& stop);
  void out_of_memory();
  void start(size_t number);
  void collect();
  Result<void> record_outcome(size_t number, Result<Answer>& answer);
  Result<void> failure() const { return error_ ? Result<void>(*error_) : success(); }

  Store& store_;
  const std::string name_;
  const std::string upload_id_;
  const size_t max_parts_;
  size_t sent_count_ = 0;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<size_t> waiting_numbers_;  // numbers of the parts that the thread has not started yet
  // parts that wait or are in flight, by number; libcurl reads them without the lock
  std::map<size_t, Part> parts_;
  std::vector<Part> spare_buffers_;  // empty buffers for later parts
  std::vector<std::string> etags_;
  std::optional<Error> error_;

  Store::Lease transfers_;  // only the thread uses it, except for wake()
  std::jthread thread_;     // last member, so that it is joined before the members that it uses are destroyed
};

}  // namespace penstock::s3
