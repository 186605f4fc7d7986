#include "datagen/corpus/corpus.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "datagen/corpus/scan.hpp"
#include "datagen/format/byte_window.hpp"
#include "datagen/format/format_testing.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/checksums/tfrecord_framing.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

class CorpusTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "penstock-corpus-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override {
    simulate_interrupt(0);
    fs::remove_all(root_);
  }
  void put(const std::string& name, const std::string& content) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << content;
  }
  Result<Corpus> scan(CorpusRequest how = {}) const {
    how.scan = true;
    return open_corpus(root_.string(), how);
  }
  static std::vector<std::string> names(const Manifest& manifest) {
    std::vector<std::string> all;
    std::string scratch;
    for (uint64_t i = 0; i < manifest.objects(); ++i) all.emplace_back(manifest.object_name(i, scratch));
    return all;
  }

  fs::path root_;
};

TEST_F(CorpusTest, ScansAFolderInOrderWithLabelsFromFolders) {
  put("dog/b.jpg", "bb");
  put("dog/a.JPEG", "a");
  put("cat/z.jpg", "zzzz");
  put("cat/notes.txt", "x");
  put("cat/.hidden.jpg", "x");
  put(".penstock/manifest", "x");
  put("top.Jpe", "");
  put("no_extension", "x");
  const auto corpus = scan({.threads = 3});
  ASSERT_TRUE(corpus.ok()) << corpus.error().message();
  EXPECT_EQ(names(corpus->manifest),
            (std::vector<std::string>{"top.Jpe", "cat/z.jpg", "dog/a.JPEG", "dog/b.jpg"}));
  EXPECT_EQ(corpus->manifest.facts().label_names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(corpus->manifest.facts().recipe, "scan");
  EXPECT_EQ(corpus->manifest.facts().format, "files");
  EXPECT_EQ(corpus->manifest.facts().codec, "jpeg");
  EXPECT_FALSE(corpus->manifest.facts().checksums);
  EXPECT_TRUE(corpus->manifest.one_object_per_sample());
  EXPECT_EQ(corpus->manifest.sample(0).label, kNoLabel);
  EXPECT_EQ(corpus->manifest.sample(1).label, 0U);
  EXPECT_EQ(corpus->manifest.sample(3).label, 1U);
  EXPECT_EQ(corpus->manifest.sample(3).length, 2U);
  EXPECT_EQ(corpus->manifest.payload_bytes(), 7U);
  ASSERT_TRUE(corpus->scan.has_value());
  EXPECT_EQ(corpus->scan->unwanted_objects, 2U);
  EXPECT_EQ(corpus->scan->hidden_entries, 2U);
  EXPECT_EQ(corpus_json(corpus->manifest)["samples"], 4U);
  EXPECT_EQ(corpus->name, root_.filename().string());
}

TEST_F(CorpusTest, ScanIsTheSameForAnyNumberOfThreads) {
  for (int folder = 0; folder < 20; ++folder)
    for (int file = 0; file < 10; ++file)
      put("f" + std::to_string(folder) + "/" + std::to_string(file) + ".jpg", std::string(size_t(file), 'x'));
  const auto one = scan({.add_checksums = true, .threads = 1});
  const auto many = scan({.add_checksums = true, .threads = 7});
  ASSERT_TRUE(one.ok() && many.ok());
  EXPECT_EQ(one->manifest.checksum(), many->manifest.checksum());
  EXPECT_EQ(one->manifest.samples(), 200U);
}

TEST_F(CorpusTest, ScanKeepsChecksumsWhenAsked) {
  put("a/x.jpg", "123456789");
  const auto corpus = scan({.add_checksums = true});
  ASSERT_TRUE(corpus.ok()) << corpus.error().message();
  EXPECT_TRUE(corpus->manifest.facts().checksums);
  EXPECT_EQ(corpus->manifest.sample(0).crc32c, 0xe3069283U);
}

TEST_F(CorpusTest, TypesSayWhatASampleIs) {
  put("a/x.jpg", "1");
  put("a/y.PNG", "22");
  put("a/z", "333");
  const auto png = scan({.types = "png"});
  ASSERT_TRUE(png.ok());
  EXPECT_EQ(names(png->manifest), (std::vector<std::string>{"a/y.PNG"}));
  EXPECT_EQ(png->manifest.facts().codec, "png");
  const auto pictures = scan();
  ASSERT_TRUE(pictures.ok());
  EXPECT_EQ(names(pictures->manifest), (std::vector<std::string>{"a/x.jpg", "a/y.PNG"}));
  EXPECT_EQ(pictures->manifest.facts().codec, "mixed");
  const auto any = scan({.types = "any"});
  ASSERT_TRUE(any.ok());
  EXPECT_EQ(any->manifest.samples(), 3U);
  EXPECT_EQ(any->manifest.facts().codec, "mixed");
  const auto bad = scan({.types = "png,,"});
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, Errc::invalid_argument);
}

