// Tests faults that only a ring can have: unexpected answers of the kernel, and several threads that use one
// ring one after the other.
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <set>
#include <thread>

#include "io_backends/backend/backend_info.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/system_faults_test.hpp"
#include "io_backends/testing/denied_calls_testing.hpp"
#include "io_backends/testing/testing.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

using Bytes = std::vector<std::byte>;
constexpr size_t kBytes = 10'000;

class Uring : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const auto known = backend_registry().find("uring"); !known.ok()) GTEST_SKIP() << known.error().what;
    auto tier = open_tier("t=uring:" + scratch_.path().string() + GetParam(), kNoNamedTiers);
    ASSERT_OK(tier);
    backend_ = std::move(tier->backend);
    if (!backend_->caps().async) GTEST_SKIP() << backend_->remarks().front();
    ASSERT_OK(put("object", bytes_));
    const auto opened = backend_->open("object");
    if (!opened.ok() && opened.error().code == Errc::unsupported) GTEST_SKIP() << opened.error().what;
    ASSERT_OK(opened);
  }
  Result<void> put(std::string_view name, std::span<const std::byte> bytes) {
    PENSTOCK_ASSIGN(const auto writer, backend_->create(name, bytes.size()));
    PENSTOCK_TRY(writer->append(bytes));
    return writer->publish(Durability::visible);
  }

  const Bytes bytes_ = pattern(kBytes);
  ScratchFolder scratch_;
  std::unique_ptr<Backend> backend_;
};

INSTANTIATE_TEST_SUITE_P(, Uring, testing::Values("", ",direct=1", ",sqpoll=1"), [](const auto& row) {
  return row.param.empty() ? "plain" : row.param.substr(1, row.param.find('=') - 1);
});

// Reaps everything in flight and returns the tags. Each must come once and without an error.
std::set<uint64_t> reap_all(Queue& queue) {
  std::set<uint64_t> tags;
  std::vector<Completion> completions(16);
  while (queue.in_flight() > 0) {
    const size_t count = queue.reap(completions, 1);
    for (const Completion& one : std::span(completions).first(count)) {
      EXPECT_OK(one.bytes);
      EXPECT_TRUE(tags.insert(one.tag).second) << "read " << one.tag << " completed twice";
    }
  }
  return tags;
}

// When the submission queue is full, all prepared reads are submitted. If the kernel is too busy to take
// them, completions are reaped in between.
TEST_P(Uring, ReadsThatCompleteDuringASubmitKeepTheirSlots) {
  constexpr size_t kDepth = 2'048;
  constexpr size_t kAtOnce = 100;  // completed before the queue is full
  const auto reader = backend_->open("object");
  ASSERT_OK(reader);
  auto queue = backend_->queue(kDepth);
  ASSERT_OK(queue);
  Bytes out(kBytes + kBufferAlignment);
  std::vector<Operation> operations;
  for (uint64_t i = 0; i < kDepth; ++i) {
    if (i < kAtOnce) operations.push_back({ReadAt{reader->get(), 0, std::span(out).first(kBytes)}, i});
    if (i >= kAtOnce) operations.push_back({ReadObject{"object", kBytes, out}, i});
  }
  const std::span<const Operation> all(operations);
  ASSERT_EQ((*queue)->submit(all.first(kAtOnce)), kAtOnce);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  {
    InjectedFaults faults;
    faults.fail(Call::ring_submit, EBUSY, 1, 2);
    for (const Operation& operation : all.subspan(kAtOnce))
      ASSERT_EQ((*queue)->submit({&operation, 1}, Start::with_reap), 1U);
    EXPECT_GT(faults.calls(Call::ring_submit), 0U);
  }
  EXPECT_EQ(reap_all(**queue).size(), kDepth);
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ((*queue)->submit(all), kDepth);
    EXPECT_EQ(reap_all(**queue).size(), kDepth);
  }
}

