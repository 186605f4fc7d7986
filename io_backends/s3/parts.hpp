// Sends the parts of a multipart upload on its own thread, while the caller makes the next part. libcurl
// moves bytes only while a thread drives it, and a caller that computes does not drive it. The thread also
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

// One thread calls this class. It holds at most Settings::streams parts in memory, including spare buffers
// and parts that wait for their next try. With the part that the caller fills, a writer holds `streams` + 1
// parts.
class Parts {
 public:
  // Returns `exhausted` if the system cannot create a thread.
  static Result<std::unique_ptr<Parts>> make(Store& store, std::string_view name, std::string_view upload);
  // Cuts off each part whose body is not completely sent. Waits for the answer or the timeout of the other
  // parts. After that the caller can abort the upload. If the thread ran out of memory, all parts are cut
  // off.
  ~Parts();
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  // Sends `part` as the next part and replaces it by an empty buffer. Waits while the maximum number of parts
  // is in memory. Fails if an earlier part failed (the error has its number) or the thread ran out of memory.
  // state() and finish() fail for the same reasons.
  Result<void> send(Part& part);
  Result<void> state();
  std::size_t sent() const { return sent_; }
  // Waits until all parts have arrived, and returns their ETags.
  Result<std::vector<std::string>> finish();

 private:
  Parts(Store& store, std::string_view name, std::string_view upload);

  void work(const std::stop_token& stop);
  void out_of_memory();
  void start(std::size_t number);
  void collect();
  Result<void> record_outcome(std::size_t number, Result<Answer>& answer);
  Result<void> failure() const { return failed_ ? Result<void>(*failed_) : success(); }

  Store& store_;
  const std::string name_;
  const std::string upload_;
  const std::size_t most_;
  std::size_t sent_ = 0;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::size_t> waiting_;    // numbers of the parts that the thread has not taken yet
  std::map<std::size_t, Part> parts_;  // waiting or in flight, by number; libcurl reads them without the lock
  std::vector<Part> spare_;            // buffers to use again
  std::vector<std::string> etags_;
  std::optional<Error> failed_;

  Store::Lease transfers_;  // used by the thread alone, except for wake()
  std::jthread thread_;     // last: it is joined before what it uses is destroyed
};

}  // namespace penstock::s3
