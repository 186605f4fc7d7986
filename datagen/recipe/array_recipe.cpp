#include "datagen/recipe/array_recipe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <new>
#include <utility>

namespace penstock {

// Makes the samples of an array recipe. Each part that is made of noise has its own random stream, so that
// such parts of one sample differ from each other.
class ArrayRecipe::Maker final : public SampleMaker {
 public:
  explicit Maker(const ArrayRecipe& recipe)
      : recipe_(recipe), arrays_(recipe.fields_.size()), filled_parts_(recipe.fields_.size()) {
    for (size_t part = 0; part < arrays_.size(); ++part)
      if (const auto noise = recipe.spec_.parts[part].noise) arrays_[part].emplace(recipe.stock(*noise));
    pieces_.resize(arrays_.size());
    field_bytes_.resize(arrays_.size());
  }

  Result<std::span<const FieldBytes>> make(uint64_t index) override {
    const RandomStream sample = recipe_.stream_.substream(index);
    for (size_t part = 0; part < arrays_.size(); ++part) {
      const uint64_t bytes = recipe_.part_bytes(part, index);
      if (arrays_[part]) {
        field_bytes_[part] = arrays_[part]->make(sample.substream(part + 1), bytes);
        continue;
      }
      filled_parts_[part].resize(size_t(bytes));
      if (const auto source = recipe_.spec_.parts[part].moments_of)
        recipe_.fill_moments(*source, *arrays_[*source], filled_parts_[part]);
      else if (recipe_.spec_.fill != nullptr)
        recipe_.spec_.fill(sample, index, part, filled_parts_[part]);
      pieces_[part] = filled_parts_[part];
      field_bytes_[part] = {.pieces = {&pieces_[part], 1}, .bytes = bytes};
    }
    return field_bytes_;
  }

 private:
  const ArrayRecipe& recipe_;
  std::vector<std::optional<NoiseArray>> arrays_;
  std::vector<std::vector<std::byte>> filled_parts_;
  std::vector<std::span<const std::byte>> pieces_;
  std::vector<FieldBytes> field_bytes_;
};

namespace {

void put_moments(const Moments& moments, std::span<std::byte> out, size_t channel) {
  const std::array<float, kMoments> row{float(moments.mean()), moments.max_value, moments.min_value,
                                        float(moments.deviation())};
  for (size_t i = 0; i < kMoments; ++i) put_element(row[i], out, channel * kMoments + i);
}

}  // namespace

ArrayRecipe::ArrayRecipe(const RecipeRequest& request, ArrayRecipeSpec spec)
    : spec_(std::move(spec)),
      samples_(request.samples == 0 ? spec_.full_samples : request.samples),
      seed_(request.seed),
      threads_(request.threads),
      stream_(request.seed, spec_.recipe) {
  fields_.reserve(spec_.parts.size());
  for (const ArrayPart& part : spec_.parts) fields_.push_back(part.field);
}

void ArrayRecipe::plan(uint64_t index, SamplePlan& out) const {
  out.key.clear();
  spec_.name(index, out);
}

uint64_t ArrayRecipe::bytes_expected(uint64_t index) const {
  uint64_t bytes = 0;
  for (size_t part = 0; part < fields_.size(); ++part) bytes += part_bytes(part, index);
  return bytes;
}

void ArrayRecipe::fill_moments(size_t part, const NoiseArray& array, std::span<std::byte> out) const {
  const Field& field = fields_[part];
  const uint64_t elements = field_bytes(field) / sizeof(float) / field.shape.front();
  for (uint64_t channel = 0; channel < field.shape.front(); ++channel)
    put_moments(array.moments(channel * elements, (channel + 1) * elements), out, channel);
}

const NoiseStock& ArrayRecipe::stock(Noise noise) const {
  // The lock is held while a stock is made, so that other threads wait for this stock and do not make a
  // second one.
  const std::scoped_lock lock(stocks_mutex_);
  auto& stock = stocks_[size_t(noise)];
  if (stock == nullptr) stock = std::make_unique<const NoiseStock>(noise, seed_, threads_);
  return *stock;
}

Result<std::unique_ptr<SampleMaker>> ArrayRecipe::maker() const {
  try {
    return std::make_unique<Maker>(*this);
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "no memory for the stock of recipe '{}' (about 16 MiB)", spec_.recipe);
  }
}

// Makes one object of statistics for each part that contains moments. The object has the moments of the whole
// stock of noise. ClimDeepLearn, whose input the recipe `climate` imitates, reads this object first and
// normalises all samples with it.
std::vector<Companion> ArrayRecipe::companions() const {
  std::vector<Companion> companions;
  for (const ArrayPart& part : spec_.parts) {
    if (!part.moments_of) continue;
    const std::string_view name = part.field.name;
    Companion& companion = companions.emplace_back();
    // If the name has no '/', rfind() returns npos, npos + 1 is 0, and the whole name is taken.
    companion.name = name.substr(name.rfind('/') + 1);
    companion.fields = {part.field};
    companion.bytes.emplace_back(size_t(field_bytes(part.field)));
    const Moments moments = stock(*spec_.parts[*part.moments_of].noise).moments();
    for (size_t channel = 0; channel < part.field.shape.front(); ++channel)
      put_moments(moments, companion.bytes.front(), channel);
  }
  return companions;
}

Result<void> check_shape(std::span<const uint64_t> shape, size_t dimensions) {
  constexpr uint64_t kMostElements = uint64_t{1} << 28U;
  if (shape.size() != dimensions)
    return make_error(Errc::invalid_argument, "shape={}: {} numbers", fmt::join(shape, ","), dimensions);
  uint64_t elements = 1;
  for (const uint64_t side : shape) {
    if (side == 0 || side > kMostElements / elements)
      return make_error(Errc::invalid_argument, "shape={}: from 1 to {} elements", fmt::join(shape, ","),
                        kMostElements);
    elements *= side;
  }
  return success();
}

}  // namespace penstock
