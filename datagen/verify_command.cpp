// penstock verify: checks that every object exists and that every byte is correct.
//
// Threads: the threads of parallel_for() call the lambda `check` in check_all(), each thread with a Buffer
// and a name string of its own. The main thread calls everything else.
// Lock: the local mutex of check_all() guards findings.problems. It is not held during a read.
// Memory: a Buffer grows to 1 MiB. Names, verdicts and errors allocate. The list of problems allocates while
// the lock is held.
// Ctrl-C: ends the check before the next object or piece. The findings so far are printed, as not complete.
// Crash: files are only read.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "datagen/commands/command_output.hpp"
#include "datagen/corpus/corpus.hpp"
#include "datagen/objects/object_check.hpp"
#include "datagen/recipe/recipe.hpp"
#include "datagen/target/extra_objects.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/json.hpp"
#include "io_backends/core/parallel/parallel.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {

extern const CommandInfo command_verify;

namespace {

constexpr OptionSpec kVerifyOptions[] = {
    kManifestOption,
    kThreadsOption,
    {.name = "list",
     .role = OptionRole::output,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "1000",
     .help = "number of failed objects to list (0: all); all are counted",
     .group = "Output",
     .at_least = 0},
};

constexpr size_t kStateCount = 6;

struct Findings {
  std::array<uint64_t, kStateCount> counts{};  // how many objects have each ObjectState, which is the index
  std::vector<ObjectVerdict> problems;         // wrong objects, those found first; sorted by object
  uint64_t checked_objects = 0;
  ExtraObjects extra;
  bool complete = false;  // false if the check was interrupted
  double seconds = 0;
  uint64_t bytes_read = 0;

