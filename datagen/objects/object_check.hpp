// Whether an object is what the manifest says: what verify asks of every object, and copy of what is there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/manifest/manifest.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// The samples of each object, without a word of memory where each object is one sample. Immutable; any
// thread.
class ObjectIndex {
 public:
  explicit ObjectIndex(const Manifest& manifest);

  // Calls with the index of every sample of `object`, in the order of the manifest, until one fails.
  template <class Visit>
  Result<void> for_each_sample(std::uint64_t object, Visit visit) const {
    if (identity_) return visit(object);
    for (std::uint64_t i = starts_[object]; i < starts_[object + 1]; ++i)
      if (Result<void> done = visit(order_.empty() ? i : order_[i]); !done.ok()) return done;
    return success();
  }

 private:
  bool identity_;
  std::vector<std::uint64_t> starts_;  // objects + 1
  std::vector<std::uint64_t> order_;   // samples by object, where the manifest does not have them so
};

enum class ObjectState : std::uint8_t {
  right,
  vanished,
  shrunk,
  grown,
  wrong_bytes,  // the right size, another checksum
  unreadable,   // the storage would not give its bytes
};
std::string_view object_state_name(ObjectState state);  // "wrong_bytes"

struct ObjectVerdict {
  ObjectState state = ObjectState::right;
  std::string detail;  // "8 192 bytes, the manifest says 112 640"; "" when right
  // Set by check_object_sizes() alone.
  std::uint64_t object = 0;
  std::uint64_t bytes = 0;  // that it found
};

// Reads all of the range, in pieces of at most buffer.capacity() (1 MiB if that is 0), and returns its
// CRC32C. Errc::interrupted between pieces.
Result<std::uint32_t> crc32c_of(Reader& reader, std::uint64_t offset, std::uint64_t length, Buffer& buffer);

// Reads all of an object in one pass, visits each of its samples with its CRC32C, and returns that of the
// whole. Only samples that do not lie one behind the other are read a second time. In pieces, as crc32c_of().
Result<std::uint32_t> checksums_of(Reader& reader, const Manifest& manifest, const ObjectIndex& index,
                                   std::uint64_t object, Buffer& buffer,
                                   const std::function<void(std::uint64_t sample, std::uint32_t crc)>& visit);

// Whether a failed call says something about the object that it read: that it is gone, cut or unreadable.
// Else we were interrupted, this machine has run out of something, or we are wrong.
bool concerns_object(const Error& error);

// The same error, of a kind that blames the data: a folder in an object's place, or a link that leads in
// circles, is not the fault of whoever wrote the command line.
Error blamed_on_object(Error error);

// Of every object, whether it is there and of the manifest's size, which costs a stat: those that are not, in
// the manifest's order. The others' bytes may be wrong all the same. An error where the back end does not
// say.
Result<std::vector<ObjectVerdict>> check_object_sizes(Namespace& names, const Manifest& manifest,
                                                      unsigned threads);

// Opens the object, and compares its size and, where the manifest has them, the checksums of its samples and
// of all of it; what no checksum covers is not read. An error only where that tells nothing of the object.
Result<ObjectVerdict> check_object(Backend& backend, const Manifest& manifest, const ObjectIndex& index,
                                   std::uint64_t object, std::string_view name, Buffer& buffer);

}  // namespace penstock
