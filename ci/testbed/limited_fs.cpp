// limited_fs SOURCE MOUNT --bytes-per-second RATE [--latency TIME] [--foreground]
// A FUSE file system that shows SOURCE at MOUNT, read-only, and no faster than RATE. It imitates a slow
// network link for tests.
//
// The link: all readers share one link, which serves requests in the order of their arrival. A request
// occupies the link as long as its bytes take at RATE. After that the reader waits for the latency, while the
// link serves other requests. Files are opened with direct I/O: no data stays in the page cache, so a second
// pass is as slow as the first. Names and attributes are not slowed down.
//
// The process: without --foreground it continues in the background once it is mounted. With --foreground it
// prints a line once it is mounted. SIGINT, SIGTERM and `fusermount3 -u MOUNT` unmount it and end it. Exit
// codes: 0 success, 1 failure, 2 unknown arguments, 77 the machine has no FUSE.
//
// Threads: the main thread mounts, and then waits in fuse_loop_mt(). FUSE's callbacks (get_attributes() to
// announce_mount()) run on up to 256 threads of libfuse.
// Locks: Link::mutex_, held only to compute a request's end, never during a sleep or a read. All else that
// callbacks share is constant.
// Memory: callbacks may allocate.
// Signals: libfuse's handlers of SIGINT and SIGTERM only end the loop. A request that sleeps is not cut
// short: fuse_loop_mt() lets its thread finish the request, and then returns.
// Crash: SOURCE is only read. After a kill, MOUNT stays mounted and fails with ENOTCONN until
// `fusermount3 -u MOUNT`.
#define FUSE_USE_VERSION 312
#include <dirent.h>
#include <fcntl.h>
#include <fuse.h>
#include <fuse_lowlevel.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "io_backends/core/system/fd.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr int kExitWithoutFuse = 77;
// How many requests may be in progress. Each occupies a thread while it sleeps.
constexpr unsigned kMostThreads = 256;
// If the link is behind its rate by at most this time, it may catch up. Threads wake up late from their
// sleep, so without this the link would be slower than the rate.
constexpr nanoseconds kCatchUpTime = std::chrono::milliseconds(2);

struct MountRequest {
  std::string source, mount;
  uint64_t bytes_per_second = 0;
  nanoseconds latency{0};
  bool foreground = false;
};

// The imitated link, which all requests share. Any thread may call transfer().
class Link {
 public:
  explicit Link(const MountRequest& request)
      : bytes_per_second_(double(request.bytes_per_second)), latency_(request.latency) {}

  // Sleeps until the link has transferred `bytes`, and then for the latency. The link transfers the bytes of
  // all earlier calls first. mutex_ is released before the sleep.
  void transfer(size_t bytes) {
    const auto transfer_time = nanoseconds(int64_t(double(bytes) * 1e9 / bytes_per_second_));
    const Clock::time_point now = Clock::now();
    Clock::time_point end;
    {
      const std::scoped_lock lock(mutex_);
      free_at_ = std::max(free_at_, now - kCatchUpTime) + transfer_time;
      end = free_at_;
    }
    std::this_thread::sleep_until(std::max(end, now) + latency_);
  }

 private:
  const double bytes_per_second_;
  const nanoseconds latency_;
  std::mutex mutex_;
  Clock::time_point free_at_ = Clock::now();
};

struct Mounted {
  explicit Mounted(const MountRequest& request_) : request(request_), link(request_) {}

  const MountRequest& request;
  Link link;
};

Mounted& mounted() {
  return *static_cast<Mounted*>(fuse_get_context()->private_data);
}

std::string source_path(const char* path) {
  return mounted().request.source + path;
}

int negative_errno(int result) {
  return result < 0 ? -errno : 0;
}

int get_attributes(const char* path, struct stat* out, fuse_file_info*) {
  return negative_errno(::lstat(source_path(path).c_str(), out));
}

