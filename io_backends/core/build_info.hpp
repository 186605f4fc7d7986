// Describes this build for `penstock --version` and every record. CMake fills it in.
#pragma once

#include <span>
#include <string_view>

#include "io_backends/core/text.hpp"

namespace penstock {

struct BuildInfo {
  std::string_view version;
  std::string_view compiler;    // name and version: "GNU 12.2.0"
  std::string_view build_type;  // CMAKE_BUILD_TYPE: "Release"
  std::string_view flags;
  std::string_view sanitizers;  // such as "address,undefined"; "": none
};

// A library that this build uses, or could use.
struct Library {
  std::string_view name;
  bool present;
  std::string_view version;  // as CMake found it; "": unknown, or not present
  std::string_view purpose;  // what a build lacks without it: "CRC32C at memory speed"; "": it is required
};

const BuildInfo& build_info();
// The libraries of which CMake found a version, with that version, for records.
std::span<const NamedText> library_versions();
std::span<const Library> libraries();

}  // namespace penstock
