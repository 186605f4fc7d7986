#include "datagen/cache/cache_control.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "datagen/corpus/corpus_samples.hpp"
#include "datagen/objects/scripted_backend.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

constexpr uint64_t kFiles = 40;

// A simulated kernel whose page cache can obey, refuse to evict, or not report what is resident.
struct Kernel {
  bool evicts = true;
  int evict_errno = 0;
  bool warms = true;
  bool reports_residency = true;
  bool may_drop = true;
  std::map<std::string, bool> resident;
  int evictions = 0;
  int drops = 0;
  int warmed = 0;
  std::mutex mutex;

  PageCacheCalls calls() {
    PageCacheCalls calls;
    calls.residency = [this](const std::filesystem::path& file) -> Result<Residency> {
      std::lock_guard lock(mutex);
      const bool is_resident = resident[file.filename().string()];
      return Residency{
          .resident_bytes = is_resident ? 100U : 0U, .total_bytes = 100, .verified = reports_residency};
    };
    calls.evict = [this](const std::filesystem::path& file) -> Result<void> {
      std::lock_guard lock(mutex);
      ++evictions;
      if (evict_errno != 0) return errno_error(evict_errno, "cannot evict", file.filename().string());
      if (evicts) resident[file.filename().string()] = false;
      return success();
    };
    calls.warm = [this](const std::filesystem::path& file) -> Result<void> {
      std::lock_guard lock(mutex);
      ++warmed;
      if (warms) resident[file.filename().string()] = true;
      return success();
    };
    calls.drop = [this]() -> Result<void> {
      std::lock_guard lock(mutex);
      ++drops;
      if (!may_drop) return make_error(Errc::permission_denied, "cannot drop caches");
      for (auto& [name, is_resident] : resident) is_resident = false;
      return success();
    };
    return calls;
  }
};

class CacheControlTest : public testing::Test {
 protected:
  CacheControlTest() {
    auto backend = std::make_unique<ScriptedBackend>();
    backend_ = backend.get();
    manifest_ = std::make_unique<Manifest>(scripted_files(*backend_, kFiles));
    samples_ = std::make_unique<SampleList>(corpus_samples(*manifest_).value());
    tier_.name = "disk";
    tier_.spec = "disk=posix:/scripted";
    tier_.backend = std::move(backend);
    for (uint32_t i = 0; i < kFiles; ++i) kernel_.resident[std::string(samples_->name(i))] = true;
  }
  CacheControl control(CacheRequest requested, ColdMethod method = ColdMethod::evict) {
    return CacheControl(tier_, *manifest_, *samples_, requested, method, 2, kernel_.calls());
  }

  Tier tier_;
  ScriptedBackend* backend_ = nullptr;
  std::unique_ptr<Manifest> manifest_;
  std::unique_ptr<SampleList> samples_;
  Kernel kernel_;
};

TEST_F(CacheControlTest, ColdIsProvenByAskingEveryFile) {
  const CacheOutcome outcome = control(CacheRequest::cold).prepare().value();
  EXPECT_EQ(outcome.verdict, Verdict::ok);
  EXPECT_EQ(outcome.state.client_data, "cold");
  EXPECT_EQ(outcome.state.client_metadata, "warm") << "asking opens every file";
  EXPECT_EQ(outcome.state.method, "evict");
  EXPECT_EQ(outcome.state.resident_fraction_before, 0.0);
  EXPECT_EQ(kernel_.evictions, int(kFiles));
  EXPECT_EQ(kernel_.drops, 0);
}

TEST_F(CacheControlTest, NotColdAfterThreeTries) {
  kernel_.evicts = false;
  const CacheOutcome outcome = control(CacheRequest::cold).prepare().value();
  EXPECT_EQ(outcome.verdict, Verdict::not_cold);
  EXPECT_EQ(outcome.state.client_data, "unknown");
  EXPECT_EQ(outcome.state.resident_fraction_before, 1.0);
  EXPECT_NE(outcome.reason.find("'disk'"), std::string::npos);
  EXPECT_EQ(kernel_.evictions, 3 * int(kFiles));
}

TEST_F(CacheControlTest, NotColdAfterOneTryIfTheKernelRefuses) {
  kernel_.evict_errno = EPERM;
  const CacheOutcome outcome = control(CacheRequest::cold).prepare().value();
  EXPECT_EQ(outcome.verdict, Verdict::not_cold);
  EXPECT_NE(outcome.reason.find(std::strerror(EPERM)), std::string::npos) << outcome.reason;
  EXPECT_EQ(kernel_.evictions, int(kFiles));
  kernel_.evict_errno = ENOENT;
  EXPECT_EQ(control(CacheRequest::cold).prepare()->reason.find("cannot evict"), std::string::npos);
}

