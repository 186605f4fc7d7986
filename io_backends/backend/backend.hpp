// How bytes move: the seam that every way to reach storage stands behind.
//
// A Backend turns object names into Readers, Writers, Queues and a Namespace below one root, and says what it
// can do. It never times itself and knows nothing of samples or formats. Names are relative, '/'-separated,
// without '.', '..' or a leading '/'; a back end refuses others with invalid_argument before it touches
// anything.
//
// Threads: Backend and Namespace may be called by any thread at any time. Reader: any thread. Writer and
// Queue: one thread at a time. What a Backend makes must die before it.
//
// Errors: the same fault gives the same Errc on every back end (the contract test holds them to it), and
// names the object.
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

// What survives once a call that takes it has succeeded. On tiers of memory (Caps::volatile_memory, tmpfs)
// every level succeeds and none outlives the machine.
enum class Durability : std::uint8_t {
  visible,        // readers see the whole object; it survives this process, not a power cut
  leaving,        // as visible, and its bytes set out for the device: who syncs everything later waits less
  file,           // its bytes survive a power cut, its name perhaps not
  file_and_name,  // its name too: every folder entry on the way from the root is synced
};

constexpr bool syncs(Durability wanted) {
  return wanted >= Durability::file;
}

// What a back end can do beyond the required operations.
struct Caps {
  unsigned threads = 0;       // the most that gain anything at once; 0: no limit
  bool zero_copy = false;     // Reader::view works
  bool collective = false;    // Reader::read_at_all works
  bool write_at = false;      // Writer::write_at works
  bool native_path = false;   // Backend::native_path gives a path that other programs can open
  bool async = false;         // its own Queue keeps several operations in flight without threads
  bool queue_of_one = false;  // also a single operation at a time is cheaper through its Queue
  bool rename = false;        // Namespace::rename_noreplace is atomic
  bool volatile_memory =
      false;  // holds its bytes in memory: nothing survives the machine, and nothing is ever cold
  bool bypasses_cache = false;  // its reads leave the page cache alone (direct I/O)
  bool network = false;         // its objects lie behind a network, whatever this machine has mounted
  bool emulated = false;        // throttled or faulty: its native paths give more than it does
};

// An open object. Any thread.
class Reader {
 public:
  virtual ~Reader() = default;

  // The object's size in bytes now.
  virtual Result<std::uint64_t> size() = 0;

  // Fills `out` whole from byte `offset`, or fails: `truncated` when the object ends before.
  virtual Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) = 0;

  // Caps::zero_copy: the bytes in place, in memory by now, valid while the Reader lives. What the object
  // loses meanwhile shows as zeros, and as an error of the next call.
  virtual Result<std::span<const std::byte>> view(std::uint64_t offset, std::uint64_t length);

  // Caps::collective: as read_at, called by every rank of the job together, for the same object; one that
  // needs nothing passes an empty span. A Reader that was used so is destroyed by all ranks, too, in the same
  // order.
  virtual Result<void> read_at_all(std::uint64_t offset, std::span<std::byte> out);
};

enum class IfExists : std::uint8_t { fail, replace };

// An object in the making. It is invisible before publish(); destroyed unpublished, it leaves nothing behind.
// One thread.
class Writer {
 public:
  virtual ~Writer() = default;

  virtual Result<void> append(std::span<const std::byte> bytes) = 0;

  // As append of one after another, with one call to the system where the back end can.
  virtual Result<void> append(std::span<const std::span<const std::byte>> pieces);

  // Caps::write_at: (over)writes at an offset, growing the object if need be; does not move the append
  // position.
  virtual Result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes);

  // Gives the object its name, all at once, and returns when `wanted` holds. `already_exists` when it would
  // overwrite. After any failure the Writer is spent, and the object does not exist or exists as it was; only
  // when all succeeded but syncing its name, the new object may be there, whole.
  virtual Result<void> publish(Durability wanted, IfExists if_exists = IfExists::replace) = 0;
};

