// Keeps many reads in flight from one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <variant>

#include "io_backends/core/result.hpp"

namespace penstock {

class Backend;
class Reader;

// The two operations of a Queue. The caller owns `out` and `name` and keeps them valid until reap() has
// returned the operation's completion.

// Fills all of `out`, or fails with the same errors as Reader::read_at. `reader` must come from the same back
// end.
struct ReadAt {
  Reader* reader = nullptr;
  uint64_t offset = 0;
  std::span<std::byte> out;
};
// Opens, reads and closes one object. Reads exactly length_hint bytes, and fails with `truncated` if the
// object is shorter. With length_hint 0 it reads all bytes, and fails with invalid_argument if `out` is too
// small. `out` must have at least length_hint bytes. If it has more, the bytes after the object's bytes may
// be overwritten. Direct I/O is faster if the size of `out` is length_hint rounded up to a multiple of
// kBufferAlignment, or more.
struct ReadObject {
  std::string_view name;
  uint64_t length_hint = 0;
  std::span<std::byte> out;
};
struct Operation {
  std::variant<ReadAt, ReadObject> what;
  uint64_t tag = 0;  // chosen by the caller; the completion has the same tag
};
struct Completion {
  uint64_t tag = 0;
  Result<uint64_t> bytes = uint64_t{0};  // bytes read into `out`, or the error
};

// When a submitted operation starts.
enum class Start : uint8_t {
  now,
  with_reap,  // starts at the next reap() at the latest, which must follow soon; this may save a system call
};

// Keeps operations in flight: submit() starts reads, and reap() collects their completions in any order. Only
// one thread at a time may call it. While operations are in flight, only the thread that submitted them may
// call it. The destructor waits for operations in flight or cancels them. After that their memory is not used
// again.
class Queue {
 public:
  virtual ~Queue() = default;

  // Tells the queue to which memory most reads will write. A queue that is faster with registered memory then
  // registers it with the system. Call it before the first submit(). The memory must outlive the queue.
  virtual void register_memory(std::span<std::byte> /*memory*/) {}

  // Starts the operations in the order of the span. Returns how many it accepted: fewer than all if the queue
  // is full. If an operation fails, its completion has the error.
  virtual size_t submit(std::span<const Operation> operations, Start start = Start::now) = 0;

  // Waits for at least `at_least` completions, but not for more than are in flight. Returns how many it wrote
  // to `out`. With `at_least` 0 it does not wait.
  virtual size_t reap(std::span<Completion> out, size_t at_least) = 0;

  virtual size_t in_flight() const = 0;
};

// Makes a queue that keeps `depth` operations in flight on any back end. It returns Backend::queue() if
// `depth` is 1 or the back end has Caps::async. Otherwise Backend::queue() would do one operation after
// another, so it returns thread_pool_queue().
Result<std::unique_ptr<Queue>> deep_queue(Backend& backend, size_t depth);

// Makes a Queue over any Backend. It has `depth` threads, each of which does one blocking read at a time.
// Fails with `exhausted` if the system cannot create the threads.
Result<std::unique_ptr<Queue>> thread_pool_queue(Backend& backend, size_t depth);

// Makes a Queue over any Backend. Its submit() does the operations itself, one after another.
Result<std::unique_ptr<Queue>> blocking_queue(Backend& backend, size_t depth);

// The functions below are helpers for authors of queues.
//
// Fails with invalid_argument unless the depth is 1 to 65536.
Result<void> check_queue_depth(size_t depth);
// The memory that the operation fills.
std::span<std::byte> output_span(const Operation& operation);
// Does one operation by blocking calls. Returns the number of bytes read.
Result<uint64_t> perform(Backend& backend, const Operation& operation);

}  // namespace penstock