TEST_F(CacheControlTest, WarmReadsOnlyFilesThatAreNotCached) {
  kernel_.resident["s0003"] = false;
  kernel_.resident["s0030"] = false;
  CacheControl warm = control(CacheRequest::warm);
  const CacheOutcome outcome = warm.prepare().value();
  EXPECT_EQ(outcome.verdict, Verdict::ok);
  EXPECT_EQ(outcome.state.client_data, "warm");
  EXPECT_EQ(kernel_.warmed, 2);
  EXPECT_EQ(warm.warmed_bytes(), manifest_->object_bytes(3) + manifest_->object_bytes(30));
}

TEST_F(CacheControlTest, NotWarmIfTheCacheDoesNotKeepTheFiles) {
  for (auto& [name, is_resident] : kernel_.resident) is_resident = false;
  kernel_.warms = false;
  const CacheOutcome outcome = control(CacheRequest::warm).prepare().value();
  EXPECT_EQ(outcome.verdict, Verdict::not_warm);
  EXPECT_EQ(outcome.state.resident_fraction_before, 0.0);
}

TEST_F(CacheControlTest, UnverifiedAndWithoutAFractionIfTheKernelDoesNotReport) {
  kernel_.reports_residency = false;
  for (const CacheRequest requested : {CacheRequest::cold, CacheRequest::warm, CacheRequest::asis}) {
    const CacheOutcome outcome = control(requested).prepare().value();
    EXPECT_EQ(outcome.verdict, Verdict::ok);
    EXPECT_EQ(outcome.state.client_data, "unverified");
    EXPECT_FALSE(outcome.state.resident_fraction_before.has_value());
  }
  EXPECT_EQ(kernel_.evictions, int(kFiles)) << "it still does what it may, once";
}

TEST_F(CacheControlTest, DroppingMakesTheMetadataColdToo) {
  const CacheOutcome outcome = control(CacheRequest::cold, ColdMethod::drop).prepare().value();
  EXPECT_EQ(outcome.state.method, "drop");
  EXPECT_EQ(outcome.state.client_metadata, "cold");
  EXPECT_EQ(kernel_.drops, 2) << "once more after the proof, which opened every file";
  EXPECT_EQ(kernel_.evictions, 0);
}

TEST_F(CacheControlTest, WithoutPermissionToDropItEvictsAndReportsThat) {
  kernel_.may_drop = false;
  CacheControl cold = control(CacheRequest::cold, ColdMethod::drop);
  const CacheOutcome outcome = cold.prepare().value();
  EXPECT_EQ(outcome.state.method, "evict");
  EXPECT_EQ(outcome.state.client_data, "cold");
  EXPECT_EQ(outcome.state.client_metadata, "warm");
  EXPECT_NE(cold.drop_error().find("cannot drop caches"), std::string::npos);
  EXPECT_EQ(cold.prepare().value().state.method, "evict");
  EXPECT_EQ(kernel_.drops, 1) << "it is not tried again";
}

TEST_F(CacheControlTest, MemoryIsMemoryForEveryRequest) {
  tier_.facts.memory = true;
  for (const CacheRequest requested : {CacheRequest::cold, CacheRequest::warm}) {
    const CacheOutcome outcome = control(requested).prepare().value();
    EXPECT_EQ(outcome.state.client_data, "memory");
    EXPECT_EQ(outcome.state.method, "");
    EXPECT_FALSE(outcome.state.resident_fraction_before.has_value());
  }
  EXPECT_EQ(kernel_.evictions, 0);
}

TEST_F(CacheControlTest, DirectReadsBypassTheCacheAndOtherObjectsHaveNone) {
  backend_->change_caps().bypasses_cache = true;
  EXPECT_EQ(control(CacheRequest::cold).prepare().value().state.client_data, "bypassed");
  backend_->change_caps().bypasses_cache = false;
  backend_->change_caps().native_path = false;
  EXPECT_EQ(control(CacheRequest::cold).prepare().value().state.client_data, "none");
}

