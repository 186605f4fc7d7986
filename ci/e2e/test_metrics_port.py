"""--metrics-port: the live figures of a command that runs, for Prometheus, and the dashboard that shows them."""

import contextlib
import http.client
import json
import re
import shutil
import socket
import subprocess
import time

from messages import message
import penstock_cli
from test_exports import samples_of
from test_ranks import ENVIRONMENT, open_mpi

OPEN_METRICS = "application/openmetrics-text"


class Watched:
    """A command that runs with --metrics-port 0, with its address."""

    def __init__(self, case, *words, prefix=()):
        self.case = case
        self.process = subprocess.Popen([*prefix, penstock_cli.PENSTOCK, *map(str, words), "--metrics-port", "0", "--progress", "never"],
                                        cwd=case.dir, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.printed = ""
        while not (found := re.search(message("live-figures-address", n=r"(\d+)"), self.printed)):
            line = self.process.stderr.readline()
            case.assertTrue(line, f"no address: {self.printed}")
            self.printed += line
        self.port = int(found[1])

    def ask(self, path="/metrics", method="GET", host=None, accept=OPEN_METRICS):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=penstock_cli.PATIENCE_S)
        with contextlib.closing(connection):
            connection.request(method, path, headers={"Accept": accept, "Host": host or f"127.0.0.1:{self.port}"})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()

    def scrapes(self):
        """The figures again and again, until the command ends: family -> {labels as dict items: value}."""
        while self.process.poll() is None:
            try:
                status, _, text = self.ask()
            except OSError:  # it ends just now
                continue
            self.case.assertEqual(status, 200)
            yield {family: {labels: value for labels, value, _ in samples} for family, samples in samples_of(text).items()}
            time.sleep(0.02)

    def end(self, expect=0):
        out = self.process.communicate(timeout=penstock_cli.PATIENCE_S)[1]
        self.case.assertEqual(self.process.returncode, expect, self.printed + out)


def of_tier(figures, family, tier):
    return figures[f"penstock_tier_{family}"].get((("tier", tier),), 0)


