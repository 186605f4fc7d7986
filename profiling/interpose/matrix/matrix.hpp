// The coverage matrix: each row reads or writes a file of its own in one way. The test knows what the
// profiler must report for each row.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace penstock::matrix {

constexpr size_t kBytes = 4096;  // size of each file

struct Row {
  const char* group;
  const char* name;
  // `path` is a file of kBytes bytes in lines of 64. If the row's name ends in "_write", the file does not
  // exist yet. Returns false if the row needs something that this machine does not have.
  bool (*run)(const std::string& path);
};

std::span<const Row> posix_rows();
std::span<const Row> stdio_rows();
std::span<const Row> fortified_rows();
std::span<const Row> kernel_rows();  // bytes that the kernel moves, mapped files, system calls by number
std::span<const Row> async_rows();
std::span<const Row> ring_rows();
std::span<const Row> metadata_rows();
std::span<const Row> process_rows();
std::span<const Row> random_rows();

// Ends the program if `condition` is false.
void check(bool condition, const char* what);
#define MATRIX_CHECK(expression) ::penstock::matrix::check((expression), #expression)

alignas(4096) extern char block[kBytes];  // the buffer for all reads and writes
void open_and_read(const std::string& path);
const char* own_program();  // the path of this program

}  // namespace penstock::matrix
