// Threads: the test's thread calls everything. run() starts a thread for each rank and joins them all.
// Fork: train_is_killed() forks. The child runs the training and ends by _exit(), so it runs no destructor of
// the test.
// Locks: none here.
// Memory: the child allocates after the fork, so no other thread may exist at the fork.
// Signals: the fault `kill` ends the child with SIGKILL. The parent only waits for the child.
// Crash: append_synced() makes a line durable before the acknowledgement returns. So after a kill the log has
// every level that was acknowledged.
#include "miniapps/checkpoint/faults/world_testing.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "io_backends/core/random.hpp"
#include "io_backends/core/ranks/ranks_testing.hpp"
#include "miniapps/checkpoint/found_checkpoints.hpp"

namespace penstock {
namespace {

std::string setting(const char* name, const char* usual) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread
  return value == nullptr ? usual : value;
}

std::string error_text(const Result<void>& result) {
  return result.ok() ? "" : result.error().message() + "; ";
}

// Appends a line with one write and syncs it before the acknowledgement returns.
Result<void> append_synced(const std::string& file, const std::string& line) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return errno_error(errno, "cannot open", file);
  const bool written = ::write(fd, line.data(), line.size()) == ssize_t(line.size()) && ::fsync(fd) == 0;
  ::close(fd);
  return written ? success() : Result<void>(errno_error(errno, "cannot write", file));
}

// Mounts a tmpfs of 512 MiB. Without root, makes a new user namespace for it, if the machine allows that.
// Root makes no namespace: a new namespace would keep all existing mounts, including the disks of tests that
// run in parallel.
bool mount_tmpfs(const std::filesystem::path& folder) {
  std::filesystem::create_directory(folder);
  if (::geteuid() != 0 && (::unshare(CLONE_NEWNS | CLONE_NEWUSER) != 0 ||
                           ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0))
    return false;
  return ::mount("penstock", folder.c_str(), "tmpfs", 0, "size=512m") == 0;
}

}  // namespace

bool Outcome::all_succeeded() const {
  return opened.ok() && finalized.ok() &&
         std::all_of(saves.begin(), saves.end(),
                     [](const Result<CheckpointTimes>& one) { return one.ok() && !one->skipped; });
}

std::string Outcome::errors_text() const {
  std::string all = error_text(opened) + error_text(finalized);
  for (const Result<CheckpointTimes>& one : saves)
    if (!one.ok()) all += one.error().message() + "; ";
  return all;
}

int FaultMatrix::ranks() {
  return std::atoi(setting("PENSTOCK_FAULT_RANKS", "1").c_str());
}  // NOLINT(cert-err34-c)

