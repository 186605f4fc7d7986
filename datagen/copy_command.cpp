// penstock copy: makes a verified copy of a corpus, so that another tier can be measured with the same bytes.
#include <fmt/format.h>

#include <string>

#include "datagen/commands/command_output.hpp"
#include "datagen/corpus/copy_engine.hpp"
#include "datagen/corpus/corpus.hpp"
#include "datagen/target/target_folder.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "results/record/environment.hpp"

namespace penstock {

extern const CommandInfo command_copy;

namespace {

constexpr OptionSpec kCopyOptions[] = {
    {.name = "to",
     .role = OptionRole::target,
     .value = "TIER",
     .help = "where the copy goes: a folder or a TIER",
     .group = "Copy"},
    {.name = "replace",
     .role = OptionRole::target,
     .type = OptionType::flag,
     .help = "begin a copy also in a folder that holds other things, and replace objects of other content; "
             "another corpus, or the beginning of a copy of one, stays refused",
     .group = "Copy"},
    {.name = "resume",
     .role = OptionRole::work,
     .type = OptionType::flag,
     .help = "fail unless there is a copy of this corpus to resume (a copy resumes without this flag, too)",
     .group = "Copy"},
    {.name = "durability",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "visible|file|file_and_name",
     .fallback = "visible",
     .help = "what survives a power cut when the command ends: nothing promised, bytes, bytes and names",
     .group = "Copy"},
    {.name = "scan",
     .role = OptionRole::target,
     .type = OptionType::flag,
     .help = "take any folder of samples that somebody else made; nothing is written there",
     .group = "Corpus"},
    kTypesOption,
    kFollowLinksOption,
    kFieldOption,
    kManifestOption,
    kThreadsOption,
};

Durability durability_of(const std::string& word) {
  if (word == "file") return Durability::file;
  return word == "file_and_name" ? Durability::file_and_name : Durability::visible;
}

// Whether the scan of the source left out objects that it could not read. If it did, the copy is correct but
// not complete.
bool lacks_objects(const Corpus& corpus) {
  return corpus.scan && corpus.scan->unreadable_objects > 0;
}

Json to_json(const Corpus& corpus, const Tier& to, const CopyOutcome& outcome) {
  Json row{{"kind", "copy"},
           {"from", corpus.tier.root},
           {"to", tier_json(to)},
           {"objects", corpus.manifest.objects()},
           {"copied", outcome.objects_copied},
           {"already_there", outcome.already_there},
           {"bytes_copied", outcome.bytes_copied},
           {"wall_s", outcome.seconds},
           {"bytes_per_s", outcome.seconds > 0 ? double(outcome.bytes_copied) / outcome.seconds : 0.0},
           {"checksum", corpus.manifest.checksum()},
           {"verdict", !outcome.complete       ? "interrupted"
                       : lacks_objects(corpus) ? "degraded"
                                               : "ok"}};
  if (lacks_objects(corpus)) row["reason"] = "the scan left out " + corpus.scan->unreadable_text;
  if (corpus.scan) row["scan"] = scan_json(*corpus.scan);
  return row;
}

std::string to_text(const Corpus& corpus, const Tier& to, const CopyOutcome& outcome, const Output& output) {
  std::string text =
      fmt::format("{} -> {}: {} of {} copied ({}) in {}", printable(corpus.name), printable(to.root),
                  format_count(outcome.objects_copied), count_of(corpus.manifest.objects(), "object"),
                  format_bytes(double(outcome.bytes_copied), output), format_seconds(outcome.seconds));
  if (outcome.objects_copied > 0 && outcome.seconds > 0)
    text +=
        fmt::format(", {} {} written, read back and compared",
                    format_rate(double(outcome.bytes_copied) / outcome.seconds, output), rate_unit(output));
  if (outcome.already_there > 0)
    text += fmt::format("; {} {} there already, and right", format_count(outcome.already_there),
                        outcome.already_there == 1 ? "was" : "were");
  text +=
      outcome.complete ? "\n" : "\ninterrupted: no object is half, and the same command goes on from there\n";
  if (lacks_objects(corpus))
    text += fmt::format("degraded: the copy lacks what the scan left out, {}\n",
                        printable(corpus.scan->unreadable_text));
  return text;
}

Result<void> check_started(const Corpus& corpus, Tier& to) {
  PENSTOCK_TRY(folder_exists(to, "--to"));
  for (const std::string_view name : {kCopyingName, kManifestName}) {
    const auto existing = to.backend->names().stat(name);
    if (existing.ok()) return success();
    if (existing.error().code != Errc::not_found) return existing.error();
  }
  return make_error(Errc::not_found,
                    "there is no copy of {} in '{}' to resume: leave --resume out to start one",
                    printable(corpus.name), to.root);
}

Result<int> run_copy(const CommandContext& context) {
  const Options& options = context.options;
  if (!options.given("to"))
    return make_error(Errc::invalid_argument, "name the copy's target with --to TIER");
  const bool scan = options.flag("scan");
  PENSTOCK_ASSIGN(Tier to, open_tier(options.text("to"), context.named_tiers));
  PENSTOCK_TRY(check_field_option(options));
  CorpusRequest request = corpus_request(options);
  request.add_checksums = scan;
  request.threads = threads_of(context);
  request.progress = context.output.progress;
  request.named_tiers = context.named_tiers;
  request.log = note;
  PENSTOCK_ASSIGN(Corpus corpus, open_corpus(context.positionals[0], request));
  if (to.backend_name == "mem")
    note("'" + to.root + "' is memory of this process: the copy ends with this command");
  if (options.flag("resume")) PENSTOCK_TRY(check_started(corpus, to));
  PENSTOCK_ASSIGN(const CopyOutcome outcome,
                  copy_corpus(corpus, to,
                              {.threads = threads_of(context),
                               .durability = durability_of(options.text("durability")),
                               .may_replace = options.flag("replace"),
                               .progress = context.output.progress,
                               .warn = warn}));
  if (context.output.json)
    print_json(to_json(corpus, to, outcome));
  else
    print_text(to_text(corpus, to, outcome, context.output));
  return outcome.complete ? 0 : 1;
}

}  // namespace

const CommandInfo command_copy{
    .name = "copy",
    .summary = "a verified copy of a corpus on another tier; goes on where it stopped",
    .options = kCopyOptions,
    .run = run_copy,
    .synopsis = "penstock copy CORPUS --to TIER [options]",
    .examples =
        {"penstock copy corpora/imagenet --to fast=/dev/shm/imagenet     # to memory, to measure against",
         "penstock copy /data/photos --scan --to posix:/mnt/pfs/photos   # somebody else's folder: checksums "
         "are made"},
    .arguments = "CORPUS",
};

}  // namespace penstock
