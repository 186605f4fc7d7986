// A tier: a named place to keep data, reached through a back end, that results are about.
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

// TIER as written: [NAME=]BACKEND:PATH[,option=value...] or a plain path (posix, named after its mount).
struct TierSpec {
  std::string name;  // "" when not given
  std::string backend = "posix";
  std::string path;
  std::vector<OptionWord> options;
  std::string text;  // as the user wrote it
};

// NAME ends at an '=' before the first ':'. Options start at the first ',' that `[a-z_.]+=` follows; %2C is a
// literal comma. "direct:" is short for posix with direct=1. A word before ':' that is no back end and no
// path is an error with the nearest name. `named`: what site files call a TIER, for a text that the user
// wrote (CommandContext::named_tiers, named_tiers.hpp). A text that a record has is parsed without.
using NamedTiers = std::span<const OptionWord>;
Result<TierSpec> parse_tier(std::string_view text, NamedTiers named = {});

// What the tier stands on, as far as this machine can tell ("" or false where it cannot).
struct TierFacts {
  std::string fs_type;  // "ext4", "tmpfs", "nfs4", ...
  std::string device;   // "/dev/vda", "server:/export"
  std::string mount_point;
  std::string mount_options;
  std::string striping;  // Lustre layout where there is one
  bool network = false;
  bool memory = false;  // tmpfs, ramfs, mem: nothing there is ever cold
};

// A ceiling that the probe series measured on this tier in this run (ceiling.hpp).
struct Ceiling {
  std::string what;  // "read.small_files.8" ...
  double bytes_per_s = 0;
};

struct Tier {
  std::string name;
  std::string spec;  // the TIER text that made it
  std::string backend_name;
  std::string root;                  // the path part, resolved
  std::unique_ptr<Backend> backend;  // with the decorators that the options ask for around it
  TierFacts facts;
  std::vector<Ceiling> ceilings;

  // Of the back end; none where there is none yet.
  std::vector<std::string> remarks() const {
    return backend == nullptr ? std::vector<std::string>{} : backend->remarks();
  }
};

// Parses, makes the back end, wraps the decorators (throttled, then faulty, then traced), looks at the facts.
// The root need not exist.
Result<Tier> open_tier(std::string_view text, NamedTiers named = {});
Result<Tier> open_tier(const TierSpec& spec);

// Several tiers whose names differ from each other's and from `taken` (of the corpus's own tier): those of
// one name get "-2", "-3" ... after it; a name given twice in `texts` is an error.
Result<std::vector<Tier>> open_tiers(std::span<const std::string> texts, const std::string& taken = "",
                                     NamedTiers named = {});

// The options that every tier takes besides its back end's own: limit, read_limit, write_limit, latency,
// capacity, fail, fail_seed, times, trace (docs/tiers.md).
OptionTable tier_options();

// From /proc/self/mountinfo for the nearest existing folder of `path`.
TierFacts inspect_path(const std::filesystem::path& path);

// What inspect_path() is made of: the facts of the mount that `path` lies on, from the text of a mountinfo;
// and the text of a Lustre layout (the bytes of the attribute lustre.lov): "4 x 1.0 MiB".
TierFacts facts_from_mountinfo(std::istream& mountinfo, std::string_view path);
std::string describe_lustre_layout(std::span<const std::byte> layout);

}  // namespace penstock
