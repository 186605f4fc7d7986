// Finds functions and variables by name in an ELF file that another process has loaded, by reading that
// process's memory. The other process is not trusted: every value that is read may be wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace penstock {

// Copies `bytes` bytes at `address` in the other process to `to`. False if not all of them could be read.
using ReadMemory = std::function<bool(uint64_t address, void* to, size_t bytes)>;

struct LoadedSymbol {
  uint64_t address = 0;
  uint64_t bytes = 0;
};

class LoadedElf {
 public:
  // Reads the ELF file whose header is at address `base`. nullopt if there is no valid 64-bit header, or if
  // the file has no hash table of symbols (DT_GNU_HASH).
  static std::optional<LoadedElf> parse(const ReadMemory& read, uint64_t base);
  // Finds the function or variable of this name. If it has several symbol versions, the default one is
  // returned. nullopt if there is none, or none that other files may use.
  std::optional<LoadedSymbol> find(const ReadMemory& read, std::string_view name) const;

 private:
  bool is_named(const ReadMemory& read, uint32_t name_offset, std::string_view name) const;

  uint64_t load_bias_ = 0;
  uint64_t symbols_address_ = 0;
  uint64_t strings_address_ = 0;
  uint64_t versions_address_ = 0;
  uint64_t hash_address_ = 0;
};

}  // namespace penstock
