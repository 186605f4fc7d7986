#include "datagen/generate/companions.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/manifest/manifest.hpp"

namespace penstock {

// As the format names an object, without what samples are spread over: folders, and numbers of shards.
std::string companion_name(const Format& format, const Companion& companion) {
  constexpr std::string_view kOnlyShard = "-00000-of-00001";
  std::string name =
      format.object_name(0, 1, companion.name, companion.name, companion.fields.front().extension);
  const std::size_t folder = companion.name.rfind('/') + 1;
  const std::string_view last = std::string_view(companion.name).substr(folder);
  name.erase(0, name.rfind('/') + 1);
  if (name.starts_with(last) && name.compare(last.size(), kOnlyShard.size(), kOnlyShard) == 0)
    name.erase(last.size(), kOnlyShard.size());
  return companion.name.substr(0, folder) + name;
}

Result<PublishedObject> write_companion(const Format& format, Backend& backend, const Companion& companion,
                                        Durability durability, const Approval& approve) {
  const std::string name = companion_name(format, companion);
  PENSTOCK_TRY(remove_if_there(backend.names(), name));
  std::vector<std::span<const std::byte>> pieces(companion.bytes.begin(), companion.bytes.end());
  std::vector<FieldBytes> fields;
  fields.reserve(pieces.size());
  for (const auto& piece : pieces) fields.push_back({.pieces = {&piece, 1}, .bytes = piece.size()});
  PENSTOCK_ASSIGN(const auto writer,
                  format.create(backend, {.name = name, .samples = 1, .fields = companion.fields}));
  PENSTOCK_TRY(writer->add({.key = companion.name, .label = kNoLabel, .label_name = {}, .fields = fields}));
  return writer->publish(durability, approve);
}

}  // namespace penstock
