"""ci/regression: the gate that builds, runs in turn and compares, and the proof that it may be believed."""

import json
import os
import pathlib
import subprocess
import xml.etree.ElementTree as ElementTree

from messages import message
import penstock_cli

REGRESSION = penstock_cli.SOURCE / "ci" / "regression"
RECORDING = REGRESSION / "recording.jsonl"
MOST_ALARMS = 3
LEAST_FOUND = 42 / 50


class Gate(penstock_cli.CliTest):
    def call(self, script, *words, expect=0):
        environment = {**os.environ, "PENSTOCK": str(pathlib.Path(penstock_cli.PENSTOCK).resolve())}
        environment.pop("GITHUB_ACTIONS", None)
        done = subprocess.run([str(REGRESSION / script), *map(str, words)], cwd=self.dir, env=environment, capture_output=True, text=True,
                              timeout=penstock_cli.PATIENCE_S, check=False)
        self.assertEqual(done.returncode, expect, f"{done.stdout}\n{done.stderr}")
        return done

    def test_the_proof_holds_on_the_kept_recording(self):
        result = json.loads(self.call("proof", "draw", RECORDING, "--json").stdout)
        self.assertEqual(result["false_alarms"]["suites"], 300)
        self.assertLessEqual(result["false_alarms"]["alarms"], MOST_ALARMS, result["false_alarms"]["which"])
        steady, widened = result["power"], result["power"]["widened"]
        self.assertGreaterEqual(steady["suites"] + widened["suites"], 50)
        for power in (steady, widened):
            self.assertGreaterEqual(power["found"], LEAST_FOUND * power["suites"], power)
        self.assertEqual(result["too_few"]["verdicts_given"], 0)

    def test_the_proof_is_about_the_arms_alone(self):
        """What runs first being slower alarms no one, and a T that is not held is not found."""
        lines = [json.loads(line) for line in RECORDING.read_text(encoding="utf-8").splitlines()]
        for line in lines[1:]:
            for cell, samples in line["samples"].items():
                first = next(arm for arm in line["order"][cell] if arm in "AB")
                rate = samples[first].get("payload_bytes_per_s") or samples[first]["samples_per_s"]
                rate[:] = [value * 0.5 for value in rate]
        broken = self.dir / "broken.jsonl"
        broken.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        # ABBA puts what ran first on both sides in turn, so such a bias widens the noise and alarms no one ...
        result = json.loads(self.call("proof", "draw", broken, "--suites", 10, "--power", 2, "--json").stdout)
        self.assertLessEqual(result["false_alarms"]["alarms"], 1)
        # ... while a recording whose T is as fast as the others has no power.
        for line in lines[1:]:
            for samples in line["samples"].values():
                samples["T"] = samples["A"]
        broken.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        result = json.loads(self.call("proof", "draw", broken, "--suites", 1, "--power", 5, "--json").stdout)
        self.assertEqual(result["power"]["found"] + result["power"]["widened"]["found"], 0)

    def test_a_recording_is_made(self):
        self.call("proof", "record", "-o", "r.jsonl", "--rounds", 1, "--pilots", 1, "--dir", self.dir)
        header, line = [json.loads(text) for text in (self.dir / "r.jsonl").read_text(encoding="utf-8").splitlines()]
        self.assertEqual(sorted(header["cells"]), ["read 1", "read 2", "train"])
        for cell, order in line["order"].items():
            self.assertEqual(sorted(order), ["A", "B", "T"])
            self.assertEqual(sorted(line["samples"][cell]), ["A", "B", "T"])
        self.assertNotIn(str(self.dir), (self.dir / "r.jsonl").read_text(encoding="utf-8"))
        self.assertEqual([path.name for path in self.dir.iterdir()], ["r.jsonl"])
        self.assertIn(message("proof-needs-twice-as-many"), self.call("proof", "draw", "r.jsonl", expect=1).stderr)

    def test_two_programs_are_run_in_turn_and_compared(self):
        if "sweep" not in subprocess.run([penstock_cli.PENSTOCK, "--help"], capture_output=True, text=True, check=False).stdout:
            self.skipTest("this build has no penstock sweep")
        program = pathlib.Path(penstock_cli.PENSTOCK).resolve()
        suite = self.dir / "tiny.yaml"
        suite.write_text("name: tiny\ncommand: read\nnouns: [data]\nfixed: {cache: warm, min-time: 1ms, repeat: 1, no-baseline: true, "
                         "no-ceiling: true}\ngrid:\n  threads: [1]\n", encoding="utf-8")
        words = ["--base", program, "--candidate", program, "--suite", suite, "--pairs", 2, "--generate", "caltech101 --samples 20", "--out", "gate"]
        self.call("gate", *words, expect=3)  # two pairs say nothing
        rows = [json.loads(line) for line in (self.dir / "gate" / "gate.jsonl").read_text(encoding="utf-8").splitlines()]
        paired = [row for row in rows if row.get("metric") == "payload_bytes_per_s"]
        self.assertEqual([(row["outcome"], row["paired"], row["base_samples"]) for row in paired], [("inconclusive", True, 2)])
        ElementTree.parse(self.dir / "gate" / "gate.xml")
        self.assertGreater((self.dir / "gate" / "gate.md").stat().st_size, 0)
        self.assertIn(message("page-heading-what-changed"), (self.dir / "gate" / "report.html").read_text(encoding="utf-8"))
        self.assertIn(message("folder-not-empty"), self.call("gate", *words, expect=2).stderr)

    def test_a_program_that_is_not_there_is_a_tool_error(self):
        self.assertIn("nowhere", self.call("gate", "--base", self.dir / "nowhere", "--candidate", self.dir / "nowhere", expect=2).stderr)


if __name__ == "__main__":
    penstock_cli.main()
