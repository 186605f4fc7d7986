#include "results/record/environment.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "io_backends/core/system/cgroup.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

class Cgroups : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "penstock-cgroup-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }
  void put(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }
  // A quota of processors of a group, with cgroup version 1.
  void put_quota(const std::string& group, const std::string& quota_us) const {
    put("sys/fs/cgroup/cpu/" + group + "/cpu.cfs_quota_us", quota_us);
    put("sys/fs/cgroup/cpu/" + group + "/cpu.cfs_period_us", "100000");
  }
  fs::path root_;
};

TEST_F(Cgroups, Version2HasTheTightestLimitOfAllParents) {
  put("proc/self/cgroup", "0::/job/step");
  put("sys/fs/cgroup/cgroup.controllers", "cpu memory");
  put("sys/fs/cgroup/job/memory.max", "1000000");
  put("sys/fs/cgroup/job/cpu.max", "150000 100000");
  put("sys/fs/cgroup/job/step/memory.max", "max");
  put("sys/fs/cgroup/job/step/cpu.max", "max 100000");
  put("sys/fs/cgroup/job/step/io.max", "254:0 rbps=52428800");
  const Json limits = cgroup_limits(root_);
  EXPECT_EQ(limits["version"], 2);
  EXPECT_EQ(limits["path"], "/job/step");
  EXPECT_EQ(limits["memory_bytes"], 1000000);
  EXPECT_EQ(limits["cpus"], 1.5);
  EXPECT_EQ(limits["io"], "254:0 rbps=52428800");
}

TEST_F(Cgroups, Version1ReadsEachControllerAndTheNumberForNoLimit) {
  put("proc/self/cgroup", "3:cpu,cpuacct:/a\n2:memory:/a\n1:blkio:/gone\n0::/");
  put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712");
  put_quota("a", "50000");
  put("sys/fs/cgroup/blkio/blkio.throttle.read_bps_device", "7:0 52428800");
  const Json limits = cgroup_limits(root_);
  EXPECT_FALSE(limits.contains("memory_bytes"));
  EXPECT_EQ(limits["cpus"], 0.5);
  EXPECT_EQ(limits["io"], "read_bps 7:0 52428800");
}

TEST_F(Cgroups, Version1HasTheTightestLimitOfAllParents) {
  put("proc/self/cgroup", "3:cpu,cpuacct:/pod/box\n2:memory:/pod/box");
  put("sys/fs/cgroup/memory/pod/memory.limit_in_bytes", "1000000");
  put("sys/fs/cgroup/memory/pod/box/memory.limit_in_bytes", "2000000");
  put_quota("pod", "30000");
  put("sys/fs/cgroup/cpu/pod/cpu.stat", "nr_periods 10\nnr_throttled 4\nthrottled_time 2500000000");
  put_quota("pod/box", "-1");
  const Json limits = cgroup_limits(root_);
  EXPECT_EQ(limits["memory_bytes"], 1000000);
  EXPECT_EQ(limits["cpus"], 0.3);
  EXPECT_EQ(limits["throttled_s"], 2.5);
}

TEST_F(Cgroups, AvailableMemoryIsTheSmallestOfWhatIsKnown) {
  EXPECT_EQ(available_memory(root_), 0U) << "nothing is known";
  put("proc/self/cgroup", "0::/job/step");
  put("sys/fs/cgroup/cgroup.controllers", "cpu memory");
  put("sys/fs/cgroup/job/memory.max", "1000000");
  EXPECT_EQ(available_memory(root_), 1000000U) << "only the limit is known";
  put("proc/meminfo", "MemTotal: 4096 kB\nMemFree: x\nMemAvailable:    2048 kB");
  EXPECT_EQ(available_memory(root_), 1000000U);
  put("sys/fs/cgroup/job/memory.current", "700000");
  EXPECT_EQ(available_memory(root_), 300000U);
  put("sys/fs/cgroup/job/memory.stat", "anon 500000\ninactive_file 150000\nactive_file 50000");
  EXPECT_EQ(available_memory(root_), 450000U);
  put("sys/fs/cgroup/job/step/memory.max", "400000");
  put("sys/fs/cgroup/job/step/memory.current", "500000");
  EXPECT_EQ(available_memory(root_), 1U) << "the group is full";
  put("proc/meminfo", "MemAvailable: 0 kB");
  EXPECT_EQ(available_memory(root_), 1U);
}

TEST_F(Cgroups, GarbageIsNoLimit) {
  for (const std::string garbage :
       {"", "-1", "many", "99999999999999999999999", "max", "\x01\xff", "0x10 100000"}) {
    put("proc/self/cgroup", "0::/job");
    put("sys/fs/cgroup/cgroup.controllers", "cpu memory");
    put("sys/fs/cgroup/job/memory.max", garbage);
    put("sys/fs/cgroup/job/cpu.max", garbage);
    put("sys/fs/cgroup/job/cpu.stat", garbage);
    put("proc/meminfo", "MemAvailable: " + garbage + " kB");
    EXPECT_EQ(available_memory(root_), 0U) << garbage;
    const Json limits = cgroup_limits(root_);
    EXPECT_FALSE(limits.contains("memory_bytes")) << garbage;
    EXPECT_FALSE(limits.contains("cpus")) << garbage;
  }
  for (const std::string garbage : {"", "::", "0:", "0::", "nonsense", "x:y:z\n\n::::"}) {
    put("proc/self/cgroup", garbage);
    EXPECT_FALSE(cgroup_limits(root_).contains("cpus")) << garbage;
  }
}

TEST_F(Cgroups, Version1SubtractsWhatIsUsed) {
  put("proc/self/cgroup", "2:memory:/pod");
  put("sys/fs/cgroup/memory/pod/memory.limit_in_bytes", "1000000");
  put("sys/fs/cgroup/memory/pod/memory.usage_in_bytes", "900000");
  put("sys/fs/cgroup/memory/pod/memory.stat", "total_inactive_file 100000");
  EXPECT_EQ(available_memory(root_), 200000U);
}

TEST_F(Cgroups, WithoutACgroupThereAreNoLimits) {
  EXPECT_TRUE(cgroup_limits(root_).empty());
}

TEST(Environment, HasTheFactsOfTheMachine) {
  const Json json = inspect_environment();
  for (const char* name : {"host", "kernel", "cpu", "cpus", "numa", "governor"}) {
    ASSERT_TRUE(json.contains(name)) << name;
    EXPECT_TRUE(json[name].is_string()) << name;
  }
  EXPECT_GE(json["cpu_count"].get<int>(), 1);
  EXPECT_GT(json["memory_bytes"].get<uint64_t>(), 0U);
  EXPECT_TRUE(json["cgroup"].is_object());
  EXPECT_FALSE(json["build"]["compiler"].get<std::string>().empty());
  EXPECT_FALSE(json["versions"]["penstock"].get<std::string>().empty());
  EXPECT_FALSE(json["versions"]["fmt"].get<std::string>().empty());
  EXPECT_GT(json["clock_read_ns"].get<double>(), 0);
}

}  // namespace
}  // namespace penstock
