#include "miniapps/pipeline/file_batches.hpp"

#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

constexpr size_t kSampleBytes = 16;
constexpr uint64_t kSeed = 5;

// A corpus of files with these numbers of samples.
struct Files {
  Manifest corpus;
  WholeObjects files;

  explicit Files(const std::vector<uint32_t>& held)
      : corpus(made(held)), files(whole_objects(corpus).value()) {}

  static Manifest made(const std::vector<uint32_t>& held) {
    ManifestBuilder builder(ManifestFacts{});
    uint32_t label = 0;
    for (size_t file = 0; file < held.size(); ++file) {
      const uint32_t object = builder.add_object("file" + std::to_string(file), held[file] * kSampleBytes);
      for (uint32_t i = 0; i < held[file]; ++i)
        builder.add_sample(
            {.offset = i * kSampleBytes, .length = kSampleBytes, .object = object, .label = label++});
    }
    return Manifest::from_bytes(builder.finish().value()).value();
  }
};

// Delivers the files in order, `epochs` times, as the loader does: one file per batch, with its samples
// permuted.
class FileSource final : public BatchSource {
 public:
  // Starts at file `given` of all epochs.
  FileSource(const Files& files, uint64_t epochs, uint64_t given = 0)
      : files_(files), epochs_(epochs), given_(given) {
    file_.index.resize(1);
    file_.label.resize(1);
    file_.length.resize(1);
    file_.slot_bytes = files.files.largest_sample_count() * kSampleBytes;
    file_.memory.grow(file_.slot_bytes);
  }

  Result<const Batch*> next() override {
    // Overwrite the bytes that were delivered before.
    std::memset(file_.memory.data(), 0xee, file_.slot_bytes);
    const uint64_t files = files_.files.samples_of_object.size();
    if (given_ == epochs_ * files) return static_cast<const Batch*>(nullptr);
    const uint64_t file = given_ % files;
    file_.epoch = given_ / files;
    file_.index[0] = file;
    const WholeObjects::ObjectSamples& held = files_.files.samples_of_object[size_t(file)];
    const Permutation order = file_order(kSeed, file_.epoch, file, held.samples);
    for (uint32_t i = 0; i < held.samples; ++i) {
      const uint64_t sample = held.first_sample + order.at(i);
      std::memcpy(file_.memory.data() + i * kSampleBytes, &sample, sizeof sample);
    }
    ++given_;
    return static_cast<const Batch*>(&file_);
  }
  std::vector<StageTally> times() const override { return {{"read", 1, 2, 3}}; }
  LoaderLosses losses() const override { return {1, 2, {{.name = "a bad file", .why = "it is bad"}}}; }
  std::vector<LostTime> lost_times() const override { return {{"read", 1}, {"collate", 2}}; }
  bool close(std::chrono::nanoseconds) override { return true; }
  bool stalled() const override { return false; }

 private:
  const Files& files_;
  const uint64_t epochs_;
  uint64_t given_;
  Batch file_;
};

std::unique_ptr<FileBatches> batches_of(const Files& files, uint64_t epochs, size_t batch,
                                        uint64_t most = 0) {
  return FileBatches::make(std::make_unique<FileSource>(files, epochs), {.corpus = &files.corpus,
                                                                         .files = &files.files,
                                                                         .sample_bytes = kSampleBytes,
                                                                         .batch = batch,
                                                                         .most_batches = most,
                                                                         .seed = kSeed})
      .value();
}

// The samples of the next batch; empty at the end. Checks that each slot has the bytes of its sample.
std::vector<uint64_t> pull(FileBatches& batches, const Manifest& corpus, uint64_t* epoch = nullptr) {
  const Result<const Batch*> got = batches.next();
  if (!got.ok()) {
    ADD_FAILURE() << got.error().message();
    return {};
  }
  if (*got == nullptr) return {};
  const Batch& batch = **got;
  for (size_t i = 0; i < batch.samples(); ++i) {
    uint64_t held = 0;
    EXPECT_EQ(batch.slot(i).size(), kSampleBytes);
    std::memcpy(&held, batch.slot(i).data(), sizeof held);
    EXPECT_EQ(held, batch.index[i]);
    EXPECT_EQ(batch.label[i], corpus.sample(held).label);
    EXPECT_EQ(batch.length[i], kSampleBytes);
  }
  EXPECT_EQ(batch.tensor().size(), batch.samples() * kSampleBytes);
  if (epoch != nullptr) *epoch = batch.epoch;
  return batch.index;
}

