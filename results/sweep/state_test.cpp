#include "results/sweep/state.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <set>

#include "io_backends/core/random.hpp"
#include "io_backends/testing/testing.hpp"
#include "results/record/records_testing.hpp"
#include "results/record/store.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

class SweepJournal : public testing::Test {
 protected:
  fs::path results() const { return scratch_.path() / "results"; }
  fs::path journal() const { return SweepState::journal_file(results(), "s"); }

  Result<SweepState> open(double patience_s = 0) const {
    return SweepState::open(results(), "s", patience_s, [](std::string_view) {});
  }

  // A turn with one run for each arm, whose records are written as a real run writes them.
  static SweepTurn turn(SweepState& state, const std::string& cell, uint64_t round,
                        const std::vector<std::string>& arms = {""}) {
    SweepTurn turn{.cell = cell, .round = round, .runs = {}};
    for (const std::string& arm : arms) {
      const auto folder = state.run_folder();
      EXPECT_OK(folder);
      Record record = read_cell("disk", 1, "cold", 100);
      record.id = random_id(16) + "-0";
      record.label = {{"cell", cell}, {"round", std::to_string(round)}, {"arm", arm}};
      const auto file = write_records(state.run_path(*folder), std::span(&record, 1));
      EXPECT_OK(file);
      SweepRun run;
      run.arm = arm;
      run.folder = *folder;
      run.files.push_back(file->filename().string());
      run.seconds = 1.5;
      run.figures.push_back({"", "samples_per_s", "1/s", Better::higher, 12.5, Verdict::ok, ""});
      turn.runs.push_back(std::move(run));
    }
    return turn;
  }

  // "cell/round/arm" of every record; checks that none exists twice.
  std::set<std::string> records(const fs::path& folder) const {
    const auto set = read_records(std::span(&folder, 1));
    EXPECT_OK(set);
    std::set<std::string> names;
    for (const StoredRecord& stored : set->records) {
      const auto& label = stored.record.label;
      EXPECT_TRUE(names.insert(label.at("cell") + "/" + label.at("round") + "/" + label.at("arm")).second);
    }
    return names;
  }

