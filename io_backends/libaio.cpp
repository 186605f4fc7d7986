// The back end `libaio`: a folder of the operating system. Each thread keeps many reads in flight by
// io_submit and io_getevents, the older asynchronous calls of the kernel. It is for machines that forbid
// io_uring. It needs no library.
//
// Only direct reads are asynchronous. A read through the page cache is already finished when io_submit
// returns.
//
// Threads: any thread may make a queue. One thread at a time uses it, and every function of LibaioQueue runs
// on that thread.
// Lock: IdleContexts::mutex_, taken when a queue is made or destroyed. A queue has no lock.
// Memory: the kernel writes to the caller's memory and to Slot::bounce until it returns an event or the
// context is destroyed. Reads allocate nothing, except for errors and for a bounce buffer that grows.
// Ctrl-C: a call is repeated after EINTR, because the kernel may still write to memory. The destructor of a
// queue waits for all its reads.
// Crash: the kernel ends the requests with the process. This file writes no files.
#include <linux/aio_abi.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "io_backends/backend/backend_info.hpp"
#include "io_backends/backend/fifo.hpp"
#include "io_backends/core/system/threads.hpp"
#include "io_backends/direct_files.hpp"

namespace penstock {

extern const BackendInfo backend_libaio;

namespace {

constexpr OptionSpec kLibaioOptions[] = {kDirectOption, kFallbackOption, kPublishOption};

// An aio context of the kernel, which can have up to depth() reads in flight. Only one thread at a time may
// use it. The destructor waits until the kernel no longer writes to the memory of these reads.
class AioContext {
 public:
  AioContext() = default;
  AioContext(const AioContext&) = delete;
  AioContext& operator=(const AioContext&) = delete;
  ~AioContext() {
    if (id_ != 0) ::syscall(SYS_io_destroy, id_);
  }

  // Makes the context in the kernel. Returns 0 or the errno.
  int set_up(size_t depth) {
    depth_ = depth;
    return ::syscall(SYS_io_setup, unsigned(depth), &id_) == 0 ? 0 : errno;
  }
  size_t depth() const { return depth_; }
  bool ready() const { return id_ != 0; }
  // Submits the reads in the order of the span. Returns how many the kernel accepted, or -1 with errno.
  long submit(std::span<iocb*> reads) {
    return ::syscall(SYS_io_submit, id_, long(reads.size()), reads.data());
  }
  // Waits for `at_least` events and returns how many came, or -1 with errno. A signal does not end the wait.
  long wait(size_t at_least, std::span<io_event> events) {
    return retry_eintr([&] {
      return ::syscall(SYS_io_getevents, id_, long(at_least), long(events.size()), events.data(), nullptr);
    });
  }

 private:
  aio_context_t id_ = 0;
  size_t depth_ = 0;
};

// The contexts that no queue uses at present, kept for later queues. It takes about 36 ms to destroy a
// context of any depth, because the kernel waits for RCU grace periods. A measured loop should not include
// that time. Any thread may call this class.
class IdleContexts {
 public:
  IdleContexts() = default;
  IdleContexts(const IdleContexts&) = delete;
  IdleContexts& operator=(const IdleContexts&) = delete;
  ~IdleContexts() { destroy_all(); }

