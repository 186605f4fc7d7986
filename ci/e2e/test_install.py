"""`cmake --install` gives a program that runs from its new place and a package that another project builds against; `uninstall`
removes it. The version is that of the git tag."""

import os
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
        self.call("cmake", "--build", penstock_cli.BUILD, "--target", "uninstall")
        self.assertEqual([name for name, content in penstock_cli.tree(prefix).items() if content is not None or "penstock" in name], [])


@unittest.skipUnless(shutil.which("cmake"), "cmake is not on the path")
class Uninstall(penstock_cli.CliTest):
    """Runs the script of the target in a build folder of its own: other tests may install from this build at the same time."""

    OWN = "share/doc/penstock;include/penstock;lib/cmake/penstock;lib/penstock"

    def setUp(self):
        super().setUp()
        self.prefix = self.dir / "a prefix"
        self.manifest = self.dir / "install_manifest.txt"

    def install(self, *names, destdir=""):
        paths = [self.prefix / name for name in names]
        for path in paths:
            placed = pathlib.Path(f"{destdir}{path}")
            placed.parent.mkdir(parents=True, exist_ok=True)
            placed.write_text("x", encoding="utf-8")
        self.manifest.write_text("\n".join(map(str, paths)), encoding="utf-8")

    def uninstall(self, expect=0, **environment):
        done = subprocess.run(["cmake", "-D", f"MANIFEST={self.manifest}", "-D", "BINDIR=bin", "-D", f"OWN_FOLDERS={self.OWN}", "-P",
                               penstock_cli.SOURCE / "ci" / "cmake" / "uninstall.cmake"], capture_output=True, text=True, timeout=300, check=False,
                              env={**os.environ, **environment})
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_it_removes_what_was_installed_and_no_more(self):
        self.install("bin/penstock", "lib/libpenstock_profile.so", "share/doc/penstock/docs/a page.md", "share/doc/penstock/README.md",
                     "include/penstock/io_backends/core/json.hpp", "share/man/man1/penstock.1")
        (self.prefix / "include" / "penstock" / "mine.hpp").write_text("of the user", encoding="utf-8")
        (self.prefix / "bin" / "other").write_text("of another package", encoding="utf-8")
        self.assertIn("files removed: 6", self.uninstall())
        self.assertEqual({name for name, content in penstock_cli.tree(self.prefix).items()},
                         {"bin", "bin/other", "include", "include/penstock", "include/penstock/mine.hpp", "lib", "share", "share/doc", "share/man",
                          "share/man/man1"})
        self.assertRegex(self.uninstall(), r"files removed: 0\n.*already gone: 6, the first '.*/bin/penstock'")

    def test_it_counts_missing_files_and_removes_links_not_what_they_name(self):
        self.install("bin/penstock", "lib/libpenstock_profile.so", "share/doc/penstock/README.md")
        kept = self.dir / "kept.so"
        (self.prefix / "lib" / "libpenstock_profile.so").rename(kept)
        (self.prefix / "lib" / "libpenstock_profile.so").symlink_to(kept)
        (self.prefix / "share" / "doc" / "penstock" / "README.md").unlink()
        text = self.uninstall()
        self.assertIn("files removed: 2", text)
        self.assertIn("already gone: 1,", text)
        self.assertEqual(kept.read_text(encoding="utf-8"), "x")
        self.assertEqual(set(penstock_cli.tree(self.prefix)), {"bin", "lib", "share", "share/doc"})

    def test_destdir_is_where_it_was_installed(self):
        stage = self.dir / "stage"
        self.install("bin/penstock", "lib/penstock/libfmt.so.9", destdir=stage)
        self.assertIn("already gone: 2,", self.uninstall())
        self.assertIn("files removed: 2", self.uninstall(DESTDIR=str(stage)))
        self.assertEqual([name for name, content in penstock_cli.tree(stage).items() if content is not None], [])

    def test_what_cannot_be_removed_is_an_error_and_the_rest_goes(self):
        self.install("bin/penstock", "share/doc/penstock/README.md")
        (self.prefix / "bin" / "penstock").unlink()
        (self.prefix / "bin" / "penstock").mkdir()  # where a file was
        (self.prefix / "bin" / "penstock" / "x").write_text("x", encoding="utf-8")
        self.assertIn("cannot be removed: 1,", self.uninstall(expect=1))
        self.assertFalse((self.prefix / "share" / "doc" / "penstock").exists())
        self.manifest.unlink()
        self.assertIn(str(self.manifest), self.uninstall(expect=1))


@unittest.skipUnless(shutil.which("cmake") and shutil.which("git"), "cmake or git is not on the path")
class Version(penstock_cli.CliTest):
    """The version comes from the tag of the checkout, or of the tarball that was made of it."""

    def setUp(self):
        super().setUp()
        self.source = self.dir / "source"
        for name in ("ci/packaging/version.txt", "ci/cmake/PenstockVersion.cmake", ".gitattributes"):
            target = self.source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(penstock_cli.SOURCE / name, target)

    def git(self, *words):
        identity = ("-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false")
        return subprocess.run(["git", "-C", self.source, *identity, *words], check=True, capture_output=True).stdout

    def version(self, source):
        return subprocess.run(["cmake", "-D", f"SOURCE={source}", "-D", "FALLBACK=0.9.8", "-P", self.source / "ci/cmake/PenstockVersion.cmake"],
                              check=True, capture_output=True, text=True).stdout.strip()

    def unpacked_archive(self, name):
        target = self.dir / name
        target.mkdir()
        subprocess.run(["tar", "-x", "-C", target], input=self.git("archive", "HEAD"), check=True)
        return target

    def test_tag_commits_after_it_and_neither(self):
        self.assertEqual(self.version(self.source), "0.9.8")
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "one")
        self.assertEqual(self.version(self.source), "0.9.8")
        self.git("tag", "-a", "-m", "release", "v1.2.3")
        self.assertEqual(self.version(self.source), "1.2.3")
        self.git("commit", "-qm", "two", "--allow-empty")
        self.git("tag", "nightly")  # no release
        self.assertRegex(self.version(self.source), r"^1\.2\.3\+1\.g[0-9a-f]{7,}$")

    def test_a_tarball_keeps_the_tag_and_takes_no_other_projects(self):
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "one")
        untagged = self.unpacked_archive("untagged")
        self.git("tag", "v1.2.3")
        tagged = self.unpacked_archive("tagged")
        self.assertEqual((self.version(untagged), self.version(tagged)), ("0.9.8", "1.2.3"))
        self.git("commit", "-qm", "two", "--allow-empty")
        self.git("tag", "v7.7.7")
        within = self.source / "third_party" / "penstock"
        shutil.copytree(untagged, within)
        self.assertEqual((self.version(within), self.version(self.source)), ("0.9.8", "7.7.7"))


if __name__ == "__main__":
    penstock_cli.main()
