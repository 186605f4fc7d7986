#include "profiling/exporters/darshan_log.hpp"

#include <algorithm>
#include <cstdio>

namespace penstock::darshan {
namespace {

constexpr std::size_t kMostJob = 4096;
constexpr std::size_t kMostNotes = 1024;    // including the NUL after them
constexpr std::size_t kMostCommand = 2048;  // leaves room for mounts
constexpr std::size_t kMostName = 4096;     // no system call accepts longer ones

void put_number(std::string& out, std::int64_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Cuts the text to `bytes`, but not within a character.
std::string_view cut_to_bytes(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U) --bytes;
  return text.substr(0, bytes);
}

// One line without NUL, because the log stores it as a C string.
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
    if (text.size() + line.size() < kMostNotes) text += line;
  }
  text.resize(kMostNotes);
  return text;
}

std::string job_text(const Job& job) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t end_ns = std::max(job.begin_ns, job.end_ns);
  std::string text;
  for (const std::int64_t value : {job.uid, job.begin_ns / kSecond, job.begin_ns % kSecond, end_ns / kSecond,
                                   end_ns % kSecond, job.ranks, job.number})
    put_number(text, value);
  text += notes_text(job);
  text += cut_to_bytes(without_newlines(job.command), kMostCommand);
  for (const auto& [type, point] : job.mounts) {
    // Readers split the line at white space.
    const bool words =
        !type.empty() && !point.empty() && (type + point).find_first_of(" \t\n\v\f\r") == std::string::npos;
    const std::string line = "\n" + type + "\t" + point;
    if (words && text.size() + line.size() < kMostJob) text += line;
  }
  return text + '\0';
}

}  // namespace

LogWriter::LogWriter(WholeFile& to)
    : to_(&to), stream_([this](std::span<const std::byte> bytes) { return put(bytes); }) {}

Result<void> LogWriter::put(std::span<const std::byte> bytes) {
  at_ += bytes.size();
  return to_->write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Result<void> LogWriter::begin() {
  if (std::fseek(to_->file(), 0, SEEK_SET) != 0)
    return make_error(
        Errc::invalid_argument,
        "a Darshan log cannot go through a pipe, since its header is written last: name a file");
  at_ = 0;
  return put(std::as_bytes(std::span(&header_, 1)));
}

Result<void> LogWriter::job(const Job& job) {
  PENSTOCK_TRY(stream_.add(std::as_bytes(std::span<const char>(job_text(job)))));
  PENSTOCK_TRY(stream_.end());
  return success();
}

void LogWriter::begin_names() {
  header_.names.offset = at_;  // the job's region ends here, even if no names follow
  open_ = &header_.names;
}

Result<void> LogWriter::name(std::uint64_t id, std::string_view text) {
  const std::string line = std::string(cut_to_bytes(without_newlines(text), kMostName)) + '\0';
  PENSTOCK_TRY(add(id));
  return add(std::as_bytes(std::span<const char>(line)));
}

void LogWriter::begin_module(Module module, std::uint32_t version, bool incomplete) {
  header_.versions[module] = version;
  if (incomplete) header_.incomplete |= std::uint64_t{1} << module;
  open_ = &header_.modules[module];
}

Result<void> LogWriter::add(std::span<const std::byte> bytes) {
  if (open_->offset == 0) open_->offset = at_;
  empty_ = false;
  return stream_.add(bytes);
}

Result<void> LogWriter::end_region() {
  if (empty_) return success();
  PENSTOCK_TRY(stream_.end());
  open_->length = at_ - open_->offset;
  empty_ = true;
  return success();
}

Result<void> LogWriter::finish() {
  if (std::fseek(to_->file(), 0, SEEK_SET) != 0)
    return make_error(Errc::io, "cannot go back to the begin of the Darshan log");
  return put(std::as_bytes(std::span(&header_, 1)));
}

}  // namespace penstock::darshan
