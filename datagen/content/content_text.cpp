// Prints a corpus's content as JSON, and as lines for people.
#include <fmt/format.h>

#include "datagen/codec/zstd_size.hpp"
#include "datagen/content/content.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {

namespace {

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

Json pictures_json(const PictureFacts& pictures) {
  const std::uint64_t decoded = pictures.jpeg + pictures.png;
  if (decoded + pictures.failed == 0) return nullptr;
  Json out{{"jpeg", pictures.jpeg}, {"png", pictures.png}, {"failed", pictures.failed}};
  if (pictures.failed > 0) out["failure"] = pictures.failure;
  if (decoded == 0) return out;
  out["restart_interval_share"] = share(pictures.with_restarts, pictures.jpeg);
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
           {"empty", content.empty},
           {"unreadable", content.unreadable},
           {"bytes", content.bytes},
           {"pictures", pictures_json(content.pictures)},
           {"zstd", nullptr},
           {"blocks",
            {{"block_bytes", kBlockBytes},
             {"looked_at", content.blocks.inspected},
             {"zero", content.blocks.zero},
             {"zero_share", share(content.blocks.zero, content.blocks.inspected)},
             {"compared", content.blocks.compared},
             {"duplicate", content.blocks.duplicate},
             {"duplicate_share", share(content.blocks.duplicate, content.blocks.compared)}}}};
  if (content.zstd.ok())
    out["zstd"] = {{"level", kZstdLevel},
                   {"ratio_alone", content.zstd->each_sample},
                   {"ratio_in_line", content.zstd->one_stream}};
  else
    out["zstd_not_measured"] = content.zstd.error().message();
  return out;
}

std::string content_text(const Content& content, std::uint64_t samples_in_all, const Output& output) {
  Table table(
      {{"content", Align::left},
       {fmt::format("{} of {} samples, {}", format_count(content.samples), format_count(samples_in_all),
                    format_bytes(static_cast<double>(content.bytes), output)),
        Align::left}});
  if (content.empty > 0) table.row({"empty", fmt::format("{} more", format_count(content.empty))});
  if (content.unreadable > 0)
    table.row({"unreadable", fmt::format("{} more; the first: {}", format_count(content.unreadable),
                                         printable(content.failure))});
  const PictureFacts& pictures = content.pictures;
  if (pictures.jpeg + pictures.png > 0) {
    table.row({"pictures", fmt::format("{} JPEG ({} with restart intervals), {} PNG; {:.2f} bytes a pixel",
                                       format_count(pictures.jpeg),
                                       format_percent(share(pictures.with_restarts, pictures.jpeg)),
                                       format_count(pictures.png), pictures.bytes_per_pixel)});
    table.row({"decoding", fmt::format("{:.2f} ns a pixel, {:.2f} ns a byte (processor time of one thread: "
                                       "median of {} times, then of all pictures)",
                                       pictures.ns_per_pixel, pictures.ns_per_byte, kDecodeRepeats)});
  }
  if (pictures.failed > 0)
    table.row({"not decoded",
               fmt::format("{} {}; the first: {}", format_count(pictures.failed),
                           pictures.failed == 1 ? "picture" : "pictures", printable(pictures.failure))});
  table.row({fmt::format("zstd -{}", kZstdLevel),
             content.zstd.ok()
                 ? fmt::format("{:.3f} to 1 each sample by itself, {:.3f} to 1 one behind another",
                               content.zstd->each_sample, content.zstd->one_stream)
                 : "not measured: " + content.zstd.error().message()});
  const BlockCounts& blocks = content.blocks;
  table.row(
      {"blocks of 4 KiB",
       fmt::format("{} at multiples of 4 KiB in objects: {} all zero, {} copies of others{}",
                   format_count(blocks.inspected), format_count(blocks.zero), format_count(blocks.duplicate),
                   blocks.compared + blocks.zero < blocks.inspected
                       ? fmt::format(" among {} that were compared", format_count(blocks.compared))
                       : "")});
  return table.text();
}

}  // namespace penstock
