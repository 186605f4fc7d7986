// Tests the back end mmap beyond the contract: files that lose bytes while they are mapped, and its SIGBUS
// handler next to other handlers.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include "io_backends/core/system/fd.hpp"
#include "io_backends/testing/testing.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

constexpr size_t kMappedBytes = 1'000'000;

class Mmap : public testing::Test {
 protected:
  void SetUp() override { reopen(""); }

  void reopen(const std::string& options) {
    auto tier = open_tier("t=mmap:" + scratch_.path().string() + options, kNoNamedTiers);
    ASSERT_OK(tier);
    backend_ = std::move(tier->backend);
  }
  void put(const std::string& name, size_t bytes = kMappedBytes) {
    const auto writer = backend_->create(name, bytes);
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->append(pattern(bytes)));
    ASSERT_OK((*writer)->publish(Durability::visible));
  }
  std::unique_ptr<Reader> open(const std::string& name) {
    auto reader = backend_->open(name);
    EXPECT_OK(reader);
    return *std::move(reader);
  }
  std::string path(const std::string& name) const { return (scratch_.path() / name).string(); }

  ScratchFolder scratch_;
  std::unique_ptr<Backend> backend_;
};

TEST_F(Mmap, EveryAdviceGivesTheSameBytes) {
  put("object");
  put("empty", 0);
  std::vector<std::byte> out(kMappedBytes);
  for (const char* options : {",advice=none", ",advice=sequential", ",advice=random", ",advice=willneed",
                              ",populate=1", ",hugepage=1", ",populate=1,advice=sequential,hugepage=1",
                              ",keep=1", ",keep=1,populate=1,hugepage=1"}) {
    reopen(options);
    for (int time = 0; time < 2; ++time) {
      std::fill(out.begin(), out.end(), std::byte{0});
      ASSERT_OK(backend_->read_object("object", kMappedBytes, out)) << options;
      EXPECT_EQ(out, pattern(kMappedBytes)) << options;
    }
    EXPECT_OK(open("empty")->view(0, 0)) << options;
    EXPECT_ERRC(Errc::truncated, open("empty")->view(0, 1));
  }
}

TEST_F(Mmap, BytesThatWereAppendedLaterAreRead) {
  put("object", 10);
  const auto reader = open("object");
  { std::ofstream(path("object"), std::ios::app) << "more"; }
  std::vector<std::byte> out(14);
  EXPECT_OK(reader->read_at(0, out));
  EXPECT_EQ(text_of(std::span(out).last(4)), "more");
  EXPECT_ERRC(Errc::truncated, reader->view(0, 14));
}

TEST_F(Mmap, AFileThatShrankIsTruncatedWhereverItEnds) {
  std::vector<std::byte> out(kMappedBytes);
  // lengths at a page boundary and between two page boundaries
  for (const off_t left : {999'999, 500'001, 500'000, 499'712, 1, 0}) {
    put("object");
    const auto reader = open("object");
    ASSERT_OK(reader->read_at(0, out));
    ASSERT_EQ(::truncate(path("object").c_str(), left), 0);
    EXPECT_ERRC(Errc::truncated, reader->read_at(0, out)) << left;
    EXPECT_ERRC(Errc::truncated, reader->view(0, kMappedBytes)) << left;
    EXPECT_ERRC(Errc::truncated, backend_->read_object("object", kMappedBytes, out)) << left;
    const auto rest = std::span(out).first(size_t(left));
    EXPECT_OK(reader->read_at(0, rest)) << "what is left can be read: " << left;
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), pattern(kMappedBytes).begin()));
  }
}

// The resident KiB of the mapping that contains the address.
size_t resident_kib(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx ", &begin, &end) == 2) {
      const auto at = reinterpret_cast<uintptr_t>(address);
      inside = at >= begin && at < end;
    } else if (inside && line.rfind("Rss:", 0) == 0) {
      return std::stoul(line.substr(4));
    }
  }
  ADD_FAILURE() << "it is not mapped";
  return 0;
}

TEST_F(Mmap, AViewHasBeenTouchedCompletely) {
  for (const char* options : {"", ",touch=line", ",touch=page", ",keep=1,touch=page"}) {
    reopen(options);
    put("object");
    const auto reader = open("object");
    const auto view = reader->view(0, kMappedBytes);
    ASSERT_OK(view);
    EXPECT_GE(resident_kib(view->data()), kMappedBytes / 1024) << options;
  }
}

TEST_F(Mmap, TouchingAViewOfAFileThatShrankGivesZerosAndThenAnError) {
  put("object");
  const auto reader = open("object");
  const auto view = reader->view(0, kMappedBytes);
  ASSERT_OK(view);
  ASSERT_EQ(::truncate(path("object").c_str(), 8192), 0);
  const std::vector<std::byte> seen(view->begin(), view->end());
  const auto bytes = pattern(kMappedBytes);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + 8192, seen.begin()));
  EXPECT_TRUE(
      std::all_of(seen.begin() + 8192, seen.end(), [](std::byte byte) { return byte == std::byte{0}; }));
  EXPECT_ERRC(Errc::truncated, reader->view(0, kMappedBytes));
  // The file gets its old length again, but the touched pages of the view have lost their bytes.
  ASSERT_EQ(::truncate(path("object").c_str(), kMappedBytes), 0);
  EXPECT_ERRC(Errc::io, reader->view(0, kMappedBytes));
}

