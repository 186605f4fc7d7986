"""Records with the real schema and made-up numbers, for tests of what reads records (docs/reference/records.md)."""

import json
import math
import random

ENVIRONMENT = {
    "host": "bench-1", "kernel": "Linux 6.1.0", "machine": "x86_64", "os": "Debian GNU/Linux 12", "cpu": "Some Xeon 2.1 GHz",
    "cpus": "0-7", "cpu_count": 8, "numa": "0", "governor": "performance", "memory_bytes": 25213575168,
    "cgroup": {"version": 2, "path": "/", "cpus": 8.0}, "build": {"compiler": "GNU 12.2.0", "type": "Release", "flags": "-O3 -DNDEBUG"},
    "versions": {"penstock": "0.1.0", "fmt": "9.1.0"}, "clock_read_ns": 22.4,
}
TIERS = {
    "disk": {"name": "disk", "backend": "posix", "root": "/data/p", "spec": "disk=posix:/data/p", "fs_type": "ext4", "device": "/dev/vda1",
             "mount_point": "/", "mount_options": "rw,relatime", "striping": "", "network": False, "memory": False},
    "fast": {"name": "fast", "backend": "posix", "root": "/dev/shm/p", "spec": "fast=posix:/dev/shm/p", "fs_type": "tmpfs", "device": "tmpfs",
             "mount_point": "/dev/shm", "mount_options": "rw,nosuid", "striping": "", "network": False, "memory": True},
}
CORPUS = {"recipe": "imagenet", "format": "files", "samples": 16384, "bytes": 1885000000, "checksum": "5f0c", "over_ram": 0.075}


def metric(unit, better, per, *samples):
    ordered = sorted(samples)
    middle = len(ordered) // 2
    value = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return {"value": value, "unit": unit, "better": better, "per": per, "samples": list(samples)}


def record(command, number, parameters, metrics, **more):
    return {
        "schema": 1, "id": f"00c0ffee00c0ffee-{number}", "started": f"2026-11-20T09:{number // 60:02}:{number % 60:02}Z",
        "command": command, "argv": ["penstock", command], "label": {}, "seed": 7, "parameters": parameters,
        "tiers": {}, "cache": {}, "corpus": CORPUS, "environment": ENVIRONMENT, "metrics": metrics, "series": {},
        "verdict": "ok", "reason": "", **more,
    }


def read(number, tier, threads, cache, mib_per_s, ceiling, noise=0.04, repeats=5, ranks=1, batch=None, depth=None, **more):
    rng = random.Random(f"{tier}{threads}{cache}")
    rates = [mib_per_s * 1048576 * rng.uniform(1 - noise, 1 + noise) for _ in range(repeats)]
    size = CORPUS["bytes"] / CORPUS["samples"]
    p50 = threads / (mib_per_s * 1048576 / size) * 1e9 * 0.8
    memory = TIERS[tier]["memory"]
    return record(
        "read", number, {"tier": tier, "threads": threads, "cache": cache, "order": "shuffled", "decode": "none", "ranks": ranks,
                        **({} if batch is None else {"batch": batch}), **({} if depth is None else {"depth": depth})},
        {
            "payload_bytes_per_s": metric("B/s", "higher", "repeat", *rates),
            "samples_per_s": metric("1/s", "higher", "repeat", *[rate / size for rate in rates]),
            "baseline_samples_per_s": metric("1/s", "higher", "repeat", *[rate / size * rng.uniform(0.99, 1.04) for rate in rates]),
            "ceiling_bytes_per_s": metric("B/s", "higher", "run", ceiling * 1048576),
            "ceiling_fraction": metric("1", "higher", "run", mib_per_s / ceiling),
            "cpu_s": metric("s", "lower", "repeat", *[0.4] * repeats),
            "payload_bytes": metric("B", "neither", "repeat", *[float(CORPUS["bytes"])] * repeats),
            "latency_ns_p50": metric("ns", "lower", "run", p50), "latency_ns_p95": metric("ns", "lower", "run", p50 * 2.2),
            "latency_ns_p99": metric("ns", "lower", "run", p50 * 4.1), "latency_ns_p999": metric("ns", "lower", "run", p50 * 11),
        },
        tiers={"data": TIERS[tier]},
        cache={"client_data": "memory" if memory else cache, "client_metadata": "memory" if memory else cache, "server": "none",
               "host": "unknown", "method": "" if memory else "drop", **({} if memory else {"resident_fraction_before": 0.002 if cache == "cold" else 0.998})},
        **more)


