// Checks whether an object matches the manifest. `verify` checks every object, and `copy` checks those that
// already exist on the target.
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

// Finds the samples of each object. Needs no memory if each object is one sample. Immutable, so any thread
// may use it.
class ObjectIndex {
 public:
  explicit ObjectIndex(const Manifest& manifest);

  // Calls `visit` with the index of every sample of `object`, in the order of the manifest, until `visit`
  // fails.
  template <class Visit>
  Result<void> for_each_sample(uint64_t object, Visit visit) const {
    if (object_is_sample_) return visit(object);
    for (uint64_t i = object_starts_[object]; i < object_starts_[object + 1]; ++i)
      if (Result<void> done = visit(by_object_.empty() ? i : by_object_[i]); !done.ok()) return done;
    return success();
  }

 private:
  bool object_is_sample_;
  // Where the samples of each object begin in by_object_: those of object i are the entries from
  // object_starts_[i] up to, but without, object_starts_[i + 1]. If by_object_ is empty, these are directly
  // the indexes of the samples.
  std::vector<uint64_t> object_starts_;
  // Samples sorted by object. Empty if the manifest's samples are already in this order.
  std::vector<uint64_t> by_object_;
};

enum class ObjectState : uint8_t {
  right,
  vanished,
  shrunk,
  grown,
  wrong_bytes,  // correct size, but a wrong checksum, or bytes that cannot be decompressed
  unreadable,   // the storage failed to return its bytes, or this machine lacks what unpacks them
};
std::string_view object_state_name(ObjectState state);  // such as "wrong_bytes"

struct ObjectVerdict {
  ObjectState state = ObjectState::right;
  std::string detail;  // "8 192 bytes, the manifest says 112 640"; "" if right
  // Only check_object_sizes() sets the two members below.
  uint64_t object = 0;  // index of the object
  uint64_t bytes = 0;   // actual size of the object
};

// Reads `length` bytes from `offset` and returns their CRC32C. Reads pieces of at most buffer.capacity()
// bytes (1 MiB if that is 0). After Ctrl-C it returns Errc::interrupted before it reads another piece.
Result<uint32_t> crc32c_of(Reader& reader, uint64_t offset, uint64_t length, Buffer& buffer);

// Gets the CRC32C of a sample, or the error of a sample that has a form and whose stored bytes are damaged;
// of an object only the first such error, and no further sample that has a form.
using VisitCrc = std::function<Result<void>(uint64_t sample, const Result<uint32_t>& crc)>;

// Reads a whole object in one pass. Calls `visit` for each sample until it fails, and returns the CRC32C of
// the object. A sample is read a second time if it begins before the end of a sample that comes earlier in
// the manifest, or if it has a form; its CRC32C is that of its bytes when the form is undone. Reads in
// pieces, as crc32c_of() does.
Result<uint32_t> checksums_of(Reader& reader, const Manifest& manifest, const ObjectIndex& index,
                              uint64_t object, Buffer& buffer, const VisitCrc& visit);

// Whether the object caused the error, because it is missing, cut or unreadable. Other causes are an
// interrupt, a machine that has run out of a resource, or a bug of the program.
bool concerns_object(const Error& error);

// Returns the error with a code that blames the data instead of the command line. A folder in place of an
// object, or a link that leads in circles, is no mistake of the user.
Error as_data_error(Error error);

// Compares the size of every object with the manifest, by one stat() for each object. Returns the missing
// objects and those with a wrong size, in the manifest's order. Bytes are not checked. Fails if the back end
// cannot report a size.
Result<std::vector<ObjectVerdict>> check_object_sizes(Namespace& names, const Manifest& manifest,
                                                      unsigned threads);

// Checks one object: compares its size with the manifest's, and the checksums that the manifest has, of its
// samples and of the whole object. Bytes without a checksum are not read. Returns an error only if its cause
// is not the object.
Result<ObjectVerdict> check_object(Backend& backend, const Manifest& manifest, const ObjectIndex& index,
                                   uint64_t object, std::string_view name, Buffer& buffer);

}  // namespace penstock
