#include "datagen/format/hdf5/hdf5_writer.hpp"

#include <algorithm>
#include <set>

#include "datagen/format/byte_order.hpp"
#include "datagen/format/hdf5/hdf5_checksum.hpp"

namespace penstock {
namespace {

constexpr uint64_t kNoAddress = UINT64_MAX;
constexpr uint64_t kSuperblockBytes = 48;
constexpr uint64_t kDataAlignment = 64;
// number of entries in a full node of a chunk tree; the default of HDF5
constexpr size_t kNodeEntries = 64;
constexpr size_t kMostDatasetDimensions = 32;  // the limit of HDF5's library, H5S_MAX_RANK
// the number of a chunk's dimensions is limited to 32, and one of them is for the bytes of an element
constexpr size_t kMostTreeDimensions = 31;

uint64_t align_offset(uint64_t offset) {
  return (offset + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
}

// ---- Object headers ------------------------------------------------------------------------------------
HeaderBytes dataspace(const std::vector<uint64_t>& shape) {
  HeaderBytes data;
  // the last byte: 0 for a scalar, 1 for an array
  data.u8(2).u8(shape.size()).u8(0).u8(shape.empty() ? 0 : 1);
  for (const uint64_t side : shape) data.u64(side);
  return data;
}

HeaderBytes integer_type(size_t bytes, bool is_signed) {
  HeaderBytes data;
  data.u8(0x10).u8(is_signed ? 8 : 0).u16(0).u32(bytes).u16(0).u16(8 * bytes);
  return data;
}

// Makes the description of a little-endian floating-point type. As in IEEE 754, the first bit of the mantissa
// is always 1 and is not stored.
HeaderBytes float_type(size_t bytes, size_t exponent_bits, uint64_t bias) {
  const size_t bits = 8 * bytes;
  const size_t mantissa_bits = bits - 1 - exponent_bits;
  HeaderBytes data;
  data.u8(0x11).u8(0x20).u8(bits - 1).u8(0).u32(bytes).u16(0).u16(bits);
  data.u8(mantissa_bits).u8(exponent_bits).u8(0).u8(mantissa_bits).u32(bias);
  return data;
}

HeaderBytes datatype(Element element) {
  if (element == Element::f32) return float_type(4, 8, 127);
  if (element == Element::f64) return float_type(8, 11, 1023);
  return integer_type(element_bytes(element), element != Element::u8);
}

// Makes the fill value message. It says that there is no fill value, and when space is allocated:
// incrementally (with each chunk), or late (contiguous data).
HeaderBytes fill_value(bool is_chunked) {
  HeaderBytes data;
  data.u8(3).u8(is_chunked ? 0x0b : 0x0a);
  return data;
}

HeaderBytes layout_message(const ArrayPlan& dataset, uint64_t address) {
  HeaderBytes data;
  data.u8(3);
  if (dataset.chunks == 0) {
    data.u8(1).u64(address).u64(dataset.bytes());
    return data;
  }
  data.u8(2).u8(dataset.shape.size() + 1).u64(address).u32(dataset.shape[0] / dataset.chunks);
  for (size_t i = 1; i < dataset.shape.size(); ++i) data.u32(dataset.shape[i]);
  data.u32(element_bytes(dataset.element));
  return data;
}

// ---- Trees of chunks -----------------------------------------------------------------------------------
uint64_t tree_node_count(uint64_t chunks) {
  uint64_t node_count = 0;
  for (uint64_t level = chunks; level > 1 || node_count == 0; node_count += level)
    level = (level + kNodeEntries - 1) / kNodeEntries;
  return node_count;
}

uint64_t node_bytes(const ArrayPlan& dataset) {
  const uint64_t key_bytes = 8 + 8 * (dataset.shape.size() + 1);
  return 24 + kNodeEntries * 8 + (kNodeEntries + 1) * key_bytes;
}

// Makes the nodes of the B-tree that finds the chunks of a dataset. The leaves come first, and the root is
// the last node.
class ChunkTree {
 public:
  ChunkTree(const ArrayPlan& dataset, uint64_t address, uint64_t data)
      : dataset_(dataset), tree_address_(address), data_address_(data) {}

  std::vector<std::byte> make_nodes() {
    uint64_t children = dataset_.chunks;
    uint64_t chunks_per_child = 1;
    for (unsigned level = 0;; ++level) {
      const uint64_t first_node_below = level_begin_;
      level_begin_ = tree_.size() / node_bytes(dataset_);
      const uint64_t node_count = (children + kNodeEntries - 1) / kNodeEntries;
      for (uint64_t node = 0; node < node_count; ++node)
        add_node(level, node, node_count, std::min<uint64_t>(kNodeEntries, children - node * kNodeEntries),
                 chunks_per_child, first_node_below);
      if (node_count == 1) return tree_.take();
      children = node_count;
      chunks_per_child *= kNodeEntries;
    }
  }

 private:
  uint64_t node_address(uint64_t node) const { return tree_address_ + node * node_bytes(dataset_); }

  void put_key(uint64_t chunk) {
    const uint64_t rows_per_chunk = dataset_.shape[0] / dataset_.chunks;
    // the key after the last child marks where the last chunk ends
    const bool is_end_mark = chunk >= dataset_.chunks;
    const uint64_t first_row = std::min(chunk, dataset_.chunks) * rows_per_chunk;
    tree_.u32(is_end_mark ? 0 : dataset_.bytes() / dataset_.chunks).u32(0).u64(first_row);
    tree_.zeros(8 * dataset_.shape.size());
  }

  void add_node(unsigned level, uint64_t node, uint64_t node_count, uint64_t children,
                uint64_t chunks_per_child, uint64_t first_node_below) {
    const size_t begin = tree_.size();
    tree_.text("TREE").u8(1).u8(level).u16(children);
    tree_.u64(node == 0 ? kNoAddress : node_address(level_begin_ + node - 1));
    tree_.u64(node + 1 == node_count ? kNoAddress : node_address(level_begin_ + node + 1));
    const uint64_t first_child = node * kNodeEntries;
    for (uint64_t child = first_child; child < first_child + children; ++child) {
      put_key(child * chunks_per_child);
      tree_.u64(level == 0 ? data_address_ + child * (dataset_.bytes() / dataset_.chunks)
                           : node_address(first_node_below + child));
    }
    put_key((first_child + children) * chunks_per_child);
    tree_.zeros(node_bytes(dataset_) - (tree_.size() - begin));
  }

  const ArrayPlan& dataset_;
  const uint64_t tree_address_;
  const uint64_t data_address_;
  HeaderBytes tree_;
  uint64_t level_begin_ = 0;  // number of the first node of the current level
};

// Whether the dataset can be stored in `dataset.chunks` chunks. HDF5 stores the length of each dimension of a
// chunk, and the chunk's number of bytes, in 32 bits each. It allows no empty chunk.
bool can_be_chunked(const ArrayPlan& dataset) {
  if (dataset.shape.empty() || dataset.shape.size() > kMostTreeDimensions || dataset.bytes() == 0)
    return false;
  if (dataset.shape[0] % dataset.chunks != 0) return false;
  return dataset.bytes() / dataset.chunks <= UINT32_MAX;
}

}  // namespace

Result<void> Hdf5Layout::check(std::span<const ArrayPlan> datasets) {
  std::set<std::string> names;
  for (const ArrayPlan& dataset : datasets)
    if (!names.insert(dataset.name).second)
      return make_error(Errc::invalid_argument, "two datasets named '{}'", dataset.name);
  for (const ArrayPlan& dataset : datasets) {
    for (size_t slash = dataset.name.find('/'); slash != std::string::npos;
         slash = dataset.name.find('/', slash + 1))
      if (names.contains(dataset.name.substr(0, slash)))
        return make_error(Errc::invalid_argument, "'{}' would be a dataset and the group of '{}'",
                          dataset.name.substr(0, slash), dataset.name);
    if (dataset.shape.size() > kMostDatasetDimensions)
      return make_error(Errc::invalid_argument, "'{}' would have {} dimensions; HDF5 has {} at most",
                        dataset.name, dataset.shape.size(), kMostDatasetDimensions);
  }
  return success();
}

size_t Hdf5Layout::find_or_add_group(std::string_view path) {
  size_t group = 0;
  while (!path.empty()) {
    const std::string name(path.substr(0, path.find('/')));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    auto& children = groups_[group].groups;
    const auto existing = std::find_if(children.begin(), children.end(),
                                       [&](const auto& child) { return child.first == name; });
    if (existing != children.end()) {
      group = existing->second;
      continue;
    }
    children.emplace_back(name, groups_.size());
    group = groups_.size();
    groups_.emplace_back();
  }
  return group;
}

Hdf5Layout::Hdf5Layout(std::vector<ArrayPlan> datasets) : datasets_(std::move(datasets)), groups_(1) {
  for (size_t i = 0; i < datasets_.size(); ++i) {
    ArrayPlan& dataset = datasets_[i];
    if (dataset.chunks != 0 && !can_be_chunked(dataset)) dataset.chunks = 0;
    const size_t slash = dataset.name.rfind('/');
    const bool is_in_root = slash == std::string::npos;
    const size_t group =
        find_or_add_group(is_in_root ? std::string_view() : std::string_view(dataset.name).substr(0, slash));
    groups_[group].datasets.emplace_back(is_in_root ? dataset.name : dataset.name.substr(slash + 1), i);
  }
  header_addresses_.resize(datasets_.size());
  tree_addresses_.resize(datasets_.size());
  data_addresses_.resize(datasets_.size());
  uint64_t at = kSuperblockBytes;
  for (Group& group : groups_) {
    group.header_address = at;
    at += group_header(group).size();
  }
  for (size_t i = 0; i < datasets_.size(); ++i) {
    header_addresses_[i] = at;
    at += dataset_header(i).size();
  }
  for (size_t i = 0; i < datasets_.size(); ++i) {
    tree_addresses_[i] = at;
    if (datasets_[i].chunks != 0) at += tree_node_count(datasets_[i].chunks) * node_bytes(datasets_[i]);
  }
  end_ = at;
  for (size_t i = 0; i < datasets_.size(); ++i) {
    data_addresses_[i] = align_offset(end_);
    end_ = data_addresses_[i] + datasets_[i].bytes();
  }
}

std::vector<std::byte> Hdf5Layout::group_header(const Group& group) const {
  HeaderBytes messages;
  HeaderBytes links;  // the link info message: links are stored in the messages after it, not in a heap
  links.u8(0).u8(0).u64(kNoAddress).u64(kNoAddress);
  put_hdf5_message(messages, 0x02, links);
  put_hdf5_message(messages, 0x0a, HeaderBytes().zeros(2));
  const auto add_link = [&](const std::string& name, uint64_t address) {
    constexpr uint8_t kUtf8 = 0x10;
    HeaderBytes data;
    data.u8(1).u8(kUtf8 | 1U).u8(1).u16(name.size()).text(name).u64(address);
    put_hdf5_message(messages, 0x06, data);
  };
  for (const auto& [name, number] : group.groups) add_link(name, groups_[number].header_address);
  for (const auto& [name, number] : group.datasets) add_link(name, header_addresses_[number]);
  return hdf5_object_header(messages);
}

std::vector<std::byte> Hdf5Layout::dataset_header(size_t dataset) const {
  const ArrayPlan& plan = datasets_[dataset];
  const bool is_chunked = plan.chunks != 0;
  // The header of a chunked dataset points to the root of its tree, which is the tree's last node. The header
  // of any other dataset points to its data.
  const uint64_t data_or_tree =
      is_chunked ? tree_addresses_[dataset] + (tree_node_count(plan.chunks) - 1) * node_bytes(plan)
                 : data_addresses_[dataset];
  HeaderBytes messages;
  put_hdf5_message(messages, 0x01, dataspace(plan.shape));
  put_hdf5_message(messages, 0x03, datatype(plan.element));
  put_hdf5_message(messages, 0x05, fill_value(is_chunked));
  put_hdf5_message(messages, 0x08, layout_message(plan, data_or_tree));
  return hdf5_object_header(messages);
}

std::vector<std::byte> Hdf5Layout::metadata() const {
  HeaderBytes bytes;
  bytes.text("\x89HDF\r\n\x1a\n").u8(2).u8(8).u8(8).u8(0);
  bytes.u64(0).u64(kNoAddress).u64(end_).u64(groups_[0].header_address);
  bytes.u32(hdf5_checksum(bytes.view()));
  for (const Group& group : groups_) bytes.append(group_header(group));
  for (size_t i = 0; i < datasets_.size(); ++i) bytes.append(dataset_header(i));
  for (size_t i = 0; i < datasets_.size(); ++i)
    if (datasets_[i].chunks != 0)
      bytes.append(ChunkTree(datasets_[i], tree_addresses_[i], data_addresses_[i]).make_nodes());
  return bytes.zeros(size_t(data_begin() - bytes.size())).take();
}

}  // namespace penstock
