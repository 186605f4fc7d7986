// penstock_profile_matrix list               prints the rows: group and name, one per line
// penstock_profile_matrix run FOLDER ROW...  runs each row on FOLDER/ROW; names rows that are not available
// penstock_profile_matrix read PATH          reads the file; some rows execute this program to do so
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "profiling/interpose/matrix/matrix.hpp"

namespace penstock::matrix {

alignas(4096) char block[kBytes];

void check(bool condition, const char* what) {
  if (!condition) {
    std::perror(what);
    std::exit(1);
  }
}

void open_and_read(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  MATRIX_CHECK(::read(fd, block, kBytes) == ssize_t(kBytes));
  MATRIX_CHECK(::close(fd) == 0);
}

const char* own_program() {
  static std::array<char, PATH_MAX> path{};
  MATRIX_CHECK(::readlink("/proc/self/exe", path.data(), path.size() - 1) > 0);
  return path.data();
}

namespace {

const Row* find(std::string_view name) {
  for (const auto rows : {posix_rows(), stdio_rows(), fortified_rows(), kernel_rows(), async_rows(),
                          ring_rows(), metadata_rows(), process_rows(), random_rows()}) {
    for (const Row& row : rows) {
      if (name == row.name) return &row;
      if (name.empty()) std::printf("%s %s\n", row.group, row.name);
    }
  }
  return nullptr;
}

}  // namespace

}  // namespace penstock::matrix

int main(int count, char** argv) {
  using namespace penstock::matrix;
  const std::string_view subcommand = count < 2 ? "" : argv[1];
  if (subcommand == "list") {
    find("");
    return 0;
  }
  if (subcommand == "read" && count == 3) {
    open_and_read(argv[2]);
    return 0;
  }
  if (subcommand != "run" || count < 4) return 2;
  for (size_t i = 0; i < kBytes; ++i) block[i] = char(i % 64 == 63 ? '\n' : 'a' + i % 26);
  const std::string folder = argv[2];
  for (int i = 3; i < count; ++i) {
    const Row* row = find(argv[i]);
    if (row == nullptr) return 2;
    if (!row->run(folder + "/" + row->name)) std::fprintf(stderr, "left out: %s\n", row->name);
  }
  return 0;
}
