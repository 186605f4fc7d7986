// Finds functions in the symbol tables of loaded objects, which are mapped into memory together with them.
//
// Threads: any thread, any handler and any fork's child; note_libc() not in a fork's child.
// Locks: find_in_libraries() takes the loader's lock for a walk, and none in a fork's child. note_libc() and
// object_of() call dladdr1(), which takes the loader's lock. The other functions take none.
// Memory: nothing is allocated. libc and this library are never unloaded.
#include "profiling/interpose/hooks/libc_names.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <string.h>

#include <atomic>
#include <cstdint>

#include "profiling/interpose/hooks/loader_walk.hpp"
#include "profiling/interpose/hooks/slots.hpp"

namespace penstock::interpose {

namespace {

constinit std::atomic<const link_map*> libc_map{nullptr};  // stored by note_libc()
constinit std::atomic<const link_map*> own_map{nullptr};   // stored by note_libc()

uint32_t gnu_hash(const char* name) noexcept {
  uint32_t hash = 5381;
  for (; *name != 0; ++name) {
    hash = hash * 33 + static_cast<unsigned char>(*name);
  }
  return hash;
}

// The address in an entry of a dynamic section. glibc has usually replaced the offsets there by addresses. A
// value below the object's first address is still an offset.
uintptr_t address_in(const ElfW(Dyn) & entry, uintptr_t base) noexcept {
  return entry.d_un.d_ptr < base ? entry.d_un.d_ptr + base : entry.d_un.d_ptr;
}

// The entry of a dynamic section that has this tag; null if there is none.
const ElfW(Dyn) * find_entry(const ElfW(Dyn) * dynamic, long tag) noexcept {
  for (const ElfW(Dyn)* at = dynamic; at != nullptr && at->d_tag != DT_NULL; ++at) {
    if (at->d_tag == tag) {
      return at;
    }
  }
  return nullptr;
}

// The table in memory to which the entry with this tag leads; null if there is no such entry.
template <typename T>
const T* find_table(const ElfW(Dyn) * dynamic, long tag, uintptr_t base) noexcept {
  const ElfW(Dyn)* const entry = find_entry(dynamic, tag);
  return entry == nullptr ? nullptr : reinterpret_cast<const T*>(address_in(*entry, base));
}

// The symbol `name` of the object at `base`; null if the object does not define it. Reads the hash table of
// GNU, or all symbols if the object has only the older one.
void* symbol_of(uintptr_t base, const ElfW(Dyn) * dynamic, const char* name) noexcept {
  const auto* const symbols = find_table<ElfW(Sym)>(dynamic, DT_SYMTAB, base);
  const auto* const strings = find_table<char>(dynamic, DT_STRTAB, base);
  const auto* const hash_table = find_table<uint32_t>(dynamic, DT_GNU_HASH, base);
  const auto* const older_table = find_table<uint32_t>(dynamic, DT_HASH, base);
  const auto* const versions = find_table<uint16_t>(dynamic, DT_VERSYM, base);  // the version of each symbol
  if (symbols == nullptr || strings == nullptr || (hash_table == nullptr && older_table == nullptr)) {
    return nullptr;
  }
  const auto is_match = [&](uint32_t i) {
    constexpr uint16_t kHiddenVersionBit = 0x8000;  // in `versions`: marks versions that are not the default
    return (versions == nullptr || (versions[i] & kHiddenVersionBit) == 0) &&
           symbols[i].st_shndx != SHN_UNDEF && strcmp(strings + symbols[i].st_name, name) == 0;
  };
  if (hash_table == nullptr) {
    const uint32_t symbol_count = older_table[1];
    for (uint32_t i = 1; i < symbol_count; ++i) {
      if (is_match(i)) {
        return reinterpret_cast<void*>(base + symbols[i].st_value);
      }
    }
    return nullptr;
  }
  const uint32_t bucket_count = hash_table[0];
  const uint32_t first_symbol = hash_table[1];
  const uint32_t bloom_size = hash_table[2];
  const uint32_t* const buckets = hash_table + 4 + bloom_size * (sizeof(ElfW(Addr)) / 4);
  const uint32_t* const chain = buckets + bucket_count;
  const uint32_t hash = gnu_hash(name);
  for (uint32_t i = bucket_count == 0 ? 0 : buckets[hash % bucket_count]; i >= first_symbol && i != 0; ++i) {
    const uint32_t chain_hash = chain[i - first_symbol];
    if ((chain_hash | 1) == (hash | 1) && is_match(i)) {
      return reinterpret_cast<void*>(base + symbols[i].st_value);
    }
    if ((chain_hash & 1) != 0) {
      break;
    }
  }
  return nullptr;
}

void* symbol_of(const link_map* map, const char* name) noexcept {
  return map == nullptr ? nullptr : symbol_of(map->l_addr, map->l_ld, name);
}

// Whether `map` is the object that another one needs under this name (DT_NEEDED), which is the last part of
// its path or its DT_SONAME.
bool is_object_named(const link_map* map, const char* needed) noexcept {
  const char* const slash = strrchr(map->l_name, '/');
  if (strcmp(slash == nullptr ? map->l_name : slash + 1, needed) == 0) {
    return true;
  }
  const auto* const strings = find_table<char>(map->l_ld, DT_STRTAB, map->l_addr);
  const ElfW(Dyn)* const soname = find_entry(map->l_ld, DT_SONAME);
  return strings != nullptr && soname != nullptr && strcmp(strings + soname->d_un.d_val, needed) == 0;
}

// Looks for the symbol in one object of a walk, under the loader's lock. Stores it in `found` and ends the
// walk. Skips the program itself, whose name is empty: this library is loaded after it.
struct NameSearch {
  const char* name;
  bool is_after_own;  // objects before this library are skipped until this is true
  void* found;
};
int find_in_object(dl_phdr_info* info, size_t, void* context) noexcept {
  auto& search = *static_cast<NameSearch*>(context);
  if (is_own(*info)) {
    search.is_after_own = true;
    return 0;
  }
  if (!search.is_after_own || info->dlpi_name == nullptr || info->dlpi_name[0] == 0) {
    return 0;
  }
  for (size_t i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
      const auto* dynamic = reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
      search.found = symbol_of(info->dlpi_addr, dynamic, search.name);
    }
  }
  return search.found != nullptr ? 1 : 0;
}

}  // namespace