TEST(FileBatches, EverySampleComesOnceAnEpoch) {
  const Files files({5, 3, 4});
  for (const size_t batch : {1U, 2U, 3U, 4U, 6U, 12U}) {
    const auto batches = batches_of(files, 2, batch);
    std::vector<std::set<uint64_t>> seen(2);
    for (uint64_t epoch = 0;;) {
      const auto samples = pull(*batches, files.corpus, &epoch);
      if (samples.empty()) break;
      for (const uint64_t sample : samples) EXPECT_TRUE(seen[size_t(epoch)].insert(sample).second) << "twice";
    }
    for (const auto& epoch : seen) EXPECT_EQ(epoch.size(), 12U) << "batches of " << batch;
    EXPECT_EQ(batches->files_used(), 6U);
    EXPECT_EQ(batches->losses().dropped_tail, 2U) << "what upstream says";
  }
}

TEST(FileBatches, UsesAFileCompletelyBeforeTheNext) {
  const Files files({4, 4, 4});
  const auto batches = batches_of(files, 1, 2);
  for (uint64_t file = 0; file < 3; ++file)
    for (int half = 0; half < 2; ++half) {
      for (const uint64_t sample : pull(*batches, files.corpus)) EXPECT_EQ(sample / 4, file);
      EXPECT_EQ(batches->files_used(), file + 1) << "none is asked for before it is needed";
    }
  EXPECT_TRUE(pull(*batches, files.corpus).empty());
}

TEST(FileBatches, EpochsNeverMix) {
  const Files files({5, 6});
  const auto batches = batches_of(files, 3, 4);
  std::vector<uint64_t> counts(3, 0);
  uint64_t epoch = 0;
  while (!pull(*batches, files.corpus, &epoch).empty()) ++counts[size_t(epoch)];
  EXPECT_EQ(counts, (std::vector<uint64_t>{2, 2, 2}));
  EXPECT_EQ(batches->losses().dropped_tail, 2U + 3 * 3);
}

TEST(FileBatches, OrdersDifferByEpochAndFile) {
  const Files files({64, 64});
  const auto batches = batches_of(files, 2, 64);
  std::set<std::vector<uint64_t>> orders;
  for (int i = 0; i < 4; ++i) {
    std::vector<uint64_t> order = pull(*batches, files.corpus);
    for (uint64_t& sample : order) sample %= 64;
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 4U);
}

TEST(FileBatches, EndsAfterTheRequestedSteps) {
  const Files files({8, 8});
  const auto batches = batches_of(files, 9, 4, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pull(*batches, files.corpus).size(), 4U);
  EXPECT_TRUE(pull(*batches, files.corpus).empty());
  EXPECT_EQ(batches->files_used(), 2U);
}

TEST(FileBatches, PausesBetweenEpochsWithOneFileLoaded) {
  const Files files({5, 6});
  auto batches = FileBatches::make(std::make_unique<FileSource>(files, 2), {.corpus = &files.corpus,
                                                                            .files = &files.files,
                                                                            .sample_bytes = kSampleBytes,
                                                                            .batch = 8,
                                                                            .seed = kSeed,
                                                                            .pauses_between_epochs = true})
                     .value();
  EXPECT_EQ(pull(*batches, files.corpus).size(), 8U);
  EXPECT_EQ(batches->files_used(), 2U);
  EXPECT_TRUE(pull(*batches, files.corpus).empty());
  EXPECT_EQ(batches->files_used(), 3U) << "although a batch takes two";
  uint64_t epoch = 0;
  EXPECT_EQ(pull(*batches, files.corpus, &epoch).size(), 8U);
  EXPECT_EQ(epoch, 1U);
  EXPECT_TRUE(pull(*batches, files.corpus).empty());
}

