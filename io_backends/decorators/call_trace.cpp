// Threads: a CallTrace is used under the lock of its shard in traced.cpp. One thread makes a TraceFile, and
// the destructor of the traced back end writes it.
// Lock: TraceFile holds an exclusive flock() on the file while it is open, if the file system has locks. So
// two tiers or programs never write the same trace.
// Crash: the file is empty or incomplete, because it is only written at the end. It is not synced.
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

constexpr size_t kWriteBytes = 1U << 20U;

// Formats a call as one event of the JSON that trace viewers read (Trace Event Format), with times in
// microseconds.
std::string event_text(const TracedCall& call, std::string_view object, int rank) {
  std::string text = fmt::format(
      R"({{"name":"{}","ph":"X","ts":{:.3f},"dur":{:.3f},"pid":{},"tid":{},"args":{{"object":"{}","offset":{},"bytes":{})",
      timed_call_name(static_cast<CallKind>(call.kind)), double(call.started_ns) / 1e3,
      double(call.duration_ns) / 1e3, rank, call.lane, json_text(object), call.offset, call.bytes);
  if (call.errc != 0) text += fmt::format(R"(,"error":"{}")", errc_name(static_cast<Errc>(call.errc - 1)));
  return text + "}}";
}

}  // namespace

void CallTrace::add(TracedCall call, std::string_view object) {
  auto found = number_by_name_.find(object);
  if (found == number_by_name_.end()) {
    found = number_by_name_.emplace(std::string(object), uint32_t(names_.size())).first;
    names_.push_back(&found->first);
  }
  call.object_number = found->second;
  calls_.push_back(call);
}

Result<TraceFile> TraceFile::create(const std::string& path) {
  const Launch launch = look_for_launcher();
  const std::string rank_path = launch.ranks > 1 ? path + "." + std::to_string(launch.rank) : path;
  Fd fd(retry_eintr([&] { return ::open(rank_path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666); }));
  if (!fd) return errno_error(errno, "cannot create the trace", rank_path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return make_error(
        Errc::busy,
        "'" + rank_path + "' is the trace of another tier or program: use a different file for each");
  if (::ftruncate(fd.get(), 0) != 0 && errno != EINVAL)  // EINVAL: a pipe cannot be truncated
    return errno_error(errno, "cannot empty the trace", rank_path);
  return TraceFile(rank_path, launch.rank, std::move(fd));
}

Result<void> TraceFile::write_text(std::string_view text) {
  const FullIo io = full_io(
      text.size(), [&](size_t done) { return ::write(fd_.get(), text.data() + done, text.size() - done); });
  if (io.done == text.size()) return success();
  return errno_error(io.sys_errno != 0 ? io.sys_errno : EIO, "cannot write the trace", path_);
}

Result<void> TraceFile::write(const std::vector<const CallTrace*>& traces, uint64_t calls_left_out) {
  std::string text = fmt::format(
      R"({{"displayTimeUnit":"ns","otherData":{{"calls_left_out":"{}"}},"traceEvents":[)", calls_left_out);
  std::string_view separator = "\n";
  for (const CallTrace* trace : traces) {
    for (const TracedCall& call : trace->calls()) {
      text.append(separator).append(event_text(call, trace->object(call), rank_));
      separator = ",\n";
      if (text.size() < kWriteBytes) continue;
      PENSTOCK_TRY(write_text(text));
      text.clear();
    }
  }
  PENSTOCK_TRY(write_text(text + "\n]}\n"));
  if (const int failed = fd_.close(); failed != 0)
    return errno_error(failed, "cannot close the trace", path_);
  return success();
}

std::string json_text(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const size_t bytes = utf8_length(text);
    const char first = text.front();
    if (bytes == 0) {
      escaped += "\\ufffd";
    } else if (first == '"' || first == '\\') {
      escaped.append("\\").push_back(first);
    } else if (static_cast<unsigned char>(first) < 0x20) {
      escaped += fmt::format("\\u{:04x}", unsigned(first));
    } else {
      escaped += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return escaped;
}

}  // namespace penstock
