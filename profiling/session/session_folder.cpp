#include "profiling/session/session_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include "io_backends/core/json.hpp"
#include "io_backends/core/system/fd.hpp"
#include "io_backends/core/utc_time.hpp"
#include "profiling/process_abi.h"
#include "results/record/json_members.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNoteName = "session.json";
constexpr uintmax_t kMostNoteBytes = 16U << 20U;

std::vector<std::string> texts_of(const Json& note, const char* name) {
  std::vector<std::string> texts;
  if (const auto at = note.find(name); at != note.end() && at->is_array())
    for (const Json& one : *at)
      if (one.is_string()) texts.push_back(one.get<std::string>());
  return texts;
}

}  // namespace

std::string default_session_name() {
  std::string time = utc_now();
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  return fmt::format("penstock-profile-{}-{}", time, ::getpid());
}

Result<fs::path> make_session_folder(const fs::path& wanted) {
  std::error_code failed;
  fs::path folder = fs::absolute(wanted, failed).lexically_normal();
  if (failed) return errno_error(failed.value(), "cannot resolve the path of the session", wanted.string());
  if (!folder.has_filename()) folder = folder.parent_path();
  if (folder.native().size() >= PENSTOCK_FOLDER_BYTES)
    return make_error(Errc::invalid_argument,
                      "the path of the session's folder has {} bytes, and the limit is {}: choose a shorter "
                      "absolute path with -o",
                      folder.native().size(), PENSTOCK_FOLDER_BYTES - 1);
  if (::mkdir(folder.c_str(), 0700) == 0) return folder;
  // ENOENT has two causes: the parent folder does not exist, or it is in /proc, where no folder can be made.
  if (errno == ENOENT) {
    const std::string parent = folder.parent_path().string();
    return make_error(
        Errc::not_found,
        fs::is_directory(parent, failed)
            ? fmt::format("cannot make the session '{}': '{}' does not allow new folders", folder.string(),
                          parent)
            : fmt::format("cannot make the session '{}': folder '{}' does not exist; create it first",
                          folder.string(), parent));
  }
  if (errno != EEXIST) return errno_error(errno, "cannot make the session", folder.string());
  const bool is_empty = fs::is_empty(folder, failed);
  if (failed || !fs::is_directory(folder, failed))
    return make_error(Errc::already_exists,
                      "cannot make the session '{}': it exists and is not a folder; choose another with -o",
                      folder.string());
  if (!is_empty)
    return make_error(
        Errc::already_exists,
        "the folder '{}' is not empty: choose another with -o, or remove it if it is an old session",
        folder.string());
  if (::chmod(folder.c_str(), 0700) != 0)
    return errno_error(errno, "cannot restrict the permissions of the session", folder.string());
  return folder;
}

Result<void> write_note(const fs::path& folder, const SessionNote& note) {
  const Json json{{"command", note.command},     {"include", note.include},
                  {"exclude", note.exclude},     {"trace", note.trace},
                  {"started", note.started},     {"ended", note.ended},
                  {"exit_code", note.exit_code}, {"process_files", note.process_files}};
  const std::string text = indented(json, 2) + "\n";
  const fs::path path = folder / kNoteName;
  const fs::path temp = folder / fmt::format(".{}.tmp", kNoteName);
  Fd fd(retry_eintr([&] { return ::open(temp.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600); }));
  if (!fd) return errno_error(errno, "cannot write", path.string());
  const ssize_t written_bytes = retry_eintr([&] { return ::write(fd.get(), text.data(), text.size()); });
  const int failed = written_bytes == ssize_t(text.size()) ? fd.close() : ENOSPC;
  if (failed != 0 || ::rename(temp.c_str(), path.c_str()) != 0) {
    const int error = failed != 0 ? failed : errno;
    ::unlink(temp.c_str());
    return errno_error(error, "cannot write", path.string());
  }
  return success();
}

SessionNote read_note(const fs::path& folder) {
  const fs::path path = folder / kNoteName;
  std::error_code failed;
  if (!fs::is_regular_file(path, failed) || fs::file_size(path, failed) > kMostNoteBytes) return {};
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const Json note = Json::try_parse(text).value_or(nullptr);
  if (!note.is_object()) return {};
  SessionNote parsed;
  parsed.command = texts_of(note, "command");
  parsed.include = texts_of(note, "include");
  parsed.exclude = texts_of(note, "exclude");
  parsed.started = member_text(note, "started");
  parsed.ended = member_text(note, "ended");
  parsed.trace = member_true(note, "trace");
  if (const auto at = note.find("exit_code"); at != note.end() && at->is_number_integer())
    parsed.exit_code = int(at->get<int64_t>());
  if (const auto at = note.find("process_files"); at != note.end() && at->is_number_unsigned())
    parsed.process_files = at->get<uint64_t>();
  return parsed;
}

}  // namespace penstock