void FaultMatrix::SetUp() {
  policy_.retry_after = std::chrono::milliseconds(5);
  policy_.keep_on_slow = 5;
  const std::string fs = setting("PENSTOCK_FAULT_FS", "tmpfs");
  if (fs == "tmpfs") {
    own_ = mount_tmpfs(scratch_.path() / "mount");
    if (own_) {
      root_ = scratch_.path() / "mount";
      return;
    }
    const TierFacts facts = inspect_path("/dev/shm");
    if (!facts.memory || ::access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no tmpfs at /dev/shm to write to";
    root_ = std::filesystem::path("/dev/shm") / scratch_.path().filename();
    std::filesystem::create_directory(root_);
    return;
  }
  Result<std::unique_ptr<LoopDisk>> disk = LoopDisk::make(fs);
  if (!disk.ok() && disk.error().code == Errc::unsupported) GTEST_SKIP() << disk.error().message();
  ASSERT_TRUE(disk.ok()) << disk.error().message();
  disk_ = *std::move(disk);
  root_ = disk_->path();
  own_ = true;
}

void FaultMatrix::TearDown() {
  forget_stores();
  if (disk_ != nullptr || root_.empty()) return;
  if (own_)
    ::umount2(root_.c_str(), MNT_DETACH);
  else
    std::filesystem::remove_all(root_);
}

void FaultMatrix::forget_stores() {
  // A store borrows its tier, so the stores are closed first.
  kept_stores_.clear();
  kept_tiers_.clear();
}

void FaultMatrix::reset_tiers() {
  forget_stores();
  for (const std::filesystem::path& folder : {slow_root(), fast_root()}) std::filesystem::remove_all(folder);
  std::filesystem::remove(scratch_.path() / "acknowledged");
}

Tier FaultMatrix::open(const std::filesystem::path& root, const std::string& options) const {
  Tier tier =
      open_tier(root.filename().string() + "=posix:" + root.string() + options, kNoNamedTiers).value();
  if (wrap_) wrap_(tier);
  return tier;
}

Tier FaultMatrix::slow(const std::string& options) const {
  return open(slow_root(), options);
}

Tier FaultMatrix::fast(const std::string& options) const {
  return open(fast_root(), options);
}

std::filesystem::path FaultMatrix::checkpoint(const std::filesystem::path& store, uint64_t step) const {
  return store / CheckpointStore::folder(policy_.run, {step, 0});
}

std::filesystem::path FaultMatrix::file_of(const std::filesystem::path& store, uint64_t step,
                                           int rank) const {
  return checkpoint(store, step) / ("rank-" + std::to_string(rank) + ".bin");
}

std::vector<std::byte> FaultMatrix::state(uint64_t step, int rank) const {
  const RandomStream random(step, uint64_t(rank));
  std::vector<std::byte> all(bytes_);
  for (size_t at = 0; at < all.size(); at += sizeof(uint64_t)) {
    const uint64_t bits = random.bits(at);
    std::memcpy(all.data() + at, &bits, std::min(sizeof bits, all.size() - at));
  }
  return all;
}

Outcome FaultMatrix::run(const TrainingSetup& trained) const {
  Outcome outcome;
  const Tier slow_tier = slow(trained.slow_options);
  const Tier fast_tier = fast(trained.fast_options);
  const std::string log = (scratch_.path() / "acknowledged").string();
  const auto acknowledge = [&](const CheckpointId& id, Reached level) {
    return append_synced(log, std::to_string(id.step) + " " + std::string(reached_name(level)) + "\n");
  };
  RankThreads::run(ranks(), [&](Communicator& all) {
    Result<std::unique_ptr<Checkpointer>> saver =
        Checkpointer::open(policy_, slow_tier, trained.fast ? &fast_tier : nullptr, all, acknowledge);
    if (all.root()) outcome.opened = outcome_of(saver);
    if (!saver.ok()) return;
    for (const uint64_t step : trained.steps) {
      std::vector<std::byte> bytes = state(step, all.rank());
      Result<CheckpointTimes> saved =
          (*saver)->save({.step = step, .files = {{"rank-" + std::to_string(all.rank()) + ".bin", bytes}}});
      std::fill(bytes.begin(), bytes.end(), std::byte{0});  // the training continues
      const bool stop = !saved.ok() && trained.stops_at_error;
      if (all.root()) outcome.saves.push_back(std::move(saved));
      if (all.root() && trained.after_save) trained.after_save(step);
      if (stop) break;
    }
    if (trained.finalize.count() > 0) {
      const Result<void> over = finalize(**saver, trained, all);
      if (all.root()) outcome.finalized = over;
    }
    if (!all.root()) return;
    outcome.counts = (*saver)->counts();
    outcome.times = (*saver)->times();
  });
  return outcome;
}

// Collective. Calls finalize() for short times, and asks `stop_waiting` between these calls whether to stop.
Result<void> FaultMatrix::finalize(Checkpointer& saver, const TrainingSetup& trained,
                                   Communicator& all) const {
  if (!trained.stop_waiting) return saver.finalize(trained.finalize);
  for (;;) {
    Result<void> over = saver.finalize(std::chrono::milliseconds(5));
    uint64_t stop_waiting = all.root() && trained.stop_waiting() ? 1 : 0;
    PENSTOCK_TRY(all.all_reduce(std::span(&stop_waiting, 1), Reduction::max));
    if (over.ok() || over.error().code != Errc::timed_out || stop_waiting != 0) return over;
  }
}

Outcome FaultMatrix::train(const TrainingSetup& trained) {
  return run(trained);
}

bool FaultMatrix::train_is_killed(const TrainingSetup& trained) {
  // The child opens the stores anew. It shares with the parent only the files.
  const pid_t child = ::fork();
  if (child == 0) {
    run(trained);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
    return true;
  }
  EXPECT_EQ(status, 0);
  return false;
}

uint64_t FaultMatrix::last_acknowledged(Reached level) const {
  std::ifstream log(scratch_.path() / "acknowledged");
  uint64_t last = 0;
  std::string reached;
  for (uint64_t step = 0; log >> step >> reached;)
    if ((reached == "durable" ? Reached::durable : Reached::fast) >= level) last = std::max(last, step);
  return last;
}

Result<Restart> FaultMatrix::try_restart(bool quarantine_wrong) {
  forget_stores();
  std::vector<CheckpointStore*> stores;
  for (const bool is_fast : {true, false}) {
    kept_tiers_.push_back(std::make_unique<Tier>(is_fast ? fast() : slow()));
    Result<std::unique_ptr<CheckpointStore>> store = CheckpointStore::open(*kept_tiers_.back());
    if (!store.ok()) {
      EXPECT_EQ(store.error().code, Errc::not_found) << store.error().message();
      continue;
    }
    stores.push_back(store->get());
    kept_stores_.push_back(*std::move(store));
  }
  return choose_restart(stores, policy_.run, {.quarantine_wrong = quarantine_wrong});
}

Restart FaultMatrix::restart(bool quarantine_wrong) {
  Result<Restart> chosen = try_restart(quarantine_wrong);
  EXPECT_TRUE(chosen.ok()) << (chosen.ok() ? "" : chosen.error().message());
  return chosen.ok() ? *std::move(chosen) : Restart{};
}

void FaultMatrix::expect_bytes(const Restart& chosen) {
  ASSERT_EQ(chosen.manifest.files.size(), size_t(ranks()));
  for (const CheckpointFile& file : chosen.manifest.files) {
    const std::vector<std::byte> wanted = state(chosen.manifest.id.step, int(file.rank));
    const Result<void> read = chosen.store->read_file(
        policy_.run, chosen.manifest.id, file, [&](uint64_t offset, std::span<const std::byte> bytes) {
          EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), wanted.begin() + ptrdiff_t(offset)));
          return success();
        });
    EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message());
  }
}

