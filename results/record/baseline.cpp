#include "results/record/baseline.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <sstream>

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/utc_time.hpp"
#include "results/record/json_members.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBaselinesFolder = "baselines";
constexpr std::string_view kBaselinePrefix = "baseline:";
constexpr size_t kReadBlockBytes = 1U << 16;

Result<void> check_name(const std::string& name) {
  if (is_plain_word(name)) return success();
  return make_error(Errc::invalid_argument,
                    "'{}' is not a name for a baseline: use letters, digits, '_', '-' and '.'", name);
}

// Returns a file's current size and checksum, without its path.
Result<Baseline::File> inspect_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return errno_error(errno, "cannot open", path.string());
  Baseline::File file;
  std::array<char, kReadBlockBytes> block{};
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
    const auto bytes = std::span(block.data(), size_t(in.gcount()));
    file.crc = crc32c(std::as_bytes(bytes), file.crc);
    file.bytes += bytes.size();
  }
  if (in.bad()) return errno_error(EIO, "cannot read", path.string());
  return file;
}

fs::path path_of(const fs::path& folder, const Baseline::File& file) {
  return (folder / file.path).lexically_normal();
}

std::string path_from(const fs::path& folder, const fs::path& path) {
  std::error_code ignored;
  const fs::path full_path = fs::weakly_canonical(path, ignored);
  const fs::path relative_path = full_path.lexically_relative(fs::weakly_canonical(folder, ignored));
  return relative_path.empty() || *relative_path.begin() == ".." ? full_path.string()
                                                                 : relative_path.string();
}

Json baseline_json(const Baseline& baseline) {
  Json json{{"baseline", baseline.name}, {"saved", baseline.saved_at}, {"files", Json::array()}};
  for (const Baseline::File& file : baseline.files)
    json["files"].push_back(
        Json{{"path", file.path}, {"bytes", file.bytes}, {"crc32c", fmt::format("{:08x}", file.crc)}});
  return json;
}

Result<Baseline> read_baseline(const fs::path& folder, const std::string& name) {
  PENSTOCK_TRY(check_name(name));
  const fs::path path = folder / kBaselinesFolder / name;
  std::ifstream in(path, std::ios::binary);
  if (!in && errno == ENOENT) return no_baseline_error(folder, name);
  if (!in) return errno_error(errno, "cannot open", path.string());
  std::ostringstream text;
  text << in.rdbuf();
  return parse_baseline(text.str(), path.string());
}

}  // namespace

Error no_baseline_error(const fs::path& folder, std::string_view name) {
  return make_error(
      Errc::not_found,
      "'{1}' has no baseline '{0}'; to list its baselines: penstock baseline list --results {2}", name,
      folder.string(), shell_word(folder.string()));
}

bool is_plain_word(std::string_view name) {
  return !name.empty() && name.front() != '.' && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

Result<Baseline> parse_baseline(std::string_view text, const std::string& what) {
  const Error no_baseline = make_error(Errc::corrupt, "'{}' is not a baseline", what);
  const Json json = Json::try_parse(text).value_or(nullptr);
  if (!json.is_object() || !json.contains("files") || !json.at("files").is_array()) return no_baseline;
  Baseline baseline{member_text(json, "baseline"), member_text(json, "saved"), {}};
  for (const Json& entry : json.at("files")) {
    Baseline::File file{member_text(entry, "path"), 0, 0};
    const std::string crc = member_text(entry, "crc32c");
    const auto parsed = std::from_chars(crc.data(), crc.data() + crc.size(), file.crc, 16);
    const Json* const bytes = member(entry, "bytes");
    if (file.path.empty() || crc.size() != 8 || parsed.ptr != crc.data() + crc.size() || bytes == nullptr ||
        !bytes->is_number_unsigned())
      return no_baseline;
    file.bytes = bytes->get<uint64_t>();
    baseline.files.push_back(std::move(file));
  }
  if (!is_plain_word(baseline.name) || baseline.files.empty()) return no_baseline;
  return baseline;
}

Result<Baseline> save_baseline(const fs::path& folder, const std::string& name,
                               std::span<const fs::path> paths, const FileStepHook& hook) {
  PENSTOCK_TRY(check_name(name));
  PENSTOCK_ASSIGN(const RecordSet set, read_records(paths));
  if (!set.problems.empty())
    return make_error(Errc::corrupt, "baseline '{}' would be incomplete: {}", name, set.problems.front());
  Baseline baseline{name, utc_now(), {}};
  for (const fs::path& path : set.files) {
    PENSTOCK_ASSIGN(Baseline::File file, inspect_file(path));
    file.path = path_from(folder, path);
    baseline.files.push_back(std::move(file));
  }
  if (baseline.files.empty())
    return make_error(Errc::invalid_argument, "baseline '{}' would contain no record file", name);
  PENSTOCK_TRY(make_results_folder(folder / kBaselinesFolder));
  PENSTOCK_TRY(write_durable_file(folder / kBaselinesFolder, name, baseline_json(baseline).dump(1) + "\n",
                                  true, hook));
  return baseline;
}

Result<std::vector<Baseline>> list_baselines(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator at(folder / kBaselinesFolder, code), end; !code && at != end;
       at.increment(code))
    if (std::string name = at->path().filename().string(); is_plain_word(name))
      names.push_back(std::move(name));
  if (code && code != std::errc::no_such_file_or_directory)
    return errno_error(code.value(), "cannot list", (folder / kBaselinesFolder).string());
  std::sort(names.begin(), names.end());
  std::vector<Baseline> baselines;
  for (const std::string& name : names) {
    PENSTOCK_ASSIGN(Baseline baseline, read_baseline(folder, name));
    baselines.push_back(std::move(baseline));
  }
  return baselines;
}

Result<void> remove_baseline(const fs::path& folder, const std::string& name) {
  PENSTOCK_TRY(check_name(name));
  const fs::path path = folder / kBaselinesFolder / name;
  if (::unlink(path.c_str()) == 0) return success();
  if (errno == ENOENT) return no_baseline_error(folder, name);
  return errno_error(errno, "cannot remove", path.string());
}

Result<void> check_baseline(const fs::path& folder, const Baseline& baseline) {
  for (const Baseline::File& file : baseline.files) {
    const fs::path path = path_of(folder, file);
    const Result<Baseline::File> current = inspect_file(path);
    if (!current && current.error().sys_errno == ENOENT)
      return make_error(Errc::not_found, "baseline '{}' is out of date: '{}' was deleted; set it again",
                        baseline.name, path.string());
    PENSTOCK_TRY(current);
    if (current->bytes != file.bytes || current->crc != file.crc)
      return make_error(Errc::corrupt, "baseline '{}' is out of date: '{}' has changed; set it again",
                        baseline.name, path.string());
  }
  return success();
}

bool is_baseline(const fs::path& path) {
  return path.filename().string().starts_with(kBaselinePrefix);
}

Result<std::vector<fs::path>> baseline_files(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(kResultsFolder);
  PENSTOCK_ASSIGN(const Baseline baseline,
                  read_baseline(folder, path.filename().string().substr(kBaselinePrefix.size())));
  PENSTOCK_TRY(check_baseline(folder, baseline));
  std::vector<fs::path> files;
  for (const Baseline::File& file : baseline.files) files.push_back(path_of(folder, file));
  return files;
}

}  // namespace penstock
