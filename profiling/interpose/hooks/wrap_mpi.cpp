// Wrappers of MPI-IO. They work with any MPI library of the program; nothing of MPI is linked or included
// here. Handles are pointers in Open MPI, and integers in other implementations. Both kinds are passed in the
// same registers, so the wrappers can pass them on without knowing the kind.
//
// MPI-IO is a layer above POSIX. What the MPI library does with descriptors is counted as POSIX calls as
// well.
//
// Threads, memory and signals: the rules of wrap.hpp.
// Locks: finding a handle's file takes handles_lock (handles.hpp). It is not held during the program's call.
#include "profiling/interpose/counting/handles.hpp"
#include "profiling/interpose/hooks/wrap.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are in no namespace, like libc's functions

namespace {

using Handle = long;  // MPI_Comm, MPI_File, MPI_Datatype or MPI_Info, passed by value
constexpr unsigned kMpiHandles = 1;

// Whether the program passed MPI_STATUS_IGNORE because it wants no status. In every MPI library that constant
// is null or a small number.
bool is_ignored(const void* status) noexcept {
  return reinterpret_cast<unsigned long>(status) < 4096;
}

template <unsigned kCopy>
constinit FunctionOfCopy<void(), kCopy> ompi_byte{"ompi_mpi_byte"};
template <unsigned kCopy>
constinit FunctionOfCopy<int(Handle, int*), kCopy> type_size{"MPI_Type_size"};
template <unsigned kCopy>
constinit FunctionOfCopy<int(const void*, Handle, int*), kCopy> get_count{"MPI_Get_count"};
template <unsigned kCopy>
constinit FunctionOfCopy<int(const void*, Handle, long long*), kCopy> get_elements{"MPI_Get_elements_x"};
template <unsigned kCopy>
constinit FunctionOfCopy<void(), kCopy> mpich_function{"MPIR_Dup_fn"};

// MPI_BYTE; 0 if this MPI library is unknown. In Open MPI it is the address of a variable. In MPICH and the
// libraries that are made of it (Intel MPI, MVAPICH) it is a constant; all of them have MPIR_Dup_fn.
template <unsigned kCopy>
Handle byte_type() noexcept {
  constexpr Handle kByteOfMpich = 0x4c00010d;
  if (const auto byte = ompi_byte<kCopy>.pointer(); byte != nullptr) {
    return reinterpret_cast<Handle>(byte);
  }
  return mpich_function<kCopy>.pointer() != nullptr ? kByteOfMpich : 0;
}

// The bytes that a call has moved, according to its status. Counted in bytes, because the last element may be
// incomplete at the end of a file; MPI has no count of elements then. If the number is not known, the result
// is the requested bytes; `status` is null for calls that have only started.
template <unsigned kCopy>
int64_t transferred_bytes(const void* status, Handle type, int64_t requested_count) noexcept {
  if (const Handle byte = status != nullptr ? byte_type<kCopy>() : 0; byte != 0) {
    long long bytes = -1;
    if (get_elements<kCopy>.pointer() != nullptr && get_elements<kCopy>(status, byte, &bytes) == 0 &&
        bytes >= 0) {
      return bytes;
    }
    int small_bytes = -1;
    if (get_count<kCopy>.pointer() != nullptr && get_count<kCopy>(status, byte, &small_bytes) == 0 &&
        small_bytes >= 0) {
      return small_bytes;
    }
  }
  int type_bytes = 0;
  if (type_size<kCopy>.pointer() == nullptr || type_size<kCopy>(type, &type_bytes) != 0) {
    return 0;
  }
  int count = -1;
  const bool has_count = status != nullptr && get_count<kCopy>.pointer() != nullptr &&
                         get_count<kCopy>(status, type, &count) == 0 && count >= 0;
  return (has_count ? count : requested_count) * type_bytes;
}

// Reads the handle that `file` points to. In Open MPI it is a pointer, and in other implementations an
// integer. Open MPI is recognized by its symbol ompi_mpi_byte, which no other implementation has.
template <unsigned kCopy>
uint64_t handle_at(const void* file) noexcept {
  const bool is_pointer = ompi_byte<kCopy>.pointer() != nullptr;
  return is_pointer ? *static_cast<const uint64_t*>(file) : uint64_t(int64_t(*static_cast<const int*>(file)));
}

// The offset that is recorded for calls that use the position of their handle, which only MPI knows. 0 is
// also a possible offset, so the recorded offsets of these calls mean nothing.
constexpr int64_t kUnknownOffset = 0;

// Makes and counts a call on a file. After the call, and only if it is counted, two functions are called:
// `file` returns the file of the handle, and may take handles_lock for that. `bytes` returns how many bytes
// the call moved; it is called only if the call succeeded.
int count_on_file(penstock_call kind, auto file, int64_t offset, auto call, auto bytes) noexcept {
  return call_and_time(kind, call, [&](ThreadLog& log, int result, Operation& operation) {
    operation.layer = PENSTOCK_MPIIO;
    operation.failed = result;
    operation.offset = offset;
    operation.length = result == 0 ? bytes() : 0;
    count_handle(log, file(), operation);
  });
}

auto file_of_handle(Handle file) noexcept {
  return [file]() noexcept { return find_handle(kMpiHandles, uint64_t(file)); };
}

template <unsigned kCopy>
int transfer_and_count(penstock_call kind, Handle file, int64_t offset, int64_t count, Handle type,
                       void* status, auto call) noexcept {
  alignas(16) char own_status[256] = {};  // larger than MPI_Status of any implementation
  void* status_for_call = is_ignored(status) ? own_status : status;
  return count_on_file(
      kind, file_of_handle(file), offset, [&] { return call(status_for_call); },
      [&] { return transferred_bytes<kCopy>(status_for_call, type, count); });
}

// Makes and counts a call that starts a transfer. The transfer ends in a later wait of MPI. So the requested
// bytes are counted, not the bytes that were moved.
template <unsigned kCopy>
int start_transfer(penstock_call kind, Handle file, int64_t offset, int64_t count, Handle type,
                   auto call) noexcept {
  return count_on_file(kind, file_of_handle(file), offset, call,
                       [&] { return transferred_bytes<kCopy>(nullptr, type, count); });
}

int count_other(penstock_call kind, auto file, auto call) noexcept {
  return count_on_file(kind, file, -1, call, [] { return int64_t{0}; });
}

}  // namespace

