// What a sweep has done, so that it goes on where it was stopped: a journal next to the records.
//
// RESULTS/sweep-NAME.state has one entry a line, each behind its own checksum, written whole and synced
// before anything builds on it; what a crash leaves of the last line is cut off. A run writes its records
// into a folder of its own below RESULTS/.sweep-NAME. A turn counts from the moment when its entry is
// durable: that names the runs' folders and files, which are then moved to RESULTS (with arms to
// RESULTS/NAME/ARM, so that sides can be compared), and moved again by the next opening where a crash came
// between. Folders that no entry names are runs that never counted; they are removed. So whatever is killed
// and when, each turn's records are in RESULTS once or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
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

// One record of a run, as far as the sweep looks at it.
struct SweepFigure {
  std::string what;  // tells it from the other records of its run: "fast, 4 threads"
  std::string metric;
  std::string unit;
  Better better = Better::neither;
  std::optional<double> value;  // none: nothing usable
  Verdict verdict = Verdict::ok;
  std::string reason;
};

Json figure_json(const SweepFigure& figure);

struct SweepRun {
  std::string arm;                 // "" without arms
  std::string folder;              // of the run, below the work folder
  std::vector<std::string> files;  // of records, by name
  double seconds = 0;
  int exit_code = 0;
  std::vector<SweepFigure> figures;
};

struct SweepTurn {
  std::string cell;  // SweepCell::key
  std::uint64_t round = 0;
  std::vector<SweepRun> runs;  // in the order in which they ran
};

// How a session of work ended by itself.
struct SweepEnd {
  std::string job;         // of Slurm, "" without
  std::uint64_t left = 0;  // turns
  std::string why;         // "" when all is done
};

struct SweepHistory {
  Json identity;  // sweep_identity() as it was last; null: nothing was started
  std::uint64_t seed = 0;
  std::string suite;  // of its pairs: its name and something that no other beginning has
  std::vector<SweepTurn> turns;
  std::map<std::string, std::string> programs;  // that the last session ran, and what tells theirs apart
  std::string job;                              // of Slurm, submitted last; "": none
  std::optional<SweepEnd> end;  // of the last session that ended by itself and was the last to write
  bool has(const std::string& cell, std::uint64_t round) const { return done_.contains({cell, round}); }
  void add(SweepTurn turn);

 private:
  std::map<std::pair<std::string, std::uint64_t>, std::size_t> done_;
};

class SweepState {
 public:
  // Where a sweep keeps its things.
  static std::filesystem::path journal_file(const std::filesystem::path& results, std::string_view name);
  static std::filesystem::path work_folder(const std::filesystem::path& results, std::string_view name);
  // Where the records of an arm are; "" is no arm.
  static std::filesystem::path records_folder(const std::filesystem::path& results, std::string_view name,
                                              std::string_view arm);

  // Changes nothing, so it may run while another process works on it. not_found where there is no sweep;
  // corrupt names the line that is no entry though good ones follow it.
  static Result<SweepHistory> look(const std::filesystem::path& results, std::string_view name);

  // Makes the folder and the journal where there are none, waits for up to `patience_s` where another process
  // has it (busy then), cuts off what a crash left half written, and finishes moves.
  static Result<SweepState> open(const std::filesystem::path& results, std::string_view name,
                                 double patience_s);
  ~SweepState();
  SweepState(SweepState&& other) noexcept = default;
  SweepState& operator=(SweepState&&) = delete;

  const SweepHistory& history() const { return history_; }

  // Each is durable when it returns.
  Result<void> begin(const Json& identity, std::uint64_t seed);
  Result<void> submitted(const std::string& job);
  // A session, in that job or "", with these programs: SweepHistory::programs.
  Result<void> started(const std::string& job, const std::map<std::string, std::string>& programs = {});
  Result<void> done(SweepTurn turn);  // and its records are in the results folder
  Result<void> ended(const SweepEnd& end);

  // A new folder for one run's records and words: its name below the work folder.
  Result<std::string> run_folder();
  std::filesystem::path path_of(const std::string& folder) const { return work_ / folder; }
  // What a run that does not count left.
  void drop(const std::string& folder) const;

 private:
  SweepState() = default;
  Result<void> append(const Json& entry);
  Result<void> move_records(const SweepTurn& turn) const;
  Result<void> tidy() const;

  std::filesystem::path results_;
  std::string name_;
  std::filesystem::path work_;
  std::filesystem::path journal_;
  Fd fd_;  // of the journal; its lock is ours and our children's
  SweepHistory history_;
};

}  // namespace penstock
