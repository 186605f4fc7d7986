// Threads: only one thread at a time may use a SweepState.
// Lock: flock() on the journal, taken by open(). Runs inherit the descriptor and with it the lock. So the
// lock is released once the object is destroyed and all runs have ended. read_history() takes no lock.
// Memory: everything allocates.
// Ctrl-C: ends only the wait for the lock, with `interrupted`. No write is ever interrupted.
// Crash: append() syncs an entry before it adds the entry to the history. record_turn() first syncs the names
// of the runs' folders, then appends the entry that names them, and then moves the records. After a crash
// open() cuts off an incomplete last line and finishes moving records.
#include "results/sweep/state.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <span>

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/system/durable_file.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/utc_time.hpp"
#include "results/record/json_members.hpp"
#include "results/record/store.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr int kJournalVersion = 1;
constexpr size_t kChecksumDigits = 8;

std::string line_of(const Json& entry) {
  const std::string text = one_line(entry);
  return fmt::format("{:08x} {}\n", crc32c(std::as_bytes(std::span(text))), text);
}

// Returns the entry in a line (without its newline). Empty if the checksum of the line does not match.
std::optional<Json> entry_of(std::string_view line) {
  if (line.size() < kChecksumDigits + 2 || line[kChecksumDigits] != ' ') return std::nullopt;
  const std::string_view text = line.substr(kChecksumDigits + 1);
  if (fmt::format("{:08x}", crc32c(std::as_bytes(std::span(text)))) != line.substr(0, kChecksumDigits))
    return std::nullopt;
  std::optional<Json> entry = Json::try_parse(text);
  if (entry && !entry->is_object()) return std::nullopt;
  return entry;
}

SweepFigure figure_of(const Json& json) {
  SweepFigure figure;
  figure.label = json.at("what").get<std::string>();
  figure.metric = json.at("metric").get<std::string>();
  figure.unit = json.at("unit").get<std::string>();
  figure.better = static_cast<Better>(json.at("better").get<int>());
  if (json.at("value").is_number()) figure.value = json.at("value").get<double>();
  // Journals of earlier versions lack it.
  if (json.contains("throughput_bytes_per_s") && json["throughput_bytes_per_s"].is_number())
    figure.bytes_per_s = json["throughput_bytes_per_s"].get<double>();
  figure.verdict = parse_verdict(json.at("verdict").get<std::string>()).value_or(Verdict::failed);
  figure.reason = json.at("reason").get<std::string>();
  return figure;
}

Json turn_json(const SweepTurn& turn) {
  Json runs = Json::array();
  for (const SweepRun& run : turn.runs) {
    Json figures = Json::array();
    for (const SweepFigure& figure : run.figures) {
      figures.push_back(figure_json(figure));
      figures.back()["better"] = int(figure.better);
    }
    runs.push_back(Json{{"arm", run.arm},
                        {"folder", run.folder},
                        {"files", run.files},
                        {"seconds", run.seconds},
                        {"exit", run.exit_code},
                        {"figures", std::move(figures)}});
  }
  return Json{{"kind", "done"}, {"cell", turn.cell}, {"round", turn.round}, {"runs", std::move(runs)}};
}

SweepTurn turn_of(const Json& json) {
  SweepTurn turn{
      .cell = json.at("cell").get<std::string>(), .round = json.at("round").get<uint64_t>(), .runs = {}};
  for (const Json& run_json : json.at("runs")) {
    SweepRun& run = turn.runs.emplace_back();
    run.arm = run_json.at("arm").get<std::string>();
    run.folder = run_json.at("folder").get<std::string>();
    run.files = run_json.at("files").get<std::vector<std::string>>();
    run.seconds = run_json.at("seconds").get<double>();
    run.exit_code = run_json.at("exit").get<int>();
    for (const Json& figure : run_json.at("figures")) run.figures.push_back(figure_of(figure));
  }
  return turn;
}

