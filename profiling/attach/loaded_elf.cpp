#include "profiling/attach/loaded_elf.hpp"

#include <elf.h>

#include <cstring>
#include <string>

namespace penstock {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr unsigned kMostProgramHeaders = 512;
constexpr unsigned kMostDynamicEntries = 512;
constexpr std::uint32_t kMostBuckets = 1U << 22U;
constexpr unsigned kLongestChain = 4096;

struct HashHeader {
  std::uint32_t buckets;
  std::uint32_t first_symbol;
  std::uint32_t bloom_size;
  std::uint32_t bloom_shift;
};

std::uint32_t gnu_hash(std::string_view name) {
  std::uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

template <class T>
bool read_one(const ReadMemory& read, std::uint64_t at, T& to) {
  return read(at, &to, sizeof to);
}

}  // namespace

std::optional<LoadedElf> LoadedElf::at(const ReadMemory& read, std::uint64_t base) {
  Elf64_Ehdr head{};
  if (!read_one(read, base, head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr) ||
      head.e_phnum > kMostProgramHeaders)
    return std::nullopt;
  LoadedElf elf;
  std::uint64_t dynamic = 0;
  bool placed = false;
  for (unsigned i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr part{};
    if (!read_one(read, base + head.e_phoff + i * sizeof part, part)) return std::nullopt;
    if (part.p_type == PT_LOAD && !placed) {
      elf.bias_ = base - part.p_vaddr / kPage * kPage;
      placed = true;
    }
    if (part.p_type == PT_DYNAMIC) dynamic = part.p_vaddr;
  }
  if (!placed || dynamic == 0) return std::nullopt;
  for (unsigned i = 0; i < kMostDynamicEntries; ++i) {
    Elf64_Dyn entry{};
    if (!read_one(read, elf.bias_ + dynamic + i * sizeof entry, entry)) return std::nullopt;
    if (entry.d_tag == DT_NULL) break;
    // The loader replaces these offsets by addresses, unless the object's dynamic section is read-only.
    const std::uint64_t place =
        entry.d_un.d_ptr < elf.bias_ ? entry.d_un.d_ptr + elf.bias_ : entry.d_un.d_ptr;
    if (entry.d_tag == DT_SYMTAB) elf.symbols_ = place;
    if (entry.d_tag == DT_STRTAB) elf.strings_ = place;
    if (entry.d_tag == DT_VERSYM) elf.versions_ = place;
    if (entry.d_tag == DT_GNU_HASH) elf.hash_ = place;
  }
  if (elf.symbols_ == 0 || elf.strings_ == 0 || elf.hash_ == 0) return std::nullopt;
  return elf;
}

bool LoadedElf::is_named(const ReadMemory& read, std::uint32_t name_at, std::string_view name) const {
  std::string text(name.size() + 1, '\1');
  return read(strings_ + name_at, text.data(), text.size()) && text.back() == '\0' &&
         std::string_view(text).substr(0, name.size()) == name;
}

std::optional<LoadedSymbol> LoadedElf::find(const ReadMemory& read, std::string_view name) const {
  HashHeader head{};
  if (!read_one(read, hash_, head) || head.buckets == 0 || head.buckets > kMostBuckets) return std::nullopt;
  const std::uint32_t wanted = gnu_hash(name);
  const std::uint64_t buckets = hash_ + sizeof head + std::uint64_t{head.bloom_size} * 8;
  std::uint32_t index = 0;
  if (!read_one(read, buckets + std::uint64_t{wanted % head.buckets} * 4, index) || index < head.first_symbol)
    return std::nullopt;
  const std::uint64_t chains = buckets + std::uint64_t{head.buckets} * 4;
  for (unsigned i = 0; i < kLongestChain; ++i, ++index) {
    std::uint32_t hash = 0;
    if (!read_one(read, chains + std::uint64_t{index - head.first_symbol} * 4, hash)) return std::nullopt;
    Elf64_Sym symbol{};
    std::uint16_t version = 0;
    constexpr std::uint16_t kNotDefault = 0x8000;
    if ((hash | 1U) == (wanted | 1U) &&
        read_one(read, symbols_ + std::uint64_t{index} * sizeof symbol, symbol) &&
        symbol.st_shndx != SHN_UNDEF &&
        (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC || ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT) &&
        (versions_ == 0 || !read_one(read, versions_ + std::uint64_t{index} * 2, version) ||
         (version & kNotDefault) == 0) &&
        is_named(read, symbol.st_name, name))
      return LoadedSymbol{bias_ + symbol.st_value, symbol.st_size};
    if ((hash & 1U) != 0) break;
  }
  return std::nullopt;
}

}  // namespace penstock
