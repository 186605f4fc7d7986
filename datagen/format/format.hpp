// A format writes samples into objects and finds them in objects. It uses only Reader and Writer, so that F
// formats and B back ends need only F + B plug-ins.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "datagen/manifest/manifest.hpp"
#include "datagen/sample/sample.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/plugin.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// An object to write: the facts that are known before its first sample.
struct ObjectPlan {
  std::string_view name;
  std::uint64_t samples = 0;      // number of samples that it will contain
  std::span<const Field> fields;  // of every sample
  // If set, only the size of the object is needed, and the samples are placeholders. A format that compresses
  // may then write samples uncompressed, followed by the most bytes that compression can add.
  bool for_size = false;
};

// One sample that is added to an object.
struct SampleBytes {
  std::string_view key;  // unique name without extension
  std::uint32_t label = kNoLabel;
  std::string_view label_name;
  std::span<const FieldBytes> fields;  // same order as ObjectPlan::fields
};

// The bytes of a stored sample within its object. They are its payload, wrapped as Format::wrapping() names.
struct Placement {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::optional<std::uint32_t> crc32c = {};  // of these bytes; nothing: equal to the CRC32C of the payload
};

// The size and checksum of an object that is written.
struct PublishedObject {
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;  // of all its bytes
  bool operator==(const PublishedObject&) const = default;
};

// Called when an object is written but has no name yet. If it returns an error, the object does not appear.
using Approval = std::function<Result<void>(const PublishedObject& written)>;

// Writes the samples of one object in order. The caller adds exactly as many samples as the plan names. One
// thread.
class ObjectWriter {
 public:
  virtual ~ObjectWriter() = default;
  // Adds a sample. The caller may reuse the sample's bytes after the call. If a field's CRC32C is known, it
  // is used for the object's checksum, so its bytes are not read again.
  virtual Result<Placement> add(const SampleBytes& sample) = 0;
  // Gives the object its name, if `approve` (where given) returns no error.
  virtual Result<PublishedObject> publish(Durability durability, const Approval& approve = {}) = 0;
};

// The most samples that a scan accepts from one object. Real data sets stay below this. The limit protects
// memory: each sample's entry takes 32 bytes, and a short damaged header can claim any number of samples.
inline constexpr std::uint64_t kMostSamplesPerObject = std::uint64_t{1} << 26;

// A format with its options. Immutable; any thread may use it.
class Format {
 public:
  virtual ~Format() = default;

  // `invalid_argument`, with the reason, if samples with these fields cannot be stored in this format.
  virtual Result<void> check(std::span<const Field> fields) const = 0;

  // The wrapping around each stored sample, as a suffix of its codec, such as ".tfrecord.gz". SampleOpener
  // (sample_opener.hpp) removes it. "" if payloads are stored as they are.
  virtual std::string_view wrapping() const { return {}; }

  // objects(): into how many objects `samples` samples are split. Object o contains the samples from
  // first_sample(o) up to, but without, first_sample(o + 1), in order.
  virtual std::uint64_t objects(std::uint64_t samples) const = 0;
  virtual std::uint64_t first_sample(std::uint64_t object, std::uint64_t samples) const = 0;
  // The name of an object. `first_key` is the key of the object's first sample. A format with one sample per
  // object uses it as the name.
  virtual std::string object_name(std::uint64_t object, std::uint64_t objects, std::string_view recipe,
                                  std::string_view first_key, std::string_view extension) const = 0;
  virtual Result<std::unique_ptr<ObjectWriter>> create(Backend& backend, const ObjectPlan& plan) const = 0;

  // For `--scan`. claims(): whether an object of this name belongs to this format. scan(): calls `found` for
  // every sample in the object with its label name ("" if none), placement and codec. The caller takes labels
  // from the parent folder if it wants them. Damage is `corrupt` or `truncated`, with the object and the
  // offset in the message. An object that claims more than kMostSamplesPerObject samples is `unsupported`.
  // `interrupted` when the user stops the program. Whatever the bytes are, placements are inside the object,
  // and memory stays below a small multiple of the object's size or a few MiB.
  virtual bool claims(std::string_view object_name) const = 0;
  struct LeftOutParts {  // parts of an object that belong to no sample
    std::uint64_t count = 0;
    std::string first{};   // name of the first of them
    std::string reason{};  // "", or the reason, such as "whose 7 labels do not fit ..."
  };
  struct FoundSample {
    std::string_view label_name;
    Placement placement;
    std::string_view codec = {};  // "jpeg", "jpeg.tfrecord.gz"; "": take it from the object's name
    // Named as statistics; not a sample if it is alone in its object and other objects contain samples.
    bool statistics = false;
    LeftOutParts arrays_left_out{};  // reported once, with one of the object's samples
    LeftOutParts files_left_out{};   // of an archive; also reported once
  };
  using Visit = std::function<void(const FoundSample&)>;
  virtual Result<void> scan(Backend& backend, const Entry& object, const Visit& found) const = 0;
};

struct FormatInfo {
  std::string_view name;
  std::string_view summary;
  OptionTable options;
  Result<std::unique_ptr<Format>> (*make)(const Options& options);
};

const Registry<FormatInfo>& format_registry();

}  // namespace penstock
