// What one invocation of `train` measures, tier by tier: one run, or the search for how many accelerators
// the tier feeds.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "datagen/corpus/corpus.hpp"
#include "miniapps/train/train_cell.hpp"
#include "miniapps/train/train_setup.hpp"
#include "results/record/trial.hpp"

namespace penstock {

// Keeps a record in `run` whatever happens to a tier; the errors that come back are not its fault. Borrows
// everything. Collective over the setup's ranks. After CellEnd::stuck it must outlive the process.
class TrainRuns {
 public:
  TrainRuns(TrainSetup& setup, const Corpus& corpus, Run& run) : setup_(setup), corpus_(corpus), run_(run) {}

  Result<CellEnd> measure(const Tier& tier);

  // The record has kInARow runs with the most accelerators which were all kept busy, each run a sample of its
  // metrics; `accelerators_fed` is their number over all ranks. Where not even one is fed, it is 0, and the
  // runs those with one. The record also says what one more accelerator lacked. The first run that fails ends
  // the search, and is the record.
  static constexpr unsigned kInARow = 5;
  Result<CellEnd> find_accelerators(const Tier& tier);

  // A record that says why there is none.
  void skip(const Tier& tier, const std::string& why);

 private:
  struct Search;  // of one tier
  Result<bool> all_in_place(const Tier& tier);
  Result<void> make_pool(const Tier& tier);
  Result<CellEnd> train(const Tier& tier, Trial& trial);
  Result<bool> feeds(Search& search, std::uint64_t accelerators, Trial& trial);
  Result<CellEnd> keep(Trial trial, CellEnd end);
  std::uint64_t most_to_try(const Sampler& sampler) const;
  Error too_few_samples(std::uint64_t samples) const;

  TrainSetup& setup_;
  const Corpus& corpus_;
  Run& run_;
  std::set<std::string> reported_copied_;  // tiers
  std::optional<BatchPool> pool_;  // for as many accelerators as the setup has, and the tier measured last
};

}  // namespace penstock
