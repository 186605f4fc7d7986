#include "profiling/serve/metrics_server.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "io_backends/core/cli/progress.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {
namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(LiveMetrics, HaveTheTiersAndTheProgressLines) {
  LiveTiers tiers;
  Tier tier = *open_tier("fa_st=mem:x", kNoNamedTiers);
  const std::shared_ptr<void> token = tiers.add(tier);
  tier.activity->operations = 12;
  tier.activity->repeat = 2;
  const Progress steps(false, "alexnet on fast", 40, "steps");
  std::string text;
  {
    Progress other(false, "copy", 0, "files");
    other.advance(5);
    text = live_metrics_text({.labels = {{"command", "read"}}, .started = 1000}, tiers);
  }
  EXPECT_TRUE(has_line(text, "penstock_run_info{command=\"read\"} 1"));
  EXPECT_TRUE(has_line(text, "penstock_run_start_time_seconds 1000"));
  EXPECT_TRUE(has_line(text, "# TYPE penstock_tier_operations counter"));
  EXPECT_TRUE(has_line(text, "penstock_tier_operations_total{tier=\"fa_st\"} 12"));
  EXPECT_TRUE(has_line(text, "penstock_tier_read_bytes_total{tier=\"fa_st\"} 0"));
  EXPECT_TRUE(has_line(text, "penstock_tier_repeat{tier=\"fa_st\"} 2"));
  EXPECT_TRUE(has_line(text, "penstock_progress_planned{task=\"alexnet on fast\",unit=\"steps\"} 40"));
  EXPECT_TRUE(has_line(text, "penstock_progress_done{task=\"copy\",unit=\"files\"} 5"));
  EXPECT_TRUE(text.ends_with("# EOF\n"));
  text = live_metrics_text({}, tiers);
  EXPECT_EQ(text.find("copy"), std::string::npos) << "the line is gone";
}

TEST(LiveMetrics, ProgressCountsWhereItIsTold) {
  std::atomic<uint64_t> counter{0};
  Progress progress(false, "generate", 10, "samples", &counter);
  progress.advance(3);
  EXPECT_EQ(counter, 3U);
  for (const Progress::Figures& line : Progress::all())
    if (line.title == "generate") {
      EXPECT_EQ(line.done, 3U);
    }
}

}  // namespace
}  // namespace penstock
