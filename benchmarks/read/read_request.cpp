#include "benchmarks/read/read_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "benchmarks/read/block_manifest.hpp"
#include "datagen/codec/png.hpp"
#include "datagen/corpus/corpus_samples.hpp"
#include "datagen/corpus/shared_corpus.hpp"
#include "datagen/format/sample_opener.hpp"
#include "datagen/staging/overlay.hpp"

namespace penstock {
namespace {

constexpr std::uint64_t kMostThreads = 1024;
constexpr std::uint64_t kObjectsInspected = 256;

// Collective reads come one after the other on every rank, and as many on each.
Result<void> set_collective(const Options& options, SweepSettings& settings) {
  settings.collective = options.flag("collective");
  if (!settings.collective) return success();
  if (!options.given("threads")) settings.threads = {1};
  const bool alone = settings.threads == std::vector<unsigned>{1} && settings.depth == 1;
  if (alone && settings.order != SampleOrder::physical && settings.duration.count() == 0) return success();
  return make_error(
      Errc::invalid_argument,
      "--collective reads one sample at a time on every rank, in whole passes: leave --threads, "
      "--depth, --duration, --stonewall and --order physical out; use more ranks for more readers");
}

Result<void> check_collective(const Tier& tier) {
  if (tier.backend->caps().collective) return success();
  return make_error(
      Errc::invalid_argument,
      fmt::format("tier '{}' has no collective reads: only the back end mpiio has (mpiio:PATH)", tier.name));
}

// Checks that some of the corpus's objects, spread over all of it, exist: a tier without a copy of the corpus
// must fail before anything is measured.
Result<void> look_for_objects(Tier& tier, const SampleList& samples, std::string_view corpus) {
  const std::uint64_t looks = std::min<std::uint64_t>(samples.objects(), kObjectsInspected);
  for (std::uint64_t i = 0; i < looks; ++i) {
    const std::string_view name = samples.name(static_cast<std::uint32_t>(i * samples.objects() / looks));
    const Result<Entry> there = tier.backend->names().stat(name);
    if (!there.ok() && there.error().code == Errc::not_found && tier.backend_name == "mem")
      return make_error(
          Errc::not_found,
          fmt::format(
              "tier '{}' is memory of this process, which is empty when a command begins: read from a folder "
              "in /dev/shm for a tier of memory",
              tier.name));
    if (!there.ok() && there.error().code == Errc::not_found)
      return make_error(Errc::not_found,
                        fmt::format("tier '{}' lacks '{}' of the corpus; put a copy there first: "
                                    "penstock copy {} --to {}",
                                    tier.name, name, corpus, tier.spec));
  }
  return success();
}

Result<void> check_codec(const Corpus& corpus) {
  PENSTOCK_TRY(SampleOpener::make(corpus.manifest.facts().codec));
  const std::string_view codec = payload_codec(corpus.manifest.facts().codec);
  if (codec == "png") return png_available();
  if (codec.empty() || codec == "mixed" || codec == "jpeg") return success();
  if (corpus.manifest.facts().recipe == "scan") return success();  // 'raw' by its names: the bytes will tell
  return make_error(Errc::invalid_argument,
                    fmt::format("'{}' holds {} samples; --decode full takes jpeg and png: leave it out, and "
                                "the bytes alone are read",
                                corpus.name, codec));
}

// What only one process can do, and what too many cannot share.
Result<void> check_ranks(const CommandContext& context) {
  const int ranks = context.communicator.size();
  if (ranks == 1 && context.options.integer("rank-shift") != 0)
    return make_error(Errc::invalid_argument,
                      "--rank-shift needs several ranks: start it with mpirun or srun");
  if (const std::int64_t shift = context.options.integer("rank-shift"); shift != 0 && shift % ranks == 0)
    return make_error(
        Errc::invalid_argument,
        fmt::format("--rank-shift {}: over {} ranks each would read its own part again", shift, ranks));
  if (ranks > 1 && !context.options.text("live-csv").empty())
    return make_error(Errc::invalid_argument,
                      "--live-csv follows one process: leave it out under a launcher");
  return success();
}

Result<ReadSubject> open_all(const CommandContext& context, const SweepSettings& settings) {
  const Options& options = context.options;
  const std::string& where = context.positionals.front();
  PENSTOCK_ASSIGN(Corpus corpus, open_corpus(where, {.scan = options.flag("scan"),
                                                     .manifest_file = options.text("manifest"),
                                                     .types = options.text("types")}));
  if (options.has("block")) {
    if (settings.decode || settings.verify)
      return make_error(Errc::invalid_argument, "--block reads no samples to decode or to verify");
    PENSTOCK_ASSIGN(corpus.manifest, block_manifest(corpus.manifest, options.size("block")));
  }
  if (settings.decode) PENSTOCK_TRY(check_codec(corpus));
  PENSTOCK_ASSIGN(SampleList samples, corpus_samples(corpus.manifest));
  if (settings.verify && !corpus.manifest.facts().checksums)
    return make_error(
        Errc::unsupported,
        fmt::format("'{}' has no checksums to verify against: make them with "
                    "'penstock describe {} --scan --checksum --save FILE' for --manifest FILE, or "
                    "leave --verify out",
                    where, where));
  if (options.flag("only-tiers") && options.texts("tier").empty())
    return make_error(Errc::invalid_argument, "--only-tiers needs a --tier to measure");
  if (options.flag("only-tiers") && options.given("overlay"))
    return make_error(Errc::invalid_argument,
                      "--overlay replaces the corpus's own tier, which --only-tiers leaves out");
  if (options.given("overlay")) PENSTOCK_TRY(lay_over(corpus, options.text("overlay")));
  PENSTOCK_ASSIGN(std::vector<Tier> others, open_tiers(options.texts("tier"), corpus.tier.name));
  if (settings.collective) {
    if (!options.flag("only-tiers")) PENSTOCK_TRY(check_collective(corpus.tier));
    for (const Tier& tier : others) PENSTOCK_TRY(check_collective(tier));
  }
  PENSTOCK_TRY(check_cache_request(corpus.tier, settings.cache));
  for (const Tier& tier : others) PENSTOCK_TRY(check_cache_request(tier, settings.cache));
  if (settings.on_error == OnError::fail)
    for (Tier& tier : others) PENSTOCK_TRY(look_for_objects(tier, samples, where));
  return ReadSubject{std::move(corpus), std::move(others), std::move(samples)};
}

// A rate lasts as long as is said, not as many passes as fit: of a large corpus one may take days.
Result<void> set_rate(const CommandContext& context, SweepSettings& settings) {
  const Options& options = context.options;
  if (!options.has("rate")) return success();
  PENSTOCK_ASSIGN(settings.rate, parse_arrival_rate(options.text("rate")));
  if (settings.depth > 1 || settings.collective)
    return make_error(Errc::invalid_argument,
                      "--rate has one read in flight of each thread: leave --depth and --collective out, and "
                      "choose as many "
                      "--threads as reads may overlap");
  settings.rate->seed = context.seed;
  settings.rate->rank = static_cast<unsigned>(context.communicator.rank());
  settings.rate->ranks = static_cast<unsigned>(context.communicator.size());
  settings.baseline = settings.ceiling = false;
  if (settings.duration.count() != 0) return success();
  settings.duration = settings.min_time;
  settings.min_time = settings.duration * 9 / 10;  // the last sample may be due a little before the end
  return success();
}

}  // namespace

Result<SweepSettings> sweep_settings(const CommandContext& context) {
  PENSTOCK_TRY(check_ranks(context));
  const Options& options = context.options;
  SweepSettings settings;
  for (const std::uint64_t threads : options.list("threads")) {
    if (threads > kMostThreads)
      return make_error(Errc::invalid_argument,
                        fmt::format("--threads {}: at most {} are of use", threads, kMostThreads));
    const unsigned count = static_cast<unsigned>(threads);
    if (std::find(settings.threads.begin(), settings.threads.end(), count) == settings.threads.end())
      settings.threads.push_back(count);
  }
  const std::uint64_t most = *std::max_element(settings.threads.begin(), settings.threads.end());
  const std::uint64_t depth = static_cast<std::uint64_t>(options.integer("depth"));
  if (depth > kMostInFlight / most)
    return make_error(Errc::invalid_argument,
                      fmt::format("--depth {} with {} threads: at most {} reads in flight in all", depth,
                                  most, kMostInFlight));
  settings.depth = static_cast<unsigned>(depth);
  const std::string& order = options.text("order");
  settings.order = order == "shuffled"   ? SampleOrder::shuffled
                   : order == "physical" ? SampleOrder::physical
                                         : SampleOrder::sequential;
  settings.window = static_cast<std::uint64_t>(options.integer("window"));
  settings.cache = parse_cache_request(options.text("cache"));
  if (options.given("cold-by") && settings.cache != CacheRequest::cold)
    return make_error(Errc::invalid_argument, "--cold-by says how the cache is emptied: add --cache cold");
  if (options.given("window") && settings.order != SampleOrder::physical)
    return make_error(Errc::invalid_argument, "--window is of --order physical: add that, or leave it out");
  settings.cold_by = options.text("cold-by") == "drop" ? ColdMethod::drop : ColdMethod::evict;
  settings.decode = options.text("decode") == "full";
  settings.verify = options.flag("verify");
  settings.on_error = options.text("on-error") == "skip" ? OnError::skip : OnError::fail;
  settings.min_time = options.duration("min-time");
  if (options.has("duration") && options.has("stonewall"))
    return make_error(Errc::invalid_argument,
                      "--duration and --stonewall say both how long a repeat lasts: leave one out");
  if (options.has("duration") || options.has("stonewall")) {
    settings.stonewall = options.has("stonewall");
    settings.duration = options.duration(settings.stonewall ? "stonewall" : "duration");
    // The bound of `short` without --min-time; the last sample may end a little before the time is over.
    if (!options.given("min-time"))
      settings.min_time = std::min(settings.min_time, settings.duration * 9 / 10);
  }
  settings.ramp = options.duration("ramp");
  settings.repeats = static_cast<std::size_t>(options.integer("repeat"));
  settings.baseline = !options.flag("no-baseline");
  settings.ceiling = !options.flag("no-ceiling");
  settings.seed = context.seed;
  settings.rank_shift = static_cast<std::uint64_t>(options.integer("rank-shift"));
  if (settings.rank_shift != 0) settings.baseline = settings.ceiling = false;
  PENSTOCK_TRY(set_collective(options, settings));
  PENSTOCK_TRY(set_rate(context, settings));
  return settings;
}

Result<ReadSubject> open_subject(const CommandContext& context, const SweepSettings& settings) {
  Result<ReadSubject> opened = open_all(context, settings);
  PENSTOCK_TRY(agree(context.communicator, outcome_of(opened)));
  PENSTOCK_TRY(check_shares(context.communicator, opened->corpus));
  return opened;
}

}  // namespace penstock