// The two operations of a Queue. `out` and `name` belong to the caller and stay put until the operation is
// reaped.
struct ReadAt {  // fills `out` whole from an object that the same back end opened, or fails as
                 // Reader::read_at
  Reader* reader = nullptr;
  std::uint64_t offset = 0;
  std::span<std::byte> out;
};
struct ReadObject {  // opens, reads and closes one object: exactly length_hint bytes (truncated if it is
                     // shorter), or, with hint 0, all of it (invalid_argument if `out` is too small).
                     // out.size() >= length_hint; what is behind that may be overwritten, and direct I/O is
                     // glad of room up to the next multiple of kBufferAlignment.
  std::string_view name;
  std::uint64_t length_hint = 0;
  std::span<std::byte> out;
};
struct Operation {
  std::variant<ReadAt, ReadObject> what;
  std::uint64_t tag = 0;  // the caller's: comes back with the completion
};
struct Completion {
  std::uint64_t tag = 0;
  Result<std::uint64_t> bytes = std::uint64_t{0};  // read into `out`, or why not
};

// When what is submitted starts.
enum class Start : std::uint8_t {
  now,
  with_reap,  // or when reap() is called next, which is to be soon: that may save a call to the system
};

// Submit and reap are two calls, so that one thread keeps many reads in flight. Completions come in any
// order. One thread at a time, and while operations are in flight none but the one that submitted them.
// Destroyed with operations in flight, it waits for them or cuts them off: their memory is touched no more.
class Queue {
 public:
  virtual ~Queue() = default;

  // Before anything is submitted: most reads will go to this memory, which outlives the queue. A queue that
  // is faster for it has the system keep hold of it.
  virtual void lend(std::span<std::byte> /*memory*/) {}

  // Starts operations from the front; returns how many it took (fewer than all when the queue is full).
  // Failures come as completions.
  virtual std::size_t submit(std::span<const Operation> operations, Start start = Start::now) = 0;

  // Waits for at least `at_least` completions (never for more than are in flight), takes at most out.size();
  // returns how many. at_least 0 polls.
  virtual std::size_t reap(std::span<Completion> out, std::size_t at_least) = 0;

  virtual std::size_t in_flight() const = 0;
};

struct Entry {
  std::string name;  // relative to the back end's root
  std::uint64_t bytes = 0;
  bool folder = false;
  bool link = false;      // from list(): another name for what lies elsewhere; bytes and folder are of that
  bool dangling = false;  // from list(): a link to what is not there
};

// Held until destroyed or the process ends.
class Lock {
 public:
  virtual ~Lock() = default;
};

// The names below a root. Object stores have folders by convention: a prefix that ends in '/'.
class Namespace {
 public:
  virtual ~Namespace() = default;

  // One level of `folder` ("" is the root), in no order; `visit` returns false to stop. Not found: not_found.
  virtual Result<void> list(std::string_view folder, const std::function<bool(const Entry&)>& visit) = 0;
  // As list(); `skipped` gets the names of what list() passes over, since it is neither object nor folder:
  // pipes, sockets, devices, and links to such. The default is for storage that has none.
  virtual Result<void> list_all(std::string_view folder, const std::function<bool(const Entry&)>& visit,
                                const std::function<void(std::string_view name)>& skipped);
  virtual Result<Entry> stat(std::string_view name) = 0;
  virtual Result<void> make_folders(std::string_view folder) = 0;  // with all parents; there already is fine
  // Caps::rename: atomic; already_exists if `to` is there. Works on folders where the back end has them.
  virtual Result<void> rename_noreplace(std::string_view from, std::string_view to) = 0;
  virtual Result<void> remove(std::string_view name) = 0;      // an object or an empty folder
  virtual Result<void> sync_dir(std::string_view folder) = 0;  // its entries survive a power cut
  // Exclusive among processes and hosts that share the tier; `busy` when another holds it. Creates the object
  // `name`.
  virtual Result<std::unique_ptr<Lock>> lock(std::string_view name) = 0;
  virtual Result<std::uint64_t> free_bytes() = 0;  // what this user may still write
};

