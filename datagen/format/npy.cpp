// Format: NumPy's .npy files. A file's array is one sample, or several samples stacked along a new first
// axis.

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "datagen/format/coalescing_writer.hpp"
#include "datagen/format/format.hpp"
#include "datagen/format/npy_header.hpp"
#include "datagen/format/object_names.hpp"
#include "datagen/format/object_window.hpp"
#include "datagen/format/sample_arrays.hpp"
#include "datagen/format/scan_arrays.hpp"
#include "datagen/format/sharded_format.hpp"

namespace penstock {

extern const FormatInfo format_npy;

namespace {

class NpyWriter final : public ObjectWriter {
 public:
  NpyWriter(Backend& backend, const ObjectPlan& plan, bool is_stacked)
      : backend_(backend), name_(plan.name), arrays_(plan, is_stacked) {}

  Result<Placement> add(const SampleBytes& sample) override {
    PENSTOCK_TRY(arrays_.add(sample));
    const FieldBytes& field = sample.fields.front();
    if (!writer_) {
      const ArrayPlan array = arrays_.plans().front();
      const std::vector<std::byte> head = npy_header(array.element, array.shape);
      PENSTOCK_ASSIGN(auto writer, backend_.create(name_, head.size() + array.bytes()));
      writer_.emplace(std::move(writer));
      PENSTOCK_TRY(writer_->append(head));
    }
    const Placement placement{writer_->offset(), field.bytes};
    PENSTOCK_TRY(writer_->append(field));
    return placement;
  }

  Result<PublishedObject> publish(Durability durability, const Approval& approve) override {
    PENSTOCK_TRY(arrays_.check_complete());
    return writer_->publish(durability, approve);
  }

 private:
  Backend& backend_;
  const std::string name_;
  SampleArrays arrays_;
  std::optional<CoalescingWriter> writer_;
};

class Npy final : public ShardedFormat {
 public:
  explicit Npy(Shards shards) : ShardedFormat(shards, ".npy") {}

  Result<void> check(std::span<const Field> fields) const override {
    if (fields.size() != 1)
      return make_error(
          Errc::invalid_argument,
          "an .npy file has one array, and these samples have {} ({}, {} ...): use --format npz",
          fields.size(), fields[0].name, fields[1].name);
    if (fields[0].varies && !shards_.one_sample_per_object())
      return make_error(
          Errc::invalid_argument,
          "'{}' varies in length, so its samples cannot be rows of one array: add --set samples_per_file=1",
          fields[0].name);
    return success();
  }

  Result<std::unique_ptr<ObjectWriter>> create(Backend& backend, const ObjectPlan& plan) const override {
    return std::make_unique<NpyWriter>(backend, plan, !shards_.one_sample_per_object());
  }

  // Finds one sample, or one sample in each row. The object's name decides which, because the file itself
  // does not say it: in an object that is named like a shard, each row is a sample.
  Result<void> scan(Backend& backend, const Entry& object, const Visit& visit_sample) const override {
    PENSTOCK_ASSIGN(ObjectWindow window, ObjectWindow::open(backend, object));
    // NumPy reads the first array, also if np.save() appended others to the file.
    PENSTOCK_ASSIGN(const NpyArray array, read_npy(window, 0, object.bytes, true));
    LeftOutParts left_out;
    if (const uint64_t rest = object.bytes - array.header_bytes - array.data_bytes; rest > 0)
      left_out = {.count = 1, .first_name = fmt::format("the {} bytes after the first array", rest)};
    uint64_t samples = 1;
    if (is_shard_name(object.name) && !array.shape.empty() && array.data_bytes > 0) {
      if (array.fortran_order)
        return window.error(
            Errc::unsupported, 0,
            "its rows are not contiguous (Fortran order): save it with numpy.ascontiguousarray");
      samples = array.shape[0];
    }
    PENSTOCK_TRY(check_sample_count(window, samples));
    const uint64_t bytes = array.data_bytes / samples;
    std::string_view codec = "raw";
    if (array.item_bytes == 1 && array.shape.size() == 1 && samples == 1) {
      PENSTOCK_ASSIGN(codec, codec_at(window, {array.header_bytes, bytes}));
    }
    for (uint64_t i = 0; i < samples; ++i) {
      PENSTOCK_TRY(check_interrupt_at(i));
      visit_sample({.label_name = {},
                    .placement = {array.header_bytes + i * bytes, bytes},
                    .codec = codec,
                    .arrays_left_out = std::exchange(left_out, {})});
    }
    return success();
  }
};

}  // namespace

const FormatInfo format_npy{
    .name = "npy",
    .summary = "NumPy arrays: one sample per file, or stacked",
    .options = kShardedOptions,
    .make = make_sharded<Npy>,
};

}  // namespace penstock
