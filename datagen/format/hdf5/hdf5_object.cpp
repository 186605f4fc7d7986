#include "datagen/format/hdf5/hdf5_object.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "datagen/format/byte_order.hpp"
#include "datagen/format/hdf5/hdf5_heap.hpp"
#include "datagen/format/hdf5/hdf5_symbol_table.hpp"
#include "datagen/manifest/stored_form.hpp"

namespace penstock {
namespace {

constexpr size_t kMostNamedTypes = 10'000;  // that are kept
enum MessageType : uint16_t {
  kDataspace = 0x01,
  kLinkInfo = 0x02,
  kDatatype = 0x03,
  kOldFillValue = 0x04,
  kFillValue = 0x05,
  kLink = 0x06,
  kExternalFiles = 0x07,
  kLayout = 0x08,
  kFilters = 0x0b,
  kContinuation = 0x10,
  kSymbolTable = 0x11,
};

bool read_shape(HeaderReader message, Hdf5Object& object) {
  const uint64_t version = message.u8();
  const uint64_t dimensions = message.u8();
  const uint64_t flags = message.u8();
  uint64_t type = 1;
  if (version == 1)
    message.skip(5);
  else
    type = message.u8();
  constexpr uint64_t kNullSpace = 2;
  if (version < 1 || version > 2 || dimensions > kMostDimensions) return false;
  object.shape.clear();
  for (uint64_t i = 0; i < dimensions; ++i) object.shape.push_back(message.u64());
  object.max_shape.clear();
  constexpr uint64_t kHasMostFlag = 1;
  if ((flags & kHasMostFlag) != 0)
    for (uint64_t i = 0; i < dimensions; ++i) object.max_shape.push_back(message.u64());
  object.has_shape = type != kNullSpace;
  return message.ok();
}

bool read_type(HeaderReader message, Hdf5Object& object) {
  object.is_dataset = true;
  constexpr std::array<std::string_view, 11> kTypeNames{
      "integers",     "floats",           "times", "text", "bits", "opaque bytes", "compounds", "references",
      "enumerations", "variable lengths", "arrays"};
  constexpr uint64_t kEnumeration = 8, kVariableLength = 9;
  uint64_t kind = message.u8() & 0x0f;
  object.type_name = kind < kTypeNames.size() ? kTypeNames[size_t(kind)] : "an unknown type";
  uint64_t bits = message.u8();
  if (kind == kVariableLength && (bits & 0x0f) == 1) object.type_name = "text";
  object.item_bytes = message.skip(2).u32();
  if (kind == kEnumeration) {  // the type of its numbers follows
    kind = message.u8() & 0x0f;
    bits = message.u8();
    object.item_bytes = message.skip(2).u32();
  }
  constexpr std::array<uint64_t, 4> kSizes{1, 2, 4, 8};
  const bool is_plain_size = std::find(kSizes.begin(), kSizes.end(), object.item_bytes) != kSizes.end();
  constexpr uint64_t kVaxFlag = 0x40;
  object.is_float = kind == 1;
  object.is_number = is_plain_size && (kind == 0 || (kind == 1 && (bits & kVaxFlag) == 0));
  object.big_endian = (bits & 1) != 0;
  object.is_signed = (bits & 8) != 0;
  if (!object.is_number) return message.ok();
  // The bits of a number may be a part of its bytes. Its value is that of its bytes only if the other bits
  // are zeros in front of a number that is not negative.
  const uint64_t first_bit = message.u16(), number_bits = message.u16();
  constexpr uint64_t kOnesInFrontFlag = 4;
  const bool may_have_zeros = kind == 0 && !object.is_signed && (bits & kOnesInFrontFlag) == 0;
  if (first_bit != 0 || (number_bits != 8 * object.item_bytes && !may_have_zeros)) {
    object.is_number = false;
    object.type_name = "numbers that use only a part of their bits";
  }
  return message.ok();
}

// Reads what a layout message of version 4 says about chunks: their shape, and the kind and address of the
// chunk index.
bool read_chunk_index(HeaderReader& message, Hdf5Object& object) {
  const uint64_t flags = message.u8();
  const uint64_t dimensions = message.u8();
  const uint64_t width = message.u8();
  if (dimensions < 1 || dimensions > kMostDimensions + 1 || width < 1 || width > 8) return false;
  for (uint64_t i = 0; i < dimensions; ++i) object.chunk_shape.push_back(message.number(width));
  object.chunk_shape.pop_back();  // the last entry is the size of an element
  constexpr uint64_t kPlainEdgesFlag = 1;
  constexpr uint64_t kFilteredFlag = 2;
  object.edge_chunks_are_plain = (flags & kPlainEdgesFlag) != 0;
  switch (const uint64_t index = message.u8()) {
    case 1:
      object.storage = Hdf5Storage::single_chunk;
      if ((flags & kFilteredFlag) == 0) break;
      object.stored_bytes = message.u64();
      object.not_applied = uint32_t(message.u32());
      break;
    case 2:
      object.storage = Hdf5Storage::implicit;
      break;
    case 3:
      object.storage = Hdf5Storage::fixed_array;
      message.skip(1);  // bits of a page, which the array's header has, too
      break;
    case 4:
      object.storage = Hdf5Storage::extensible_array;
      message.skip(5);  // its header has these, too
      break;
    case 5:
      object.storage = Hdf5Storage::second_tree;
      message.skip(6);  // its header has these, too
      break;
    default:
      object.storage = Hdf5Storage::fixed_array;
      object.unreadable_reason = fmt::format("its chunks have an index of the unknown kind {}", index);
      return message.ok();
  }
  object.address = message.u64();
  return message.ok();
}

// Reads the rest of a layout message of version 1 or 2, which HDF5 before 1.6.3 wrote.
bool read_old_layout(HeaderReader message, uint64_t dimensions, uint64_t message_address,
                     Hdf5Object& object) {
  const uint64_t kind = message.u8();
  message.skip(5);
  if (kind > 2 || dimensions > kMostDimensions + 1) return false;
  if (kind != 0) object.address = message.u64();
  std::vector<uint64_t> sides;
  for (uint64_t i = 0; i < dimensions; ++i) sides.push_back(message.u32());
  if (kind == 2) {  // the last side is the size of an element
    if (sides.empty()) return false;
    sides.pop_back();
    object.storage = Hdf5Storage::tree;
    object.chunk_shape = std::move(sides);
    return message.ok();
  }
  if (kind == 0) {
    object.stored_bytes = message.u32();
    object.address = message_address + 8 + 4 * dimensions + 4;
    return message.skip(object.stored_bytes).ok();
  }
  // The message does not have the number of bytes; the shape and the type say it.
  object.stored_bytes = UINT64_MAX;
  return message.ok();
}

// Reads the message that says where a dataset's bytes are. `message_address` is the address of this message's
// data. A compact dataset has its bytes there, in the message itself.
bool read_layout(HeaderReader message, uint64_t message_address, Hdf5Object& object) {
  const uint64_t version = message.u8();
  const uint64_t kind = message.u8();  // in old versions: the number of dimensions
  object.is_dataset = true;
  if (version == 1 || version == 2) return read_old_layout(message, kind, message_address, object);
  if (version < 3 || version > 5) {
    object.unreadable_reason = fmt::format("its layout has version {}", version);
    return message.ok();
  }
  if (kind == 0) {
    object.stored_bytes = message.u16();
    object.address = message_address + 4;
    return message.skip(object.stored_bytes).ok();
  }
  if (kind == 1) {
    object.address = message.u64();
    object.stored_bytes = message.u64();
    return message.ok();
  }
  if (kind != 2) {
    object.unreadable_reason = "it is virtual: its bytes are in other datasets";
    return message.ok();
  }
  if (version >= 4) return read_chunk_index(message, object);
  const uint64_t dimensions = message.u8();
  object.storage = Hdf5Storage::tree;
  object.address = message.u64();
  if (dimensions < 1 || dimensions > kMostDimensions + 1) return false;
  for (uint64_t i = 0; i + 1 < dimensions; ++i) object.chunk_shape.push_back(message.u32());
  return message.skip(4).ok();
}

bool read_filters(HeaderReader message, Hdf5Object& object) {
  const uint64_t version = message.u8();
  const uint64_t count = message.u8();
  constexpr uint64_t kMostFilters = 32;
  if (version < 1 || version > 2 || count > kMostFilters) return false;
  message.skip(version == 1 ? 6 : 0);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t number = message.u16();
    constexpr uint64_t kFirstWithName = 256;
    uint64_t name_bytes = version == 1 || number >= kFirstWithName ? message.u16() : 0;
    const uint64_t parameters = message.skip(2).u16();
    if (version == 1) name_bytes = (name_bytes + 7) / 8 * 8;
    message.skip(name_bytes);
    ChunkFilter& filter = object.filters.emplace_back();
    filter.number = uint16_t(number);
    if (parameters > message.left() / 4) return false;
    for (uint64_t k = 0; k < parameters; ++k) filter.parameters.push_back(uint32_t(message.u32()));
    message.skip(version == 1 && parameters % 2 == 1 ? 4 : 0);
  }
  return message.ok();
}

// The value of elements that were never written. It is undefined if no value follows; HDF5 then returns
// zeros.
bool read_fill_value(HeaderReader message, bool is_old, Hdf5Object& object) {
  bool has_value = true;
  if (!is_old) {
    const uint64_t version = message.u8();
    if (version < 1 || version > 3) return false;
    constexpr uint64_t kHasValueFlag = 32;
    if (version == 3)
      has_value = (message.u8() & kHasValueFlag) != 0;
    else
      has_value = message.skip(2).u8() != 0 || version == 1;
  }
  const uint64_t bytes = has_value ? message.u32() : 0;
  constexpr uint64_t kMostBytes = 8;  // of a number
  object.fill_value.clear();
  if (bytes > kMostBytes) return message.ok();  // of an element that is no number
  for (uint64_t i = 0; i < bytes; ++i) object.fill_value.push_back(static_cast<std::byte>(message.u8()));
  return message.ok();
}

bool read_link(HeaderReader message, Hdf5Object& object) {
  const uint64_t version = message.u8();
  const uint64_t flags = message.u8();
  const uint64_t type = (flags & 8) != 0 ? message.u8() : 0;
  message.skip(((flags & 4) != 0 ? 8 : 0) + ((flags & 16) != 0 ? 1 : 0));
  const uint64_t length = message.number(size_t{1} << (flags & 3));
  if (version != 1 || length == 0 || length > message.left()) return false;
  std::string name = message.text(length);
  if (type == 0) object.links.push_back({std::move(name), message.u64()});
  return message.ok();
}

class ObjectReader {
 public:
  ObjectReader(Hdf5Source& source, uint64_t address, Hdf5NamedTypes& types)
      : source_(source), header_address_(address), types_(types) {}

