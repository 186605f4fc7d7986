#include "datagen/content/bad_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "datagen/codec/png.hpp"
#include "datagen/content/content.hpp"
#include "datagen/format/sample_opener.hpp"
#include "datagen/format/sample_type.hpp"
#include "datagen/objects/object_check.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/parallel/parallel.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

namespace {

constexpr uint64_t kReadPieceBytes = uint64_t{1} << 20U;

// Checks samples. Only one thread at a time may use it.
class SampleChecker {
 public:
  SampleChecker(const Manifest& manifest, SampleOpener opener)
      : manifest_(manifest), codec_(payload_codec(manifest.facts().codec)), opener_(std::move(opener)) {}

  // Checks sample number `index`. `object_codec` is what the name of its object says that it contains.
  Result<void> check(Reader& reader, std::string_view object_codec, uint64_t index) {
    const SampleEntry& sample = manifest_.sample(index);
    if (sample.length == 0) return check_payload({}, object_codec);
    if (sample.length > kMostUnpackedBytes) return read_in_pieces(reader, sample);
    if (buffer_.capacity() < sample.length) buffer_.grow(size_t(sample.length));
    const auto stored = buffer_.first(size_t(sample.length));
    PENSTOCK_TRY(reader.read_at(sample.offset, stored));
    PENSTOCK_ASSIGN(const auto payload, opener_.open(index, stored));
    return check_payload(payload, object_codec);
  }

 private:
  Result<void> check_payload(std::span<const std::byte> payload, std::string_view object_codec) {
    if (!is_picture(codec_, object_codec, payload)) return success();
    if (payload.empty()) return make_error(Errc::truncated, "a picture without bytes");
    return decoder_.decode(payload, image_);
  }

  Result<void> read_in_pieces(Reader& reader, const SampleEntry& sample) {
    if (buffer_.capacity() < kReadPieceBytes) buffer_.grow(kReadPieceBytes);
    for (uint64_t done = 0; done < sample.length; done += kReadPieceBytes) {
      PENSTOCK_TRY(check_interrupt());
      PENSTOCK_TRY(reader.read_at(sample.offset + done,
                                  buffer_.first(size_t(std::min(kReadPieceBytes, sample.length - done)))));
    }
    return success();
  }

  const Manifest& manifest_;
  std::string_view codec_;
  SampleOpener opener_;
  Buffer buffer_;
  PictureDecoder decoder_;
  Image image_;
};

// Returns why samples are bad or, with Errc::unsupported, cannot be checked here, by their number in the
// manifest.
Result<std::map<uint64_t, Error>> check_samples(Backend& backend, const Manifest& manifest, unsigned threads,
                                                bool progress) {
  const ObjectIndex index(manifest);
  std::vector<std::optional<SampleChecker>> checkers(threads);
  for (auto& checker : checkers) {
    PENSTOCK_ASSIGN(SampleOpener opener, SampleOpener::make(manifest, kMostUnpackedBytes));
    checker.emplace(manifest, std::move(opener));
  }
  std::vector<std::string> names(threads);
  std::mutex mutex;  // guards `bad`; not held while anything is read or decoded
  std::map<uint64_t, Error> bad;
  Progress progress_bar(progress, "samples", manifest.samples(), "samples");
  const auto check_object = [&](unsigned worker, uint64_t object) -> Result<void> {
    const std::string_view name = manifest.object_name(object, names[worker]);
    const std::string_view object_codec = codec_of(name);
    const Result<std::unique_ptr<Reader>> reader = backend.open(name);
    return index.for_each_sample(object, [&](uint64_t sample) -> Result<void> {
      PENSTOCK_TRY(check_interrupt());
      const Result<void> checked = reader.ok() ? checkers[worker]->check(**reader, object_codec, sample)
                                               : Result<void>(reader.error());
      progress_bar.advance(1);
      if (checked.ok()) return success();
      if (!concerns_object(checked.error())) return checked.error();
      const std::lock_guard lock(mutex);
      bad.emplace(sample, checked.error());
      return success();
    });
  };
  PENSTOCK_TRY(parallel_for(manifest.objects(), threads, 8, check_object));
  return bad;
}

}  // namespace

void BadList::add_object(std::string_view name, const Error& why) {
  ++objects_;
  add(name, 0, why.message());
}

void BadList::add(std::string_view object, uint64_t offset, std::string_view reason) {
  text_ += fmt::format("{}\t{}\t{}\n", printable(utf8_name(object)), offset, printable(reason));
}

Result<void> BadList::add_samples(Backend& backend, const Manifest& manifest, unsigned threads,
                                  bool progress) {
  try {
    PENSTOCK_ASSIGN(const auto bad, check_samples(backend, manifest, threads, progress));
    std::string scratch;
    for (const auto& [index, why] : bad) {
      const SampleEntry& sample = manifest.sample(index);
      const std::string_view object = manifest.object_name(sample.object, scratch);
      if (why.code == Errc::unsupported) {
        if (unchecked_++ == 0)
          first_unchecked_ = fmt::format("'{}' at byte {}: {}", object, sample.offset, why.message());
        continue;
      }
      ++samples_;
      add(object, sample.offset, why.message());
    }
    return success();
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "no memory to read and decode the samples: choose fewer --threads");
  }
}

std::string BadList::summary(uint64_t samples, std::string_view file) const {
  return fmt::format(
      "bad  {} of {}{}; listed in '{}'\n", format_count(samples_), count_of(samples - unchecked_, "sample"),
      objects_ == 0 ? "" : " and all in " + count_of(objects_, "unreadable object"), printable(file));
}

Result<void> BadList::check_file(const std::string& file) {
  std::error_code failed;
  const auto status = std::filesystem::symlink_status(file, failed);
  if (!std::filesystem::exists(status)) return success();
  if (std::filesystem::is_regular_file(status)) {
    std::ifstream existing(file, std::ios::binary);
    if (!existing) return errno_error(errno, "cannot read the earlier list", file);
    std::string line;  // without one, the file is empty
    if (!std::getline(existing, line) || std::count(line.begin(), line.end(), '\t') == 2) return success();
  }
  return make_error(Errc::invalid_argument,
                    "'{}' exists, and it is not an earlier list of samples: name another file", file);
}

Result<void> BadList::write(const std::string& file) const {
  const std::filesystem::path path(file);
  TierSpec folder;
  folder.path = folder.text = path.has_parent_path() ? path.parent_path().string() : ".";
  PENSTOCK_ASSIGN(const Tier tier, open_tier(folder));
  return put_object(*tier.backend, path.filename().string(), std::as_bytes(std::span(text_)),
                    Durability::file_and_name);
}

}  // namespace penstock