  std::string text() const {
    std::ifstream in(journal(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  void write(const std::string& text) const { std::ofstream(journal(), std::ios::binary) << text; }

  ScratchFolder scratch_;
};

TEST_F(SweepJournal, RemembersDoneTurns) {
  {
    auto state = open();
    ASSERT_OK(state);
    EXPECT_TRUE(state->history().identity.is_null());
    ASSERT_OK(state->record_sweep(Json{{"command", "read"}}, 7));
    ASSERT_OK(state->record_job("12"));
    ASSERT_OK(state->record_start("12", {{"/bin/p", "7 bytes"}}));
    ASSERT_OK(state->record_turn(turn(*state, "a", 0)));
    ASSERT_OK(state->record_turn(turn(*state, "a", 1)));
    ASSERT_OK(state->record_end({"12", 4, "budget"}));
  }
  EXPECT_FALSE(fs::exists(SweepState::work_folder(results(), "s")));
  const auto history = SweepState::read_history(results(), "s");
  ASSERT_OK(history);
  EXPECT_EQ(history->identity, (Json{{"command", "read"}}));
  EXPECT_EQ(history->seed, 7U);
  EXPECT_EQ(history->job, "12");
  EXPECT_EQ(history->programs, (std::map<std::string, std::string>{{"/bin/p", "7 bytes"}}));
  ASSERT_EQ(history->turns.size(), 2U);
  EXPECT_TRUE(history->has_turn("a", 1));
  EXPECT_FALSE(history->has_turn("a", 2));
  EXPECT_FALSE(history->has_turn("b", 1));
  const SweepRun& run = history->turns[0].runs[0];
  EXPECT_DOUBLE_EQ(run.seconds, 1.5);
  EXPECT_EQ(run.figures[0].metric, "samples_per_s");
  EXPECT_EQ(run.figures[0].value, 12.5);
  ASSERT_TRUE(history->end);
  EXPECT_EQ(history->end->turns_left, 4U);
  EXPECT_EQ(records(results()), (std::set<std::string>{"a/0/", "a/1/"}));
}

TEST_F(SweepJournal, AnEndCountsOnlyAsTheLastEntry) {
  auto state = open();
  ASSERT_OK(state->record_end({"", 4, "budget"}));
  EXPECT_TRUE(state->history().end);
  ASSERT_OK(state->record_start(""));
  EXPECT_FALSE(state->history().end);
}

TEST_F(SweepJournal, ArmsHaveFoldersOfTheirOwn) {
  auto state = open();
  ASSERT_OK(state);
  ASSERT_OK(state->record_turn(turn(*state, "a", 0, {"base", "new"})));
  EXPECT_EQ(records(SweepState::records_folder(results(), "s", "base")), std::set<std::string>{"a/0/base"});
  EXPECT_EQ(records(SweepState::records_folder(results(), "s", "new")), std::set<std::string>{"a/0/new"});
}

// Truncates the journal at every byte of its last entry. Whole entries count. The truncated entry does not,
// and the records of its turn are removed.
TEST_F(SweepJournal, AnIncompleteLastLineIsCutOff) {
  {
    auto state = open();
    ASSERT_OK(state->record_sweep(Json{{"command", "read"}}, 7));
    ASSERT_OK(state->record_turn(turn(*state, "a", 0)));
    ASSERT_OK(state->record_turn(turn(*state, "b", 0)));
  }
  const std::string whole = text();
  const size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  for (size_t cut = last; cut < whole.size(); ++cut) {
    write(whole.substr(0, cut));
    auto state = open();
    ASSERT_OK(state);
    EXPECT_TRUE(state->history().has_turn("a", 0));
    EXPECT_FALSE(state->history().has_turn("b", 0)) << cut;
    EXPECT_EQ(text(), whole.substr(0, last));
  }
  // After a crash a file may have its new length, but zeros as content.
  write(whole.substr(0, last) + std::string(whole.size() - last, '\0'));
  auto state = open();
  ASSERT_OK(state);
  EXPECT_EQ(state->history().turns.size(), 1U);
  ASSERT_OK(state->record_turn(turn(*state, "b", 0)));
  EXPECT_EQ(SweepState::read_history(results(), "s")->turns.size(), 2U);
}

TEST_F(SweepJournal, ADamagedLineInTheMiddleIsReported) {
  {
    auto state = open();
    ASSERT_OK(state->record_sweep(Json{{"command", "read"}}, 7));
    ASSERT_OK(state->record_turn(turn(*state, "a", 0)));
    ASSERT_OK(state->record_turn(turn(*state, "b", 0)));
  }
  std::string rotten = text();
  rotten[rotten.find("\"round\"")] = '_';
  write(rotten);
  EXPECT_TRUE(fails_with(Errc::corrupt, open(), "line 2"));
  EXPECT_TRUE(fails_with(Errc::corrupt, SweepState::read_history(results(), "s"), "line 2"));
}

TEST_F(SweepJournal, RunsThatNoEntryNamesAreRemoved) {
  {
    auto state = open();
    ASSERT_OK(state->record_turn(turn(*state, "a", 0)));
    turn(*state, "b", 0);  // its run ended, and then the sweep was killed
  }
  EXPECT_TRUE(fs::exists(SweepState::work_folder(results(), "s")));
  { ASSERT_OK(open()); }
  EXPECT_FALSE(fs::exists(SweepState::work_folder(results(), "s")));
  EXPECT_EQ(records(results()), std::set<std::string>{"a/0/"});
}

// A sweep was killed after the entry of a turn was durable and before the turn's files were moved. The next
// open() moves them, and a second one changes nothing.
TEST_F(SweepJournal, MovesAreFinishedAfterACrash) {
  SweepTurn moved;
  {
    auto state = open();
    moved = turn(*state, "a", 0, {"base", "new"});
    fs::copy(state->run_path(moved.runs[0].folder), scratch_.path() / "kept", fs::copy_options::recursive);
    ASSERT_OK(state->record_turn(moved));
  }
  // Put the first run's record back, as if it had not been moved.
  const fs::path base = SweepState::records_folder(results(), "s", "base");
  fs::remove(base / moved.runs[0].files[0]);
  fs::create_directories(SweepState::work_folder(results(), "s"));
  fs::copy(scratch_.path() / "kept", SweepState::work_folder(results(), "s") / moved.runs[0].folder,
           fs::copy_options::recursive);
  for (int again = 0; again < 2; ++again) {
    ASSERT_OK(open());
    EXPECT_EQ(records(base), std::set<std::string>{"a/0/base"});
    EXPECT_EQ(records(SweepState::records_folder(results(), "s", "new")), std::set<std::string>{"a/0/new"});
  }
}

TEST_F(SweepJournal, NeverReplacesAFile) {
  auto state = open();
  SweepTurn one = turn(*state, "a", 0);
  fs::create_directories(results());
  std::ofstream(results() / one.runs[0].files[0]) << "of somebody else\n";
  ASSERT_OK(state->record_turn(one));
  std::ifstream there(results() / one.runs[0].files[0]);
  std::string line;
  std::getline(there, line);
  EXPECT_EQ(line, "of somebody else");
  fs::remove(results() / one.runs[0].files[0]);
  EXPECT_EQ(records(results()), std::set<std::string>{"a/0/"});
}

TEST_F(SweepJournal, OnlyOneProcessCanOpenIt) {
  auto state = open();
  ASSERT_OK(state);
  EXPECT_TRUE(fails_with(Errc::busy, open(), "another process works on this sweep"));
  EXPECT_OK(SweepState::read_history(results(), "s")) << "looking is free";
  const SweepState moved = *std::move(state);
  EXPECT_ERRC(Errc::busy, open());
}

// SIGKILL at many different moments: in the end the records of every turn exist once.
TEST_F(SweepJournal, SurvivesKillsAtAnyTime) {
  constexpr uint64_t kTurns = 60;
  for (int attempt = 0; attempt < 400; ++attempt) {
    int steps[2];  // the child writes a byte after open() and after every turn
    ASSERT_EQ(::pipe(steps), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      auto state = open(10);
      if (!state.ok()) ::_exit(2);
      if (::write(steps[1], "", 1) != 1) ::_exit(4);
      for (uint64_t round = 0; round < kTurns; ++round) {
        if (state->history().has_turn("a", round)) continue;
        if (!state->record_turn(turn(*state, "a", round, {"x", "y"})).ok()) ::_exit(3);
        if (::write(steps[1], "", 1) != 1) ::_exit(4);
      }
      ::_exit(0);
    }
    ::close(steps[1]);
    // A third of the children may be killed while open() repairs the state. A third may be killed at any time
    // after open(), and a third after the first turn. The test waits for the child's bytes and not for a
    // fixed time, because the times differ by a factor of 100 between builds and machines.
    char byte = 0;
    for (int step = 0; step < attempt % 3; ++step) {
      EXPECT_LE(::read(steps[0], &byte, 1), 1);
    }
    ::usleep(static_cast<useconds_t>(500 + attempt * 257 % 9000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ::close(steps[0]);
    ASSERT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) != 0) << WEXITSTATUS(status);
    if (WIFEXITED(status)) break;
  }
  auto state = open(10);
  ASSERT_OK(state);
  uint64_t done = 0;
  for (uint64_t round = 0; round < kTurns; ++round) done += state->history().has_turn("a", round) ? 1U : 0U;
  EXPECT_EQ(state->history().turns.size(), done);
  EXPECT_GT(done, 0U);
  EXPECT_EQ(records(SweepState::records_folder(results(), "s", "x")).size(), done);
  EXPECT_EQ(records(SweepState::records_folder(results(), "s", "y")).size(), done);
}

}  // namespace
}  // namespace penstock
