// penstock_microbench [--smoke] [NAME...]: runs the micro-benchmarks (all, or only the named ones) with
// Google Benchmark. It also accepts the flags of Google Benchmark.
#include "benchmarks/self/micro/microbench.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

namespace penstock {
namespace {

constexpr uint64_t kSeed = 1;
constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kUnsupported = 77;

std::atomic<bool> any_failed = false;

void print_error(const std::string& text) {
  std::fprintf(stderr, "penstock_microbench: %s\n", text.c_str());
}

int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);  // removes Google Benchmark's flags from argv
  bool smoke = false;
  std::vector<const MicrobenchInfo*> chosen;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--smoke") == 0) {
      smoke = true;
      continue;
    }
    const auto found = microbench_registry().find(argv[i]);
    if (!found.ok()) {
      print_error(found.error().what);
      return found.error().code == Errc::unsupported ? kUnsupported : kUsage;
    }
    chosen.push_back(*found);
  }
  if (chosen.empty())
    chosen.assign(microbench_registry().present().begin(), microbench_registry().present().end());
  for (const MicrobenchInfo* info : chosen) {
    Microbench to(info->name, smoke);
    info->add(to);
  }
  const size_t benchmarks_run = benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return benchmarks_run == 0 || any_failed ? kFailed : kDone;
}

}  // namespace

std::string Microbench::full_name(std::string_view case_name) const {
  std::string name(name_);
  if (!case_name.empty()) name.append("/").append(case_name);
  return name;
}

void give_up(benchmark::State& state, const Error& error) {
  any_failed = true;
  state.SkipWithError(error.what.c_str());
}

Result<std::unique_ptr<Recipe>> default_recipe(std::string_view name) {
  PENSTOCK_ASSIGN(const RecipeInfo* const info, recipe_registry().find(name));
  PENSTOCK_ASSIGN(const Options defaults, Options::parse(info->options, {}, "setting"));
  return info->make({.samples = 0, .seed = kSeed}, defaults);
}

Result<std::vector<std::vector<std::byte>>> first_payloads(std::string_view recipe, size_t samples) {
  PENSTOCK_ASSIGN(const std::unique_ptr<Recipe> made, default_recipe(recipe));
  PENSTOCK_ASSIGN(const std::unique_ptr<SampleMaker> maker, made->maker());
  std::vector<std::vector<std::byte>> payloads;
  for (size_t index = 0; index < samples; ++index) {
    PENSTOCK_ASSIGN(const std::span<const FieldBytes> fields, maker->make(index));
    payloads.push_back(joined(fields.front()));
  }
  return payloads;
}

}  // namespace penstock

int main(int argc, char** argv) {
  return penstock::run(argc, argv);
}