uint64_t FaultMatrix::restart_step(bool quarantine_wrong) {
  const Restart chosen = restart(quarantine_wrong);
  if (chosen.store == nullptr) return 0;
  expect_bytes(chosen);
  return chosen.manifest.id.step;
}

void FaultMatrix::expect_nothing_pending(const std::filesystem::path& store) {
  for (const char* const folder : {"tmp", "reserved", "trash"}) {
    if (!std::filesystem::exists(store / folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(store / folder))
      ADD_FAILURE() << "left behind: " << entry.path();
  }
}

void FaultMatrix::expect_nothing_lost() {
  EXPECT_GE(restart_step(), last_acknowledged(Reached::fast));
  const Outcome again = train({.steps = {}});
  EXPECT_TRUE(again.all_succeeded()) << again.errors_text();
  if (!wrap_)
    for (const auto& store : {slow_root(), fast_root()}) expect_nothing_pending(store);
  EXPECT_GE(restart_step(), last_acknowledged(Reached::fast));
}

void FaultMatrix::expect_nothing_lost_without_fast_tier() {
  wipe_fast();
  EXPECT_GE(restart_step(), last_acknowledged(Reached::durable));
  const Outcome again = train({.steps = {}});
  EXPECT_TRUE(again.all_succeeded()) << again.errors_text();
  expect_nothing_pending(slow_root());
}

std::vector<uint64_t> FaultMatrix::whole_steps(const Tier& tier) {
  const auto store = CheckpointStore::open(tier).value();
  const std::vector<ListedCheckpoint> found = list_checkpoints(*store, "default").value();
  std::vector<uint64_t> all;
  for (const ListedCheckpoint& one : found)
    if (one.manifest.ok() && store->verify("default", *one.manifest).ok()) all.push_back(one.id.step);
  return all;
}

uint64_t FaultMatrix::kill_at_each(const std::string& scope, bool on_fast, TrainingSetup trained) {
  constexpr uint64_t kMost = 200;
  for (uint64_t n = 1; n <= kMost; ++n) {
    reset_tiers();
    (on_fast ? trained.fast_options : trained.slow_options) =
        ",fail=" + scope + ":kill@#" + std::to_string(n);
    const bool killed = train_is_killed(trained);
    SCOPED_TRACE(scope + " killed at operation " + std::to_string(n));
    expect_nothing_lost();
    expect_nothing_lost_without_fast_tier();
    if (!killed) return n - 1;
  }
  ADD_FAILURE() << "more than " << kMost << " operations of " << scope;
  return kMost;
}

void FaultMatrix::overwrite(const std::filesystem::path& file, uint64_t offset, const std::string& bytes) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(static_cast<std::streamoff>(offset));
  stream << bytes;
  stream.close();
  EXPECT_TRUE(stream.good()) << file;
}

}  // namespace penstock
