#include "datagen/target/extra_objects.hpp"

#include <algorithm>

#include "datagen/manifest/name_hash.hpp"
#include "datagen/objects/folder_walk.hpp"

namespace penstock {

Result<ExtraObjects> find_extra_objects(Namespace& names, const Manifest& manifest, unsigned threads) {
  constexpr size_t kMostNames = 10;
  std::vector<uint64_t> hashes;
  hashes.reserve(size_t(manifest.objects()));
  std::string scratch;
  for (uint64_t i = 0; i < manifest.objects(); ++i)
    hashes.push_back(name_hash(manifest.object_name(i, scratch)));
  std::sort(hashes.begin(), hashes.end());

  const auto classify = [&](const Entry& entry) {
    return std::binary_search(hashes.begin(), hashes.end(), name_hash(entry.name)) ? kNotWanted : uint16_t{0};
  };
  PENSTOCK_ASSIGN(const FolderWalk walk, walk_folders(names, threads, classify));
  ExtraObjects extra;
  extra.count = walk.objects();
  for (const FolderListing& folder : walk.folders)
    for (const FolderListing::Item& item : folder.items)
      if (extra.first_names.size() < kMostNames)
        extra.first_names.emplace_back(folder.full_name(item, scratch));
  return extra;
}

}  // namespace penstock
