// A format lays samples into objects and finds them again, through Reader and Writer alone: F formats and B
// back ends make F + B plug-ins.
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

// An object that is to be written: what is known of it before its first sample.
struct ObjectPlan {
  std::string_view name;
  std::uint64_t samples = 0;      // that it will hold
  std::span<const Field> fields;  // of every sample
  // Only the object's size is wanted, of samples that are stand-ins: what is compressed may be laid down as
  // it is, followed by as much as compressing adds at most.
  bool for_size = false;
};

// One sample on its way into an object.
struct SampleBytes {
  std::string_view key;  // unique name without extension
  std::uint32_t label = kNoLabel;
  std::string_view label_name;
  std::span<const FieldBytes> fields;  // as ObjectPlan::fields
};

// Where a sample came to lie, relative to its object: its payload, or what Format::wrapping() says.
struct Placement {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::optional<std::uint32_t> crc32c = {};  // of these bytes; nothing: the payload's own
};

// An object as it stands.
struct PublishedObject {
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;  // of all of them
  bool operator==(const PublishedObject&) const = default;
};

// Asked of an object that is written, before it gets its name: where it fails, none appears.
using Approval = std::function<Result<void>(const PublishedObject& written)>;

// Writes the samples of one object, in order: as many as its plan says. One thread.
class ObjectWriter {
 public:
  virtual ~ObjectWriter() = default;
  // The sample's bytes are the caller's again when it returns. Those of known CRC32C are not read for the
  // object's.
  virtual Result<Placement> add(const SampleBytes& sample) = 0;
  // Without `approve` everything is approved.
  virtual Result<PublishedObject> publish(Durability durability, const Approval& approve = {}) = 0;
};

// No object of anybody's data set holds more samples than this: a scan takes no more from one, since its
// entries take 32 bytes each, and a few bytes of a header can claim any number.
inline constexpr std::uint64_t kMostSamplesAnObject = std::uint64_t{1} << 26;

// A configured format: immutable, any thread.
class Format {
 public:
  virtual ~Format() = default;

  // invalid_argument where samples of such fields cannot be in it, saying why.
  virtual Result<void> check(std::span<const Field> fields) const = 0;

  // How stored samples are wrapped, as the end of their codec: ".tfrecord.gz" (sample_opener.hpp undoes it).
  // "": they are the payload's bytes.
  virtual std::string_view wrapping() const { return {}; }

  // How `samples` samples are split over objects: object o holds those from first_sample(o) to just before
  // first_sample(o + 1), in order.
  virtual std::uint64_t objects(std::uint64_t samples) const = 0;
  virtual std::uint64_t first_sample(std::uint64_t object, std::uint64_t samples) const = 0;
  // `first` is the key of the object's first sample (a format of one object a sample names the object after
  // it).
  virtual std::string object_name(std::uint64_t object, std::uint64_t objects, std::string_view recipe,
                                  std::string_view first_key, std::string_view extension) const = 0;
  virtual Result<std::unique_ptr<ObjectWriter>> create(Backend& backend, const ObjectPlan& plan) const = 0;

  // --scan: whether an object of this name is this format's, and every sample in it. `found` gets label name
  // ("" if none), placement and codec; label from the parent folder's name is the caller's business. What is
  // damaged is `corrupt` or `truncated`, naming the object and the offset; an object that claims more than
  // kMostSamplesAnObject is `unsupported`; whatever the bytes are, placements lie inside the object, and no
  // more memory is taken than a small multiple of its size or a few MiB. Errc::interrupted when the user
  // stops us.
  virtual bool claims(std::string_view object_name) const = 0;
  struct Aside {  // of an object: what is no part of any sample
    std::uint64_t count = 0;
    std::string first{};  // what it is called
    std::string why{};    // "", or "whose 7 labels do not fit ..."
  };
  struct Found {
    std::string_view label_name;
    Placement placement;
    std::string_view codec = {};  // "jpeg", "jpeg.tfrecord.gz"; "": as the object's name says
    bool statistics = false;      // by its name: no sample if alone in its object while others hold samples
    Aside arrays_left_out{};      // told once, with one of the object's samples
    Aside files_left_out{};       // of an archive; likewise
  };
  using Visit = std::function<void(const Found&)>;
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