  Result<Hdf5Object> read() {
    PENSTOCK_ASSIGN(const Extent first, find_messages());
    blocks_.push_back(first);
    while (!blocks_.empty()) {
      const Extent block = blocks_.back();
      blocks_.pop_back();
      PENSTOCK_TRY(read_block(block));
      bytes_before_messages_ = 4;  // later blocks have only a signature of 4 bytes before their messages
      signature_ = "OCHK";
    }
    const bool is_array = has(kDataspace) || has(kLayout);
    const bool is_whole = has(kDataspace) && has(kDatatype) && has(kLayout);
    const bool is_group = has(kSymbolTable) || has(kLinkInfo) || has(kLink);
    if (is_array ? !is_whole : !is_group && !has(kDatatype))
      return source_.corrupt(header_address_, "an object header that lacks messages");
    has_number_type_ = object_.is_number;
    if (object_.is_dataset && !object_.has_shape) object_.is_number = false;
    return std::move(object_);
  }

 private:
  // Whether the header has a message of this type.
  bool has(MessageType type) const { return (types_seen_ >> type & 1U) != 0; }

  static constexpr uint64_t kSignature2 = 0x5244484f;  // "OHDR" in little endian

  Result<Extent> find_messages() {
    PENSTOCK_ASSIGN(auto head, source_.read_bytes(header_address_, 6));
    is_version_2_ = number_at(head, 0, 4) == kSignature2;
    if (!is_version_2_) {
      if (number_at(head, 0, 1) != 1)
        return source_.corrupt(header_address_, "there is no object header here");
      PENSTOCK_ASSIGN(head, source_.read_bytes(header_address_, 16));
      return Extent{header_address_ + 16, number_at(head, 8, 4)};
    }
    const uint64_t version = number_at(head, 4, 1);
    const uint64_t flags = number_at(head, 5, 1);
    if (version != 2)
      return source_.error(Errc::unsupported, header_address_,
                           fmt::format("an object header of version {}", version));
    creation_order_bytes_ = (flags & 4) != 0 ? 2 : 0;
    const uint64_t optional_bytes = ((flags & 0x20) != 0 ? 16U : 0U) + ((flags & 0x10) != 0 ? 4U : 0U);
    const uint64_t width = uint64_t{1} << (flags & 3);
    PENSTOCK_ASSIGN(head, source_.read_bytes(header_address_ + 6 + optional_bytes, width));
    const uint64_t bytes = from_little_endian(head);
    if (bytes > source_.size())
      return source_.corrupt(header_address_, fmt::format("an object header of {} bytes", bytes));
    bytes_before_messages_ = 6 + optional_bytes + width;
    return Extent{header_address_, bytes_before_messages_ + bytes + 4};
  }