const link_map* object_of(const void* address) noexcept {
  Dl_info info{};
  void* found_map = nullptr;
  return dladdr1(address, &info, &found_map, RTLD_DL_LINKMAP) != 0 ? static_cast<const link_map*>(found_map)
                                                                   : nullptr;
}

void note_libc() noexcept {
  libc_map.store(object_of(reinterpret_cast<void*>(&gnu_get_libc_version)));
  own_map.store(object_of(reinterpret_cast<void*>(&note_libc)));
}

bool knows_libc() noexcept {
  return libc_map.load() != nullptr;
}

void* libc_function(const char* name) noexcept {
  return symbol_of(libc_map.load(), name);
}

void* own_function(const char* name) noexcept {
  return symbol_of(own_map.load(), name);
}

bool is_own(const dl_phdr_info& info) noexcept {
  const link_map* const own = own_map.load();
  return own != nullptr && info.dlpi_addr == own->l_addr;
}

// In a fork's child the list of libraries is read without the loader's lock, which may be held for ever
// there. Libraries that were loaded before main() come first in it, and are never unloaded. libc is one of
// them, so the search for a function of libc ends there. If this library was preloaded, the search begins
// after it, as dlsym(RTLD_NEXT) does.
void* find_in_libraries(const char* name) noexcept {
  if (!is_fork_child()) {
    NameSearch search{
        .name = name, .is_after_own = !is_preloaded() || own_map.load() == nullptr, .found = nullptr};
    walk_objects(&find_in_object, &search);
    return search.found;
  }
  const link_map* const own = own_map.load();
  const link_map* at = own != nullptr && is_preloaded() ? own->l_next : _r_debug.r_map;
  for (; at != nullptr; at = at->l_next) {
    const bool is_searched = at != own && at->l_name != nullptr && at->l_name[0] != 0;
    if (void* const function = is_searched ? symbol_of(at, name) : nullptr; function != nullptr) {
      return function;
    }
  }
  return nullptr;
}

// The order is that of dlsym() with the handle of the object: the object, then breadth first what it needs.
void* find_in_scope(const char* path, const char* name) noexcept {
  constexpr size_t kMostObjects = 256;
  const link_map* scope[kMostObjects];
  size_t count = 0;
  for (const link_map* at = _r_debug.r_map; at != nullptr && count == 0; at = at->l_next) {
    if (at->l_name != nullptr && strcmp(at->l_name, path) == 0) {
      scope[count++] = at;
    }
  }
  for (size_t i = 0; i < count; ++i) {
    if (scope[i] != own_map.load()) {
      if (void* const function = symbol_of(scope[i], name); function != nullptr) {
        return function;
      }
    }
    const auto* const strings = find_table<char>(scope[i]->l_ld, DT_STRTAB, scope[i]->l_addr);
    for (const ElfW(Dyn)* at = scope[i]->l_ld; strings != nullptr && at->d_tag != DT_NULL; ++at) {
      if (at->d_tag != DT_NEEDED) {
        continue;
      }
      for (const link_map* needed = _r_debug.r_map; needed != nullptr; needed = needed->l_next) {
        if (needed->l_name == nullptr || !is_object_named(needed, strings + at->d_un.d_val)) {
          continue;
        }
        bool is_known = count == kMostObjects;
        for (size_t k = 0; k < count; ++k) {
          is_known = is_known || scope[k] == needed;
        }
        if (!is_known) {
          scope[count++] = needed;
        }
        break;
      }
    }
  }
  return nullptr;
}

}  // namespace penstock::interpose
