// Finds and reads record files, both penstock's own and those of other tools (declared in store.hpp).
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/text.hpp"
#include "results/import/foreign.hpp"
#include "results/import/json_documents.hpp"
#include "results/record/baseline.hpp"
#include "results/record/sealed_runs.hpp"
#include "results/record/store.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRecordSuffix = ".jsonl";
constexpr std::string_view kJsonSuffix = ".json";
constexpr std::string_view kOtherSuffixes[] = {".csv", ".txt", ".log", ".out", ".zst"};
// Where Hydra, which DLIO uses, writes the options of the run whose summary is next to this folder.
constexpr std::string_view kOverridesOfDlio = ".hydra/overrides.yaml";
// Whether the path ends in `suffix`, in upper or lower case.
bool has_suffix(const fs::path& path, std::string_view suffix) {
  return equals_ignoring_case(path.extension().native(), suffix);
}

// Whether a line of the text begins with an object of JSON.
bool has_objects(std::string_view text) {
  return text.starts_with('{') || text.find("\n{") != std::string_view::npos;
}

class RecordReader {
 public:
  // Reads one file of records. `is_argument` is true if the user named the file, and false if it was found in
  // a folder.
  void read_file(const fs::path& path, bool is_argument);
  RecordSet finish() &&;

 private:
  void read_lines(std::istream& in, const fs::path& path);
  void read_foreign(std::istream& in, const fs::path& path, bool is_argument);
  void add_imported(Record record, const fs::path& path, size_t number);
  void add_problem(const fs::path& path, size_t line, std::string_view text) {
    record_set_.problems.push_back(path.string() + (line == 0 ? "" : ":" + std::to_string(line)) + ": " +
                                   std::string(text));
  }

  RecordSet record_set_;
  // Files that were read, so that a file to which two paths lead is read once.
  std::set<std::pair<dev_t, ino_t>> files_read_;
  std::map<std::string, size_t> imported_ids_;  // id of an imported record -> its index in record_set_
  size_t skipped_files_ = 0;
  std::string first_skipped_;
  size_t repeated_results_ = 0;
  std::string first_repeated_;
  std::string first_without_options_;  // a summary of DLIO
};

void RecordReader::read_file(const fs::path& path, bool is_argument) {
  struct stat status {};
  const bool has_status = ::stat(path.c_str(), &status) == 0;
  if (has_status && !files_read_.emplace(status.st_dev, status.st_ino).second) return;
  // To open a pipe that no program writes to would wait for ever. One that the user names may be the shell's
  // `<(jq ...)`.
  if (has_status && !is_argument && !S_ISREG(status.st_mode))
    return add_problem(path, 0, "a pipe, a socket or a device, not a file: it is not read");
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    record_set_.problems.push_back(errno_error(errno, "cannot open", path.string()).message());
    return;
  }
  if (has_suffix(path, kRecordSuffix))
    read_lines(in, path);
  else
    read_foreign(in, path, is_argument);
  if (in.bad())
    record_set_.problems.push_back(errno_error(EIO, "cannot read all of", path.string()).message());
}

void RecordReader::read_lines(std::istream& in, const fs::path& path) {
  record_set_.files.push_back(path);
  SealedRuns sealed_runs;
  size_t line_number = 0;
  bool has_no_records = true;
  for (std::string line; std::getline(in, line);) {
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    has_no_records = false;
    auto parsed = parse_sealed_line(line);
    if (!parsed) {
      sealed_runs.skip_unreadable_line();
      add_problem(path, line_number, parsed.error().message());
      continue;
    }
    if (parsed->seal)
      if (const std::string missing = sealed_runs.next_line(*parsed->seal); !missing.empty())
        add_problem(path, line_number, missing);
    parsed->file = path;
    parsed->line = line_number;
    record_set_.records.push_back(*std::move(parsed));
  }
  if (const std::string missing = sealed_runs.end_of_file(); !missing.empty()) add_problem(path, 0, missing);
  if (has_no_records && !in.bad()) add_problem(path, 0, "holds no record");
}

// All of the stream; or of a file that a folder happens to hold only the beginning, if that has nothing that
// can be read: a log can be huge.
std::string read_text(std::istream& in, bool may_be_anything) {
  constexpr size_t kBeginning = 1 << 20;
  std::string text(kBeginning, '\0');
  in.read(text.data(), std::streamsize(text.size()));
  text.resize(size_t(in.gcount()));
  if (text.size() < kBeginning || (may_be_anything && !has_objects(text) && !import_foreign(text)))
    return text;
  std::ostringstream rest;
  rest << in.rdbuf();
  return text + std::move(rest).str();
}

void RecordReader::read_foreign(std::istream& in, const fs::path& path, bool is_argument) {
  const bool is_named_json = has_suffix(path, kJsonSuffix);
  const std::string text = read_text(in, !is_argument && !is_named_json);
  std::optional<Imported> imported = import_foreign(text);
  if (imported) {
    record_set_.files.push_back(path);
    for (const std::string& problem : imported->problems) add_problem(path, 0, problem);
    size_t number = 0;
    for (Record& record : imported->records) add_imported(std::move(record), path, ++number);
    return;
  }
  const std::string advice = advice_on_foreign(text, shell_word(path.string()));
  const std::string unknown_program = "neither records nor results of " + importable_forms();
  const bool is_broken_json = is_named_json && advice.empty() && !is_json(text);
  if (!is_argument && !is_broken_json) {
    // A log or a table of anything is no result that is missing.
    if (!is_named_json && advice.empty()) return;
    if (skipped_files_++ == 0)
      first_skipped_ = path.string() + ": " + (advice.empty() ? unknown_program : advice);
  } else if (!is_named_json && has_objects(text)) {
    std::istringstream lines(text);
    read_lines(lines, path);
  } else {
    if (is_argument) record_set_.files.push_back(path);
    add_problem(path, 0,
                text.empty()      ? "an empty file"
                : is_broken_json  ? fmt::format("not complete JSON ({})", json_fault(text))
                : !advice.empty() ? advice
                                  : unknown_program);
  }
}

