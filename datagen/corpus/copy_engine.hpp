// Copies a corpus to another tier and verifies the copy: the same objects and then the same manifest.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "datagen/corpus/corpus.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Name of the copy mark. The mark is an object on the target with the checksum of the manifest whose copy has
// started. Copy replaces objects only if the mark exists. It is removed when the copy is complete.
inline constexpr std::string_view kCopyingName = ".penstock/copying";

struct CopyOptions {
  unsigned threads = 1;
  // How durable every object becomes, also one of an earlier copy, and then the manifest.
  Durability durability = Durability::visible;
  // Also start in a folder that is not empty, and replace objects with other content.
  bool may_replace = false;
  bool progress = false;
  std::function<void(std::string_view)> warn{};  // gets warnings, one sentence each, on any thread
};

struct CopyOutcome {
  uint64_t objects_copied = 0;
  uint64_t already_there = 0;  // objects that were already correct, so they were not copied
  uint64_t bytes_copied = 0;
  double seconds = 0;
  // False: interrupted; every object on the target is complete, but the manifest is missing.
  bool complete = false;
};

// Copies the corpus. Objects on the target that are already correct stay. Every other object is read,
// compared with the manifest's checksum, written, published, and read back. After an error the target has no
// incomplete object. It has a manifest only if an earlier copy was complete. Another call continues the copy.
//
// `invalid_argument`: the target is the source or inside it, or is a file. `already_exists`: the target
// contains another corpus, or other data and no mark of this copy. `no_space`: the missing objects do not
// fit. `corrupt`: the source does not match its manifest, or the target returns other bytes than were
// written.
Result<CopyOutcome> copy_corpus(Corpus& from, Tier& to, const CopyOptions& options);

}  // namespace penstock
