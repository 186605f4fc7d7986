#include "datagen/commands/command_output.hpp"

#include "datagen/corpus/corpus.hpp"
#include "io_backends/core/parallel/parallel.hpp"

namespace penstock {

unsigned threads_of(const CommandContext& context) {
  return worker_threads(
      context.options.has("threads") ? static_cast<std::uint64_t>(context.options.integer("threads")) : 0);
}

Json scan_json(const ScanReport& scan) {
  return {{"left_out", scan.left_out},
          {"hidden", scan.hidden},
          {"linked_folders", scan.linked_folders},
          {"dangling", scan.dangling},
          {"special", scan.special},
          {"arrays", scan.arrays},
          {"members", scan.members},
          {"unreadable", scan.unreadable},
          {"without_samples", scan.without_samples},
          {"folder_labels", scan.folder_labels}};
}

}  // namespace penstock
