#include "miniapps/train_setup.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "io_backends/base/placement.hpp"
#include "miniapps/pipeline/accelerator.hpp"

namespace penstock {
namespace {

constexpr std::int64_t kMostThreads = 4096;
constexpr std::int64_t kMostDepth = 1024;
constexpr std::int64_t kLargestBatch = std::int64_t{1} << 24;

Result<Options> app_options(const MiniAppInfo& app, const std::vector<std::string>& words) {
  std::vector<OptionWord> pairs;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos)
      return make_error(Errc::invalid_argument, "--set takes KEY=VALUE, not '" + word + "'");
    pairs.push_back({word.substr(0, equals), word.substr(equals + 1)});
  }
  return Options::parse(app.options, pairs, std::string(app.name) + " option");
}

Result<std::uint64_t> bounded(const Options& options, std::string_view name, std::int64_t most,
                              std::uint64_t fallback) {
  if (!options.given(name)) return fallback;
  const std::int64_t value = options.integer(name);
  if (value > most)
    return make_error(Errc::invalid_argument, "--" + std::string(name) + " " + std::to_string(value) +
                                                  " is too large: at most " + std::to_string(most));
  return static_cast<std::uint64_t>(value);
}

}  // namespace

Result<TrainSetup> resolve_train_setup(const CommandContext& context, const MiniAppInfo& app) {
  const Options& options = context.options;
  constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();
  TrainSetup setup;
  setup.app = &app;
  PENSTOCK_ASSIGN(const Options own, app_options(app, options.texts("set")));
  for (const char* name : {"decode", "resize"})
    if (app.codec.empty() && options.given(name))
      return make_error(Errc::invalid_argument, "--" + std::string(name) + " is nothing for '" +
                                                    std::string(app.name) +
                                                    "', which leaves samples as they are stored");
  AppRequest request;
  request.seed = context.seed;
  PENSTOCK_ASSIGN(request.decode, parse_decode(options.text("decode")));
  PENSTOCK_ASSIGN(request.resize, parse_resize(options.text("resize")));
  PENSTOCK_ASSIGN(setup.treatment, app.make(own, request));
  setup.accelerator =
      options.given("accelerator") ? options.text("accelerator") : std::string(app.defaults.accelerator);
  PENSTOCK_TRY(make_accelerator(setup.accelerator));
  PENSTOCK_ASSIGN(setup.batch, bounded(options, "batch", kLargestBatch, app.defaults.batch));
  PENSTOCK_ASSIGN(setup.prefetch, bounded(options, "prefetch", kUnbounded, app.defaults.prefetch));
  PENSTOCK_ASSIGN(const std::uint64_t threads,
                  bounded(options, "threads", kMostThreads, std::max<std::size_t>(1, allowed_cpus().size())));
  setup.threads = static_cast<unsigned>(threads);
  PENSTOCK_ASSIGN(setup.depth, bounded(options, "depth", kMostDepth, 0));
  PENSTOCK_ASSIGN(setup.limits.batches, bounded(options, "steps", kUnbounded, 0));
  PENSTOCK_ASSIGN(setup.limits.epochs,
                  bounded(options, "epochs", kUnbounded, setup.limits.batches == 0 ? 1 : 0));
  PENSTOCK_ASSIGN(setup.shuffle,
                  parse_shuffle(options.given("shuffle") ? options.text("shuffle") : app.defaults.shuffle));
  setup.bad_sample = options.text("on-error") == "skip" ? BadSample::skip : BadSample::fail;
  setup.cache = cache_wish(options.text("cache"));
  setup.seed = context.seed;
  setup.rank = context.communicator.rank();
  setup.ranks = context.communicator.size();
  setup.sample_log = options.text("sample-log");
  setup.progress = context.output.progress;
  return setup;
}

}  // namespace penstock