TEST(FileBatches, AnEpochWithoutABatchIsAnError) {
  const Files files({2, 1});
  const auto batches = batches_of(files, 1000, 4);
  EXPECT_ERRC(Errc::corrupt, batches->next(), "fewer than 4 samples");
}

TEST(FileBatches, CountsCopyingAsCollate) {
  const Files files({3, 3});
  const auto batches = batches_of(files, 1, 2);
  while (!pull(*batches, files.corpus).empty()) {
  }
  EXPECT_GT(batches->lost_times()[1].seconds, 2.0);
  EXPECT_EQ(batches->lost_times()[0].seconds, 1.0);
  EXPECT_EQ(batches->losses().skipped, 1U);
}

TEST(WholeObjects, ListTheFilesOfACorpus) {
  const Files files({3, 1, 2});
  EXPECT_EQ(files.files.manifest.samples(), 3U);
  EXPECT_TRUE(files.files.manifest.one_object_per_sample());
  EXPECT_EQ(files.files.samples_of_object[2].first_sample, 4U);
  EXPECT_EQ(files.files.largest_sample_count(), 3U);
  EXPECT_EQ(files.files.smallest_sample_count(), 1U);
  const std::vector<uint64_t> places{2, 0};
  const auto chosen = select_objects(files.files, places);
  ASSERT_OK(chosen);
  std::string scratch;
  EXPECT_EQ(chosen->manifest.object_name(0, scratch), "file2");
  EXPECT_EQ(chosen->samples_of_object[0].first_sample, 4U);
  EXPECT_EQ(chosen->samples_of_object[1].samples, 3U);
}

TEST(WholeObjects, SamplesOfOneObjectMustBeAdjacent) {
  ManifestBuilder builder(ManifestFacts{});
  const uint32_t a = builder.add_object("a", 2);
  const uint32_t b = builder.add_object("b", 1);
  builder.add_sample({.offset = 0, .length = 1, .object = a});
  builder.add_sample({.offset = 0, .length = 1, .object = b});
  builder.add_sample({.offset = 1, .length = 1, .object = a});
  const Manifest manifest = Manifest::from_bytes(builder.finish().value()).value();
  EXPECT_ERRC(Errc::unsupported, whole_objects(manifest), "'a'");
}

// Files of 5, 3 and 7 samples in batches of four: three batches per epoch, and three samples left over.
TEST(FileBatches, ContinueInTheMiddleOfAFile) {
  const Files files({5, 3, 7});
  const auto whole = batches_of(files, 2, 4);
  std::vector<std::vector<uint64_t>> expected;
  for (std::vector<uint64_t> batch = pull(*whole, files.corpus); !batch.empty();
       batch = pull(*whole, files.corpus))
    expected.push_back(batch);
  ASSERT_EQ(expected.size(), 6U);
  struct Left {
    uint64_t batches, files, in_file;
  };
  for (const Left& left : {Left{1, 0, 4}, Left{2, 2, 0}, Left{3, 2, 4}, Left{4, 3, 4}}) {
    const auto rest = FileBatches::make(std::make_unique<FileSource>(files, 2, left.files),
                                        {.corpus = &files.corpus,
                                         .files = &files.files,
                                         .sample_bytes = kSampleBytes,
                                         .batch = 4,
                                         .most_batches = 6,
                                         .handed_batches = left.batches,
                                         .used_of_first_file = left.in_file,
                                         .seed = kSeed})
                          .value();
    for (size_t i = left.batches; i < expected.size(); ++i)
      EXPECT_EQ(pull(*rest, files.corpus), expected[i]) << i << " behind " << left.batches;
    EXPECT_TRUE(pull(*rest, files.corpus).empty());
  }
}

}  // namespace
}  // namespace penstock
