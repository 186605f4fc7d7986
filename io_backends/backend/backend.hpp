// The interface of a back end: every way to read and write objects implements it.
//
// A Backend turns object names into Readers, Writers, Queues and a Namespace below one root, and lists what
// it can do. It never measures time, and knows nothing of samples or formats. Names are relative and divided
// by '/', without '.', '..' or a leading '/'. A back end refuses other names with invalid_argument before it
// does anything.
//
// Threads: any thread may call a Backend, its Namespace and its Readers at any time. One thread at a time
// calls a Writer or a Queue. Everything that a Backend makes must be destroyed before it.
//
// Errors: the same fault gives the same Errc on every back end, and the message names the object. The
// contract test checks this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/backend/namespace.hpp"
#include "io_backends/backend/queue.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// What a back end can do beyond the required operations.
struct Caps {
  unsigned max_useful_threads = 0;  // a larger number of threads gains nothing; 0: no limit
  bool zero_copy = false;           // Reader::view works
  bool collective_reads = false;    // Reader::read_at_all works
  bool write_at = false;            // Writer::write_at works
  bool native_path = false;         // Backend::native_path gives a path that other programs can open
  bool async = false;               // its own Queue keeps several operations in flight without threads
  bool queue_is_cheaper = false;    // even one operation at a time is cheaper through its Queue
  bool atomic_rename = false;       // Namespace::rename_noreplace is atomic
  // Its bytes are in memory: they do not survive a power cut and are never cold.
  bool volatile_memory = false;
  bool bypasses_cache = false;  // its reads bypass the page cache (direct I/O)
  bool on_network = false;      // its objects are on a network, even if nothing is mounted here
  bool emulated = false;        // the back end is throttled or faulty; access by native paths is not affected
};

// An open object, which any thread may read at any time.
class Reader {
 public:
  virtual ~Reader() = default;

  // The present size of the object in bytes.
  virtual Result<uint64_t> size() = 0;

  // Fills all of `out` from byte `offset`. Fails with `truncated` if the object ends earlier.
  virtual Result<void> read_at(uint64_t offset, std::span<std::byte> out) = 0;

  // Needs Caps::zero_copy. Returns the bytes in place. They are in memory and stay valid while the Reader
  // lives. If the object is shortened, the lost bytes read as zeros and the next call fails.
  virtual Result<std::span<const std::byte>> view(uint64_t offset, uint64_t length);

  // Needs Caps::collective_reads. Does the same as read_at(), but every rank of the job calls it together for
  // the same object. A rank that needs no bytes passes an empty span. All ranks then destroy the Reader
  // together, too, in the same order.
  virtual Result<void> read_at_all(uint64_t offset, std::span<std::byte> out);
};

// The error of a read of `length` bytes from `offset` that ends after the end of the object.
Error truncated_error(std::string_view name, uint64_t offset, uint64_t length);

// What survives a crash or a power cut after a successful publish(). On tiers in memory
// (Caps::volatile_memory, tmpfs) every level succeeds, and nothing survives a power cut.
enum class Durability : uint8_t {
  visible,        // readers see the whole object; it survives the end of this process, not a power cut
  leaving,        // visible, and the write to the device has started, so that a later sync waits less
  file,           // the bytes survive a power cut, the name perhaps not
  file_and_name,  // the name survives, too: every folder entry from the root to it is synced
};

constexpr bool syncs(Durability wanted) {
  return wanted >= Durability::file;
}

enum class IfExists : uint8_t { fail, replace };

// Writes one object. The object is invisible before publish(). Destroying an unpublished Writer removes its
// bytes. One thread.
class Writer {
 public:
  virtual ~Writer() = default;

  virtual Result<void> append(std::span<const std::byte> bytes) = 0;

  // Appends all pieces in order, with one system call if the back end can do that.
  virtual Result<void> append(std::span<const std::span<const std::byte>> pieces);

  // Needs Caps::write_at. Writes at an offset and lets the object grow if necessary. Does not move the append
  // position.
  virtual Result<void> write_at(uint64_t offset, std::span<const std::byte> bytes);

  // Gives the complete object its name in one step, and returns when the object has the Durability `wanted`.
  // Fails with `already_exists` if the name exists and `if_exists` is IfExists::fail. After any failure the
  // Writer cannot be used, and the object does not exist or is the old one. One exception: if only the sync
  // of the name failed, the complete new object may exist.
  virtual Result<void> publish(Durability wanted, IfExists if_exists = IfExists::replace) = 0;
};

// The error that a Writer returns after it has failed or published.
Error finished_writer_error(std::string_view name);

// Bytes that all threads have moved through a Backend since it was made.
struct MovedBytes {
  uint64_t read = 0;
  uint64_t written = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual const Caps& caps() const = 0;

  virtual Result<std::unique_ptr<Reader>> open(std::string_view name) = 0;

  // Creates missing parent folders. `bytes_hint` (0: unknown) lets the back end reserve space.
  virtual Result<std::unique_ptr<Writer>> create(std::string_view name, uint64_t bytes_hint = 0) = 0;

  // Opens, reads and closes one object, and waits for it: the blocking form of the queue operation
  // ReadObject. Returns the number of bytes read. This implementation opens a Reader. A back end with a
  // cheaper way overrides it.
  virtual Result<uint64_t> read_object(std::string_view name, uint64_t length_hint, std::span<std::byte> out);

  // A queue of up to `depth` operations. This implementation does each operation in submit(), one after
  // another. For a back end without asynchronous calls, thread_pool_queue() keeps `depth` operations in
  // flight on threads.
  virtual Result<std::unique_ptr<Queue>> queue(size_t depth);

  virtual Namespace& names() = 0;

  virtual MovedBytes moved_bytes() const = 0;

  // What this back end does differently from the user's request, because this machine or file system cannot
  // do better: one sentence each, for people and records.
  virtual std::vector<std::string> remarks() const { return {}; }

  // Needs Caps::native_path. Returns the path by which other programs and the tools of the page cache find
  // the object; "" is the root.
  virtual std::optional<std::filesystem::path> native_path(std::string_view name) const;
};

// Publishes an object with these bytes, and replaces an existing one.
Result<void> put_object(Backend& backend, std::string_view name, std::span<const std::byte> bytes,
                        Durability durability);
// Returns all bytes of an object. Fails with `corrupt` if it has more than `max_bytes` bytes.
Result<std::string> read_text(Backend& backend, std::string_view name, uint64_t max_bytes);

// Fails with invalid_argument unless `name` is a proper relative object name: at most 1024 bytes, each part
// at most 255.
Result<void> check_object_name(std::string_view name);
// Does the same as check_object_name(), but also allows "" (the root).
Result<void> check_folder_name(std::string_view name);

// The two functions below are helpers for authors of back ends.
//
// Fails with invalid_argument unless `name` is an object name and `length_hint` bytes fit into `room` bytes.
// Each back end checks this before it does anything for a read_object() or a ReadObject.
Result<void> check_read_object(std::string_view name, uint64_t length_hint, size_t room);
// Fails with invalid_argument unless `length` bytes of the object fit into `room` bytes of memory.
Result<void> check_fits(std::string_view name, uint64_t length, size_t room);

}  // namespace penstock
