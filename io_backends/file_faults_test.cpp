// Tests all back ends that read files with the same faults. The same fault must give the same error on each
// back end and with each way to read. No descriptor may stay open and no byte may be lost.
//
// Faults are injected into calls of the C library. A fault must not affect a way to read that does not use
// the call. The kernel itself opens and reads for a ring of uring, and reads for a queue of libaio; mmap
// copies from memory. Those ways are tested with the real faults below: limits, permissions, files that
// shrink or vanish. ESTALE and EIO have no real cause on a healthy machine.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <optional>

#include "io_backends/backend/backend_info.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/read_ways_testing.hpp"
#include "io_backends/system_faults_test.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

using Bytes = std::vector<std::byte>;
constexpr size_t kFileBytes = 100'003;

struct FileVariant {
  std::string backend;
  std::string options;
};
void PrintTo(const FileVariant& variant, std::ostream* out) {
  *out << variant.backend << variant.options;
}

Result<Subject> make_subject(const FileVariant& variant, const std::filesystem::path& root) {
  return Subject::make("t=" + variant.backend + ":" + root.string() + variant.options);
}

size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return size_t(std::distance(all, {}));
}

class FileFaults : public testing::TestWithParam<FileVariant> {
 protected:
  void SetUp() override {
    if (const auto known = backend_registry().find(GetParam().backend); !known.ok())
      GTEST_SKIP() << known.error().what;
    auto made = make_subject(GetParam(), root());
    ASSERT_OK(made);
    if (GetParam().options == ",sqpoll=1" && !made->backend->caps().async)
      GTEST_SKIP() << made->backend->remarks().front();
    const Result<void> probe = made->put("object", bytes_);
    if (!probe.ok() && probe.error().code == Errc::unsupported) GTEST_SKIP() << probe.error().what;
    ASSERT_OK(probe);
    if (const auto opened = made->backend->open("object");
        !opened && opened.error().code == Errc::unsupported)
      GTEST_SKIP() << opened.error().what;
    subject_ = *std::move(made);
    descriptors_before_ = open_descriptors();
  }
  void TearDown() override {
    if (!subject_) return;
    EXPECT_EQ(open_descriptors(), descriptors_before_) << "descriptors were left open";
  }

  std::filesystem::path root() const { return scratch_.path() / "root"; }
  const std::string& name() const { return GetParam().backend; }
  // Whether this way to read uses the C library's call to open or to read.
  bool reaches(Way way, Call call) const {
    const bool async = subject_->backend->caps().async;
    if (call == Call::open) return !(async && name() == "uring" && way == Way::queued_object);
    return name() != "mmap" && !(async && (way == Way::queued_object || way == Way::queued_reader));
  }
  // Checks that every way reads the whole object.
  void expect_all_ways_read() const {
    for (const Way way : kWays) {
      Bytes out(kFileBytes);
      EXPECT_OK(subject_->read(way, "object", out)) << way_name(way);
      EXPECT_EQ(out, bytes_) << way_name(way);
    }
  }

  const Bytes bytes_ = pattern(kFileBytes);
  ScratchFolder scratch_;
  std::optional<Subject> subject_;
  size_t descriptors_before_ = 0;
};

INSTANTIATE_TEST_SUITE_P(, FileFaults,
                         testing::Values(FileVariant{"posix", ""}, FileVariant{"posix", ",direct=1"},
                                         FileVariant{"posix", ",eof_read=1"}, FileVariant{"mmap", ""},
                                         FileVariant{"mmap", ",keep=1"}, FileVariant{"mpiio", ""},
                                         FileVariant{"uring", ""}, FileVariant{"uring", ",direct=1"},
                                         FileVariant{"uring", ",sqpoll=1"}, FileVariant{"libaio", ""},
                                         FileVariant{"libaio", ",direct=1"}),
                         [](const testing::TestParamInfo<FileVariant>& row) {
                           const std::string& options = row.param.options;
                           if (options.empty()) return row.param.backend;
                           return row.param.backend + "_" + options.substr(1, options.find('=') - 1);
                         });

