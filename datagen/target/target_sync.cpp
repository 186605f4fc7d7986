// Threads: one thread calls begin(), sync() and sync_before_checks(). Several threads call drop_from_cache(),
// which only reads members. There is no lock.
// Memory: begin() and drop_from_cache() allocate paths, and errors allocate their message.
// Ctrl-C: not checked. syncfs() and the write-back in evict() can wait for the device for a long time.
// Crash: objects published with object_durability() are durable only after sync() has succeeded. Callers
// write the manifest only after that.
#include "datagen/target/target_sync.hpp"

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "io_backends/files/page_cache.hpp"

namespace penstock {
namespace {

bool this_syncfs_reports_errors() {
  struct utsname system {};
  return ::uname(&system) == 0 && syncfs_reports_errors(system.release);
}

}  // namespace

bool syncfs_reports_errors(std::string_view release) {
  unsigned version = 0;
  unsigned patch = 0;
  const char* const end = release.data() + release.size();
  const auto [dot, bad] = std::from_chars(release.data(), end, version);
  if (bad != std::errc{} || dot == end || *dot != '.') return false;
  if (std::from_chars(dot + 1, end, patch).ec != std::errc{}) return false;
  return version > 5 || (version == 5 && patch >= 8);
}

Result<TargetSync> TargetSync::begin(const Tier& tier) {
  TargetSync out(*tier.backend);
  if (tier.facts.memory || tier.backend->caps().volatile_memory) {
    out.object_durability_ = Durability::visible;
    return out;
  }
  const auto root = tier.backend->native_path("");
  if (!root) return out;
  out.path_ = root->native();
  // Keep the folder open until sync(): syncfs() reports only write-back errors that happen after this open.
  out.root_ = Fd(::open(root->c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!out.root_) return errno_error(errno, "cannot open folder", out.path_);
  // If this kernel's syncfs() does not report lost bytes, each object is synced on its own. That sync reports
  // them.
  out.object_durability_ = this_syncfs_reports_errors() ? Durability::leaving : Durability::file;
  return out;
}

Result<void> TargetSync::sync() const {
  // This writes back the whole file system, also files of other programs.
  if (root_ && ::syncfs(root_.get()) != 0) return errno_error(errno, "cannot sync", path_);
  return success();
}

void TargetSync::sync_before_checks() const {
  // Only clean pages can be dropped from the page cache, so write all back first. If this fails, the checks
  // that follow find the lost bytes.
  if (root_) static_cast<void>(::syncfs(root_.get()));
}

Result<void> TargetSync::drop_from_cache(std::string_view name) const {
  if (!root_ || backend_->caps().bypasses_cache) return success();
  const auto path = backend_->native_path(name);
  return path ? evict(*path) : success();
}

}  // namespace penstock
