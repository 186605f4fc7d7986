"""What the commands here share: places to write to, samples taken in turn, and how their rates are shown."""

import contextlib
import json
import mmap
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from side_by_side import BUILD, PENSTOCK, ROOT, Failed, in_turn, parse_size, run, say

WRITE_CONSTANT = BUILD / "benchmarks" / "self" / "rates" / "penstock_write_constant"
MICROBENCH = BUILD / "benchmarks" / "self" / "micro" / "penstock_microbench"  # where there is Google Benchmark
MIB = 1 << 20
FEW_FILES = 1000  # so few may be deleted between samples on a disk
FIRST_BYTES = 64 * MIB
MOST_GROWTH = 16
MARGIN = 1.15  # samples vary: aim above the wanted seconds
MOST_OF_MEMORY = 0.48  # for a data set on tmpfs
TOUCHED = 1.2  # of what comes: freed memory does not all come back
PILOTS = 4  # data sets' room for finding the size

QUIET_TENSORFLOW = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "TF_ENABLE_ONEDNN_OPTS": "0"}


def python_with_tensorflow():
    """PENSTOCK_LOADERS_PYTHON, that of ci/interop, or this one; None where none has it."""
    for python in (os.environ.get("PENSTOCK_LOADERS_PYTHON"), ROOT / "build" / "interop" / "bin" / "python", sys.executable):
        if python and pathlib.Path(python).exists() and subprocess.run([python, "-c", "import tensorflow"], capture_output=True, check=False,
                                                                       env=os.environ | QUIET_TENSORFLOW).returncode == 0:
            return str(python)
    return None


