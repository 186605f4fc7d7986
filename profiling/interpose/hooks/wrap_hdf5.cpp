// Wrappers of HDF5's files, data sets and attributes. They work with any HDF5 library of the program from
// version 1.10 on, in which identifiers have 64 bits. Nothing of HDF5 is linked or included here.
//
// HDF5 is a layer above POSIX (or MPI-IO). What its driver does with descriptors is counted in that lower
// layer as well.
//
// Threads, memory and signals: the rules of wrap.hpp.
// Locks: finding a handle's file takes handles_lock (handles.hpp). It is not held during the program's call.
#include "profiling/interpose/counting/handles.hpp"
#include "profiling/interpose/hooks/wrap.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are in no namespace, like libc's functions

namespace {

using H5Id = int64_t;           // HDF5's type hid_t
constexpr H5Id kAllPoints = 0;  // H5S_ALL: the whole data set
// Each HDF5 library of the process has handles of its own, which may be equal numbers.
template <unsigned kCopy>
constexpr unsigned kHdf5Handles = 2 + kCopy;

template <unsigned kCopy>
constinit FunctionOfCopy<H5Id(H5Id), kCopy> dataset_space{"H5Dget_space"};
template <unsigned kCopy>
constinit FunctionOfCopy<H5Id(H5Id), kCopy> attribute_space{"H5Aget_space"};
template <unsigned kCopy>
constinit FunctionOfCopy<int(H5Id, const uint64_t*, uint64_t*), kCopy> chunk_size{
    "H5Dget_chunk_storage_size"};
template <unsigned kCopy>
constinit FunctionOfCopy<int(H5Id), kCopy> close_space{"H5Sclose"};
template <unsigned kCopy>
constinit FunctionOfCopy<int64_t(H5Id), kCopy> selected_points{"H5Sget_select_npoints"};
template <unsigned kCopy>
constinit FunctionOfCopy<size_t(H5Id), kCopy> type_size{"H5Tget_size"};
template <unsigned kCopy>
constinit FunctionOfCopy<ssize_t(H5Id, char*, size_t), kCopy> file_name{"H5Fget_name"};

// Returns how many bytes a transfer moves: the number of selected points times the size of one point in
// memory. `whole_space` returns the points of the whole data set or attribute.
template <unsigned kCopy>
int64_t selected_bytes(H5Id object, H5Id type, H5Id memory_space, H5Id file_space,
                       FunctionOfCopy<H5Id(H5Id), kCopy>& whole_space) noexcept {
  if (selected_points<kCopy>.pointer() == nullptr || type_size<kCopy>.pointer() == nullptr ||
      whole_space.pointer() == nullptr || close_space<kCopy>.pointer() == nullptr) {
    return 0;
  }
  int64_t points = 0;
  if (file_space != kAllPoints || memory_space != kAllPoints) {
    points = selected_points<kCopy>(file_space != kAllPoints ? file_space : memory_space);
  } else {
    const H5Id data_space = whole_space(object);
    if (data_space < 0) {
      return 0;
    }
    points = selected_points<kCopy>(data_space);
    close_space<kCopy>(data_space);
  }
  return points < 0 ? 0 : points * int64_t(type_size<kCopy>(type));
}

// Makes and counts a read or a write of a data set or an attribute. `bytes` returns how many bytes the call
// moved; it is called only if the call succeeded. The file of a data set is remembered until it is closed.
// That of an attribute is asked for each time, because an attribute is rarely read twice.
template <unsigned kCopy>
int transfer_and_count(penstock_call kind, H5Id object, bool is_dataset, auto call, auto bytes) noexcept {
  return call_and_time(kind, call, [=](ThreadLog& log, int result, Operation& operation) {
    operation.layer = PENSTOCK_HDF5;
    operation.failed = result < 0 ? EIO : 0;
    operation.offset = 0;
    operation.length = result < 0 ? 0 : bytes();
    const HandleFile file = find_handle(kHdf5Handles<kCopy>, uint64_t(object));
    if (file.file != 0) {
      count_handle(log, file, operation);
      return;
    }
    // A failed call leaves its errors in HDF5's error stack. Each call of HDF5 would clear them.
    char path[4096];
    if (result >= 0 && file_name<kCopy>.pointer() != nullptr &&
        file_name<kCopy>(object, path, sizeof(path)) > 0) {
      const HandleFile named_file = count_named_file(log, path, operation);
      if (is_dataset) {
        remember_handle(kHdf5Handles<kCopy>, uint64_t(object), named_file);
      }
    }
  });
}

template <unsigned kCopy>
H5Id open_and_count(const char* path, auto call) noexcept {
  return call_and_time(PENSTOCK_CALL_OPEN, call, [=](ThreadLog& log, H5Id id, Operation& operation) {
    operation.layer = PENSTOCK_HDF5;
    operation.failed = id < 0 ? EIO : 0;
    const HandleFile file = count_named_file(log, path, operation);
    if (id >= 0) {
      remember_handle(kHdf5Handles<kCopy>, uint64_t(id), file);
    }
  });
}

}  // namespace

