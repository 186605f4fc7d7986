#include "profiling/session/named_files.hpp"

#include <algorithm>

namespace penstock {

NamedFiles::NamedFiles(const Session& session, const FileSums& sums, const SessionFilter& filter) {
  const auto some = [&](bool python) -> const SessionImage* {
    for (const auto& image : session.images)
      if (image->is_python() == python) return image.get();
    return nullptr;
  };
  const SessionImage* const python = some(true);
  const SessionImage* const other = some(false);
  const auto add = [&](const FileSum& file) {
    const bool moved = (file.all.bytes_read | file.all.bytes_written | file.mapped_bytes) != 0;
    const auto by = [&](const SessionImage* image) {
      return image != nullptr && filter.wants(file.path, file.kind, moved, *image);
    };
    files_.push_back({file.file, file.path, by(python), by(other)});
  };
  sums.each(filter.wanted(), add);
  std::stable_sort(files_.begin(), files_.end(),
                   [](const NamedFile& a, const NamedFile& b) { return a.file < b.file; });
}

const NamedFile* NamedFiles::find(std::uint64_t file, const SessionImage& image) const {
  const auto at = std::lower_bound(files_.begin(), files_.end(), file,
                                   [](const NamedFile& a, std::uint64_t key) { return a.file < key; });
  if (at == files_.end() || at->file != file) return nullptr;
  return (image.is_python() ? at->wanted_of_python : at->wanted_of_others) ? &*at : nullptr;
}

}  // namespace penstock
