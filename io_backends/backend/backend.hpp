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
#include "io_backends/backend/reader.hpp"
#include "io_backends/backend/writer.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// What a back end can do beyond the required operations.
struct Caps {
  unsigned threads = 0;       // more threads than this gain nothing; 0: no limit
  bool zero_copy = false;     // Reader::view works
  bool collective = false;    // Reader::read_at_all works
  bool write_at = false;      // Writer::write_at works
  bool native_path = false;   // Backend::native_path gives a path that other programs can open
  bool async = false;         // its own Queue keeps several operations in flight without threads
  bool queue_of_one = false;  // even one operation at a time is cheaper through its Queue
  bool rename = false;        // Namespace::rename_noreplace is atomic
  // Its bytes are in memory: they do not survive a power cut and are never cold.
  bool volatile_memory = false;
  bool bypasses_cache = false;  // its reads bypass the page cache (direct I/O)
  bool network = false;         // its objects are on a network, whatever this machine has mounted
  bool emulated = false;        // throttled or faulty; access by native paths is not
};

// Bytes that all threads have moved through a Backend since it was made.
struct MovedBytes {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual const Caps& caps() const = 0;

  virtual Result<std::unique_ptr<Reader>> open(std::string_view name) = 0;

  // Creates missing parent folders. `bytes_hint` (0: unknown) lets the back end reserve space.
  virtual Result<std::unique_ptr<Writer>> create(std::string_view name, std::uint64_t bytes_hint = 0) = 0;

  // Opens, reads and closes one object, as a ReadObject in a queue, and waits for it. Returns the number of
  // bytes read. The default opens a Reader; a back end with a cheaper way overrides it.
  virtual Result<std::uint64_t> read_object(std::string_view name, std::uint64_t length_hint,
                                            std::span<std::byte> out);

  // A queue of up to `depth` operations. The default does each operation in submit(), one after another. For
  // a back end without asynchronous calls, thread_pool_queue() keeps `depth` operations in flight on threads.
  virtual Result<std::unique_ptr<Queue>> queue(std::size_t depth);

  virtual Namespace& names() = 0;

  virtual MovedBytes moved_bytes() const = 0;

  // What it does differently from the user's request, because this machine or file system cannot do better:
  // one sentence each, for people and records.
  virtual std::vector<std::string> remarks() const { return {}; }

  // Caps::native_path: the path by which other programs and the tools of the page cache find the object; ""
  // is the root.
  virtual std::optional<std::filesystem::path> native_path(std::string_view name) const;
};

// Publishes an object with these bytes, and replaces an existing one.
Result<void> put_object(Backend& backend, std::string_view name, std::span<const std::byte> bytes,
                        Durability durability);
// Returns all bytes of an object; `corrupt` if it has more than `most`.
Result<std::string> read_text(Backend& backend, std::string_view name, std::uint64_t most);

// invalid_argument unless `name` is a proper relative object name: at most 1024 bytes, each part at most 255.
Result<void> check_object_name(std::string_view name);
// As check_object_name, but "" (the root) is allowed, too.
Result<void> check_folder_name(std::string_view name);

// The two functions below are helpers for authors of back ends.
//
// invalid_argument unless `name` is an object name and `length_hint` bytes fit into `room` bytes. Each back
// end checks this before it does anything for a read_object() or a ReadObject.
Result<void> check_read_object(std::string_view name, std::uint64_t length_hint, std::size_t room);
// invalid_argument unless `length` bytes of the object fit into `room` bytes of memory.
Result<void> check_fits(std::string_view name, std::uint64_t length, std::size_t room);

}  // namespace penstock
