// Built with a SampleReader that sleeps PENSTOCK_REAP_DELAY_US in each reap() (benchmarks/CMakeLists.txt).
#include <gtest/gtest.h>

#include <memory>

#include "benchmarks/read/read_sweep.hpp"
#include "datagen/corpus/corpus_samples.hpp"
#include "datagen/objects/scripted_backend.hpp"

namespace penstock {
namespace {

// The reference loops read a sample from memory in a few microseconds. They do not use the slow reader, so it
// lowers only the measured rate.
TEST(SlowReader, LowersTheFractionOfTheCeiling) {
  for (const unsigned depth : {1U, 2U}) {
    auto backend = std::make_unique<ScriptedBackend>();
    backend->change_caps().emulated = true;  // so that the reference loops use the back end
    const Manifest manifest = scripted_files(*backend, 50);
    const SampleList samples = corpus_samples(manifest).value();
    Tier tier;
    tier.name = "memory";
    tier.facts.memory = true;
    tier.backend = std::move(backend);
    const ReadOptions options{.depth = depth, .measure_baseline = false};
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
