#include "datagen/hdf5/library_input.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace penstock {
namespace {

hid_t native_type(Element element) {
  switch (element) {
    case Element::u8:
      return H5T_NATIVE_UINT8;
    case Element::i32:
      return H5T_NATIVE_INT32;
    case Element::i64:
      return H5T_NATIVE_INT64;
    case Element::f32:
      return H5T_NATIVE_FLOAT;
    case Element::f64:
      break;
  }
  return H5T_NATIVE_DOUBLE;
}

}  // namespace

std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

LibraryInput::~LibraryInput() {
  const std::scoped_lock lock(hdf5_mutex());
  const Hdf5Quiet quiet;
  file_ = {};
  transfer_ = {};
}

Result<void> LibraryInput::open(const std::string& path, hid_t access, Hdf5Id transfer) {
  const Hdf5Quiet quiet;
  transfer_ = std::move(transfer);
  file_ = Hdf5Id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), &H5Fclose);
  return file_ ? success() : failed("is no HDF5 file that can be read:");
}

Result<Hdf5Shape> LibraryInput::shape(const std::string& data_set) {
  const std::scoped_lock lock(hdf5_mutex());
  const Hdf5Quiet quiet;
  PENSTOCK_ASSIGN(OpenSet opened, open_set(data_set));
  return std::move(opened.shape);
}

Result<void> LibraryInput::read(const std::string& data_set, std::span<const std::uint64_t> begin,
                                std::span<const std::uint64_t> counts, Element element,
                                std::span<std::byte> out) {
  const std::scoped_lock lock(hdf5_mutex());
  const Hdf5Quiet quiet;
  PENSTOCK_ASSIGN(const OpenSet opened, open_set(data_set));
  const auto& [set, space, shape] = opened;
  PENSTOCK_TRY(check_block(data_set, shape, begin, counts, element, out.size()));
  const std::vector<hsize_t> from(begin.begin(), begin.end());
  const std::vector<hsize_t> sides(counts.begin(), counts.end());
  const hid_t how = transfer_ ? transfer_.get() : H5P_DEFAULT;
  const Hdf5Id memory(sides.empty() ? H5Screate(H5S_SCALAR)
                                    : H5Screate_simple(static_cast<int>(sides.size()), sides.data(), nullptr),
                      &H5Sclose);
  if (out.empty()) {  // what a rank without a part asks for
    H5Sselect_none(memory.get());
    H5Sselect_none(space.get());
  }
  const bool selected =
      out.empty() || sides.empty() ||
      H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, from.data(), nullptr, sides.data(), nullptr) >= 0;
  if (!memory || !selected) return failed("cannot choose a block of", data_set);
  if (H5Dread(set.get(), native_type(element), memory.get(), space.get(), how, out.data()) < 0)
    return failed("cannot read", data_set);
  return success();
}

Result<LibraryInput::OpenSet> LibraryInput::open_set(const std::string& data_set) {
  source_.failure.reset();
  OpenSet opened;
  opened.set = Hdf5Id(H5Dopen2(file_.get(), data_set.c_str(), H5P_DEFAULT), &H5Dclose);
  if (!opened.set) {
    if (source_.failure) return *source_.failure;
    return make_error(Errc::not_found, fmt::format("'{}' has no data set '{}'", name_, data_set));
  }
  opened.space = Hdf5Id(H5Dget_space(opened.set.get()), &H5Sclose);
  const hid_t space = opened.space.get();
  const int sides = opened.space ? H5Sget_simple_extent_ndims(space) : -1;
  if (sides < 0) return failed("cannot look at", data_set);
  std::vector<hsize_t> extent(static_cast<std::size_t>(sides));
  if (sides > 0 && H5Sget_simple_extent_dims(space, extent.data(), nullptr) < 0)
    return failed("cannot look at", data_set);
  opened.shape.sides.assign(extent.begin(), extent.end());
  return opened;
}

Result<void> LibraryInput::check_block(const std::string& data_set, const Hdf5Shape& shape,
                                       std::span<const std::uint64_t> begin,
                                       std::span<const std::uint64_t> counts, Element element,
                                       std::size_t room) const {
  bool fits = begin.size() == shape.sides.size() && counts.size() == shape.sides.size();
  std::uint64_t elements = 1;
  for (std::size_t i = 0; fits && i < counts.size(); ++i) {
    fits = begin[i] <= shape.sides[i] && counts[i] <= shape.sides[i] - begin[i];
    elements *= counts[i];
  }
  if (!fits)
    return make_error(
        Errc::invalid_argument,
        fmt::format("'{}' of '{}' has the sides {}: no block of {} at {}", data_set, name_,
                    fmt::join(shape.sides, " x "), fmt::join(counts, " x "), fmt::join(begin, ", ")));
  if (elements * element_bytes(element) == room) return success();
  return make_error(Errc::invalid_argument,
                    fmt::format("a block of '{}' has {} bytes, and there is room for {}", data_set,
                                elements * element_bytes(element), room));
}

// The Reader's own error where there was one, else what the library says at the bottom of its stack.
Error LibraryInput::failed(std::string_view what, std::string_view data_set) {
  if (source_.failure) return *source_.failure;
  std::string why;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned n, const H5E_error2_t* error, void* out) -> herr_t {
        if (n == 0 && error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
        return 0;
      },
      &why);
  const std::string of = data_set.empty() ? "" : fmt::format(" '{}' of", data_set);
  if (!data_set.empty()) return make_error(Errc::corrupt, fmt::format("{}{} '{}': {}", what, of, name_, why));
  return make_error(Errc::corrupt, fmt::format("'{}' {} {}", name_, what, why));
}

}  // namespace penstock
