#include "io_backends/tiers/tier.hpp"

#include <cstring>
#include <sstream>

#include "io_backends/files/mounts.hpp"
#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

struct Parsed {
  std::string text, name, backend, path, options;
};

TEST(ParseTier, TheGrammar) {
  const std::vector<Parsed> rows{
      {"fast=posix:/dev/shm/p", "fast", "posix", "/dev/shm/p", ""},
      {"posix:/dev/shm/p", "", "posix", "/dev/shm/p", ""},
      {"/data/p", "", "posix", "/data/p", ""},
      {"data/p", "", "posix", "data/p", ""},
      {"data", "", "posix", "data", ""},
      {"./a:b", "", "posix", "./a:b", ""},
      {"/a:b/c", "", "posix", "/a:b/c", ""},
      {"disk=/data/p", "disk", "posix", "/data/p", ""},
      {"disk=posix:/data/a=b", "disk", "posix", "/data/a=b", ""},
      {"/data/a=b", "", "posix", "/data/a=b", ""},
      {"posix:/data/a=b:c", "", "posix", "/data/a=b:c", ""},
      {"direct:/data/p", "", "posix", "/data/p", "direct=1"},
      {"d=direct:/data/p,limit=1MB/s", "d", "posix", "/data/p", "direct=1 limit=1MB/s"},
      {"disk=posix:/p,limit=150MB/s,latency=5ms", "disk", "posix", "/p", "limit=150MB/s latency=5ms"},
      {"/p,limit=1MB/s", "", "posix", "/p", "limit=1MB/s"},
      {"posix:/a,b/c", "", "posix", "/a,b/c", ""},
      {"posix:/a,b,limit=1MB/s", "", "posix", "/a,b", "limit=1MB/s"},
      {"posix:/a%2Climit=1/c", "", "posix", "/a,limit=1/c", ""},
      {"posix:/a%2cb%20", "", "posix", "/a,b%20", ""},
      {"posix:/p,fail=eio@0.01+write:enospc@#3", "", "posix", "/p", "fail=eio@0.01+write:enospc@#3"},
      {"mem:", "", "mem", "", ""},
      {"m=mem:x", "m", "mem", "x", ""},
  };
  for (const Parsed& row : rows) {
    const auto spec = parse_tier(row.text, kNoNamedTiers);
    ASSERT_OK(spec) << row.text;
    EXPECT_EQ(spec->text, row.text);
    EXPECT_EQ(spec->name, row.name) << row.text;
    EXPECT_EQ(spec->backend, row.backend) << row.text;
    EXPECT_EQ(spec->path, row.path) << row.text;
    std::string options;
    for (const OptionWord& word : spec->options)
      options += (options.empty() ? "" : " ") + word.key + "=" + word.value;
    EXPECT_EQ(options, row.options) << row.text;
  }
}

TEST(ParseTier, MistakesAreNamedWithARemedy) {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"", "no path"},
      {"x=", "no path"},
      {"=posix:/p", "name"},
      {"posx:/p", "'posix'"},
      {"fast=posx:/p", "'posix'"},
      {"nosuch:/p", "valid: direct, libaio, mem, mmap"},
      {"posix:/p,limit=1MB/s,oops", "%2C"},
      {"posix:/p,limit=1MB/s,=3", "%2C"},
  };
  for (const auto& [text, hint] : rows) {
    const auto spec = parse_tier(text, kNoNamedTiers);
    EXPECT_ERRC(Errc::invalid_argument, spec, hint) << text;
  }
}

TEST(OpenTier, OptionsAreChecked) {
  const std::vector<std::pair<std::string, std::string>> rows{{"posix:/p,limt=1MB/s", "'limit'"},
                                                              {"posix:/p,limit=0", "limit"},
                                                              {"posix:/p,limit=fast", "limit"},
                                                              {"posix:/p,latency=5", "latency"},
                                                              {"posix:/p,fail=eoi@1", "'eio'"},
                                                              {"posix:/p,direct=2", "direct"},
                                                              {"mem:x,direct=1", "direct"},
                                                              {"posix:", "folder"},
                                                              {"posix:/p,capacity=-1", "capacity"},
                                                              {"posix:/p,publish=never", "publish"},
                                                              {"posix:/p,limit=99999999999GB", "limit"}};
  for (const auto& [text, hint] : rows) {
    const auto tier = open_tier(text, kNoNamedTiers);
    EXPECT_ERRC(Errc::invalid_argument, tier, hint) << text;
  }
}

