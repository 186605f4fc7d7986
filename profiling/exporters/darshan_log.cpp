#include "profiling/exporters/darshan_log.hpp"

#include <algorithm>
#include <cstdio>

namespace penstock::darshan {
namespace {

constexpr size_t kMostJobBytes = 4096;
constexpr size_t kMostNotesBytes = 1024;    // limit for all notes, including the NUL at their end
constexpr size_t kMostCommandBytes = 2048;  // the rest of the job's 4 KiB is for the mounts
constexpr size_t kMostNameBytes = 4096;     // the longest path that system calls accept

void put_number(std::string& out, int64_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Truncates the text to at most `bytes` bytes, but never inside a UTF-8 character.
std::string_view truncate_to_bytes(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U) --bytes;
  return text.substr(0, bytes);
}

// Makes the text one line without NUL, because the log stores it as a C string.
std::string without_newlines(std::string_view text) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\0'; }, ' ');
  return line;
}

std::string notes_text(const Job& job) {
  std::string text;
  for (const auto& [key, value] : job.notes) {
    const std::string line = key + "=" + without_newlines(value) + "\n";
    if (text.size() + line.size() < kMostNotesBytes) text += line;
  }
  text.resize(kMostNotesBytes);
  return text;
}

std::string job_text(const Job& job) {
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  const int64_t end_ns = std::max(job.begin_ns, job.end_ns);
  std::string text;
  for (const int64_t value : {job.uid, job.begin_ns / kNsPerSecond, job.begin_ns % kNsPerSecond,
                              end_ns / kNsPerSecond, end_ns % kNsPerSecond, job.rank_count, job.id})
    put_number(text, value);
  text += notes_text(job);
  text += truncate_to_bytes(without_newlines(job.command), kMostCommandBytes);
  for (const auto& [type, point] : job.mounts) {
    // Readers divide the line at white space into file system type and mount point. So a mount is left out if
    // one of the two contains white space.
    const bool splits_in_two =
        !type.empty() && !point.empty() && (type + point).find_first_of(" \t\n\v\f\r") == std::string::npos;
    const std::string line = "\n" + type + "\t" + point;
    if (splits_in_two && text.size() + line.size() < kMostJobBytes) text += line;
  }
  return text + '\0';
}

}  // namespace

LogWriter::LogWriter(WholeFile& to)
    : output_(&to), stream_([this](std::span<const std::byte> bytes) { return put(bytes); }) {}

Result<void> LogWriter::put(std::span<const std::byte> bytes) {
  position_ += bytes.size();
  return output_->write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Result<void> LogWriter::begin() {
  if (std::fseek(output_->file(), 0, SEEK_SET) != 0)
    return make_error(
        Errc::invalid_argument,
        "a Darshan log cannot be written to a pipe, because its header is written last: name a file");
  position_ = 0;
  return put(std::as_bytes(std::span(&header_, 1)));
}

Result<void> LogWriter::write_job(const Job& job) {
  PENSTOCK_TRY(stream_.add(std::as_bytes(std::span<const char>(job_text(job)))));
  PENSTOCK_TRY(stream_.end());
  return success();
}

void LogWriter::begin_names() {
  // The names begin where the job ends. The offset is set even if there are no names, because readers find
  // the end of the job by it.
  header_.names.offset = position_;
  open_region_ = &header_.names;
}

Result<void> LogWriter::add_name(uint64_t id, std::string_view text) {
  const std::string line = std::string(truncate_to_bytes(without_newlines(text), kMostNameBytes)) + '\0';
  PENSTOCK_TRY(add(id));
  return add(std::as_bytes(std::span<const char>(line)));
}

void LogWriter::begin_module(Module module, uint32_t version, bool incomplete) {
  header_.versions[module] = version;
  if (incomplete) header_.incomplete |= uint64_t{1} << module;
  open_region_ = &header_.modules[module];
}

Result<void> LogWriter::add(std::span<const std::byte> bytes) {
  if (open_region_->offset == 0) open_region_->offset = position_;
  region_is_empty_ = false;
  return stream_.add(bytes);
}

Result<void> LogWriter::end_region() {
  if (region_is_empty_) return success();
  PENSTOCK_TRY(stream_.end());
  open_region_->length = position_ - open_region_->offset;
  region_is_empty_ = true;
  return success();
}

Result<void> LogWriter::finish() {
  if (std::fseek(output_->file(), 0, SEEK_SET) != 0)
    return make_error(Errc::io, "cannot seek to the start of the Darshan log");
  return put(std::as_bytes(std::span(&header_, 1)));
}

}  // namespace penstock::darshan
