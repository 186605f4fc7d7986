#include "datagen/format/hdf5/hdf5_symbol_table.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "datagen/format/byte_order.hpp"

namespace penstock {
namespace {

class SymbolTable {
 public:
  SymbolTable(Hdf5Source& source, std::vector<Hdf5Link>& links) : source_(source), links_(links) {}

  Result<void> read(uint64_t tree, uint64_t heap) {
    PENSTOCK_ASSIGN(const auto head, source_.read_bytes(heap, 32));
    HeaderReader reader(head);
    if (reader.text(4) != "HEAP") return source_.corrupt(heap, "no heap of names");
    heap_.length = reader.skip(4).u64();
    heap_.offset = reader.skip(8).u64();
    return source_.walk_tree(
        tree, 0, 8, "a group's tree",
        [this](uint64_t, std::span<const std::byte>, uint64_t child) { return read_symbols(child); });
  }

 private:
  Result<void> read_symbols(uint64_t address) {
    PENSTOCK_ASSIGN(const auto head, source_.read_bytes(address, 8));
    HeaderReader reader(head);
    if (reader.text(4) != "SNOD") return source_.corrupt(address, "no table of symbols");
    const uint64_t count = reader.skip(2).u16();
    for (uint64_t i = 0; i < count; ++i) {
      PENSTOCK_ASSIGN(const auto entry, source_.read_bytes(address + 8 + 40 * i, 40));
      constexpr uint64_t kSoftLink = 2;
      if (number_at(entry, 16, 4) == kSoftLink) continue;
      const uint64_t object = number_at(entry, 8, 8);
      PENSTOCK_ASSIGN(std::string name, name_at(number_at(entry, 0, 8)));
      links_.push_back({std::move(name), object});
    }
    return success();
  }

  Result<std::string> name_at(uint64_t offset) {
    if (offset >= heap_.length) return source_.corrupt(heap_.offset, "a name after the end of its heap");
    for (const uint64_t most_bytes : {uint64_t{256}, uint64_t{64} << 10U}) {  // few names are long
      const uint64_t length = std::min(heap_.length - offset, most_bytes);
      PENSTOCK_ASSIGN(const auto bytes, source_.read_bytes(heap_.offset + offset, length));
      const auto end = std::find(bytes.begin(), bytes.end(), std::byte{});
      if (end != bytes.end()) return HeaderReader(bytes).text(uint64_t(end - bytes.begin()));
    }
    return source_.corrupt(heap_.offset + offset, "a name without an end");
  }

  Hdf5Source& source_;
  std::vector<Hdf5Link>& links_;
  Extent heap_;
};

}  // namespace

Result<void> read_hdf5_symbol_table(Hdf5Source& source, uint64_t tree, uint64_t heap,
                                    std::vector<Hdf5Link>& links) {
  return SymbolTable(source, links).read(tree, heap);
}

}  // namespace penstock