Result<void> apply_entry(SweepHistory& history, const Json& entry) {
  const auto kind = entry.at("kind").get<std::string>();
  if (kind != "end") history.end.reset();
  if (kind == "sweep") {
    if (entry.at("version") != kJournalVersion)
      return make_error(Errc::unsupported, "was written by another version of penstock");
    history.identity = entry.at("identity");
    history.seed = entry.at("seed").get<uint64_t>();
    history.suite = entry.at("suite").get<std::string>();
  } else if (kind == "session") {
    if (entry.contains("programs"))
      history.programs = entry.at("programs").get<std::map<std::string, std::string>>();
  } else if (kind == "job") {
    history.job = entry.at("job").get<std::string>();
  } else if (kind == "done") {
    history.add(turn_of(entry));
  } else if (kind == "end") {
    history.end = SweepEnd{entry.at("job").get<std::string>(), entry.at("left").get<uint64_t>(),
                           entry.at("why").get<std::string>()};
  }
  return success();  // entries of other kinds are only for people who read the journal
}

// Parses a journal. Sets `complete_bytes` to the number of bytes up to the end of the last whole entry. The
// caller can cut off what follows.
Result<SweepHistory> parse_journal(std::string_view text, const fs::path& file, size_t& complete_bytes) {
  SweepHistory history;
  size_t line_number = 0;
  size_t torn_line = 0;  // number of the first line that is not an entry
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const std::optional<Json> entry =
        end == std::string_view::npos ? std::nullopt : entry_of(text.substr(at, end - at));
    ++line_number;
    at = end == std::string_view::npos ? text.size() : end + 1;
    if (!entry) {
      torn_line = torn_line == 0 ? line_number : torn_line;
      continue;
    }
    if (torn_line != 0)
      return make_error(Errc::corrupt, "'{}', line {}: not an entry of a sweep, though more entries follow",
                        file.string(), torn_line);
    try {
      if (const auto applied = apply_entry(history, *entry); !applied.ok())
        return make_error(applied.error().code, "'{}' {}", file.string(), applied.error().what);
    } catch (const JsonError& error) {
      return make_error(Errc::corrupt, "'{}', line {}: {}", file.string(), line_number, error.what());
    }
    complete_bytes = at;
  }
  return history;
}

Result<std::string> text_of_file(const fs::path& file) {
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) return errno_error(errno == 0 ? EIO : errno, "cannot read the sweep's journal", file.string());
  return text;
}

// Takes the exclusive lock of the journal; waits for it for at most `patience_s` seconds. After a sweep was
// killed, its last run may still be running: it inherited the lock and holds it until it ends. The wait ends
// early if this process is asked to stop. If the file system has no locks, it succeeds without a lock.
Result<void> lock(int fd, const fs::path& file, double patience_s,
                  const std::function<void(std::string_view)>& log) {
  const auto deadline =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(patience_s));
  bool wait_reported = false;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    // The file system has no locks, so continue without one.
    if (errno == ENOSYS || errno == ENOLCK || errno == EOPNOTSUPP) return success();
    if (errno != EWOULDBLOCK) return errno_error(errno, "cannot lock", file.string());
    if (std::chrono::steady_clock::now() >= deadline)
      return make_error(Errc::busy,
                        "another process works on this sweep ('{}' is locked): wait until it ends",
                        file.string());
    if (!wait_reported) log("waiting for another process that works on this sweep");
    wait_reported = true;
    PENSTOCK_TRY(sleep_until(std::chrono::steady_clock::now() + std::chrono::milliseconds(50)));
  }
  return success();
}

}  // namespace

Json figure_json(const SweepFigure& figure) {
  return Json{{"what", figure.label},
              {"metric", figure.metric},
              {"value", figure.value ? Json(*figure.value) : Json()},
              {"throughput_bytes_per_s", figure.bytes_per_s ? Json(*figure.bytes_per_s) : Json()},
              {"unit", figure.unit},
              {"verdict", verdict_name(figure.verdict)},
              {"reason", figure.reason}};
}

