// Rows for POSIX aio, and for the kernel's aio through libaio and by system call numbers.
#include <aio.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "profiling/interpose/matrix/matrix.hpp"

#ifdef PENSTOCK_WITH_LIBAIO
// Declared here because libaio's header may not be installed.
extern "C" {
int io_setup(int most_events, aio_context_t* context);
int io_submit(aio_context_t context, long count, iocb** blocks);
int io_getevents(aio_context_t context, long at_least, long at_most, io_event* events, timespec* timeout);
int io_destroy(aio_context_t context);
}
#endif

namespace penstock::matrix {

namespace {

constexpr auto kWhole = ssize_t(kBytes);

int open_for(const std::string& path, bool writes) {
  const int fd = ::open(path.c_str(), writes ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0600);
  MATRIX_CHECK(fd >= 0);
  return fd;
}

aiocb block_of(int fd) {
  aiocb request{};
  request.aio_fildes = fd;
  request.aio_buf = block;
  request.aio_nbytes = kBytes;
  return request;
}

bool transfer_by_aio(const std::string& path, bool writes, bool closes_first) {
  const int fd = open_for(path, writes);
  aiocb request = block_of(fd);
  MATRIX_CHECK((writes ? ::aio_write(&request) : ::aio_read(&request)) == 0);
  const aiocb* const list[] = {&request};
  while (::aio_error(&request) == EINPROGRESS) ::aio_suspend(list, 1, nullptr);
  if (closes_first) MATRIX_CHECK(::close(fd) == 0);
  MATRIX_CHECK(::aio_return(&request) == kWhole);
  if (!closes_first) MATRIX_CHECK(::close(fd) == 0);
  return true;
}

bool transfer_by_listio(const std::string& path, bool writes) {
  const int fd = open_for(path, writes);
  aiocb request = block_of(fd);
  request.aio_lio_opcode = writes ? LIO_WRITE : LIO_READ;
  aiocb* const list[] = {&request};
  MATRIX_CHECK(::lio_listio(LIO_WAIT, list, 1, nullptr) == 0 && ::aio_return(&request) == kWhole);
  return ::close(fd) == 0;
}

bool read_without_aio_return(const std::string& path) {
  static aiocb request;
  request = block_of(open_for(path, false));
  MATRIX_CHECK(::aio_read(&request) == 0);
  const aiocb* const list[] = {&request};
  while (::aio_suspend(list, 1, nullptr) != 0) {
  }
  return true;
}

iocb request_of(int fd, bool writes) {
  iocb request{};
  request.aio_fildes = uint32_t(fd);
  request.aio_lio_opcode = writes ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
  request.aio_buf = reinterpret_cast<uint64_t>(block);
  request.aio_nbytes = kBytes;
  return request;
}

bool transfer_by_number(const std::string& path, bool writes) {
  const int fd = open_for(path, writes);
  aio_context_t context = 0;
  if (::syscall(SYS_io_setup, 4U, &context) != 0) return false;
  iocb request = request_of(fd, writes);
  iocb* list[] = {&request};
  std::array<io_event, 4> events{};
  MATRIX_CHECK(::syscall(SYS_io_submit, context, 1L, list) == 1);
  MATRIX_CHECK(::close(fd) == 0);
  MATRIX_CHECK(::syscall(SYS_io_getevents, context, 1L, 4L, events.data(), nullptr) == 1);
  MATRIX_CHECK(events[0].res == kWhole && ::syscall(SYS_io_destroy, context) == 0);
  return true;
}

#ifdef PENSTOCK_WITH_LIBAIO
bool transfer_by_libaio(const std::string& path, bool writes) {
  const int fd = open_for(path, writes);
  aio_context_t context = 0;
  if (::io_setup(4, &context) != 0) return false;
  iocb request = request_of(fd, writes);
  iocb* list[] = {&request};
  std::array<io_event, 4> events{};
  MATRIX_CHECK(::io_submit(context, 1, list) == 1);
  MATRIX_CHECK(::io_getevents(context, 1, 4, events.data(), nullptr) == 1);
  MATRIX_CHECK(events[0].res == kWhole && ::io_destroy(context) == 0 && ::close(fd) == 0);
  return true;
}
#else
bool transfer_by_libaio(const std::string&, bool) {
  return false;
}
#endif

constexpr Row kRows[] = {
    {"aio", "aio", [](const std::string& path) { return transfer_by_aio(path, false, false); }},
    {"aio", "aio_write", [](const std::string& path) { return transfer_by_aio(path, true, false); }},
    {"aio", "aio_closed", [](const std::string& path) { return transfer_by_aio(path, false, true); }},
    {"aio", "lio_listio", [](const std::string& path) { return transfer_by_listio(path, false); }},
    {"aio", "lio_listio_write", [](const std::string& path) { return transfer_by_listio(path, true); }},
    {"aio", "aio_not_asked_for", read_without_aio_return},
    {"queues", "libaio", [](const std::string& path) { return transfer_by_libaio(path, false); }},
    {"queues", "libaio_write", [](const std::string& path) { return transfer_by_libaio(path, true); }},
    {"queues", "syscall_io_submit", [](const std::string& path) { return transfer_by_number(path, false); }},
    {"queues", "syscall_io_submit_write",
     [](const std::string& path) { return transfer_by_number(path, true); }},
};

}  // namespace

std::span<const Row> async_rows() {
  return kRows;
}

}  // namespace penstock::matrix
