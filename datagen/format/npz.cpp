// Format: NumPy's .npz archives, with one array per field. An array is the field of one sample, or of several
// samples stacked along a new first axis.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "datagen/format/byte_order.hpp"
#include "datagen/format/coalescing_writer.hpp"
#include "datagen/format/format.hpp"
#include "datagen/format/npy_header.hpp"
#include "datagen/format/object_names.hpp"
#include "datagen/format/object_window.hpp"
#include "datagen/format/sample_arrays.hpp"
#include "datagen/format/scan_arrays.hpp"
#include "datagen/format/sharded_format.hpp"
#include "datagen/format/zip_archive.hpp"
#include "io_backends/core/checksums/crc32.hpp"

namespace penstock {

extern const FormatInfo format_npz;

namespace {

constexpr std::string_view kNpySuffix = ".npy";

std::string_view array_name(std::string_view member) {
  return member.substr(0, member.size() - (member.ends_with(kNpySuffix) ? kNpySuffix.size() : 0));
}

// Writes an archive. If there are several samples, the array of the first field (the payload) is a streamed
// member: its size and CRC follow its bytes, because they are known only after the last sample. Every other
// member has its size and CRC before its bytes.
class NpzWriter final : public ObjectWriter {
 public:
  NpzWriter(Backend& backend, const ObjectPlan& plan, bool is_stacked)
      : backend_(backend), name_(plan.name), varies_(plan.fields.front().varies), arrays_(plan, is_stacked) {}

  Result<Placement> add(const SampleBytes& sample) override {
    PENSTOCK_TRY(arrays_.add(sample));
    const FieldBytes& field = sample.fields.front();
    if (arrays_.samples() == 1) return add_single_sample(sample);
    if (!writer_) PENSTOCK_TRY(begin_payload());
    const Placement placement{writer_->offset(), field.bytes};
    payload_crc32_ = crc32_combine(payload_crc32_, crc32_of(field), field.bytes);
    payload_bytes_ += field.bytes;
    PENSTOCK_TRY(writer_->append(field));
    return placement;
  }

  Result<PublishedObject> publish(Durability durability, const Approval& approve) override {
    PENSTOCK_TRY(arrays_.check_complete());
    if (arrays_.samples() > 1) {
      PENSTOCK_TRY(end_payload());
      PENSTOCK_TRY(write_arrays(nullptr, 1));
    }
    PENSTOCK_TRY(writer_->append(zip_directory(members_, writer_->offset())));
    return writer_->publish(durability, approve);
  }

 private:
  Result<void> create(uint64_t bytes, bool is_patchable) {
    PENSTOCK_ASSIGN(auto writer,
                    is_patchable ? create_patchable(backend_, name_, bytes) : backend_.create(name_, bytes));
    writer_.emplace(std::move(writer));
    return success();
  }

  Result<Placement> add_single_sample(const SampleBytes& sample) {
    uint64_t bytes = 0;
    for (const ArrayPlan& array : arrays_.plans()) bytes += array.bytes();
    PENSTOCK_TRY(create(bytes, false));
    PENSTOCK_TRY(write_arrays(&sample, 0));
    return Placement{payload_offset_, sample.fields.front().bytes};
  }

  Result<void> begin_payload() {
    const ArrayPlan array = arrays_.plans().front();
    const std::vector<std::byte> head = npy_header(array.element, array.shape);
    PENSTOCK_TRY(create(varies_ ? 0 : head.size() + array.bytes(), varies_));
    members_.push_back({.name = array.name + std::string(kNpySuffix), .is_streamed = true});
    PENSTOCK_TRY(writer_->append(zip_local_header(members_.back())));
    return varies_ ? writer_->append_placeholder(head) : writer_->append(head);
  }

  // Ends the member that contains the samples: writes its trailer. If samples have a variable size, first
  // replaces the placeholder of its .npy header, because the length of its first dimension is known only now.
  Result<void> end_payload() {
    const ArrayPlan array = arrays_.plans().front();
    const std::vector<std::byte> head = npy_header(array.element, array.shape);
    if (varies_) PENSTOCK_TRY(writer_->replace_placeholder(head));
    ZipMember& member = members_.front();
    member.crc32 = crc32_combine(crc32(head), payload_crc32_, payload_bytes_);
    member.bytes = head.size() + payload_bytes_;
    return writer_->append(zip_trailer(member));
  }

