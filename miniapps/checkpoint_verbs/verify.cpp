// penstock checkpoint verify: reads every copy of every checkpoint, and says what is wrong.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "datagen/command_output.hpp"
#include "io_backends/base/progress.hpp"
#include "io_backends/base/units.hpp"
#include "miniapps/checkpoint_verbs/prove.hpp"
#include "miniapps/checkpoint_verbs/stores.hpp"
#include "miniapps/checkpoint_verbs/verbs.hpp"
#include "results/table.hpp"

namespace penstock {
namespace {

struct Verified {
  std::string tier;
  std::string run;
  CheckpointId id;
  std::uint64_t bytes = 0;
  bool proven = false;  // against the seed, too
  std::string problem;  // "": whole
};

// A copy alone: its manifest, then every byte.
Result<Verified> verify_copy(const FoundCheckpoint& found, const FoundCopy& copy, Progress& shown) {
  Verified verified{.tier = copy.store->tier().name, .run = found.run, .id = found.id, .problem = ""};
  if (!copy.manifest.ok()) {
    verified.problem = copy.manifest.error().message();
    return verified;
  }
  const CheckpointManifest& manifest = *copy.manifest;
  verified.bytes = manifest.bytes();
  verified.proven = provable(manifest);
  for (const CheckpointFile& file : manifest.files) {
    const Result<void> read = read_and_prove(*copy.store, manifest, file, [&](auto, auto bytes) {
      shown.advance(bytes.size());
      return success();
    });
    if (read.ok()) continue;
    if (read.error().code == Errc::interrupted) return read.error();
    verified.problem = read.error().message();
    return verified;
  }
  return verified;
}

Result<std::vector<Verified>> verify_all(const std::vector<FoundCheckpoint>& all, const Output& output) {
  std::uint64_t bytes = 0;
  for (const FoundCheckpoint& found : all)
    for (const FoundCopy& copy : found.copies) bytes += copy.manifest.ok() ? copy.manifest->bytes() : 0;
  Progress shown(output.progress, "verify", bytes, "B");
  std::vector<Verified> verified;
  for (const FoundCheckpoint& found : all) {
    const CheckpointManifest* first = found.manifest();
    for (const FoundCopy& copy : found.copies) {
      PENSTOCK_ASSIGN(Verified one, verify_copy(found, copy, shown));
      if (one.problem.empty() && !same_content(*copy.manifest, *first))
        one.problem = fmt::format("is another one than checkpoint {} of '{}' on the other tier",
                                  short_name(found.id), found.run);
      verified.push_back(std::move(one));
    }
  }
  return verified;
}

void print_lines(const std::vector<Verified>& all, std::uint64_t wrong) {
  std::uint64_t bytes = 0;
  for (const Verified& one : all) {
    bytes += one.bytes;
    print_json({{"kind", "copy"},
                {"tier", one.tier},
                {"run", one.run},
                {"step", one.id.step},
                {"generation", one.id.generation},
                {"bytes", one.bytes},
                {"proven", one.proven && one.problem.empty()},
                {"problem", one.problem}});
  }
  print_json({{"kind", "summary"},
              {"copies", all.size()},
              {"wrong", wrong},
              {"bytes", bytes},
              {"verdict", wrong > 0 ? "failed" : "ok"}});
}

void print_table(const std::vector<Verified>& all, std::uint64_t wrong, const Output& output) {
  Table table({{"tier", Align::left}, {"run", Align::left}, {"checkpoint"}, {"problem", Align::left}});
  std::uint64_t bytes = 0;
  std::uint64_t proven = 0;
  for (const Verified& one : all) {
    bytes += one.bytes;
    proven += one.proven && one.problem.empty() ? 1U : 0U;
    if (!one.problem.empty())
      table.row({printable(one.tier), one.run, short_name(one.id), printable(one.problem)});
  }
  std::string text = table.empty() ? "" : table.text() + "\n";
  text += fmt::format("{} of {} copies of checkpoints are whole ({} read); {} proven against the seed\n",
                      format_count(all.size() - wrong), format_count(all.size()),
                      format_bytes(static_cast<double>(bytes), output), format_count(proven));
  print_text(text);
}

}  // namespace

Result<int> checkpoint_verify(const CommandContext& context, StoreNouns nouns) {
  PENSTOCK_ASSIGN(const NamedStores stores, open_stores(nouns, true));
  PENSTOCK_ASSIGN(const std::vector<std::string> runs, wanted_runs(stores.there(), context.options));
  std::vector<FoundCheckpoint> all;
  for (const std::string& run : runs) {
    PENSTOCK_ASSIGN(auto found, find_checkpoints(stores.there(), run));
    for (FoundCheckpoint& each : found) all.push_back(std::move(each));
  }
  PENSTOCK_ASSIGN(const std::vector<Verified> verified, verify_all(all, context.output));
  std::uint64_t wrong = 0;
  for (const Verified& one : verified) wrong += one.problem.empty() ? 0U : 1U;
  if (context.output.json)
    print_lines(verified, wrong);
  else
    print_table(verified, wrong, context.output);
  return wrong > 0 ? 1 : 0;
}

}  // namespace penstock
