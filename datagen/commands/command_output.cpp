#include "datagen/commands/command_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "datagen/corpus/corpus.hpp"
#include "datagen/format/sample_type.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/parallel/parallel.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {

unsigned threads_of(const CommandContext& context) {
  return worker_threads(context.options.has("threads") ? uint64_t(context.options.integer("threads")) : 0);
}

Json scan_json(const ScanReport& scan) {
  Json out{{"left_out", scan.unwanted_objects},
           {"hidden", scan.hidden_entries},
           {"empty_folders", scan.empty_folders},
           {"linked_objects", scan.linked_objects},
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

std::map<std::string, uint64_t> count_extensions(const Manifest& manifest) {
  std::map<std::string, uint64_t> counts;
  std::string scratch;
  for (uint64_t i = 0; i < manifest.objects(); ++i) {
    const std::string_view name = manifest.object_name(i, scratch);
    std::string extension(extension_of(name.substr(name.rfind('/') + 1)));
    for (char& letter : extension)
      letter = letter >= 'A' && letter <= 'Z' ? char(letter - 'A' + 'a') : letter;
    ++counts[extension];
  }
  return counts;
}

std::string extensions_text(const std::map<std::string, uint64_t>& counts, const Output& output) {
  constexpr size_t kMostNamed = 8;
  std::vector<std::string> names;
  uint64_t objects = 0;
  for (const auto& [name, count] : counts) {
    names.push_back(name);
    objects += count;
  }
  std::stable_sort(names.begin(), names.end(),
                   [&](const auto& a, const auto& b) { return counts.at(a) > counts.at(b); });
  const size_t named = names.size() > kMostNamed ? kMostNamed - 1 : names.size();
  std::string text;
  for (size_t i = 0; i < named; ++i) {
    const uint64_t count = counts.at(names[i]);
    objects -= count;
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", format_count(count, output),
                        names[i].empty() ? "without extension" : printable(names[i]));
  }
  if (objects > 0) text += fmt::format(", {}", count_of(objects, "other", output));
  return text;
}

}  // namespace penstock
