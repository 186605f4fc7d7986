// The back end `uring`: a folder of the operating system. Each thread keeps many reads in flight by io_uring.
//
// The read of a whole object is a chain of three requests, open -> read -> close, which the kernel does in
// order. The open uses a slot of the ring's own table of files, so the process needs no descriptor. A chain
// that succeeds gives one completion, that of the close. If the open fails, only the completion of the open
// comes. If the read fails or is short, first its completion comes, then that of the close.
//
// Threads: any thread may make a queue. One thread at a time uses it and runs all functions of UringQueue.
// Lock: none. The ring belongs to the thread that made it (owner_thread_). Another thread makes a new ring.
// Memory: a read allocates only for an error or a larger path or bounce buffer. begin() allocates more.
// Ctrl-C: a call is repeated after EINTR, because the kernel may still write to the memory of a read.
// ~UringQueue() waits for all reads.
// Crash: the kernel ends the requests with the process. This file writes no files.
#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/backend/backend_info.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/backend/fifo.hpp"
#include "io_backends/direct_files.hpp"
#include "io_backends/uring/ring.hpp"

namespace penstock {
extern const BackendInfo backend_uring;
namespace {

constexpr OptionSpec kUringOptions[] = {
    kDirectOption,
    kFallbackOption,
    kPublishOption,
    {.name = "sqpoll",
     .role = OptionRole::work,
     .type = OptionType::boolean,
     .value = "0|1",
     .fallback = "0",
     .help = "a kernel thread polls for submissions (IORING_SETUP_SQPOLL); it uses one CPU"}};

// the read, counted from 1, at which an opened object enters the ring's table of files
constexpr unsigned kReadsUntilInTable = 4;
constexpr size_t kPiecesPerDepth = 8;                 // `depth` reads are submitted in this number of pieces
constexpr size_t kMaxBufferBytes = size_t{1} << 30U;  // largest buffer that the kernel registers
constexpr size_t kMaxReadBytes = INT32_MAX & ~4095;   // in bytes; the most that one request can read

// Returns a number that no other thread ever has. The system's thread id is not enough: a new thread may get
// the id of an ended one. The queue would then take it for the owner of the ring.
uint64_t thread_number() {
  static std::atomic<uint64_t> count{0};
  thread_local const uint64_t number = ++count;
  return number;
}

// Whether a call that failed with this errno may succeed if it is repeated.
bool is_transient(int sys_errno) {
  return sys_errno == EINTR || sys_errno == EAGAIN || sys_errno == EBUSY;
}

// A Reader with a unique number, which no later file ever gets. A later file may get the same descriptor.
class UringReader final : public DirectReader {
 public:
  using DirectReader::DirectReader;
  uint64_t number() const { return number_; }

 private:
  static uint64_t next() {
    static std::atomic<uint64_t> count{0};
    return ++count;
  }
  const uint64_t number_ = next();
};

class UringFiles final : public DirectFiles {
 public:
  UringFiles(std::string_view path, const Options& options)
      : DirectFiles(path, options), sqpoll_(options.boolean("sqpoll")) {
    UringRing trial;
    const int sys_errno = trial.set_up(1, sqpoll_);
    caps_.async = sys_errno == 0;
    caps_.queue_is_cheaper = caps_.async && caps_.bypasses_cache;
    if (sys_errno == 0) return;
    remark(std::string("io_uring is unavailable (") + std::strerror(sys_errno) +
           ring_memory_remedy(sys_errno) + "): blocking threads keep reads in flight instead");
  }

  Result<std::unique_ptr<Reader>> open(std::string_view name) override {
    PENSTOCK_TRY(check_object_name(name));
    PENSTOCK_ASSIGN(Fd fd, open_direct(name));
    PENSTOCK_ASSIGN(const unsigned mode, mode_of(fd.get(), name));
    PENSTOCK_ASSIGN(const auto direct, ask_alignment(fd.get(), name));
    // This removes O_NONBLOCK. Some file systems do not know whether a read has to wait. On these, each read
    // of a file with O_NONBLOCK fails.
    if (S_ISREG(mode)) ::fcntl(fd.get(), F_SETFL, direct ? O_DIRECT : 0);
    return std::make_unique<UringReader>(std::move(fd), direct, root_.full_path(name), moved_);
  }