// `file` points to memory for the new handle. The handle has 4 or 8 bytes, depending on the implementation.
PENSTOCK_WRAP_OF_LIBRARY(int, MPI_File_open,
                         (Handle communicator, const char* path, int mode, Handle info, void* file)) {
  return call_and_time(
      PENSTOCK_CALL_OPEN, [&] { return real_MPI_File_open<kCopy>(communicator, path, mode, info, file); },
      [&](ThreadLog& log, int result, Operation& operation) {
        operation.layer = PENSTOCK_MPIIO;
        operation.failed = result;
        const HandleFile opened_file = count_named_file(log, path, operation);
        if (result == 0) {
          remember_handle(kMpiHandles, handle_at<kCopy>(file), opened_file);
        }
      });
}
PENSTOCK_WRAP_OF_LIBRARY(int, MPI_File_close, (void* file)) {
  const HandleFile closed_file = forget_handle(kMpiHandles, handle_at<kCopy>(file));
  return count_other(
      PENSTOCK_CALL_CLOSE, [&]() noexcept { return closed_file; },
      [&] { return real_MPI_File_close<kCopy>(file); });
}
PENSTOCK_WRAP_OF_LIBRARY(int, MPI_File_sync, (Handle file)) {
  return count_other(PENSTOCK_CALL_SYNC, file_of_handle(file),
                     [&] { return real_MPI_File_sync<kCopy>(file); });
}
PENSTOCK_WRAP_OF_LIBRARY(int, MPI_File_seek, (Handle file, long offset, int whence)) {
  return count_other(PENSTOCK_CALL_SEEK, file_of_handle(file),
                     [&] { return real_MPI_File_seek<kCopy>(file, offset, whence); });
}
PENSTOCK_WRAP_OF_LIBRARY(int, MPI_File_seek_shared, (Handle file, long offset, int whence)) {
  return count_other(PENSTOCK_CALL_SEEK, file_of_handle(file),
                     [&] { return real_MPI_File_seek_shared<kCopy>(file, offset, whence); });
}
PENSTOCK_WRAP_OF_LIBRARY(int, MPI_File_preallocate, (Handle file, long bytes)) {
  return count_other(PENSTOCK_CALL_OTHER, file_of_handle(file),
                     [&] { return real_MPI_File_preallocate<kCopy>(file, bytes); });
}
PENSTOCK_WRAP_OF_LIBRARY(int, MPI_File_delete, (const char* path, Handle info)) {
  return call_and_time(
      PENSTOCK_CALL_OTHER, [&] { return real_MPI_File_delete<kCopy>(path, info); },
      [&](ThreadLog& log, int result, Operation& operation) {
        operation.layer = PENSTOCK_MPIIO;
        operation.failed = result;
        count_named_file(log, path, operation);
      });
}
PENSTOCK_WRAP_OF_LIBRARY(int, MPI_File_set_size, (Handle file, long bytes)) {
  return count_other(PENSTOCK_CALL_OTHER, file_of_handle(file),
                     [&] { return real_MPI_File_set_size<kCopy>(file, bytes); });
}
PENSTOCK_WRAP_OF_LIBRARY(int, MPI_File_set_view,
                         (Handle file, long displacement, Handle element, Handle type,
                          const char* representation, Handle info)) {
  return count_other(PENSTOCK_CALL_OTHER, file_of_handle(file), [&] {
    return real_MPI_File_set_view<kCopy>(file, displacement, element, type, representation, info);
  });
}

