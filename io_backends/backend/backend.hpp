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
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io_backends/core/options.hpp"
#include "io_backends/core/plugin.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// What survives after a successful call. On tiers in memory (Caps::volatile_memory, tmpfs) every level
// succeeds, and nothing survives a power cut.
enum class Durability : std::uint8_t {
  visible,        // readers see the whole object; it survives this process, not a power cut
  leaving,        // as visible, and the write to the device has started, so that a later sync waits less
  file,           // the bytes survive a power cut, the name perhaps not
  file_and_name,  // the name survives, too: every folder entry from the root to it is synced
};

constexpr bool syncs(Durability wanted) {
  return wanted >= Durability::file;
}

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
  bool volatile_memory =
      // Its bytes are in memory: they do not survive a power cut and are never cold.
      false;
  bool bypasses_cache = false;  // its reads bypass the page cache (direct I/O)
  bool network = false;         // its objects are on a network, whatever this machine has mounted
  bool emulated = false;        // throttled or faulty; access by native paths is not
};

// An open object. Any thread.
class Reader {
 public:
  virtual ~Reader() = default;

  // The present size of the object in bytes.
  virtual Result<std::uint64_t> size() = 0;

  // Fills all of `out` from byte `offset`. `truncated` if the object ends before that.
  virtual Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) = 0;

  // Caps::zero_copy: returns the bytes in place. They are in memory and stay valid while the Reader lives. If
  // the object is shortened, the lost bytes read as zeros and the next call fails.
  virtual Result<std::span<const std::byte>> view(std::uint64_t offset, std::uint64_t length);

  // Caps::collective: as read_at, but every rank of the job calls it together for the same object. A rank
  // that needs no bytes passes an empty span. All ranks then destroy the Reader together, too, in the same
  // order.
  virtual Result<void> read_at_all(std::uint64_t offset, std::span<std::byte> out);
};

enum class IfExists : std::uint8_t { fail, replace };

// Writes one object. The object is invisible before publish(). Destroying an unpublished Writer removes its
// bytes. One thread.
class Writer {
 public:
  virtual ~Writer() = default;

  virtual Result<void> append(std::span<const std::byte> bytes) = 0;

  // As append() of all pieces in order, with one system call if the back end can.
  virtual Result<void> append(std::span<const std::span<const std::byte>> pieces);

  // Caps::write_at: writes at an offset and lets the object grow if necessary. Does not move the append
  // position.
  virtual Result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes);

  // Gives the complete object its name in one step, and returns when `wanted` holds. `already_exists` if
  // IfExists::fail and the name exists. After any failure the Writer cannot be used, and the object does not
  // exist or is the old one. One exception: if only the sync of the name failed, the complete new object may
  // exist.
  virtual Result<void> publish(Durability wanted, IfExists if_exists = IfExists::replace) = 0;
};

// The two operations of a Queue. The caller owns `out` and `name` and keeps them valid until the operation is
// reaped.

// Fills all of `out`, or fails as Reader::read_at. `reader` must come from the same back end.
struct ReadAt {
  Reader* reader = nullptr;
  std::uint64_t offset = 0;
  std::span<std::byte> out;
};
// Opens, reads and closes one object. Reads exactly length_hint bytes; `truncated` if the object is shorter.
// With length_hint 0 it reads all bytes; invalid_argument if `out` is too small. `out` must have at least
// length_hint bytes. The bytes after those may be overwritten. Direct I/O is faster if `out` reaches to the
// next multiple of kBufferAlignment.
struct ReadObject {
  std::string_view name;
  std::uint64_t length_hint = 0;
  std::span<std::byte> out;
};
struct Operation {
  std::variant<ReadAt, ReadObject> what;
  std::uint64_t tag = 0;  // chosen by the caller; the completion has the same tag
};
struct Completion {
  std::uint64_t tag = 0;
  Result<std::uint64_t> bytes = std::uint64_t{0};  // bytes read into `out`, or the error
};

// When a submitted operation starts.
enum class Start : std::uint8_t {
  now,
  with_reap,  // at the next reap() at the latest, which must follow soon; may save a system call
};

// Keeps many reads in flight from one thread: submit() starts them, reap() collects their completions in any
// order. One thread at a time. While operations are in flight, only the thread that submitted them may call
// it. Destroyed with operations in flight, it waits for them or cuts them off; their memory is not used after
// that.
class Queue {
 public:
  virtual ~Queue() = default;

  // Call it before the first submit(). Most reads will go to this memory, which must outlive the queue. A
  // queue that is faster with it registers it with the system.
  virtual void lend(std::span<std::byte> /*memory*/) {}

  // Starts operations from the front. Returns how many it accepted: fewer than all if the queue is full.
  // Errors of operations come as completions.
  virtual std::size_t submit(std::span<const Operation> operations, Start start = Start::now) = 0;

  // Waits for at least `at_least` completions, but not for more than are in flight. Returns how many it wrote
  // to `out`. 0 does not wait.
  virtual std::size_t reap(std::span<Completion> out, std::size_t at_least) = 0;

