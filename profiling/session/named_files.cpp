#include "profiling/session/named_files.hpp"

#include <algorithm>

namespace penstock {

NamedFiles::NamedFiles(const Session& session, const FileSums& sums, const SessionFilter& filter) {
  const auto find_file_of = [&](bool is_python) -> const ProcessFile* {
    for (const auto& process_file : session.process_files)
      if (process_file->is_python() == is_python) return process_file.get();
    return nullptr;
  };
  const ProcessFile* const python_file = find_file_of(true);
  const ProcessFile* const other_file = find_file_of(false);
  const auto add = [&](const FileSum& file) {
    const bool moved_bytes = (file.all.bytes_read | file.all.bytes_written | file.mapped_bytes) != 0;
    const auto is_wanted_by = [&](const ProcessFile* process_file) {
      return process_file != nullptr && filter.wants(file.path, file.kind, moved_bytes, *process_file);
    };
    files_.push_back({file.file, file.path, is_wanted_by(python_file), is_wanted_by(other_file)});
  };
  sums.each(filter.wanted(), add);
  std::stable_sort(files_.begin(), files_.end(),
                   [](const NamedFile& a, const NamedFile& b) { return a.file < b.file; });
}

const NamedFile* NamedFiles::find(uint64_t file, const ProcessFile& process_file) const {
  const auto found = std::lower_bound(files_.begin(), files_.end(), file,
                                      [](const NamedFile& a, uint64_t key) { return a.file < key; });
  if (found == files_.end() || found->file != file) return nullptr;
  return (process_file.is_python() ? found->is_wanted_for_python : found->is_wanted_for_others) ? &*found
                                                                                                : nullptr;
}

}  // namespace penstock
