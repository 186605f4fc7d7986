// Compares every number and every claim in the sentences about random records of `read` with the figures.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "results/cells/claims_testing.hpp"
#include "results/cells/verdicts.hpp"
#include "results/record/records_testing.hpp"

namespace penstock {
namespace {

constexpr double kMiB = 1048576;

// What the test knows of one row.
struct Row {
  std::vector<double> rates;  // MiB/s
  double ceiling = 0;
  double baseline_ratio = 0;
};
using Rows = std::map<int, Row>;             // by thread count
using Tiers = std::map<std::string, Rows>;   // of one cache state
using World = std::map<std::string, Tiers>;  // by cache state

World random_world(Draws& draws) {
  World world;
  for (const char* const cache : {"cold", "warm"}) {
    if (draws.chance(0.3)) continue;
    for (const char* const tier : {"alpha", "beta", "gamma"}) {
      if (draws.chance(0.3)) continue;
      const size_t repeats = 1 + draws.below(7);
      const double apart = draws.chance(0.5) ? 0.02 : draws.between(0, 0.6);
      for (const int threads : {1, 2, 4, 8, 16}) {
        if (draws.chance(0.3)) continue;
        Row& row = world[cache][tier][threads];
        row.rates = draws.around(draws.chance(0.3) ? 500 : draws.between(50, 3000), apart,
                                 draws.chance(0.8) ? repeats : 1 + draws.below(7));
        if (draws.chance(0.5)) row.ceiling = middle_of(row.rates) * draws.between(0.8, 3);
        if (draws.chance(0.5)) row.baseline_ratio = draws.chance(0.1) ? 115 : draws.between(0.5, 2);
      }
    }
  }
  return world;
}

std::vector<Record> records_of(const World& world) {
  std::vector<Record> records;
  for (const auto& [cache, tiers] : world)
    for (const auto& [tier, rows] : tiers)
      for (const auto& [threads, row] : rows) {
        Record record = with_rates(read_cell(tier, threads, cache, 1), row.rates);
        std::vector<double>& samples = record.metrics["samples_per_s"].samples;
        samples.clear();
        for (const double rate : row.rates) samples.push_back(rate * 10);
        if (row.ceiling > 0) {
          record.metrics["ceiling_bytes_per_s"] = {"B/s", Better::neither, "run", {row.ceiling * kMiB}};
          for (const double rate : row.rates)
            record.metrics["ceiling_fraction"].samples.push_back(rate / row.ceiling);
        }
        if (row.baseline_ratio > 0)
          for (const double rate : samples)
            record.metrics["baseline_samples_per_s"].samples.push_back(rate / row.baseline_ratio);
        records.push_back(std::move(record));
      }
  return records;
}

double rate_of(const Row& row) {
  return middle_of(row.rates);
}

int best_of(const Rows& rows) {
  int best = rows.begin()->first;
  for (const auto& [threads, row] : rows)
    if (rate_of(row) > rate_of(rows.at(best))) best = threads;
  return best;
}

double ratio_between(const Row& row, const Row& base) {
  if (row.rates.size() != base.rates.size()) return rate_of(row) / rate_of(base);
  std::vector<double> ratios;
  for (size_t i = 0; i < row.rates.size(); ++i) ratios.push_back(row.rates[i] / base.rates[i]);
  return middle_of(ratios);
}

double most_apart(const Rows& rows, int from) {
  double most = 0;
  for (const auto& [threads, row] : rows)
    if (threads >= from) most = std::max(most, apart_of(row.rates));
  return most;
}

// The tiers of the cache state that the sentence names in brackets.
const Tiers& tiers_in(const World& world, const std::string& text) {
  return world.at(world.contains("cold") && text.find("(cold") != std::string::npos ? "cold"
                  : world.contains("warm")                                          ? "warm"
                                                                                    : "cold");
}

// Whether the difference of two rows is too small to be reported.
bool is_noise(double ratio, double apart) {
  return ratio - 1 <= apart && apart > 0.05;
}

void check_tiers(const std::string& text, const World& world) {
  const Tiers& tiers = tiers_in(world, text);
  const auto names = parts_of(text, "^(\\w+) (?:feeds .*? of|and) (\\w+) ");
  ASSERT_EQ(names.size(), 2U) << text;
  const Rows& fast = tiers.at(names[0]);
  const Rows& slow = tiers.at(names[1]);
  const Row& best_fast = fast.at(best_of(fast));
  const Row& best_slow = slow.at(best_of(slow));
  const double ratio = rate_of(best_fast) / rate_of(best_slow);
  const double apart = std::max(apart_of(best_fast.rates), apart_of(best_slow.rates));
  EXPECT_GE(ratio, 1) << text;
  if (const auto best = parts_of(text, "best \\(# MiB/s at # threads?, # MiB/s at # threads?\\)");
      !best.empty()) {
    EXPECT_TRUE(is_rounded(best[0], rate_of(best_fast))) << text;
    EXPECT_EQ(number_in(best[1]), best_of(fast)) << text;
    EXPECT_TRUE(is_rounded(best[2], rate_of(best_slow))) << text;
    EXPECT_EQ(number_in(best[3]), best_of(slow)) << text;
  } else {
    EXPECT_EQ(fast.size() * slow.size(), 1U) << text;
  }
  if (const auto feeds = parts_of(text, "feeds #x of"); !feeds.empty()) {
    EXPECT_TRUE(is_rounded(feeds[0], ratio)) << text;
    EXPECT_FALSE(is_noise(ratio, apart)) << text;
    EXPECT_GE(ratio, 1.05) << text;
  } else if (text.find("cannot be told apart") != std::string::npos) {
    EXPECT_TRUE(is_noise(ratio, apart)) << text;
    EXPECT_TRUE(is_percent(parts_of(text, "up to #% apart").at(0), apart)) << text;
  } else {
    EXPECT_LT(ratio, 1.05) << text;
  }
  for (const auto& [threads, row] : fast) {
    if (!slow.contains(threads)) continue;
    const double here = rate_of(row) / rate_of(slow.at(threads));
    const double here_apart = std::max(apart_of(row.rates), apart_of(slow.at(threads).rates));
    const double faster = std::max(here, 1 / here);
    const std::string at = " at " + std::to_string(threads) + "(?:,| and|;| \\()";
    if (const auto told = parts_of(text, "(?:threads |, |and )#x" + at); !told.empty()) {
      EXPECT_LE(std::abs(number_in(told[0]) / here - 1), 0.06) << text << here;
      EXPECT_FALSE(is_noise(faster, here_apart)) << text;
    } else if (!parts_of(text, "(no clear difference)" + at).empty()) {
      EXPECT_TRUE(is_noise(faster, here_apart)) << text;
    } else if (!parts_of(text, "(the same)" + at).empty()) {
      EXPECT_LT(faster, 1.05) << text;
    } else {
      // The only common count is that of the best rows.
      EXPECT_TRUE(threads == best_of(fast) && threads == best_of(slow)) << text;
    }
  }
}

void check_scaling(const std::string& text, const World& world) {
  const Tiers& tiers = tiers_in(world, text);
  const auto name = parts_of(text, "(alpha|beta|gamma)");
  ASSERT_EQ(name.size(), 1U) << text;
  const Rows& rows = tiers.at(name[0]);
  const int first = rows.begin()->first;
  const int last = rows.rbegin()->first;
  std::map<int, double> scaled;
  for (const auto& [threads, row] : rows) scaled[threads] = ratio_between(row, rows.at(first));
  const auto apart = [&](int threads) { return apart_of(rows.at(threads).rates); };
  if (const auto gains = parts_of(text, "gains up to # threads?, #x of # thread"); !gains.empty()) {
    const int count = int(number_in(gains[0]));
    EXPECT_TRUE(is_rounded(gains[1], scaled.at(count))) << text;
    EXPECT_EQ(number_in(gains[2]), first) << text;
    EXPECT_GT(scaled.at(count) - 1, std::max(apart(first), apart(count))) << text;
    EXPECT_TRUE(is_percent(parts_of(text, "up to #% apart").at(0), most_apart(rows, count))) << text;
  } else if (text.starts_with("What more than")) {
    EXPECT_EQ(number_in(parts_of(text, "more than # thread").at(0)), first) << text;
    const double told = number_in(parts_of(text, "up to #% apart").at(0)) / 100;
    EXPECT_LE(told, most_apart(rows, first) + 0.006) << text;
  } else if (const auto loses = parts_of(text, "fastest at # threads? and loses #% of that at # thread");
             !loses.empty()) {
    const int peak = int(number_in(loses[0]));
    for (const auto& [threads, ratio] : scaled) EXPECT_LE(ratio, scaled.at(peak)) << text;
    const double lost = 1 - scaled.at(last) / scaled.at(peak);
    EXPECT_TRUE(is_percent(loses[1], lost)) << text;
    EXPECT_GE(lost, std::max(0.1, most_apart(rows, peak))) << text;
    EXPECT_EQ(number_in(loses[2]), last) << text;
  } else if (const auto still = parts_of(text, "still gains at # threads?, .*: #x of # thread");
             !still.empty()) {
    EXPECT_EQ(number_in(still[0]), last) << text;
    EXPECT_TRUE(is_rounded(still[1], scaled.at(last))) << text;
    const auto before = std::prev(scaled.end(), 2);
    EXPECT_GE(scaled.at(last), before->second * 1.1) << text;
    EXPECT_GE(scaled.at(last) / before->second - 1, std::max(apart(last), apart(before->first))) << text;
  } else {
    const auto stops = parts_of(text, "stops scaling at # thread");
    ASSERT_EQ(stops.size(), 1U) << text;
    const int count = int(number_in(stops[0]));
    for (const auto& [threads, ratio] : scaled) {
      if (threads > count) {
        EXPECT_LT(ratio, scaled.at(count) * 1.1) << text;
      }
    }
    EXPECT_LE(most_apart(rows, count), 0.1 + 1e-9) << text;
    if (const auto gain = parts_of(text, ", #x of # thread"); !gain.empty()) {
      EXPECT_TRUE(is_rounded(gain[0], scaled.at(count))) << text;
      EXPECT_GT(scaled.at(count) - 1, std::max(apart(first), apart(count))) << text;
    }
  }
}

void check_ceiling(const std::string& text, const World& world) {
  const auto parts = parts_of(text, "^(\\w+) reaches #% of its ceiling of # MiB/s at # thread");
  ASSERT_EQ(parts.size(), 4U) << text;
  const Rows& rows = tiers_in(world, text).at(parts[0]);
  double ceiling = 0;
  for (const auto& [threads, row] : rows) ceiling = std::max(ceiling, row.ceiling);
  const double peak = rate_of(rows.at(best_of(rows)));
  EXPECT_TRUE(is_percent(parts[1], std::min(1.0, peak / ceiling))) << text;
  EXPECT_LE(number_in(parts[1]), 100) << text;
  EXPECT_TRUE(is_rounded(parts[2], ceiling)) << text;
  EXPECT_EQ(number_in(parts[3]), best_of(rows)) << text;
}

void check_ceiling_invalid(const std::string& text, const World& world) {
  const auto name = parts_of(text, "ceiling of (\\w+) is invalid at");
  ASSERT_EQ(name.size(), 1U) << text;
  for (const auto& [threads, row] : tiers_in(world, text).at(name[0])) {
    const bool named = !parts_of(text, "(?:at|,|and) (" + std::to_string(threads) + ") thread").empty();
    EXPECT_EQ(named, row.ceiling > 0 && rate_of(row) > 1.02 * row.ceiling) << text;
  }
}

void check_baseline(const std::string& text, const World& world) {
  for (const auto& [tier, rows] : tiers_in(world, text)) {
    double low = 1e300;
    double high = 0;
    for (const auto& [threads, row] : rows) {
      if (row.baseline_ratio <= 0 || row.baseline_ratio > 5) continue;
      low = std::min(low, row.baseline_ratio);
      high = std::max(high, row.baseline_ratio);
    }
    const auto range = parts_of(text, "#%(?: to #%)? of the baseline on " + tier);
    EXPECT_EQ(range.empty(), high == 0) << text << tier;
    if (range.empty()) continue;
    EXPECT_TRUE(is_percent(range[0], low)) << text;
    EXPECT_TRUE(is_percent(range[1].empty() ? range[0] : range[1], high)) << text;
  }
}

void check_accelerators(const std::string& text, const World& world) {
  for (const auto& [tier, rows] : tiers_in(world, text)) {
    const double count = std::floor(rate_of(rows.at(best_of(rows))) * 10 / 200);
    const auto told = parts_of(text, tier + " (?:feeds at most )?#");
    ASSERT_EQ(told.size(), 1U) << text;
    EXPECT_TRUE(is_rounded(told[0].substr(0, told[0].find_last_not_of(' ') + 1), count)) << text << count;
  }
}

void check_cold_warm(const std::string& text, const World& world) {
  const auto parts = parts_of(text, "^(\\w+) .* at # thread");
  ASSERT_EQ(parts.size(), 2U) << text;
  const int threads = int(number_in(parts[1]));
  const Row& cold = world.at("cold").at(parts[0]).at(threads);
  const Row& warm = world.at("warm").at(parts[0]).at(threads);
  const double ratio = rate_of(warm) / rate_of(cold);
  const double faster = std::max(ratio, 1 / ratio);
  const double apart = std::max(apart_of(cold.rates), apart_of(warm.rates));
  if (const auto told = parts_of(text, "is #x (faster|slower) warm"); !told.empty()) {
    EXPECT_TRUE(is_rounded(told[0], faster)) << text;
    EXPECT_EQ(told[1] == "faster", ratio > 1) << text;
    EXPECT_FALSE(is_noise(faster, apart)) << text;
  } else if (text.find("cannot be told apart") != std::string::npos) {
    EXPECT_TRUE(is_noise(faster, apart)) << text;
  } else {
    EXPECT_LT(faster, 1.05) << text;
  }
}

void check_noise(const std::string& text, const World& world) {
  double most = 0;
  for (const auto& [cache, tiers] : world)
    for (const auto& [tier, rows] : tiers) most = std::max(most, most_apart(rows, 0));
  EXPECT_TRUE(is_percent(parts_of(text, "up to #% apart").at(0), most)) << text;
}

TEST(ReadClaims, EverySentenceAgreesWithTheFigures) {
  const std::map<std::string, void (*)(const std::string&, const World&)> checks{
      {"tiers", check_tiers},
      {"scaling", check_scaling},
      {"ceiling", check_ceiling},
      {"ceiling_invalid", check_ceiling_invalid},
      {"baseline", check_baseline},
      {"baseline_invalid",
       [](const std::string& text, const World&) { EXPECT_TRUE(text.starts_with("11 500%")) << text; }},
      {"accelerators", check_accelerators},
      {"cold_warm", check_cold_warm},
      {"noise", check_noise},
  };
  std::map<std::string, int> checked;
  for (uint64_t seed = 1; seed <= 200 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draws draws(seed);
    const World world = random_world(draws);
    for (const Sentence& sentence : sentences(records_of(world), {})) {
      const auto check = checks.find(sentence.kind);
      ASSERT_NE(check, checks.end()) << "no check of: " << sentence.text;
      check->second(sentence.text, world);
      ++checked[sentence.kind];
    }
  }
  for (const auto& [kind, check] : checks) EXPECT_GT(checked[kind], 10) << kind;
}

}  // namespace
}  // namespace penstock