TEST_F(CorpusTest, LinksToFilesAreFollowedLinksToFoldersAreNot) {
  put("a/x.jpg", "12345");
  fs::create_symlink("x.jpg", root_ / "a" / "link.jpg");
  fs::create_directory_symlink(root_, root_ / "a" / "circle");
  const auto corpus = scan();
  ASSERT_TRUE(corpus.ok()) << corpus.error().message();
  EXPECT_EQ(names(corpus->manifest), (std::vector<std::string>{"a/link.jpg", "a/x.jpg"}));
  EXPECT_EQ(corpus->manifest.sample(0).length, 5U);
  EXPECT_EQ(corpus->scan->linked_folders, 1U);
  EXPECT_NE(corpus->scan->text.find("a/circle"), std::string::npos);
  EXPECT_EQ(corpus->scan->first_unentered_folder, "") << "nothing is missing";
}

TEST_F(CorpusTest, FollowLinksEntersFoldersBehindLinks) {
  put("real/cat/1.jpg", "1");
  put("real/dog/1.jpg", "2");
  fs::create_directory_symlink("real/cat", root_ / "pet");
  fs::create_directory_symlink("../..", root_ / "real" / "dog" / "circle");
  fs::create_directory_symlink("../cat", root_ / "real" / "dog" / "sibling");
  fs::create_directory_symlink("../dog", root_ / "real" / "cat" / "sibling");
  const auto without = scan();
  ASSERT_TRUE(without.ok()) << without.error().message();
  EXPECT_EQ(without->manifest.samples(), 2U);
  EXPECT_EQ(without->scan->linked_folders, 4U);
  EXPECT_EQ(without->scan->first_unentered_folder, "'pet'");
  const auto corpus = scan({.follow_links = true});
  ASSERT_TRUE(corpus.ok()) << corpus.error().message();
  EXPECT_EQ(names(corpus->manifest),
            (std::vector<std::string>{"pet/1.jpg", "pet/sibling/1.jpg", "real/cat/1.jpg",
                                      "real/cat/sibling/1.jpg", "real/dog/1.jpg", "real/dog/sibling/1.jpg"}));
  EXPECT_EQ(corpus->scan->first_unentered_folder, "") << "only links that lead in circles are left";
}

TEST_F(CorpusTest, ALinkOfWhichNothingIsKnownIsNotEnteredAndIsMissing) {
  struct SilentBackend final : BackendWrapper {
    using BackendWrapper::BackendWrapper;
    std::optional<fs::path> native_path(std::string_view name) const override {
      return name == "pet" ? "/no/such/folder" : BackendWrapper::native_path(name);
    }
  };
  for (const char* const name : {"real/1.jpg", "out/2.jpg"}) put(name, "1");
  fs::create_directory_symlink("../out", root_ / "real" / "pet");
  Tier tier = open_tier((root_ / "real").string(), kNoNamedTiers).value();
  tier.backend = std::make_unique<SilentBackend>(std::move(tier.backend));
  for (const bool follows : {false, true}) {
    const ScanReport report = scan_tier(tier, {.scan = true, .follow_links = follows}).value().report;
    EXPECT_EQ(report.first_unentered_folder, "'pet'");
    EXPECT_EQ(report.unentered_remedy.find("--follow-links") != std::string::npos, !follows);
  }
}