void SweepHistory::add(SweepTurn turn) {
  if (done_turns_.try_emplace({turn.cell, turn.round}, turns.size()).second) turns.push_back(std::move(turn));
}

fs::path SweepState::journal_file(const fs::path& results, std::string_view name) {
  return results / fmt::format("sweep-{}.state", name);
}

fs::path SweepState::work_folder(const fs::path& results, std::string_view name) {
  return results / fmt::format(".sweep-{}", name);
}

fs::path SweepState::records_folder(const fs::path& results, std::string_view name, std::string_view arm) {
  return arm.empty() ? results : results / name / arm;
}

Result<SweepHistory> SweepState::read_history(const fs::path& results, std::string_view name) {
  const fs::path file = journal_file(results, name);
  PENSTOCK_ASSIGN(const std::string text, text_of_file(file));
  size_t complete_bytes = 0;
  return parse_journal(text, file, complete_bytes);
}

Result<SweepState> SweepState::open(const fs::path& results, std::string_view name, double patience_s,
                                    const std::function<void(std::string_view)>& log) {
  SweepState state;
  state.results_folder_ = results;
  state.name_ = name;
  state.work_folder_ = work_folder(results, name);
  state.journal_file_ = journal_file(results, name);
  std::error_code failed;
  fs::create_directories(state.work_folder_, failed);
  if (failed) return errno_error(failed.value(), "cannot make the folder", state.work_folder_.string());
  // Opened without O_CLOEXEC, so that runs inherit the descriptor and with it the lock. If a sweep is killed
  // and its run continues, the run's lock still keeps other processes out.
  state.fd_ = Fd(::open(state.journal_file_.c_str(), O_RDWR | O_CREAT | O_APPEND, 0666));
  if (!state.fd_) return errno_error(errno, "cannot open", state.journal_file_.string());
  PENSTOCK_TRY(lock(state.fd_.get(), state.journal_file_, patience_s, log));
  PENSTOCK_TRY(sync_folder(results));
  PENSTOCK_ASSIGN(const std::string text, text_of_file(state.journal_file_));
  size_t complete_bytes = 0;
  PENSTOCK_ASSIGN(state.history_, parse_journal(text, state.journal_file_, complete_bytes));
  // While this process has the lock, no other process can append. So bytes after the last whole entry come
  // from a crash, and can be cut off.
  if (complete_bytes < text.size() && ::ftruncate(state.fd_.get(), off_t(complete_bytes)) != 0)
    return errno_error(errno, "cannot truncate the torn end of", state.journal_file_.string());
  PENSTOCK_TRY(state.repair());
  return state;
}

// Closes the journal. This releases the lock, unless a child still has the descriptor. Removes the work
// folder if it is empty.
SweepState::~SweepState() {
  if (!fd_) return;
  fd_.close();
  std::error_code ignored;
  fs::remove(work_folder_, ignored);
}

Result<void> SweepState::append(const Json& entry) {
  const std::string line = line_of(entry);
  // No other process appends, because this one has the lock. If the write fails, the partial line is removed.
  // The entry is added to the history only once it is durable.
  const off_t size_before = ::lseek(fd_.get(), 0, SEEK_END);
  if (Result<void> wrote = write_all(fd_.get(), line, journal_file_); !wrote.ok()) {
    if (size_before >= 0 && ::ftruncate(fd_.get(), size_before) != 0)
      wrote.error().what += "; its last line is torn, and the next opening cuts it off";
    return wrote;
  }
  if (::fsync(fd_.get()) != 0) return errno_error(errno, "cannot sync", journal_file_.string());
  return apply_entry(history_, entry);
}