  Result<std::unique_ptr<Queue>> queue(size_t depth) override;
  PosixRoot& root() { return root_; }
  bool sqpoll() const { return sqpoll_; }
  // The flags with which the ring opens objects. They include O_NONBLOCK until a read fails with EAGAIN
  // because it would have to wait.
  int open_flags() const {
    return O_RDONLY | O_LARGEFILE | (direct_.on() ? O_DIRECT : 0) |
           (open_may_wait_.load(std::memory_order_relaxed) ? 0 : O_NONBLOCK);
  }
  void allow_waits() { open_may_wait_.store(true, std::memory_order_relaxed); }

 private:
  const bool sqpoll_;
  // True: objects are opened without O_NONBLOCK. Never reset. A thread that sees it late only repeats a read.
  std::atomic<bool> open_may_wait_{false};
};

class UringQueue final : public Queue {
 public:
  UringQueue(UringFiles& files, size_t depth) : files_(files), slots_(depth), done_(depth) {
    free_slots_.reserve(depth);
    for (size_t i = depth; i > 0; --i) free_slots_.push_back(uint32_t(i - 1));
  }
  ~UringQueue() override {
    while (in_kernel_ > 0) take_or_fail(wait(1));
  }
  void register_memory(std::span<std::byte> memory) override {
    registered_ = memory;
    if (ring_ != nullptr && owner_thread_ == thread_number()) register_buffers();
  }
  size_t submit(std::span<const Operation> operations, Start start) override;
  size_t reap(std::span<Completion> out, size_t at_least) override;
  size_t in_flight() const override { return in_kernel_ + done_.size(); }
  // Makes the ring for the current thread, at the first use and when another thread begins to use the queue.
  Result<void> begin();

 private:
  enum Step : uint64_t { kOpen, kRead, kClose };
  static constexpr unsigned kStepBits = 2;
  static constexpr int kCompleteRead = std::numeric_limits<int>::min();  // Slot::result after a full read
  // A slot of the ring's table of files. Its file stays open until another one replaces it or the queue ends.
  // The destructor of a Reader does not clear it, because only the queue's thread may change the table.
  struct TableSlot {
    uint64_t reader_number = 0;
    uint64_t candidate_number = 0;
    unsigned reads = 0;      // how often the Reader with candidate_number was read
    unsigned in_flight = 0;  // reads in flight that use this slot
  };
  struct Slot {
    Operation operation;
    AlignedRead read;
    size_t bytes = 0;  // bytes that the operation wants
    int result = kCompleteRead;
    bool in_kernel = false;
    TableSlot* table_slot = nullptr;  // the file's place in the table, or null
    bool open_failed = false;
    std::string path;  // the kernel reads it at the submit, so it must not change before
    Buffer bounce;     // the kernel writes here if `out` lacks the alignment of direct I/O
  };

  void register_buffers();
  void start(const Operation& operation);
  Result<bool> start_read(uint32_t slot, const ReadAt& read);
  Result<bool> start_object(uint32_t slot, const ReadObject& object);
  static bool plan_slot_read(Slot& slot, const std::optional<DirectAlignment>& direct, uint64_t offset,
                             std::span<std::byte> output);
  io_uring_sqe* next_request(unsigned count);
  void prepare_read(io_uring_sqe* sqe, int file, const AlignedRead& read) const;
  TableSlot* table_slot_of(const UringReader& reader);
  void submit_prepared();
  int wait(unsigned completions);
  void take_completions();
  void take_or_fail(int sys_errno);
  void handle_completion(uint64_t tag, int result);
  void finish(uint32_t index);
  void finish(uint32_t index, Result<uint64_t> outcome);

