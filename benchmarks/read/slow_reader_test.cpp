// This test program is built with a SampleReader that sleeps PENSTOCK_REAP_DELAY_US microseconds at each reap
// (see benchmarks/CMakeLists.txt).
#include <gtest/gtest.h>

#include <memory>

#include "benchmarks/read/read_sweep.hpp"
#include "datagen/corpus/corpus_samples.hpp"
#include "datagen/objects/scripted_backend.hpp"

namespace penstock {
namespace {

// The yardsticks use loops of their own, not the slow reader. So they still read a sample from memory in a
// few microseconds.
TEST(SlowReader, LowersTheFractionOfTheCeiling) {
  for (const unsigned depth : {1U, 2U}) {
    auto backend = std::make_unique<ScriptedBackend>();
    // So that the yardsticks read through the back end, not by system calls.
    backend->change_caps().emulated = true;
    const Manifest manifest = scripted_files(*backend, 50);
    const SampleList samples = corpus_samples(manifest).value();
    Tier tier;
    tier.name = "memory";
    tier.facts.memory = true;
    tier.backend = std::move(backend);
    const ReadOptions options{.depth = depth, .baseline = false};
    const std::unique_ptr<Communicator> single = single_process();
    ReadSweep sweep({&tier}, manifest, samples, options, *single);
    ASSERT_TRUE(sweep.run().ok());
    const ReadCell& cell = sweep.cells().front();
    ASSERT_EQ(cell.repeats.size(), 1U) << cell.reason;
    EXPECT_GE(cell.repeats.front().tally.latency_ns.percentile(50), 0.9e3 * PENSTOCK_REAP_DELAY_US);
    Trial trial;
    record_cell(cell, cell, tier, manifest, 0, trial);
    const Metric& fraction = trial.record().metrics.at("ceiling_fraction");
    EXPECT_LT(fraction.samples.front(), 0.25) << "depth " << depth;
  }
}

}  // namespace
}  // namespace penstock
