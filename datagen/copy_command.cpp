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
     .help = "the target of the copy: a folder or a TIER",
     .group = "Copy"},
    {.name = "replace",
     .role = OptionRole::target,
     .type = OptionType::flag,
     .help = "also copy into a folder that contains other files, and replace objects whose content differs; "
             "never overwrites another corpus or a partial copy of one",
     .group = "Copy"},
    {.name = "resume",
     .role = OptionRole::work,
     .type = OptionType::flag,
     .help = "fail if there is no partial copy to resume (a copy resumes without this flag, too)",
     .group = "Copy"},
    {.name = "durability",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "visible|file|file_and_name",
     .fallback = "visible",
     .help = "durability when the command ends: none, file data, or file data and names survive a power loss",
     .group = "Copy"},
    {.name = "scan",
     .role = OptionRole::target,
     .type = OptionType::flag,
     .help = "use any folder of files as the data set, read-only",
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
  if (lacks_objects(corpus)) row["reason"] = "the scan skipped " + corpus.scan->unreadable_text;
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
    text += fmt::format("; {} {} already there and correct", format_count(outcome.already_there),
                        outcome.already_there == 1 ? "was" : "were");
  text +=
      outcome.complete
          ? "\n"
          : "\ninterrupted: every object is complete or absent; to continue, run the same command again\n";
  if (lacks_objects(corpus))
    text += fmt::format("degraded: the copy lacks the {} that the scan skipped\n",
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
                    "'{1}' has no partial copy of {0} to resume: to start a copy, leave out --resume",
                    printable(corpus.name), to.root);
}

Result<int> run_copy(const CommandContext& context) {
  const Options& options = context.options;
  if (!options.given("to"))
    return make_error(Errc::invalid_argument, "set the target of the copy: --to TIER");
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
    note(
        "'" + to.root +
        "' is memory of this process, so the copy would be lost when this command ends: choose another --to");
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
    .summary = "copy a corpus to another tier and verify the copy (resumable)",
    .options = kCopyOptions,
    .run = run_copy,
    .synopsis = "penstock copy CORPUS --to TIER [options]",
    .examples =
        {"penstock copy corpora/imagenet --to fast=/dev/shm/imagenet     # a copy in memory, as a reference",
         "penstock copy /data/photos --scan --to posix:/mnt/pfs/photos   # any folder; computes checksums"},
    .arguments = "CORPUS",
};

}  // namespace penstock
