#include "datagen/corpus/scan_checksums.hpp"

#include <map>
#include <mutex>
#include <utility>

#include "datagen/corpus/scanned_object.hpp"
#include "datagen/objects/object_check.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/parallel/parallel.hpp"

namespace penstock {
namespace {

// The same manifest without some of its objects and their samples.
Result<Manifest> without(const Manifest& manifest, const std::map<std::uint64_t, Error>& objects) {
  ManifestBuilder builder(manifest.facts());
  std::vector<std::uint32_t> number(static_cast<std::size_t>(manifest.objects()));
  std::string scratch;
  for (std::uint64_t i = 0; i < manifest.objects(); ++i) {
    if (objects.contains(i)) continue;
    number[i] = builder.add_object(manifest.object_name(i, scratch), manifest.object_bytes(i));
    builder.set_object_crc32c(number[i], manifest.object_crc32c(i).value_or(0));
  }
  for (std::uint64_t i = 0; i < manifest.samples(); ++i) {
    SampleEntry entry = manifest.sample(i);
    if (objects.contains(entry.object)) continue;
    entry.object = number[entry.object];
    builder.add_sample(entry);
  }
  PENSTOCK_ASSIGN(auto bytes, builder.finish());
  return Manifest::from_bytes(std::move(bytes));
}

}  // namespace

Result<Manifest> with_checksums(Tier& tier, const Manifest& manifest, unsigned threads, bool progress,
                                LeftOut& left_out) {
  const ObjectIndex index(manifest);
  ManifestFacts facts = manifest.facts();
  facts.checksums = true;
  facts.object_checksums = true;
  ManifestBuilder builder(std::move(facts));
  builder.resize_samples(manifest.samples());
  std::string scratch;
  for (std::uint64_t i = 0; i < manifest.objects(); ++i)
    builder.add_object(manifest.object_name(i, scratch), manifest.object_bytes(i));

  std::vector<Buffer> buffers(threads);
  std::vector<std::string> names(threads);
  std::mutex mutex;
  std::map<std::uint64_t, Error> unreadable;  // by object
  Progress shown(progress, "checksums", manifest.objects(), "files");
  const auto read = [&](unsigned worker, std::uint64_t object) -> Result<void> {
    PENSTOCK_ASSIGN(const auto reader, tier.backend->open(manifest.object_name(object, names[worker])));
    const auto enter = [&](std::uint64_t sample, std::uint32_t crc) {
      SampleEntry entry = manifest.sample(sample);
      entry.crc32c = crc;
      builder.set_sample(sample, entry);
    };
    PENSTOCK_ASSIGN(const std::uint32_t whole,
                    checksums_of(*reader, manifest, index, object, buffers[worker], enter));
    builder.set_object_crc32c(static_cast<std::uint32_t>(object), whole);
    return success();
  };
  const auto read_or_leave = [&](unsigned worker, std::uint64_t object) -> Result<void> {
    Result<void> done = read(worker, object);
    shown.advance(1);
    if (done.ok() || !is_inside_object(done.error())) return done;
    PENSTOCK_TRY(index.for_each_sample(object, [&](std::uint64_t sample) {
      builder.set_sample(sample, manifest.sample(sample));
      return success();
    }));
    std::lock_guard lock(mutex);
    unreadable.emplace(object, std::move(done).error());
    return success();
  };
  PENSTOCK_TRY(parallel_for(manifest.objects(), threads, 8, read_or_leave));
  if (!unreadable.empty() && unreadable.size() == manifest.objects()) return unreadable.begin()->second;
  PENSTOCK_ASSIGN(auto bytes, builder.finish());
  PENSTOCK_ASSIGN(Manifest all, Manifest::from_bytes(std::move(bytes)));
  if (unreadable.empty()) return all;
  for (auto& [object, error] : unreadable)
    left_out.add(manifest.object_name(object, scratch), std::move(error));
  return without(all, unreadable);
}

}  // namespace penstock
