// The parts of a multipart upload on their way. A thread sends them while the caller makes the next: libcurl
// moves bytes only while somebody drives it, which a caller that computes does not, and the thread takes the
// checksums of the bodies, too.
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

// One thread calls. At most Shape::streams parts are here at once, those that wait for their next try and
// buffers to use again counted: with the one that the caller fills, a writer holds `streams` + 1 parts.
class Parts {
 public:
  // `exhausted` where the machine gives no thread.
  static Result<std::unique_ptr<Parts>> make(Store& store, std::string_view name, std::string_view upload);
  // What is not on its way whole is cut off, and what is has its answer or its time out: then the upload can
  // be aborted. Of a thread that ran out of memory, all is cut off.
  ~Parts();
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  // Sends `part` as the next one, and leaves an empty one in its place; waits while too many are here. Fails
  // when an earlier part failed, as the other calls do, with the part's number, or when the thread has no
  // memory.
  Result<void> send(Part& part);
  Result<void> state();
  std::size_t sent() const { return sent_; }
  // When all have arrived: their ETags.
  Result<std::vector<std::string>> finish();

 private:
  Parts(Store& store, std::string_view name, std::string_view upload);

  void work(const std::stop_token& stop);
  void run_out();
  void start(std::size_t number);
  void collect();
  Result<void> arrived(std::size_t number, Result<Answer>& answer);
  Result<void> failure() const { return failed_ ? Result<void>(*failed_) : success(); }

  Store& store_;
  const std::string name_;
  const std::string upload_;
  const std::size_t most_;
  std::size_t sent_ = 0;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::size_t> waiting_;    // numbers of those that the thread has not taken yet
  std::map<std::size_t, Part> parts_;  // waiting and in flight, by number
  std::vector<Part> spare_;
  std::vector<std::string> etags_;
  std::optional<Error> failed_;

  Client::Lease transfers_;  // the thread's, but for wake()
  std::jthread thread_;
};

}  // namespace penstock::s3