  uint64_t wrong_objects() const { return checked_objects - counts[size_t(ObjectState::right)]; }
};

// Whether the manifest has a checksum for every byte of every object. Checksums of samples alone may not
// cover bytes between them.
bool checks_every_byte(const Manifest& manifest) {
  return manifest.facts().object_checksums ||
         (manifest.one_object_per_sample() && manifest.facts().checksums);
}

// Whether the manifest has a checksum of anything. Without one only sizes are compared.
bool has_checksums(const Manifest& manifest) {
  return manifest.facts().checksums || manifest.facts().object_checksums;
}

// Reads and checks all objects with `threads` threads, and finds objects that the manifest lacks. The
// findings name at most `most_listed` wrong objects. After Ctrl-C it returns no error, but findings that are
// not `complete`.
Result<Findings> check_all(Corpus& corpus, unsigned threads, uint64_t most_listed, bool progress) {
  const auto start = std::chrono::steady_clock::now();
  const uint64_t bytes_before = corpus.tier.backend->moved_bytes().read;
  const Manifest& manifest = corpus.manifest;
  const ObjectIndex index(manifest);
  Findings findings;
  // Protects findings.problems while threads check objects. The counts are atomics. Relaxed order is enough,
  // because they are read after the threads have ended.
  std::mutex mutex;
  std::array<std::atomic<uint64_t>, kStateCount> counts{};
  std::vector<Buffer> buffers(threads);
  std::vector<std::string> names(threads);
  Progress progress_bar(progress, "verify", manifest.objects(), "files");
  const auto check = [&](unsigned worker, uint64_t object) -> Result<void> {
    const std::string_view name = manifest.object_name(object, names[worker]);
    PENSTOCK_ASSIGN(ObjectVerdict verdict,
                    check_object(*corpus.tier.backend, manifest, index, object, name, buffers[worker]));
    verdict.object = object;
    counts[size_t(verdict.state)].fetch_add(1, std::memory_order_relaxed);
    progress_bar.advance(1);
    if (verdict.state == ObjectState::right) return success();
    std::lock_guard lock(mutex);
    if (findings.problems.size() < most_listed) findings.problems.push_back(std::move(verdict));
    return success();
  };
  Result<void> done = parallel_for(manifest.objects(), threads, 8, check);
  if (done.ok()) {
    auto extra = find_extra_objects(corpus.tier.backend->names(), manifest, threads);
    if (extra.ok())
      findings.extra = *std::move(extra);
    else if (extra.error().code == Errc::interrupted)
      done = extra.error();
    else
      warn(fmt::format("could not look for objects that are not in the manifest: {}",
                       extra.error().message()));
  }
  if (!done.ok() && done.error().code != Errc::interrupted) return done.error();
  findings.complete = done.ok();
  for (size_t i = 0; i < kStateCount; ++i) {
    findings.counts[i] = counts[i].load();
    findings.checked_objects += findings.counts[i];
  }
  std::sort(findings.problems.begin(), findings.problems.end(),
            [](const ObjectVerdict& a, const ObjectVerdict& b) { return a.object < b.object; });
  findings.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  findings.bytes_read = corpus.tier.backend->moved_bytes().read - bytes_before;
  return findings;
}

// Makes a text that JSON can contain, which allows only UTF-8. Bytes that are not UTF-8 are escaped as in the
// table, so that different names remain different.
std::string as_utf8(std::string_view text) {
  const bool is_utf8 = Json::parse(one_line(std::string(text))) == Json(std::string(text));
  return is_utf8 ? std::string(text) : printable(text);
}

void print_lines(const Corpus& corpus, const Findings& findings) {
  std::string scratch;
  for (const ObjectVerdict& problem : findings.problems)
    print_json({{"kind", "problem"},
                {"object", as_utf8(corpus.manifest.object_name(problem.object, scratch))},
                {"problem", object_state_name(problem.state)},
                {"detail", as_utf8(problem.detail)}});
  for (const std::string& name : findings.extra.first_names)
    print_json({{"kind", "problem"},
                {"object", as_utf8(name)},
                {"problem", "extra"},
                {"detail", "not in the manifest"}});
  const bool has_object_checksums = checks_every_byte(corpus.manifest);
  Json summary{{"kind", "summary"},
               {"root", as_utf8(corpus.tier.root)},
               {"objects", corpus.manifest.objects()},
               {"checked", findings.checked_objects},
               {"checksums", corpus.manifest.facts().checksums},
               {"object_checksums", has_object_checksums},
               {"checksum", corpus.manifest.checksum()}};
  for (size_t i = 0; i < kStateCount; ++i)
    summary[std::string(object_state_name(static_cast<ObjectState>(i)))] = findings.counts[i];
  summary["extra"] = findings.extra.count;
  summary["bytes_read"] = findings.bytes_read;
  summary["wall_s"] = findings.seconds;
  summary["verdict"] = findings.wrong_objects() > 0      ? "failed"
                       : !findings.complete              ? "interrupted"
                       : !has_checksums(corpus.manifest) ? "skipped"
                                                         : "ok";
  print_json(summary);
}

void print_table(const Corpus& corpus, const Findings& findings, const Output& output) {
  Table table({{"object", Align::left}, {"problem", Align::left}, {"detail", Align::left}});
  std::string scratch;
  for (const ObjectVerdict& problem : findings.problems)
    table.row({printable(corpus.manifest.object_name(problem.object, scratch)),
               std::string(object_state_name(problem.state)), printable(problem.detail)});
  for (const std::string& name : findings.extra.first_names)
    table.row({printable(name), "extra", "not in the manifest; not counted as failures"});
  if (findings.extra.count > findings.extra.first_names.size())
    table.row(
        {"...", "extra",
         fmt::format("{} more", format_count(findings.extra.count - findings.extra.first_names.size()))});
  std::string text = table.empty() ? "" : table.text() + "\n";
  const uint64_t listed = findings.problems.size();
  if (findings.wrong_objects() > listed)
    text += fmt::format("... and {} more; to list all: --list 0\n",
                        format_count(findings.wrong_objects() - listed));
  text += fmt::format("{}: {} of {} checked, {} {}", printable(corpus.name),
                      format_count(findings.checked_objects), count_of(corpus.manifest.objects(), "object"),
                      format_count(findings.counts[0]),
                      has_checksums(corpus.manifest) ? "right" : "of the right size");
  for (size_t i = 1; i < kStateCount; ++i)
    if (findings.counts[i] > 0)
      text += fmt::format(", {} {}", format_count(findings.counts[i]),
                          object_state_name(static_cast<ObjectState>(i)));
  if (findings.extra.count > 0) text += fmt::format("; {} extra", format_count(findings.extra.count));
  text += fmt::format(" ({} read in {})\n", format_bytes(double(findings.bytes_read), output),
                      format_seconds(findings.seconds));
  if (!findings.complete) text += "interrupted: the remaining objects were not checked\n";
  print_text(text);
}

// Advice on how to make the corpus complete again, with a command if `penstock generate` can do it.
std::string remedy(const Corpus& corpus, const Findings& findings, bool own_manifest) {
  const std::string& recipe = corpus.manifest.facts().recipe;
  const auto count = [&](ObjectState state) { return findings.counts[size_t(state)]; };
  const bool all_unreadable = count(ObjectState::unreadable) == findings.wrong_objects();
  if (all_unreadable && !own_manifest)
    return "unreadable objects may be intact: check the reasons above first";
  if (!own_manifest || !recipe_registry().find(recipe).ok())
    return "to repair the corpus, copy the failed objects again from their source";
  if (all_unreadable)
    return fmt::format(
        "unreadable objects may be intact: check their permissions and the device first. To replace lost "
        "objects, remove them, then run: penstock generate {} --out {} --resume",
        recipe, shell_word(corpus.tier.spec));
  const bool has_wrong_bytes = count(ObjectState::wrong_bytes) > 0;
  return fmt::format("to repair the corpus{}: penstock generate {} --out {} --resume",
                     has_wrong_bytes ? ", remove the objects listed as wrong_bytes (--resume only checks "
                                       "sizes), then generate the missing objects again"
                                     : "",
                     recipe, shell_word(corpus.tier.spec));
}

Result<int> run_verify(const CommandContext& context) {
  const Options& options = context.options;
  PENSTOCK_ASSIGN(Corpus corpus,
                  open_corpus(context.positionals[0], {.manifest_file = options.text("manifest"),
                                                       .has_scan_option = false,
                                                       .named_tiers = context.named_tiers}));
  const auto limit = uint64_t(options.integer("list"));
  PENSTOCK_ASSIGN(
      const Findings findings,
      check_all(corpus, threads_of(context), limit == 0 ? UINT64_MAX : limit, context.output.progress));
  if (context.output.json)
    print_lines(corpus, findings);
  else
    print_table(corpus, findings, context.output);
  if (findings.wrong_objects() > 0) note(remedy(corpus, findings, options.text("manifest").empty()));
  if (findings.wrong_objects() > 0 || !findings.complete) return 1;
  if (checks_every_byte(corpus.manifest)) return 0;
  const bool has_sample_checksums = corpus.manifest.facts().checksums;
  note(fmt::format("{} (for a manifest with both: describe --scan --checksum --save)",
                   has_sample_checksums ? "the manifest has checksums of samples only: the bytes around "
                                          "them, such as headers and labels, could not be verified"
                                        : "the manifest has no checksums: every object exists with the right "
                                          "size, but its bytes could not be verified"));
  return has_sample_checksums ? 0 : 77;
}

}  // namespace

const CommandInfo command_verify{
    .name = "verify",
    .summary = "check that every object exists and matches its checksum; list failures",
    .options = kVerifyOptions,
    .run = run_verify,
    .synopsis = "penstock verify CORPUS [options]        exit 0: intact, 1: failures, 77: no checksums",
    .examples = {"penstock verify corpora/imagenet                # reads everything once",
                 "penstock verify /mnt/photos --manifest photos.manifest --json   # a read-only folder"},
    .arguments = "CORPUS",
};

}  // namespace penstock
