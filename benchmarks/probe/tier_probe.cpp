#include "benchmarks/probe/tier_probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "benchmarks/probe/metadata_probe.hpp"
#include "benchmarks/probe/probe_time.hpp"
#include "benchmarks/probe/write_probe.hpp"
#include "benchmarks/read/block_manifest.hpp"
#include "benchmarks/read/read_engine.hpp"
#include "benchmarks/read/read_team.hpp"
#include "benchmarks/read/yardsticks.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"
#include "io_backends/tiers/temporary_folder.hpp"

namespace penstock {
namespace {

using Note = std::function<void(std::string_view)>;

constexpr uint64_t kBlockBytes = 1U << 20U;
constexpr uint64_t kSmallFileBytes = 112U << 10U;
// The most writers of one rank. Each writer is a thread with its own block of memory.
constexpr uint64_t kMostWriters = 256;

// The block size as it appears in probe names: "4k", "1m".
std::string block_name(uint64_t bytes) {
  if (bytes % (1U << 20U) == 0) return fmt::format("{}m", bytes >> 20U);
  return bytes % 1024 == 0 ? fmt::format("{}k", bytes >> 10U) : fmt::format("{}", bytes);
}

class TierProbe {
 public:
  TierProbe(Tier& tier, const ProbeSettings& settings, Communicator& ranks, const Note& note)
      : tier_(tier),
        settings_(settings),
        ranks_(ranks),
        team_(ranks),
        note_(note),
        most_clients_(*std::max_element(settings.clients.begin(), settings.clients.end())),
        folder_(tier, kProbeFolderPrefix, settings.warn) {
    for (const unsigned clients : settings.clients) cells_.emplace_back().clients = clients;
  }

  // Goes through all probes without measuring, and adds each to the plan.
  void plan(bool may_write) {
    // Remove the folders of killed probes. One rank of each node does it, because each node may have its own
    // device.
    if (may_write && ranks_.rank_on_node() == 0)
      sweep_dead_folders(tier_, kProbeFolderPrefix, settings_.log, settings_.warn);
    if (may_write && may_try_speed(tier_) && check_free_space().ok()) {
      folder_.occupy();
      speed_ = estimate_speed(tier_, settings_, folder_.folder("look"));
    }
    is_planning_ = true;
    static_cast<void>(measure());
    for (const std::string_view kind : kProbeKinds) {
      const uint64_t probes = probes_by_kind_[kind];
      settings_.plan->add({.name = std::string(kind),
                           .asked = probes,
                           .each = probe_time(kind, settings_, speed_),
                           .least = kind == kProbeFiles || kind == kProbeSequentialReads ? probes : 0,
                           .group = probes});
    }
  }

  Result<std::vector<ProbeCell>> run() {
    PENSTOCK_TRY(team_.all_ok(check_free_space()));
    folder_.occupy();
    const Result<void> outcome = measure();
    if (!outcome.ok() && !team_.stopped() && outcome.error().code != Errc::interrupted)
      return outcome.error();
    return std::move(cells_);
  }

 private:
  // Whether to make this probe. While it plans, it only counts the probe.
  bool begin(std::string_view kind, ProbeCell& cell, std::string_view probe_name) {
    if (is_planning_) {
      ++probes_by_kind_[kind];
      return false;
    }
    if (!settings_.plan || settings_.plan->begin(kind, describe(cell, probe_name))) return true;
    cell.left_out[std::string(probe_name)] = settings_.plan->limit_text() + " leaves no time for it";
    return false;
  }

  // The files of the reads are not left out, unless the measurement has become much slower than planned.
  Result<void> no_time() const {
    if (is_planning_) return success();
    return make_error(Errc::timed_out, "{} left no time for the files that the probes read",
                      settings_.plan->limit_text());
  }

  using RunPass = std::function<RunTally(const ReadSpec&)>;