TEST_P(FileFaults, InjectedFaultsAreTheSameErrorEverywhere) {
  struct Row {
    int sys_errno;
    Errc errc;
  };
  for (const Row& row :
       {Row{EIO, Errc::io}, Row{ESTALE, Errc::io}, Row{EACCES, Errc::permission_denied},
        Row{EMFILE, Errc::exhausted}, Row{ENFILE, Errc::exhausted}, Row{ENOMEM, Errc::exhausted},
        Row{ETIMEDOUT, Errc::timed_out}, Row{ENOENT, Errc::not_found}}) {
    for (const Call call : {Call::open, Call::read}) {
      for (const Way way : kWays) {
        Bytes out(kFileBytes);
        InjectedFaults faults;
        faults.fail(call, row.sys_errno);
        const auto read = subject_->read(way, "object", out);
        if (reaches(way, call)) {
          EXPECT_ERRC(row.errc, read) << way_name(way) << ", errno " << row.sys_errno;
          EXPECT_EQ(read.ok() ? 0 : read.error().sys_errno, row.sys_errno);
        } else {
          EXPECT_OK(read) << way_name(way);
          EXPECT_EQ(out, bytes_);
        }
      }
    }
  }
  for (const auto& [sys_errno, errc] : {std::pair{ENOSPC, Errc::no_space}, std::pair{EIO, Errc::io}}) {
    InjectedFaults faults;
    faults.fail(Call::write, sys_errno);
    EXPECT_ERRC(errc, subject_->put("other", bytes_));
  }
  expect_all_ways_read();
}

TEST_P(FileFaults, ShortAndInterruptedCallsLoseNoByte) {
  // A direct read can only be short by whole blocks.
  const size_t short_bytes = subject_->backend->caps().bypasses_cache ? 4'096 : 4'099;
  for (const Way way : kWays) {
    Bytes out(kFileBytes);
    InjectedFaults faults;
    faults.shorten(Call::read, short_bytes);
    faults.fail(Call::read, EINTR, 1, 2);
    faults.fail(Call::open, EINTR, 1, 2);
    EXPECT_OK(subject_->read(way, "object", out)) << way_name(way);
    EXPECT_EQ(out, bytes_) << way_name(way);
  }
  InjectedFaults faults;
  faults.shorten(Call::write, short_bytes);
  faults.fail(Call::write, EINTR, 1, 2);
  EXPECT_OK(subject_->put("other", bytes_));
}

// A timer sends signals as often as the kernel can, and their handler does not restart calls.
TEST_P(FileFaults, AStormOfSignalsLosesNoByte) {
  struct sigaction quiet {};
  quiet.sa_handler = [](int) {};
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGALRM, &quiet, &before), 0);
  constexpr itimerval kOften{{0, 100}, {0, 100}};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &kOften, nullptr), 0);
  for (int i = 0; i < 50; ++i) expect_all_ways_read();
  EXPECT_OK(subject_->put("other", bytes_));
  constexpr itimerval kNever{};
  ::setitimer(ITIMER_REAL, &kNever, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
}

TEST_P(FileFaults, WhatIsNoObjectIsTheSameErrorEverywhere) {
  ASSERT_OK(subject_->backend->names().make_folders("folder"));
  std::filesystem::create_symlink("loop", root() / "loop");
  std::filesystem::create_symlink("nowhere", root() / "dangling");
  for (const Way way : kWays) {
    Bytes out(10);
    EXPECT_ERRC(Errc::not_found, subject_->read(way, "absent", out)) << way_name(way);
    EXPECT_ERRC(Errc::not_found, subject_->read(way, "dangling", out)) << way_name(way);
    EXPECT_ERRC(Errc::not_found, subject_->read(way, "object/below", out)) << way_name(way);
    EXPECT_ERRC(Errc::invalid_argument, subject_->read(way, "folder", out)) << way_name(way);
    EXPECT_ERRC(Errc::invalid_argument, subject_->read(way, "loop", out)) << way_name(way);
    EXPECT_ERRC(Errc::invalid_argument, subject_->read(way, "../root/object", out)) << way_name(way);
  }
}

TEST_P(FileFaults, AnObjectThatShrinksIsTruncatedAndOneThatVanishesCanBeReadOn) {
  for (const off_t left : {99'999, 8'192, 1, 0}) {
    ASSERT_OK(subject_->put("other", bytes_));
    const auto reader = subject_->backend->open("other");
    ASSERT_OK(reader);
    ASSERT_EQ(::truncate((root() / "other").c_str(), left), 0);
    for (const Way way : kWays) {
      Bytes out(kFileBytes);
      EXPECT_ERRC(Errc::truncated, subject_->read(way, "other", out)) << way_name(way) << " " << left;
      if (way == Way::object || way == Way::queued_object) continue;
      EXPECT_ERRC(Errc::truncated, subject_->read(way, **reader, 0, out)) << way_name(way) << " " << left;
      const auto rest = std::span(out).first(size_t(left));
      EXPECT_OK(subject_->read(way, **reader, 0, rest)) << "what is left";
      EXPECT_TRUE(std::equal(rest.begin(), rest.end(), bytes_.begin()));
    }
  }
  ASSERT_OK(subject_->put("other", bytes_));
  const auto reader = subject_->backend->open("other");
  ASSERT_OK(reader);
  std::filesystem::remove(root() / "other");
  for (const Way way : kWays) {
    Bytes out(kFileBytes);
    EXPECT_ERRC(Errc::not_found, subject_->read(way, "other", out)) << way_name(way);
    if (way == Way::object || way == Way::queued_object) continue;
    EXPECT_OK(subject_->read(way, **reader, 0, out)) << way_name(way);
    EXPECT_EQ(out, bytes_) << way_name(way);
  }
}