def train(number, prefetch, wait_s, step_s=0.05, steps=200, threads=4, **more):
    wall = steps * (step_s + wait_s) + 0.4
    stages = {"read": (0.18, 0.02, 0.80), "decode": (0.78, 0.06, 0.16), "batch": (0.12, 0.80, 0.08)}
    if prefetch == 0:
        stages = {"read": (0.10, 0.02, 0.88), "decode": (0.40, 0.10, 0.50), "batch": (0.06, 0.44, 0.50)}
    metrics = {
        "samples_per_s": metric("1/s", "higher", "run", 64 / (step_s + wait_s)),
        "payload_bytes_per_s": metric("B/s", "higher", "run", 64 / (step_s + wait_s) * 115000),
        "wall_s": metric("s", "lower", "run", wall), "steps": metric("1", "neither", "run", steps),
        "step_s": metric("s", "neither", "run", step_s), "input_wait_s": metric("s", "lower", "run", wait_s * steps),
        "accelerator_utilization": metric("1", "higher", "run", step_s / (step_s + wait_s)),
        "first_batch_s": metric("s", "lower", "run", 0.31), "peak_memory_bytes": metric("B", "lower", "run", 412e6),
    }
    for stage, share in (("read", 0.15), ("decode", 0.8), ("collate", 0.03), ("queue", 0.02)):
        metrics[f"lost_s.{stage}"] = metric("s", "lower", "run", share * wait_s * steps)
    for stage, shares in stages.items():
        for state, share in zip(("busy", "starved", "blocked"), shares):
            metrics[f"stage_{state}_s.{stage}"] = metric("s", "neither", "run", share * wall)
    for state, seconds in (("busy", step_s * steps), ("starved", wait_s * steps), ("blocked", 0.0)):
        metrics[f"stage_{state}_s.accelerator"] = metric("s", "neither", "run", seconds)
    return record("train", number, {"app": "alexnet", "threads": threads, "prefetch": prefetch, "batch": 64, "cache": "warm",
                                    "accelerator": "emulated:step=50ms", "ranks": 1}, metrics, tiers={"data": TIERS["disk"]}, **more)


def saving(number, arm, pair, block_s, **more):
    """A run of an arm of `checkpoint bench`: four saves of 704 MB, each after five steps of 0.1 s."""
    size, interval = 704390856, 0.1
    fast = arm != "direct"
    slow_ceiling, fast_ceiling = 4.2e8, 2.4e9
    starts, at, steps = [], 0.0, []
    for _ in range(4):
        steps += [at + 0.1 * (i + 1) for i in range(5)]
        starts.append(at + 0.5)
        at += 0.5 + block_s
    drain_s = size / (0.9 * slow_ceiling)
    values = {name: [0.0] * (int((at + 4 * drain_s) / interval) + 1) for name in ("slow_bytes_written", "fast_bytes_written", "steps_ended")}

    def pour(name, begin, seconds):
        for i in range(max(1, round(seconds / interval))):
            values[name][min(int(begin / interval) + i, len(values[name]) - 1)] += size / max(1, round(seconds / interval))

    free = 0.0
    for start in starts:
        pour("fast_bytes_written" if fast else "slow_bytes_written", start, block_s)
        if fast:
            free = max(free, start + block_s)
            pour("slow_bytes_written", free, drain_s)
            free += drain_s
    for end in steps:
        values["steps_ended"][int(end / interval)] += 1
    metrics = {
        "checkpoint_bytes": metric("B", "neither", "checkpoint", *[float(size)] * 4),
        "checkpoint_block_s": metric("s", "lower", "checkpoint", block_s, block_s * 1.02, block_s * 0.98, block_s * 1.6),
        "checkpoint_durable_s": metric("s", "lower", "checkpoint", *[block_s + (drain_s if fast else 0)] * 4),
        "ceiling_bytes_per_s.slow": metric("B/s", "higher", "run", slow_ceiling), "wall_s": metric("s", "lower", "run", at),
        "checkpoints": metric("1", "neither", "run", 4), "checkpoint_skips": metric("1", "lower", "run", 0),
        "drain_failures": metric("1", "lower", "run", 0),
        "checkpoint_interval_s.young": metric("s", "neither", "run", math.sqrt(2 * block_s * 86400)),
        "checkpoint_interval_s.daly": metric("s", "neither", "run", math.sqrt(2 * block_s * 86400) - block_s),
        **{f"lost_work_s.{kind}": metric("s", "lower", "run", seconds) for kind, seconds in
           zip(("process", "node", "power"), (0.9, 1.7, 1.7) if fast else (2.5, 2.5, 2.5))},
        "lost_work_most_s.power": metric("s", "lower", "run", 4.6),
        "block_of_ceiling": metric("1", "lower", "checkpoint", block_s * (fast_ceiling if fast else slow_ceiling) / size),
    }
    if fast:
        metrics["ceiling_bytes_per_s.fast"] = metric("B/s", "higher", "run", fast_ceiling)
        metrics["checkpoint_fast_s"] = metric("s", "lower", "checkpoint", *[block_s] * 4)
        metrics["drain_bytes_per_s"] = metric("B/s", "higher", "checkpoint", *[0.9 * slow_ceiling] * 4)
        metrics["drain_of_ceiling"] = metric("1", "higher", "checkpoint", *[0.9] * 4)
        metrics["drain_overlap"] = metric("1", "higher", "run", 0.75)
        metrics["step_inflation"] = metric("1", "lower", "run", 1.12)
    series = {name: {"interval_s": interval, "values": found} for name, found in values.items() if fast or name != "fast_bytes_written"}
    return record(
        "checkpoint", number, {"payload": "alexnet-adam", "payload_bytes": size, "steps": 20, "every": 5, "step_time_s": 0.1, "mtbf_s": 86400.0,
                               "burst_buffer": "/dev/shm/p", "arm": arm, "ranks": 1}, metrics, series=series, corpus={},
        tiers={"checkpoint": TIERS["disk"], **({"burst_buffer": TIERS["fast"]} if fast else {})},
        pair={"suite": "checkpoint", "index": pair, "arm": arm}, **more)


