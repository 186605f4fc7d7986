#include "profiling/attach/loaded_elf.hpp"

#include <elf.h>

#include <cstring>
#include <string>

namespace penstock {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr unsigned kMostProgramHeaders = 512;
constexpr unsigned kMostDynamicEntries = 512;
constexpr uint32_t kMostBuckets = 1U << 22U;
constexpr unsigned kLongestChain = 4096;

struct HashHeader {
  uint32_t bucket_count;
  uint32_t first_symbol;
  uint32_t bloom_size;
  uint32_t bloom_shift;
};

uint32_t gnu_hash(std::string_view name) {
  uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

template <class T>
bool read_one(const ReadMemory& read, uint64_t address, T& value) {
  return read(address, &value, sizeof value);
}

}  // namespace

std::optional<LoadedElf> LoadedElf::parse(const ReadMemory& read, uint64_t base) {
  Elf64_Ehdr header{};
  if (!read_one(read, base, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr) ||
      header.e_phnum > kMostProgramHeaders)
    return std::nullopt;
  LoadedElf elf;
  uint64_t dynamic_section = 0;
  bool bias_is_known = false;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr program_header{};
    if (!read_one(read, base + header.e_phoff + i * sizeof program_header, program_header))
      return std::nullopt;
    if (program_header.p_type == PT_LOAD && !bias_is_known) {
      elf.load_bias_ = base - program_header.p_vaddr / kPageBytes * kPageBytes;
      bias_is_known = true;
    }
    if (program_header.p_type == PT_DYNAMIC) dynamic_section = program_header.p_vaddr;
  }
  if (!bias_is_known || dynamic_section == 0) return std::nullopt;
  for (unsigned i = 0; i < kMostDynamicEntries; ++i) {
    Elf64_Dyn entry{};
    if (!read_one(read, elf.load_bias_ + dynamic_section + i * sizeof entry, entry)) return std::nullopt;
    if (entry.d_tag == DT_NULL) break;
    // A value below the load address is taken for an offset. The loader usually replaces the offsets in the
    // dynamic section by addresses, but it cannot do that if the section is read-only.
    const uint64_t address =
        entry.d_un.d_ptr < elf.load_bias_ ? entry.d_un.d_ptr + elf.load_bias_ : entry.d_un.d_ptr;
    if (entry.d_tag == DT_SYMTAB) elf.symbols_address_ = address;
    if (entry.d_tag == DT_STRTAB) elf.strings_address_ = address;
    if (entry.d_tag == DT_VERSYM) elf.versions_address_ = address;
    if (entry.d_tag == DT_GNU_HASH) elf.hash_address_ = address;
  }
  if (elf.symbols_address_ == 0 || elf.strings_address_ == 0 || elf.hash_address_ == 0) return std::nullopt;
  return elf;
}

bool LoadedElf::is_named(const ReadMemory& read, uint32_t name_offset, std::string_view name) const {
  std::string text(name.size() + 1, '\1');
  return read(strings_address_ + name_offset, text.data(), text.size()) && text.back() == '\0' &&
         std::string_view(text).substr(0, name.size()) == name;
}

std::optional<LoadedSymbol> LoadedElf::find(const ReadMemory& read, std::string_view name) const {
  HashHeader table{};
  if (!read_one(read, hash_address_, table) || table.bucket_count == 0 || table.bucket_count > kMostBuckets)
    return std::nullopt;
  const uint32_t name_hash = gnu_hash(name);
  const uint64_t buckets_address = hash_address_ + sizeof table + uint64_t{table.bloom_size} * 8;
  uint32_t index = 0;
  if (!read_one(read, buckets_address + uint64_t{name_hash % table.bucket_count} * 4, index) ||
      index < table.first_symbol)
    return std::nullopt;
  const uint64_t chains_address = buckets_address + uint64_t{table.bucket_count} * 4;
  for (unsigned i = 0; i < kLongestChain; ++i, ++index) {
    uint32_t hash = 0;
    if (!read_one(read, chains_address + uint64_t{index - table.first_symbol} * 4, hash)) return std::nullopt;
    Elf64_Sym symbol{};
    uint16_t version = 0;
    constexpr uint16_t kHiddenVersionBit = 0x8000;
    if ((hash | 1U) == (name_hash | 1U) &&
        read_one(read, symbols_address_ + uint64_t{index} * sizeof symbol, symbol) &&
        symbol.st_shndx != SHN_UNDEF &&
        (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC || ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT) &&
        (versions_address_ == 0 || !read_one(read, versions_address_ + uint64_t{index} * 2, version) ||
         (version & kHiddenVersionBit) == 0) &&
        is_named(read, symbol.st_name, name))
      return LoadedSymbol{load_bias_ + symbol.st_value, symbol.st_size};
    if ((hash & 1U) != 0) break;
  }
  return std::nullopt;
}

}  // namespace penstock