// Bytes that crossed the seam since the Backend was made, by anyone.
struct MovedBytes {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual const Caps& caps() const = 0;

  virtual Result<std::unique_ptr<Reader>> open(std::string_view name) = 0;

  // Missing folders on the way are made. `bytes_hint` (0: unknown) lets the back end reserve space.
  virtual Result<std::unique_ptr<Writer>> create(std::string_view name, std::uint64_t bytes_hint = 0) = 0;

  // ReadObject, done now; returns the bytes read. The default opens a Reader; back ends that can spare that,
  // do.
  virtual Result<std::uint64_t> read_object(std::string_view name, std::uint64_t length_hint,
                                            std::span<std::byte> out);

  // A queue of up to `depth` operations in flight. The default works them off in submit(), one after another;
  // see thread_pool_queue() for real depth over a back end without asynchronous calls.
  virtual Result<std::unique_ptr<Queue>> queue(std::size_t depth);

  virtual Namespace& names() = 0;

  virtual MovedBytes moved_bytes() const = 0;

  // What it does otherwise than was asked for, because this machine or file system has no better; a sentence
  // each. For people and for records.
  virtual std::vector<std::string> remarks() const { return {}; }

  // Caps::native_path: where other programs (and the page cache's tools) find the object; "" is the root.
  virtual std::optional<std::filesystem::path> native_path(std::string_view name) const;
};

// Descriptor of a back end plug-in. `path` is the part of a TIER behind "NAME=BACKEND:". Making it touches
// nothing but what is needed to say that it cannot work; the root folder need not exist yet.
struct BackendInfo {
  std::string_view name;
  std::string_view summary;
  OptionTable options = {};
  Result<std::unique_ptr<Backend>> (*make)(std::string_view path, const Options& options);
  // A path for the contract test to use, given a scratch folder; empty result: skip with that reason.
  std::string (*test_path)(const std::filesystem::path& scratch) = [](const std::filesystem::path& scratch) {
    return scratch.string();
  };
};

const Registry<BackendInfo>& backend_registry();

// Removes an object or an empty folder; fine if it is not there.
Result<void> remove_if_there(Namespace& names, std::string_view name);
// Publishes an object of these bytes, in place of one that is there.
Result<void> put_object(Backend& backend, std::string_view name, std::span<const std::byte> bytes,
                        Durability durability);
// All bytes of an object; `corrupt` if it has more than `most`.
Result<std::string> read_text(Backend& backend, std::string_view name, std::uint64_t most);

// invalid_argument unless `name` is a proper relative object name: at most 1024 bytes, each part at most 255.
Result<void> check_object_name(std::string_view name);
// As check_object_name, but "" is fine: the root.
Result<void> check_folder_name(std::string_view name);

// For those who write a back end. check_read_object: what every ReadObject must satisfy before anything is
// touched; check_fits: that `length` bytes go into `room`; truncated_error: the error of a read behind the
// end; spent_error: the error of a Writer that has failed or published; check_queue_depth: 1 to 65536;
// out_of: where an operation's bytes go; perform: one operation of a queue, done now.
Result<void> check_read_object(std::string_view name, std::uint64_t length_hint, std::size_t room);
Result<void> check_fits(std::string_view name, std::uint64_t length, std::size_t room);
Result<void> check_queue_depth(std::size_t depth);
Error truncated_error(std::string_view name, std::uint64_t offset, std::uint64_t length);
Error spent_error(std::string_view name);
std::span<std::byte> out_of(const Operation& operation);
Result<std::uint64_t> perform(Backend& backend, const Operation& operation);

// `depth` threads with one blocking read each, as a Queue over any Backend. `exhausted` when the machine
// gives no more threads.
Result<std::unique_ptr<Queue>> thread_pool_queue(Backend& backend, std::size_t depth);

// A queue with `depth` operations really in flight: the back end's own where Caps::async, else threads;
// synchronous at depth 1.
Result<std::unique_ptr<Queue>> deep_queue(Backend& backend, std::size_t depth);

}  // namespace penstock
