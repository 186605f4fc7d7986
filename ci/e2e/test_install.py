"""`cmake --install` gives a program that runs from its new place and a package that another project builds against."""

import pathlib
import shutil
import subprocess
import unittest

import penstock_cli

CONSUMER_LISTS = """
cmake_minimum_required(VERSION 3.22)
project(consumer LANGUAGES C CXX)
find_package(penstock 0.1 REQUIRED)
add_executable(consumer consumer.cpp)
target_link_libraries(consumer PRIVATE penstock::penstock_results)
"""
CONSUMER = """
#include <cstdio>
#include "io_backends/tiers/tier.hpp"
#include "io_backends/core/histogram.hpp"
int main() {
  penstock::Histogram histogram;
  histogram.add(7);
  auto tier = penstock::open_tier("here=posix:.", penstock::kNoNamedTiers);
  if (!tier.ok()) return 1;
  std::printf("%s %.0f\\n", tier->name.c_str(), histogram.percentile(50));
  return 0;
}
"""


@unittest.skipUnless(shutil.which("cmake"), "cmake is not on the path")
class Install(penstock_cli.CliTest):
    def call(self, *words, **kwargs):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, check=False, **kwargs)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_program_and_package(self):
        cache = pathlib.Path(penstock_cli.BUILD, "CMakeCache.txt").read_text(encoding="utf-8")
        if "PENSTOCK_SANITIZE:STRING=\n" not in cache:
            self.skipTest("a consumer would need the same sanitizer")
        prefix = self.dir / "prefix"
        self.call("cmake", "--install", penstock_cli.BUILD, "--prefix", prefix)
        self.assertIn("penstock", self.call(prefix / "bin" / "penstock", "--version"))
        project = self.dir / "consumer"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(CONSUMER_LISTS, encoding="utf-8")
        (project / "consumer.cpp").write_text(CONSUMER, encoding="utf-8")
        self.call("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Debug")
        self.call("cmake", "--build", project / "build")
        self.assertEqual(self.call(project / "build" / "consumer"), "here 7\n")


if __name__ == "__main__":
    penstock_cli.main()
