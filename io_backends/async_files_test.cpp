// Tests what the contract test does not cover in back ends that read files asynchronously: the kernel's part
// of the work, and what happens if the kernel refuses it.
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

#include "io_backends/backend/backend_info.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/system/fd.hpp"
#include "io_backends/testing/denied_calls_testing.hpp"
#include "io_backends/testing/testing.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

using Bytes = std::vector<std::byte>;

class AsyncFiles : public testing::TestWithParam<std::pair<std::string, std::string>> {
 protected:
  void SetUp() override {
    const auto& [name, options] = GetParam();
    if (auto known = backend_registry().find(name); !known.ok()) GTEST_SKIP() << known.error().what;
    auto tier = open_tier("t=" + name + ":" + scratch_.path().string() + options, kNoNamedTiers);
    ASSERT_OK(tier);
    backend_ = std::move(tier->backend);
    if (!backend_->caps().async) GTEST_SKIP() << backend_->remarks().front();
    const Result<void> written = put("probe", pattern(1));
    ASSERT_OK(written);
    const auto opened = backend_->open("probe");
    if (!opened.ok() && opened.error().code == Errc::unsupported) GTEST_SKIP() << opened.error().what;
  }
  Result<void> put(std::string_view name, std::span<const std::byte> bytes) {
    PENSTOCK_ASSIGN(const auto writer, backend_->create(name, bytes.size()));
    PENSTOCK_TRY(writer->append(bytes));
    return writer->publish(Durability::visible);
  }

  ScratchFolder scratch_;
  std::unique_ptr<Backend> backend_;
};

using Variant = std::pair<std::string, std::string>;
std::string variant_name(const testing::TestParamInfo<Variant>& row) {
  const auto& [name, options] = row.param;
  return options.empty() ? name : name + "_" + options.substr(1, options.find('=') - 1);
}
INSTANTIATE_TEST_SUITE_P(, AsyncFiles,
                         testing::Values(Variant("uring", ""), Variant("uring", ",direct=1"),
                                         Variant("uring", ",sqpoll=1"), Variant("libaio", ""),
                                         Variant("libaio", ",direct=1")),
                         variant_name);

// A lone direct read takes less processor time by a ring than by a call. A lone buffered read gets slower.
TEST_P(AsyncFiles, SingleReadsUseTheRingOnlyIfDirect) {
  const auto& [name, options] = GetParam();
  EXPECT_EQ(backend_->caps().queue_is_cheaper, name == "uring" && options == ",direct=1");
}

// Does all operations with as many in flight as the queue accepts. Returns the outcomes by tag.
std::map<uint64_t, Result<uint64_t>> read_all(Queue& queue, std::span<const Operation> operations) {
  std::map<uint64_t, Result<uint64_t>> done;
  std::vector<Completion> completions(7);
  while (!operations.empty() || queue.in_flight() > 0) {
    operations = operations.subspan(queue.submit(operations, Start::with_reap));
    const size_t count = queue.reap(completions, 1);
    for (Completion& one : std::span(completions).first(count))
      EXPECT_TRUE(done.emplace(one.tag, std::move(one.bytes)).second);
  }
  return done;
}

