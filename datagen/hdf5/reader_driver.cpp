#include "datagen/hdf5/reader_driver.hpp"

#include <algorithm>
#include <new>

namespace penstock {
namespace {

constexpr haddr_t kMostBytes = (haddr_t{1} << 62U);

struct File {
  H5FD_t base{};  // the library's part; must be first
  ReaderSource* source = nullptr;
  haddr_t allocated = 0;  // "end of allocation": the library assumes that the file reaches up to here
};

File& reader_file(H5FD_t* file) {
  return *reinterpret_cast<File*>(file);  // NOLINT(*-reinterpret-cast): the library does the same
}
const File& reader_file(const H5FD_t* file) {
  return *reinterpret_cast<const File*>(file);  // NOLINT(*-reinterpret-cast)
}

extern "C" {

H5FD_t* penstock_hdf5_open(const char* /*name*/, unsigned flags, hid_t access, haddr_t /*most*/) {
  const unsigned writing = H5F_ACC_RDWR | H5F_ACC_TRUNC | H5F_ACC_CREAT;
  const auto* const source = static_cast<ReaderSource* const*>(H5Pget_driver_info(access));
  if (source == nullptr || *source == nullptr || (flags & writing) != 0) return nullptr;
  auto* const file = new (std::nothrow) File;
  if (file == nullptr) return nullptr;
  file->source = *source;
  return &file->base;
}

herr_t penstock_hdf5_close(H5FD_t* file) {
  delete &reader_file(file);  // NOLINT(*-owning-memory): the library owns it between open and close
  return 0;
}

int penstock_hdf5_compare(const H5FD_t* a, const H5FD_t* b) {
  const ReaderSource* const first = reader_file(a).source;
  const ReaderSource* const second = reader_file(b).source;
  return std::less<>{}(first, second) ? -1 : std::less<>{}(second, first) ? 1 : 0;
}

herr_t penstock_hdf5_query(const H5FD_t* /*file*/, unsigned long* flags) {
  // The same features as HDF5's default driver (sec2). The library then reads metadata in large pieces, and
  // small raw data through its sieve buffer.
  if (flags != nullptr)
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

haddr_t penstock_hdf5_get_eoa(const H5FD_t* file, H5FD_mem_t /*type*/) {
  return reader_file(file).allocated;
}
herr_t penstock_hdf5_set_eoa(H5FD_t* file, H5FD_mem_t /*type*/, haddr_t address) {
  reader_file(file).allocated = address;
  return 0;
}
haddr_t penstock_hdf5_get_eof(const H5FD_t* file, H5FD_mem_t /*type*/) {
  return reader_file(file).source->bytes;
}

herr_t penstock_hdf5_read(H5FD_t* file, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t address,
                          std::size_t bytes, void* buffer) {
  ReaderSource& source = *reader_file(file).source;
  const std::span<std::byte> out(static_cast<std::byte*>(buffer), bytes);
  const auto available = static_cast<std::size_t>(
      address < source.bytes ? std::min<std::uint64_t>(bytes, source.bytes - address) : 0);
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(available), out.end(), std::byte{0});
  if (available == 0) return 0;
  Result<void> read = source.reader->read_at(address, out.first(available));
  if (read.ok()) return 0;
  if (!source.failure) source.failure = std::move(read).error();
  return -1;
}

herr_t penstock_hdf5_write(H5FD_t* /*file*/, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t /*address*/,
                           std::size_t /*bytes*/, const void* /*buffer*/) {
  return -1;
}

}  // extern "C"

H5FD_class_t driver_class() {
  H5FD_class_t made{};
#if H5_VERSION_GE(1, 13, 2)
  made.version = H5FD_CLASS_VERSION;
  made.value = static_cast<H5FD_class_value_t>(513);  // 512 and above need no registration
#endif
  made.name = "penstock_reader";
  made.maxaddr = kMostBytes;
  made.fc_degree = H5F_CLOSE_STRONG;
  // Size of the driver's data in the property list: a pointer to the ReaderSource.
  made.fapl_size = sizeof(void*);
  made.open = &penstock_hdf5_open;
  made.close = &penstock_hdf5_close;
  made.cmp = &penstock_hdf5_compare;
  made.query = &penstock_hdf5_query;
  made.get_eoa = &penstock_hdf5_get_eoa;
  made.set_eoa = &penstock_hdf5_set_eoa;
  made.get_eof = &penstock_hdf5_get_eof;
  made.read = &penstock_hdf5_read;
  made.write = &penstock_hdf5_write;
  const H5FD_mem_t same[] = H5FD_FLMAP_SINGLE;
  std::copy(std::begin(same), std::end(same), std::begin(made.fl_map));
  return made;
}

}  // namespace

Result<void> use_reader_driver(hid_t access, ReaderSource& source) {
  static const H5FD_class_t kClass = driver_class();
  static const hid_t kDriver = H5FDregister(&kClass);
  ReaderSource* const pointer = &source;
  if (kDriver >= 0 && H5Pset_driver(access, kDriver, &pointer) >= 0) return success();
  return make_error(Errc::internal, "HDF5's library takes no driver of ours");
}

}  // namespace penstock