TEST_F(CacheControlTest, DirectReadsGetColdMetadataByADrop) {
  backend_->change_caps().bypasses_cache = true;
  CacheControl cold = control(CacheRequest::cold, ColdMethod::drop);
  for (int repeat = 1; repeat <= 2; ++repeat) {
    const CacheOutcome outcome = cold.prepare().value();
    EXPECT_EQ(outcome.verdict, Verdict::ok);
    EXPECT_EQ(outcome.state.client_data, "bypassed");
    EXPECT_EQ(outcome.state.client_metadata, "cold");
    EXPECT_EQ(outcome.state.method, "drop");
    EXPECT_FALSE(outcome.state.resident_fraction_before.has_value());
    EXPECT_EQ(kernel_.drops, repeat) << "once before every pass";
  }
  EXPECT_EQ(kernel_.evictions, 0);
}

TEST_F(CacheControlTest, DirectReadsCauseADropOnlyForAColdRequestWithDrop) {
  backend_->change_caps().bypasses_cache = true;
  const std::pair<CacheRequest, ColdMethod> others[] = {{CacheRequest::cold, ColdMethod::evict},
                                                        {CacheRequest::warm, ColdMethod::drop},
                                                        {CacheRequest::asis, ColdMethod::drop}};
  for (const auto& [requested, method] : others) {
    const CacheState state = control(requested, method).prepare().value().state;
    EXPECT_EQ(state.client_data, "bypassed");
    EXPECT_EQ(state.client_metadata, "unknown");
    EXPECT_EQ(state.method, "");
  }
  EXPECT_EQ(kernel_.drops, 0);
}

TEST_F(CacheControlTest, DirectReadsReportThatADropFailed) {
  backend_->change_caps().bypasses_cache = true;
  kernel_.may_drop = false;
  CacheControl cold = control(CacheRequest::cold, ColdMethod::drop);
  for (int repeat = 1; repeat <= 2; ++repeat) {
    const CacheOutcome outcome = cold.prepare().value();
    EXPECT_EQ(outcome.verdict, Verdict::ok);
    EXPECT_EQ(outcome.state.client_data, "bypassed");
    EXPECT_EQ(outcome.state.client_metadata, "unknown") << "nobody looked";
    EXPECT_EQ(outcome.state.method, "") << "nothing was done";
    EXPECT_EQ(kernel_.drops, 1) << "it is not tried again";
  }
  EXPECT_NE(cold.drop_error().find("cannot drop caches"), std::string::npos);
}

TEST_F(CacheControlTest, DirectReadsStopWhenInterruptedBeforeTheCacheIsDropped) {
  backend_->change_caps().bypasses_cache = true;
  simulate_interrupt(SIGINT);
  const Result<CacheOutcome> outcome = control(CacheRequest::cold, ColdMethod::drop).prepare();
  simulate_interrupt(0);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, Errc::interrupted);
  EXPECT_EQ(kernel_.drops, 0);
}

TEST_F(CacheControlTest, AsIsOnlyMeasures) {
  const CacheOutcome outcome = control(CacheRequest::asis).prepare().value();
  EXPECT_EQ(outcome.state.client_data, "asis");
  EXPECT_EQ(outcome.state.resident_fraction_before, 1.0);
  EXPECT_EQ(kernel_.evictions + kernel_.warmed, 0);
}

TEST_F(CacheControlTest, AServerBehindANetworkIsUnknown) {
  tier_.facts.network = true;
  EXPECT_EQ(control(CacheRequest::cold).prepare().value().state.server, "unknown");
  tier_.facts.network = false;
  tier_.facts.fs_type = "ext4";
  EXPECT_EQ(control(CacheRequest::cold).prepare().value().state.server, "none");
  tier_.facts.fs_type = "fuse.newcomer";
  EXPECT_EQ(control(CacheRequest::cold).prepare().value().state.server, "unknown");
}

TEST(KeepWorse, MetadataAreColdOnlyIfAllNodesFoundThemCold) {
  const auto of_both = [](const char* one, const char* other) {
    CacheState state;
    state.client_metadata = one;
    CacheState more;
    more.client_metadata = other;
    combine_cache_states(state, more);
    return state.client_metadata;
  };
  EXPECT_EQ(of_both("cold", "cold"), "cold");
  EXPECT_EQ(of_both("cold", "warm"), "warm");
  EXPECT_EQ(of_both("warm", "cold"), "warm");
  EXPECT_EQ(of_both("cold", "unknown"), "unknown");
}

TEST_F(CacheControlTest, StopsWhenInterrupted) {
  simulate_interrupt(SIGINT);
  const Result<CacheOutcome> outcome = control(CacheRequest::cold).prepare();
  simulate_interrupt(0);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, Errc::interrupted);
}

}  // namespace
}  // namespace penstock
