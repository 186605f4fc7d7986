// Finds functions by name in an ELF file that another process has loaded, by reading that process's memory.
// The other process is not trusted: every value that is read may be wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace penstock {

// Copies memory of the other process to `to`. False if not all of it could be read.
using ReadMemory = std::function<bool(std::uint64_t address, void* to, std::size_t bytes)>;

struct LoadedSymbol {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

class LoadedElf {
 public:
  // The object whose ELF header is at address `base`. nullopt if there is no valid 64-bit header, or if the
  // object has no hash table of symbols (DT_GNU_HASH).
  static std::optional<LoadedElf> at(const ReadMemory& read, std::uint64_t base);
  // The function or variable of this name, in its default version.
  std::optional<LoadedSymbol> find(const ReadMemory& read, std::string_view name) const;

 private:
  bool is_named(const ReadMemory& read, std::uint32_t name_at, std::string_view name) const;

  std::uint64_t bias_ = 0;
  std::uint64_t symbols_ = 0;
  std::uint64_t strings_ = 0;
  std::uint64_t versions_ = 0;
  std::uint64_t hash_ = 0;
};

}  // namespace penstock