  Result<void> write_arrays(const SampleBytes* sample, size_t first_array) {
    const std::vector<ArrayPlan> plans = arrays_.plans();
    for (size_t i = first_array; i < plans.size(); ++i) {
      const FieldBytes content = arrays_.content(plans[i], sample);
      std::vector<std::byte> head = npy_header(plans[i].element, plans[i].shape);
      members_.push_back({.name = plans[i].name + std::string(kNpySuffix),
                          .header_offset = writer_->offset(),
                          .bytes = head.size() + content.bytes,
                          .crc32 = crc32_combine(crc32(head), crc32_of(content), content.bytes)});
      PENSTOCK_TRY(writer_->append(zip_local_header(members_.back())));
      PENSTOCK_TRY(writer_->append(head));
      if (i == 0) payload_offset_ = writer_->offset();
      PENSTOCK_TRY(writer_->append(content));
    }
    return success();
  }

  Backend& backend_;
  const std::string name_;
  const bool varies_;
  SampleArrays arrays_;
  std::optional<CoalescingWriter> writer_;
  std::vector<ZipMember> members_;
  uint64_t payload_offset_ = 0;
  uint64_t payload_bytes_ = 0;
  uint32_t payload_crc32_ = 0;
};

class Npz final : public ShardedFormat {
 public:
  explicit Npz(Shards shards) : ShardedFormat(shards, ".npz") {}

  Result<void> check(std::span<const Field> fields) const override {
    return check_array_names(fields, "an .npz archive");
  }

  Result<std::unique_ptr<ObjectWriter>> create(Backend& backend, const ObjectPlan& plan) const override {
    return std::make_unique<NpzWriter>(backend, plan, !shards_.one_sample_per_object());
  }

  Result<void> scan(Backend& backend, const Entry& object, const Visit& visit_sample) const override {
    PENSTOCK_ASSIGN(ObjectWindow window, ObjectWindow::open(backend, object));
    UnreadArrays unread;
    const auto skips_member = [&](std::string_view member, const Error& error) {
      const bool is_packed = error.code == Errc::unsupported;  // compressed or encrypted
      const bool is_npy = member.ends_with(kNpySuffix);
      const bool is_label = is_packed && is_label_name(array_name(member));
      if (!is_label && (is_npy || (!is_packed && error.code != Errc::corrupt))) return false;
      unread.add(array_name(member),
                 is_label    ? "labels that are compressed or encrypted"
                 : is_packed ? "which is compressed or encrypted"
                             : "which is damaged",
                 error);
      return true;
    };
    PENSTOCK_ASSIGN(const std::vector<ArchiveMember> members, read_zip(window, skips_member));
    // Of several arrays of one name NumPy reads the last one, and "x" rather than "x.npy".
    std::vector<const ArchiveMember*> array_members;
    std::unordered_map<std::string_view, const ArchiveMember*> read_for;
    for (const ArchiveMember& member : members) {
      if (!member.name.ends_with(kNpySuffix)) {
        PENSTOCK_ASSIGN(const bool is_array, begins_with_npy(window, member.content));
        if (!is_array) {
          unread.add(member.name, "which is no array");
          continue;
        }
      }
      array_members.push_back(&member);
      const ArchiveMember*& chosen = read_for[array_name(member.name)];
      if (chosen == nullptr || chosen->name.size() >= member.name.size()) chosen = &member;
    }
    std::vector<StoredArray> arrays;
    std::vector<ArrayExtent> extents;
    for (const ArchiveMember* member : array_members) {
      const std::string name(array_name(member->name));
      if (read_for[name] != member) {
        unread.add(name, "replaced by another array of the same name");
        continue;
      }
      Result<NpyArray> parsed = read_npy(window, member->content.offset, member->content.length);
      if (!parsed.ok() && parsed.error().code == Errc::unsupported) {
        unread.add(name, "of a type that is not read", std::move(parsed).error());
        continue;
      }
      PENSTOCK_ASSIGN(const NpyArray array, std::move(parsed));
      arrays.push_back({.name = name,
                        .shape = array.shape,
                        .bytes = array.data_bytes,
                        .is_integer = array.is_integer() || (array.kind == 'b' && is_label_name(name)),
                        .item_bytes = std::max<uint64_t>(1, array.item_bytes)});
      extents.push_back({.offset = member->content.offset + array.header_bytes,
                         .item_bytes = std::max<uint64_t>(1, array.item_bytes),
                         .is_signed = array.kind == 'i',
                         .big_endian = array.big_endian,
                         .rows_are_split = array.fortran_order && array.shape.size() > 1});
    }
    return scan_arrays(
        window, arrays, std::move(unread),
        [&](size_t array) -> Result<ArrayExtent> { return extents[array]; }, visit_sample);
  }
};

}  // namespace

const FormatInfo format_npz{
    .name = "npz",
    .summary = "NumPy archives: an array a field, of one sample or of several",
    .options = kShardedOptions,
    .make = make_sharded<Npz>,
};

}  // namespace penstock
