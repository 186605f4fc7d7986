// A file that HDF5's own library has opened, with any driver. This code is compiled twice: into the program,
// with the library that the program links, and into the module of the driver mpio, with HDF5's parallel
// library.
#pragma once

#include <hdf5.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "datagen/hdf5/hdf5_input.hpp"
#include "datagen/hdf5/reader_driver.hpp"

namespace penstock {

// The mutex that must be held during every call of the library. Not every build of the library has locks of
// its own: Debian's parallel library has none.
std::mutex& hdf5_mutex();

// Owns an identifier of the library, and closes it in its destructor. Use it only with hdf5_mutex() held. The
// destructor needs the lock too, unless the Hdf5Id is empty.
class Hdf5Id {
 public:
  using Close = herr_t (*)(hid_t);
  Hdf5Id() = default;
  Hdf5Id(hid_t id, Close close) : id_(id), close_(close) {}
  Hdf5Id(Hdf5Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Id& operator=(Hdf5Id&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Id() {
    if (id_ >= 0) close_(id_);
  }
  explicit operator bool() const { return id_ >= 0; }
  hid_t get() const { return id_; }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

// While this object exists, the library does not print its errors to stderr, because Penstock reports them
// itself. Create and destroy it with hdf5_mutex() held.
class Hdf5Quiet {
 public:
  Hdf5Quiet() {
    H5Eget_auto2(H5E_DEFAULT, &saved_print_, &saved_print_data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Hdf5Quiet() { H5Eset_auto2(H5E_DEFAULT, saved_print_, saved_print_data_); }
  Hdf5Quiet(const Hdf5Quiet&) = delete;
  Hdf5Quiet& operator=(const Hdf5Quiet&) = delete;

 private:
  H5E_auto2_t saved_print_ = nullptr;
  void* saved_print_data_ = nullptr;
};

class LibraryInput final : public Hdf5Input {
 public:
  // `reader` reads the file's bytes if the driver is Hdf5Driver::reader. Other drivers do not use it; it is
  // null for the MPI drivers.
  LibraryInput(std::string_view name, std::unique_ptr<Reader> reader)
      : name_(name), reader_(std::move(reader)) {
    source_.reader = reader_.get();
  }
  ~LibraryInput() override;

  ReaderSource& source() { return source_; }

  // Opens the file `path` with the access property list `access`. Later reads use the property list
  // `transfer`. `corrupt` if the library finds that the file is no HDF5. Call it with hdf5_mutex() held.
  Result<void> open(const std::string& path, hid_t access, Hdf5Id transfer = {});

  Result<std::vector<uint64_t>> shape(const std::string& data_set) override;
  Result<void> read(const std::string& data_set, std::span<const uint64_t> begin,
                    std::span<const uint64_t> counts, Element element, std::span<std::byte> out) override;

 private:
  struct OpenDataSet {
    Hdf5Id handle;
    Hdf5Id space;  // the data space of the whole data set
    std::vector<uint64_t> shape;
  };
  // Opens a data set and reads its shape. Also forgets the Reader's error of an earlier call. Call it with
  // hdf5_mutex() held.
  Result<OpenDataSet> open_data_set(const std::string& data_set);
  Result<void> check_block(const std::string& data_set, std::span<const uint64_t> shape,
                           std::span<const uint64_t> begin, std::span<const uint64_t> counts, Element element,
                           size_t out_bytes) const;
  Error library_error(std::string_view what, std::string_view data_set = "");

  const std::string name_;
  const std::unique_ptr<Reader> reader_;
  ReaderSource source_;
  Hdf5Id transfer_;
  Hdf5Id file_;
};

}  // namespace penstock
