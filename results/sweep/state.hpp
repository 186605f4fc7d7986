// The journal of a sweep: it stores which turns are done, so that a stopped sweep can continue. A turn is one
// cell in one round, with the runs of all its arms (plan.hpp).
//
// The file RESULTS/sweep-NAME.state has one entry in each line, after the entry's checksum. An entry is
// synced before anything depends on it. If a crash leaves an incomplete last line, the next open() cuts it
// off.
//
// A run writes its records into a folder of its own below RESULTS/.sweep-NAME. Then record_turn() does this,
// in this order:
//  1. It syncs the names of the runs' folders.
//  2. It appends the turn's entry, which names these folders and the record files, and syncs the journal.
//     From now on the turn counts.
//  3. It moves the record files to RESULTS (with arms to RESULTS/NAME/ARM, so that arms can be compared), and
//     syncs those folders.
//
// After a crash the next open() moves the record files of turns that count but are not moved yet. It removes
// folders that no entry names, since their runs never counted. So the records of each turn are in RESULTS
// once or not at all, whenever the sweep was killed.
//
// Only one thread may use a SweepState. open() locks the journal with flock(). The lock is held until the
// object is destroyed and all children that inherited the lock have ended.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io_backends/core/result.hpp"
#include "io_backends/core/system/fd.hpp"
#include "results/record/record.hpp"

namespace penstock {

// What the sweep needs of one record of a run.
struct SweepFigure {
  std::string label;  // distinguishes the record from others of its run: "fast, 4 threads"
  std::string metric;
  std::string unit;
  Better better = Better::neither;
  std::optional<double> value;  // absent if the record has no usable number
  Verdict verdict = Verdict::ok;
  std::string reason;
  // The throughput of the record, if `metric` is something else, such as samples per second.
  std::optional<double> bytes_per_s{};
};

Json figure_json(const SweepFigure& figure);

struct SweepRun {
  std::string arm;                 // "" without arms
  std::string folder;              // name of the run's folder, in the work folder of the sweep
  std::vector<std::string> files;  // names of the record files in that folder
  double seconds = 0;
  int exit_code = 0;
  std::vector<SweepFigure> figures;
};

struct SweepTurn {
  std::string cell;  // the key of its cell (SweepCell::key)
  uint64_t round = 0;
  std::vector<SweepRun> runs;  // the runs of its arms, in the order in which they ran
};

// How a sweep process ended, if it was not killed.
struct SweepEnd {
  std::string job;          // the Slurm job of the process; "" if it ran in none
  uint64_t turns_left = 0;  // number of turns that are not done yet
  std::string reason;       // "" if all turns are done
};

struct SweepHistory {
  Json identity;  // sweep_identity() at the last start; null if the sweep was never started
  uint64_t seed = 0;
  // Name of the suite of its pairs: the sweep's name and a random part. Each sweep that is started anew gets
  // another random part.
  std::string suite;
  std::vector<SweepTurn> turns;
  // For each program its size and time of change, at the last start.
  std::map<std::string, std::string> programs;
  std::string job;  // the Slurm job that was submitted last; "" if none was
  // How the last sweep process ended. Absent if the journal has later entries, or none about an end.
  std::optional<SweepEnd> end;
  bool has_turn(const std::string& cell, uint64_t round) const { return done_turns_.contains({cell, round}); }
  void add(SweepTurn turn);

 private:
  std::map<std::pair<std::string, uint64_t>, size_t> done_turns_;
};

class SweepState {
 public:
  // The paths of a sweep's journal and of its work folder. In the work folder each run has a folder of its
  // own.
  static std::filesystem::path journal_file(const std::filesystem::path& results, std::string_view name);
  static std::filesystem::path work_folder(const std::filesystem::path& results, std::string_view name);
  // The folder for the records of an arm. `arm` is "" if the sweep has no arms.
  static std::filesystem::path records_folder(const std::filesystem::path& results, std::string_view name,
                                              std::string_view arm);

  // Reads the history without a lock and without changing anything, so another process may work on the sweep
  // at the same time. not_found if there is no such sweep. corrupt if a line is not an entry although valid
  // entries follow; the error names the line.
  static Result<SweepHistory> read_history(const std::filesystem::path& results, std::string_view name);

  // Opens a sweep for work: makes its folder and journal if they are missing, and locks the journal. If
  // another process has the lock, it calls `log` once and waits for at most `patience_s` seconds, then fails
  // with busy.
  // Repairs what a crash left: cuts off an incomplete last line, finishes moving records, and removes the
  // folders of runs that do not count.
  static Result<SweepState> open(const std::filesystem::path& results, std::string_view name,
                                 double patience_s, const std::function<void(std::string_view)>& log);
  ~SweepState();
  SweepState(SweepState&& other) noexcept = default;
  SweepState& operator=(SweepState&&) = delete;

  const SweepHistory& history() const { return history_; }

  // The next five functions each append an entry to the journal. It is durable when the function returns.
  Result<void> record_sweep(const Json& identity, uint64_t seed);
  Result<void> record_job(const std::string& job);
  // Records the start of this sweep process. `job` is the Slurm job in which it runs ("" if none), `programs`
  // the programs as in SweepHistory::programs.
  Result<void> record_start(const std::string& job, const std::map<std::string, std::string>& programs = {});
  // Records a turn that is done, and moves its records to the results folder.
  Result<void> record_turn(SweepTurn turn);
  Result<void> record_end(const SweepEnd& end);

  // Makes a new folder in the work folder for the records and the output of one run, and returns its name.
  Result<std::string> run_folder();
  std::filesystem::path run_path(const std::string& folder) const { return work_folder_ / folder; }
  // Removes the folder of a run whose turn does not count.
  void remove_run(const std::string& folder) const;

 private:
  SweepState() = default;
  Result<void> append(const Json& entry);
  Result<void> move_records(const SweepTurn& turn) const;
  Result<void> repair() const;

  std::filesystem::path results_folder_;
  std::string name_;
  std::filesystem::path work_folder_;
  std::filesystem::path journal_file_;
  Fd fd_;  // the journal; this process and its children share its lock
  SweepHistory history_;
};

}  // namespace penstock
