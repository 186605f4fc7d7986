"""What the commands in these folders share: running programs, and sides that take turns so that none has the quieter minutes."""

import contextlib
import json
import os
import pathlib
import signal
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


def run(words, name, accepted=(0,), **kwargs):
    """Runs a program to its end; Failed with its last words unless its exit code is accepted. Returns seconds and standard output."""
    start = time.perf_counter()
    try:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **kwargs)
    except OSError as error:
        raise Failed(f"cannot start {name} ({words[0]}): {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{name} did not end within {error.timeout} s") from error
    seconds = time.perf_counter() - start
    if done.returncode not in accepted:
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
    """Two sides that took turns, as `penstock compare` sees them: both medians, the ratio of ours to theirs by the estimate of Hodges
    and Lehmann, and its 95% interval, which is absent (None) where there are fewer than six pairs."""
    lines = [json.dumps({"schema": 1, "id": f"{arm}-{index}", "started": "2000-01-01T00:00:00Z", "command": "side_by_side", "verdict": "ok",
                         "pair": {"suite": "side_by_side", "arm": arm, "index": index},
                         "metrics": {"figure": {"unit": "", "better": "higher", "per": "pair", "samples": [value]}}})
             for index, pair in enumerate(zip(ours, theirs, strict=True)) for arm, value in zip(("ours", "theirs"), pair)]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as records:
        records.write("\n".join(lines) + "\n")
        records.flush()
        # 1 and 3: worse, and too few pairs for a decision, which is not made here.
        out = run([PENSTOCK, "compare", records.name, "--arms", "theirs,ours", "--metric", "figure", "--no-config", "--json"], "penstock compare",
                  accepted=(0, 1, 3))[1]
    row = json.loads(out.splitlines()[0])
    if row.get("change") is None:
        raise Failed(f"penstock compare: no ratio: {row.get('reason') or out.strip()}")
    low, high = row["interval"] or (None, None)
    return {"pairs": row["candidate_samples"], "ours": row["candidate"], "theirs": row["base"], "ratio": 1 + row["change"],
            "low": None if low is None else 1 + low, "high": None if high is None else 1 + high, "confidence": 0.95 if row["interval"] else None}


def added_by(watched, plain):
    """What `watched` adds to `plain`, in their unit, with its interval; and the median of `plain`."""
    figures = ratio_of(watched, plain)
    added, low, high = (None if figures[name] is None else (figures[name] - 1) * figures["theirs"] for name in ("ratio", "low", "high"))
    return {"added": added, "low": low, "high": high, "plain": figures["theirs"]}


def surely_above(row, limit):
    """The whole interval is above the limit. Without an interval nothing is sure."""
    return row["low"] is not None and row["low"] > limit


def surely_below(row, limit):
    return row["high"] is not None and row["high"] < limit


UNDECIDED = 3  # exit status: too few pairs to tell, as of `penstock compare`


def is_within(row, broken):
    """Whether a row keeps its limit; None where there are too few pairs for an interval."""
    return None if row["low"] is None else not broken


def all_of(judged):
    """False if one is False, else None if one is not known, else True."""
    judged = list(judged)
    return False if False in judged else None if None in judged else True


def judgement_text(holds):
    return {True: "holds", False: "DOES NOT HOLD", None: "unknown: it needs 6 pairs"}[holds]


def status_of(holds):
    return {True: 0, False: 1, None: UNDECIDED}[holds]


def interval_text(row, as_text=lambda value: f"{value:.3f}"):
    return "no interval" if row["low"] is None else f"{as_text(row['low'])} to {as_text(row['high'])}"


def ratio_text(row):
    confidence = "" if row["confidence"] is None else f"{row['confidence']:.0%}, "
    return f"{row['ratio']:.3f} ({interval_text(row)}, {confidence}{row['pairs']} pairs)"


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
