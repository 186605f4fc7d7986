#include "profiling/session/named_files.hpp"

#include <algorithm>

namespace penstock {

NamedFiles::NamedFiles(const Session& session, const FileSums& sums, const SessionFilter& filter) {
  const auto some = [&](bool python) -> const ProcessFile* {
    for (const auto& process_file : session.process_files)
      if (process_file->is_python() == python) return process_file.get();
    return nullptr;
  };
  const ProcessFile* const python = some(true);
  const ProcessFile* const other = some(false);
  const auto add = [&](const FileSum& file) {
    const bool moved = (file.all.bytes_read | file.all.bytes_written | file.mapped_bytes) != 0;
    const auto by = [&](const ProcessFile* process_file) {
      return process_file != nullptr && filter.wants(file.path, file.kind, moved, *process_file);
    };
    files_.push_back({file.file, file.path, by(python), by(other)});
  };
  sums.each(filter.wanted(), add);
  std::stable_sort(files_.begin(), files_.end(),
                   [](const NamedFile& a, const NamedFile& b) { return a.file < b.file; });
}

const NamedFile* NamedFiles::find(std::uint64_t file, const ProcessFile& process_file) const {
  const auto at = std::lower_bound(files_.begin(), files_.end(), file,
                                   [](const NamedFile& a, std::uint64_t key) { return a.file < key; });
  if (at == files_.end() || at->file != file) return nullptr;
  return (process_file.is_python() ? at->wanted_of_python : at->wanted_of_others) ? &*at : nullptr;
}

}  // namespace penstock
