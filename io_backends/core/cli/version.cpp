#include "io_backends/core/cli/version.hpp"

#include "io_backends/core/build_info.hpp"
#include "io_backends/core/json.hpp"
#include "io_backends/core/ranks/module.hpp"

namespace penstock {

std::string overview_text(std::string_view commands, std::string_view back_ends) {
  return fmt::format(
      "penstock: generates training data, reads it from each storage tier, and reports how fast each tier "
      "is\n\nUsage: penstock COMMAND [options]      penstock COMMAND --help      penstock --version "
      "[--json]\n\nCommands:\n{}\nBack ends (TIER is [NAME=]BACKEND:PATH[,option=value...] or a plain "
      "path):\n{}\nFirst steps:\n  penstock demo                                       # generate, read, "
      "train and report on this machine\n  penstock generate imagenet --out data --samples 2000   # a data "
      "set for first tests\n",
      commands, back_ends);
}

namespace {

// Why the program cannot open the module of its own that uses the library; "" if it can, or if the program
// uses the library itself.
std::string why_module_is_missing(std::string_view library) {
  constexpr NamedText kModules[] = {{"hdf5", "penstock_hdf5_filters"},
                                    {"mpi", "libpenstock_mpi.so"},
                                    {"onednn", "libpenstock_onednn.so"},
                                    {"xxhash", "libpenstock_profile.so"}};
  for (const auto& [name, file] : kModules) {
    if (name != library) continue;
    const Result<std::string> path = module_path(file.data());
    if (path.ok()) return "";
    const char* remedy = name == "mpi"
                             ? "a wheel has none; copy it there, or build it where MPI's headers are"
                             : "copy it there, or build it";
    return fmt::format("{} ({}: cmake --build build/release)", path.error().what, remedy);
  }
  return "";
}

}  // namespace

std::string version_text(std::vector<VersionRow> rows, bool json) {
  for (const Library& library : libraries()) {
    const std::string reason = library.present
                                   ? why_module_is_missing(library.name)
                                   : fmt::format("not found when this was built: {}", library.purpose);
    rows.push_back(
        {"library", std::string(library.name), reason.empty(), reason, std::string(library.version)});
    if (library.name != "mpi" || reason.empty()) continue;
    for (VersionRow& row : rows)
      if (row.kind == "backend" && row.name == "mpiio" && row.present)
        row = {row.kind, row.name, false, reason};
  }
  const BuildInfo& build = build_info();
  if (json) {
    const Json build_line{{"kind", "build"},
                          {"name", "penstock"},
                          {"present", true},
                          {"reason", ""},
                          {"version", build.version},
                          {"compiler", build.compiler},
                          {"build_type", build.build_type},
                          {"flags", build.flags},
                          {"sanitizers", build.sanitizers}};
    std::string text = build_line.dump() + "\n";
    for (const VersionRow& row : rows) {
      Json row_line{{"kind", row.kind}, {"name", row.name}, {"present", row.present}, {"reason", row.reason}};
      if (!row.version.empty()) row_line["version"] = row.version;
      text += row_line.dump() + "\n";
    }
    return text;
  }
  std::string text =
      fmt::format("penstock {}  ({}, {}{}{})\n", build.version, build.compiler, build.build_type,
                  build.sanitizers.empty() ? "" : ", sanitizers: ", build.sanitizers);
  for (const VersionRow& row : rows)
    text += fmt::format("  {:<9} {:<14} {}\n", row.kind, row.name,
                        !row.present          ? "missing: " + row.reason
                        : row.version.empty() ? "present"
                                              : "present, version " + row.version);
  return text;
}

}  // namespace penstock