int read_link(const char* path, char* out, size_t size) {
  const ssize_t length = ::readlink(source_path(path).c_str(), out, size - 1);
  if (length < 0) return -errno;
  out[length] = '\0';
  return 0;
}

int list_folder(const char* path, void* out, fuse_fill_dir_t fill, off_t, fuse_file_info*,
                fuse_readdir_flags) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(source_path(path).c_str()), &::closedir);
  if (!folder) return -errno;
  errno = 0;
  while (const dirent* entry = ::readdir(folder.get())) {
    struct stat attributes {};
    attributes.st_ino = entry->d_ino;
    attributes.st_mode = static_cast<mode_t>(DTTOIF(entry->d_type));
    if (fill(out, entry->d_name, &attributes, 0, fuse_fill_dir_flags{}) != 0) return -ENOMEM;
    errno = 0;
  }
  return -errno;
}

int open_file(const char* path, fuse_file_info* file) {
  if ((file->flags & O_ACCMODE) != O_RDONLY) return -EROFS;
  // Open without the caller's O_DIRECT: SOURCE may be on tmpfs, where many kernels refuse it.
  const int fd = ::open(source_path(path).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -errno;
  file->fh = uint64_t(fd);
  file->direct_io = 1;
  return 0;
}

// Answers a read request. Runs on a thread of libfuse, with no lock held. It reads at full speed, and then
// sleeps until the link has transferred these bytes. SIGINT and SIGTERM do not shorten the sleep.
int read_file(const char*, char* out, size_t size, off_t offset, fuse_file_info* file) {
  size_t done = 0;
  while (done < size) {
    const ssize_t got =
        retry_eintr([&] { return ::pread(int(file->fh), out + done, size - done, offset + off_t(done)); });
    if (got < 0) return -errno;
    if (got == 0) break;
    done += size_t(got);
  }
  mounted().link.transfer(done);
  return int(done);
}

int close_file(const char*, fuse_file_info* file) {
  return negative_errno(::close(int(file->fh)));
}

int file_system_room(const char* path, struct statvfs* out) {
  return negative_errno(::statvfs(source_path(path).c_str(), out));
}

// Makes libfuse use SOURCE's inode numbers, and prints that the file system is mounted. libfuse calls it
// once, before the first request.
void* announce_mount(fuse_conn_info*, fuse_config* config) {
  config->use_ino = 1;
  Mounted& file_system = mounted();
  std::printf("limited_fs: '%s' is at '%s'\n", file_system.request.source.c_str(),
              file_system.request.mount.c_str());
  std::fflush(stdout);
  return &file_system;
}

fuse_operations operations() {
  fuse_operations out{};
  out.getattr = &get_attributes;
  out.readlink = &read_link;
  out.readdir = &list_folder;
  out.open = &open_file;
  out.read = &read_file;
  out.release = &close_file;
  out.statfs = &file_system_room;
  out.init = &announce_mount;
  return out;
}

int complain(int status, const std::string& words) {
  std::fprintf(stderr, "limited_fs: %s\n", words.c_str());
  return status;
}

// Parses the command line. Returns an error message, or "" if there is no error.
std::string parse_line(int argc, char** argv, MountRequest& out) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--foreground") {
      out.foreground = true;
    } else if (word == "--bytes-per-second" || word == "--latency") {
      if (++i == argc) return std::string(word) + " needs a value";
      if (word == "--latency") {
        const Result<nanoseconds> latency = parse_duration(argv[i]);
        if (!latency.ok()) return "--latency: " + latency.error().what;
        out.latency = latency.value();
        continue;
      }
      const Result<uint64_t> rate = parse_size(argv[i]);
      if (!rate.ok()) return "--bytes-per-second: " + rate.error().what;
      out.bytes_per_second = rate.value();
    } else if (word.starts_with("-")) {
      return "no option '" + std::string(word) + "'";
    } else if (out.source.empty()) {
      out.source = word;
    } else if (out.mount.empty()) {
      out.mount = word;
    } else {
      return "unexpected argument '" + std::string(word) + "'";
    }
  }
  if (out.mount.empty()) return "needs SOURCE and MOUNT";
  if (out.bytes_per_second == 0) return "needs --bytes-per-second, from 1 on";
  return "";
}