  UringFiles& files_;
  uint64_t owner_thread_ = 0;  // thread_number() of the thread that made the ring
  int root_fd_ = -1;
  std::span<std::byte> registered_;
  bool is_registered_ = false;
  std::vector<Slot> slots_;  // never grows, because the kernel has pointers to its elements
  std::vector<uint32_t> free_slots_;
  std::vector<TableSlot> table_;
  size_t in_kernel_ = 0;  // also counts prepared reads that are not submitted yet
  Fifo<Completion> done_;
  std::unique_ptr<UringRing> ring_;  // last, so destroyed first: until then the kernel may write to slots_
};

Result<void> UringQueue::begin() {
  auto ring = std::make_unique<UringRing>();
  const int sys_errno = ring->set_up(slots_.size(), files_.sqpoll());
  if (sys_errno != 0) return ring_error(sys_errno, slots_.size());
  ring_ = std::move(ring);
  owner_thread_ = thread_number();
  table_.assign(ring_->table_files(), {});
  is_registered_ = false;
  register_buffers();
  return success();
}

// Registers the memory while no read is in flight, so that the kernel need not pin its pages for each read.
void UringQueue::register_buffers() {
  if (std::exchange(is_registered_, false)) ::io_uring_unregister_buffers(&ring_->get());
  if (registered_.empty()) return;
  std::vector<iovec> pieces;
  for (size_t at = 0; at < registered_.size(); at += kMaxBufferBytes)
    pieces.push_back({registered_.data() + at, std::min(kMaxBufferBytes, registered_.size() - at)});
  const int result = ::io_uring_register_buffers(&ring_->get(), pieces.data(), unsigned(pieces.size()));
  is_registered_ = result == 0;
  if (!is_registered_)
    files_.remark(std::string("reads use no registered buffers (") + std::strerror(-result) +
                  "): `ulimit -l` shows the limit of locked memory; raise it");
}

size_t UringQueue::submit(std::span<const Operation> operations, Start start) {
  const size_t accepted = std::min(operations.size(), free_slots_.size() - done_.size());
  if (accepted > 0 && (ring_ == nullptr || owner_thread_ != thread_number()) && in_kernel_ == 0) {
    if (const Result<void> started = begin(); !started.ok()) {
      for (const Operation& operation : operations.first(accepted))
        done_.push({operation.tag, started.error()});
      return accepted;
    }
  }
  // Reads are submitted in pieces, so that a device works on the first piece while the next is prepared. Many
  // devices, especially virtual ones, complete a whole queue at once and would then be idle.
  const size_t reads_per_piece = std::max<size_t>(slots_.size() / kPiecesPerDepth, 1);
  for (size_t i = 0; i < accepted; ++i) {
    this->start(operations[i]);
    if ((i + 1) % reads_per_piece == 0 && i + 1 < accepted) submit_prepared();
  }
  if (start == Start::now) submit_prepared();
  return accepted;
}

void UringQueue::start(const Operation& operation) {
  // This slot is taken from free_slots_ first, because next_request() may add other slots there.
  const uint32_t index = free_slots_.back();
  free_slots_.pop_back();
  Slot& slot = slots_[index];
  slot.operation = operation;
  slot.result = kCompleteRead;
  slot.open_failed = false;
  const auto* const read = std::get_if<ReadAt>(&operation.what);
  Result<bool> started =
      read != nullptr ? start_read(index, *read) : start_object(index, std::get<ReadObject>(operation.what));
  if (started.ok() && *started) {
    slot.in_kernel = true;
    ++in_kernel_;
    return;
  }
  free_slots_.push_back(index);
  done_.push({operation.tag, started.ok() ? perform(files_, operation) : Result<uint64_t>(started.error())});
}

// Prepares one request. Returns false if blocking calls must do the read.
Result<bool> UringQueue::start_read(uint32_t index, const ReadAt& read) {
  if (read.out.empty() || read.offset > uint64_t(INT64_MAX) - read.out.size()) return false;
  Slot& slot = slots_[index];
  slot.bytes = read.out.size();
  const auto& reader = static_cast<const UringReader&>(*read.reader);
  if (!plan_slot_read(slot, reader.direct(), read.offset, read.out)) return false;
  TableSlot* const table_slot = table_slot_of(reader);
  io_uring_sqe* const sqe = next_request(1);
  if (sqe == nullptr) return false;
  if (table_slot == nullptr) {
    prepare_read(sqe, reader.fd(), slot.read);
  } else {
    const auto table_index = size_t(table_slot - table_.data());
    prepare_read(sqe, int(slots_.size() + table_index), slot.read);
    sqe->flags |= IOSQE_FIXED_FILE;
    slot.table_slot = table_slot;
    ++table_slot->in_flight;
  }
  ::io_uring_sqe_set_data64(sqe, uint64_t{index} << kStepBits | kRead);
  return true;
}

// Prepares a chain of open, read and close, all in one submit, because a chain ends with its submit. The read
// runs only if the open succeeded (IO_LINK). The close runs even if the read failed (IO_HARDLINK).
Result<bool> UringQueue::start_object(uint32_t index, const ReadObject& object) {
  PENSTOCK_TRY(check_read_object(object.name, object.length_hint, object.out.size()));
  if (object.length_hint == 0) return false;  // the size is unknown, so blocking calls read the object
  PENSTOCK_ASSIGN(root_fd_, files_.root().fd());
  Slot& slot = slots_[index];
  slot.bytes = object.length_hint;
  if (!plan_slot_read(slot, files_.likely_alignment(), 0, object.out)) return false;
  slot.path.assign(object.name);
  io_uring_sqe* sqe = next_request(3);
  if (sqe == nullptr) return false;
  const uint64_t tag = uint64_t{index} << kStepBits;
  ::io_uring_prep_openat_direct(sqe, root_fd_, slot.path.c_str(), files_.open_flags(), 0, index);
  sqe->flags |= IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
  ::io_uring_sqe_set_data64(sqe, tag | kOpen);
  sqe = ::io_uring_get_sqe(&ring_->get());
  prepare_read(sqe, int(index), slot.read);
  sqe->flags |= IOSQE_FIXED_FILE | IOSQE_IO_HARDLINK | IOSQE_CQE_SKIP_SUCCESS;
  ::io_uring_sqe_set_data64(sqe, tag | kRead);
  sqe = ::io_uring_get_sqe(&ring_->get());
  ::io_uring_prep_close_direct(sqe, index);
  ::io_uring_sqe_set_data64(sqe, tag | kClose);
  return true;
}

// Plans the read into slot.read. Returns false if one request cannot read all bytes. The kernel would read
// fewer and report success, and a chain that succeeds does not tell how many bytes it read.
bool UringQueue::plan_slot_read(Slot& slot, const std::optional<DirectAlignment>& direct, uint64_t offset,
                                std::span<std::byte> output) {
  if (slot.bytes > kMaxReadBytes) return false;
  slot.read = plan_read(direct, offset, slot.bytes, output, slot.bounce);
  return slot.read.padded_bytes <= kMaxReadBytes;
}

// Returns the first of `count` free entries for requests of one submit; null if the kernel accepts no more.
io_uring_sqe* UringQueue::next_request(unsigned count) {
  io_uring& ring = ring_->get();
  for (int tries = 0; ::io_uring_sq_space_left(&ring) < count; ++tries) {
    if (tries > 1000) return nullptr;
    submit_prepared();
    if (files_.sqpoll()) ::io_uring_sqring_wait(&ring);
  }
  return ::io_uring_get_sqe(&ring);
}

void UringQueue::prepare_read(io_uring_sqe* sqe, int file, const AlignedRead& read) const {
  const auto bytes = unsigned(read.padded_bytes);
  const std::byte* const end = registered_.data() + registered_.size();
  if (is_registered_ && read.into >= registered_.data() && read.into < end) {
    const auto at = size_t(read.into - registered_.data());
    const size_t buffer = at / kMaxBufferBytes;
    if (buffer == (at + bytes - 1) / kMaxBufferBytes && at + bytes <= registered_.size()) {
      ::io_uring_prep_read_fixed(sqe, file, read.into, bytes, read.offset, int(buffer));
      return;
    }
  }
  ::io_uring_prep_read(sqe, file, read.into, bytes, read.offset);
}

// Returns the file's slot in the ring's table, or null. The file gets a slot at its kReadsUntilInTable-th
// read. It gets none while reads of the slot's earlier file are in flight. The kernel may look up the slot
// later, and would then read the wrong file.
UringQueue::TableSlot* UringQueue::table_slot_of(const UringReader& reader) {
  if (table_.empty()) return nullptr;
  const size_t table_index = size_t(reader.fd()) & (table_.size() - 1);
  TableSlot& slot = table_[table_index];
  if (slot.reader_number == reader.number()) return &slot;
  if (slot.candidate_number != reader.number()) {
    slot.candidate_number = reader.number();
    slot.reads = 0;
  }
  if (++slot.reads < kReadsUntilInTable || slot.in_flight > 0) return nullptr;
  const auto index = unsigned(slots_.size() + table_index);
  int fd = reader.fd();
  if (::io_uring_register_files_update(&ring_->get(), index, &fd, 1) != 1) {
    slot.reads = 0;  // so the next attempt comes after kReadsUntilInTable more reads
    return nullptr;
  }
  slot.reader_number = reader.number();
  return &slot;
}

// Submits the prepared requests. If the kernel has no room for completions, this takes some first.
void UringQueue::submit_prepared() {
  if (ring_ == nullptr) return;
  io_uring& ring = ring_->get();
  while (::io_uring_sq_ready(&ring) > 0) {
    const int result = ::io_uring_submit(&ring);
    if (result >= 0 && files_.sqpoll()) return;
    if (result >= 0 || result == -EINTR) continue;
    if (!is_transient(-result)) return;
    take_completions();
    static_cast<void>(::io_uring_get_events(&ring));
  }
}

// Submits the prepared requests and waits for completions, also after a signal. Returns 0 or the errno.
int UringQueue::wait(unsigned completions) {
  io_uring& ring = ring_->get();
  for (;;) {
    const int result = ::io_uring_submit_and_wait(&ring, completions);
    if (result >= 0) return 0;
    if (result == -EINTR) continue;
    if (is_transient(-result)) {
      if (::io_uring_cq_ready(&ring) > 0) return 0;
      static_cast<void>(::io_uring_get_events(&ring));
      continue;
    }
    return -result;
  }
}

size_t UringQueue::reap(std::span<Completion> out, size_t at_least) {
  const size_t wanted = std::min({at_least, in_flight(), out.size()});
  size_t count = 0;
  const auto take_done = [&] {
    while (count < out.size() && done_.size() > 0) out[count++] = done_.pop();
  };
  take_done();
  if (in_kernel_ == 0) return count;
  if (count >= wanted) {
    submit_prepared();
    const int result = wanted == 0 ? ::io_uring_get_events(&ring_->get()) : 0;
    take_or_fail(result < 0 && !is_transient(-result) ? -result : 0);
    take_done();
    return count;
  }
  while (count < wanted) {
    take_or_fail(wait(unsigned(wanted - count)));
    take_done();
  }
  return count;
}

// Takes the completions. If `sys_errno` is not 0, all other reads fail, because they will never complete.
// They fail only after cut_off(), when the kernel no longer writes to their memory. The caller may free that
// memory as soon as it learns of the failure. The next operation makes a new ring.
void UringQueue::take_or_fail(int sys_errno) {
  take_completions();
  if (sys_errno == 0) return;
  ring_->cut_off();
  ring_ = nullptr;
  for (uint32_t index = 0; index < slots_.size(); ++index) {
    const Operation& operation = slots_[index].operation;
    if (slots_[index].in_kernel)
      finish(index,
             errno_error(sys_errno, "io_uring does not complete a read of", files_.full_name(operation)));
  }
}

void UringQueue::take_completions() {
  io_uring& ring = ring_->get();
  std::array<io_uring_cqe*, 64> entries{};
  for (unsigned count = 0; (count = ::io_uring_peek_batch_cqe(&ring, entries.data(), entries.size())) > 0;) {
    for (const io_uring_cqe* const cqe : std::span(entries).first(count))
      handle_completion(::io_uring_cqe_get_data64(cqe), cqe->res);
    ::io_uring_cq_advance(&ring, count);
  }
}

void UringQueue::handle_completion(uint64_t tag, int result) {
  const auto index = uint32_t(tag >> kStepBits);
  Slot& slot = slots_[index];
  switch (static_cast<Step>(tag & ((1U << kStepBits) - 1))) {
    case kOpen:  // the open failed; no other completion follows
      slot.result = result;
      slot.open_failed = true;
      return finish(index);
    case kRead:
      if (result != int(slot.read.padded_bytes)) slot.result = result;
      if (std::holds_alternative<ReadAt>(slot.operation.what)) finish(index);
      return;
    case kClose:
      return finish(index);
  }
}

void UringQueue::finish(uint32_t index) {
  Slot& slot = slots_[index];
  if (slot.result == -EAGAIN) files_.allow_waits();
  const auto got = slot.result == kCompleteRead ? int64_t(slot.read.padded_bytes) : slot.result;
  finish(index, files_.finish_read(slot.operation, slot.read, slot.bytes, got,
                                   slot.open_failed ? "cannot open" : "cannot read"));
}

void UringQueue::finish(uint32_t index, Result<uint64_t> outcome) {
  done_.push({slots_[index].operation.tag, std::move(outcome)});
  slots_[index].in_kernel = false;
  if (auto* const file = std::exchange(slots_[index].table_slot, nullptr); file != nullptr) --file->in_flight;
  free_slots_.push_back(index);
  --in_kernel_;
}

Result<std::unique_ptr<Queue>> UringFiles::queue(size_t depth) {
  PENSTOCK_TRY(check_queue_depth(depth));
  if (!caps_.async) return Backend::queue(depth);
  auto queue = std::make_unique<UringQueue>(*this, depth);
  PENSTOCK_TRY(queue->begin());
  return queue;
}
Result<std::unique_ptr<Backend>> make_uring(std::string_view path, const Options& options) {
  PENSTOCK_TRY(check_folder_given("uring", path));
  return std::make_unique<UringFiles>(path, options);
}
}  // namespace
const BackendInfo backend_uring{
    .name = "uring",
    .summary = "files in a folder, read with io_uring, many reads in flight per thread",
    .options = kUringOptions,
    .make = make_uring,
};

}  // namespace penstock