// The system call is forbidden while reads are in flight, as by a seccomp filter that is installed late, or
// the kernel drops completions. No call may wait for ever, and the kernel may no longer write into the
// buffers.
TEST_P(Uring, ReadsFailIfTheRingStopsAnswering) {
  ASSERT_OK(put("large", pattern(1U << 20U)));
  for (const size_t at_least : {1U, 0U}) {
    EXPECT_TRUE(in_child_process([&] {
      ::alarm(60);
      auto tier = open_tier("t=uring:" + scratch_.path().string() + GetParam(), kNoNamedTiers);
      ASSERT_OK(tier);
      const auto reader = tier->backend->open("large");
      ASSERT_OK(reader);
      std::vector<Buffer> outs;
      for (int i = 0; i < 8; ++i) outs.emplace_back(1U << 20U);
      std::vector<Operation> operations;
      for (uint64_t i = 0; i < outs.size(); ++i) {
        const auto out = outs[i].first(1U << 20U);
        if (i % 2 == 0) operations.push_back({ReadAt{reader->get(), 0, out}, i});
        if (i % 2 != 0) operations.push_back({ReadObject{"large", 1U << 20U, out}, i});
      }
      auto queue = tier->backend->queue(8);  // destroyed at the end of its scope, with reads in flight
      ASSERT_OK(queue);
      ASSERT_EQ((*queue)->submit(operations), 8U);
      ASSERT_TRUE(deny_calls({SYS_io_uring_enter}));
      std::vector<Completion> completions(8);
      for (int round = 0; round < 2; ++round) {
        std::set<uint64_t> tags;
        while ((*queue)->in_flight() > 0) {
          const size_t count = (*queue)->reap(completions, at_least);
          ASSERT_GE(count, at_least);
          for (const Completion& one : std::span(completions).first(count)) {
            tags.insert(one.tag);
            if (one.bytes.ok()) continue;  // this read completed before the call was forbidden
            EXPECT_ERRC(Errc::permission_denied, one.bytes);
            EXPECT_NE(one.bytes.error().what.find("large"), std::string::npos);
          }
        }
        EXPECT_EQ(tags.size(), 8U);
        for (Buffer& out : outs) std::fill_n(out.data(), out.capacity(), std::byte{0x5a});
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        for (Buffer& out : outs)
          EXPECT_EQ(std::count(out.data(), out.data() + out.capacity(), std::byte{0x5a}),
                    ptrdiff_t(out.capacity()));
        ASSERT_EQ((*queue)->submit(operations), 8U) << "it goes on, and fails again";
      }
    }));
  }
}

// The kernel gives ids of ended threads to new threads.
TEST_P(Uring, AThreadWithTheNumberOfADeadOneHasItsOwnRing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may say which number the next thread gets";
  const std::filesystem::path refused = scratch_.path() / "refused";
  EXPECT_TRUE(in_child_process([&] {
    if (::unshare(CLONE_NEWPID) != 0) {
      std::ofstream(refused) << "x";
      return;
    }
    EXPECT_TRUE(in_child_process([&] {  // the first process of a pid namespace, which no signal ends
      std::signal(SIGALRM, [](int) { ::_exit(1); });
      ::alarm(60);
      auto tier = open_tier("t=uring:" + scratch_.path().string() + GetParam(), kNoNamedTiers);
      ASSERT_OK(tier);
      auto queue = tier->backend->queue(4);
      ASSERT_OK(queue);
      std::vector<long> numbers;
      const auto read = [&] {
        numbers.push_back(::syscall(SYS_gettid));
        Bytes out(kBytes);
        const Operation operation{ReadObject{"object", kBytes, out}, 7};
        ASSERT_EQ((*queue)->submit({&operation, 1}), 1U);
        EXPECT_EQ(reap_all(**queue), std::set<uint64_t>{7});
        EXPECT_EQ(out, bytes_);
      };
      std::thread(read).join();
      // The id of a joined thread stays in use for a short time.
      while (::syscall(SYS_tgkill, ::getpid(), numbers.front(), 0) == 0) ::usleep(1000);
      {
        std::ofstream next("/proc/sys/kernel/ns_last_pid");
        next << numbers.front() - 1;
        if (!next.flush()) {
          std::ofstream(refused) << "x";
          return;
        }
      }
      std::thread(read).join();
      EXPECT_EQ(numbers.front(), numbers.back());
    }));
  }));
  if (std::filesystem::exists(refused)) GTEST_SKIP() << "this root may not choose the numbers of threads";
}

