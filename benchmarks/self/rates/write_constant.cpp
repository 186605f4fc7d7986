// penstock_write_constant DIR [--threads N] [--stock BYTES] [--settle] < LIST: the baseline of
// benchmarks/self/rates. It is the simplest program that makes files of given sizes. Each line of LIST is
// "BYTES NAME". Each file is opened, written with calls of at most 1 MiB, and closed. A folder is made when
// its first file needs it. The bytes come from one buffer of 1 MiB, which stays in the processor's cache.
// With --stock, each thread has a buffer of BYTES bytes instead, and goes through it again and again; it
// should be larger than any cache. --settle syncs the file system at the end. Prints the seconds from the
// first call to the last, and the bytes written.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "io_backends/core/system/fd.hpp"

namespace penstock {
namespace {

constexpr size_t kWriteBytes = size_t{1} << 20U;
constexpr size_t kMostStock = size_t{1} << 40U;
constexpr unsigned kMostThreads = 4096;

struct File {
  uint64_t bytes = 0;
  std::string name;
};

struct Arguments {
  std::string root;
  unsigned threads = 1;
  size_t stock = kWriteBytes;
  bool settle = false;
  std::vector<File> files;
};

bool parse(std::string_view text, uint64_t& out) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out);
  return failure == std::errc{} && end == text.data() + text.size();
}

bool parse_line(int argc, char** argv, Arguments& out) {
  uint64_t threads = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--settle") {
      out.settle = true;
    } else if (word == "--threads") {
      if (++i == argc || !parse(argv[i], threads) || threads == 0 || threads > kMostThreads) return false;
    } else if (word == "--stock") {
      if (++i == argc || !parse(argv[i], out.stock) || out.stock < kWriteBytes || out.stock > kMostStock)
        return false;
    } else if (out.root.empty() && !word.starts_with("-")) {
      out.root = word;
    } else {
      return false;
    }
  }
  out.threads = unsigned(threads);
  return !out.root.empty();
}

bool read_list(std::vector<File>& out) {
  for (std::string line; std::getline(std::cin, line);) {
    const size_t space = line.find(' ');
    File file;
    if (space == std::string::npos || space + 1 == line.size() ||
        !parse(std::string_view(line).substr(0, space), file.bytes))
      return false;
    file.name = line.substr(space + 1);
    out.push_back(std::move(file));
  }
  return true;
}

// The buffer from which a thread writes. Successive calls of next() go through it again and again. A buffer
// of kWriteBytes bytes is always used from its beginning.
struct Stock {
  std::span<const std::byte> bytes;
  size_t at = 0;

  std::span<const std::byte> next(uint64_t limit) {
    const auto most = size_t(std::min<uint64_t>(limit, kWriteBytes));
    if (at + most > bytes.size() || bytes.size() == kWriteBytes) at = 0;
    const std::span<const std::byte> out = bytes.subspan(at, most);
    at += most;
    return out;
  }
};

class FileWriter {
 public:
  FileWriter(const Arguments& arguments, int root)
      : arguments_(arguments),
        root_(root),
        stocks_(arguments.stock == kWriteBytes ? 1 : arguments.threads,
                std::vector<std::byte>(arguments.stock, std::byte{0x5a})) {}

  // Returns false after the first failure, which failure() then describes.
  bool run() {
    {
      std::vector<std::jthread> others;
      for (unsigned i = 1; i < arguments_.threads; ++i) others.emplace_back([this, i] { work(i); });
      work(0);
    }
    if (arguments_.settle && !failed_ && ::syncfs(root_) != 0) fail("sync", arguments_.root);
    return !failed_;
  }
  const std::string& failure() const { return failure_; }

 private:
  void work(unsigned thread) {
    Stock stock{stocks_[thread % stocks_.size()]};
    while (!failed_) {
      const size_t i = next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= arguments_.files.size()) return;
      write(arguments_.files[i], stock);
    }
  }

  void write(const File& file, Stock& stock) {
    const auto open = [&] {
      return retry_eintr(
          [&] { return ::openat(root_, file.name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
    };
    Fd fd(open());
    if (!fd && errno == ENOENT) {
      make_folders(file.name);
      fd = Fd(open());
    }
    if (!fd) return fail("open", file.name);
    for (uint64_t left = file.bytes; left != 0;) {
      const std::span<const std::byte> next = stock.next(left);
      const ssize_t wrote = retry_eintr([&] { return ::write(fd.get(), next.data(), next.size()); });
      if (wrote <= 0) return fail("write", file.name);
      left -= uint64_t(wrote);
    }
    if (fd.close() != 0) fail("close", file.name);
  }

  void make_folders(const std::string& name) const {
    for (size_t at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1))
      // An error needs no handling here: the open of the file then fails too.
      ::mkdirat(root_, name.substr(0, at).c_str(), 0777);
  }

  void fail(const char* what, const std::string& name) {
    const int number = errno;
    const std::scoped_lock lock(mutex_);
    if (failed_.exchange(true)) return;
    failure_ = std::string("cannot ") + what + " '" + name + "': " + std::strerror(number);
  }

  const Arguments& arguments_;
  const int root_;
  const std::vector<std::vector<std::byte>> stocks_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::string failure_;
};

int run(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  Arguments arguments;
  if (!parse_line(argc, argv, arguments)) {
    std::fprintf(stderr,
                 "usage: penstock_write_constant DIR [--threads N] [--stock BYTES] [--settle] < LIST\n");
    return 2;
  }
  if (!read_list(arguments.files)) {
    std::fprintf(stderr, "penstock_write_constant: a line of the list is not 'BYTES NAME'\n");
    return 2;
  }
  const Fd root(::open(arguments.root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) {
    std::fprintf(stderr, "penstock_write_constant: cannot open '%s': %s\n", arguments.root.c_str(),
                 std::strerror(errno));
    return 2;
  }
  uint64_t bytes = 0;
  for (const File& file : arguments.files) bytes += file.bytes;
  FileWriter writer(arguments, root.get());
  const Clock::time_point start = Clock::now();
  if (!writer.run()) {
    std::fprintf(stderr, "penstock_write_constant: %s\n", writer.failure().c_str());
    return 1;
  }
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  std::printf("%.6f %llu\n", elapsed.count(), static_cast<unsigned long long>(bytes));
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  return penstock::run(argc, argv);
}