void RecordReader::add_imported(Record record, const fs::path& path, size_t number) {
  if (record.command == importer_dlio.command) {
    std::ifstream overrides(path.parent_path() / kOverridesOfDlio, std::ios::binary);
    std::ostringstream text;
    if (overrides && overrides.peek() != std::ifstream::traits_type::eof()) text << overrides.rdbuf();
    add_dlio_overrides(record, text.str());
    if (text.str().empty() && first_without_options_.empty()) first_without_options_ = path.string();
  }
  const auto [at, is_new] = imported_ids_.emplace(record.id, record_set_.records.size());
  if (is_new) {
    record_set_.records.push_back({std::move(record), path, number});
    return;
  }
  // The same result in two files, such as elbencho's CSV and JSON. The later file in the order of names is
  // the JSON, which is more exact.
  StoredRecord& first = record_set_.records[at->second];
  if (first.file == path) {
    record_set_.records.push_back({std::move(record), path, number});
    return;
  }
  if (repeated_results_++ == 0)
    first_repeated_ = fmt::format("{} has what {} has", path.string(), first.file.string());
  first = {std::move(record), path, number};
}

RecordSet RecordReader::finish() && {
  std::vector<Record*> records;
  for (StoredRecord& stored : record_set_.records) records.push_back(&stored.record);
  name_foreign_tiers(records);
  if (skipped_files_ > 0)
    record_set_.remarks.push_back(fmt::format("{} without results skipped (first: {})",
                                              count_of(skipped_files_, "file"), first_skipped_));
  if (!first_without_options_.empty())
    record_set_.remarks.push_back(
        fmt::format("DLIO's {} does not contain its workload, batch size and threads: keep the file {} "
                    "next to it, so that "
                    "runs that differ in these stay apart",
                    first_without_options_, kOverridesOfDlio));
  if (repeated_results_ > 0)
    record_set_.remarks.push_back(fmt::format("{} left out that another file has too (first: {})",
                                              count_of(repeated_results_, "result"), first_repeated_));
  return std::move(record_set_);
}

}  // namespace

Result<std::vector<fs::path>> record_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    const fs::path& path = at->path();
    std::error_code unknown;
    if (path.filename().native().front() == '.' || at->is_directory(unknown)) continue;
    if (has_suffix(path, kRecordSuffix) || has_suffix(path, kJsonSuffix) ||
        std::any_of(std::begin(kOtherSuffixes), std::end(kOtherSuffixes),
                    [&](std::string_view suffix) { return has_suffix(path, suffix); }))
      files.push_back(path);
  }
  if (code) return errno_error(code.value(), "cannot list", folder.string());
  std::sort(files.begin(), files.end());
  return files;
}

Result<StoredRecord> parse_sealed_line(std::string_view line) {
  const std::optional<Json> json = Json::try_parse(line);
  if (!json) return make_error(Errc::corrupt, "not a record: its JSON cannot be read ({})", json_fault(line));
  StoredRecord parsed;
  PENSTOCK_ASSIGN(parsed.record, record_from_json(*json));
  PENSTOCK_ASSIGN(parsed.seal, check_seal(line, *json));
  return parsed;
}

Result<Record> parse_record_line(std::string_view line) {
  PENSTOCK_ASSIGN(StoredRecord parsed, parse_sealed_line(line));
  return std::move(parsed.record);
}

Result<RecordSet> read_records(std::span<const fs::path> paths) {
  RecordReader reader;
  for (const fs::path& path : paths) {
    std::error_code code;
    const fs::file_status status = fs::status(path, code);
    if (!fs::exists(status)) {
      if (!is_baseline(path))
        return errno_error(code ? code.value() : ENOENT, "cannot read records from", path.string());
      PENSTOCK_ASSIGN(const std::vector<fs::path> files, baseline_files(path));
      for (const fs::path& file : files) reader.read_file(file, true);
    } else if (fs::is_directory(status)) {
      PENSTOCK_ASSIGN(const std::vector<fs::path> files, record_files(path));
      for (const fs::path& file : files) reader.read_file(file, false);
    } else {
      reader.read_file(path, true);
    }
  }
  return std::move(reader).finish();
}

std::vector<fs::path> with_folders(const fs::path& path) {
  // The folders in `path` are searched, and this many levels of folders below them.
  constexpr int kMostFolderLevels = 1;
  std::vector<fs::path> paths{path};
  std::error_code code;
  if (!fs::is_directory(path, code)) return paths;
  for (fs::recursive_directory_iterator at(path, code), end; !code && at != end; at.increment(code)) {
    std::error_code ignored;
    const bool is_folder = at->is_directory(ignored) && !at->path().filename().string().starts_with('.');
    if (is_folder) paths.push_back(at->path());
    if (!is_folder || at.depth() >= kMostFolderLevels) at.disable_recursion_pending();
  }
  std::sort(paths.begin() + 1, paths.end());
  return paths;
}

}  // namespace penstock
