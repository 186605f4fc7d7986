#include "benchmarks/read/read_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

namespace penstock {
namespace {

constexpr std::uint64_t kMostThreads = 1024;
constexpr double kLeastRate = 1e-3;
constexpr double kMostRate = 1e9;

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

// Checks the options that depend on the number of ranks.
Result<void> check_ranks(const Options& line, int ranks) {
  const std::int64_t shift = line.integer("rank-shift");
  if (ranks == 1 && shift != 0)
    return make_error(Errc::invalid_argument,
                      "--rank-shift needs several ranks: start it with mpirun or srun");
  if (shift != 0 && shift % ranks == 0)
    return make_error(
        Errc::invalid_argument,
        fmt::format("--rank-shift {}: over {} ranks each would read its own part again", shift, ranks));
  if (ranks > 1 && !line.text("live-csv").empty())
    return make_error(Errc::invalid_argument,
                      "--live-csv follows one process: leave it out under a launcher");
  return success();
}

Result<void> parse_threads(const Options& line, ReadOptions& options) {
  options.threads.clear();
  for (const std::uint64_t threads : line.list("threads")) {
    if (threads > kMostThreads)
      return make_error(Errc::invalid_argument,
                        fmt::format("--threads {}: at most {} are of use", threads, kMostThreads));
    const unsigned count = static_cast<unsigned>(threads);
    if (std::find(options.threads.begin(), options.threads.end(), count) == options.threads.end())
      options.threads.push_back(count);
  }
  const std::uint64_t most = options.most_threads();
  const std::uint64_t depth = static_cast<std::uint64_t>(line.integer("depth"));
  if (depth > kMostInFlight / most)
    return make_error(Errc::invalid_argument,
                      fmt::format("--depth {} with {} threads: at most {} reads in flight in all", depth,
                                  most, kMostInFlight));
  options.depth = static_cast<unsigned>(depth);
  return success();
}

Result<void> parse_order_and_cache(const Options& line, ReadOptions& options) {
  const std::string& order = line.text("order");
  options.order = order == "shuffled"   ? SampleOrder::shuffled
                  : order == "physical" ? SampleOrder::physical
                                        : SampleOrder::sequential;
  options.window = static_cast<std::uint64_t>(line.integer("window"));
  options.cache = parse_cache_request(line.text("cache"));
  if (line.given("cold-by") && options.cache != CacheRequest::cold)
    return make_error(Errc::invalid_argument, "--cold-by says how the cache is emptied: add --cache cold");
  if (line.given("window") && options.order != SampleOrder::physical)
    return make_error(Errc::invalid_argument, "--window is of --order physical: add that, or leave it out");
  options.cold_by = line.text("cold-by") == "drop" ? ColdMethod::drop : ColdMethod::evict;
  return success();
}

Result<void> parse_end(const Options& line, ReadOptions& options) {
  options.min_time = line.duration("min-time");
  if (line.has("duration") && line.has("stonewall"))
    return make_error(Errc::invalid_argument,
                      "--duration and --stonewall say both how long a repeat lasts: leave one out");
  if (line.has("duration")) options.end = Duration{line.duration("duration")};
  if (line.has("stonewall")) options.end = Stonewall{line.duration("stonewall")};
  // Without --min-time, a repeat is marked short below 90% of the limit, because the last sample may end a
  // little before the limit.
  if (!std::holds_alternative<Passes>(options.end) && !line.given("min-time"))
    options.min_time = std::min(options.min_time, time_limit(options.end) * 9 / 10);
  if (!std::holds_alternative<Stonewall>(options.end) && time_limit(options.end).count() == 0)
    options.end = Passes{options.min_time};
  return success();
}

// Checks the options for collective reads. Every rank makes its reads one after another, and all ranks make
// equally many.
Result<void> parse_collective(const Options& line, ReadOptions& options) {
  options.collective = line.flag("collective");
  if (!options.collective) return success();
  if (!line.given("threads")) options.threads = {1};
  const bool alone = options.threads == std::vector<unsigned>{1} && options.depth == 1;
  if (alone && options.order != SampleOrder::physical && time_limit(options.end).count() == 0)
    return success();
  return make_error(
      Errc::invalid_argument,
      "--collective reads one sample at a time on every rank, in whole passes: leave --threads, "
      "--depth, --duration, --stonewall and --order physical out; use more ranks for more readers");
}

// With --rate, a repeat lasts a given time instead of whole passes. At a low rate, one pass over a large
// corpus may take days.
Result<void> parse_arrival(const Options& line, ReadOptions& options) {
  if (!line.has("rate")) return success();
  PENSTOCK_ASSIGN(options.arrival, parse_open_loop(line.text("rate")));
  if (options.depth > 1 || options.collective)
    return make_error(Errc::invalid_argument,
                      "--rate has one read in flight of each thread: leave --depth and --collective out, and "
                      "choose as many "
                      "--threads as reads may overlap");
  options.baseline = options.ceiling = false;
  if (time_limit(options.end).count() != 0) return success();
  options.end = with_time_limit(options.end, options.min_time);
  options.min_time = options.min_time * 9 / 10;  // the last sample may be due a little before the end
  return success();
}

}  // namespace

std::chrono::nanoseconds time_limit(const ReadEnd& end) {
  if (const auto* duration = std::get_if<Duration>(&end)) return duration->time;
  if (const auto* stonewall = std::get_if<Stonewall>(&end)) return stonewall->time;
  return {};
}

std::chrono::nanoseconds shortest(const ReadEnd& end) {
  const auto* passes = std::get_if<Passes>(&end);
  return passes != nullptr ? passes->at_least : std::chrono::nanoseconds(0);
}

ReadEnd with_time_limit(const ReadEnd& end, std::chrono::nanoseconds time) {
  if (std::holds_alternative<Stonewall>(end)) return Stonewall{time};
  return Duration{time};
}

Result<OpenLoop> parse_open_loop(std::string_view text) {
  OpenLoop loop;
  std::string_view number = text;
  loop.poisson = take_suffix(number, ",poisson");
  take_suffix(number, "/s");
  double factor = 1;
  if (take_suffix(number, "k"))
    factor = 1e3;
  else if (take_suffix(number, "M"))
    factor = 1e6;
  const char* const end = number.data() + number.size();
  const auto [stopped, failed] = std::from_chars(number.data(), end, loop.per_second);
  loop.per_second *= factor;
  if (failed == std::errc() && stopped == end && loop.per_second >= kLeastRate &&
      loop.per_second <= kMostRate)
    return loop;
  return make_error(
      Errc::invalid_argument,
      fmt::format("--rate: '{}' is no number of samples a second, such as 500, 2.5k/s or 500/s,poisson",
                  text));
}

unsigned ReadOptions::most_threads() const {
  return threads.empty() ? 0 : *std::max_element(threads.begin(), threads.end());
}

Result<ReadOptions> parse_read_options(const CommandContext& context) {
  const Options& line = context.options;
  PENSTOCK_TRY(check_ranks(line, context.communicator.size()));
  ReadOptions options;
  PENSTOCK_TRY(parse_threads(line, options));
  PENSTOCK_TRY(parse_order_and_cache(line, options));
  options.decode = line.text("decode") == "full";
  options.verify = line.flag("verify");
  options.skip_errors = line.text("on-error") == "skip";
  PENSTOCK_TRY(parse_end(line, options));
  options.ramp = line.duration("ramp");
  options.repeats = static_cast<std::size_t>(line.integer("repeat"));
  options.rank_shift = static_cast<std::uint64_t>(line.integer("rank-shift"));
  options.baseline = !line.flag("no-baseline") && options.rank_shift == 0;
  options.ceiling = !line.flag("no-ceiling") && options.rank_shift == 0;
  options.seed = context.seed;
  PENSTOCK_TRY(parse_collective(line, options));
  PENSTOCK_TRY(parse_arrival(line, options));
  return options;
}

}  // namespace penstock
