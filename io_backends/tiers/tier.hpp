// A tier is a named place for data, reached through a back end. Result records name the tiers that were
// measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// The parts of a TIER: [NAME=]BACKEND:PATH[,option=value...], or a plain path (posix, named after its mount).
struct TierSpec {
  std::string name;  // "" when not given
  std::string backend = "posix";
  std::string path;
  std::vector<OptionWord> options;
  std::string text;  // as the user wrote it
};

// Parses a TIER. NAME ends at an '=' before the first ':'. Options start at the first ',' that `[a-z_.]+=`
// follows. %2C is a literal comma. "direct:" is short for posix with direct=1. A word before ':' that is no
// back end and no path is an error with the nearest name. `named`: the names that site files give to TIERs
// (CommandContext::named_tiers, named_tiers.hpp). Pass them for a text that the user wrote, and not for a
// text from a record.
using NamedTiers = std::span<const OptionWord>;
inline constexpr NamedTiers kNoNamedTiers;
Result<TierSpec> parse_tier(std::string_view text, NamedTiers named);

// The file system and device of a tier, as far as this machine knows them ("" or false if not).
struct TierFacts {
  std::string fs_type;  // "ext4", "tmpfs", "nfs4", ...
  std::string device;   // "/dev/vda", "server:/export"
  std::string mount_point;
  std::string mount_options;
  std::string striping;  // Lustre layout, "" without one
  bool network = false;
  bool memory = false;  // tmpfs, ramfs, mem: its data is never cold
};

// A ceiling of this tier that the probe series measured in this run (ceiling.hpp).
struct Ceiling {
  std::string probe_name;  // "read.small_files.8" ...
  double bytes_per_s = 0;
};

struct Tier {
  std::string name;
  std::string spec;  // the TIER text that made it
  std::string backend_name;
  std::string root;                  // the path part, as an absolute path if the back end has paths
  std::unique_ptr<Backend> backend;  // inside the decorators that its options name
  TierFacts facts;
  std::vector<Ceiling> ceilings;

  // The remarks of the back end; empty before it is opened.
  std::vector<std::string> remarks() const {
    return backend == nullptr ? std::vector<std::string>{} : backend->remarks();
  }
};

// Opens a tier: parses the text, makes the back end, wraps the decorators (capped, throttled, faulty,
// traced), and inspects the file system. The root need not exist.
Result<Tier> open_tier(std::string_view text, NamedTiers named);
Result<Tier> open_tier(const TierSpec& spec);

// Opens several tiers with different names, which also differ from `taken` (the name of the corpus's own
// tier). Tiers with the same default name get "-2", "-3" ... after it. An error if `texts` gives the same
// name twice.
Result<std::vector<Tier>> open_tiers(std::span<const std::string> texts, const std::string& taken,
                                     NamedTiers named);

// The options of every tier, in addition to those of its back end: limit, read_limit, write_limit, latency,
// capacity, fail, fail_seed, times, trace (docs/tiers.md).
OptionTable tier_options();

// Reads the facts of the nearest existing folder of `path` from /proc/self/mountinfo.
TierFacts inspect_path(const std::filesystem::path& path);

// Parts of inspect_path(). The first returns the facts of the mount that contains `path`, from the text of a
// mountinfo. The second formats a Lustre layout (the bytes of the attribute lustre.lov) as "4 x 1.0 MiB".
TierFacts facts_from_mountinfo(std::istream& mountinfo, std::string_view path);
std::string describe_lustre_layout(std::span<const std::byte> layout);

}  // namespace penstock