TEST_F(CorpusTest, LinksToFoldersAboveTheRootAreNotEntered) {
  put("real/1.jpg", "1");
  fs::create_directory_symlink("../..", root_ / "real" / "above");
  fs::create_directory_symlink("/", root_ / "slash");
  for (const bool follows : {false, true}) {
    const auto corpus = scan({.follow_links = follows});
    ASSERT_TRUE(corpus.ok()) << corpus.error().message();
    EXPECT_EQ(names(corpus->manifest), (std::vector<std::string>{"real/1.jpg"}));
    EXPECT_EQ(corpus->scan->linked_folders, 2U);
    EXPECT_EQ(corpus->scan->first_unentered_folder, "");
  }
  fs::remove(root_ / "real" / "1.jpg");
  EXPECT_EQ(scan().error().what.find(": add --follow-links"), std::string::npos) << "it would not help";
  EXPECT_NE(scan().error().message().find("'real/above'"), std::string::npos);
}

TEST_F(CorpusTest, ADanglingLinkIsLeftOutAndReported) {
  put("a/x.jpg", "12345");
  put("a/empty.jpg", "");
  fs::create_symlink("gone.jpg", root_ / "a" / "w.jpg");
  fs::create_symlink("gone", root_ / "b");  // may have led to a folder
  put("a/y.txt", "");
  for (const bool checksum : {false, true}) {
    const auto corpus = scan({.add_checksums = checksum});
    ASSERT_TRUE(corpus.ok()) << corpus.error().message();
    EXPECT_EQ(names(corpus->manifest), (std::vector<std::string>{"a/empty.jpg", "a/x.jpg"}));
    EXPECT_EQ(corpus->scan->dangling_links, 2U);
    EXPECT_EQ(corpus->scan->unwanted_objects, 1U);
    EXPECT_NE(corpus->scan->text.find("'a/w.jpg'"), std::string::npos) << corpus->scan->text;
  }
  fs::remove(root_ / "a" / "x.jpg");
  fs::remove(root_ / "a" / "empty.jpg");
  const auto none = scan();
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().what.find("broken links"), std::string::npos) << none.error().what;
}

TEST_F(CorpusTest, SpecialFilesAreLeftOutAndReported) {
  fs::create_directories(root_ / "a");
  ASSERT_EQ(::mkfifo((root_ / "a" / "pipe.jpg").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((root_ / "a" / ".pipe.jpg").c_str(), 0600), 0);
  const auto none = scan();
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, Errc::not_found);
  EXPECT_NE(none.error().what.find("a pipe, a socket or a device (first: 'a/pipe.jpg')"), std::string::npos)
      << none.error().what;
  fs::create_symlink("/dev/null", root_ / "a" / "device.jpg");
  put("b/x.jpg", "12345");
  // Also with decorators around the back end, which limit the rate or add latency.
  for (const char* what : {"", ",limit=1g", ",latency=10us"}) {
    const auto corpus = open_corpus(root_.string() + what, {.scan = true, .threads = 3});
    ASSERT_TRUE(corpus.ok()) << corpus.error().message();
    EXPECT_EQ(names(corpus->manifest), (std::vector<std::string>{"b/x.jpg"}));
    EXPECT_EQ(corpus->scan->special_files, 2U);
    EXPECT_NE(corpus->scan->text.find("2 that are pipes, sockets or devices (first: 'a/device.jpg')"),
              std::string::npos)
        << corpus->scan->text;
  }
}