  // Returns a kept context of at least `depth`, or null if there is none. Before it returns null it destroys
  // one of the kept contexts, because the caller then makes a new one. So there are never more contexts than
  // the largest number of queues that existed at the same time.
  std::unique_ptr<AioContext> take(size_t depth) {
    // Declared before the guard, so that the context is destroyed after the lock is released.
    std::unique_ptr<AioContext> too_shallow;
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(contexts_.begin(), contexts_.end(),
                                    [&](const auto& context) { return context->depth() >= depth; });
    if (found == contexts_.end()) {
      if (contexts_.empty()) return nullptr;
      too_shallow = std::move(contexts_.back());
      contexts_.pop_back();
      return nullptr;
    }
    std::unique_ptr<AioContext> context = std::move(*found);
    contexts_.erase(found);
    return context;
  }
  // Keeps a context for later queues. The destructor of a queue calls this on the thread that destroys the
  // queue. May allocate.
  void keep(std::unique_ptr<AioContext> context) {
    const std::lock_guard lock(mutex_);
    contexts_.push_back(std::move(context));
  }
  // Destroys all kept contexts. The destructor calls this, and so does queue() when the kernel allows no more
  // contexts. The lock is held all the time, so that no queue gets a context that is being destroyed. Up to
  // 64 threads share the work, because each context takes 36 ms.
  void destroy_all() {
    const std::lock_guard lock(mutex_);
    std::atomic<size_t> next{0};
    const auto destroy = [&](unsigned) {
      for (size_t i = next++; i < contexts_.size(); i = next++) contexts_[i].reset();
      return success();
    };
    constexpr size_t kMaxThreads = 64;
    static_cast<void>(on_threads(unsigned(std::min(contexts_.size(), kMaxThreads)), destroy));
    contexts_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<AioContext>> contexts_;
};

class LibaioFiles final : public DirectFiles {
 public:
  LibaioFiles(std::string_view path, const Options& options) : DirectFiles(path, options) {
    // Finds out whether io_setup() is allowed, by a call for a context of depth 0. If it is allowed, this
    // call fails with EINVAL, else with another errno. A real context is not made, because it would take long
    // to destroy.
    AioContext trial;
    const int sys_errno = trial.set_up(0);
    caps_.async = sys_errno == EINVAL;
    if (!caps_.async) remark_on_threads(sys_errno);
  }

  Result<std::unique_ptr<Queue>> queue(size_t depth) override;
  IdleContexts& idle_contexts() { return idle_contexts_; }

 private:
  void remark_on_threads(int sys_errno) {
    const std::string reason = sys_errno == EAGAIN
                                   ? "other programs use all contexts that fs.aio-max-nr allows"
                                   : std::string(std::strerror(sys_errno));
    remark("the kernel's asynchronous reads are unavailable (" + reason +
           "): blocking threads keep reads in flight instead");
  }

  IdleContexts idle_contexts_;
};

class LibaioQueue final : public Queue {
 public:
  LibaioQueue(LibaioFiles& files, std::unique_ptr<AioContext> context, size_t depth)
      : files_(files), slots_(depth), events_(depth), done_(depth), context_(std::move(context)) {
    free_slots_.reserve(depth);
    prepared_.reserve(depth);
    for (size_t i = depth; i > 0; --i) free_slots_.push_back(i - 1);
  }
  // Waits for all reads, also after Ctrl-C: the kernel may write to the memory of a read until its event
  // comes. The context is kept for later queues only if it has no reads left.
  ~LibaioQueue() override {
    while (in_kernel_ > 0 && wait(1)) continue;
    if (in_kernel_ == 0 && context_->ready()) files_.idle_contexts().keep(std::move(context_));
  }

  size_t submit(std::span<const Operation> operations, Start start) override;
  size_t reap(std::span<Completion> out, size_t at_least) override;
  size_t in_flight() const override { return prepared_.size() + in_kernel_ + done_.size(); }

 private:
  struct Slot {
    Operation operation;
    iocb request{};
    AlignedRead read;
    size_t bytes = 0;  // bytes that the operation wants
    bool in_kernel = false;
    Fd file;  // the open file of a ReadObject
    // the kernel writes here instead of to `out` if direct I/O needs an alignment that `out` lacks
    Buffer bounce;
  };

  void start(const Operation& operation);
  Result<bool> prepare(Slot& slot);
  void submit_prepared();
  bool wait(size_t at_least);
  void fail_all(int sys_errno);
  void finish(size_t index, int64_t result);
  void finish(size_t index, Result<uint64_t> outcome);

