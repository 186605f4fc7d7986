// The coverage matrix: each row reads, or writes, a file of its own by one route. The test knows what a
// profiler must see of each.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace penstock::matrix {

constexpr std::size_t kBytes = 4096;  // of each file

struct Row {
  const char* group;
  const char* name;
  // `path` is a file of kBytes bytes, lines of 64, where the row's name does not end in "_write"; of the
  // others there is none yet. False: what the row needs is not available here.
  bool (*run)(const std::string& path);
};

std::span<const Row> posix_rows();
std::span<const Row> stdio_rows();
std::span<const Row> fortified_rows();
std::span<const Row> kernel_rows();  // within the kernel, mapped, and by number
std::span<const Row> async_rows();
std::span<const Row> ring_rows();
std::span<const Row> metadata_rows();
std::span<const Row> process_rows();
std::span<const Row> random_rows();

// Whatever fails ends the program.
void check(bool right, const char* what);
#define MATRIX_CHECK(expression) ::penstock::matrix::check((expression), #expression)

alignas(4096) extern char block[kBytes];  // what is read into, and written from
void open_and_read(const std::string& path);
const char* own_program();  // of this process

}  // namespace penstock::matrix
