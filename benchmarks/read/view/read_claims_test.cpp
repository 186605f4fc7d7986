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

// What the repeats of two rows say of the ratio of their rates.
struct Ratio {
  double least = 1e300;
  double middle = 0;
  double most = 0;
  double apart = 0;  // the larger spread of the two rows
  bool is_known() const { return middle - 1 > apart && least >= 1.005; }
  bool is_same() const { return std::max(middle, 1 / middle) < 1.05; }
  bool is_noise() const { return (apart > 0.05 || !is_same()) && !is_known(); }
};

Ratio ratio_of(const Row& row, const Row& base, bool paired) {
  Ratio ratio;
  std::vector<double> ratios;
  for (size_t i = 0; i < row.rates.size(); ++i)
    for (size_t j = 0; j < base.rates.size(); ++j)
      if (i == j || !paired) ratios.push_back(row.rates[i] / base.rates[j]);
  for (const double one : ratios) {
    ratio.least = std::min(ratio.least, one);
    ratio.most = std::max(ratio.most, one);
  }
  ratio.middle = paired ? middle_of(ratios) : rate_of(row) / rate_of(base);
  ratio.apart = std::max(apart_of(row.rates), apart_of(base.rates));
  return ratio;
}
// Of two rows of one sweep, whose repeats are interleaved.
Ratio ratio_between(const Row& row, const Row& base) {
  return ratio_of(row, base, row.rates.size() == base.rates.size());
}
Ratio ratio_of_medians(const Row& row, const Row& base) {
  return ratio_of(row, base, false);
}

