#include "results/store.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".jsonl";
constexpr std::size_t kShortId = 8;
constexpr int kDepth = 32;  // of JSON nesting; records need five

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  // Network file systems report write errors here.
  int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

// Removes the unfinished file unless it got its name.
class Unfinished {
 public:
  explicit Unfinished(fs::path path) : path_(std::move(path)) {}
  ~Unfinished() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  void done() { path_.clear(); }

 private:
  fs::path path_;
};

Result<void> before(const StoreStep& step, std::string_view name) {
  return step ? step(name) : success();
}

Result<void> write_all(int fd, std::string_view text, const fs::path& path) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(fd, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno_error(errno, "cannot write", path.string());
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return success();
}

// 0, or an errno. Falls back to link + unlink where the file system cannot rename without replacing.
int rename_noreplace(const fs::path& from, const fs::path& to) {
  if (::syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (::link(from.c_str(), to.c_str()) != 0) return errno;
  ::unlink(from.c_str());
  return 0;
}

Result<void> sync_folder(const fs::path& folder) {
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some network file systems refuse to sync a folder; they make names durable themselves.
  if (fd.get() < 0 || (::fsync(fd.get()) != 0 && errno != EINVAL && errno != EROFS))
    return errno_error(errno, "cannot sync", folder.string());
  return success();
}

// "2026-11-20T09:30:00Z" -> "20261120T093000Z"; anything else that could leave the folder is dropped.
std::string name_part(std::string_view text, std::string_view extra) {
  std::string part;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (plain || extra.find(c) != std::string_view::npos) part += c;
  }
  return part;
}

Result<fs::path> write_file(const fs::path& folder, const std::string& stem, std::string_view text,
                            const StoreStep& step) {
  const fs::path temporary = folder / ("." + stem + ".tmp");
  PENSTOCK_TRY(before(step, "create"));
  Descriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (fd.get() < 0) return errno_error(errno, "cannot create", temporary.string());
  Unfinished unfinished(temporary);
  PENSTOCK_TRY(before(step, "write"));
  PENSTOCK_TRY(write_all(fd.get(), text, temporary));
  PENSTOCK_TRY(before(step, "sync"));
  if (::fsync(fd.get()) != 0) return errno_error(errno, "cannot sync", temporary.string());
  if (fd.close() != 0) return errno_error(errno, "cannot close", temporary.string());
  PENSTOCK_TRY(before(step, "rename"));
  const fs::path path = folder / (stem + std::string(kSuffix));
  if (const int failure = rename_noreplace(temporary, path); failure != 0)
    return errno_error(failure, "cannot name", path.string());
  unfinished.done();
  PENSTOCK_TRY(before(step, "sync_dir"));
  PENSTOCK_TRY(sync_folder(folder));
  return path;
}

// Makes the folder durable under its name too.
Result<void> make_folder(const fs::path& folder) {
  std::error_code code;
  if (fs::is_directory(folder, code)) return success();
  fs::create_directories(folder, code);
  if (code) return errno_error(code.value(), "cannot make the results folder", folder.string());
  const fs::path parent = fs::absolute(folder, code).lexically_normal().parent_path();
  return sync_folder(parent.empty() ? fs::path(".") : parent);
}

// A file that is reached by two paths counts once: `known` holds those that were read.
void read_file(const fs::path& path, RecordSet& set, std::set<std::pair<dev_t, ino_t>>& known) {
  struct stat file {};
  if (::stat(path.c_str(), &file) == 0 && !known.emplace(file.st_dev, file.st_ino).second) return;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    set.problems.push_back(errno_error(errno, "cannot open", path.string()).message());
    return;
  }
  set.files.push_back(path);
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto record = parse_record_line(line);
    if (record)
      set.records.push_back({*std::move(record), path, number});
    else
      set.problems.push_back(path.string() + ":" + std::to_string(number) + ": " + record.error().message());
  }
  if (in.bad()) set.problems.push_back(errno_error(EIO, "cannot read all of", path.string()).message());
}

