// Threads: a CallTrace is used under the lock of its shard in traced.cpp. One thread makes a TraceFile, and
// the destructor of the traced back end writes it.
// Lock: the file has an exclusive flock() while it is open, if the file system supports it. So two tiers or
// programs do not write the same trace.
// Crash: the file stays empty, because it is written at the end. It is not synced.
#include "io_backends/decorators/call_trace.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/ranks/launcher.hpp"
#include "io_backends/decorators/traced.hpp"
#include "io_backends/files/posix_root.hpp"

namespace penstock {
namespace {

constexpr std::size_t kWriteAtOnce = 1U << 20U;

// Formats an event of the trace event format. Times are in microseconds.
std::string event(const TracedCall& call, std::string_view object, int rank) {
  std::string text = fmt::format(
      R"({{"name":"{}","ph":"X","ts":{:.3f},"dur":{:.3f},"pid":{},"tid":{},"args":{{"object":"{}","offset":{},"bytes":{})",
      timed_call_name(static_cast<CallKind>(call.call)), static_cast<double>(call.started_ns) / 1e3,
      static_cast<double>(call.took_ns) / 1e3, rank, call.lane, json_text(object), call.offset, call.bytes);
  if (call.errc != 0) text += fmt::format(R"(,"error":"{}")", errc_name(static_cast<Errc>(call.errc - 1)));
  return text + "}}";
}

}  // namespace

void CallTrace::add(TracedCall call, std::string_view object) {
  auto found = numbers_.find(object);
  if (found == numbers_.end()) {
    found = numbers_.emplace(std::string(object), static_cast<std::uint32_t>(names_.size())).first;
    names_.push_back(&found->first);
  }
  call.object = found->second;
  calls_.push_back(call);
}

Result<TraceFile> TraceFile::create(const std::string& path) {
  const Launch launch = look_for_launcher();
  const std::string mine = launch.ranks > 1 ? path + "." + std::to_string(launch.rank) : path;
  Fd fd(retry_eintr([&] { return ::open(mine.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666); }));
  if (!fd) return errno_error(errno, "cannot create the trace", mine);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return make_error(Errc::busy,
                      "'" + mine + "' is the trace of another tier or program: give each one of its own");
  if (::ftruncate(fd.get(), 0) != 0 && errno != EINVAL)  // EINVAL: a pipe cannot be truncated
    return errno_error(errno, "cannot empty the trace", mine);
  return TraceFile(mine, launch.rank, std::move(fd));
}

Result<void> TraceFile::put(std::string_view text) {
  const FullIo io = full_io(text.size(), [&](std::size_t done) {
    return ::write(fd_.get(), text.data() + done, text.size() - done);
  });
  if (io.done == text.size()) return success();
  return errno_error(io.sys_errno != 0 ? io.sys_errno : EIO, "cannot write the trace", path_);
}

Result<void> TraceFile::write(const std::vector<const CallTrace*>& traces, std::uint64_t left_out) {
  std::string text = fmt::format(
      R"({{"displayTimeUnit":"ns","otherData":{{"calls_left_out":"{}"}},"traceEvents":[)", left_out);
  std::string_view before = "\n";
  for (const CallTrace* trace : traces) {
    for (const TracedCall& call : trace->calls()) {
      text.append(before).append(event(call, trace->object(call), rank_));
      before = ",\n";
      if (text.size() < kWriteAtOnce) continue;
      PENSTOCK_TRY(put(text));
      text.clear();
    }
  }
  PENSTOCK_TRY(put(text + "\n]}\n"));
  if (const int failed = fd_.close(); failed != 0)
    return errno_error(failed, "cannot close the trace", path_);
  return success();
}

std::string json_text(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const std::size_t bytes = utf8_length(text);
    const char first = text.front();
    if (bytes == 0) {
      plain += "\\ufffd";
    } else if (first == '"' || first == '\\') {
      plain.append("\\").push_back(first);
    } else if (static_cast<unsigned char>(first) < 0x20) {
      plain += fmt::format("\\u{:04x}", static_cast<unsigned>(first));
    } else {
      plain += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return plain;
}

}  // namespace penstock
