// What this program was built from: filled in by CMake (build_info.cpp.in).
#pragma once

#include <span>
#include <string_view>

namespace penstock {

struct BuildInfo {
  std::string_view version;
  std::string_view compiler;
  std::string_view type;
  std::string_view flags;
  std::string_view sanitizer;  // "" for none
};
extern const BuildInfo build_info;

struct LibraryVersion {
  std::string_view name;
  std::string_view version;
};
extern const std::span<const LibraryVersion> library_versions;

}  // namespace penstock
