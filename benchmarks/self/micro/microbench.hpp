// What a micro-benchmark is: one file that exports a descriptor, and one penstock_plugin(microbench ...)
// line. penstock_microbench runs them with Google Benchmark; nothing that it measures decides a test.
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "datagen/recipe/recipe.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/plugin.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Where a micro-benchmark registers what it measures.
class Microbench {
 public:
  // `smoke`: one iteration of each, on as little as possible, to see that it runs.
  Microbench(std::string_view name, bool smoke) : name_(name), smoke_(smoke) {}

  bool smoke() const { return smoke_; }
  // Measures body(state), for 2 s at least, under the plug-in's name, with "/case" after it where there are
  // several.
  template <class Body>
  auto* add(std::string_view which, Body body) {
    auto* const added = benchmark::RegisterBenchmark(full_name(which).c_str(), std::move(body));
    if (smoke_)
      added->Iterations(1);
    else
      added->MinTime(kSampleSeconds);
    return added;
  }

 private:
  std::string full_name(std::string_view which) const;

  static constexpr double kSampleSeconds = 2;

  const std::string_view name_;
  const bool smoke_;
};

struct MicrobenchInfo {
  std::string_view name;
  std::string_view summary;  // what it measures
  OptionTable options{};     // none: Google Benchmark's own flags serve
  void (*add)(Microbench& to) = nullptr;
};

const Registry<MicrobenchInfo>& microbench_registry();

// Ends the benchmark: its row says why, and penstock_microbench exits 1.
void give_up(benchmark::State& state, const Error& error);

// A recipe with its default settings and seed 1.
Result<std::unique_ptr<Recipe>> default_recipe(std::string_view name);
// The payloads of its first samples.
Result<std::vector<std::vector<std::byte>>> first_payloads(std::string_view recipe, size_t samples);

}  // namespace penstock