TEST_F(CorpusTest, IntactObjectsWithoutSamplesAreReported) {
  put("a/x.jpg", "12345");
  put("a/cut.tfrecord", "");
  put("b/cut.tfrecord.gz", "");
  put("b/nothing.tar", std::string(10240, '\0'));
  const auto corpus = scan({.threads = 3});
  ASSERT_TRUE(corpus.ok()) << corpus.error().message();
  EXPECT_EQ(corpus->manifest.samples(), 1U);
  EXPECT_EQ(corpus->scan->objects_without_samples, 3U);
  EXPECT_EQ(corpus->scan->unreadable_objects, 0U);
  EXPECT_NE(corpus->scan->text.find("3 objects without samples (first: 'a/cut.tfrecord')"), std::string::npos)
      << corpus->scan->text;
}

TEST_F(CorpusTest, CompressedObjectsWithoutTheExtensionGetAHint) {
  put("a/x.jpg", "12345");
  const auto report_for = [&](const std::string& name, const std::string& content) {
    put(name, content);
    const auto corpus = scan();
    fs::remove(root_ / name);
    return corpus.ok() ? corpus->scan->text : corpus.error().message();
  };
  const std::string gzip = "\x1f\x8b\x08" + std::string(1000, 'x');
  const std::string zlib = "\x78\x9c" + std::string(1000, 'x');
  const auto hints = [](const std::string& text, const std::string& hint) {
    return text.find(hint + " data, not what format") != std::string::npos;
  };
  for (const auto& [content, kind] : {std::pair(gzip, "gzip"), std::pair(zlib, "zlib")})
    for (const char* const name : {"a/y.tar", "a/y.npy"}) EXPECT_TRUE(hints(report_for(name, content), kind));
  for (const std::string& compressed : {gzip, zlib})
    EXPECT_FALSE(hints(report_for("a/y.tfrecord", compressed), "")) << "is read as it is";
  for (const uint64_t payload_bytes : {376U, 2815U}) {  // lengths that look like zlib data and JPEG XL
    const auto header = tfrecord_header(payload_bytes);
    const std::string torn(as_text(header));
    EXPECT_EQ(report_for("a/y.tfrecord", torn).find("not what format"), std::string::npos) << payload_bytes;
  }
  EXPECT_FALSE(hints(report_for("a/y.tar", std::string(1024, 'x')), ""));
}

TEST_F(CorpusTest, LabelsOfFoldersAreCounted) {
  put("top.jpg", "1");
  EXPECT_EQ(scan()->scan->folder_labelled_samples, 0U);
  put("3fa1/x.jpg", "22");
  put("3fa1/y.jpg", "22");
  put("c/z.tar", std::string(1024, '\0'));
  EXPECT_EQ(scan()->scan->folder_labelled_samples, 2U);
}

TEST_F(CorpusTest, UnreadableObjectsAreLeftOutIfOthersRemain) {
  put("a/torn.npy", "no array");
  const auto nothing = scan();
  ASSERT_FALSE(nothing.ok());
  EXPECT_NE(nothing.error().what.find("torn.npy"), std::string::npos);
  put("a/x.jpg", "12345");
  put("b/torn.npy", "");
  const auto corpus = scan({.threads = 3});
  ASSERT_TRUE(corpus.ok()) << corpus.error().message();
  EXPECT_EQ(names(corpus->manifest), (std::vector<std::string>{"a/x.jpg"}));
  EXPECT_EQ(corpus->manifest.facts().format, "files");
  EXPECT_EQ(corpus->scan->unreadable_objects, 2U);
  EXPECT_NE(corpus->scan->text.find("'a/torn.npy', 'b/torn.npy'"), std::string::npos) << corpus->scan->text;
}