  // Fails if the tier has too little free space. If the tier is on a network, each rank checks the space that
  // all ranks need. Otherwise only the ranks of one node share the space. Each rank checks the space for
  // itself and for the ranks before it on its node. So the last rank of a node checks the space for the whole
  // node.
  Result<void> check_free_space() {
    const Result<uint64_t> free_bytes = tier_.backend->names().free_bytes();
    if (!free_bytes.ok()) return success();  // unknown; if there is too little space, the writes will fail
    const int ranks_sharing = tier_.facts.network ? ranks_.size() : ranks_.rank_on_node() + 1;
    const uint64_t needed_bytes = 2 * settings_.bytes * uint64_t(ranks_sharing);
    if (*free_bytes / 11 * 10 >= needed_bytes) return success();
    return make_error(Errc::no_space, "'{}' has {} free, and the probe needs {}: lower --probe-size",
                      tier_.name, format_size(*free_bytes), format_size(needed_bytes));
  }

  // Fails with `interrupted` if any rank got a signal. All ranks learn of it at the same point, so all stop
  // after the same probe.
  Result<void> check_stopped() const { return team_.stopped() ? check_interrupt() : success(); }

  // Measures all probes of all cells (a cell is one number of clients). First all cells do their temporary
  // writes. Then each cell writes its large files. The cell with the most clients is the last, and the read
  // probes of all cells read its files.
  Result<void> measure() {
    std::vector<ProbeCell*> sorted_cells;
    for (ProbeCell& cell : cells_) sorted_cells.push_back(&cell);
    std::sort(sorted_cells.begin(), sorted_cells.end(),
              [](const ProbeCell* a, const ProbeCell* b) { return a->clients < b->clients; });
    for (ProbeCell* cell : sorted_cells) PENSTOCK_TRY(measure_temporary_writes(*cell));
    for (ProbeCell* cell : sorted_cells) PENSTOCK_TRY(measure_large_files(*cell));
    PENSTOCK_TRY(team_.all_ok(make_small_files()));
    const uint64_t bytes_each = large_file_bytes(most_clients_);
    std::vector<Entry> large_files;
    for (unsigned i = 0; i < most_clients_; ++i)
      large_files.push_back({folder_.object("large", i), bytes_each});
    PENSTOCK_ASSIGN(const BlockObjects blocks, block_objects(large_files, kBlockBytes));
    PENSTOCK_ASSIGN(const BlockObjects files, block_objects(small_files_, 0));
    for (ProbeCell& cell : cells_) {
      PENSTOCK_TRY(measure_depth(cell, "read.sequential.1m.1", blocks, 1, SampleOrder::sequential));
      PENSTOCK_TRY(measure_best_loop(cell, "read.sequential.1m.best", blocks, SampleOrder::sequential));
      for (const unsigned depth : depths_from_one())
        PENSTOCK_TRY(measure_depth(cell, fmt::format("read.small_files.112k.{}", depth), files, depth));
      PENSTOCK_TRY(measure_best_loop(cell, "read.small_files.112k.best", files, SampleOrder::shuffled));
    }
    for (const uint64_t block : settings_.block_sizes) {
      PENSTOCK_ASSIGN(const BlockObjects set, block_objects(large_files, block));
      for (ProbeCell& cell : cells_)
        for (const unsigned depth : settings_.depths)
          PENSTOCK_TRY(
              measure_depth(cell, fmt::format("read.random.{}.{}", block_name(block), depth), set, depth));
    }
    for (ProbeCell& cell : cells_) PENSTOCK_TRY(measure_metadata(cell));
    if (!is_planning_ && settings_.plan != nullptr) settings_.plan->end();
    return success();
  }

  uint64_t large_file_bytes(unsigned clients) const {
    return std::max<uint64_t>(settings_.bytes / clients / kBlockBytes, 1) * kBlockBytes;
  }

  // Depth 1, and the other depths of the settings.
  std::vector<unsigned> depths_from_one() const {
    std::vector<unsigned> depths{1};
    for (const unsigned depth : settings_.depths)
      if (depth > 1) depths.push_back(depth);
    return depths;
  }

  // The block sizes of the write probes: 1 MiB, and the block sizes of the random reads.
  std::set<uint64_t> write_blocks() const {
    std::set<uint64_t> blocks(settings_.block_sizes.begin(), settings_.block_sizes.end());
    blocks.insert(kBlockBytes);
    return blocks;
  }