TEST_P(FileFaults, NoOffsetLengthOrMemoryNeedsToBeAligned) {
  const auto reader = subject_->backend->open("object");
  ASSERT_OK(reader);
  Buffer memory(2 * kFileBytes);
  for (const size_t shift : {0U, 1U, 512U}) {
    for (const auto& [offset, length] : std::vector<std::pair<size_t, size_t>>{
             {0, kFileBytes}, {0, 1}, {0, 4096}, {1, 4096}, {511, 2}, {512, 512}, {4095, 2}, {100'000, 3}}) {
      const auto out = memory.first(2 * kFileBytes).subspan(shift, length);
      for (const Way way : {Way::reader, Way::queued_reader}) {
        std::fill(out.begin(), out.end(), std::byte{0});
        EXPECT_OK(subject_->read(way, **reader, offset, out)) << way_name(way);
        EXPECT_TRUE(std::equal(out.begin(), out.end(), bytes_.begin() + ptrdiff_t(offset)))
            << way_name(way) << ": " << length << " from " << offset << " to " << shift;
      }
    }
  }
}

TEST_P(FileFaults, NamesMayBeAnythingThatAFileMayBeCalled) {
  for (const std::string& odd : {std::string(255, 'x'), std::string("new\nline"), std::string("com,ma"),
                                 std::string("a=b"), std::string(",limit=1MB/s"), std::string("ufs:name"),
                                 std::string("a:b"), std::string("%2C \t'\"\\")}) {
    ASSERT_OK(subject_->put(odd, bytes_)) << odd;
    for (const Way way : kWays) {
      Bytes out(kFileBytes);
      EXPECT_OK(subject_->read(way, odd, out)) << way_name(way) << " " << odd;
      EXPECT_EQ(out, bytes_);
    }
    EXPECT_OK(subject_->backend->names().remove(odd));
  }
}

TEST_P(FileFaults, MissingRightsAreTheSameErrorEverywhere) {
  ASSERT_OK(subject_->put("closed/object", bytes_));
  std::filesystem::permissions(root() / "object", std::filesystem::perms::none);
  std::filesystem::permissions(root() / "closed", std::filesystem::perms::none);
  EXPECT_TRUE(as_plain_user([&] {
    const auto mine = make_subject(GetParam(), root());
    ASSERT_OK(mine);
    for (const Way way : kWays) {
      Bytes out(10);
      EXPECT_ERRC(Errc::permission_denied, mine->read(way, "object", out)) << way_name(way);
      EXPECT_ERRC(Errc::permission_denied, mine->read(way, "closed/object", out)) << way_name(way);
    }
    EXPECT_ERRC(Errc::permission_denied, mine->put("closed/other", bytes_));
  }));
  std::filesystem::permissions(root() / "closed", std::filesystem::perms(0755));
}

TEST_P(FileFaults, DescriptorsThatRunOutAreExhaustion) {
#ifdef PENSTOCK_ADDRESS_SANITIZER
  GTEST_SKIP() << "the undefined-behaviour sanitizer opens pipes of its own";
#endif
  EXPECT_TRUE(in_child_process([&] {
    const auto mine = make_subject(GetParam(), root());
    ASSERT_OK(mine);
    Bytes out(kFileBytes);
    for (const Way way : kWays) ASSERT_OK(mine->read(way, "object", out)) << "the root is open by now";
    ASSERT_TRUE(leave_descriptors(0));
    for (const Way way : kWays) {
      const auto read = mine->read(way, "object", out);
      if (reaches(way, Call::open)) {
        EXPECT_ERRC(Errc::exhausted, read) << way_name(way);
      } else {
        EXPECT_OK(read) << "a ring takes no descriptor of the process";
      }
    }
    EXPECT_ERRC(Errc::exhausted, mine->put("other", bytes_));
  }));
}

TEST_P(FileFaults, WhatIsFullIsNoSpace) {
  EXPECT_TRUE(in_child_process([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{50'000, 50'000};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_ERRC(Errc::exhausted, subject_->put("other", bytes_)) << "no disk is full";
  }));
  EXPECT_FALSE(std::filesystem::exists(root() / "other"));
  if (::geteuid() != 0) GTEST_SKIP() << "the rest mounts a file system, for which it needs root";
  const std::filesystem::path small = scratch_.path() / "small";
  std::filesystem::create_directories(small);
  EXPECT_TRUE(in_child_process([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("small", small.c_str(), "tmpfs", 0, "size=1m") != 0) {
      std::ofstream(scratch_.path() / "unmounted") << "x";
      return;
    }
    const auto mine = make_subject(GetParam(), small);
    ASSERT_OK(mine);
    const Result<void> probe = mine->put("small", pattern(10));
    // this file system in memory has no direct I/O
    if (!probe.ok() && probe.error().code == Errc::unsupported) return;
    ASSERT_OK(probe);
    EXPECT_ERRC(Errc::no_space, mine->put("large", pattern(2U << 20U)));
    for (const Way way : kWays) {
      Bytes out(10);
      EXPECT_OK(mine->read(way, "small", out)) << way_name(way);
      EXPECT_EQ(out, pattern(10));
    }
  }));
  if (std::filesystem::exists(scratch_.path() / "unmounted")) GTEST_SKIP() << "this root may not mount";
}

class DirectFaults : public FileFaults {
 protected:
  // Runs `body` in a child process, with a folder on a file system in memory without direct I/O. Skips the
  // test if this file system cannot be mounted.
  template <class Body>
  void without_direct_io(const Body& body) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root may mount a file system that has none";
    const std::filesystem::path folder = scratch_.path() / "memory";
    const std::filesystem::path refused = scratch_.path() / "unmounted";
    std::filesystem::create_directories(folder);
    EXPECT_TRUE(in_child_process([&] {
      const bool mounted = ::unshare(CLONE_NEWNS) == 0 &&
                           ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                           ::mount("memory", folder.c_str(), "ramfs", 0, nullptr) == 0;
      if (mounted) return body(folder);
      std::ofstream(refused) << "x";
    }));
    if (std::filesystem::exists(refused)) GTEST_SKIP() << "this root may not mount";
  }
};
INSTANTIATE_TEST_SUITE_P(, DirectFaults,
                         testing::Values(FileVariant{"posix", ",direct=1"}, FileVariant{"uring", ",direct=1"},
                                         FileVariant{"libaio", ",direct=1"}),
                         [](const auto& row) { return row.param.backend; });