// The flags of the descriptor with which this process has opened the file.
int flags_of(const std::filesystem::path& path) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (std::filesystem::read_symlink(entry.path(), ignored) != path) continue;
    return ::fcntl(std::stoi(entry.path().filename()), F_GETFL);
  }
  return -1;
}

// If a file was opened with O_NONBLOCK, the kernel fails a read that would have to wait. So files are read
// without that flag.
TEST_P(Uring, ReadsOfAnOpenFileMayWaitAndAFifoDoesNotBlock) {
  const auto reader = backend_->open("object");
  ASSERT_OK(reader);
  const int flags = flags_of(std::filesystem::canonical(scratch_.path() / "object"));
  ASSERT_GE(flags, 0);
  EXPECT_EQ(flags & O_NONBLOCK, 0);
  EXPECT_EQ((flags & O_DIRECT) != 0, backend_->caps().bypasses_cache);
  ASSERT_EQ(::mkfifo((scratch_.path() / "fifo").c_str(), 0600), 0);
  EXPECT_TRUE(in_child_process([&] {
    ::alarm(20);
    const auto fifo = backend_->open("fifo");
    if (!fifo.ok()) return;  // a FIFO cannot be opened for direct I/O
    auto queue = backend_->queue(2);
    ASSERT_OK(queue);
    Bytes out(100);
    const Operation operation{ReadAt{fifo->get(), 0, out}, 1};
    ASSERT_EQ((*queue)->submit({&operation, 1}), 1U);
    Completion completion;
    ASSERT_EQ((*queue)->reap({&completion, 1}, 1), 1U);
    EXPECT_FALSE(completion.bytes.ok());
  }));
}

// An error is reported at once; the read is not repeated with blocking calls, which would hide the error.
TEST_P(Uring, FailedReadsAreNotRepeatedByBlockingCalls) {
  std::filesystem::create_symlink("/proc/self/mem", scratch_.path() / "memory");  // reads at address 0 fail
  const auto blocking = open_tier("t=posix:" + scratch_.path().string(), kNoNamedTiers);
  ASSERT_OK(blocking);
  auto queue = backend_->queue(2);
  ASSERT_OK(queue);
  Bytes out(kBytes);
  const auto by_queue = [&](const Operation& operation) {
    EXPECT_EQ((*queue)->submit({&operation, 1}), 1U);
    Completion completion;
    EXPECT_EQ((*queue)->reap({&completion, 1}, 1), 1U);
    return std::move(completion.bytes);
  };
  {
    const auto wanted = blocking->backend->read_object("absent", kBytes, out);
    InjectedFaults faults;
    const auto absent = by_queue({ReadObject{"absent", kBytes, out}, 1});
    EXPECT_ERRC(Errc::not_found, absent);
    EXPECT_EQ(absent.error().what, wanted.error().what);
    EXPECT_EQ(faults.calls(Call::open), 0U);
  }
  if (backend_->caps().bypasses_cache) return;  // this file has no direct I/O
  const auto wanted = blocking->backend->read_object("memory", kBytes, out);
  EXPECT_ERRC(Errc::io, wanted);
  const auto reader = backend_->open("memory");
  ASSERT_OK(reader);
  // After this read, objects are opened without O_NONBLOCK, so that reads may wait.
  EXPECT_FALSE(by_queue({ReadObject{"memory", kBytes, out}, 1}).ok());
  for (const Operation& operation :
       {Operation{ReadObject{"memory", kBytes, out}, 1}, Operation{ReadAt{reader->get(), 0, out}, 1}}) {
    InjectedFaults faults;
    const auto failed = by_queue(operation);
    EXPECT_ERRC(Errc::io, failed);
    EXPECT_EQ(failed.error().sys_errno, EIO);
    EXPECT_EQ(failed.error().what, wanted.error().what);
    EXPECT_EQ(faults.calls(Call::read), 0U);
  }
}

}  // namespace
}  // namespace penstock
