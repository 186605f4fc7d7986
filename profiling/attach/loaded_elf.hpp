// An object of another process, as its loader keeps it in memory: where its functions are. The other process
// is not trusted: whatever is read of it may be anything.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace penstock {

// False where not all of it can be read.
using ReadMemory = std::function<bool(std::uint64_t address, void* to, std::size_t bytes)>;

struct LoadedSymbol {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

class LoadedElf {
 public:
  // Of the object whose ELF header lies at `base`; nothing where none does, or none of 64 bits that has
  // symbols to be found by hash (DT_GNU_HASH).
  static std::optional<LoadedElf> at(const ReadMemory& read, std::uint64_t base);
  // A function or an object of that name, in its default version.
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