TEST_P(DirectFaults, AWriterThatIsRefusedDirectIoLeavesNothingBehind) {
  without_direct_io([&](const std::filesystem::path& folder) {
    for (const char* way : {"", ",publish=rename"}) {
      const auto mine = make_subject({name(), GetParam().options + way}, folder);
      ASSERT_OK(mine);
      EXPECT_ERRC(Errc::unsupported, mine->put("object", bytes_));
      EXPECT_TRUE(std::filesystem::is_empty(folder)) << way;
    }
  });
}

// Neither a file in the folder nor a nameless file shows beforehand that there is no direct I/O. So the first
// read must find it out.
TEST_P(DirectFaults, FallingBackToThePageCacheIsDecidedByTheFirstFileAtTheLatest) {
  without_direct_io([&](const std::filesystem::path& folder) {
    InjectedFaults faults;
    faults.fail(Call::open_nameless, EOPNOTSUPP);
    const auto new_subject = [&] {
      std::filesystem::remove(folder / "object");
      auto mine = make_subject({name(), ",direct=1,fallback=buffered"}, folder);
      EXPECT_OK(mine);
      EXPECT_TRUE(mine->backend->caps().bypasses_cache);
      return mine;
    };
    const auto expect_buffered = [](const Subject& mine) {
      EXPECT_FALSE(mine.backend->caps().bypasses_cache);
      EXPECT_FALSE(mine.backend->caps().queue_is_cheaper);
      // one remark may say that threads replace the ring
      const std::vector<std::string> remarks = mine.backend->remarks();
      EXPECT_EQ(
          std::count_if(remarks.begin(), remarks.end(),
                        [](const std::string& one) { return one.find("fallback=buffered") != one.npos; }),
          1);
    };
    {
      const auto mine = new_subject();
      ASSERT_OK(mine->put("object", bytes_));
      EXPECT_TRUE(std::filesystem::is_regular_file(folder / "object"));
      expect_buffered(*mine);
    }
    for (const Way way : kWays) {
      const auto mine = new_subject();
      std::ofstream(folder / "object") << text_of(bytes_);
      for (int again = 0; again < 2; ++again) {
        Bytes out(kFileBytes);
        EXPECT_OK(mine->read(way, "object", out)) << way_name(way);
        EXPECT_EQ(out, bytes_) << way_name(way);
      }
      expect_buffered(*mine);
    }
  });
}

}  // namespace
}  // namespace penstock