// A pattern of a ratio or of the range of one, and whether its two groups are those of `ratio`.
constexpr const char* kRatio = "(?:#x to )?#x";
bool is_told(const std::string& low, const std::string& high, const Ratio& ratio) {
  const bool is_wide = ratio.most - ratio.least >= 0.1 * ratio.middle;
  if (low.empty())
    return is_rounded(high, ratio.middle) &&
           (!is_wide || (is_rounded(high, ratio.least) && is_rounded(high, ratio.most)));
  return is_wide && is_rounded(low, ratio.least) && is_rounded(high, ratio.most) &&
         number_in(low) < number_in(high);
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

void check_tiers(const std::string& text, const World& world) {
  const Tiers& tiers = tiers_in(world, text);
  const auto names = parts_of(text, "^(\\w+) (?:delivers .*? rate of|and) (\\w+)[, ]");
  ASSERT_EQ(names.size(), 2U) << text;
  const Rows& fast = tiers.at(names[0]);
  const Rows& slow = tiers.at(names[1]);
  const Row& best_fast = fast.at(best_of(fast));
  const Row& best_slow = slow.at(best_of(slow));
  const Ratio ratio = ratio_of_medians(best_fast, best_slow);
  EXPECT_GE(ratio.middle, 1) << text;
  if (const auto best =
          parts_of(text, "best thread count \\(# MiB/s at # threads?, # MiB/s at # threads?\\)");
      !best.empty()) {
    EXPECT_TRUE(is_rounded(best[0], rate_of(best_fast))) << text;
    EXPECT_EQ(number_in(best[1]), best_of(fast)) << text;
    EXPECT_TRUE(is_rounded(best[2], rate_of(best_slow))) << text;
    EXPECT_EQ(number_in(best[3]), best_of(slow)) << text;
  } else {
    EXPECT_EQ(fast.size() * slow.size(), 1U) << text;
  }
  if (const auto feeds = parts_of(text, std::string("delivers ") + kRatio + " the rate of"); !feeds.empty()) {
    EXPECT_TRUE(is_told(feeds[0], feeds[1], ratio)) << text;
    EXPECT_TRUE(ratio.is_known() && !ratio.is_same()) << text;
  } else if (text.find("cannot be distinguished") != std::string::npos) {
    EXPECT_TRUE(ratio.is_noise()) << text;
    EXPECT_TRUE(is_percent(parts_of(text, "differ by up to #%").at(0), ratio.apart)) << text;
  } else {
    EXPECT_TRUE(ratio.is_same()) << text;
  }
  for (const auto& [threads, row] : fast) {
    if (!slow.contains(threads)) continue;
    const Ratio here = ratio_of_medians(row, slow.at(threads));
    const Ratio faster = here.middle < 1 ? ratio_of_medians(slow.at(threads), row) : here;
    const std::string at = " at " + std::to_string(threads) + "(?:,| and|;| \\()";
    if (const auto told = parts_of(text, std::string("(?:threads |, |and )") + kRatio + at); !told.empty()) {
      EXPECT_TRUE(is_told(told[0], told[1], here)) << text << threads;
      EXPECT_TRUE(faster.is_known() && !faster.is_same()) << text << threads;
    } else if (!parts_of(text, "(no clear difference)" + at).empty() ||
               text.find("no clear difference at equal threads either") != std::string::npos) {
      EXPECT_TRUE(faster.is_noise()) << text;
    } else if (!parts_of(text, "(the same)" + at).empty()) {
      EXPECT_TRUE(faster.is_same()) << text;
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
  const auto ratio = [&](int threads, int base) { return ratio_between(rows.at(threads), rows.at(base)); };
  std::map<int, double> scaled;
  for (const auto& [threads, row] : rows) scaled[threads] = ratio(threads, first).middle;
  if (const auto gains = parts_of(text, std::string("gains up to # threads?, ") + kRatio + " of # thread");
      !gains.empty()) {
    const int count = int(number_in(gains[0]));
    EXPECT_TRUE(is_told(gains[1], gains[2], ratio(count, first))) << text;
    EXPECT_EQ(number_in(gains[3]), first) << text;
    EXPECT_TRUE(ratio(count, first).is_known()) << text;
    EXPECT_TRUE(is_percent(parts_of(text, "differ by up to #%").at(0), most_apart(rows, count))) << text;
  } else if (text.starts_with("More than")) {
    EXPECT_EQ(number_in(parts_of(text, "More than # thread").at(0)), first) << text;
    const double told = number_in(parts_of(text, "differ by up to #%").at(0)) / 100;
    EXPECT_LE(told, most_apart(rows, first) + 0.006) << text;
  } else if (const auto loses = parts_of(text,
                                         "(?:fastest at # threads? and )?loses #% (?:of that|from # "
                                         "threads?) (?:at|to) # thread");
             !loses.empty()) {
    const int peak = int(number_in(loses[0].empty() ? loses[2] : loses[0]));
    bool is_fastest = true;
    for (const auto& [threads, scaling] : scaled) {
      EXPECT_LE(scaling, scaled.at(peak)) << text;
      is_fastest = is_fastest && (threads == peak || ratio(peak, threads).is_known());
    }
    EXPECT_EQ(loses[0].empty(), !is_fastest) << text;
    const double lost = 1 - scaled.at(last) / scaled.at(peak);
    EXPECT_TRUE(is_percent(loses[1], lost)) << text;
    EXPECT_GE(lost, std::max(0.1, most_apart(rows, peak))) << text;
    EXPECT_GE(ratio(peak, last).least, 1.005) << text;
    EXPECT_EQ(number_in(loses[3]), last) << text;
  } else if (const auto still = parts_of(text, std::string("still gains at # threads?, the most that were "
                                                           "measured(?:: ") +
                                                   kRatio + " of # thread)?");
             !still.empty()) {
    EXPECT_EQ(number_in(still[0]), last) << text;
    const auto before = std::prev(scaled.end(), 2);
    EXPECT_GE(scaled.at(last), before->second * 1.1) << text;
    EXPECT_TRUE(ratio(last, before->first).is_known()) << text;
    if (!still[2].empty()) {
      EXPECT_TRUE(is_told(still[1], still[2], ratio(last, first))) << text;
      EXPECT_TRUE(ratio(last, first).is_known()) << text;
    }
  } else {
    const auto stops = parts_of(text, "stops scaling at # thread");
    ASSERT_EQ(stops.size(), 1U) << text;
    const int count = int(number_in(stops[0]));
    for (const auto& [threads, scaling] : scaled) {
      if (threads > count) {
        EXPECT_LT(scaling, scaled.at(count) * 1.1) << text;
      }
    }
    EXPECT_LE(most_apart(rows, count), 0.1 + 1e-9) << text;
    if (const auto gain = parts_of(text, std::string(", ") + kRatio + " of # thread"); !gain.empty()) {
      EXPECT_TRUE(is_told(gain[0], gain[1], ratio(count, first))) << text;
      EXPECT_TRUE(ratio(count, first).is_known()) << text;
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
    const std::vector<double>& rates = rows.at(best_of(rows)).rates;
    const auto count = [](double rate) { return std::floor(rate * 10 / 200); };
    const double least = count(*std::min_element(rates.begin(), rates.end()));
    const double most = count(*std::max_element(rates.begin(), rates.end()));
    const auto told = parts_of(text, tier + "(?: could feed)?(?: at most| (\\d+) to) (\\d+) at # thread");
    ASSERT_EQ(told.size(), 3U) << text;
    EXPECT_EQ(number_in(told[1]), most) << text;
    EXPECT_EQ(told[0].empty(), least < 1 || least == most) << text;
    if (!told[0].empty()) {
      EXPECT_EQ(number_in(told[0]), least) << text;
    }
    EXPECT_EQ(number_in(told[2]), best_of(rows)) << text;
  }
}

void check_cold_warm(const std::string& text, const World& world) {
  const auto parts = parts_of(text, "^(\\w+) .* at # thread");
  ASSERT_EQ(parts.size(), 2U) << text;
  const int threads = int(number_in(parts[1]));
  const Row& cold = world.at("cold").at(parts[0]).at(threads);
  const Row& warm = world.at("warm").at(parts[0]).at(threads);
  const bool warm_is_faster = rate_of(warm) > rate_of(cold);
  const Ratio faster = warm_is_faster ? ratio_of_medians(warm, cold) : ratio_of_medians(cold, warm);
  if (const auto told = parts_of(text, std::string("is ") + kRatio + " (faster|slower) warm");
      !told.empty()) {
    EXPECT_TRUE(is_told(told[0], told[1], faster)) << text;
    EXPECT_EQ(told[2] == "faster", warm_is_faster) << text;
    EXPECT_TRUE(faster.is_known() && !faster.is_same()) << text;
  } else if (text.find("cannot be distinguished") != std::string::npos) {
    EXPECT_TRUE(faster.is_noise()) << text;
  } else {
    EXPECT_TRUE(faster.is_same()) << text;
  }
}

void check_noise(const std::string& text, const World& world) {
  double most = 0;
  for (const auto& [cache, tiers] : world)
    for (const auto& [tier, rows] : tiers) most = std::max(most, most_apart(rows, 0));
  EXPECT_TRUE(is_percent(parts_of(text, "differ by up to #%").at(0), most)) << text;
}

TEST(ReadClaims, EverySentenceAgreesWithTheFigures) {
  const std::map<std::string, void (*)(const std::string&, const World&)> checks{
      {"tiers", check_tiers},
      {"scaling", check_scaling},
      {"ceiling", check_ceiling},
      {"ceiling_invalid", check_ceiling_invalid},
      {"baseline", check_baseline},
      {"baseline_invalid",
       [](const std::string& text, const World&) { EXPECT_TRUE(text.starts_with("11500%")) << text; }},
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
