// The interface of micro-benchmarks. A micro-benchmark is one file that exports a MicrobenchInfo, and one
// line penstock_plugin(microbench ...) in CMakeLists.txt. The program penstock_microbench runs them with
// Google Benchmark. No test depends on the times that they measure.
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

// Registers the cases of one micro-benchmark with Google Benchmark.
class Microbench {
 public:
  // `smoke`: each case runs one iteration on as little data as possible, to check that it works.
  Microbench(std::string_view name, bool smoke) : name_(name), smoke_(smoke) {}

  bool smoke() const { return smoke_; }
  // Registers a case that measures body(state) for at least kLeastSeconds. The case has the name of the
  // micro-benchmark, followed by "/" and `case_name` unless that is empty.
  template <class Body>
  auto* add(std::string_view case_name, Body body) {
    auto* const added = benchmark::RegisterBenchmark(full_name(case_name).c_str(), std::move(body));
    if (smoke_)
      added->Iterations(1);
    else
      added->MinTime(kLeastSeconds);
    return added;
  }

 private:
  std::string full_name(std::string_view case_name) const;

  static constexpr double kLeastSeconds = 2;

  const std::string_view name_;
  const bool smoke_;
};

struct MicrobenchInfo {
  std::string_view name;
  std::string_view summary;  // what it measures
  OptionTable options{};     // always empty: micro-benchmarks have only the flags of Google Benchmark
  void (*add)(Microbench& to) = nullptr;
};

const Registry<MicrobenchInfo>& microbench_registry();

// Ends a case after an error. Its row then shows the error, and penstock_microbench exits with 1.
void give_up(benchmark::State& state, const Error& error);

// Makes a recipe with its default settings and seed 1.
Result<std::unique_ptr<Recipe>> default_recipe(std::string_view name);
// Makes the first field of each of the first `samples` samples of a recipe.
Result<std::vector<std::vector<std::byte>>> first_payloads(std::string_view recipe, size_t samples);

}  // namespace penstock
