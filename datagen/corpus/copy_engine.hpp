// Copies a corpus to another tier and verifies the copy: the same objects and, last of all, the same
// manifest.
#pragma once

#include <cstdint>
#include <string_view>

#include "datagen/corpus/corpus.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// The mark: an object on the target with the checksum of the manifest whose copy has started. Only with it
// does copy replace objects. Removed when the copy is complete.
inline constexpr std::string_view kCopyingName = ".penstock/copying";

struct CopyHow {
  unsigned threads = 1;
  // Of every object, including those of an earlier copy, and of the manifest after them.
  Durability durability = Durability::visible;
  bool replace = false;  // also start in a folder that is not empty, and replace objects of other content
  bool progress = false;
};

struct CopyOutcome {
  std::uint64_t copied = 0;
  std::uint64_t already_there = 0;  // right, and not copied again
  std::uint64_t bytes_copied = 0;
  double seconds = 0;
  bool complete = false;  // false: interrupted; every object on the target is whole, and it has no manifest
};

// Objects that are there and right stay. Every other object is read, compared with the manifest's checksum,
// written, published, and read back. After an error the target has no incomplete object, and no manifest
// unless an earlier copy was complete. The same call goes on from there.
//
// invalid_argument: the target is the source or is in it, or is a file. already_exists: it holds another
// corpus, or anything else and no copy of this one was started there. no_space: what is missing does not fit.
// corrupt: the source does not match its manifest, or the target gives other bytes than it was given.
Result<CopyOutcome> copy_corpus(Corpus& from, Tier& to, const CopyHow& how);

}  // namespace penstock