TEST_F(Mmap, ReadersSurviveAFileThatShrinksAndGrows) {
  put("object");
  std::atomic<bool> done{false};
  std::thread resizer([&] {
    for (off_t i = 0; i < 300; ++i) {
      const off_t length = i % 2 == 0 ? i * 1'000 : off_t(kMappedBytes);
      EXPECT_EQ(::truncate(path("object").c_str(), length), 0);
    }
    done = true;
  });
  std::array<std::thread, 3> readers;
  for (std::thread& one : readers)
    one = std::thread([&] {
      std::vector<std::byte> out(kMappedBytes);
      while (!done) {
        const auto reader = open("object");
        for (int i = 0; i < 5; ++i) {
          const auto read = reader->read_at(0, out);
          EXPECT_TRUE(read.ok() || read.error().code == Errc::truncated);
        }
      }
    });
  for (std::thread& reader : readers) reader.join();
  resizer.join();
}

TEST_F(Mmap, MappingsAreKeptForAFileAndNotForItsName) {
  reopen(",keep=1");
  put("object");
  const std::byte* before = open("object")->view(0, kMappedBytes)->data();
  EXPECT_EQ(open("object")->view(0, kMappedBytes)->data(), before) << "it is mapped once";
  ASSERT_EQ(::link(path("object").c_str(), path("other").c_str()), 0);
  EXPECT_EQ(open("other")->view(0, kMappedBytes)->data(), before);
  const std::vector<std::byte> new_bytes(kMappedBytes, std::byte{7});
  const auto writer = backend_->create("object", kMappedBytes);
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->append(new_bytes));
  ASSERT_OK((*writer)->publish(Durability::visible));
  std::vector<std::byte> out(kMappedBytes);
  ASSERT_OK(backend_->read_object("object", kMappedBytes, out));
  EXPECT_EQ(out, new_bytes);
  ASSERT_OK(backend_->read_object("other", kMappedBytes, out));
  EXPECT_EQ(out, pattern(kMappedBytes));
}

TEST_F(Mmap, KeptMappingsChangeWithTheirFile) {
  reopen(",keep=1");
  put("object");
  std::vector<std::byte> out(kMappedBytes);
  ASSERT_OK(backend_->read_object("object", kMappedBytes, out));
  ASSERT_EQ(::truncate(path("object").c_str(), 500'000), 0);
  EXPECT_ERRC(Errc::truncated, backend_->read_object("object", kMappedBytes, out))
      << "it lost bytes, and is marked";
  EXPECT_OK(backend_->read_object("object", 500'000, out));
  EXPECT_TRUE(std::equal(out.begin(), out.begin() + 500'000, pattern(kMappedBytes).begin()));
  ASSERT_EQ(::truncate(path("object").c_str(), kMappedBytes), 0);
  EXPECT_OK(open("object")->view(0, kMappedBytes)) << "it is mapped anew";
  ASSERT_EQ(::truncate(path("object").c_str(), 2 * kMappedBytes), 0);
  EXPECT_OK(open("object")->view(0, 2 * kMappedBytes)) << "it is longer now";
}

// Touches a mapping that the back end does not know, after its file was truncated.
void touch_foreign_mapping(const std::string& path) {
  std::ofstream(path) << "x";
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const void* const memory = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file.get(), 0);
  static_cast<void>(::truncate(path.c_str(), 0));
  static_cast<void>(*static_cast<const volatile char*>(memory));
}

// The test installs a SIGBUS handler before the first mapping. This test runs in a child process, because
// handlers belong to the whole process.
TEST_F(Mmap, ForeignSignalsReachTheEarlierHandler) {
  EXPECT_TRUE(in_child_process([&] {
    std::signal(SIGBUS, [](int) { ::_exit(42); });
    put("object");
    open("object");
    EXPECT_EXIT(touch_foreign_mapping(path("foreign")), testing::ExitedWithCode(42), "");
    EXPECT_EXIT(::raise(SIGBUS), testing::ExitedWithCode(42), "");
  }));
}

TEST_F(Mmap, ForeignSignalsEndTheProcessIfNoHandlerIsSet) {
#if defined(PENSTOCK_ADDRESS_SANITIZER) || defined(PENSTOCK_THREAD_SANITIZER)
  GTEST_SKIP() << "the sanitizer has a handler of its own";
#endif
  put("object");
  open("object");
  EXPECT_EXIT(touch_foreign_mapping(path("foreign")), testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(::raise(SIGBUS), testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace penstock
