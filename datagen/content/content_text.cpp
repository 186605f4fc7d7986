// Writes the content of a corpus as JSON, and as a table for the terminal.
#include <fmt/format.h>

#include "datagen/codec/zstd_size.hpp"
#include "datagen/content/content.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {

namespace {

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : double(part) / double(whole);
}

Json pictures_json(const PictureFacts& pictures) {
  const uint64_t decoded = pictures.jpeg_count + pictures.png_count;
  if (decoded + pictures.failed_count == 0) return nullptr;
  Json out{{"jpeg", pictures.jpeg_count}, {"png", pictures.png_count}, {"failed", pictures.failed_count}};
  if (pictures.failed_count > 0) out["failure"] = pictures.first_failure;
  if (decoded == 0) return out;
  out["warned"] = pictures.warnings.samples;
  if (pictures.warnings.samples > 0) {
    for (size_t i = 0; i < kPictureWarnings; ++i)
      if (pictures.warnings.by_warning[i] > 0)
        out["warnings"][std::string(picture_warning_name(i))] = pictures.warnings.by_warning[i];
    out["first_warned"] = pictures.warnings.first;
  }
  out["restart_interval_share"] = share(pictures.with_restarts, pictures.jpeg_count);
  out["decodes"] = kDecodeRepeats;
  out["bytes_per_pixel"] = pictures.bytes_per_pixel;
  out["decode_cpu_ns_per_pixel"] = pictures.ns_per_pixel;
  out["decode_cpu_ns_per_byte"] = pictures.ns_per_byte;
  return out;
}

}  // namespace

Json content_json(const Content& content) {
  Json out{{"seed", content.seed},
           {"samples", content.samples},
           {"empty", content.empty_samples},
           {"unreadable", content.unreadable_samples},
           {"bytes", content.bytes},
           {"pictures", pictures_json(content.pictures)},
           {"zstd", nullptr},
           {"blocks",
            {{"block_bytes", kBlockBytes},
             {"looked_at", content.blocks.inspected_blocks},
             {"zero", content.blocks.zero_blocks},
             {"zero_share", share(content.blocks.zero_blocks, content.blocks.inspected_blocks)},
             {"compared", content.blocks.compared_blocks},
             {"duplicate", content.blocks.duplicate_blocks},
             {"duplicate_share", share(content.blocks.duplicate_blocks, content.blocks.compared_blocks)}}}};
  if (content.unreadable_samples > 0) out["first_unreadable"] = content.first_failure;
  if (content.zstd.ok())
    out["zstd"] = {{"level", kZstdLevel},
                   {"ratio_alone", content.zstd->each_sample},
                   {"ratio_in_line", content.zstd->one_stream}};
  else
    out["zstd_not_measured"] = content.zstd.error().message();
  return out;
}

std::string content_text(const Content& content, uint64_t total_samples, const Output& output) {
  Table table(
      {{"content", Align::left},
       {fmt::format("{} of {}, {}", format_count(content.samples, output),
                    count_of(total_samples, "sample", output), format_bytes(double(content.bytes), output)),
        Align::left}});
  if (content.empty_samples > 0)
    table.row({"empty", fmt::format("{} more", format_count(content.empty_samples, output))});
  if (content.unreadable_samples > 0)
    table.row(
        {"unreadable", fmt::format("{} more; the first: {}", format_count(content.unreadable_samples, output),
                                   printable(content.first_failure))});
  const PictureFacts& pictures = content.pictures;
  if (pictures.jpeg_count + pictures.png_count > 0) {
    table.row({"pictures", fmt::format("{} JPEG ({} with restart intervals), {} PNG; {:.2f} bytes per pixel",
                                       format_count(pictures.jpeg_count, output),
                                       format_percent(share(pictures.with_restarts, pictures.jpeg_count)),
                                       format_count(pictures.png_count, output), pictures.bytes_per_pixel)});
    table.row({"decoding", fmt::format("{:.2f} ns per pixel, {:.2f} ns per byte (CPU time of one thread: "
                                       "median of {} runs per picture, then over pictures)",
                                       pictures.ns_per_pixel, pictures.ns_per_byte, kDecodeRepeats)});
  }
  if (pictures.warnings.samples > 0) table.row({"warnings", printable(pictures.warnings.text())});
  if (pictures.failed_count > 0)
    table.row(
        {"not decoded", fmt::format("{}; the first: {}", count_of(pictures.failed_count, "picture", output),
                                    printable(pictures.first_failure))});
  table.row({fmt::format("zstd -{}", kZstdLevel),
             content.zstd.ok() ? fmt::format("{:.3f} to 1 per sample, {:.3f} to 1 as one stream",
                                             content.zstd->each_sample, content.zstd->one_stream)
                               : "not measured: " + content.zstd.error().message()});
  const BlockCounts& blocks = content.blocks;
  table.row(
      {"blocks of 4 KiB",
       fmt::format("{} at multiples of 4 KiB in objects: {} contain only zeros, {} are copies of others{}",
                   format_count(blocks.inspected_blocks, output), format_count(blocks.zero_blocks, output),
                   format_count(blocks.duplicate_blocks, output),
                   blocks.compared_blocks + blocks.zero_blocks < blocks.inspected_blocks
                       ? fmt::format(" of the {} compared", format_count(blocks.compared_blocks, output))
                       : "")});
  return table.text();
}

}  // namespace penstock
