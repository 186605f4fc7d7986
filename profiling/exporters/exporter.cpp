#include "profiling/exporters/exporter.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/units.hpp"
#include "profiling/report/session_text.hpp"
#include "profiling/session/session_summary.hpp"
#include "results/record/record.hpp"

namespace penstock {

void report_export(const CommandContext& context, std::string_view file, std::string_view what,
                   std::uint64_t count) {
  if (context.output.json) {
    const Json line{{"file", file}, {std::string(what), count}};
    const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    note(fmt::format("{}: {} {}", file, format_count(count), what));
  }
}

void report_dropped(const Session& session) {
  if (const Drops drops = drops_of(session); drops.segments > 0)
    warn(fmt::format("{} are missing: they were dropped", dropped_calls_text(drops)));
}

}  // namespace penstock
