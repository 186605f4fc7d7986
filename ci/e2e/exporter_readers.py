#!/usr/bin/env python3
"""What the readers that others wrote make of our profiler's exports, as one JSON object. Runs in a Python that has them:

    exporter_readers.py darshan FILE.darshan | darshan-page FILE.darshan OUT.html | tensorboard LOGDIR | trace FILE.xplane.pb
"""

import json
import subprocess
import sys


def darshan(path):
    from darshan import DarshanReport
    report = DarshanReport(path, read_all=True)
    modules = {}
    for name in ("POSIX", "STDIO"):
        if name not in report.modules:
            continue
        frames = report.records[name].to_df()
        files = {}
        counters = frames["counters"]
        for row in counters.to_dict("records"):
            file = files.setdefault(report.name_records[row.pop("id")], {})
            row.pop("rank")
            for column, count in row.items():
                file[column] = file.get(column, 0) + int(count)
        times = {column: float(frames["fcounters"][column].sum()) for column in frames["fcounters"].columns if column.endswith("_TIME")}
        modules[name] = {"files": files, "times": times, "ranks": sorted({int(rank) for rank in counters["rank"]})}
    segments = {"reads": 0, "writes": 0, "bytes_read": 0, "bytes_written": 0, "hosts": [], "last_s": 0}
    if "DXT_POSIX" in report.modules:
        for record in report.records["DXT_POSIX"].to_df():
            for kind, count, total in (("read_segments", "reads", "bytes_read"), ("write_segments", "writes", "bytes_written")):
                frame = record[kind]
                if len(frame):
                    segments[count] += len(frame)
                    segments[total] += int(frame["length"].sum())
                    segments["last_s"] = max(segments["last_s"], float(frame["end_time"].max()))
            if record["hostname"] not in segments["hosts"]:
                segments["hosts"].append(record["hostname"])
    heat = {}
    for name, heatmap in getattr(report, "heatmaps", {}).items():
        heat[name] = {"read": int(heatmap.to_df(["read"]).to_numpy().sum()), "write": int(heatmap.to_df(["write"]).to_numpy().sum())}
    job = report.metadata["job"]
    return {"modules": modules, "segments": segments, "heat": heat, "run_time": job["run_time"], "processes": job["nprocs"],
            "exe": report.metadata["exe"], "mounts": report.mounts}


def darshan_page(path, page):
    done = subprocess.run([sys.executable, "-m", "darshan", "summary", path, "--output", page], capture_output=True, text=True, check=False)
    return {"exit": done.returncode, "said": done.stdout + done.stderr}


def tensorboard(folder):
    from tensorboard.backend.event_processing import event_accumulator as reader
    events = reader.EventAccumulator(folder, size_guidance={reader.SCALARS: 0, reader.HISTOGRAMS: 0, reader.TENSORS: 0})
    events.Reload()
    tags = events.Tags()
    scalars = {tag: [[event.step, event.wall_time, event.value] for event in events.Scalars(tag)] for tag in tags["scalars"]}
    histograms = {}
    for tag in tags["histograms"]:
        value = events.Histograms(tag)[0].histogram_value
        histograms[tag] = {"num": value.num, "sum": value.sum, "ends": list(value.bucket_limit), "counts": list(value.bucket)}
    texts = {tag: events.Tensors(tag)[0].tensor_proto.string_val[0].decode() for tag in tags["tensors"]}
    return {"scalars": scalars, "histograms": histograms, "texts": texts}


def trace(path):
    from xprof.convert import raw_to_tool_data
    options = {"tqx": "", "use_saved_result": False, "trace_viewer_options": {}}
    data, _ = raw_to_tool_data.xspace_to_tool_data([path], "trace_viewer@", options)
    return {"events": json.loads(data)["traceEvents"]}


READERS = {"darshan": darshan, "darshan-page": darshan_page, "tensorboard": tensorboard, "trace": trace}

if __name__ == "__main__":
    print("\n" + json.dumps(READERS[sys.argv[1]](*sys.argv[2:])))