TEST_F(CorpusTest, ObjectsThatClaimEndlessSamplesAreLeftOut) {
  put("a/x.jpg", "12345");
  const std::string text = "{'descr': '|u1', 'fortran_order': False, 'shape': (1099511627776,), }\n";
  put("a/x-00000-of-00001.npy", std::string("\x93NUMPY\1\0", 8) + char(text.size()) + '\0' + text);
  fs::resize_file(root_ / "a" / "x-00000-of-00001.npy", (uintmax_t{1} << 40) + 10 + text.size());
  put("a/data_batch_1.bin", "");
  fs::resize_file(root_ / "a" / "data_batch_1.bin", uintmax_t{3073} << 28);
  const auto corpus = scan({.threads = 2});
  ASSERT_TRUE(corpus.ok()) << corpus.error().message();
  EXPECT_EQ(names(corpus->manifest), (std::vector<std::string>{"a/x.jpg"}));
  EXPECT_EQ(corpus->scan->unreadable_objects, 2U);
  EXPECT_NE(corpus->scan->text.find("x-00000-of-00001.npy"), std::string::npos) << corpus->scan->text;
  EXPECT_NE(corpus->scan->text.find("claims 268435456 samples"), std::string::npos) << corpus->scan->text;
}

// Writes an .npz of samples with these labels.
void put_labelled(const fs::path& root, const std::string& name, const std::vector<uint32_t>& labels) {
  fs::create_directories((root / name).parent_path());
  const Tier disk = open_tier("posix:" + root.string(), kNoNamedTiers).value();
  const std::vector<Field> fields{{.name = "x", .codec = "raw", .extension = ".bin", .shape = {2}}};
  const auto writer = format_of("npz")
                          ->create(*disk.backend, {.name = name, .samples = labels.size(), .fields = fields})
                          .value();
  const std::vector<std::byte> bytes(2);
  const std::span<const std::byte> piece(bytes);
  const FieldBytes field{.pieces = {&piece, 1}, .bytes = 2};
  for (const uint32_t label : labels)
    ASSERT_OK(writer->add({.key = "k", .label = label, .label_name = {}, .fields = {&field, 1}}));
  ASSERT_OK(writer->publish(Durability::visible));
}

TEST_F(CorpusTest, LabelsThatAreNumbersKeepThem) {
  put_labelled(root_, "d/train/a.npz", {9, 0, 3});
  put_labelled(root_, "d/validation/a.npz", {3, 8, 10});
  const auto numbers = scan();
  ASSERT_TRUE(numbers.ok()) << numbers.error().message();
  std::vector<uint32_t> labels;
  for (uint64_t i = 0; i < 6; ++i) labels.push_back(numbers->manifest.sample(i).label);
  EXPECT_EQ(labels, (std::vector<uint32_t>{9, 0, 3, 3, 8, 10}));
  EXPECT_EQ(numbers->manifest.facts().label_names,
            (std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}));
  // Labels with large gaps are treated as names. If one label is not a number, all are names.
  put_labelled(root_, "d/validation/a.npz", {3, 70000, 10});
  EXPECT_EQ(scan()->manifest.facts().label_names, (std::vector<std::string>{"0", "10", "3", "70000", "9"}));
  put_labelled(root_, "d/validation/a.npz", {3});
  put("d/cat/a.jpg", "1");
  const auto mixed = scan();
  ASSERT_TRUE(mixed.ok()) << mixed.error().message();
  EXPECT_EQ(mixed->manifest.facts().label_names, (std::vector<std::string>{"0", "3", "9", "cat"}));
  EXPECT_EQ(mixed->manifest.sample(0).label, 3U);
  EXPECT_EQ(mixed->manifest.sample(1).label, 2U);
}

