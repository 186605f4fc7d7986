// The interface of a back end. Each back end implements it, and so gives one way to read and write objects.
//
// A Backend turns object names into Readers, Writers, Queues and a Namespace below one root, and lists what
// it can do. It never measures time, and knows nothing of samples or formats. A name is relative: it has no
// leading '/', and none of its parts between two '/' is "." or "..". If check_object_name() refuses a name,
// the back end returns invalid_argument and does nothing else.
//
// Threads: any thread may call a Backend, its Namespace and its Readers at any time. Only one thread at a
// time may call a Writer or a Queue. Everything that a Backend has made must be destroyed before the Backend.
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
  unsigned max_useful_threads = 0;  // more threads than this gain nothing; 0: no limit
  bool zero_copy = false;           // Reader::view works
  bool collective_reads = false;    // Reader::read_at_all works
  bool write_at = false;            // Writer::write_at works
  bool native_path = false;         // Backend::native_path gives a path that other programs can open
  bool async = false;               // its own Queue keeps several operations in flight without threads
  // its Queue is cheaper than blocking calls, even for one operation at a time
  bool queue_is_cheaper = false;
  bool atomic_rename = false;  // Namespace::rename_noreplace is atomic
  // Its bytes are in memory: they do not survive a power cut and are never cold.
  bool volatile_memory = false;
  bool bypasses_cache = false;  // its reads bypass the page cache (direct I/O)
  bool on_network = false;      // its objects come over a network, also if no file system is mounted (s3)
  // a decorator makes it slower, smaller or faulty on purpose; access by native paths is not affected
  bool emulated = false;
};

// An open object, which any thread may read at any time.
class Reader {
 public:
  virtual ~Reader() = default;

  // The present size of the object in bytes.
  virtual Result<uint64_t> size() = 0;

  // Fills all of `out` from byte `offset`. Fails with `truncated` if the object ends earlier.
  virtual Result<void> read_at(uint64_t offset, std::span<std::byte> out) = 0;

  // Returns `length` bytes from `offset` without a copy: the span shows the memory in which the object
  // already is. The span stays valid as long as the Reader exists. If the object is shortened meanwhile, the
  // bytes after its new end read as zeros, and later calls for these bytes fail. Needs Caps::zero_copy.
  virtual Result<std::span<const std::byte>> view(uint64_t offset, uint64_t length);

  // Does the same as read_at(), but all ranks of the job call it together for the same object. A rank that
  // needs no bytes passes an empty span. All ranks must also destroy this Reader together. If each rank has
  // several such Readers, all ranks destroy them in the same order. Needs Caps::collective_reads.
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
  file_and_name,  // bytes and name survive: every folder entry from the root to the object is synced
};

constexpr bool syncs(Durability wanted) {
  return wanted >= Durability::file;
}

enum class IfExists : uint8_t { fail, replace };

// Writes one object. The object is invisible before publish(). Destroying an unpublished Writer removes its
// bytes. Only one thread at a time may call it.
class Writer {
 public:
  virtual ~Writer() = default;

  virtual Result<void> append(std::span<const std::byte> bytes) = 0;

  // Appends all pieces in order, with one system call if the back end can do that.
  virtual Result<void> append(std::span<const std::span<const std::byte>> pieces);

  // Writes at an offset and lets the object grow if necessary. The next append() still continues after the
  // previous append(). Needs Caps::write_at.
  virtual Result<void> write_at(uint64_t offset, std::span<const std::byte> bytes);

  // Gives the complete object its name in one step, and returns when the object has the Durability `wanted`.
  // Fails with `already_exists` if the name exists and `if_exists` is IfExists::fail. After any failure the
  // Writer cannot be used, and the name still has its old object or none. One exception: if only the sync of
  // the name failed, the complete new object may exist.
  virtual Result<void> publish(Durability wanted, IfExists if_exists = IfExists::replace) = 0;
};

// The error of any call of a Writer that has already failed or published its object.
Error finished_writer_error(std::string_view name);

// The bytes that all threads have read and written through a Backend since it was made.
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
  // ReadObject. Returns the number of bytes read. By default it opens a Reader. A back end with a cheaper way
  // overrides it.
  virtual Result<uint64_t> read_object(std::string_view name, uint64_t length_hint, std::span<std::byte> out);

  // Makes a queue of up to `depth` operations. By default submit() of that queue does the operations itself,
  // one after another. A back end with asynchronous calls overrides this function. For other back ends,
  // thread_pool_queue() (queue.hpp) keeps `depth` operations in flight on threads.
  virtual Result<std::unique_ptr<Queue>> queue(size_t depth);

  virtual Namespace& names() = 0;

  virtual MovedBytes moved_bytes() const = 0;

  // Returns remarks for the user, which are printed and kept in result records. Each is one sentence. It
  // names one thing that this back end does in another way than the user asked, because this machine or file
  // system cannot do it.
  virtual std::vector<std::string> remarks() const { return {}; }

  // Returns the path of the object in the operating system; no value without Caps::native_path. Other
  // programs use the path, and so do the functions that inspect and evict the page cache. The name "" is the
  // root.
  virtual std::optional<std::filesystem::path> native_path(std::string_view name) const;
};

// Publishes an object with these bytes, and replaces an existing object of this name.
Result<void> put_object(Backend& backend, std::string_view name, std::span<const std::byte> bytes,
                        Durability durability);
// Returns all bytes of an object. Fails with `corrupt` if it has more than `max_bytes` bytes.
Result<std::string> read_text(Backend& backend, std::string_view name, uint64_t max_bytes);

// Fails with invalid_argument unless `name` is a proper object name. It is relative, at most 1024 bytes long,
// and has no zero byte. Each part between two '/' has 1 to 255 bytes and is not "." or "..".
Result<void> check_object_name(std::string_view name);
// Does the same as check_object_name(), but also allows "" (the root).
Result<void> check_folder_name(std::string_view name);

// The two functions below are helpers for authors of back ends.
//
// Fails with invalid_argument unless `name` is an object name and `length_hint` is at most `buffer_bytes`.
// Each back end checks this before it does anything for a read_object() or a ReadObject.
Result<void> check_read_object(std::string_view name, uint64_t length_hint, size_t buffer_bytes);
// Fails with invalid_argument unless `length` bytes of the object fit into a buffer of `buffer_bytes` bytes.
Result<void> check_fits(std::string_view name, uint64_t length, size_t buffer_bytes);

}  // namespace penstock
