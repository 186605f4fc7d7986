"""ci/bootstrap: installs what is missing and nothing else; without root it says what to ask for and goes on."""

import os
import pathlib
import stat
import subprocess

import penstock_cli

BOOTSTRAP = penstock_cli.SOURCE / "ci" / "bootstrap"

# Stands in for the compiler: finds every header but those in $MISSING_HEADERS.
COMPILER = """#!/bin/sh
source=$(cat)
for header in $MISSING_HEADERS; do
  case $source in *"<$header>"*) exit 1 ;; esac
done
exit 0
"""
RECORDER = '#!/bin/sh\necho "$(basename "$0") $*" >> "$CALLS"\n'


class Bootstrap(penstock_cli.CliTest):
    def setUp(self):
        super().setUp()
        self.stubs = self.dir / "stubs"
        self.stubs.mkdir()
        self.calls = self.dir / "calls"
        self.stub("compiler", COMPILER)
        for name in ("apt-get", "dnf", "npm", "cmake", "make", "pkg-config", "ccache", "mpicc"):
            self.stub(name, RECORDER)

    def stub(self, name, text):
        path = self.stubs / name
        path.write_text(text, encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def bootstrap(self, *words, missing="", uid=0):
        self.stub("id", f"#!/bin/sh\necho {uid}\n")
        env = {**os.environ, "PATH": f"{self.stubs}:{os.environ['PATH']}", "CXX": str(self.stubs / "compiler"),
               "CALLS": str(self.calls), "MISSING_HEADERS": missing, "PENSTOCK_CHART_FETCH": "no"}
        done = subprocess.run([str(BOOTSTRAP), *words], env=env, capture_output=True, text=True, timeout=60, check=False)
        calls = self.calls.read_text(encoding="utf-8").splitlines() if self.calls.exists() else []
        return done, [call for call in calls if call.startswith(("apt-get", "dnf"))]

    def test_installs_nothing_where_all_is_there(self):
        done, calls = self.bootstrap("build")
        self.assertEqual((done.returncode, calls), (0, []), done.stderr)

    def test_installs_only_what_is_missing(self):
        done, calls = self.bootstrap("build", missing="fmt/core.h isa-l.h")
        self.assertEqual(done.returncode, 0, done.stderr)
        installs = [call for call in calls if " install " in call]
        self.assertEqual(len(installs), 1, calls)
        self.assertTrue(installs[0].endswith(" libfmt-dev libisal-dev"), installs[0])

    def test_without_root_it_names_the_packages_of_each_system_and_goes_on(self):
        done, calls = self.bootstrap("build", missing="CLI/CLI.hpp yaml-cpp/yaml.h", uid=1000)
        self.assertEqual((done.returncode, calls), (0, []))
        for words in ("libcli11-dev libyaml-cpp-dev", "cli11-devel yaml-cpp-devel", "cli11 yaml-cpp", "CLI11 (required)",
                      "configuration files, DLIO's workloads (optional)"):
            self.assertIn(words, done.stderr)

    def test_dry_run_installs_nothing(self):
        done, calls = self.bootstrap("--dry-run", "build", missing="fmt/core.h")
        self.assertEqual((done.returncode, calls), (0, []))
        self.assertIn("libfmt-dev", done.stderr)

    def test_unknown_arguments_are_refused(self):
        done, _ = self.bootstrap("biuld")
        self.assertEqual(done.returncode, 2)
        self.assertIn("choose from:", done.stderr)


class Scripts(penstock_cli.CliTest):
    def test_every_script_explains_itself(self):
        for name in ("bootstrap", "test", "quickstart"):
            done = subprocess.run([str(pathlib.Path(penstock_cli.SOURCE, "ci", name)), "--help"], capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"ci/{name}", done.stdout)


if __name__ == "__main__":
    penstock_cli.main()