  virtual std::size_t in_flight() const = 0;
};

struct Entry {
  std::string name;  // relative to the back end's root
  std::uint64_t bytes = 0;
  bool folder = false;
  bool link = false;      // from list(): a symbolic link; bytes and folder are those of its target
  bool dangling = false;  // from list(): a link whose target does not exist
};

// A lock on a tier. It ends when it is destroyed or the process ends.
class Lock {
 public:
  virtual ~Lock() = default;
};

// The names below a root. An object store has folders by convention: a prefix that ends in '/'.
class Namespace {
 public:
  virtual ~Namespace() = default;

  // Lists one level of `folder` ("": the root) in any order. `visit` returns false to stop. `not_found` if
  // the folder does not exist.
  virtual Result<void> list(std::string_view folder, const std::function<bool(const Entry&)>& visit) = 0;
  // As list(), and calls `skipped` for each name that list() skips because it is neither object nor folder:
  // pipes, sockets, devices, and links to them. The default is for storage without such names.
  virtual Result<void> list_all(std::string_view folder, const std::function<bool(const Entry&)>& visit,
                                const std::function<void(std::string_view name)>& skipped);
  virtual Result<Entry> stat(std::string_view name) = 0;
  virtual Result<void> make_folders(std::string_view folder) = 0;  // with all parents; success if it exists
  // Atomic with Caps::rename. already_exists if `to` exists. Renames folders, too, if the back end has them.
  virtual Result<void> rename_noreplace(std::string_view from, std::string_view to) = 0;
  virtual Result<void> remove(std::string_view name) = 0;      // an object or an empty folder
  virtual Result<void> sync_dir(std::string_view folder) = 0;  // afterwards its entries survive a power cut
  // Locks `name`, which it creates as an object, among all processes and hosts that share the tier. `busy` if
  // another holder has the lock.
  virtual Result<std::unique_ptr<Lock>> lock(std::string_view name) = 0;
  virtual Result<std::uint64_t> free_bytes() = 0;  // bytes that this user may still write
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

  // Does a ReadObject and waits for it. Returns the number of bytes read. The default opens a Reader; a back
  // end with a cheaper way overrides it.
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

// Descriptor of a back end plug-in. `path` is the part of a TIER after "NAME=BACKEND:". make() does only what
// is needed to find out that the back end cannot work. The root folder need not exist yet.
struct BackendInfo {
  std::string_view name;
  std::string_view summary;
  OptionTable options = {};
  Result<std::unique_ptr<Backend>> (*make)(std::string_view path, const Options& options);
  // Returns a path for the contract test inside a scratch folder. Empty: the test is skipped.
  std::string (*test_path)(const std::filesystem::path& scratch) = [](const std::filesystem::path& scratch) {
    return scratch.string();
  };
};

const Registry<BackendInfo>& backend_registry();

// Removes an object or an empty folder. Success if it does not exist.
Result<void> remove_if_there(Namespace& names, std::string_view name);
// Publishes an object with these bytes, and replaces an existing one.
Result<void> put_object(Backend& backend, std::string_view name, std::span<const std::byte> bytes,
                        Durability durability);
// Returns all bytes of an object; `corrupt` if it has more than `most`.
Result<std::string> read_text(Backend& backend, std::string_view name, std::uint64_t most);

// invalid_argument unless `name` is a proper relative object name: at most 1024 bytes, each part at most 255.
Result<void> check_object_name(std::string_view name);
// As check_object_name, but "" (the root) is allowed, too.
Result<void> check_folder_name(std::string_view name);

// The functions below are helpers for authors of back ends. Any thread.
//
// invalid_argument unless `name` is an object name and `length_hint` bytes fit into `room` bytes. Each back
// end checks this before it does anything for a ReadObject.
Result<void> check_read_object(std::string_view name, std::uint64_t length_hint, std::size_t room);
// invalid_argument unless `length` bytes of the object fit into `room` bytes of memory.
Result<void> check_fits(std::string_view name, std::uint64_t length, std::size_t room);
// invalid_argument unless the depth is 1 to 65536.
Result<void> check_queue_depth(std::size_t depth);
// The error of a read of `length` bytes from `offset` that ends after the end of the object.
Error truncated_error(std::string_view name, std::uint64_t offset, std::uint64_t length);
// The error of a call to a Writer that has failed or published.
Error spent_error(std::string_view name);
// The memory that the operation fills.
std::span<std::byte> out_of(const Operation& operation);
// Does one operation of a queue by blocking calls. Returns the number of bytes read.
Result<std::uint64_t> perform(Backend& backend, const Operation& operation);

// A Queue over any Backend: `depth` threads, each with one blocking read. `exhausted` if the system cannot
// create the threads.
Result<std::unique_ptr<Queue>> thread_pool_queue(Backend& backend, std::size_t depth);

// A queue that really keeps `depth` operations in flight. With Caps::async it is the back end's own queue,
// else threads. At depth 1 it is Backend::queue().
Result<std::unique_ptr<Queue>> deep_queue(Backend& backend, std::size_t depth);

}  // namespace penstock