TEST_F(CorpusTest, MoreLabelsThanAManifestHoldsAreLeftOut) {
  constexpr uint64_t kMany = 17000;  // each label has 1,000 bytes
  fs::create_directories(root_ / "a");
  const Tier disk = open_tier("posix:" + root_.string(), kNoNamedTiers).value();
  const std::vector<Field> fields{{.name = "x", .codec = "raw", .extension = ".bin", .shape = {2}}};
  const auto writer =
      format_of("tfrecord")
          ->create(*disk.backend, {.name = "a/many.tfrecord", .samples = kMany, .fields = fields});
  ASSERT_OK(writer);
  const std::vector<std::byte> bytes(2);
  const std::span<const std::byte> piece(bytes);
  const FieldBytes field{.pieces = {&piece, 1}, .bytes = 2};
  for (uint64_t i = 0; i < kMany; ++i) {
    const std::string label = std::to_string(i) + std::string(1000, 'l');
    ASSERT_OK((*writer)->add({.key = "k", .label = 1, .label_name = label, .fields = {&field, 1}}));
  }
  ASSERT_OK((*writer)->publish(Durability::visible));
  put_labelled(root_, "a/few.npz", {1, 2, 3});
  const auto corpus = scan();
  ASSERT_TRUE(corpus.ok()) << corpus.error().message();
  EXPECT_EQ(corpus->manifest.samples(), kMany + 3);
  EXPECT_TRUE(corpus->manifest.facts().label_names.empty());
  EXPECT_EQ(corpus->manifest.sample(0).label, kNoLabel);
  EXPECT_EQ(corpus->manifest.sample(100).label, kNoLabel);
  EXPECT_NE(corpus->scan->text.find("labels"), std::string::npos) << corpus->scan->text;
  EXPECT_EQ(corpus->scan->unreadable_objects, 0U);
}

TEST_F(CorpusTest, NamesThatAreTooLongAreLeftOut) {
  std::string folder = "f";
  while (folder.size() < 900) folder += "/" + std::string(99, 'f');
  put("a/x.jpg", "12345");
  put(folder + "/" + std::string(180, 'y') + ".jpg", "1");
  put(folder + "/" + std::string(180, 'y') + ".txt", "1");  // not a sample in any case
  put(folder + "/" + std::string(180, 'z') + "/x.jpg", "1");
  for (const bool checksum : {false, true}) {
    const auto corpus = scan({.add_checksums = checksum});
    ASSERT_TRUE(corpus.ok()) << corpus.error().message();
    EXPECT_EQ(names(corpus->manifest), (std::vector<std::string>{"a/x.jpg"}));
    EXPECT_EQ(corpus->scan->unreadable_objects, 2U);
    EXPECT_NE(corpus->scan->text.find("1024 bytes"), std::string::npos) << corpus->scan->text;
  }
  fs::remove(root_ / "a" / "x.jpg");
  EXPECT_ERRC(Errc::unsupported, scan(), "1024 bytes");
}

TEST_F(CorpusTest, ArraysThatAreNoSamplesAreReported) {
  const Tier disk = open_tier("posix:" + root_.string(), kNoNamedTiers).value();
  const std::vector<Field> fields = two_signals();
  auto samples = test_samples(fields, 1);
  samples[0].label = kNoLabel;
  ASSERT_OK(
      make_object(*disk.backend, *format_of("npz", {{"samples_per_file", "1"}}), "a.npz", fields, samples));
  const auto corpus = scan();
  ASSERT_TRUE(corpus.ok()) << corpus.error().message();
  EXPECT_EQ(corpus->scan->left_out_arrays, 1U);
  EXPECT_NE(corpus->scan->text.find("1 array that"), std::string::npos) << corpus->scan->text;
  EXPECT_NE(corpus->scan->text.find("(first: 'time' in 'a.npz')"), std::string::npos) << corpus->scan->text;
}

