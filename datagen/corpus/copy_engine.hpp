// Copies a corpus to another tier: its objects and then its manifest. Every object is read back and compared.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "datagen/corpus/corpus.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Name of the copy mark, an object on the target that says that a copy has started. It contains the checksum
// of the corpus's manifest. A copy replaces objects only if the target has this mark or the same manifest.
// The mark is removed when the copy is complete.
inline constexpr std::string_view kCopyingName = ".penstock/copying";

struct CopyOptions {
  unsigned threads = 1;
  // How durable the copy becomes: all objects, also those of an earlier interrupted copy, and then the
  // manifest.
  Durability durability = Durability::visible;
  // Whether to start in a folder that is not empty, and to replace objects that have other content.
  bool may_replace = false;
  bool progress = false;
  // Gets a text for each warning, of one sentence; any thread may call it.
  std::function<void(std::string_view)> warn{};
};

struct CopyOutcome {
  uint64_t objects_copied = 0;
  uint64_t already_there = 0;  // objects that were already correct, so they were not copied
  uint64_t bytes_copied = 0;
  double seconds = 0;
  // Whether the copy is complete. If it was interrupted, every object on the target is whole, but some may be
  // missing. There is then no manifest, unless an earlier copy was complete.
  bool complete = false;
};

// Copies the corpus. Objects that are already correct on the target are kept. Every other object is read,
// written, published and read back. It is also compared with the manifest's checksums, if there are any.
//
// Errors: after an error, all objects on the target are whole. The target has no manifest, unless an earlier
// copy was complete. If copy_corpus() is called again, it continues the copy.
// - `invalid_argument`: the target is the source or inside it, or is a file.
// - `already_exists`: the target contains another corpus, or other data and no mark of this copy.
// - `no_space`: the missing objects do not fit.
// - `corrupt`: the source does not match its manifest, or the target returns other bytes than were written.
Result<CopyOutcome> copy_corpus(Corpus& from, Tier& to, const CopyOptions& options);

}  // namespace penstock
