"""Penstock from Python: run it, read its records, and mark the steps of a program that it profiles.

    import penstock_io as penstock

    penstock.run(["read", "data", "--threads", "1,2,4"])      # runs the program, returns its records
    penstock.records("penstock-results")                      # list of dicts, one for each record
    penstock.records("penstock-results", as_frame=True)       # pandas, one row for each record
    with penstock.step(): ...                                 # a training step, under `penstock profile run`

It needs nothing but Python. Only `as_frame` imports pandas. Units are those of the records: bytes, seconds, B/s.
"""

import contextlib
import ctypes
import errno
import json
import os
import pathlib
import shutil
import subprocess
import warnings

__all__ = ["PenstockError", "frame", "program", "records", "run", "step", "window"]

_BUNDLE = pathlib.Path(__file__).resolve().parent / "bundle"
_SCHEMA = 1
_PROFILER = "libpenstock_profile.so"


class PenstockError(Exception):
    """A run that failed. `returncode`, `stderr` (text), and `records`: those that the run printed nevertheless."""

    def __init__(self, arguments, returncode, stderr, found):
        super().__init__(f"penstock {' '.join(arguments)}: exit code {returncode}\n{stderr.strip()}")
        self.returncode = returncode
        self.stderr = stderr
        self.records = found


def program():
    """The path of the program: $PENSTOCK, else the one of this package, else the one on the PATH."""
    bundled = _BUNDLE / "bin" / "penstock"
    found = os.environ.get("PENSTOCK") or (str(bundled) if bundled.exists() else shutil.which("penstock"))
    if not found:
        raise FileNotFoundError(f"there is no penstock: '{bundled}' does not exist, and the PATH has none. Name it in the environment variable PENSTOCK.")
    return found