Result<std::vector<fs::path>> record_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    const std::string name = at->path().filename().string();
    if (name.empty() || name.front() == '.' || at->path().extension() != kSuffix) continue;
    files.push_back(at->path());
  }
  if (code) return errno_error(code.value(), "cannot list", folder.string());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::string random_id(std::size_t digits) {
  std::string id;
  while (id.size() < digits) {
    std::uint64_t bits = 0;
    if (::getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits))
      bits = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) ^
             (static_cast<std::uint64_t>(::getpid()) << 40);
    for (int i = 0; i < 16 && id.size() < digits; ++i, bits >>= 4) id += "0123456789abcdef"[bits & 15];
  }
  return id;
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return std::string(text, length);
}

Result<fs::path> write_records(const fs::path& folder, std::span<const Record> records,
                               const StoreStep& step) {
  if (records.empty()) return make_error(Errc::internal, "there is no record to write");
  PENSTOCK_TRY(make_folder(folder));
  std::string text;
  for (const Record& record : records) text += record_line(record) + "\n";
  const Record& first = records.front();
  const std::string stem = name_part(first.started, "") + "-" + name_part(first.command, "_-") + "-";
  std::string id = name_part(first.id, "").substr(0, kShortId);
  if (id.size() < kShortId) id = random_id(kShortId);
  for (int attempt = 0;; ++attempt) {
    auto path = write_file(folder, stem + id, text, step);
    if (path || path.error().code != Errc::already_exists || attempt == 8) return path;
    id = random_id(kShortId);
  }
}

namespace {

// 0, or the errno of what could not be made. What is missing of the folder is made below a name that nobody
// else has: another process that looks likewise, or writes, must not meet a folder that goes away again.
// Names in `made` what it made, from the outermost.
int make_file_in(const fs::path& folder, std::vector<fs::path>& made) {
  std::error_code code;
  fs::path at = folder;
  while (!fs::exists(fs::symlink_status(at, code)) && at.has_relative_path()) at = at.parent_path();
  if (at != folder) {
    const fs::path missing = folder.lexically_relative(at);
    std::string own = (at / ".penstock-XXXXXX").string();
    if (::mkdtemp(own.data()) == nullptr) return errno;
    made.push_back(at = own);
    for (const fs::path& name : missing) {
      if (name.empty()) continue;  // behind a slash at the end
      at /= name;
      if (::mkdir(at.c_str(), 0777) != 0) return errno;
      made.push_back(at);
    }
  }
  std::string file = (at / ".penstock-XXXXXX").string();
  const Descriptor fd(::mkstemp(file.data()));
  if (fd.get() < 0) return errno;
  return ::unlink(file.c_str()) == 0 ? 0 : errno;
}

}  // namespace

Result<void> check_results_folder(const fs::path& folder) {
  std::error_code code;
  std::vector<fs::path> made;
  const int failure = make_file_in(fs::absolute(folder, code).lexically_normal(), made);
  for (auto at = made.rbegin(); at != made.rend(); ++at) ::rmdir(at->c_str());
  if (failure == 0) return success();
  Error error = errno_error(failure, "cannot write records into", folder.string());
  error.what += " (--results DIR names another folder)";
  return error;
}

Result<Record> parse_record_line(std::string_view line) {
  bool too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > kDepth) too_deep = true;
    return depth <= kDepth;
  };
  const Json json = Json::parse(line.begin(), line.end(), watch, false);
  if (json.is_discarded()) return make_error(Errc::corrupt, "not a record: no JSON (cut short?)");
  if (too_deep) return make_error(Errc::corrupt, "not a record: nested too deeply");
  return record_from_json(json);
}

Result<RecordSet> read_records(std::span<const fs::path> paths) {
  RecordSet set;
  std::set<std::pair<dev_t, ino_t>> known;
  for (const fs::path& path : paths) {
    std::error_code code;
    const fs::file_status status = fs::status(path, code);
    if (!fs::exists(status))
      return errno_error(code ? code.value() : ENOENT, "cannot read records from", path.string());
    if (!fs::is_directory(status)) {
      read_file(path, set, known);
      continue;
    }
    PENSTOCK_ASSIGN(const std::vector<fs::path> files, record_files(path));
    for (const fs::path& file : files) read_file(file, set, known);
  }
  return set;
}

}  // namespace penstock