def saving_experiment():
    """Direct saves against those through a burst buffer, three pairs."""
    return [saving(2 * pair + (arm != "direct"), arm, pair, block_s) for pair, (direct, burst) in
            enumerate(((2.0, 0.4), (1.9, 0.5), (2.1, 0.35))) for arm, block_s in (("direct", direct), ("burst-buffer", burst))]


def whole_experiment():
    """Two tiers, cold and warm, five thread counts, a mini-app with and without prefetching, and cells that went wrong."""
    disk = {"cold": {1: 410, 2: 690, 4: 980, 8: 1010, 16: 1005}, "warm": {1: 2900, 2: 5400, 4: 6100, 8: 6000, 16: 5300}}
    fast = {"cold": {1: 3000, 2: 5500, 4: 6250, 8: 6300, 16: 6150}, "warm": {1: 3010, 2: 5550, 4: 6300, 8: 6290, 16: 6200}}
    records = []
    for cache in ("cold", "warm"):
        for name, rates, ceiling in (("disk", disk, {"cold": 1210, "warm": 6600}), ("fast", fast, {"cold": 6700, "warm": 6700})):
            for threads, rate in rates[cache].items():
                wave = [rate * 1048576 * (1 + 0.05 * math.sin(i / 2) - (0.25 if name == "disk" and cache == "cold" and i > 12 else 0)) for i in range(20)]
                series = {"payload_bytes": {"interval_s": 1.0, "values": wave}} if threads == 4 and cache == "cold" else {}
                records.append(read(len(records), name, threads, cache, rate, ceiling[cache],
                                    noise=0.3 if (name, cache, threads) == ("disk", "cold", 2) else 0.04, series=series))
    records.append(train(len(records), 0, 0.042))
    records.append(train(len(records), 4, 0.0012))
    records.append(record("generate", len(records), {"recipe": "imagenet", "threads": 2}, {
        "samples_per_s": metric("1/s", "higher", "run", 1830.0), "payload_bytes_per_s": metric("B/s", "higher", "run", 2.1e8),
        "wall_s": metric("s", "lower", "run", 8.95), "peak_memory_bytes": metric("B", "lower", "run", 9.1e7)}, tiers={"data": TIERS["disk"]}))
    other = {**ENVIRONMENT, "kernel": "Linux 6.5.0", "governor": "powersave"}
    records.append(read(len(records), "disk", 32, "cold", 900, 1210, environment=other, verdict="not_cold",
                        reason="still 14% resident after three tries"))
    records.append({**read(len(records), "disk", 64, "cold", 1, 1210), "metrics": {}, "verdict": "failed",
                    "reason": "cannot open 'n01440764/x.jpg': Input/output error"})
    records.append({**read(len(records), "fast", 64, "cold", 1, 1210), "metrics": {}, "verdict": "skipped", "reason": "64 threads need 64 processors"})
    return records


def grid_experiment():
    """A mini-app over threads and prefetch depths: more of either helps until the accelerator is fed."""
    cells = [(threads, prefetch) for threads in (1, 2, 4, 8) for prefetch in (0, 1, 4)]
    return [train(number, prefetch, max(0.0005, 0.08 / threads - (0.03 if prefetch else 0) - 0.002 * prefetch), threads=threads)
            for number, (threads, prefetch) in enumerate(cells)]