TEST(OpenTier, SaysWhatItIs) {
  const ScratchFolder scratch;
  const auto tier = open_tier(scratch.path().string() + "/not/there/yet,limit=1GB/s", kNoNamedTiers);
  ASSERT_OK(tier);
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "not"));
  EXPECT_EQ(tier->backend_name, "posix");
  EXPECT_EQ(tier->root, scratch.path().string() + "/not/there/yet");
  EXPECT_EQ(tier->spec, scratch.path().string() + "/not/there/yet,limit=1GB/s");
  EXPECT_FALSE(tier->name.empty());
  EXPECT_FALSE(tier->facts.fs_type.empty());
  EXPECT_TRUE(tier->backend->caps().emulated);
  const auto memory = open_tier("mem:x", kNoNamedTiers);
  ASSERT_OK(memory);
  EXPECT_EQ(memory->name, "mem");
  EXPECT_TRUE(memory->facts.memory);
}

TEST(OpenTier, SeveralHaveDifferentNames) {
  const std::vector<std::string> texts{"mem:a", "mem:b", "mem-2=mem:c", "mem:d"};
  const auto tiers = open_tiers(texts, "", kNoNamedTiers);
  EXPECT_ERRC(Errc::invalid_argument, tiers) << "mem-2 was taken by then";
  const std::vector<std::string> fine{"mem:a", "mem:b", "fast=mem:c", "mem:d"};
  const auto open = open_tiers(fine, "", kNoNamedTiers);
  ASSERT_OK(open);
  std::vector<std::string> names;
  for (const Tier& tier : *open) names.push_back(tier.name);
  EXPECT_EQ(names, (std::vector<std::string>{"mem", "mem-2", "fast", "mem-3"}));
  const std::vector<std::string> twice{"x=mem:a", "x=mem:b"};
  EXPECT_ERRC(Errc::invalid_argument, open_tiers(twice, "", kNoNamedTiers));
  EXPECT_ERRC(Errc::invalid_argument, open_tiers(twice, "x", kNoNamedTiers)) << "whoever else has it";
  const std::vector<std::string> after{"mem=mem:a", "mem:b"};
  const auto numbered = open_tiers(after, "mem", kNoNamedTiers);
  ASSERT_OK(numbered);
  EXPECT_EQ(numbered->at(0).name, "mem-2") << "a corpus keeps its own name";
  EXPECT_EQ(numbered->at(1).name, "mem-3");
}

constexpr const char* kMountinfo =
    "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n"
    "23 22 0:21 / /dev/shm rw,nosuid - tmpfs tmpfs rw,size=1g\n"
    "24 22 0:40 / /mnt/with\\040space rw - nfs4 server:/export\\040a rw,vers=4.2\n"
    "25 22 0:41 / /mnt/glu rw - fuse.glusterfs host:/vol rw\n"
    "26 22 0:42 / /mnt/ssh rw - fuse.ext2 /dev/sdb rw\n"
    "27 22 0:43 / /data rw master:3 propagate_from:2 - xfs /dev/sdc rw\n"
    "28 27 0:44 / /data rw - lustre mgs@tcp:/scratch rw\n"
    "29 22 0:45 / /mnt/mfs rw - fuse mfs#10.0.0.1:9421 rw,allow_other\n"
    "30 22 0:46 / /mnt/fuse rw - fuse /dev/disk#1 rw\n"
    "31 22 0:47 / /mnt/virtio rw - virtiofs shared rw\n"
    "32 22 0:48 / /mnt/pan rw - panfs panfs://realm/vol rw\n"
    "33 22 0:49 / /mnt/bee rw - beegfs_nodev beegfs_nodev rw\n"
    "34 22 0:50 / /mnt/s3 rw - fuse mountpoint-s3 rw\n"
    "35 22 0:51 / /mnt/s3typed rw - fuse.mountpoint-s3 bucket rw\n"
    "36 22 0:52 / /mnt/blob rw - fuse blobfuse2 rw\n"
    "37 22 0:53 / /mnt/alluxio rw - fuse.alluxio-fuse alluxio-fuse rw\n"
    "38 22 0:54 / /mnt/weed rw - fuse.seaweedfs host:8888:/ rw\n"
    "39 22 0:55 / /mnt/odd rw - fuse.newcomer something rw\n"
    "40 22 0:56 / /mnt/newer rw - newfs something rw\n"
    "41 22 0:57 / /mnt/layers rw - overlay overlay rw,lowerdir=/a,upperdir=/b\n"
    "42 22 8:1 / /mnt/xfs rw - xfs /dev/sdd rw\n"
    "43 22 8:2 / /mnt/ntfs rw - fuseblk /dev/sde rw\n"
    "not a line\n";

