#include "datagen/companions.hpp"

#include <span>
#include <vector>

#include "datagen/manifest/manifest.hpp"

namespace penstock {

std::string companion_name(const Format& format, const Companion& companion) {
  return format.object_name(0, 1, companion.name, companion.name, companion.fields.front().extension);
}

Result<PublishedObject> write_companion(const Format& format, Backend& backend, const Companion& companion,
                                        Durability durability, const Approval& approve) {
  const std::string name = companion_name(format, companion);
  Result<void> removed = backend.names().remove(name);
  if (!removed.ok() && removed.error().code != Errc::not_found) return std::move(removed).error();
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
