#include "datagen/hdf5/reader_driver.hpp"

#include <algorithm>
#include <new>

namespace penstock {
namespace {

constexpr haddr_t kMostFileBytes = (haddr_t{1} << 62U);

struct ReaderFile {
  H5FD_t base{};  // the library only knows this part; it must come first
  ReaderSource* source = nullptr;
  haddr_t end_of_allocation = 0;  // set by the library: the file's address range ends here
};

ReaderFile& reader_file(H5FD_t* file) {
  return *reinterpret_cast<ReaderFile*>(file);  // NOLINT(*-reinterpret-cast): the library does the same
}
const ReaderFile& reader_file(const H5FD_t* file) {
  return *reinterpret_cast<const ReaderFile*>(file);  // NOLINT(*-reinterpret-cast)
}

extern "C" {

H5FD_t* penstock_hdf5_open(const char* /*name*/, unsigned flags, hid_t access, haddr_t /*most*/) {
  const unsigned write_flags = H5F_ACC_RDWR | H5F_ACC_TRUNC | H5F_ACC_CREAT;
  const auto* const source = static_cast<ReaderSource* const*>(H5Pget_driver_info(access));
  if (source == nullptr || *source == nullptr || (flags & write_flags) != 0) return nullptr;
  auto* const file = new (std::nothrow) ReaderFile;
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
  // Tells the library that this driver has the features of HDF5's default driver (sec2). The library then
  // reads metadata in large pieces, and small pieces of raw data through its sieve buffer.
  if (flags != nullptr)
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

haddr_t penstock_hdf5_get_eoa(const H5FD_t* file, H5FD_mem_t /*type*/) {
  return reader_file(file).end_of_allocation;
}
herr_t penstock_hdf5_set_eoa(H5FD_t* file, H5FD_mem_t /*type*/, haddr_t address) {
  reader_file(file).end_of_allocation = address;
  return 0;
}
haddr_t penstock_hdf5_get_eof(const H5FD_t* file, H5FD_mem_t /*type*/) {
  return reader_file(file).source->bytes;
}

herr_t penstock_hdf5_read(H5FD_t* file, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t address,
                          size_t bytes, void* buffer) {
  ReaderSource& source = *reader_file(file).source;
  const std::span<std::byte> out(static_cast<std::byte*>(buffer), bytes);
  const auto available_bytes =
      size_t(address < source.bytes ? std::min<uint64_t>(bytes, source.bytes - address) : 0);
  std::fill(out.begin() + ptrdiff_t(available_bytes), out.end(), std::byte{0});
  if (available_bytes == 0) return 0;
  Result<void> read = source.reader->read_at(address, out.first(available_bytes));
  if (read.ok()) return 0;
  if (!source.failure) source.failure = std::move(read).error();
  return -1;
}

herr_t penstock_hdf5_write(H5FD_t* /*file*/, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t /*address*/,
                           size_t /*bytes*/, const void* /*buffer*/) {
  return -1;
}

}  // extern "C"

H5FD_class_t driver_class() {
  H5FD_class_t driver{};
#if H5_VERSION_GE(1, 13, 2)
  driver.version = H5FD_CLASS_VERSION;
  // the driver's number; those from 512 on need no registration
  driver.value = static_cast<H5FD_class_value_t>(513);
#endif
  driver.name = "penstock_reader";
  driver.maxaddr = kMostFileBytes;
  driver.fc_degree = H5F_CLOSE_STRONG;
  // Size of what this driver stores in the file access property list: a pointer to the ReaderSource.
  driver.fapl_size = sizeof(void*);
  driver.open = &penstock_hdf5_open;
  driver.close = &penstock_hdf5_close;
  driver.cmp = &penstock_hdf5_compare;
  driver.query = &penstock_hdf5_query;
  driver.get_eoa = &penstock_hdf5_get_eoa;
  driver.set_eoa = &penstock_hdf5_set_eoa;
  driver.get_eof = &penstock_hdf5_get_eof;
  driver.read = &penstock_hdf5_read;
  driver.write = &penstock_hdf5_write;
  const H5FD_mem_t same[] = H5FD_FLMAP_SINGLE;
  std::copy(std::begin(same), std::end(same), std::begin(driver.fl_map));
  return driver;
}

}  // namespace

Result<void> use_reader_driver(hid_t access, ReaderSource& source) {
  static const H5FD_class_t kDriverClass = driver_class();
  static const hid_t kDriverId = H5FDregister(&kDriverClass);
  ReaderSource* const pointer = &source;
  if (kDriverId >= 0 && H5Pset_driver(access, kDriverId, &pointer) >= 0) return success();
  return make_error(Errc::internal, "HDF5's library refuses Penstock's driver reader");
}

}  // namespace penstock