// NOLINTBEGIN(bugprone-macro-parentheses)
#define PENSTOCK_MPI_MOVE(name, call, buffer_type, count_type)                                              \
  PENSTOCK_WRAP_OF_LIBRARY(int, name,                                                                       \
                           (Handle file, buffer_type data, count_type count, Handle type, void* status)) {  \
    return transfer_and_count<kCopy>(call, file, kUnknownOffset, count, type, status,                       \
                                     [&](void* status_for_call) {                                           \
                                       return real_##name<kCopy>(file, data, count, type, status_for_call); \
                                     });                                                                    \
  }
#define PENSTOCK_MPI_MOVE_AT(name, call, buffer_type, count_type)                                          \
  PENSTOCK_WRAP_OF_LIBRARY(                                                                                \
      int, name,                                                                                           \
      (Handle file, long offset, buffer_type data, count_type count, Handle type, void* status)) {         \
    return transfer_and_count<kCopy>(call, file, offset, count, type, status, [&](void* status_for_call) { \
      return real_##name<kCopy>(file, offset, data, count, type, status_for_call);                         \
    });                                                                                                    \
  }
#define PENSTOCK_MPI_START(name, call, buffer_type, count_type)                                             \
  PENSTOCK_WRAP_OF_LIBRARY(int, name,                                                                       \
                           (Handle file, buffer_type data, count_type count, Handle type, void* request)) { \
    return start_transfer<kCopy>(call, file, kUnknownOffset, count, type,                                   \
                                 [&] { return real_##name<kCopy>(file, data, count, type, request); });     \
  }
#define PENSTOCK_MPI_START_AT(name, call, buffer_type, count_type)                                  \
  PENSTOCK_WRAP_OF_LIBRARY(                                                                         \
      int, name,                                                                                    \
      (Handle file, long offset, buffer_type data, count_type count, Handle type, void* request)) { \
    return start_transfer<kCopy>(call, file, offset, count, type, [&] {                             \
      return real_##name<kCopy>(file, offset, data, count, type, request);                          \
    });                                                                                             \
  }
#define PENSTOCK_MPI_BEGIN(name, call, buffer_type, count_type)                                         \
  PENSTOCK_WRAP_OF_LIBRARY(int, name, (Handle file, buffer_type data, count_type count, Handle type)) { \
    return start_transfer<kCopy>(call, file, kUnknownOffset, count, type,                               \
                                 [&] { return real_##name<kCopy>(file, data, count, type); });          \
  }
#define PENSTOCK_MPI_BEGIN_AT(name, call, buffer_type, count_type)                                        \
  PENSTOCK_WRAP_OF_LIBRARY(int, name,                                                                     \
                           (Handle file, long offset, buffer_type data, count_type count, Handle type)) { \
    return start_transfer<kCopy>(call, file, offset, count, type,                                         \
                                 [&] { return real_##name<kCopy>(file, offset, data, count, type); });    \
  }
// NOLINTEND(bugprone-macro-parentheses)

// Wraps four calls with the same parameters: one that reads, one that writes, and those whose names end in
// "_c", which MPI 4 has. Their count has 64 bits.
#define PENSTOCK_MPI_BOTH(kind, read, write)                                \
  PENSTOCK_MPI_##kind(read, PENSTOCK_CALL_READ, void*, int)                 \
      PENSTOCK_MPI_##kind(write, PENSTOCK_CALL_WRITE, const void*, int)     \
          PENSTOCK_MPI_##kind(read##_c, PENSTOCK_CALL_READ, void*, int64_t) \
              PENSTOCK_MPI_##kind(write##_c, PENSTOCK_CALL_WRITE, const void*, int64_t)
PENSTOCK_MPI_BOTH(MOVE, MPI_File_read, MPI_File_write)
PENSTOCK_MPI_BOTH(MOVE, MPI_File_read_all, MPI_File_write_all)
PENSTOCK_MPI_BOTH(MOVE, MPI_File_read_shared, MPI_File_write_shared)
PENSTOCK_MPI_BOTH(MOVE, MPI_File_read_ordered, MPI_File_write_ordered)
PENSTOCK_MPI_BOTH(MOVE_AT, MPI_File_read_at, MPI_File_write_at)
PENSTOCK_MPI_BOTH(MOVE_AT, MPI_File_read_at_all, MPI_File_write_at_all)
PENSTOCK_MPI_BOTH(START, MPI_File_iread, MPI_File_iwrite)
PENSTOCK_MPI_BOTH(START, MPI_File_iread_all, MPI_File_iwrite_all)
PENSTOCK_MPI_BOTH(START, MPI_File_iread_shared, MPI_File_iwrite_shared)
PENSTOCK_MPI_BOTH(START_AT, MPI_File_iread_at, MPI_File_iwrite_at)
PENSTOCK_MPI_BOTH(START_AT, MPI_File_iread_at_all, MPI_File_iwrite_at_all)
PENSTOCK_MPI_BOTH(BEGIN, MPI_File_read_all_begin, MPI_File_write_all_begin)
PENSTOCK_MPI_BOTH(BEGIN, MPI_File_read_ordered_begin, MPI_File_write_ordered_begin)
PENSTOCK_MPI_BOTH(BEGIN_AT, MPI_File_read_at_all_begin, MPI_File_write_at_all_begin)
