// How the ranks that write one checkpoint together report their files to the rank that commits it.
#include <fmt/format.h>

#include <algorithm>

#include "miniapps/checkpoint/sealed_json.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {
namespace {

std::string part_name(uint64_t rank) {
  return fmt::format("part-{}.json", rank);
}

}  // namespace

Result<std::unique_ptr<PendingCheckpoint>> PendingCheckpoint::join(CheckpointStore& store,
                                                                   std::string folder) {
  const StoreFiles& files = store.files();
  const auto entry = files.named(files.backend().names().stat(folder));
  if (!entry && entry.error().code != Errc::not_found) return entry.error();
  if (!entry || !entry->folder)
    return files.error(Errc::not_found, fmt::format("'{}', created by another rank, is not visible to this "
                                                    "rank: all ranks must see the same files below '{}'",
                                                    folder, store.tier().root));
  return std::unique_ptr<PendingCheckpoint>(new PendingCheckpoint(store, std::move(folder), false));
}

Result<void> PendingCheckpoint::report_files(uint64_t rank, std::span<const CheckpointFile> written) {
  std::vector<CheckpointFile> sorted(written.begin(), written.end());
  std::sort(sorted.begin(), sorted.end(), by_rank_and_name);
  return files_.write_text(path_in(folder_, part_name(rank)), serialize_part(rank, sorted), Durability::file,
                           IfExists::fail);
}

Result<std::vector<CheckpointFile>> PendingCheckpoint::collect_files(uint64_t ranks) {
  std::vector<CheckpointFile> all;
  for (uint64_t rank = 0; rank < ranks; ++rank) {
    const std::string object = path_in(folder_, part_name(rank));
    const auto text = files_.read_text(object, kMostSealedBytes);
    if (!text && text.error().code == Errc::not_found)
      return files_.error(
          Errc::not_found,
          fmt::format("rank {} of {} did not list its files: '{}' is missing", rank, ranks, object));
    if (!text) return text.error();
    PENSTOCK_ASSIGN(const auto part, files_.named(parse_checkpoint_part(*text, rank, object)));
    all.insert(all.end(), part.begin(), part.end());
  }
  for (uint64_t rank = 0; rank < ranks; ++rank)
    PENSTOCK_TRY(files_.remove(path_in(folder_, part_name(rank))));
  return all;
}

}  // namespace penstock