// Makes the path of a folder absolute, because fuse_daemonize() changes the working directory to "/". Returns
// false and sets errno if it is not a folder.
bool make_absolute(std::string& folder) {
  char path[PATH_MAX];
  struct stat attributes {};
  if (::realpath(folder.c_str(), path) == nullptr || ::stat(path, &attributes) != 0) return false;
  folder = path;
  errno = ENOTDIR;
  return S_ISDIR(attributes.st_mode);
}

// Serves requests until a signal or an unmount, and returns the exit status. Runs on the main thread.
// fuse_daemonize() forks, so it must come before any thread is started.
int serve(fuse* file_system, const MountRequest& request) {
  if (fuse_daemonize(request.foreground ? 1 : 0) != 0) return complain(1, "cannot go to the background");
  fuse_session* const session = fuse_get_session(file_system);
  if (fuse_set_signal_handlers(session) != 0) return complain(1, "cannot take signals");
  fuse_loop_config* const loop_config = fuse_loop_cfg_create();
  fuse_loop_cfg_set_max_threads(loop_config, kMostThreads);
  fuse_loop_cfg_set_idle_threads(loop_config, kMostThreads);
  // The number of the signal that ended the loop, or a negative errno.
  const int loop_result = fuse_loop_mt(file_system, loop_config);
  fuse_loop_cfg_destroy(loop_config);
  fuse_remove_signal_handlers(session);
  return loop_result < 0 ? complain(1, std::string("stopped: ") + std::strerror(-loop_result)) : 0;
}

int mount_and_serve(MountRequest& request) {
  std::string options = "ro,default_permissions,subtype=limited_fs,fsname=" + request.source;
  std::string program = "limited_fs", option = "-o";
  char* words[] = {program.data(), option.data(), options.data(), nullptr};
  fuse_args arguments = FUSE_ARGS_INIT(3, words);
  const fuse_operations calls = operations();
  Mounted state(request);
  fuse* const file_system = fuse_new(&arguments, &calls, sizeof(calls), &state);
  if (file_system == nullptr) return complain(1, "libfuse does not start");
  int status = 1;
  if (fuse_mount(file_system, request.mount.c_str()) == 0) {
    status = serve(file_system, request);
    fuse_unmount(file_system);
  } else {
    complain(1, "cannot mount at '" + request.mount + "': root may, others need fusermount3 (package fuse3)");
  }
  fuse_destroy(file_system);
  fuse_opt_free_args(&arguments);
  return status;
}

constexpr const char* kUsage =
    "usage: limited_fs SOURCE MOUNT --bytes-per-second RATE [--latency TIME] [--foreground]\nShows SOURCE at "
    "MOUNT, for reading only, through one link of RATE (200MB: a second) that all readers\nshare, with "
    "direct I/O. Ends, and unmounts, on SIGINT, SIGTERM and fusermount3 -u MOUNT.\n";

int run(int argc, char** argv) {
  MountRequest request;
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  const std::string problem = parse_line(argc, argv, request);
  if (!problem.empty()) return complain(2, problem + "\n" + kUsage);
  for (std::string* const folder : {&request.source, &request.mount})
    if (!make_absolute(*folder))
      return complain(1, "'" + *folder + "' is not a usable folder: " + std::strerror(errno));
  if (::access("/dev/fuse", R_OK | W_OK) != 0)
    return complain(kExitWithoutFuse, std::string("skipped: /dev/fuse: ") + std::strerror(errno));
  return mount_and_serve(request);
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  return penstock::run(argc, argv);
}
