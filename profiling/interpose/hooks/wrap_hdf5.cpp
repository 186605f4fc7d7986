// Wrappers of HDF5's files and data sets. They work with any HDF5 library of the program: nothing of it is
// linked or included. HDF5's identifiers have 64 bits since version 1.10.
//
// This layer is above POSIX (or MPI-IO): what HDF5's driver does with descriptors is counted in that layer as
// well.
//
// Threads, memory and signals: the rules of wrap.hpp.
// Locks: finding a handle's file takes handles_lock (handles.hpp), before or after the program's call only.
#include "profiling/interpose/counting/handles.hpp"
#include "profiling/interpose/hooks/wrap.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are in no namespace, like libc's functions

namespace {

using Id = std::int64_t;  // hid_t
constexpr Id kAll = 0;    // H5S_ALL
constexpr unsigned kHdf5 = 2;

constinit RealFunction<Id(Id)> dataset_space{"H5Dget_space"};
constinit RealFunction<int(Id)> close_space{"H5Sclose"};
constinit RealFunction<std::int64_t(Id)> selected_points{"H5Sget_select_npoints"};
constinit RealFunction<std::size_t(Id)> type_size{"H5Tget_size"};
constinit RealFunction<ssize_t(Id, char*, std::size_t)> file_name{"H5Fget_name"};

// The bytes that the program's buffer receives or gives: the selected points times the size of the memory
// type.
std::int64_t selected_bytes(Id dataset, Id type, Id in_memory, Id in_file) noexcept {
  if (selected_points.pointer() == nullptr || type_size.pointer() == nullptr ||
      dataset_space.pointer() == nullptr || close_space.pointer() == nullptr) {
    return 0;
  }
  std::int64_t points = 0;
  if (in_file != kAll || in_memory != kAll) {
    points = selected_points(in_file != kAll ? in_file : in_memory);
  } else {
    const Id space = dataset_space(dataset);
    if (space < 0) {
      return 0;
    }
    points = selected_points(space);
    close_space(space);
  }
  return points < 0 ? 0 : points * static_cast<std::int64_t>(type_size(type));
}

int transfer_and_count(penstock_call kind, Id dataset, Id type, Id in_memory, Id in_file,
                       auto call) noexcept {
  return call_and_time(kind, call, [=](ThreadLog& log, int result, Operation& operation) {
    operation.layer = PENSTOCK_HDF5;
    operation.failed = result < 0 ? EIO : 0;
    operation.offset = 0;
    operation.length = result < 0 ? 0 : selected_bytes(dataset, type, in_memory, in_file);
    const HandleFile file = find_handle(kHdf5, static_cast<std::uint64_t>(dataset));
    if (file.file != 0) {
      count_handle(log, file, operation);
      return;
    }
    char path[4096];
    if (file_name.pointer() != nullptr && file_name(dataset, path, sizeof(path)) > 0) {
      remember_handle(kHdf5, static_cast<std::uint64_t>(dataset), count_named(log, path, operation));
    }
  });
}

Id open_and_count(const char* path, auto call) noexcept {
  return call_and_time(PENSTOCK_CALL_OPEN, call, [=](ThreadLog& log, Id id, Operation& operation) {
    operation.layer = PENSTOCK_HDF5;
    operation.failed = id < 0 ? EIO : 0;
    const HandleFile file = count_named(log, path, operation);
    if (id >= 0) {
      remember_handle(kHdf5, static_cast<std::uint64_t>(id), file);
    }
  });
}

}  // namespace

PENSTOCK_WRAP(Id, H5Fopen, (const char* path, unsigned flags, Id access)) {
  return open_and_count(path, [&] { return real_H5Fopen(path, flags, access); });
}
PENSTOCK_WRAP(Id, H5Fcreate, (const char* path, unsigned flags, Id creation, Id access)) {
  return open_and_count(path, [&] { return real_H5Fcreate(path, flags, creation, access); });
}
PENSTOCK_WRAP(int, H5Fclose, (Id file)) {
  const HandleFile known = forget_handle(kHdf5, static_cast<std::uint64_t>(file));
  return call_and_time(
      PENSTOCK_CALL_CLOSE, [&] { return real_H5Fclose(file); },
      [&](ThreadLog& log, int result, Operation& operation) {
        operation.layer = PENSTOCK_HDF5;
        operation.failed = result < 0 ? EIO : 0;
        count_handle(log, known, operation);
      });
}
PENSTOCK_WRAP(int, H5Dclose, (Id dataset)) {
  forget_handle(kHdf5, static_cast<std::uint64_t>(dataset));
  return real_H5Dclose(dataset);
}
PENSTOCK_WRAP(int, H5Dread, (Id dataset, Id type, Id in_memory, Id in_file, Id transfer, void* out)) {
  return transfer_and_count(PENSTOCK_CALL_READ, dataset, type, in_memory, in_file,
                            [&] { return real_H5Dread(dataset, type, in_memory, in_file, transfer, out); });
}
PENSTOCK_WRAP(int, H5Dwrite, (Id dataset, Id type, Id in_memory, Id in_file, Id transfer, const void* data)) {
  return transfer_and_count(PENSTOCK_CALL_WRITE, dataset, type, in_memory, in_file,
                            [&] { return real_H5Dwrite(dataset, type, in_memory, in_file, transfer, data); });
}