  // Does all write probes of the cell except the one whose files the read probes use. Each probe removes its
  // files before the next one starts. So the tier never holds more than the files of one pass, and those
  // files of the previous pass that are not replaced yet.
  Result<void> measure_temporary_writes(ProbeCell& cell) {
    for (const uint64_t block : write_blocks()) {
      if (block == kBlockBytes) continue;
      const WriteShape shape{
          .writers = cell.clients, .object_bytes = large_file_bytes(cell.clients), .block_bytes = block};
      PENSTOCK_TRY(measure_temporary(cell, fmt::format("write.sequential.{}.1", block_name(block)), shape));
    }
    for (const unsigned depth : settings_.depths)
      if (depth > 1) PENSTOCK_TRY(measure_write_depth(cell, depth));
    if (!tier_.backend->caps().write_at) {
      cell.left_out["write.random"] = "the back end writes objects only from the first byte to the last";
    } else {
      for (const uint64_t block : write_blocks()) {
        const WriteShape shape{.writers = cell.clients,
                               .object_bytes = large_file_bytes(cell.clients),
                               .block_bytes = block,
                               .random_order = true};
        PENSTOCK_TRY(measure_temporary(cell, fmt::format("write.random.{}.1", block_name(block)), shape));
      }
    }
    for (const unsigned depth : depths_from_one()) PENSTOCK_TRY(measure_small_writes(cell, depth));
    return success();
  }

  // Returns how many threads of this rank write in a write probe of this depth. If they are more than `most`
  // or kMostWriters, it returns nothing and adds the reason to `left_out`. `what` is the least that a thread
  // must write, as text for the reason: "1 MiB".
  std::optional<unsigned> writers(ProbeCell& cell, const std::string& probe_name, unsigned depth,
                                  uint64_t most, std::string_view what) const {
    const uint64_t writer_count = uint64_t{cell.clients} * depth;
    if (writer_count <= std::min(most, kMostWriters)) return unsigned(writer_count);
    cell.left_out[probe_name] =
        writer_count > kMostWriters
            ? fmt::format("{} writers per rank; the limit is {}", writer_count, kMostWriters)
            : fmt::format("--probe-size has less than {} for each of {} writers", what, writer_count);
    return std::nullopt;
  }

  Result<void> measure_write_depth(ProbeCell& cell, unsigned depth) {
    const std::string probe_name = fmt::format("write.sequential.1m.{}", depth);
    const auto count = writers(cell, probe_name, depth, settings_.bytes / kBlockBytes, "1 MiB");
    if (!count) return success();
    return measure_temporary(cell, probe_name, {.writers = *count, .object_bytes = large_file_bytes(*count)});
  }

  Result<void> measure_small_writes(ProbeCell& cell, unsigned depth) {
    const std::string probe_name = fmt::format("write.small_files.112k.{}", depth);
    const uint64_t most_files = std::max<uint64_t>(settings_.bytes / kSmallFileBytes, cell.clients);
    const auto count = writers(cell, probe_name, depth, most_files, "one file");
    if (!count) return success();
    return measure_temporary(cell, probe_name,
                             {.writers = *count,
                              .objects_per_writer = most_files / *count,
                              .object_bytes = kSmallFileBytes,
                              .block_bytes = kSmallFileBytes,
                              .count_objects = true});
  }

  // Makes a write probe. Each writer of each rank has a different seed, because some storage deduplicates
  // equal bytes.
  WriteProbe write_probe(const WriteShape& shape, std::string_view objects, uint64_t first_seed) {
    return {*tier_.backend, shape, [this, objects](uint64_t n) { return folder_.object(objects, n); },
            [this, first_seed](unsigned writer) {
              return settings_.seed + (uint64_t(ranks_.rank()) << 16U) + first_seed + writer;
            }};
  }

  Result<void> measure_temporary(ProbeCell& cell, const std::string& probe_name, const WriteShape& shape) {
    if (!begin(kProbeWrites, cell, probe_name)) return success();
    WriteProbe probe = write_probe(shape, "written", 2000);
    PENSTOCK_TRY(measure_writes(cell, probe_name, probe));
    return team_.all_ok(probe.remove());
  }

