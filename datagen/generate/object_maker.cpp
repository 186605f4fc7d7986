#include "datagen/generate/object_maker.hpp"

#include <string_view>

namespace penstock {

// Plans a sample. If the last plan was for the same sample, returns that plan again: an object with one
// sample needs the same plan for its name and for its sample.
const SamplePlan& ObjectMaker::plan(uint64_t index) {
  if (planned_index_ != index) setup_.generation.recipe->plan(index, last_plan_);
  planned_index_ = index;
  return last_plan_;
}

std::string ObjectMaker::name(uint64_t object) {
  return setup_.generation.object_name(object, plan(setup_.generation.first_sample(object)));
}

Result<PublishedObject> ObjectMaker::make(uint64_t object, std::vector<JournalSample>& rows,
                                          std::vector<uint32_t>& labels, const SamplesApproval& approve) {
  const Generation& generation = setup_.generation;
  if (maker_ == nullptr) {
    PENSTOCK_ASSIGN(maker_, generation.recipe->maker());
  }
  const std::string object_name = name(object);
  // Removes an old object before the new one is written. Otherwise both would take space at the same time,
  // the new one under a temporary name.
  if (setup_.may_replace) PENSTOCK_TRY(remove_if_there(setup_.backend.names(), object_name));
  PENSTOCK_ASSIGN(const auto writer,
                  generation.format->create(setup_.backend, {.name = object_name,
                                                             .samples = generation.samples_of(object),
                                                             .fields = generation.recipe->fields()}));
  const size_t begin = rows.size();
  Result<PublishedObject> published = fill(object, *writer, rows, labels, approve);
  if (!published.ok()) rows.resize(begin);
  return published;
}

Result<PublishedObject> ObjectMaker::fill(uint64_t object, ObjectWriter& writer,
                                          std::vector<JournalSample>& rows, std::vector<uint32_t>& labels,
                                          const SamplesApproval& approve) {
  const std::vector<std::string>& names = setup_.label_names;
  const uint64_t end = setup_.generation.end_sample(object);
  const size_t begin = rows.size();
  labels.clear();
  for (uint64_t index = setup_.generation.first_sample(object); index < end; ++index) {
    const SamplePlan& sample = plan(index);
    PENSTOCK_ASSIGN(const std::span<const FieldBytes> made, maker_->make(index));
    fields_.assign(made.begin(), made.end());
    // Computes the checksum of each field here, once. It is used for the payload and for the whole object.
    for (FieldBytes& field : fields_) field.crc32c = crc32c_of(field);
    const uint32_t label = sample.label;
    labels.push_back(label);
    PENSTOCK_ASSIGN(const Placement placement,
                    writer.add({.key = sample.key,
                                .label = label,
                                .label_name = label < names.size() ? names[label] : std::string_view{},
                                .fields = fields_}));
    rows.push_back({index, placement.offset, placement.length,
                    placement.crc32c ? *placement.crc32c : *fields_.front().crc32c});
  }
  if (!approve) return writer.publish(setup_.durability);
  return writer.publish(setup_.durability, [&](const PublishedObject& written) {
    return approve(written, std::span(rows).subspan(begin), labels);
  });
}

// Returns the name that the format gives to an object, without the parts that distribute samples: folders by
// class or hash, and shard numbers.
std::string companion_name(const Format& format, const Companion& companion) {
  constexpr std::string_view kOnlyShard = "-00000-of-00001";
  std::string name =
      format.object_name(0, 1, companion.name, companion.name, companion.fields.front().extension);
  const size_t name_begin = companion.name.rfind('/') + 1;
  const std::string_view base_name = std::string_view(companion.name).substr(name_begin);
  name.erase(0, name.rfind('/') + 1);
  if (name.starts_with(base_name) && name.compare(base_name.size(), kOnlyShard.size(), kOnlyShard) == 0)
    name.erase(base_name.size(), kOnlyShard.size());
  return companion.name.substr(0, name_begin) + name;
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
