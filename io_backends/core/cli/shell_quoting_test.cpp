#include "io_backends/core/cli/shell_quoting.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace penstock {
namespace {

TEST(ShellQuoting, AShellReadsTheSameText) {
  const std::vector<std::string> words{"a", "b c", "it's", "", "$x", "posix:/d,direct=1"};
  EXPECT_EQ(shell_line(words), "a 'b c' 'it'\\''s' '' '$x' posix:/d,direct=1");
  EXPECT_EQ(shell_word("a;b\n"), "'a;b\n'");
}

}  // namespace
}  // namespace penstock
