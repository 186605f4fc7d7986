// A format writes samples into objects, and finds samples in objects. It uses only Reader and Writer, so
// every format works with every back end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/manifest/manifest.hpp"
#include "datagen/manifest/stored_form.hpp"
#include "datagen/sample/sample.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/plugin.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// What is known about an object before its first sample is written.
struct ObjectPlan {
  std::string_view name;
  uint64_t samples = 0;           // number of samples that the object will contain
  std::span<const Field> fields;  // the fields of every sample
  // If set, the caller needs only the size of the object, and the bytes of its samples have no meaning. A
  // format that compresses may then write them uncompressed. Since compression can also make a sample larger,
  // the format must then add padding: the most bytes that compression could add.
  bool size_only = false;
};

// One sample to be added to an object.
struct SampleBytes {
  std::string_view key;  // unique name without extension
  uint32_t label = kNoLabel;
  std::string_view label_name;
  std::span<const FieldBytes> fields;  // same order as ObjectPlan::fields
};

// The position of a stored sample in its object. The bytes there are the payload of the sample, in the
// wrapping that Format::wrapping() names.
struct Placement {
  uint64_t offset = 0;
  uint64_t length = 0;
  // CRC32C of the stored bytes. It is not set if there is no wrapping: the stored bytes are then the payload,
  // whose checksum the caller knows.
  std::optional<uint32_t> crc32c = {};
};

// The size and checksum of an object that is completely written.
struct PublishedObject {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;  // checksum of all bytes of the object
  bool operator==(const PublishedObject&) const = default;
};

// A function that decides whether a new object may appear. It is called when all bytes are written, before
// the object gets its name. If it returns an error, the object does not appear.
using Approval = std::function<Result<void>(const PublishedObject& written)>;

// Writes the samples of one object in order. The caller must add exactly ObjectPlan::samples samples. Only
// one thread at a time may use it.
class ObjectWriter {
 public:
  virtual ~ObjectWriter() = default;
  // Adds a sample. The caller may reuse the sample's memory after the call. If FieldBytes::crc32c of a field
  // is set, the writer uses it instead of computing this checksum from the field's bytes.
  virtual Result<Placement> add(const SampleBytes& sample) = 0;
  // Gives the object its name, so that it appears. If `approve` is set, publish() calls it first. If
  // `approve` returns an error, publish() returns the same error, and the object does not appear.
  virtual Result<PublishedObject> publish(Durability durability, const Approval& approve = {}) = 0;
};

// The words of a StoredForm (stored_form.hpp).
using SampleForm = std::shared_ptr<std::vector<uint64_t>>;

// The most samples that a scan accepts from one object; objects of real data sets have fewer. The limit
// protects memory: each sample takes 32 bytes, and a short damaged header can claim any number of samples.
inline constexpr uint64_t kMostSamplesPerObject = uint64_t{1} << 26;

// A format with its options. It is immutable, so any thread may use it.
class Format {
 public:
  virtual ~Format() = default;

  // Fails with `invalid_argument` and the reason if this format cannot store samples with these fields.
  virtual Result<void> check(std::span<const Field> fields) const = 0;

  // The wrapping around each stored sample, as a suffix of its codec, such as ".tfrecord.gz". "" if payloads
  // are stored without a wrapping. SampleOpener (sample_opener.hpp) removes the wrapping.
  virtual std::string_view wrapping() const { return {}; }

  // objects() returns how many objects `samples` samples take. Object o begins with sample first_sample(o).
  // It ends before the first sample of the next object; the last object ends with the last sample.
  virtual uint64_t objects(uint64_t samples) const = 0;
  virtual uint64_t first_sample(uint64_t object, uint64_t samples) const = 0;
  // The name of object number `object` of `objects`. `first_key` is the key of the object's first sample; a
  // format with one sample per object makes the name from it.
  virtual std::string object_name(uint64_t object, uint64_t objects, std::string_view recipe,
                                  std::string_view first_key, std::string_view extension) const = 0;
  virtual Result<std::unique_ptr<ObjectWriter>> create(Backend& backend, const ObjectPlan& plan) const = 0;

  // The command option --scan finds the samples of existing objects with these two functions.
  // claims() returns whether an object of this name belongs to this format.
  // scan() calls `visit_sample` for every sample in the object, with its label name, placement and codec. The
  // label name is "" if the object contains none; if labels are the names of folders, the caller finds them.
  // All placements are inside the object, even if it is damaged. Errors: `corrupt` or `truncated` for damage,
  // with the object and the offset in the message. `unsupported` if an object claims more than
  // kMostSamplesPerObject samples. `interrupted` when the user stops the program. Memory: at most the larger
  // of a few MiB and a small multiple of the object's size.
  virtual bool claims(std::string_view object_name) const = 0;
  struct LeftOutParts {  // parts of an object that belong to no sample
    uint64_t count = 0;
    std::string first_name{};  // name of the first of these parts
    // Why they are left out, to print after the name: "whose 7 labels do not fit ..."; "": no reason is
    // given.
    std::string reason{};
  };
  struct FoundSample {
    std::string_view label_name;
    Placement placement;
    // Such as "jpeg" or "jpeg.tfrecord.gz"; "": the caller takes it from the object's name.
    std::string_view codec = {};
    // True if the sample's name in the object says that it contains statistics. If such a sample is alone in
    // its object and other objects contain samples, the caller does not count it.
    bool holds_statistics = false;
    // Name of the array that has the samples; "": there is none, or each sample is an array.
    std::string_view array = {};
    LeftOutParts arrays_left_out{};  // reported with only one of the object's samples
    // Arrays as large as the one that samples are taken from; `reason` is the name of that one. Reported with
    // only one of the object's samples.
    LeftOutParts equal_arrays{};
    LeftOutParts files_left_out{};  // files of an archive; reported with only one of its samples
    // Set if the sample's bytes are not in the object as they are. Then `placement` has the stored bytes that
    // must be read to get them, and `extent` says which bytes of the form they are. The form is complete only
    // when scan() returns.
    SampleForm form{};
    SampleExtent extent{};
  };
  using Visit = std::function<void(const FoundSample&)>;
  virtual Result<void> scan(Backend& backend, const Entry& object, const Visit& visit_sample) const = 0;
};

struct FormatInfo {
  std::string_view name;
  std::string_view summary;
  OptionTable options;
  Result<std::unique_ptr<Format>> (*make)(const Options& options);
};

// Whether the format has an option `field`: the array that a scan takes samples from.
inline bool takes_field(const FormatInfo& info) {
  return std::any_of(info.options.begin(), info.options.end(),
                     [](const OptionSpec& option) { return option.name == "field"; });
}

const Registry<FormatInfo>& format_registry();

}  // namespace penstock
