// A verified copy of a corpus to another tier: the same objects and, last of all, the same manifest.
#pragma once

#include <cstdint>
#include <string_view>

#include "datagen/corpus/corpus.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Says in the target that a copy was started, and of what (the manifest's checksum): only then does copy
// replace objects. Gone when the copy is complete.
inline constexpr std::string_view kCopyingName = ".penstock/copying";

struct CopyHow {
  unsigned threads = 1;
  // Of every object, also of those that an earlier copy left, and of the manifest behind them.
  Durability durability = Durability::visible;
  bool replace = false;  // begin also where others keep things, and replace objects of other content
  bool progress = false;
};

struct CopyOutcome {
  std::uint64_t copied = 0;
  std::uint64_t already_there = 0;  // right, and left alone
  std::uint64_t bytes_copied = 0;
  double seconds = 0;
  bool complete = false;  // false: interrupted; every object that is there is whole, and there is no manifest
};

// What is there and right stays; everything else is read (and held against the manifest's checksum), written,
// published, and read back. On an error no manifest is there, half an object never is, and running it again
// goes on from there.
//
// invalid_argument: the target is the source or is in it, or is a file. already_exists: it holds another
// corpus, or anything else and no copy of this one was started there. no_space: what is missing does not fit.
// corrupt: the source does not match its manifest, or the target gives other bytes than it was given.
Result<CopyOutcome> copy_corpus(Corpus& from, Tier& to, const CopyHow& how);

}  // namespace penstock