Result<void> SweepState::record_sweep(const Json& identity, uint64_t seed) {
  if (history_.suite.empty()) history_.suite = fmt::format("{}-{}", name_, random_id(8));
  return append(Json{{"kind", "sweep"},
                     {"version", kJournalVersion},
                     {"seed", seed},
                     {"suite", history_.suite},
                     {"identity", identity}});
}

Result<void> SweepState::record_job(const std::string& job) {
  return append(Json{{"kind", "job"}, {"job", job}, {"time", utc_now()}});
}

Result<void> SweepState::record_start(const std::string& job,
                                      const std::map<std::string, std::string>& programs) {
  return append(Json{{"kind", "session"},
                     {"job", job},
                     {"time", utc_now()},
                     {"process", ::getpid()},
                     {"programs", programs}});
}

Result<void> SweepState::record_turn(SweepTurn turn) {
  // The names of the runs' folders must be durable before the entry that names them. The runs have already
  // synced the files in them. If a crash comes before the entry is durable, repair() removes the folders.
  PENSTOCK_TRY(sync_folder(work_folder_));
  PENSTOCK_TRY(sync_folder(results_folder_));
  PENSTOCK_TRY(append(turn_json(turn)));
  return move_records(turn);
}

Result<void> SweepState::record_end(const SweepEnd& end) {
  return append(Json{
      {"kind", "end"}, {"job", end.job}, {"left", end.turns_left}, {"why", end.reason}, {"time", utc_now()}});
}

Result<std::string> SweepState::run_folder() {
  std::string name = random_id(12);
  std::error_code failed;
  fs::create_directories(work_folder_ / name, failed);
  if (failed) return errno_error(failed.value(), "cannot make the folder", (work_folder_ / name).string());
  return name;
}

void SweepState::remove_run(const std::string& folder) const {
  std::error_code ignored;
  fs::remove_all(work_folder_ / folder, ignored);
}

// Moves the records of a turn that counts to the results folder, and syncs that folder. It never replaces a
// file: if a name is taken, the new file also gets the name of the run's folder.
// After a crash it can be repeated: files that are already moved are skipped, and a run's folder is removed
// last.
Result<void> SweepState::move_records(const SweepTurn& turn) const {
  for (const SweepRun& run : turn.runs) {
    const fs::path folder = records_folder(results_folder_, name_, run.arm);
    std::error_code failed;
    fs::create_directories(folder, failed);
    if (failed) return errno_error(failed.value(), "cannot make the folder", folder.string());
    for (const std::string& file : run.files) {
      const fs::path source = work_folder_ / run.folder / file;
      if (!fs::exists(source, failed)) continue;  // moved before a crash
      fs::path target = folder / file;
      if (fs::exists(target, failed))
        target.replace_filename(fmt::format("{}-{}.jsonl", target.stem().string(), run.folder));
      fs::rename(source, target, failed);
      if (failed) return errno_error(failed.value(), "cannot move", source.string());
    }
    PENSTOCK_TRY(sync_folder(folder));
    if (folder != results_folder_) {
      PENSTOCK_TRY(sync_folder(folder.parent_path()));
      PENSTOCK_TRY(sync_folder(results_folder_));
    }
  }
  for (const SweepRun& run : turn.runs) remove_run(run.folder);
  return success();
}

// Repairs the work folder after a crash: finishes moving the records of turns that count, and removes all
// other folders. open() calls it while it holds the journal's lock.
Result<void> SweepState::repair() const {
  for (const SweepTurn& turn : history_.turns) {
    const bool has_folder = std::any_of(turn.runs.begin(), turn.runs.end(), [&](const SweepRun& run) {
      std::error_code ignored;
      return fs::exists(work_folder_ / run.folder, ignored);
    });
    if (has_folder) PENSTOCK_TRY(move_records(turn));
  }
  std::error_code failed;
  for (fs::directory_iterator at(work_folder_, failed), end; !failed && at != end; at.increment(failed))
    remove_run(at->path().filename().string());
  return success();
}

}  // namespace penstock