  LibaioFiles& files_;
  std::vector<Slot> slots_;
  std::vector<size_t> free_slots_;
  std::vector<iocb*> prepared_;  // reads to submit: pointers into slots_, which never grows
  std::vector<io_event> events_;
  size_t in_kernel_ = 0;
  Fifo<Completion> done_;
  // last member, so it is destroyed first: until then the kernel may write to slots_
  std::unique_ptr<AioContext> context_;
};

size_t LibaioQueue::submit(std::span<const Operation> operations, Start start) {
  const size_t accepted = std::min(operations.size(), free_slots_.size() - done_.size());
  for (const Operation& operation : operations.first(accepted)) this->start(operation);
  if (start == Start::now) submit_prepared();
  return accepted;
}

// Prepares the read in a slot if the kernel can do it. Otherwise it does the read by blocking calls and puts
// the result into done_.
void LibaioQueue::start(const Operation& operation) {
  const size_t index = free_slots_.back();
  Slot& slot = slots_[index];
  slot.operation = operation;
  const Result<bool> started = prepare(slot);
  if (started.ok() && *started) {
    free_slots_.pop_back();
    slot.request.aio_data = index;
    prepared_.push_back(&slot.request);
    return;
  }
  slot.file.close();
  done_.push({operation.tag, started.ok() ? perform(files_, operation) : Result<uint64_t>(started.error())});
}

// Fills the request of the slot. Returns false if blocking calls must do the operation.
Result<bool> LibaioQueue::prepare(Slot& slot) {
  uint64_t offset = 0;
  std::span<std::byte> output;
  std::optional<DirectAlignment> direct;
  int fd = -1;
  if (const auto* const read = std::get_if<ReadAt>(&slot.operation.what)) {
    const auto& reader = static_cast<const DirectReader&>(*read->reader);
    output = read->out;
    offset = read->offset;
    if (output.empty() || offset > uint64_t(INT64_MAX) - output.size()) return false;
    slot.bytes = output.size();
    fd = reader.fd();
    direct = reader.direct();
  } else {
    const auto& object = std::get<ReadObject>(slot.operation.what);
    PENSTOCK_TRY(check_read_object(object.name, object.length_hint, object.out.size()));
    if (object.length_hint == 0) return false;  // the size is unknown, so blocking calls read the object
    PENSTOCK_ASSIGN(slot.file, files_.open_direct(object.name));
    PENSTOCK_ASSIGN(direct, files_.alignment(slot.file.get(), object.name));
    output = object.out;
    slot.bytes = object.length_hint;
    fd = slot.file.get();
  }
  slot.read = plan_read(direct, offset, slot.bytes, output, slot.bounce);
  slot.request = {};
  slot.request.aio_lio_opcode = IOCB_CMD_PREAD;
  slot.request.aio_fildes = uint32_t(fd);
  slot.request.aio_buf = reinterpret_cast<uintptr_t>(slot.read.into);  // NOLINT(*-reinterpret-cast)
  slot.request.aio_nbytes = slot.read.padded_bytes;
  slot.request.aio_offset = int64_t(slot.read.offset);
  return true;
}

// Submits the prepared reads to the kernel. If the kernel refuses one, blocking calls do that read.
void LibaioQueue::submit_prepared() {
  std::span<iocb*> rest(prepared_);
  while (!rest.empty()) {
    const long accepted = context_->submit(rest);
    if (accepted > 0) {
      for (const iocb* const read : rest.first(size_t(accepted))) slots_[read->aio_data].in_kernel = true;
      in_kernel_ += size_t(accepted);
      rest = rest.subspan(size_t(accepted));
      continue;
    }
    if (accepted < 0 && errno == EINTR) continue;
    // EAGAIN means that the kernel has no room for more reads. If it has reads of this queue, wait() waits
    // until one of them ends and makes room. If it has none, a wait would never end, so blocking calls do the
    // read.
    if (accepted < 0 && errno == EAGAIN && in_kernel_ > 0 && wait(1)) continue;
    finish(rest.front()->aio_data, -EAGAIN);
    rest = rest.subspan(1);
  }
  prepared_.clear();
}

// Waits for at least `at_least` events of the kernel and takes them. Returns false if the kernel returns an
// error; then fail_all() has run.
bool LibaioQueue::wait(size_t at_least) {
  const long count = context_->wait(at_least, events_);
  if (count < 0) {
    fail_all(errno);
    return false;
  }
  in_kernel_ -= size_t(count);
  for (const io_event& event : std::span(events_).first(size_t(count))) finish(event.data, event.res);
  return true;
}

// Makes a new context, and then completes all reads in the kernel with `sys_errno`, since otherwise the
// caller would wait for them for ever. If no new context can be made, the kernel refuses later reads, and
// blocking calls do them.
void LibaioQueue::fail_all(int sys_errno) {
  const size_t depth = context_->depth();
  // The old context is destroyed first, which waits until no read writes to memory any more. The caller
  // learns of the failures only after that, because it may then free the memory.
  context_ = std::make_unique<AioContext>();
  static_cast<void>(context_->set_up(depth));
  in_kernel_ = 0;
  for (size_t index = 0; index < slots_.size(); ++index) {
    const Operation& operation = slots_[index].operation;
    if (slots_[index].in_kernel)
      finish(index,
             errno_error(sys_errno, "the kernel does not complete a read of", files_.full_name(operation)));
  }
}

size_t LibaioQueue::reap(std::span<Completion> out, size_t at_least) {
  const size_t wanted = std::min({at_least, in_flight(), out.size()});
  submit_prepared();
  if (done_.size() < wanted || (wanted == 0 && in_kernel_ > 0))
    while (wait(wanted - std::min(wanted, done_.size())) && done_.size() < wanted) continue;
  const size_t count = std::min(out.size(), done_.size());
  for (size_t i = 0; i < count; ++i) out[i] = done_.pop();
  return count;
}

void LibaioQueue::finish(size_t index, int64_t result) {
  Slot& slot = slots_[index];
  slot.file.close();  // closed before finish_read(), which may open the object again to repeat the read
  finish(index, files_.finish_read(slot.operation, slot.read, slot.bytes, result));
}

void LibaioQueue::finish(size_t index, Result<uint64_t> outcome) {
  Slot& slot = slots_[index];
  slot.in_kernel = false;
  slot.file.close();
  free_slots_.push_back(index);
  done_.push({slot.operation.tag, std::move(outcome)});
}

Result<std::unique_ptr<Queue>> LibaioFiles::queue(size_t depth) {
  PENSTOCK_TRY(check_queue_depth(depth));
  if (!caps_.async) return Backend::queue(depth);
  std::unique_ptr<AioContext> context = idle_contexts_.take(depth);
  if (context == nullptr) {
    context = std::make_unique<AioContext>();
    int sys_errno = context->set_up(depth);
    // The contexts of all processes together have reserved all reads that the machine allows (fs.aio-max-nr),
    // idle contexts too. So the idle ones are destroyed, and the call is repeated.
    if (sys_errno == EAGAIN) {
      idle_contexts_.destroy_all();
      sys_errno = context->set_up(depth);
    }
    if (sys_errno != 0) {
      remark_on_threads(sys_errno);
      return thread_pool_queue(*this, depth);
    }
  }
  return std::make_unique<LibaioQueue>(*this, std::move(context), depth);
}

Result<std::unique_ptr<Backend>> make_libaio(std::string_view path, const Options& options) {
  PENSTOCK_TRY(check_folder_given("libaio", path));
  return std::make_unique<LibaioFiles>(path, options);
}

}  // namespace

const BackendInfo backend_libaio{
    .name = "libaio",
    .summary = "files in a folder, read with io_submit, many reads in flight per thread",
    .options = kLibaioOptions,
    .make = make_libaio,
};

}  // namespace penstock