  Result<void> read_block(const Extent& block) {
    std::span<const std::byte> bytes;
    if (is_version_2_) {
      PENSTOCK_ASSIGN(bytes, source_.read_checked_bytes(block.offset, block.length, signature_));
      if (bytes.size() < bytes_before_messages_)
        return source_.corrupt(block.offset, "an object header that is too short");
      bytes = bytes.subspan(size_t(bytes_before_messages_));
    } else {
      PENSTOCK_ASSIGN(bytes, source_.read_bytes(block.offset, block.length));
    }
    // read_message() may call read_bytes(), which makes `bytes` invalid. So the messages are read from a
    // copy.
    const std::vector<std::byte> copied(bytes.begin(), bytes.end());
    const uint64_t begin = block.offset + (is_version_2_ ? bytes_before_messages_ : 0);
    const size_t head_bytes = is_version_2_ ? 4 + creation_order_bytes_ : 8;
    for (size_t at = 0; copied.size() - at >= head_bytes;) {
      HeaderReader head{std::span(copied).subspan(at, head_bytes)};
      const uint64_t type = head.number(is_version_2_ ? 1 : 2);
      const uint64_t length = head.u16();
      const uint64_t flags = head.u8();
      at += head_bytes;
      if (length > copied.size() - at) return source_.corrupt(begin + at, "a message longer than its header");
      if (!is_version_2_ && length % 8 != 0)
        return source_.corrupt(begin + at, fmt::format("a message of {} bytes", length));
      const auto data = std::span(copied).subspan(at, size_t(length));
      PENSTOCK_TRY(read_message(type, flags, data, begin + at));
      at += size_t(length);
    }
    return success();
  }

