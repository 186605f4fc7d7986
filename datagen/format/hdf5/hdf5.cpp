// Format: HDF5, one dataset per field. A dataset has one sample, or several along a new first axis.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "datagen/format/coalescing_writer.hpp"
#include "datagen/format/format.hpp"
#include "datagen/format/hdf5/hdf5_reader.hpp"
#include "datagen/format/hdf5/hdf5_writer.hpp"
#include "datagen/format/object_names.hpp"
#include "datagen/format/object_window.hpp"
#include "datagen/format/sample_arrays.hpp"
#include "datagen/format/sample_type.hpp"
#include "datagen/format/sharded_format.hpp"

namespace penstock {

extern const FormatInfo format_hdf5;

namespace {

// Writes an object in this order: the metadata, the first field of each sample (the payload) when the sample
// is added, and at the end the arrays of the other fields. If there are several samples, SampleArrays keeps
// the other fields in memory until then.
class Hdf5Writer final : public ObjectWriter {
 public:
  Hdf5Writer(Backend& backend, const ObjectPlan& plan, bool is_stacked)
      : backend_(backend), name_(plan.name), arrays_(plan, is_stacked) {}

  Result<Placement> add(const SampleBytes& sample) override {
    PENSTOCK_TRY(arrays_.add(sample));
    if (!writer_) PENSTOCK_TRY(begin());
    const FieldBytes& field = sample.fields.front();
    const Placement placement{writer_->offset(), field.bytes};
    PENSTOCK_TRY(writer_->append(field));
    if (arrays_.samples() == 1) PENSTOCK_TRY(append_remaining_arrays(&sample));
    return placement;
  }

  Result<PublishedObject> publish(Durability durability, const Approval& approve) override {
    PENSTOCK_TRY(arrays_.check_complete());
    if (arrays_.samples() > 1) PENSTOCK_TRY(append_remaining_arrays(nullptr));
    if (rewrites_metadata_) PENSTOCK_TRY(writer_->replace_placeholder(layout_->metadata()));
    return writer_->publish(durability, approve);
  }

 private:
  Result<void> begin() {
    const Hdf5Layout& layout = layout_.emplace(arrays_.plans());
    rewrites_metadata_ = !arrays_.lengths_known();
    PENSTOCK_ASSIGN(auto writer, rewrites_metadata_ ? create_patchable(backend_, name_, 0)
                                                    : backend_.create(name_, layout.end()));
    writer_.emplace(std::move(writer));
    return rewrites_metadata_ ? writer_->append_placeholder(layout.metadata())
                              : writer_->append(layout.metadata());
  }

  Result<void> append_remaining_arrays(const SampleBytes* sample) {
    const std::vector<ArrayPlan> plans = arrays_.plans();
    if (rewrites_metadata_) layout_.emplace(plans);
    for (size_t i = 1; i < plans.size(); ++i) {
      const std::vector<std::byte> padding(size_t(layout_->address(i) - writer_->offset()));
      PENSTOCK_TRY(writer_->append(padding));
      PENSTOCK_TRY(writer_->append(arrays_.content(plans[i], sample)));
    }
    return success();
  }

  Backend& backend_;
  const std::string name_;
  SampleArrays arrays_;
  std::optional<CoalescingWriter> writer_;
  std::optional<Hdf5Layout> layout_;
  // true if lengths are known only at the end, so that the metadata is written a second time
  bool rewrites_metadata_ = false;
};

class Hdf5 final : public ShardedFormat {
 public:
  Hdf5(Shards shards, std::string field) : ShardedFormat(shards, ".h5"), field_(std::move(field)) {}

  Result<void> check(std::span<const Field> fields) const override {
    PENSTOCK_TRY(check_array_names(fields, "an HDF5 file"));
    const bool is_stacked = !shards_.one_sample_per_object();
    const SampleArrays arrays({.name = {}, .samples = 1, .fields = fields}, is_stacked);
    std::vector<ArrayPlan> datasets = arrays.plans();
    if (std::none_of(datasets.begin(), datasets.end(),
                     [](const auto& dataset) { return is_label_name(dataset.name); }))
      datasets.push_back({.name = std::string(kLabelArray)});
    return Hdf5Layout::check(datasets);
  }

  Result<std::unique_ptr<ObjectWriter>> create(Backend& backend, const ObjectPlan& plan) const override {
    return std::make_unique<Hdf5Writer>(backend, plan, !shards_.one_sample_per_object());
  }

  bool claims(std::string_view object_name) const override {
    // .he5: HDF-EOS, .nc and .nc4: netCDF-4, .h5ad: AnnData.
    constexpr std::string_view kExtensions[] = {".h5", ".hdf5", ".he5", ".nc", ".nc4", ".h5ad"};
    return !is_hidden(object_name) &&
           std::any_of(std::begin(kExtensions), std::end(kExtensions),
                       [&](std::string_view extension) { return has_extension(object_name, extension); });
  }

  Result<void> scan(Backend& backend, const Entry& object, const Visit& visit_sample) const override {
    PENSTOCK_ASSIGN(ObjectWindow window, ObjectWindow::open(backend, object));
    Hdf5Reader reader(window);
    PENSTOCK_TRY(reader.open());
    return scan_arrays(
        window, reader.arrays(), field_, reader.unread(),
        [&](size_t array, bool by_rows) { return reader.locate(array, by_rows); }, visit_sample);
  }

 private:
  const std::string field_;
};

}  // namespace

const FormatInfo format_hdf5{
    .name = "hdf5",
    .summary = "HDF5: one dataset per field, with one sample or several",
    .options = kArrayOptions,
    .make = make_of_arrays<Hdf5>,
};

}  // namespace penstock