TEST_F(CorpusTest, ObjectsThatCannotBeReadForTheirChecksumAreLeftOut) {
  for (const char* name : {"a/w.jpg", "a/x.jpg", "b/y.jpg", "b/z.jpg"}) put(name, name);
  const auto whole = scan({.add_checksums = true, .threads = 1});
  ASSERT_TRUE(whole.ok());
  const auto torn = open_corpus(root_.string() + ",fail=read:eacces@#2",
                                {.scan = true, .add_checksums = true, .threads = 1});
  ASSERT_TRUE(torn.ok()) << torn.error().message();
  EXPECT_EQ(names(torn->manifest), (std::vector<std::string>{"a/w.jpg", "b/y.jpg", "b/z.jpg"}));
  EXPECT_TRUE(torn->manifest.facts().checksums);
  for (uint64_t i = 0; i < 3; ++i)
    EXPECT_EQ(torn->manifest.sample(i).crc32c, whole->manifest.sample(i == 0 ? 0 : i + 1).crc32c);
  EXPECT_EQ(torn->manifest.sample(1).label, 1U);
  EXPECT_EQ(torn->scan->unreadable_objects, 1U);
  EXPECT_FALSE(
      open_corpus(root_.string() + ",fail=read:eacces@1", {.scan = true, .add_checksums = true, .threads = 1})
          .ok());
  // A read error must fail the scan, and not make the data set smaller.
  const auto broken =
      open_corpus(root_.string() + ",fail=read:eio@#2", {.scan = true, .add_checksums = true, .threads = 1});
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code, Errc::io);
}

TEST_F(CorpusTest, EmptyContainersAreNoCorpus) {
  put("a.tar", std::string(10240, '\0'));
  const auto nothing = scan();
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().code, Errc::not_found);
  EXPECT_NE(nothing.error().what.find("has no samples"), std::string::npos);
}

TEST_F(CorpusTest, SaysWhatIsMissingAndTheRemedy) {
  const auto empty = scan();
  ASSERT_FALSE(empty.ok());
  EXPECT_NE(empty.error().what.find("is empty"), std::string::npos);
  EXPECT_NE(empty.error().what.find(root_.string()), std::string::npos);

  put("a/x.webp", "1");
  const auto none = scan();
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().what.find("1 .webp"), std::string::npos);
  EXPECT_NE(none.error().what.find("--types"), std::string::npos);

  const auto unmade = open_corpus(root_.string(), {});
  ASSERT_FALSE(unmade.ok());
  EXPECT_EQ(unmade.error().code, Errc::not_found);
  EXPECT_NE(unmade.error().what.find("add --scan"), std::string::npos);
  const auto unscanned = open_corpus(root_.string(), {.has_scan_option = false});
  ASSERT_FALSE(unscanned.ok());
  EXPECT_EQ(unscanned.error().what.find("add --scan"), std::string::npos) << unscanned.error().what;
  EXPECT_NE(unscanned.error().what.find("--manifest"), std::string::npos) << unscanned.error().what;

  const auto gone = open_corpus((root_ / "gone").string(), {});
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code, Errc::invalid_argument);
  EXPECT_NE(gone.error().what.find("does not exist"), std::string::npos);

  const auto file = open_corpus((root_ / "a" / "x.webp").string(), {});
  ASSERT_FALSE(file.ok());

  EXPECT_FALSE(scan({.manifest_file = "m"}).ok());
  EXPECT_FALSE(open_corpus(root_.string(), {.types = "png"}).ok());
}

TEST_F(CorpusTest, OpensAManifestInTheFolderOrElsewhere) {
  put("a/x.jpg", "12345");
  auto corpus = scan();
  ASSERT_TRUE(corpus.ok());
  const std::string checksum = corpus->manifest.checksum();
  const auto bytes = corpus->manifest.bytes();
  put(".penstock/manifest", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  const auto in_place = open_corpus(root_.string(), {});
  ASSERT_TRUE(in_place.ok()) << in_place.error().message();
  EXPECT_EQ(in_place->manifest.checksum(), checksum);
  fs::rename(root_ / ".penstock" / "manifest", root_ / "elsewhere");
  const auto elsewhere = open_corpus(root_.string(), {.manifest_file = (root_ / "elsewhere").string()});
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.error().message();
  EXPECT_EQ(elsewhere->manifest.checksum(), checksum);
}

TEST_F(CorpusTest, AnInterruptEndsAScan) {
  put("a/x.jpg", "12345");
  simulate_interrupt(2);
  const auto corpus = scan();
  ASSERT_FALSE(corpus.ok());
  EXPECT_EQ(corpus.error().code, Errc::interrupted);
}

}  // namespace
}  // namespace penstock