  Result<void> read_message(uint64_t type, uint64_t flags, std::span<const std::byte> data,
                            uint64_t address) {
    HeaderReader message(data);
    if (type < 32) types_seen_ |= 1U << type;
    constexpr uint64_t kSharedFlag = 2;
    const bool is_shared = (flags & kSharedFlag) != 0;
    bool is_valid = true;
    switch (type) {
      case kDataspace:
        if (is_shared) object_.unreadable_reason = "its shape is a shared message, which is not supported";
        is_valid = is_shared || read_shape(message, object_);
        break;
      case kDatatype:
        if (is_shared) return read_named_type(message, address);
        is_valid = read_type(message, object_);
        break;
      case kOldFillValue:
      case kFillValue:
        // The new message counts, if there are both.
        if (type != kFillValue && !object_.fill_value.empty()) break;
        object_.is_fill_value_shared = is_shared;
        is_valid = is_shared || read_fill_value(message, type == kOldFillValue, object_);
        break;
      case kLayout:
        is_valid = read_layout(message, address, object_);
        break;
      case kFilters:
        if (is_shared) object_.unreadable_reason = "its filters are a shared message, which is not supported";
        is_valid = is_shared || read_filters(message, object_);
        break;
      case kExternalFiles:
        object_.unreadable_reason = "its bytes are in other (external) files";
        break;
      case kLink:
        is_valid = read_link(message, object_);
        break;
      case kLinkInfo:
        return read_link_info(message, address);
      case kSymbolTable: {
        const uint64_t tree = message.u64();
        const uint64_t heap = message.u64();
        if (!message.ok()) return source_.corrupt(address, "a message that is too short");
        return read_hdf5_symbol_table(source_, tree, heap, object_.links);
      }
      case kContinuation:
        blocks_.push_back({message.u64(), message.u64()});
        is_valid = message.ok();
        break;
      default:
        break;
    }
    if (is_valid) return success();
    return source_.corrupt(address, fmt::format("the message of type {:#x} is damaged", type));
  }

