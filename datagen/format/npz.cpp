// Format: NumPy's .npz archives, with one array per field. An array is the field of one sample, or of several
// samples stacked along a new first axis.

#include <fmt/format.h>

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
#include "datagen/format/unpacked_window.hpp"
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

// Finds the samples in an archive, which any program may have made.
class NpzScan {
 public:
  explicit NpzScan(ObjectWindow& window) : window_(window) {}

  Result<void> scan(std::string_view field, const Format::Visit& visit_sample) {
    PENSTOCK_TRY(find_array_members());
    for (const ArchiveMember* member : array_members_) PENSTOCK_TRY(add_array(*member));
    return scan_arrays(
        window_, arrays_, field, std::move(unread_),
        [this](size_t array, bool /*by_rows*/) -> Result<ArrayExtent> {
          ArrayExtent extent = extents_[array];
          PENSTOCK_ASSIGN(extent.unpacked, inflated(*extent_members_[array]));
          return extent;
        },
        visit_sample);
  }

 private:
  bool skips_member(std::string_view member, const Error& error) {
    const bool is_packed = error.code == Errc::unsupported;  // encrypted, or compressed in an unusual way
    const bool is_npy = member.ends_with(kNpySuffix);
    const bool is_label = is_packed && is_label_name(array_name(member));
    if (!is_label && (is_npy || (!is_packed && error.code != Errc::corrupt))) return false;
    unread_.add(array_name(member),
                is_label    ? "labels that are encrypted, or compressed by another method than deflate"
                : is_packed ? "which is encrypted, or compressed by another method than deflate"
                            : "which is damaged",
                error);
    return true;
  }

  // A window on the inflated bytes of a member; nothing if it is not compressed.
  Result<std::shared_ptr<StreamWindow>> inflated(const ArchiveMember& member) {
    if (!member.is_deflated) return std::shared_ptr<StreamWindow>();
    PENSTOCK_ASSIGN(auto stream, StreamWindow::make(window_, DeflateFormat::raw, member.content));
    stream->expect({.bytes = member.bytes, .crc32 = member.crc32});
    return stream;
  }

  // Of several arrays of one name NumPy reads the last one, and "x" rather than "x.npy".
  Result<void> find_array_members() {
    PENSTOCK_ASSIGN(members_, read_zip(window_, [this](std::string_view member, const Error& error) {
                      return skips_member(member, error);
                    }));
    for (const ArchiveMember& member : members_) {
      if (!member.name.ends_with(kNpySuffix)) {
        const Result<bool> is_array = is_array_member(member);
        const bool is_damaged = !is_array.ok() && (is_array.error().code == Errc::corrupt ||
                                                   is_array.error().code == Errc::truncated);
        if (!is_array.ok() && !is_damaged) return is_array.error();
        if (is_damaged || !*is_array) {
          unread_.add(member.name, is_damaged ? "which is damaged" : "which is not an array",
                      is_damaged ? std::optional(is_array.error()) : std::nullopt);
          continue;
        }
      }
      array_members_.push_back(&member);
      const ArchiveMember*& chosen = read_for_[array_name(member.name)];
      if (chosen == nullptr || chosen->name.size() >= member.name.size()) chosen = &member;
    }
    return success();
  }

  Result<bool> is_array_member(const ArchiveMember& member) {
    PENSTOCK_ASSIGN(const auto stream, inflated(member));
    if (!stream) return begins_with_npy(window_, member.content);
    return begins_with_npy(*stream, {0, member.bytes});
  }

  Result<void> add_array(const ArchiveMember& member) {
    const std::string name(array_name(member.name));
    if (read_for_[name] != &member) {
      unread_.add(name, "replaced by another array of the same name");
      return success();
    }
    PENSTOCK_ASSIGN(const auto stream, inflated(member));
    // NumPy reads the first array of a member, and nothing after it.
    Result<NpyArray> parsed = stream ? read_npy(*stream, 0, member.bytes, true)
                                     : read_npy(window_, member.content.offset, member.content.length, true);
    if (!parsed.ok() && parsed.error().code == Errc::unsupported) {
      const std::string reason = fmt::format("that is not supported ({})", parsed.error().what);
      unread_.add(name, reason, std::move(parsed).error());
      return success();
    }
    PENSTOCK_ASSIGN(const NpyArray array, std::move(parsed));
    if (const uint64_t rest = member.bytes - array.header_bytes - array.data_bytes; rest > 0)
      unread_.add(fmt::format("the {1} bytes after the array {0}", name, rest), "");
    arrays_.push_back({.name = name,
                       .shape = array.shape,
                       .bytes = array.data_bytes,
                       .is_integer = array.is_integer() || (array.kind == 'b' && is_label_name(name)),
                       .item_bytes = std::max<uint64_t>(1, array.item_bytes)});
    extents_.push_back({.offset = (stream ? 0 : member.content.offset) + array.header_bytes,
                        .item_bytes = std::max<uint64_t>(1, array.item_bytes),
                        .is_signed = array.kind == 'i',
                        .big_endian = array.big_endian,
                        .rows_are_split = array.fortran_order && array.shape.size() > 1});
    extent_members_.push_back(&member);
    return success();
  }

  ObjectWindow& window_;
  UnreadArrays unread_;
  std::vector<ArchiveMember> members_;
  std::vector<const ArchiveMember*> array_members_;
  std::unordered_map<std::string_view, const ArchiveMember*> read_for_;
  std::vector<StoredArray> arrays_;
  std::vector<ArrayExtent> extents_;
  std::vector<const ArchiveMember*> extent_members_;  // one per extent
};

class Npz final : public ShardedFormat {
 public:
  Npz(Shards shards, std::string field) : ShardedFormat(shards, ".npz"), field_(std::move(field)) {}

  Result<void> check(std::span<const Field> fields) const override {
    return check_array_names(fields, "an .npz archive");
  }

  Result<std::unique_ptr<ObjectWriter>> create(Backend& backend, const ObjectPlan& plan) const override {
    return std::make_unique<NpzWriter>(backend, plan, !shards_.one_sample_per_object());
  }

  Result<void> scan(Backend& backend, const Entry& object, const Visit& visit_sample) const override {
    PENSTOCK_ASSIGN(ObjectWindow window, ObjectWindow::open(backend, object));
    return NpzScan(window).scan(field_, visit_sample);
  }

 private:
  const std::string field_;
};

}  // namespace

const FormatInfo format_npz{
    .name = "npz",
    .summary = "NumPy archives: one array per field, with one sample or several",
    .options = kArrayOptions,
    .make = make_of_arrays<Npz>,
};

}  // namespace penstock
