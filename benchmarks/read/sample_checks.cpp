#include "benchmarks/read/sample_checks.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "io_backends/core/checksums/crc32c.hpp"

namespace penstock {
namespace {

std::string sample_text(const ReadWork& work, const SampleList::Sample& entry) {
  const std::string_view name = work.samples->name(entry.object);
  if (work.manifest->one_object_per_sample()) return fmt::format("'{}'", name);
  return fmt::format("'{}' at {} ({} bytes)", name, entry.offset, entry.length);
}

}  // namespace

Result<void> SampleChecks::prepare_decoder() {
  decoder_ = std::make_unique<PictureDecoder>();
  PENSTOCK_ASSIGN(opener_, SampleOpener::make(*work_.manifest));
  return success();
}

Result<void> SampleChecks::wrong_length(const SampleList::Sample& entry, uint64_t bytes) const {
  return make_error(Errc::truncated, "read " + std::to_string(bytes) + " of the " +
                                         std::to_string(entry.length) + " bytes of " +
                                         sample_text(work_, entry));
}

Result<void> SampleChecks::check_checksum(uint64_t sample, const SampleList::Sample& entry,
                                          std::span<const std::byte> bytes) {
  const auto crc = unpacker_.crc32c_of(sample, bytes);
  if (!crc.ok()) {
    const bool is_wrong = SampleUnpacker::is_damage(crc.error());
    return make_error(is_wrong ? Errc::corrupt : crc.error().code,
                      (is_wrong ? "wrong bytes in " : "cannot decompress ") + sample_text(work_, entry) +
                          ": " + crc.error().what);
  }
  if (*crc == work_.manifest->sample(sample).crc32c) return success();
  return make_error(Errc::corrupt, "wrong bytes in " + sample_text(work_, entry) +
                                       ": the checksum differs from the manifest's");
}

Result<void> SampleChecks::decode(uint64_t sample, const SampleList::Sample& entry,
                                  std::span<const std::byte> bytes, PictureWarningCounts& warnings) {
  const auto opened = opener_->open(sample, bytes);
  const Result<void> decoded = opened.ok() ? decoder_->decode(*opened, image_) : Result<void>(opened.error());
  if (decoded.ok()) {
    if (image_.warnings.any()) warnings.add(image_.warnings, sample_text(work_, entry));
    return success();
  }
  return make_error(decoded.error().code,
                    "cannot decode " + sample_text(work_, entry) + ": " + decoded.error().what);
}

}  // namespace penstock