  // Reads the type of a dataset that is a named type of the file, an object of its own.
  Result<void> read_named_type(HeaderReader message, uint64_t address) {
    object_.is_dataset = true;
    object_.type_name = "a named type of the file";
    const uint64_t version = message.u8();
    const uint64_t where = message.u8();
    constexpr uint64_t kInSharedHeap = 1;
    if (version < 1 || version > 3 || (version == 3 && where == kInSharedHeap)) return success();
    // Version 1 has 6 unused bytes, and the offset of a name in a heap, before the address (H5Oshared.c).
    const uint64_t header = message.skip(version == 1 ? 14 : 0).u64();
    if (!message.ok()) return source_.corrupt(address, "a message that is too short");
    // A named type cannot refer to another one: in a damaged file, such references could lead in a circle.
    if (is_named_type_) return success();
    auto found = types_.find(header);
    if (found == types_.end()) {
      if (types_.size() >= kMostNamedTypes) types_.clear();
      ObjectReader reader(source_, header, types_);
      reader.is_named_type_ = true;
      PENSTOCK_ASSIGN(Hdf5Object read, reader.read());
      read.is_number = reader.has_number_type_;
      found = types_.emplace(header, std::move(read)).first;
    }
    const Hdf5Object& type = found->second;
    object_.type_name = type.type_name;
    object_.is_number = type.is_number;
    object_.is_float = type.is_float;
    object_.is_signed = type.is_signed;
    object_.big_endian = type.big_endian;
    object_.item_bytes = type.item_bytes;
    return success();
  }

  // Reads the links that a group keeps in a heap. A tree has their identifiers, in the order of hashes.
  Result<void> read_link_info(HeaderReader message, uint64_t address) {
    const uint64_t flags = message.skip(1).u8();
    const uint64_t heap_address = message.skip((flags & 1) != 0 ? 8 : 0).u64();
    const uint64_t names = message.u64();
    if (!message.ok()) return source_.corrupt(address, "a message that is too short");
    if (heap_address == kHdf5NoAddress) return success();
    PENSTOCK_ASSIGN(Hdf5Heap heap, Hdf5Heap::open(source_, heap_address));
    constexpr uint64_t kNames = 5;
    constexpr size_t kHashBytes = 4;
    PENSTOCK_TRY(source_.walk_second_tree(
        names, kNames, "links", [&](std::span<const std::byte> record) -> Result<void> {
          if (record.size() <= kHashBytes) return source_.corrupt(names, "a tree of links without links");
          PENSTOCK_ASSIGN(const std::vector<std::byte> link, heap.object(record.subspan(kHashBytes)));
          if (read_link(HeaderReader(link), object_)) return success();
          return source_.corrupt(heap_address, "a damaged link");
        }));
    std::sort(object_.links.begin(), object_.links.end(),
              [](const Hdf5Link& a, const Hdf5Link& b) { return a.name < b.name; });
    return success();
  }

  Hdf5Source& source_;
  const uint64_t header_address_;
  Hdf5NamedTypes& types_;
  bool is_version_2_ = false;           // the object's header has version 2, not 1
  size_t creation_order_bytes_ = 0;     // bytes of the field "creation order" in each message
  uint64_t bytes_before_messages_ = 0;  // number of bytes of a block before its messages
  std::string_view signature_ = "OHDR";
  std::vector<Extent> blocks_;
  Hdf5Object object_;
  uint32_t types_seen_ = 0;       // a bit for each type of message
  bool has_number_type_ = false;  // also for a type without a shape
  bool is_named_type_ = false;    // the object is only a type
};

}  // namespace

Result<Hdf5Object> read_hdf5_object(Hdf5Source& source, uint64_t address, Hdf5NamedTypes& types) {
  return ObjectReader(source, address, types).read();
}

}  // namespace penstock