  Result<void> measure_large_files(ProbeCell& cell) {
    if (!begin(kProbeFiles, cell, "write.sequential.1m.1")) return no_time();
    WriteProbe probe = write_probe(
        {.writers = cell.clients, .object_bytes = large_file_bytes(cell.clients), .whole_passes = true},
        "large", 0);
    return measure_writes(cell, "write.sequential.1m.1", probe);
  }

  Result<void> measure_writes(ProbeCell& cell, const std::string& probe_name, WriteProbe& probe) {
    ProbeFigure& figure = cell.figures.emplace_back();
    figure.name = probe_name;
    show_progress(cell, probe_name);
    // Repeat 0 is not counted: the first use of memory and of free blocks is slow.
    for (size_t repeat = 0; repeat <= settings_.repeats; ++repeat) {
      tier_.activity->repeat = repeat;
      ReadSpec spec{.threads = cell.clients, .max_passes = repeat == 0 ? 1U : 0U};
      spec.end = Duration{settings_.min_time};
      const RunTally tally = team_.run(spec, [&](const ReadSpec& mine) { return counted(probe.run(mine)); });
      PENSTOCK_TRY(check_stopped());
      if (tally.failure) return *tally.failure;
      if (repeat == 0) continue;
      add(figure, tally);
      judge_time(cell, figure, tally.wall_s,
                 fmt::format("the limit is {} writes of --probe-size", WriteProbe::kMostPasses));
    }
    return success();
  }

  Result<void> make_small_files() {
    if (note_) note_("creating small files");
    const uint64_t files_each = std::max<uint64_t>(settings_.bytes / kSmallFileBytes / most_clients_, 1);
    for (uint64_t i = 0; i < files_each * most_clients_; ++i)
      small_files_.push_back({folder_.object("small", i), kSmallFileBytes});
    if (!begin(kProbeFiles, cells_.back(), "small files")) return no_time();
    WriteProbe probe = write_probe({.writers = most_clients_,
                                    .objects_per_writer = files_each,
                                    .object_bytes = kSmallFileBytes,
                                    .block_bytes = kSmallFileBytes,
                                    .whole_passes = true,
                                    .durability = Durability::visible},
                                   "small", 1000);
    RunTally tally = probe.run({.threads = most_clients_, .max_passes = 1});
    return tally.failure ? Result<void>(*std::move(tally.failure)) : success();
  }

  ReadWork work(const BlockObjects& set) const {
    return {.manifest = &set.manifest, .samples = &set.samples, .backend = tier_.backend.get()};
  }

  Result<void> measure_depth(ProbeCell& cell, std::string_view name, const BlockObjects& set, unsigned depth,
                             SampleOrder order = SampleOrder::shuffled) {
    const std::string_view kind = name.starts_with("read.random")  ? kProbeRandomReads
                                  : name.starts_with("read.small") ? kProbeSmallFileReads
                                                                   : kProbeSequentialReads;
    if (!begin(kind, cell, name)) return success();
    // For cold reads, make a new engine for each pass, which opens the files again. An engine may keep files
    // mapped, and a mapped file cannot be evicted from the page cache.
    const ReadOptions options{
        .threads = {cell.clients}, .depth = depth, .order = order, .seed = settings_.seed};
    std::unique_ptr<ReadEngine> engine;
    const auto make_engine = [&]() -> Result<void> {
      auto new_engine = ReadEngine::make(work(set), options);
      PENSTOCK_TRY(team_.all_ok(outcome_of(new_engine)));
      engine = *std::move(new_engine);
      return success();
    };
    ProbeFigure figure;
    figure.name = name;
    PENSTOCK_TRY(measure_reads(cell, figure, set, [&](const ReadSpec& pass) {
      RunTally tally;
      if (engine == nullptr) {
        if (Result<void> engine_made = make_engine(); !engine_made.ok()) {
          tally.failure = std::move(engine_made).error();
          return tally;
        }
      }
      tally = engine->run(pass);
      if (settings_.cache == CacheRequest::cold) engine.reset();
      return tally;
    }));
    cell.figures.push_back(std::move(figure));
    return success();
  }

