// The coverage matrix: a test program whose rows each read, or write, one file in one way, such as pread() or
// io_uring. The test knows what a profiler must record for each row.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace penstock::matrix {

constexpr std::size_t kBytes = 4096;  // of each file

struct Row {
  const char* group;
  const char* name;
  // `path` is a file of kBytes bytes in lines of 64 bytes. If the row's name ends in "_write", the file does
  // not exist yet and the row creates it. Returns false if the machine lacks what the row needs.
  bool (*run)(const std::string& path);
};

std::span<const Row> posix_rows();
std::span<const Row> stdio_rows();
std::span<const Row> fortified_rows();
std::span<const Row> kernel_rows();  // copies within the kernel, mapped files, and system calls by number
std::span<const Row> async_rows();
std::span<const Row> ring_rows();
std::span<const Row> metadata_rows();
std::span<const Row> process_rows();
std::span<const Row> random_rows();

// Ends the program if `right` is false.
void check(bool right, const char* what);
#define MATRIX_CHECK(expression) ::penstock::matrix::check((expression), #expression)

alignas(4096) extern char block[kBytes];  // the buffer for all reads and writes
void open_and_read(const std::string& path);
const char* own_program();  // path of this program

}  // namespace penstock::matrix