TierFacts facts_of(const char* path) {
  std::istringstream mountinfo(kMountinfo);
  return facts_from_mountinfo(mountinfo, path);
}

TEST(TierFacts, FindsTheMountOfAPath) {
  EXPECT_EQ(facts_of("/home/x").mount_point, "/");
  EXPECT_EQ(facts_of("/home/x").device, "/dev/vda");
  EXPECT_EQ(facts_of("/home/x").mount_options, "rw,relatime;rw,discard");
  EXPECT_FALSE(facts_of("/home/x").memory);
  EXPECT_EQ(facts_of("/dev/shm").mount_point, "/dev/shm");
  EXPECT_TRUE(facts_of("/dev/shm/p").memory);
  EXPECT_EQ(facts_of("/dev/shmoo").mount_point, "/") << "only whole parts of a path count";
  EXPECT_EQ(facts_of("/mnt/with space/x").fs_type, "nfs4");
  EXPECT_EQ(facts_of("/mnt/with space/x").device, "server:/export a");
  EXPECT_TRUE(facts_of("/mnt/with space/x").network);
  EXPECT_TRUE(facts_of("/mnt/glu/x").network);
  EXPECT_FALSE(facts_of("/mnt/ssh/x").network);
  EXPECT_EQ(facts_of("/mnt/mfs/x").fs_type, "fuse.mfs") << "which MooseFS says before its source";
  EXPECT_EQ(facts_of("/mnt/mfs/x").device, "10.0.0.1:9421");
  EXPECT_TRUE(facts_of("/mnt/mfs/x").network);
  EXPECT_EQ(facts_of("/mnt/fuse/x").device, "/dev/disk#1");
  EXPECT_FALSE(facts_of("/mnt/fuse/x").network);
  EXPECT_EQ(facts_of("/data/x").fs_type, "lustre") << "the later mount covers the earlier";
  EXPECT_TRUE(facts_of("/data/x").network);
}

TEST(TierFacts, AnUnknownFileSystemMayUseAServer) {
  for (const char* const path : {"/home", "/dev/shm", "/mnt/ssh", "/mnt/xfs", "/mnt/ntfs"}) {
    EXPECT_TRUE(is_on_this_machine(facts_of(path))) << path;
    EXPECT_FALSE(facts_of(path).network) << path;
  }
  for (const char* const path : {"/mnt/virtio", "/mnt/pan", "/mnt/bee", "/mnt/s3", "/mnt/s3typed",
                                 "/mnt/blob", "/mnt/alluxio", "/mnt/weed", "/data", "/mnt/glu", "/mnt/mfs"}) {
    EXPECT_TRUE(facts_of(path).network) << path;
    EXPECT_FALSE(is_on_this_machine(facts_of(path))) << path;
  }
  for (const char* const path : {"/mnt/fuse", "/mnt/odd", "/mnt/newer", "/mnt/layers"}) {
    EXPECT_FALSE(facts_of(path).network) << path << ", as far as anybody knows";
    EXPECT_FALSE(is_on_this_machine(facts_of(path))) << path;
  }
  EXPECT_FALSE(is_on_this_machine({}));
}

TEST(TierFacts, KnowsThisMachinesMounts) {
  const TierFacts proc = inspect_path("/proc/self");
  EXPECT_EQ(proc.fs_type, "proc");
  const TierFacts absent = inspect_path("/no/such/folder");
  EXPECT_EQ(absent.mount_point, "/");
}

TEST(TierFacts, ReadsALustreLayout) {
  std::vector<std::byte> layout(48);
  const auto set = [&](size_t at, auto value) { std::memcpy(layout.data() + at, &value, sizeof value); };
  set(0, uint32_t{0x0bd10bd0});
  set(24, uint32_t{1U << 20U});
  set(28, uint16_t{4});
  EXPECT_EQ(describe_lustre_layout(layout), "4 x 1.0 MiB");
  set(28, uint16_t{0xffff});
  EXPECT_EQ(describe_lustre_layout(layout), "all x 1.0 MiB");
  set(0, uint32_t{0x0bd60bd0});
  EXPECT_EQ(describe_lustre_layout(layout), "composite");
  set(0, uint32_t{7});
  EXPECT_EQ(describe_lustre_layout(layout), "");
  EXPECT_EQ(describe_lustre_layout(std::span(layout).first(3)), "");
}

}  // namespace
}  // namespace penstock