  // Measures every loop of the probe series once, and repeats the fastest. The series also has the largest
  // depth of the settings. Otherwise the probe of that depth could be faster than "best".
  Result<void> measure_best_loop(ProbeCell& cell, std::string_view name, const BlockObjects& set,
                                 SampleOrder order) {
    if (!begin(kProbeBestLoops, cell, name)) return success();
    const std::vector<unsigned> depths = depths_from_one();
    const ReadOptions options{
        .depth = *std::max_element(depths.begin(), depths.end()), .order = order, .seed = settings_.seed};
    Yardsticks yardsticks(work(set), options);
    const auto measure_once = [&](const LoopShape& shape, const ReadSpec& pass) {
      const uint64_t uncounted_before = yardsticks.uncounted_bytes();
      RunTally tally = yardsticks.probe(shape, pass);
      cell.uncounted_bytes += yardsticks.uncounted_bytes() - uncounted_before;
      return tally;
    };
    std::optional<LoopShape> best_loop;
    double best_rate = 0;
    for (const LoopShape& shape : yardsticks.probe_series(cell.clients)) {
      ProbeFigure single_figure;
      single_figure.name = name;
      PENSTOCK_TRY(measure_reads(
          cell, single_figure, set, [&](const ReadSpec& pass) { return measure_once(shape, pass); }, 1));
      if (single_figure.bytes_per_s.empty() || single_figure.bytes_per_s.front() <= best_rate) continue;
      best_rate = single_figure.bytes_per_s.front();
      best_loop = shape;
    }
    if (!best_loop) return success();
    ProbeFigure figure;
    figure.name = name;
    figure.loop = best_loop->name();
    PENSTOCK_TRY(measure_reads(cell, figure, set,
                               [&](const ReadSpec& pass) { return measure_once(*best_loop, pass); }));
    cell.figures.push_back(std::move(figure));
    return success();
  }

  Result<void> measure_reads(ProbeCell& cell, ProbeFigure& figure, const BlockObjects& set,
                             const RunPass& pass, size_t repeats = 0) {
    CacheControl cache(tier_, set.manifest, set.samples, settings_.cache, ColdMethod::evict, most_clients_);
    cache.set_prepares_on_each_rank();
    for (size_t repeat = 0; repeat < (repeats == 0 ? settings_.repeats : repeats); ++repeat) {
      PENSTOCK_TRY(check_stopped());
      tier_.activity->repeat = repeat + 1;
      RepeatPlan plan{.progress_text = figure.name, .spec = {.threads = cell.clients}};
      plan.spec.end = Duration{settings_.min_time};
      plan.spec.first_pass = repeat;  // so that each repeat has a different order
      plan.run = [&](const ReadSpec& spec, const ReadObserver&) { return counted(pass(spec)); };
      plan.note = [&](std::string_view what) { show_progress(cell, what); };
      const std::optional<RepeatFigures> figures = run_repeat(team_, tier_, cache, plan);
      PENSTOCK_TRY(check_stopped());
      if (!figures) return success();
      if (figures->tally.failure) return *figures->tally.failure;
      cell.cache = figures->cache;
      judge(cell, figure, figures->verdict, figures->reason);
      add(figure, figures->tally);
    }
    cell.uncounted_bytes += cache.warmed_bytes();
    return success();
  }

  // Adds what this rank did to the tier's activity, and returns it.
  RunTally counted(RunTally tally) const {
    tier_.activity->operations += tally.samples;
    tier_.activity->errors += tally.errors + (tally.failure ? 1 : 0);
    return tally;
  }

  static void add(ProbeFigure& figure, const RunTally& tally) {
    const auto rate = [&](uint64_t amount) { return tally.wall_s > 0 ? double(amount) / tally.wall_s : 0.0; };
    figure.bytes_per_s.push_back(rate(tally.bytes));
    figure.ops_per_s.push_back(rate(tally.samples));
    figure.ranks.push_back(tally.ranks);
  }

