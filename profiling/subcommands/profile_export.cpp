// penstock profile export --to FORMAT SESSION... -o FILE
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/units.hpp"
#include "profiling/exporters/session_export.hpp"
#include "profiling/exporters/session_records.hpp"
#include "profiling/report/session_text.hpp"
#include "profiling/session/session_summary.hpp"
#include "profiling/subcommands/profile_arguments.hpp"
#include "results/record/store.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kResults = "penstock-results";

void say(const CommandContext& context, const std::string& file, std::string_view what, std::uint64_t count) {
  if (context.output.json) {
    const Json line{{"file", file}, {std::string(what), count}};
    const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    note(fmt::format("{}: {} {}", file, format_count(count), what));
  }
}

// What an export of single calls has not got.
void report_dropped(const Session& session) {
  if (const Drops drops = drops_of(session); drops.segments > 0)
    warn(fmt::format("{} are missing: they were dropped", dropped_calls_text(drops)));
}

Result<int> to_records(const CommandContext& context, ProfileArguments arguments,
                       const SessionFilter& filter) {
  std::vector<NamedTier> tiers;
  for (const std::string& text : context.options.texts("tier")) {
    PENSTOCK_ASSIGN(NamedTier tier, parse_named_tier(text));
    tiers.push_back(std::move(tier));
  }
  const std::vector<std::string> argv(context.argv.begin(), context.argv.end());
  // Each session is a measurement of its own.
  std::vector<Record> records;
  for (const std::string& argument : arguments) {
    PENSTOCK_ASSIGN(const Session session, open_named_sessions(std::span(&argument, 1)));
    const FileSums sums(session);
    for (Record& record : records_of(session, sums, filter, tiers, argv)) {
      record.parameters["session"] = argument;
      records.push_back(std::move(record));
    }
  }
  if (records.empty())
    return make_error(Errc::not_found,
                      "no file that is wanted was read or written: there is nothing to record");
  const std::string& output = context.options.text("output");
  PENSTOCK_ASSIGN(const fs::path file,
                  write_records(output.empty() ? std::string(kResults) : output, records));
  if (!context.output.json) {
    say(context, file.string(), "records", records.size());
    return 0;
  }
  for (const Record& record : records) {
    const std::string line = record_line(record) + "\n";
    std::fwrite(line.data(), 1, line.size(), stdout);
  }
  return 0;
}

Result<int> to_csv(const CommandContext& context, const Session& session, const SessionFilter& filter) {
  const std::string& output = context.options.text("output");
  const FileSums sums(session);
  PENSTOCK_ASSIGN(WholeFile file, WholeFile::create(output, "the export"));
  PENSTOCK_ASSIGN(const std::uint64_t rows, export_csv(sums, filter, file));
  PENSTOCK_TRY(file.publish());
  say(context, output, "rows", rows);
  return 0;
}

Result<int> to_chrome(const CommandContext& context, const Session& session, const SessionFilter& filter) {
  const std::string& output = context.options.text("output");
  const FileSums sums(session);
  PENSTOCK_ASSIGN(WholeFile file, WholeFile::create(output, "the export"));
  PENSTOCK_ASSIGN(const ChromeCounts counts, export_chrome(session, sums, filter, file));
  PENSTOCK_TRY(file.publish());
  if (counts.calls + counts.spans == 0)
    warn("the session kept no single calls: 'penstock profile run --trace' keeps them");
  report_dropped(session);
  say(context, output, "events", 2 * counts.calls + counts.spans);
  return 0;
}

Result<int> to_darshan(const CommandContext& context, const Session& session, const SessionFilter& filter) {
  const std::string& output = context.options.text("output");
  const FileSums sums(session);
  PENSTOCK_ASSIGN(WholeFile file, WholeFile::create(output, "the Darshan log"));
  PENSTOCK_ASSIGN(const DarshanCounts counts, export_darshan(session, sums, filter, file));
  PENSTOCK_TRY(file.publish());
  if (counts.segments == 0)
    note(
        "no single reads and writes of descriptors were kept: the log has no DXT_POSIX, and its heatmap is "
        "drawn from the first and the last call of each thread and file ('penstock profile run --trace')");
  report_dropped(session);
  say(context, output, "records", counts.records);
  return 0;
}

// "name" without what a name of a file or a pattern might be taken for.
std::string file_word(std::string_view name) {
  std::string word(name);
  std::replace_if(
      word.begin(), word.end(),
      [](char c) {
        const bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
        return !plain;
      },
      '_');
  return word.empty() ? "host" : word;
}