def mem_available():
    with open("/proc/meminfo", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def touch_memory(size):
    """Memory that a virtual machine has not used for a while is slow to come by: the page cache is to find it touched."""
    with mmap.mmap(-1, min(size, mem_available() // 2), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory[::mmap.PAGESIZE] = b"1" * len(range(0, len(memory), mmap.PAGESIZE))


class Target:
    """A folder to write to; everything is left in folders of its own, which close() removes.

    On a disk nothing that has many files is removed before: ext4 looks past every inode that was deleted within the last
    minutes, one by one, when it makes new ones, which would make all sides of a comparison many times slower."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        try:
            self._made = not self.folder.exists()
            self.folder.mkdir(parents=True, exist_ok=True)
            self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="penstock-rates-", dir=self.folder))
        except OSError as error:
            raise Failed(f"cannot write to '{folder}': {error.strerror}") from error
        self.file_system = file_system_of(self.scratch)
        self.memory = self.file_system in ("tmpfs", "ramfs")
        self._count = 0

    def close(self):
        shutil.rmtree(self.scratch, ignore_errors=True)
        if self._made:
            with contextlib.suppress(OSError):  # somebody else's by now
                self.folder.rmdir()

    def free(self):
        room = os.statvfs(self.scratch)
        return room.f_bavail * room.f_frsize

    def room_for_each(self, pairs, at_least):
        """The most bytes that each sample of that many pairs may write; Failed where that is less than `at_least`."""
        free = self.free()
        room = min(mem_available() * MOST_OF_MEMORY, free * 0.9) if self.memory else free * 0.85 / (2 * pairs + PILOTS)
        if room < at_least:
            raise Failed(f"'{self.folder}' has no room for samples of {at_least / MIB:.0f} MiB and more")
        return int(room)

    def new_folder(self):
        self._count += 1
        return self.scratch / str(self._count)

    def prepare(self, size):
        """Right before something of `size` bytes is written and timed."""
        if size * 1.05 > self.free():
            raise Failed(f"'{self.folder}' has no room for another {size / MIB:.0f} MiB")
        if not self.memory:
            os.sync()
            touch_memory(size)
            return
        touched = self.new_folder()
        touched.mkdir()
        write_constant([(min(int(size * TOUCHED), self.free()), "touched")], touched, 1, settle=False)
        shutil.rmtree(touched)

    def done_with(self, folder):
        """After what was timed."""
        if self.memory:
            shutil.rmtree(folder)

    def forget(self, files):
        """After a row: frees space for the next row where files are in memory or few; `files`: how many each sample had."""
        if self.memory or files * self._count <= FEW_FILES:
            shutil.rmtree(self.scratch)
            self.scratch.mkdir()
            self._count = 0


def file_system_of(path):
    device = os.stat(path).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    with open("/proc/self/mountinfo", encoding="utf-8") as lines:
        for line in lines:
            mount, _, kind = line.partition(" - ")
            if mount.split()[2] == wanted:
                return kind.split()[0]
    return "unknown"


def enough_samples(sample_bytes, most_bytes, step, min_seconds, seconds_of):
    """How many samples, a multiple of `step`, last min_seconds within most_bytes, and how many seconds they took last."""
    def whole(samples):
        return max(int(samples) // step, 1) * step

    samples = whole(min(FIRST_BYTES, most_bytes) / sample_bytes)
    while (seconds := seconds_of(samples)) < min_seconds:
        more = whole(min(samples * min(MARGIN * min_seconds / seconds, MOST_GROWTH), most_bytes / sample_bytes))
        if more <= samples:
            break
        samples = more
    return samples, seconds


def listing(folder):
    """(bytes, name) of every file of a data set, without Penstock's own files."""
    found = []
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != ".penstock")
        for name in sorted(names):
            file = os.path.join(path, name)
            found.append((os.path.getsize(file), os.path.relpath(file, folder)))
    return found


def write_constant(files, folder, threads, settle, stock=MIB):
    """Seconds from the yardstick's first call to its last: its start-up is not counted."""
    words = [WRITE_CONSTANT, folder, "--threads", threads, "--stock", stock, *(["--settle"] if settle else [])]
    lines = "".join(f"{size} {name}\n" for size, name in files)
    return float(run(words, "the yardstick", input=lines)[1].split()[0])


def repeats_in_turn(pairs, rng, first, second):
    """As in_turn(), of two; pairs of what they returned."""
    taken, stopped = in_turn(pairs, rng, {"first": first, "second": second})
    return list(zip(taken["first"], taken["second"], strict=True)), stopped


def make_pictures(folder, samples, results):
    run([PENSTOCK, "generate", "imagenet", "--out", folder, "--samples", samples, "--seed", 1, "--no-config", "--progress", "never",
         "--results", results], "penstock generate")


def train_alexnet(folder, results, *words, accepted=("ok",)):
    """The record of a run, whose verdict is one of those accepted."""
    record = json.loads(run([PENSTOCK, "train", "alexnet", "--data", folder, *words, "--no-config", "--json", "--results", results],
                            "penstock train")[1])
    if record["verdict"] not in accepted:
        raise Failed(f"penstock train: {record['verdict']}: {record['reason']}")
    return record


def add_options(parser):
    """Those that every command here has."""
    parser.add_argument("--out", action="append", required=True, metavar="DIR", help="where to write; again for another tier")
    parser.add_argument("--pairs", type=int, default=6, metavar="N", help="default 6; fewer give no interval")
    parser.add_argument("--min-seconds", type=float, default=2, metavar="S", help="of a sample, default 2")
    parser.add_argument("--most-bytes", type=parse_size, default=0, metavar="SIZE",
                        help="of a data set; default: what there is room for")
    parser.add_argument("--seed", type=int, metavar="N", help="of the order within pairs")
    parser.add_argument("--json", action="store_true", help="one object a row instead of the table")


def check_options(parser, options):
    if options.pairs < 1 or not options.min_seconds >= 0:
        parser.error("--pairs is from 1 on, --min-seconds from 0 on")


@contextlib.contextmanager
def targets_of(folders):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(contextlib.closing(Target(folder))) for folder in folders]


def scratch_folder():
    """For records and logs, which are no part of what is measured: in memory where that can be had."""
    in_memory = "/dev/shm"
    return tempfile.TemporaryDirectory(dir=in_memory if os.access(in_memory, os.W_OK) else None)


def rows_of(measurements, as_json):
    """Calls each (name, call); those that failed are said and left out. What is there is said at once, since all may take
    an hour: rows as JSON, or the ratio on stderr. Returns the rows and how many failed."""
    rows, failed = [], 0
    for name, measure in measurements:
        try:
            row = measure()
            rows.append(row)
            if as_json:
                print(json.dumps(row), flush=True)
            else:
                say(f"{name}: ratio {row['ratio']['ratio']:.2f}")
        except Failed as failure:
            say(f"{name}: {failure}")
            failed += 1
    return rows, failed


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def ratio_columns(name, heading="ratio", digits=2):
    """Columns of show(): a ratio by ratio_of() and the ends of its interval."""
    def cell(figure):
        return lambda row: "-" if row[name][figure] is None else f"{row[name][figure]:.{digits}f}"

    return [(heading, cell("ratio")), ("low", cell("low")), ("high", cell("high"))]


def show(rows, columns):
    """A table of (heading, text of a row)."""
    if not rows:
        return
    cells = [[heading for heading, _ in columns]] + [[text(row) for _, text in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    left = [all(not line[i][:1].isdigit() for line in cells[1:]) for i in range(len(columns))]
    for line in cells:
        print("  ".join(cell.ljust(width) if is_left else cell.rjust(width)
                        for cell, width, is_left in zip(line, widths, left)).rstrip())
    for row in rows:
        for note in row["notes"]:
            print(f"{row['target']}, {row['workload']}: {note}")