def fio(number, tier, threads, mib_per_s, way="randread", **more):
    """A run of fio as it is imported: one sample of each figure."""
    bytes_per_s = mib_per_s * 1048576
    return record("fio", number, {"tier": tier, "threads": threads, "rw": way, "bs": 114688, "iodepth": 1, "direct": 1, "ioengine": "psync"}, {
        "payload_bytes_per_s": metric("B/s", "higher", "run", bytes_per_s), "ops_per_s": metric("1/s", "higher", "run", bytes_per_s / 114688),
        "latency_ns_p50": metric("ns", "lower", "run", threads * 114688 / bytes_per_s * 1e9),
        "latency_ns_p99": metric("ns", "lower", "run", threads * 114688 / bytes_per_s * 4e9)}, label={"peer": "fio-3.33"}, corpus={}, **more)


def rank_experiment():
    """A job of 1, 2, 4 and 8 ranks on two nodes, read nine times each."""
    rates = {1: 400, 2: 790, 4: 1500, 8: 1560}
    return [read(number, "disk", 2, "cold", rate, 1700, repeats=9, ranks=ranks, environment={
        **ENVIRONMENT, "ranks": [{"rank": rank, "host": f"bench-{1 + rank % 2}", "rank_on_node": rank // 2} for rank in range(ranks)]})
        for number, (ranks, rate) in enumerate(rates.items())]


def with_pairs(rates, suite="tuning", pairs=16, spread=0.02):
    """Read records of one cell in two arms, measured in turn: {"base": MiB/s, "other": MiB/s}."""
    rng = random.Random(suite)
    return [read(len(rates) * index + place, "disk", 4, "cold", rate * rng.uniform(1 - spread, 1 + spread), 1210, repeats=1,
                 pair={"suite": suite, "index": index, "arm": arm})
            for index in range(pairs) for place, (arm, rate) in enumerate(rates.items())]


def probe(number, tier, clients, factor, apart=0.05):
    """A record of `tiers --probe`: rates of a disk, times `factor`, with repeats that differ by `apart`."""
    rates = {f"{way}.sequential.1m.{depth}": 400 for way in ("read", "write") for depth in (1, 8)}
    rates |= {f"read.random.4k.{depth}": 20 * depth ** 0.6 for depth in (1, 8, 32)}
    rates |= {f"{way}.small_files.112k.{depth}": 90 * depth ** 0.3 for way in ("read", "write") for depth in (1, 8)}
    metrics = {}
    for name, mib_per_s in rates.items():
        size = {"1m": 1 << 20, "4k": 4096, "112k": 112 << 10}[name.split(".")[2]]
        samples = [mib_per_s * 1048576 * factor * (1 + apart * (i - 1) / 2) for i in range(3)]
        metrics[f"{name}.bytes_per_s"] = metric("B/s", "higher", "repeat", *samples)
        metrics[f"{name}.ops_per_s"] = metric("1/s", "higher", "repeat", *[sample / size for sample in samples])
    for name, rate in (("create", 1500), ("stat", 90000), ("open", 40000), ("list", 800000), ("remove", 2500)):
        metrics[f"metadata.{name}.ops_per_s"] = metric("1/s", "higher", "repeat", *[rate * factor * (1 + apart * (i - 1) / 2) for i in range(3)])
    return record("tiers", number, {"tier": tier, "threads": clients, "cache": "cold"}, metrics, tiers={"data": TIERS[tier]}, corpus={})


def probe_experiment():
    """Two tiers, each probed by one client and by four; the disk with four is noisy."""
    return [probe(number, tier, clients, (5 if tier == "fast" else 1) * clients ** 0.5, apart=0.4 if (tier, clients) == ("disk", 4) else 0.05)
            for number, (tier, clients) in enumerate((tier, clients) for tier in ("disk", "fast") for clients in (1, 4))]


def many(count):
    """`count` records of many works: 25 batch sizes, two cache states, two tiers, five thread counts, again and again."""
    records = []
    for number in range(count):
        batch, rest = number % 25, number // 25
        cache, tier, threads = ("cold", "warm")[rest % 2], ("disk", "fast")[rest // 2 % 2], 1 << (rest // 4 % 5)
        wave = [1e8 * (1 + 0.1 * math.sin(i / 3)) for i in range(30)]
        made = read(number, tier, threads, cache, 400 * threads ** 0.7, 6000, batch=1 << batch,
                    series={"payload_bytes": {"interval_s": 1.0, "values": wave}})
        made["started"] = f"2026-{1 + number // 86400 % 12:02}-20T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
        made["label"] = {**made.get("label", {}), "round": str(number // 500)}  # else the rounds are joined
        records.append(made)
    return records


def write(folder, records, name="20261120T090000Z-read-00c0ffee.jsonl"):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path
