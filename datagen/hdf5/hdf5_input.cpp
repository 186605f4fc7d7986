#include "datagen/hdf5/hdf5_input.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "datagen/hdf5/reader_driver.hpp"

namespace penstock {
namespace {

constexpr std::size_t kCoreGrowth = std::size_t{1} << 20U;

// An identifier of the library's, given back by its own kind of close. With hdf5_mutex() held.
class Held {
 public:
  using Close = herr_t (*)(hid_t);
  Held() = default;
  Held(hid_t id, Close close) : id_(id), close_(close) {}
  Held(Held&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Held& operator=(Held&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Held() {
    if (id_ >= 0) close_(id_);
  }
  explicit operator bool() const { return id_ >= 0; }
  hid_t get() const { return id_; }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

// While it lives the library writes nothing to stderr; what goes wrong is said by our errors.
class Quiet {
 public:
  Quiet() {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Quiet() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

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

class LibraryInput final : public Hdf5Input {
 public:
  LibraryInput(std::string_view name, std::unique_ptr<Reader> reader)
      : name_(name), reader_(std::move(reader)) {}
  ~LibraryInput() override {
    const std::scoped_lock lock(hdf5_mutex());
    const Quiet quiet;
    file_ = {};
  }

  Result<void> begin(const Backend& backend, Hdf5Driver driver) {
    PENSTOCK_ASSIGN(source_.bytes, reader_->size());
    source_.reader = reader_.get();
    const std::scoped_lock lock(hdf5_mutex());
    const Quiet quiet;
    const Held access(H5Pcreate(H5P_FILE_ACCESS), &H5Pclose);
    if (!access) return failed("cannot make what opens");
    std::string path = name_;
    if (driver == Hdf5Driver::reader) {
      PENSTOCK_TRY(use_reader_driver(access.get(), source_));
    } else {
      const auto native = backend.native_path(name_);
      if (!native)
        return make_error(Errc::unsupported,
                          fmt::format("HDF5's driver {} reads files alone, and '{}' is none: "
                                      "use the driver reader",
                                      hdf5_driver_name(driver), name_));
      path = native->string();
      const bool core = driver == Hdf5Driver::core;
      const herr_t set =
          core ? H5Pset_fapl_core(access.get(), kCoreGrowth, 0) : H5Pset_fapl_sec2(access.get());
      if (set < 0) return failed("cannot set up what opens");
    }
    file_ = Held(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), &H5Fclose);
    if (!file_) return failed("is no HDF5 file that can be read:");
    return success();
  }

  Result<Hdf5Shape> shape(const std::string& data_set) override {
    const std::scoped_lock lock(hdf5_mutex());
    const Quiet quiet;
    PENSTOCK_ASSIGN(const Held set, open_set(data_set));
    const Held space(H5Dget_space(set.get()), &H5Sclose);
    Hdf5Shape shape;
    PENSTOCK_TRY(shape_of(space, data_set, shape));
    return shape;
  }

  Result<void> read(const std::string& data_set, std::span<const std::uint64_t> begin,
                    std::span<const std::uint64_t> counts, Element element,
                    std::span<std::byte> out) override {
    const std::scoped_lock lock(hdf5_mutex());
    const Quiet quiet;
    PENSTOCK_ASSIGN(const Held set, open_set(data_set));
    const Held space(H5Dget_space(set.get()), &H5Sclose);
    Hdf5Shape shape;
    PENSTOCK_TRY(shape_of(space, data_set, shape));
    PENSTOCK_TRY(check_block(data_set, shape, begin, counts, element, out.size()));
    const std::vector<hsize_t> from(begin.begin(), begin.end());
    const std::vector<hsize_t> sides(counts.begin(), counts.end());
    const Held memory(sides.empty() ? H5Screate(H5S_SCALAR)
                                    : H5Screate_simple(static_cast<int>(sides.size()), sides.data(), nullptr),
                      &H5Sclose);
    const bool selected = sides.empty() || H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, from.data(),
                                                               nullptr, sides.data(), nullptr) >= 0;
    if (!memory || !selected) return failed("cannot choose a block of", data_set);
    if (H5Dread(set.get(), native_type(element), memory.get(), space.get(), H5P_DEFAULT, out.data()) < 0)
      return failed("cannot read", data_set);
    return success();
  }

 private:
  Result<Held> open_set(const std::string& data_set) {
    Held set(H5Dopen2(file_.get(), data_set.c_str(), H5P_DEFAULT), &H5Dclose);
    if (set) return set;
    if (source_.failure) return *source_.failure;
    return make_error(Errc::not_found, fmt::format("'{}' has no data set '{}'", name_, data_set));
  }

  Result<void> shape_of(const Held& space, const std::string& data_set, Hdf5Shape& shape) {
    const int sides = space ? H5Sget_simple_extent_ndims(space.get()) : -1;
    if (sides < 0) return failed("cannot look at", data_set);
    std::vector<hsize_t> extent(static_cast<std::size_t>(sides));
    if (sides > 0 && H5Sget_simple_extent_dims(space.get(), extent.data(), nullptr) < 0)
      return failed("cannot look at", data_set);
    shape.sides.assign(extent.begin(), extent.end());
    return success();
  }

  Result<void> check_block(const std::string& data_set, const Hdf5Shape& shape,
                           std::span<const std::uint64_t> begin, std::span<const std::uint64_t> counts,
                           Element element, std::size_t room) const {
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
  Error failed(std::string_view what, std::string_view data_set = "") {
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
    if (!data_set.empty())
      return make_error(Errc::corrupt, fmt::format("{}{} '{}': {}", what, of, name_, why));
    return make_error(Errc::corrupt, fmt::format("'{}' {} {}", name_, what, why));
  }

  const std::string name_;
  const std::unique_ptr<Reader> reader_;
  ReaderSource source_;
  Held file_;
};

}  // namespace

Result<void> hdf5_available() {
  return success();
}

Result<std::unique_ptr<Hdf5Input>> Hdf5Input::open(Backend& backend, std::string_view name,
                                                   Hdf5Driver driver) {
  PENSTOCK_ASSIGN(std::unique_ptr<Reader> reader, backend.open(name));
  auto input = std::make_unique<LibraryInput>(name, std::move(reader));
  PENSTOCK_TRY(input->begin(backend, driver));
  return std::unique_ptr<Hdf5Input>(std::move(input));
}

}  // namespace penstock