PENSTOCK_WRAP_OF_LIBRARY(H5Id, H5Fopen, (const char* path, unsigned flags, H5Id access)) {
  return open_and_count<kCopy>(path, [&] { return real_H5Fopen<kCopy>(path, flags, access); });
}
PENSTOCK_WRAP_OF_LIBRARY(H5Id, H5Fcreate, (const char* path, unsigned flags, H5Id creation, H5Id access)) {
  return open_and_count<kCopy>(path, [&] { return real_H5Fcreate<kCopy>(path, flags, creation, access); });
}
PENSTOCK_WRAP_OF_LIBRARY(int, H5Fclose, (H5Id file)) {
  const HandleFile closed_file = forget_handle(kHdf5Handles<kCopy>, uint64_t(file));
  return call_and_time(
      PENSTOCK_CALL_CLOSE, [&] { return real_H5Fclose<kCopy>(file); },
      [&](ThreadLog& log, int result, Operation& operation) {
        operation.layer = PENSTOCK_HDF5;
        operation.failed = result < 0 ? EIO : 0;
        count_handle(log, closed_file, operation);
      });
}
PENSTOCK_WRAP_OF_LIBRARY(int, H5Dclose, (H5Id dataset)) {
  forget_handle(kHdf5Handles<kCopy>, uint64_t(dataset));
  return real_H5Dclose<kCopy>(dataset);
}
// NOLINTBEGIN(bugprone-macro-parentheses)
#define PENSTOCK_HDF5_MOVE(name, call, buffer_type)                                                      \
  PENSTOCK_WRAP_OF_LIBRARY(                                                                              \
      int, H5D##name,                                                                                    \
      (H5Id dataset, H5Id type, H5Id memory_space, H5Id file_space, H5Id transfer, buffer_type data)) {  \
    return transfer_and_count<kCopy>(                                                                    \
        call, dataset, true,                                                                             \
        [=] { return real_H5D##name<kCopy>(dataset, type, memory_space, file_space, transfer, data); },  \
        [=] {                                                                                            \
          return selected_bytes<kCopy>(dataset, type, memory_space, file_space, dataset_space<kCopy>);   \
        });                                                                                              \
  }                                                                                                      \
  PENSTOCK_WRAP_OF_LIBRARY(int, H5A##name, (H5Id attribute, H5Id type, buffer_type data)) {              \
    return transfer_and_count<kCopy>(                                                                    \
        call, attribute, false, [=] { return real_H5A##name<kCopy>(attribute, type, data); },            \
        [=] {                                                                                            \
          return selected_bytes<kCopy>(attribute, type, kAllPoints, kAllPoints, attribute_space<kCopy>); \
        });                                                                                              \
  }
// NOLINTEND(bugprone-macro-parentheses)
PENSTOCK_HDF5_MOVE(read, PENSTOCK_CALL_READ, void*)
PENSTOCK_HDF5_MOVE(write, PENSTOCK_CALL_WRITE, const void*)
// The bytes of the chunk that begins at `offset`.
template <unsigned kCopy>
static int64_t chunk_bytes(H5Id dataset, const uint64_t* offset) noexcept {
  uint64_t bytes = 0;
  const bool is_known =
      chunk_size<kCopy>.pointer() != nullptr && chunk_size<kCopy>(dataset, offset, &bytes) >= 0;
  return is_known ? int64_t(bytes) : 0;
}
// These move one chunk as it is in the file, such as compressed bytes. HDF5 2.0 exports the function that
// reads as H5Dread_chunk1() and H5Dread_chunk2().
PENSTOCK_WRAP_TWINS_OF_LIBRARY(int, H5Dread_chunk, H5Dread_chunk1,
                               (H5Id dataset, H5Id transfer, const uint64_t* offset, uint32_t* filters,
                                void* out),
                               transfer_and_count<kCopy>(
                                   PENSTOCK_CALL_READ, dataset, true,
                                   [&] { return real(dataset, transfer, offset, filters, out); },
                                   [=] { return chunk_bytes<kCopy>(dataset, offset); }))
PENSTOCK_WRAP_OF_LIBRARY(int, H5Dread_chunk2,
                         (H5Id dataset, H5Id transfer, const uint64_t* offset, uint32_t* filters, void* out,
                          size_t* room)) {
  return transfer_and_count<kCopy>(
      PENSTOCK_CALL_READ, dataset, true,
      [=] { return real_H5Dread_chunk2<kCopy>(dataset, transfer, offset, filters, out, room); },
      [=] { return out == nullptr ? 0 : chunk_bytes<kCopy>(dataset, offset); });
}
PENSTOCK_WRAP_OF_LIBRARY(int, H5Dwrite_chunk,
                         (H5Id dataset, H5Id transfer, uint32_t filters, const uint64_t* offset, size_t bytes,
                          const void* data)) {
  return transfer_and_count<kCopy>(
      PENSTOCK_CALL_WRITE, dataset, true,
      [=] { return real_H5Dwrite_chunk<kCopy>(dataset, transfer, filters, offset, bytes, data); },
      [=] { return int64_t(bytes); });
}