bool has_calls_or_spans(const Session& session) {
  return std::any_of(session.images.begin(), session.images.end(), [](const auto& image) {
    const auto& blocks = image->view().blocks();
    return std::any_of(blocks.begin(), blocks.end(), [](const SessionBlock& block) {
      return (block.kind == PENSTOCK_BLOCK_SEGMENTS || block.kind == PENSTOCK_BLOCK_SPANS) &&
             !block.entries.empty();
    });
  });
}

// Folders that are made for what goes into them, and go again where nothing does.
class FreshFolders {
 public:
  FreshFolders() = default;
  FreshFolders(const FreshFolders&) = delete;
  FreshFolders& operator=(const FreshFolders&) = delete;
  ~FreshFolders() {
    std::error_code none;  // one that is not empty stays
    for (auto made = made_.rbegin(); made != made_.rend(); ++made) fs::remove(*made, none);
  }
  Result<void> make(const fs::path& folder) {
    fs::path whole;
    for (const fs::path& part : folder) {
      whole /= part;
      std::error_code failed;
      if (fs::create_directory(whole, failed)) made_.push_back(whole);
      if (failed) return errno_error(failed.value(), "cannot make the folder", whole.string());
    }
    return success();
  }

 private:
  std::vector<fs::path> made_;
};

Result<int> to_tensorboard(const CommandContext& context, const Session& session,
                           const SessionFilter& filter) {
  const std::string& output = context.options.text("output");
  const penstock_session_header& first = session.processes.front().first().header();
  const std::string host = file_word(session.processes.front().first().host());
  const std::int64_t begin_s = std::max<std::int64_t>(0, first.begin_realtime_ns) / 1'000'000'000;
  // The same session goes to the same names again.
  const fs::path logs(output);
  const fs::path run = logs / "plugins" / "profile" / fmt::format("penstock_{}", begin_s);
  const bool traced = has_calls_or_spans(session);
  FreshFolders folders;
  PENSTOCK_TRY(folders.make(traced ? run : logs));
  PENSTOCK_ASSIGN(WholeFile events,
                  WholeFile::create(
                      (logs / fmt::format("events.out.tfevents.{:010}.{}.penstock", begin_s, host)).string(),
                      "the event file"));
  std::optional<WholeFile> trace;
  if (traced) {
    PENSTOCK_ASSIGN(WholeFile made, WholeFile::create((run / (host + ".xplane.pb")).string(), "the trace"));
    trace.emplace(std::move(made));
  }
  const FileSums sums(session);
  PENSTOCK_ASSIGN(const TensorBoardCounts counts,
                  export_tensorboard(session, sums, filter, events, trace ? &*trace : nullptr));
  if (trace) PENSTOCK_TRY(trace->publish());
  PENSTOCK_TRY(events.publish());
  if (!traced)
    note(
        "no single calls were kept: there is no trace for the profile plugin, and the series over time are "
        "drawn from the first and the last call of each thread and file ('penstock profile run --trace')");
  if (counts.calls_left_out > 0)
    warn(fmt::format("the trace has the {} longest calls; {} shorter ones are left out (--include chooses)",
                     format_count(counts.calls), format_count(counts.calls_left_out)));
  report_dropped(session);
  say(context, output, "values", counts.values);
  return 0;
}

using ToFile = Result<int> (*)(const CommandContext& context, const Session& session,
                               const SessionFilter& filter);
struct Exporter {
  std::string_view name;
  ToFile write;
};
constexpr Exporter kExporters[] = {
    {"chrome", &to_chrome}, {"csv", &to_csv}, {"darshan", &to_darshan}, {"tensorboard", &to_tensorboard}};

}  // namespace

Result<int> profile_export(const CommandContext& context, ProfileArguments arguments) {
  const std::string& to = context.options.text("to");
  if (to.empty())
    return make_error(Errc::invalid_argument,
                      "'export' needs a format: --to chrome, csv, darshan, records or tensorboard");
  if (!context.options.texts("tier").empty() && to != "records")
    return make_error(Errc::invalid_argument, "--tier is for --to records");
  const SessionFilter filter = filter_of(context.options, arguments);
  if (arguments.empty()) return open_named_sessions(arguments).error();
  if (context.options.given("output"))
    PENSTOCK_TRY(check_output_outside_sessions(context.options.text("output"), arguments));
  if (to == "records") return to_records(context, arguments, filter);
  if (context.options.text("output").empty())
    return make_error(Errc::invalid_argument, to == "tensorboard"
                                                  ? "'export' needs a folder to write to: -o LOGDIR"
                                                  : "'export' needs a file to write: -o FILE");
  PENSTOCK_ASSIGN(const Session session, open_named_sessions(arguments));
  for (const Exporter& exporter : kExporters)
    if (exporter.name == to) return exporter.write(context, session, filter);
  return make_error(Errc::internal, "no outlet for --to " + to);
}

}  // namespace penstock
