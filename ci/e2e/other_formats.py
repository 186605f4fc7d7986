"""Files as other programs write them, byte for byte: TFRecord, tar, NumPy's arrays and archives, pictures, results."""

import io
import json
import struct
import tarfile
import warnings
import zipfile
import zlib

GIF = bytes.fromhex("47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b")
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d7a" * 16 + b"\nsize 12345\n"
HTML = b"<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head></html>\n"


def crc32c(content):
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(content):
    crc = crc32c(content)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def tf_record(payload):
    length = struct.pack("<Q", len(payload))
    return length + masked(length) + payload + masked(payload)


def proto_field(number, content):
    """A field of a protocol buffer that holds bytes or a message."""
    out, length = bytes([number << 3 | 2]), len(content)
    while length > 127:
        out += bytes([length & 127 | 128])
        length >>= 7
    return out + bytes([length]) + content


def tf_example(**features):
    """A tf.Example of byte strings."""
    return proto_field(1, b"".join(proto_field(1, proto_field(1, name.encode()) + proto_field(2, proto_field(1, proto_field(1, content))))
                                   for name, content in features.items()))


def tar(*members, form=tarfile.USTAR_FORMAT):
    """An archive of (name, bytes), or (name, type, target) for links and folders."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, content, *target in members:
            info = tarfile.TarInfo(name)
            if target:
                info.type, info.linkname = content, target[0]
                archive.addfile(info)
            else:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def npy(element, shape, content, fortran=False, version=1):
    head = f"{{'descr': {element!r}, 'fortran_order': {fortran}, 'shape': {tuple(shape)!r}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(head)) + head.encode() + content


def floats(*shape, **how):
    count = 1
    for size in shape:
        count *= size
    return npy("<f4", shape, struct.pack(f"<{count}f", *range(count)), **how)


def integers(*values):
    return npy("<i8", (len(values),), struct.pack(f"<{len(values)}q", *values))


def npz(*members):
    """An archive of (name, bytes), or (name, bytes, compression). A name may come twice."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that come twice
        for name, content, *compression in members:
            archive.writestr(zipfile.ZipInfo(name), content, *compression)
    return out.getvalue()


def png(width=32, height=32):
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    rows = (b"\0" + bytes(range(32)) * 3 * (width // 32)) * height
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def fio_result(deviation="0.0", **job):
    """What `fio --output-format=json` prints of one job; the deviation is text, since fio's nan is no JSON. `job` replaces keys of the job."""
    def way(moved):
        return {"io_bytes": moved, "io_kbytes": moved // 1024, "bw_bytes": moved // 10, "bw": moved // 10240, "iops": moved / 40960, "runtime": 10000,
                "total_ios": moved // 4096, "clat_ns": {"mean": 1000.0, "stddev": "@", "percentile": {"50.000000": 900, "99.000000": 2000}}}

    whole = {"jobname": "r", "groupid": 0, "error": 0, "job options": {"rw": "read", "bs": "4k", "filename": "/data/x"}, "read": way(10 << 30),
             "write": way(0), **job}
    return json.dumps({"fio version": "fio-3.33", "timestamp": 1700000000, "jobs": [whole]}, indent=2).replace('"@"', deviation) + "\n"


def benchmark_result(counter="1.0"):
    """What Google Benchmark prints as JSON; the counter is text, as it prints it."""
    context = {"date": "2026-01-01T00:00:00+00:00", "host_name": "h", "executable": "./b", "num_cpus": 2, "mhz_per_cpu": 2000, "caches": [],
               "cpu_scaling_enabled": False, "load_avg": [], "library_build_type": "release"}
    runs = [{"name": "BM_x", "run_name": "BM_x", "run_type": "iteration", "repetitions": 8, "repetition_index": at, "threads": 1, "iterations": 1000,
             "real_time": 100 + at * 0.01, "cpu_time": 100.0, "time_unit": "ns", "extra": "@"} for at in range(8)]
    return json.dumps({"context": context, "benchmarks": runs}, indent=1).replace('"@"', counter) + "\n"
