// A tier is a named place for data, reached through a back end. Result records name the tiers that were
// measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/live_tiers.hpp"

namespace penstock {

// The parts of a TIER, which is the text [NAME=][BACKEND:]PATH[,option=value...]. Without BACKEND, the back
// end is posix. Without NAME, the tier is named after its mount point, or after its back end if that has no
// paths.
struct TierSpec {
  std::string name;  // "" when not given
  std::string backend = "posix";
  std::string path;
  std::vector<OptionWord> options;
  std::string text;  // as the user wrote it
};

// Parses a TIER. NAME ends at an '=' before the first ':'. Options start at the first ',' that `[a-z_.]+=`
// follows. %2C is a literal comma. "direct:" is short for posix with direct=1. If the word before ':' is no
// back end and no path, the error suggests the nearest name.
// `named` has the names that site files give to TIERs (CommandContext::named_tiers, named_tiers.hpp). For a
// text from a record it must be kNoNamedTiers: only the user's own words may use these names.
using NamedTiers = std::span<const OptionWord>;
inline constexpr NamedTiers kNoNamedTiers;
Result<TierSpec> parse_tier(std::string_view text, NamedTiers named);

// The file system and device of a tier, as far as this machine knows them. An unknown fact is "" or false.
struct TierFacts {
  std::string fs_type;  // "ext4", "tmpfs", "nfs4", ...
  std::string device;   // "/dev/vda", "server:/export"
  std::string mount_point;
  std::string mount_options;
  std::string striping;  // Lustre layout, "" without one
  bool network = false;
  bool memory = false;  // whether the data is in memory (tmpfs, ramfs, mem), so that it is never cold
};

struct Tier {
  std::string name;
  std::string spec;  // the TIER text from which it was opened
  std::string backend_name;
  std::string root;                  // the path in the TIER, made absolute if the back end has paths
  std::unique_ptr<Backend> backend;  // the back end inside its decorators, which the options name
  TierFacts facts;
  // The median rates in bytes per second that `tiers --probe` measured in this run, by the name of the probe:
  // "read.small_files.112k.8". Other commands have none.
  std::map<std::string, double> ceilings;
  // Counts what the running command does on the tier. The command may change it although the tier is const.
  std::unique_ptr<TierActivity> activity = std::make_unique<TierActivity>();

  // The remarks of the back end; empty while the tier has no back end.
  std::vector<std::string> remarks() const {
    return backend == nullptr ? std::vector<std::string>{} : backend->remarks();
  }
};

// Opens a tier. It parses the text, makes the back end, puts the decorators around it that the options name
// (capped, throttled, faulty, traced), and inspects the file system. The root need not exist.
Result<Tier> open_tier(std::string_view text, NamedTiers named);
Result<Tier> open_tier(const TierSpec& spec);

// Opens several tiers, and gives each a name of its own. `taken_name` is the name of the corpus's own tier,
// which no other tier gets. A default name that is already taken, or a NAME that equals `taken_name`, gets
// "-2", "-3" ... at its end. Fails if a NAME in `texts` is already the name of an earlier tier.
Result<std::vector<Tier>> open_tiers(std::span<const std::string> texts, const std::string& taken_name,
                                     NamedTiers named);

// The options that every tier has, whatever its back end: limit, read_limit, write_limit, latency, capacity,
// fail, fail_seed, times, trace (docs/reference/tiers.md).
OptionTable tier_options();

// Finds the file system and device of `path` in /proc/self/mountinfo. If `path` does not exist, returns the
// facts of its nearest parent that exists.
TierFacts inspect_path(const std::filesystem::path& path);

// Parts of inspect_path(). facts_from_mountinfo() returns the facts of the mount that contains `path`;
// `mountinfo` is the text of /proc/self/mountinfo. describe_lustre_layout() formats a Lustre layout (the
// bytes of the attribute lustre.lov) as "4 x 1.0 MiB".
TierFacts facts_from_mountinfo(std::istream& mountinfo, std::string_view path);
std::string describe_lustre_layout(std::span<const std::byte> layout);

}  // namespace penstock
