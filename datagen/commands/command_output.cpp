#include "datagen/commands/command_output.hpp"

#include "datagen/corpus/corpus.hpp"
#include "io_backends/core/parallel/parallel.hpp"

namespace penstock {

unsigned threads_of(const CommandContext& context) {
  return worker_threads(context.options.has("threads") ? uint64_t(context.options.integer("threads")) : 0);
}

Json scan_json(const ScanReport& scan) {
  Json out{{"left_out", scan.unwanted_objects},
           {"hidden", scan.hidden_entries},
           {"linked_folders", scan.linked_folders},
           {"dangling", scan.dangling_links},
           {"special", scan.special_files},
           {"arrays", scan.left_out_arrays},
           {"members", scan.left_out_members},
           {"unreadable", scan.unreadable_objects},
           {"without_samples", scan.objects_without_samples},
           {"folder_labels", scan.folder_labelled_samples}};
  if (scan.equal_arrays > 0) out["equal_arrays"] = scan.equal_arrays;
  return out;
}

}  // namespace penstock
