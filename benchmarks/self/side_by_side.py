"""What the commands in these folders share: running programs, and sides that take turns so that none has the quieter minutes."""

import contextlib
import json
import math
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release"))
PENSTOCK = pathlib.Path(os.environ.get("PENSTOCK", BUILD / "penstock"))
LACKING = 77


class Failed(Exception):
    """What went wrong, as a sentence for the user."""


def say(words):
    print(words, file=sys.stderr, flush=True)


def parse_size(text):
    units = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
    word = text.strip().lower().removesuffix("ib")
    unit = word[-1:] if word[-1:].isalpha() else ""
    if unit not in units or not word.removesuffix(unit).isdigit():
        raise ValueError(text)
    return int(word.removesuffix(unit)) * units[unit]


def run(words, name, **kwargs):
    """Runs a program to its end; Failed with its last words unless it exits 0. Returns seconds and standard output."""
    start = time.perf_counter()
    try:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **kwargs)
    except OSError as error:
        raise Failed(f"cannot start {name} ({words[0]}): {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{name} did not end within {error.timeout} s") from error
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
        raise Failed(f"{name} exited {done.returncode}: {' | '.join(last)}")
    return seconds, done.stdout


def check_programs(*programs):
    for program in programs:
        if not os.access(program, os.X_OK):
            raise Failed(f"no {program}: build it with ci/build release (PENSTOCK_BUILD names another build folder)")


@contextlib.contextmanager
def folder_in(folder):
    """A new folder in `folder`, which is made if it is not there, and is left as it was."""
    folder = pathlib.Path(folder)
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        own = tempfile.TemporaryDirectory(dir=folder, prefix="penstock-pairs-")
    except OSError as error:
        raise Failed(f"cannot write to {folder}: {error.strerror}") from error
    with own as path:
        yield path
    for one in made:
        with contextlib.suppress(OSError):
            one.rmdir()


def penstock_read(folder, *words):
    """The records of one `penstock read`, each with the verdict ok; nothing of it stays."""
    with tempfile.TemporaryDirectory() as results:
        out = run([PENSTOCK, "read", folder, *words, "--no-config", "--results", results, "--json"], "penstock read")[1]
    records = [json.loads(line) for line in out.splitlines()]
    for record in records:
        if record["verdict"] not in ("ok", "short"):
            raise Failed(f"penstock read: {record['verdict']}: {record['reason']}")
    return records


def in_turn(rounds, rng, sides):
    """Calls every one of `sides` (a name, something to call) once a round, in random order, `rounds` times. What each
    returned, by its name; fewer rounds, and why, where one could not be had."""
    taken = {name: [] for name in sides}
    for done in range(rounds):
        order = list(sides)
        rng.shuffle(order)
        try:
            got = {name: sides[name]() for name in order}
        except Failed as failure:
            if done == 0:
                raise
            return taken, f"stopped after {done} of {rounds} pairs: {failure}"
        for name, value in got.items():
            taken[name].append(value)
    return taken, ""


def in_turn_behind_one(rounds, rng, sides):
    """As in_turn(), behind a round that is thrown away; Failed where there is none after it."""
    got, stopped = in_turn(rounds + 1, rng, sides)
    if any(len(values) < 2 for values in got.values()):
        raise Failed(stopped)
    return {name: values[1:] for name, values in got.items()}, stopped


def ratio_of(ours, theirs):
    """Medians of two sides that took turns, that of their ratios, and the interval which holds it with so much confidence: by
    order statistics, at least 95% where there are six pairs or more."""
    ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    count = len(ratios)
    low, confidence = 0, 0.0
    for below in range(count // 2):
        outside = sum(math.comb(count, i) for i in range(below + 1)) * 2 / 2**count
        if below > 0 and 1 - outside < 0.95:
            break
        low, confidence = below, 1 - outside
    return {"pairs": count, "ours": statistics.median(ours), "theirs": statistics.median(theirs), "ratio": statistics.median(ratios),
            "low": ratios[low], "high": ratios[count - 1 - low], "confidence": confidence}


def ratio_text(row):
    return f"{row['ratio']:.3f} ({row['low']:.3f} to {row['high']:.3f}, {row['confidence']:.0%}, {row['pairs']} pairs)"


def main(body):
    """Ctrl-C and SIGTERM clean up as an error does."""

    def end(*_):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # one more, as timeout(1) sends, would interrupt the cleaning
        sys.exit(143)

    signal.signal(signal.SIGTERM, end)
    try:
        sys.exit(body())
    except Failed as failure:
        say(f"{pathlib.Path(sys.argv[0]).name}: {failure}")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