TEST_P(AsyncFiles, ReadsObjectsOfAnySizeToAnyPlace) {
  const std::vector<size_t> sizes{1, 511, 512, 4095, 4096, 4097, 100'000, 114'688, 1'000'003};
  const size_t slot_bytes = whole_blocks(sizes.back()) + kBufferAlignment;
  for (const bool registered : {false, true}) {
    for (const size_t shift : {size_t{0}, size_t{1}}) {
      Buffer memory(sizes.size() * slot_bytes);
      const auto all = memory.first(sizes.size() * slot_bytes);
      auto queue = backend_->queue(4);
      ASSERT_OK(queue);
      if (registered) (*queue)->register_memory(all);
      std::vector<std::string> names;
      names.reserve(sizes.size());
      for (const size_t size : sizes) names.push_back("object-" + std::to_string(size));
      std::vector<Operation> operations;
      for (size_t i = 0; i < sizes.size(); ++i) {
        ASSERT_OK(put(names[i], pattern(sizes[i], unsigned(i))));
        const auto out = all.subspan(i * slot_bytes, slot_bytes).subspan(shift);
        operations.push_back({ReadObject{names[i], sizes[i], i % 2 == 0 ? out : out.first(sizes[i])}, i});
      }
      const auto done = read_all(**queue, operations);
      for (size_t i = 0; i < sizes.size(); ++i) {
        ASSERT_OK(done.at(i));
        EXPECT_EQ(*done.at(i), sizes[i]);
        const Bytes expected = pattern(sizes[i], unsigned(i));
        const std::byte* const got = all.data() + i * slot_bytes + shift;
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), got)) << sizes[i] << " at " << shift;
      }
    }
  }
}

