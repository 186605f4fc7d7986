// Threads: any thread may call shape(), read() and the destructor. With the driver mpio_collective, all ranks
// make each read together; if one rank omits a read, the others block.
// Lock: hdf5_mutex(), one for each copy of HDF5's library (the program and the MPI-IO module each have one).
// shape(), read() and the destructor take it. open() and all private functions must be called with it held.
// It is held during the library's file I/O, so a slow read makes the users of this copy's other files wait.
// The library also calls the Reader with the lock held, so the Reader must not use HDF5.
// Memory: the library and the errors here allocate, with the lock held.
// Ctrl-C: this code does not check for a signal. The caller checks between reads.
// Crash: files are only read.
#include "datagen/hdf5/library_input.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace penstock {
namespace {

hid_t native_type(Element element) {
  const std::array types{H5T_NATIVE_UINT8, H5T_NATIVE_INT32, H5T_NATIVE_INT64, H5T_NATIVE_FLOAT,
                         H5T_NATIVE_DOUBLE};  // in the order of Element
  return types[size_t(element)];
}

}  // namespace

// The only mutex for this copy of HDF5's library; the first call makes it.
std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

// Closes file_ and transfer_ with the lock held. The destructors of these members run later, without the
// lock, and must find nothing to close. reader_ is destroyed after the file is closed, because the library
// reads the file through reader_.
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
  return file_ ? success() : library_error("is no HDF5 file that can be read:");
}

Result<std::vector<uint64_t>> LibraryInput::shape(const std::string& data_set) {
  const std::scoped_lock lock(hdf5_mutex());
  const Hdf5Quiet quiet;
  PENSTOCK_ASSIGN(OpenDataSet opened, open_data_set(data_set));
  return std::move(opened.shape);
}

Result<void> LibraryInput::read(const std::string& data_set, std::span<const uint64_t> begin,
                                std::span<const uint64_t> counts, Element element, std::span<std::byte> out) {
  const std::scoped_lock lock(hdf5_mutex());
  const Hdf5Quiet quiet;
  // `opened` is declared after `lock`, so it is destroyed before the lock is released: it closes its
  // identifiers with the lock held.
  PENSTOCK_ASSIGN(const OpenDataSet opened, open_data_set(data_set));
  const auto& [handle, space, shape] = opened;
  // Without this check, the library could write past the end of `out`: it does not know the size of `out` and
  // writes the whole block.
  PENSTOCK_TRY(check_block(data_set, shape, begin, counts, element, out.size()));
  const std::vector<hsize_t> first(begin.begin(), begin.end());
  const std::vector<hsize_t> lengths(counts.begin(), counts.end());
  const hid_t transfer = transfer_ ? transfer_.get() : H5P_DEFAULT;
  const Hdf5Id memory(lengths.empty() ? H5Screate(H5S_SCALAR)
                                      : H5Screate_simple(int(lengths.size()), lengths.data(), nullptr),
                      &H5Sclose);
  // selects nothing; a rank without data must still call H5Dread() if reads are collective
  if (out.empty()) {
    H5Sselect_none(memory.get());
    H5Sselect_none(space.get());
  }
  const bool is_selected =
      out.empty() || lengths.empty() ||
      H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, first.data(), nullptr, lengths.data(), nullptr) >= 0;
  if (!memory || !is_selected) return library_error("cannot select a block of", data_set);
  if (H5Dread(handle.get(), native_type(element), memory.get(), space.get(), transfer, out.data()) < 0)
    return library_error("cannot read", data_set);
  return success();
}

Result<LibraryInput::OpenDataSet> LibraryInput::open_data_set(const std::string& data_set) {
  // Forgets the Reader's error of an earlier call. Otherwise library_error() would return it for a later
  // failure.
  source_.failure.reset();
  OpenDataSet opened;
  opened.handle = Hdf5Id(H5Dopen2(file_.get(), data_set.c_str(), H5P_DEFAULT), &H5Dclose);
  if (!opened.handle) {
    if (source_.failure) return *source_.failure;
    return make_error(Errc::not_found, "'{}' has no data set '{}'", name_, data_set);
  }
  opened.space = Hdf5Id(H5Dget_space(opened.handle.get()), &H5Sclose);
  const hid_t space = opened.space.get();
  const int dimensions = opened.space ? H5Sget_simple_extent_ndims(space) : -1;
  if (dimensions < 0) return library_error("cannot read the shape of", data_set);
  std::vector<hsize_t> extent(static_cast<size_t>(dimensions));
  if (dimensions > 0 && H5Sget_simple_extent_dims(space, extent.data(), nullptr) < 0)
    return library_error("cannot read the shape of", data_set);
  opened.shape.assign(extent.begin(), extent.end());
  return opened;
}

Result<void> LibraryInput::check_block(const std::string& data_set, std::span<const uint64_t> shape,
                                       std::span<const uint64_t> begin, std::span<const uint64_t> counts,
                                       Element element, size_t out_bytes) const {
  bool is_inside = begin.size() == shape.size() && counts.size() == shape.size();
  uint64_t elements = 1;
  for (size_t i = 0; is_inside && i < counts.size(); ++i) {
    is_inside = begin[i] <= shape[i] && counts[i] <= shape[i] - begin[i];
    elements *= counts[i];
  }
  if (!is_inside)
    return make_error(Errc::invalid_argument, "'{}' of '{}' has the sides {}: no block of {} at {}", data_set,
                      name_, fmt::join(shape, " x "), fmt::join(counts, " x "), fmt::join(begin, ", "));
  if (elements * element_bytes(element) == out_bytes) return success();
  return make_error(Errc::invalid_argument, "a block of '{}' has {} bytes, and there is room for {}",
                    data_set, elements * element_bytes(element), out_bytes);
}

// Makes the error for a failed call of the library. It is the Reader's own error if there is one, otherwise
// the innermost entry of the library's error stack. Call it right after the failure, because each call of the
// library first clears that stack.
Error LibraryInput::library_error(std::string_view what, std::string_view data_set) {
  if (source_.failure) return *source_.failure;
  std::string why;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned n, const H5E_error2_t* error, void* out) -> herr_t {
        if (n == 0 && error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
        return 0;
      },
      &why);
  const std::string prefix = data_set.empty() ? "" : fmt::format(" '{}' of", data_set);
  if (!data_set.empty()) return make_error(Errc::corrupt, "{}{} '{}': {}", what, prefix, name_, why);
  return make_error(Errc::corrupt, "'{}' {} {}", name_, what, why);
}

}  // namespace penstock
