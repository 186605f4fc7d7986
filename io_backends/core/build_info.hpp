// What this build is: said by `penstock --version` and kept in every record. Filled in by CMake.
#pragma once

#include <span>
#include <string_view>

namespace penstock {

struct BuildInfo {
  std::string_view version;
  std::string_view compiler;    // "GNU 12.2.0"
  std::string_view build_type;  // "Release"
  std::string_view flags;
  std::string_view sanitizers;  // "" or "address,undefined"
};

// A library that was found, and its version where it says one.
struct LibraryVersion {
  std::string_view name;
  std::string_view version;
};

// A library that the build may do without, and what is lost then.
struct OptionalLibrary {
  std::string_view name;
  bool present;
  std::string_view what;  // what it gives: "CRC32C at memory speed"
};

const BuildInfo& build_info();
std::span<const LibraryVersion> library_versions();
std::span<const OptionalLibrary> optional_libraries();

}  // namespace penstock