  // Measures the metadata operations. Each repeat creates and removes objects alternately until the creations
  // have lasted min_time. Then it creates objects once more, without measuring that, for the probes of stat,
  // open and list.
  Result<void> measure_metadata(ProbeCell& cell) {
    if (!begin(kProbeMetadata, cell, "metadata")) return success();
    using Call = RunTally (MetadataProbe::*)(const ReadSpec&);
    constexpr std::pair<std::string_view, Call> kCalls[] = {{"metadata.create", &MetadataProbe::create},
                                                            {"metadata.remove", &MetadataProbe::remove},
                                                            {"metadata.stat", &MetadataProbe::stat},
                                                            {"metadata.open", &MetadataProbe::open},
                                                            {"metadata.list", &MetadataProbe::list}};
    MetadataProbe probe(*tier_.backend, folder_.folder("metadata"), cell.clients);
    show_progress(cell, "metadata");
    std::vector<ProbeFigure> figures(std::size(kCalls));
    for (size_t i = 0; i < figures.size(); ++i) figures[i].name = kCalls[i].first;
    const auto run_call = [&](size_t call, RunTally& tally) -> Result<void> {
      ReadSpec spec{.threads = cell.clients, .max_passes = 1};
      spec.end = Duration{settings_.min_time};
      tally.append(
          team_.run(spec, [&](const ReadSpec& mine) { return counted((probe.*kCalls[call].second)(mine)); }));
      PENSTOCK_TRY(check_stopped());
      return tally.failure ? Result<void>(*tally.failure) : success();
    };
    const double wanted_s = std::chrono::duration<double>(settings_.min_time).count();
    for (size_t repeat = 0; repeat < settings_.repeats; ++repeat) {
      tier_.activity->repeat = repeat + 1;
      std::vector<RunTally> tallies(figures.size());
      do {
        for (const size_t call : {0U, 1U}) PENSTOCK_TRY(run_call(call, tallies[call]));
        // Only the creations count here: removals may take much less time.
      } while (tallies[0].wall_s < wanted_s);
      RunTally not_counted;
      PENSTOCK_TRY(run_call(0, not_counted));
      for (size_t call = 2; call < figures.size(); ++call) PENSTOCK_TRY(run_call(call, tallies[call]));
      PENSTOCK_TRY(run_call(1, not_counted));
      for (size_t i = 0; i < figures.size(); ++i)
        figures[i].ops_per_s.push_back(double(tallies[i].samples) / tallies[i].wall_s);
    }
    for (ProbeFigure& figure : figures) cell.figures.push_back(std::move(figure));
    return success();
  }

  void judge_time(ProbeCell& cell, ProbeFigure& figure, double wall_s, std::string_view why) const {
    const double wanted_s = std::chrono::duration<double>(settings_.min_time).count();
    if (wall_s < wanted_s)
      judge(cell, figure, Verdict::short_time,
            fmt::format("{} lasted {:.3g} s, less than {:.3g} s: {}", figure.name, wall_s, wanted_s, why));
  }

  static void judge(ProbeCell& cell, ProbeFigure& figure, Verdict verdict, std::string_view reason) {
    figure.verdict = std::max(figure.verdict, verdict);
    add_verdict(cell.verdict, cell.reason, verdict, reason);
  }

  std::string describe(const ProbeCell& cell, std::string_view what) const {
    return fmt::format("{}, {}: {}", tier_.name, count_of(cell.clients, "client"), what);
  }
  void show_progress(const ProbeCell& cell, std::string_view what) const {
    if (note_) note_(describe(cell, what));
  }

  Tier& tier_;
  const ProbeSettings& settings_;
  Communicator& ranks_;
  ReadTeam team_;
  const Note& note_;
  const unsigned most_clients_;
  std::vector<ProbeCell> cells_;
  std::vector<Entry> small_files_;
  bool is_planning_ = false;
  std::map<std::string_view, uint64_t> probes_by_kind_;  // while it plans
  ProbeSpeed speed_;
  TemporaryFolder folder_;
};

}  // namespace

Result<std::vector<ProbeCell>> probe_tier(Tier& tier, const ProbeSettings& settings, Communicator& ranks,
                                          const Note& note) {
  return TierProbe(tier, settings, ranks, note).run();
}

void plan_probe(Tier& tier, const ProbeSettings& settings, Communicator& ranks, bool may_write) {
  TierProbe(tier, settings, ranks, {}).plan(may_write);
}

}  // namespace penstock