def run(arguments, **popen):
    """Runs `penstock ARGUMENTS --json` and returns its records. Raises PenstockError with the text of stderr if it fails.

    Other arguments are those of subprocess.run: `cwd`, `env`, `timeout`. A run with a failed record fails, and the error has the records.
    """
    words = [os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in arguments]
    end = words.index("--") if "--" in words else len(words)
    if "--json" not in words[:end]:
        words.insert(end, "--json")
    done = subprocess.run([program(), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **popen)
    stderr = done.stderr.decode("utf-8", "replace")
    found = []
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            if done.returncode == 0:
                raise PenstockError(words, 0, f"{stderr}\nits output is no JSON: {line[:200]!r}", found) from None
    if done.returncode != 0:
        raise PenstockError(words, done.returncode, stderr, found)
    return found


def _crc32c_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC32C = _crc32c_table()


def _crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC32C[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _parse_line(line):
    """The record of a line and its seal (None: it has none). Raises ValueError with the reason if the line is no sound record."""
    record = json.loads(line)
    if not isinstance(record, dict) or "schema" not in record:
        raise ValueError("not a record of Penstock")
    if record["schema"] != _SCHEMA:
        raise ValueError(f"schema {record['schema']!r}, and this version reads {_SCHEMA}")
    seal = record.pop("seal", None)
    body, mark, checksum = line.rstrip().rpartition(b',"crc32c":"')
    if seal is None and not (mark and checksum.endswith(b'"}}')):
        return record, None
    if checksum != b'%08x"}}' % _crc32c(body) or not isinstance(seal, dict):
        raise ValueError("changed since it was written: its checksum does not hold")
    return record, seal


def _read_file(path, found, problems):
    """Adds the records of a file to `found`, and to `problems` each line that is left out or, as the seals tell, missing."""
    wrong = []
    next_line, lines, sound = 1, 0, 0  # of the run that is being read; lines 0: none is

    def missing(last, of):
        if next_line <= last:
            wrong.append(f"{path}: lines that are missing of the {of} of a run: {last - next_line + 1}, the first {next_line}")

    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            record, seal = _parse_line(line)
        except (ValueError, RecursionError) as reason:
            wrong.append(f"{path}:{number}: {reason}")
            next_line += 1
            continue
        sound += 1
        found.append(record)
        if seal is None:
            continue
        if lines and (seal["of"] != lines or seal["line"] < next_line):
            missing(lines, lines)
            next_line = 1
        missing(seal["line"] - 1, seal["of"])
        next_line, lines = seal["line"] + 1, seal["of"]
        if next_line > lines:
            next_line, lines = 1, 0
    if lines:
        missing(lines, lines)
    if wrong and not sound:  # such as the JSON of another tool, each of whose lines is no record
        wrong = [f"{wrong[0]} (`penstock report` also reads results of other tools)"]
    problems += wrong


def records(path="penstock-results", as_frame=False, repeats=False):
    """The records of a file, of a folder (its *.json and *.jsonl files, not those of sub-folders), or of a list of them.

    A list of dicts, as `--json` prints them; with `as_frame` a pandas DataFrame (see frame()). A line that is damaged or no record of
    Penstock is left out, and so is a file that cannot be read: one warning counts them and names the first.
    """
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    found, problems = [], []
    for top in map(pathlib.Path, paths):
        files = sorted(file for file in top.iterdir() if file.suffix.lower() in (".json", ".jsonl") and not file.name.startswith(".")) if top.is_dir() else [top]
        for file in files:
            if file != top and not file.is_file():
                problems.append(f"{file}: not a file")
                continue
            try:
                _read_file(file, found, problems)
            except OSError as reason:
                if file == top:
                    raise
                problems.append(f"{file}: {reason.strerror}")
    if problems:
        warnings.warn(f"lines or files that were left out: {len(problems)}, the first {problems[0]}", stacklevel=2)
    return frame(found, repeats) if as_frame else found


def _columns(record):
    """What identifies a record: (name, value) of each column that is neither a parameter nor a metric."""
    tiers = record.get("tiers") or {}
    tier = tiers.get("data") or next(iter(tiers.values()), {})
    environment = record.get("environment") or {}
    plain = {"id": record.get("id"), "started": record.get("started"), "command": record.get("command"), "backend": tier.get("backend"),
             "fs_type": tier.get("fs_type"), "cache_state": (record.get("cache") or {}).get("client_data"), "recipe": (record.get("corpus") or {}).get("recipe"),
             "host": environment.get("host"), "version": (environment.get("versions") or {}).get("penstock"), "verdict": record.get("verdict"),
             "reason": record.get("reason")}
    plain.update({f"label.{key}": value for key, value in (record.get("label") or {}).items()})
    return plain


def _rows(record, repeats):
    """One row of metrics, or one for each repeat: (number of the repeat or None, name -> value)."""
    metrics = record.get("metrics") or {}
    if not repeats:
        return [(None, {name: metric.get("value") for name, metric in metrics.items()})]
    per = next((unit for unit in ("repeat", "checkpoint", "step") if any(metric.get("per") == unit for metric in metrics.values())), "run")
    count = max((len(metric.get("samples") or ()) for metric in metrics.values() if metric.get("per") == per), default=0)
    rows = []
    for number in range(count):
        row = {}
        for name, metric in metrics.items():
            samples = metric.get("samples") or ()
            if metric.get("per") == per:
                row[name] = samples[number] if number < len(samples) else None
            elif metric.get("per") == "run":
                row[name] = metric.get("value")
        rows.append((number, row))
    return rows


def frame(found, repeats=False):
    """A pandas DataFrame of records: one row for each, or with `repeats` one for each repeat (checkpoint, step) that they have samples of.

    Columns: what identifies the record (`command`, `backend`, `cache_state`, `host`, `verdict`, ...), its parameters (`tier`, `threads`,
    ...), its metrics (`payload_bytes_per_s`, ...; the median, or the sample of the repeat). With `repeats` the column `repeat` counts from
    0, and metrics of the whole run have the same value in each row. A parameter whose name another column has is `parameters.NAME`.
    """
    try:
        import pandas  # only here: the rest of the module needs nothing but Python
    except ImportError as reason:
        raise ImportError("a frame needs pandas: pip install pandas") from reason
    taken = {name for record in found for name in record.get("metrics") or {}} | {name for record in found for name in _columns(record)} | {"repeat"}
    rows = []
    for record in found:
        parameters = {f"parameters.{name}" if name in taken else name: value for name, value in (record.get("parameters") or {}).items()}
        for number, metrics in _rows(record, repeats):
            rows.append({**_columns(record), **parameters, **({} if number is None else {"repeat": number}), **metrics})
    return pandas.DataFrame(rows)


_loaded = None


def _profiler(path=None):
    """The profiler's library, or None if it is not in this process. With `path` it is loaded from there if it is not."""
    global _loaded
    if _loaded is None:
        try:
            # By its name alone, so this finds the one that `profile run` or `profile attach` brought, and loads none.
            _loaded = ctypes.CDLL(_PROFILER, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
        except OSError:
            if path is None:
                return None
            _loaded = ctypes.CDLL(str(path))
    return _loaded


def _library_path():
    """Where the profiler's library is: $PENSTOCK_PROFILE_LIBRARY, or next to the program or in its library folder."""
    named = os.environ.get("PENSTOCK_PROFILE_LIBRARY")
    if named:
        return named
    folder = pathlib.Path(program()).resolve().parent
    for path in (folder / _PROFILER, folder.parent / "lib" / _PROFILER):
        if path.exists():
            return path
    raise FileNotFoundError(f"'{_PROFILER}' is neither in '{folder}' nor in '{folder.parent / 'lib'}': name it in PENSTOCK_PROFILE_LIBRARY")


@contextlib.contextmanager
def step():
    """A training step of a program that is profiled. Without a profiler it does nothing. A step that raises does not count."""
    yield
    library = _profiler()
    if library is not None:
        library.penstock_profile_step()


@contextlib.contextmanager
def window(label=None, session=None):
    """A window of the profile: what the program does within it has a file of its own in the session (`profile report --by window`).

    Where the program is not profiled it does nothing, unless `session` names a folder: then the profiler records from here to the end of
    the block into that folder. OSError: EALREADY if a window is open, EBUSY if another session is recorded.
    """
    library = _profiler() if session is None else _profiler(_library_path())
    if library is None:
        yield
        return
    code = library.penstock_profile_start(None if session is None else os.fsencode(session), None if label is None else str(label).encode())
    if session is None and code == errno.EINVAL:  # the library is in the process and records no session
        yield
        return
    if code != 0:
        raise OSError(code, f"no window begins: {os.strerror(code)}", session)
    try:
        yield
    finally:
        library.penstock_profile_stop()