class MetricsPort(penstock_cli.CliTest):
    def setUp(self):
        super().setUp()
        if not penstock_cli.has_library("cpp-httplib"):
            return
        self.run_cli("generate", "imagenet", "--out", "data", "--results", "made", "--samples", 200, "--seed", 7, "--set", "median=12KB")

    def skip_without_httplib(self):
        if not penstock_cli.has_library("cpp-httplib"):
            self.skipTest("this build lacks cpp-httplib")

    def watch(self, *words, **kwargs):
        self.skip_without_httplib()
        return Watched(self, *words, **kwargs)

    def test_a_read_shows_its_tiers_while_it_runs(self):
        shutil.copytree(self.dir / "data", self.dir / "copy")
        watched = self.watch("read", "data", "--tier", "copy=posix:copy", "--threads", 2, "--repeat", 3, "--duration", "700ms", "--cache", "asis",
                             "--no-ceiling")
        seen, last = [], {}
        for figures in watched.scrapes():
            seen.append(figures)
            for family in ("read_bytes", "operations", "errors"):
                for labels, value in figures[f"penstock_tier_{family}"].items():
                    self.assertGreaterEqual(value, last.get((family, labels), 0), "a counter never falls")
                    last[family, labels] = value
        watched.end()
        name = next(dict(labels)["tier"] for labels in seen[-1]["penstock_tier_read_bytes"] if dict(labels)["tier"] != "copy")
        self.assertGreater(len(seen), 10)
        for tier in (name, "copy"):
            values = [of_tier(figures, "operations", tier) for figures in seen]
            self.assertGreater(len(set(values)), 3, "it changes within a repeat")
            self.assertGreater(of_tier(seen[-1], "read_bytes", tier), 1e5)
            self.assertEqual(of_tier(seen[-1], "errors", tier), 0)
            self.assertEqual(of_tier(seen[-1], "repeat", tier), 3)
        task = (("task", "read"), ("unit", "repeats"))
        self.assertEqual(max(figures["penstock_progress_planned"].get(task, 0) for figures in seen), 6)
        self.assertGreaterEqual(max(figures["penstock_progress_done"].get(task, 0) for figures in seen), 3)
        self.assertIn(("command", "read"), next(iter(seen[0]["penstock_run_info"])))
        with self.assertRaises(OSError):
            watched.ask()

    def test_its_record_is_the_same_as_without(self):
        self.skip_without_httplib()
        words = ("read", "data", "--threads", 1, "--repeat", 1, "--min-time", "10ms", "--seed", 3, "--no-ceiling")
        with_port, = self.records(*words, "--metrics-port", 0)
        without, = self.records(*words)
        self.assertEqual(with_port["parameters"], without["parameters"])
        self.assertEqual(with_port["work"], without["work"])

    def test_every_measuring_command_has_it(self):
        (self.dir / "sweep.yaml").write_text(
            "name: s\ncommand: read\nnouns: [data]\nfixed: {threads: 1, min-time: 100ms, repeat: 1, no-baseline: true, no-ceiling: true, "
            "cache: asis}\nrepeats: 8\n", encoding="utf-8")
        commands = {
            "generate": ("generate", "imagenet", "--out", "here=posix:made2,write_limit=2MB/s", "--samples", 400, "--set", "median=12KB"),
            "train": ("train", "alexnet", "--data", "data", "--steps", 60, "--batch", 8, "--accelerator", "emulated:step=20ms",
                      "--checkpoint-every", 20, "--checkpoint-to", "safe=posix:checkpoints", "--payload", "1MiB"),
            "checkpoint bench": ("checkpoint", "bench", "here=posix:slow", "--payload", "1MiB", "--steps", 20, "--every", 5, "--step-time", "10ms",
                                 "--repeat", 4),
            "tiers": ("tiers", "--tier", "here=posix:probed", "--probe", "--probe-size", "8MiB", "--min-time", "50ms", "--repeat", 2, "--cache", "asis"),
            "sweep": ("sweep", "sweep.yaml"),
        }
        (self.dir / "probed").mkdir()
        for command, words in commands.items():
            with self.subTest(command=command):
                watched = self.watch(*words)
                most = {}
                for figures in watched.scrapes():
                    for family in ("read_bytes", "written_bytes", "operations", "repeat"):
                        for value in figures[f"penstock_tier_{family}"].values():
                            most[family] = max(value, most.get(family, 0))
                    most["tasks"] = max(len(figures["penstock_progress_done"]), most.get("tasks", 0))
                watched.end()
                self.assertGreater(most["operations"], 0)
                self.assertGreater(most["read_bytes"] + most["written_bytes"], 10000)
                self.assertGreater(most["tasks"], 0)
                if command != "generate":
                    self.assertGreater(most["repeat"], 0)
                if command == "train":
                    self.assertGreater(most["written_bytes"], 1 << 20, "tiers of checkpoints are watched, too")

    def test_errors_are_counted(self):
        for file in sorted((self.dir / "data").rglob("*.JPEG"))[:3]:
            file.unlink()
        watched = self.watch("read", "data", "--threads", 1, "--repeat", 3, "--min-time", "300ms", "--on-error", "skip", "--no-baseline", "--no-ceiling",
                             "--cache", "asis")
        errors = [max(figures["penstock_tier_errors"].values(), default=0) for figures in watched.scrapes()]
        watched.process.communicate()
        self.assertGreaterEqual(errors[-1], 3)

    def test_requests_are_answered_or_refused(self):
        watched = self.watch("read", "data", "--duration", "2s", "--repeat", 1, "--threads", 1, "--no-baseline", "--no-ceiling", "--cache", "asis")
        self.assertIn(OPEN_METRICS, watched.ask()[1]["Content-Type"])
        self.assertIn("version=0.0.4", watched.ask(accept="text/plain")[1]["Content-Type"])
        self.assertEqual(watched.ask("/other")[0], 404)
        self.assertEqual(watched.ask(method="POST")[0], 405)
        self.assertEqual(watched.ask(host="example.org")[0], 403, "a page of another site")
        self.assertEqual(watched.ask(host=f"localhost:{watched.port}")[0], 200)
        self.assertEqual(watched.ask(method="HEAD")[2], "")
        watched.end()

    def test_a_port_in_use_is_an_error_before_anything_starts(self):
        self.skip_without_httplib()
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            done = self.run_cli("read", "data", "--metrics-port", port, "--results", "none", expect=1)
        self.assertIn(message("metrics-port-in-use", n=port), done.stderr)
        self.assertFalse((self.dir / "none").exists())
        self.run_cli("read", "data", "--metrics-port", 70000, "--results", "none", expect=2)
        self.run_cli("describe", "data", "--metrics-port", 0, expect=2)

    def test_a_build_without_the_library_says_so(self):
        if penstock_cli.has_library("cpp-httplib"):
            self.skipTest("this build has cpp-httplib")
        done = self.run_cli("tiers", "--tier", self.dir, "--probe", "--metrics-port", 0, expect=77)
        self.assertIn(message("build-lacks-cpp-httplib"), done.stderr)

    def test_ctrl_c_ends_it_at_once(self):
        watched = self.watch("read", "data", "--duration", "600s", "--repeat", 1, "--threads", 2, "--no-baseline", "--no-ceiling", "--cache", "asis")
        watched.process.send_signal(2)
        watched.end(130)

    def test_one_rank_serves_for_all(self):
        self.skip_without_httplib()
        if not open_mpi():
            self.skipTest("there is no Open MPI")
        watched = self.watch("read", "data", "--duration", "1s", "--repeat", 1, "--threads", 1, "--no-baseline", "--no-ceiling", "--cache", "asis",
                             prefix=("mpirun", "--oversubscribe", "-np", "2"))
        operations = [max(figures["penstock_tier_operations"].values(), default=0) for figures in watched.scrapes()]
        watched.end()
        self.assertGreater(operations[-1], 0)
        with socket.create_server(("127.0.0.1", 0)) as other:
            done = subprocess.run(["mpirun", "--oversubscribe", "-np", "2", penstock_cli.PENSTOCK, "read", "data", "--metrics-port",
                                   str(other.getsockname()[1])], cwd=self.dir, env=ENVIRONMENT, capture_output=True, text=True, check=False,
                                  timeout=penstock_cli.PATIENCE_S)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stderr.count("--metrics-port"), 1, done.stderr)

    def test_the_dashboard_asks_for_what_there_is(self):
        dashboard = json.loads((penstock_cli.SOURCE / "docs" / "grafana-dashboard.json").read_text(encoding="utf-8"))
        queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        queries += [variable["query"]["query"] for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
        asked = set(re.findall(r"\bpenstock_\w+", " ".join(queries)))
        self.assertGreaterEqual(len(asked), 8)
        watched = self.watch("read", "data", "--duration", "1s", "--repeat", 1, "--threads", 1, "--no-baseline", "--no-ceiling", "--cache", "asis")
        labels = {}  # of each metric that is served
        for figures in watched.scrapes():
            if not figures["penstock_tier_operations"]:
                continue  # it has not opened its tier yet
            for line in watched.ask()[2].splitlines():
                if found := re.match(r"(penstock_\w+)(?:\{(.*)\})? ", line):
                    labels.setdefault(found[1], set()).update(re.findall(r'(\w+)="', found[2] or ""))
            break
        watched.process.send_signal(2)
        watched.process.communicate()
        self.assertEqual(asked - labels.keys(), set())
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                metric = re.search(r"penstock_\w+", target["expr"])[0]
                self.assertLessEqual(set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])), labels[metric])
                filters = set(re.findall(r"(\w+)=~", target["expr"])) - {"instance"}  # Prometheus adds the instance
                self.assertLessEqual(filters, labels[metric])


if __name__ == "__main__":
    penstock_cli.main()