TEST_P(AsyncFiles, ReadsRangesOfManyReadersAgainAndAgain) {
  constexpr size_t kReaders = 40;
  constexpr size_t kBytes = 20'000;
  std::vector<std::unique_ptr<Reader>> readers;
  for (unsigned i = 0; i < kReaders; ++i) {
    ASSERT_OK(put(std::to_string(i), pattern(kBytes, i)));
    readers.push_back(backend_->open(std::to_string(i)).value());
  }
  auto queue = backend_->queue(16);
  ASSERT_OK(queue);
  for (unsigned round = 0; round < 12; ++round) {
    // Open some files again, so that they get descriptors that other files had before.
    for (unsigned i = round % 3; i < kReaders; i += 3) readers[i] = nullptr;
    for (unsigned i = round % 3; i < kReaders; i += 3) readers[i] = backend_->open(std::to_string(i)).value();
    std::vector<Bytes> outs(kReaders, Bytes(4'000));
    std::vector<Operation> operations;
    for (size_t i = 0; i < kReaders; ++i)
      operations.push_back({ReadAt{readers[i].get(), 37 * i + round, outs[i]}, i});
    const auto done = read_all(**queue, operations);
    for (size_t i = 0; i < kReaders; ++i) {
      ASSERT_OK(done.at(i));
      const Bytes expected = pattern(kBytes, unsigned(i));
      EXPECT_TRUE(std::equal(outs[i].begin(), outs[i].end(), expected.begin() + ptrdiff_t(37 * i + round)));
    }
  }
}

// The kernel accepts at most 2 GiB minus one page in one request.
TEST_P(AsyncFiles, ReadsMoreThanOneRequestCanRead) {
  if (sizeof(size_t) < 8) GTEST_SKIP() << "memory has no room for such objects";
  constexpr size_t kMaxRequestBytes = (size_t{1} << 31U) - 4'096;
  constexpr size_t kBytes = kMaxRequestBytes + 3 * 4'096;
  const std::filesystem::path file = scratch_.path() / "large";
  std::ofstream(file) << "";
  if (::truncate(file.c_str(), off_t(kBytes)) != 0)
    GTEST_SKIP() << "this file system has no files of that size";
  const Fd written(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  const Bytes tail = pattern(4 * 4'096);
  ASSERT_EQ(::pwrite(written.get(), tail.data(), tail.size(), off_t(kBytes - tail.size())),
            ssize_t(tail.size()));
  // Map nearly all of the buffer to the same few pages, so that it needs little memory.
  constexpr size_t kPiece = size_t{8} << 20U;
  constexpr int kNew = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const mapping = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, kNew, -1, 0);
  if (mapping == MAP_FAILED) GTEST_SKIP() << "no room for so large an object: " << std::strerror(errno);
  const std::span<std::byte> buffer(static_cast<std::byte*>(mapping), kBytes);
  const Fd pages(::memfd_create("room", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(pages.get(), kPiece), 0);
  for (size_t at = 0; at + kPiece < kMaxRequestBytes - kPiece; at += kPiece)
    ASSERT_NE(::mmap(&buffer[at], kPiece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, pages.get(), 0),
              MAP_FAILED);
  const auto buffer_end = buffer.last(tail.size());
  auto queue = backend_->queue(2);
  ASSERT_OK(queue);
  const auto reader = backend_->open("large");
  ASSERT_OK(reader);
  for (const Operation& operation :
       {Operation{ReadObject{"large", kBytes, buffer}, 1}, Operation{ReadAt{reader->get(), 0, buffer}, 1}}) {
    std::fill(buffer_end.begin(), buffer_end.end(), std::byte{0});
    const auto done = read_all(**queue, {&operation, 1});
    ASSERT_OK(done.at(1));
    EXPECT_EQ(*done.at(1), kBytes);
    EXPECT_TRUE(std::equal(tail.begin(), tail.end(), buffer_end.begin()));
  }
  ::munmap(mapping, kBytes);
}

// Binds the kernel's submission threads to this thread's processor with idle priority, if the kernel allows
// it. Then they run only while this thread waits, as on a busy machine.
void hold_back_kernel_threads() {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(size_t(::sched_getcpu()), &here);
  ::sched_setaffinity(0, sizeof here, &here);
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(entry.path() / "comm"), name);
    if (!name.starts_with("iou-sqp")) continue;
    const int thread = std::stoi(entry.path().filename());
    const sched_param idle{};
    ::sched_setaffinity(thread, sizeof here, &here);
    ::sched_setscheduler(thread, SCHED_IDLE, &idle);
  }
}

// A ring stores files that are read often in a table. In a small table, files replace each other while reads
// of them are in flight.
TEST_P(AsyncFiles, FilesThatShareATableSlotAreDistinguished) {
  constexpr size_t kTableSlots = 4;
  constexpr size_t kReaders = 6 * kTableSlots;
  constexpr size_t kDepth = 64;
  constexpr size_t kBytes = 512;
  EXPECT_TRUE(in_child_process([&] {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    // The table has (descriptor limit - depth) slots. A file's slot is its descriptor modulo that number.
    const rlimit low{kDepth + kTableSlots, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
    auto queue = backend_->queue(kDepth);
    ASSERT_OK(queue);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    std::vector<std::unique_ptr<Reader>> readers;
    std::vector<Bytes> contents;
    for (unsigned i = 0; i < kReaders; ++i) {
      contents.push_back(pattern(kBytes, i + 1));
      ASSERT_OK(put(std::to_string(i), contents.back()));
      readers.push_back(backend_->open(std::to_string(i)).value());
    }
    const auto reader_of = [&](size_t read) {  // files with the same slot, one after the other
      const size_t turn = read / 8 % kReaders;
      return turn % 6 * kTableSlots + turn / 6;
    };
    hold_back_kernel_threads();
    for (unsigned round = 0; round < 20; ++round) {
      std::vector<Operation> operations;
      std::vector<Bytes> outs(kReaders * 8, Bytes(kBytes));
      for (size_t i = 0; i < outs.size(); ++i)
        operations.push_back({ReadAt{readers[reader_of(i)].get(), 0, outs[i]}, i});
      const auto done = read_all(**queue, operations);
      for (size_t i = 0; i < outs.size(); ++i) {
        ASSERT_OK(done.at(i));
        ASSERT_EQ(outs[i], contents[reader_of(i)]) << "read " << i << " of round " << round;
      }
    }
  }));
}

TEST_P(AsyncFiles, ReportsTheSameErrorsAsBlockingCalls) {
  const auto blocking = open_tier("t=posix:" + scratch_.path().string(), kNoNamedTiers);
  ASSERT_OK(blocking);
  ASSERT_OK(put("object", pattern(5'000)));
  ASSERT_OK(put("folder/object", pattern(10)));
  std::filesystem::create_symlink("loop", scratch_.path() / "loop");
  Bytes out(8'000), other(8'000);
  for (const auto& [name, hint] : std::map<std::string, uint64_t>{{"absent", 5},
                                                                  {"folder", 5},
                                                                  {"object", 5'001},
                                                                  {"object/below", 5},
                                                                  {"loop", 5},
                                                                  {"../object", 5},
                                                                  {"object ", 8'001}}) {
    auto queue = backend_->queue(2);
    ASSERT_OK(queue);
    const Operation operation{ReadObject{name, hint, out}, 1};
    const auto done = read_all(**queue, {&operation, 1});
    const auto wanted = blocking->backend->read_object(name, hint, other);
    ASSERT_FALSE(done.at(1).ok()) << name;
    ASSERT_FALSE(wanted.ok()) << name;
    EXPECT_EQ(errc_name(done.at(1).error().code), errc_name(wanted.error().code)) << name;
    EXPECT_EQ(done.at(1).error().what, wanted.error().what);
  }
}

TEST_P(AsyncFiles, AFifoInAnObjectsPlaceDoesNotBlock) {
  ASSERT_EQ(::mkfifo((scratch_.path() / "fifo").c_str(), 0600), 0);
  auto queue = backend_->queue(2);
  ASSERT_OK(queue);
  Bytes out(100);
  const Operation operation{ReadObject{"fifo", 100, out}, 1};
  EXPECT_FALSE(read_all(**queue, {&operation, 1}).at(1).ok());
}

TEST_P(AsyncFiles, TakesNoDescriptorsOfTheProcess) {
  ASSERT_OK(put("object", pattern(3'000)));
#ifdef PENSTOCK_ADDRESS_SANITIZER
  GTEST_SKIP() << "the undefined-behaviour sanitizer opens pipes of its own";
#endif
  if (GetParam().first != "uring") GTEST_SKIP() << "only a ring has descriptors of its own";
  EXPECT_TRUE(in_child_process([&] {
    auto queue = backend_->queue(64);
    ASSERT_OK(queue);
    // The root is open now, and no descriptor is left.
    Bytes first(3'000);
    ASSERT_OK(backend_->read_object("object", 3'000, first));
    ASSERT_TRUE(leave_descriptors(0));
    EXPECT_ERRC(Errc::exhausted, backend_->open("object"));
    std::vector<Bytes> outs(200, Bytes(4'096));
    std::vector<Operation> operations;
    for (uint64_t i = 0; i < outs.size(); ++i)
      operations.push_back({ReadObject{"object", 3'000, outs[i]}, i});
    for (const auto& [tag, bytes] : read_all(**queue, operations)) EXPECT_OK(bytes);
  }));
}

TEST_P(AsyncFiles, AQueueGoesFromThreadToThread) {
  ASSERT_OK(put("object", pattern(3'000)));
  auto queue = backend_->queue(4);
  ASSERT_OK(queue);
  for (int i = 0; i < 3; ++i)
    std::thread([&] {
      Bytes out(4'096);
      const Operation operation{ReadObject{"object", 3'000, out}, 1};
      EXPECT_OK(read_all(**queue, {&operation, 1}).at(1));
    }).join();
}

TEST_P(AsyncFiles, CountsWhatItRead) {
  ASSERT_OK(put("object", pattern(5'000)));
  const uint64_t before = backend_->moved_bytes().read;
  auto queue = backend_->queue(4);
  ASSERT_OK(queue);
  std::vector<Bytes> outs(10, Bytes(8'192));
  std::vector<Operation> operations;
  for (uint64_t i = 0; i < outs.size(); ++i) operations.push_back({ReadObject{"object", 5'000, outs[i]}, i});
  read_all(**queue, operations);
  EXPECT_EQ(backend_->moved_bytes().read - before, 50'000U);
}

// Checks that a back end whose system call is forbidden reads by threads, and that a remark says so.
void expect_threads(const std::string& name, int call) {
  const ScratchFolder scratch;
  if (auto known = backend_registry().find(name); !known.ok()) GTEST_SKIP() << known.error().what;
  EXPECT_TRUE(in_child_process([&] {
    ASSERT_TRUE(deny_calls({call}));
    auto tier = open_tier("t=" + name + ":" + scratch.path().string(), kNoNamedTiers);
    ASSERT_OK(tier);
    Backend& backend = *tier->backend;
    EXPECT_FALSE(backend.caps().async);
    ASSERT_EQ(backend.remarks().size(), 1U);
    EXPECT_NE(backend.remarks().front().find("Operation not permitted"), std::string::npos);
    auto writer = backend.create("object", 10);
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->append(pattern(10)));
    ASSERT_OK((*writer)->publish(Durability::visible));
    auto queue = deep_queue(backend, 4);
    ASSERT_OK(queue);
    Bytes out(10);
    const Operation operation{ReadObject{"object", 10, out}, 1};
    EXPECT_OK(read_all(**queue, {&operation, 1}).at(1));
    EXPECT_EQ(out, pattern(10));
  }));
}

TEST(AsyncFilesDenied, ThreadsReadIfTheRingIsForbidden) {
  expect_threads("uring", SYS_io_uring_setup);
}

TEST(AsyncFilesDenied, ThreadsReadIfAsynchronousReadsAreForbidden) {
  expect_threads("libaio", SYS_io_setup);
}

class LibaioQueues : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_tier("t=libaio:" + scratch_.path().string(), kNoNamedTiers);
    ASSERT_OK(opened);
    tier_ = std::move(*opened);
    if (!tier_.backend->caps().async) GTEST_SKIP() << tier_.backend->remarks().front();
  }
  ScratchFolder scratch_;
  Tier tier_;
};

TEST_F(LibaioQueues, AQueueReusesTheContextOfAnEarlierQueue) {
  Backend& backend = *tier_.backend;
  EXPECT_TRUE(in_child_process([&] {
    auto writer = backend.create("object", 10);
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->append(pattern(10)));
    ASSERT_OK((*writer)->publish(Durability::visible));
    const auto read_by_queue = [&](size_t depth) {
      auto queue = backend.queue(depth);
      ASSERT_OK(queue);
      Bytes out(10);
      const Operation operation{ReadObject{"object", 10, out}, 1};
      EXPECT_OK(read_all(**queue, {&operation, 1}).at(1));
      EXPECT_EQ(out, pattern(10));
    };
    read_by_queue(4);
    ASSERT_TRUE(deny_calls({SYS_io_setup, SYS_io_destroy}));
    for (const size_t depth : {4U, 1U, 2U, 4U}) read_by_queue(depth);
    EXPECT_TRUE(backend.remarks().empty()) << backend.remarks().front();
    read_by_queue(5);
    EXPECT_EQ(backend.remarks().size(), 1U) << "none is as deep as that";
  }));
}

// The system call is forbidden while reads are in flight, as by a seccomp filter that is installed late. No
// call may wait for these reads for ever.
TEST_F(LibaioQueues, ReadsFailIfTheKernelStopsAnswering) {
  Backend& backend = *tier_.backend;
  auto writer = backend.create("object", 5'000);
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->append(pattern(5'000)));
  ASSERT_OK((*writer)->publish(Durability::visible));
  for (const size_t at_least : {1U, 0U}) {
    EXPECT_TRUE(in_child_process([&] {
      ::alarm(60);
      Bytes out(8'192);
      Tier mine;
      std::unique_ptr<Reader> reader;
      Result<std::unique_ptr<Queue>> queue = std::unique_ptr<Queue>();  // destroyed with reads in flight
      do {  // another test may use all of fs.aio-max-nr for a short time
        *queue = nullptr;
        mine = open_tier("t=libaio:" + scratch_.path().string(), kNoNamedTiers).value();
        queue = mine.backend->queue(4);
        ASSERT_OK(queue);
      } while (!mine.backend->remarks().empty());
      auto opened = mine.backend->open("object");
      ASSERT_OK(opened);
      reader = *std::move(opened);
      std::vector<Operation> operations;
      for (uint64_t i = 0; i < 4; ++i) {
        if (i % 2 == 0) operations.push_back({ReadObject{"object", 5'000, out}, i});
        if (i % 2 != 0) operations.push_back({ReadAt{reader.get(), 0, std::span(out).first(5'000)}, i});
      }
      ASSERT_EQ((*queue)->submit(operations), 4U);
      ASSERT_TRUE(deny_calls({SYS_io_getevents, SYS_io_pgetevents}));
      std::vector<Completion> completions(4);
      for (int round = 0; round < 2; ++round) {
        size_t all = 0;
        while ((*queue)->in_flight() > 0) {
          const size_t count = (*queue)->reap(completions, at_least);
          ASSERT_GE(count, at_least);
          for (const Completion& one : std::span(completions).first(count)) {
            EXPECT_ERRC(Errc::permission_denied, one.bytes);
            EXPECT_NE(one.bytes.error().what.find("object"), std::string::npos);
          }
          all += count;
        }
        EXPECT_EQ(all, 4U);
        ASSERT_EQ((*queue)->submit(operations), 4U) << "it goes on, and fails again";
      }
    }));
  }
}

// The number of aio contexts of this process: the kernel maps a ring for each.
ptrdiff_t aio_context_count() {
  std::ifstream maps("/proc/self/maps");
  const std::istream_iterator<std::string> words(maps);
  return std::count(words, {}, "/[aio]");
}

// Opens queues of these depths at the same time, and returns how many contexts they added. Another test may
// use all contexts for a moment; new queues then use threads, so this tries again for up to 10 s.
ptrdiff_t added_contexts(Backend& backend, std::initializer_list<size_t> depths, ptrdiff_t before) {
  for (int tries = 0;; ++tries) {
    {
      std::vector<std::unique_ptr<Queue>> queues;
      for (const size_t depth : depths) {
        auto queue = backend.queue(depth);
        EXPECT_OK(queue);
        if (queue.ok()) queues.push_back(*std::move(queue));
      }
      const ptrdiff_t contexts = aio_context_count() - before;
      if (contexts >= std::ssize(depths) || tries == 200) return contexts;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

TEST_F(LibaioQueues, DeeperContextsReplaceShallowerOnes) {
  const ptrdiff_t before = aio_context_count();
  for (size_t depth = 1; depth <= 64; depth *= 2) {
    EXPECT_EQ(added_contexts(*tier_.backend, {depth}, before), 1) << depth;
  }
  EXPECT_EQ(added_contexts(*tier_.backend, {64, 64}, before), 2);
}

// fs.aio-max-nr limits the whole machine; this test uses all that is left for a short time.
TEST(AsyncFilesExhausted, ThreadsReadIfNoAsynchronousReadsAreLeft) {
  const ScratchFolder scratch;
  auto tier = open_tier("t=libaio:" + scratch.path().string(), kNoNamedTiers);
  ASSERT_OK(tier);
  Backend& backend = *tier->backend;
  if (!backend.caps().async) GTEST_SKIP() << backend.remarks().front();
  auto writer = backend.create("object", 10);
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->append(pattern(10)));
  ASSERT_OK((*writer)->publish(Durability::visible));
  EXPECT_TRUE(in_child_process([&] {  // the end of the child releases all contexts
    for (unsigned reads = 1U << 20U; reads > 0; reads /= 2) {
      aio_context_t context = 0;
      while (::syscall(SYS_io_setup, reads, &context) == 0) context = 0;
      ASSERT_TRUE(errno == EAGAIN || errno == EINVAL || errno == ENOMEM);
    }
    auto queue = backend.queue(4);
    ASSERT_OK(queue);
    ASSERT_EQ(backend.remarks().size(), 1U);
    EXPECT_NE(backend.remarks().front().find("fs.aio-max-nr"), std::string::npos);
    Bytes out(10);
    const Operation operation{ReadObject{"object", 10, out}, 1};
    EXPECT_OK(read_all(**queue, {&operation, 1}).at(1));
    queue->reset();  // ends the threads of the queue
  }));
}

}  // namespace
}  // namespace penstock
