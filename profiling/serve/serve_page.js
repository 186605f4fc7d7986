"use strict";
// Asks its server once a second and shows what it says; every text goes through textContent.
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  const get = (id) => document.getElementById(id);
  const token = new URLSearchParams(location.search).get("token") || "";
  const ask = (path, method = "GET") => fetch(path, { method, headers: { Authorization: `Bearer ${token}` }, cache: "no-store" });
  const element = (name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const style = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  // ---- words
  const si = root.dataset.unit === "si";
  const rateUnit = si ? "MB/s" : "MiB/s";
  const rateBytes = si ? 1e6 : 1048576;
  const figure = (value) => {
    const digits = value >= 100 || value === 0 ? 0 : value >= 10 ? 1 : value >= 0.1 ? 2 : 3;
    return value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: value >= 0.1 ? Math.min(digits, 1) : 0 }).replaceAll(",", "\u2009");
  };
  const bytes = (value) => {
    const base = si ? 1000 : 1024;
    const names = si ? ["B", "kB", "MB", "GB", "TB", "PB"] : ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let i = 0;
    for (; value >= base && i + 1 < names.length; ++i) value /= base;
    return [figure(value), names[i]];
  };
  const seconds = (value) => (value < 90 ? `${figure(value)} s` : value < 5400 ? `${figure(value / 60)} min` : `${figure(value / 3600)} h`);
  const whole = (number) => number.toLocaleString("en").replaceAll(",", "\u2009");
  const count = (number, one, many) => `${whole(number)} ${number === 1 ? one : many}`;
  // A name in one line: what would break it or hide in it is shown by a sign of its own.
  const visible = (text) => text.replace(/[\u0000-\u001f\u007f\u0080-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, (c) => {
    const code = c.codePointAt(0);
    return code < 32 ? String.fromCodePoint(0x2400 + code) : code === 127 ? "\u2421" : "\ufffd";
  });

  // ---- colours: system, light, dark
  const themes = ["system", "light", "dark"];
  let theme = "system";
  try {
    theme = themes.includes(localStorage.getItem("penstock-theme")) ? localStorage.getItem("penstock-theme") : theme;
  } catch { /* no storage: no memory of it */ }
  const applyTheme = () => {
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
    get("theme").textContent = "Colours: " + theme;
    get("theme").setAttribute("aria-label", `Colours: ${theme}; press to change`);
  };
  applyTheme();

  // ---- charts
  class Chart {
    constructor(id, unit, lines) {
      this.place = get(id).querySelector(".plot");
      this.holder = get(id);
      this.unit = unit;
      this.lines = lines;
      this.data = [[], ...lines.map(() => [])];
      this.holder.querySelector("figcaption").append(element("span", "key", unit));
      this.holder.querySelector(".legend").replaceChildren(...lines.map((line) => {
        const key = element("span", `key colour-${line.colour}`);
        key.append(element("i"), element("span", "", line.label));
        return key;
      }));
      new ResizeObserver(() => this.plot && this.plot.width !== this.size().width && this.plot.setSize(this.size())).observe(this.place);
      this.make();
    }

    size() {
      const width = Math.max(240, this.place.clientWidth);
      return { width, height: Math.round(Math.min(300, Math.max(200, width * 0.5))) };
    }

    make() {
      this.plot?.destroy();
      const font = `12px ${getComputedStyle(document.body).fontFamily}`;
      const axis = { stroke: style("--muted"), font, grid: { stroke: style("--line"), width: 1 }, ticks: { stroke: style("--line"), width: 1, size: 4 } };
      this.plot = new uPlot({
        ...this.size(),
        padding: [12, 14, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
        scales: { x: { time: true }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.08 : 1] } },
        axes: [{ ...axis, space: 64 }, { ...axis, values: (_, at) => at.map((y) => figure(y)), size: (_, values) => 20 + 7 * Math.max(3, ...(values || []).map((text) => text.length)) }],
        series: [{}, ...this.lines.map((line) => ({ label: line.label, stroke: style(`--c${line.colour}`), width: 2.2, points: { show: false } }))],
        hooks: { setCursor: [(plot) => this.moved(plot)], draw: [(plot) => this.drawn(plot)] },
      }, this.data, this.place);
      this.tip?.remove();
      this.tip = element("div", "tooltip");
      this.tip.hidden = true;
      this.place.append(this.tip);
    }

    show(data) {
      this.data = data;
      this.plot.setData(data);
    }

    drawn(plot) {
      if (plot !== this.plot || this.data[0].length < 2 || this.holder.dataset.drawn === "yes") return;
      const { ctx: context, bbox: box } = plot;
      const pixels = context.getImageData(box.left, box.top, Math.max(1, box.width), Math.max(1, box.height)).data;
      let coloured = 0;
      for (let i = 3; i < pixels.length; i += 4) if (pixels[i] > 200) ++coloured;
      this.holder.dataset.drawn = coloured > 20 ? "yes" : "no";
    }

    moved(plot) {
      const k = plot.cursor.idx;
      this.tip.hidden = k === null || k === undefined || plot.cursor.left < 0;
      if (this.tip.hidden) return;
      this.tip.replaceChildren(element("b", "", new Date(this.data[0][k] * 1000).toLocaleTimeString()), ...this.lines.map((line, i) => {
        const row = element("div");
        row.append(element("span", "", line.label), element("span", "", `${figure(this.data[i + 1][k])} ${this.unit}`));
        return row;
      }));
      const left = plot.valToPos(this.data[0][k], "x") + plot.over.offsetLeft;
      const width = this.tip.offsetWidth;
      this.tip.style.left = Math.max(0, left + 14 + width > this.place.clientWidth ? left - width - 14 : left + 14) + "px";
      this.tip.style.top = "10px";
    }
  }
  const drawable = typeof uPlot !== "undefined";
  get("no-charts").hidden = drawable;
  for (const id of ["bandwidth", "operations"]) get(id).hidden = !drawable;
  const charts = drawable ? [
    new Chart("bandwidth", rateUnit, [{ label: "read", colour: 0 }, { label: "written", colour: 1 }]),
    new Chart("operations", "operations/s", [{ label: "operations", colour: 2 }]),
  ] : [];
  const remake = () => charts.forEach((chart) => chart.make());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", remake);
  get("theme").addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try {
      localStorage.setItem("penstock-theme", theme);
    } catch { /* see above */ }
    applyTheme();
    remake();
  });

  // ---- what the server says
  const tile = (i, value, unit, label) => {
    const made = element("li", `tile colour-${i}`);
    const line = element("span", "tile-value", value);
    line.append(element("small", "", unit));
    made.append(line, element("span", "tile-label", label));
    return made;
  };
  const rate = (amount, time) => (time > 0 ? amount / time : 0);

  const showTiles = (live) => {
    const { change } = live;
    const each = (key) => figure(rate(change[key], change.seconds) / (key === "operations" ? 1 : rateBytes));
    const total = (i, key, label) => tile(i, ...bytes(live[key]), label);
    get("tiles").replaceChildren(
      tile(0, each("bytes_read"), rateUnit, live.running ? "read, now" : "read, on the average"),
      tile(1, each("bytes_written"), rateUnit, live.running ? "written, now" : "written, on the average"),
      tile(2, each("operations"), "/s", live.running ? "operations, now" : "operations, on the average"),
      total(3, "bytes_read", "read in all"), total(4, "bytes_written", "written in all"),
      tile(5, whole(live.files), "", "files in all"));
  };

  const fill = (id, rows) => {
    get(id).tBodies[0].replaceChildren(...rows.map((cells) => {
      const row = element("tr");
      for (const [text, className] of cells) row.append(element("td", className || "", text));
      return row;
    }));
  };
  const showTables = (live) => {
    const { running, change } = live;
    const moved = (amount) => (running ? `${figure(rate(amount, change.seconds) / rateBytes)} ${rateUnit}` : bytes(amount).join(" "));
    fill("file-table", live.hottest.map((file) => [[visible(file.path)], [moved(file.bytes_read), "number"], [moved(file.bytes_written), "number"],
      [running ? `${figure(rate(file.operations, change.seconds))}/s` : whole(file.operations), "number"]]));
    get("files-lead").textContent = (running ? `${count(change.files, "file was", "files were")} accessed in the last ${seconds(change.seconds)}.`
                                             : `${count(live.files, "file", "files")} in all.`)
      + (change.files > live.hottest.length ? ` The table shows the ${live.hottest.length} busiest by bytes; the report lists all.` : "");
    fill("process-table", live.processes.map((process) => [[process.rank === null ? "" : String(process.rank)], [String(process.pid), "number"],
      [visible(process.host)], [visible(process.command)],
      [process.here ? (process.trace ? "every call is kept" : "counted") : "on another machine", process.trace ? "armed" : ""]]));
    get("process-table").closest(".table").hidden = live.processes.length === 0;
    get("processes-lead").textContent = (running ? `${count(live.process_count, "process is", "processes are")} running.` : "No process is running. The report lists all processes of the session.")
      + (live.process_count > live.processes.length ? ` The table shows the first ${live.processes.length}.` : "");
  };

  const showCharts = (live) => {
    const history = live.history;
    get("time-lead").textContent = live.running ? "At most the last ten minutes, since this server started."
      : live.history_is_exact ? "The whole run; every call was recorded." : "The whole run. Calls were not recorded individually: a thread's operations on a file are spread evenly from its first call to its last.";
    const line = (at, unit) => history.map((point) => rate(point[at], point[1]) / unit);
    const times = history.map((point) => point[0]);
    if (!charts.length) return;
    charts[0].show([times, line(2, rateBytes), line(3, rateBytes)]);
    charts[1].show([times, line(4, 1)]);
  };

  const show = (live) => {
    document.title = `${live.name} - penstock`;
    get("title").textContent = visible(live.name);
    get("folder").textContent = visible(live.session);
    const here = live.running && live.processes.some((process) => process.here);
    for (const id of ["trace", "snapshot"]) get(id).hidden = !here;
    get("disarm").hidden = !live.trace.armed;
    root.dataset.running = String(live.running);
    if (live.error) {
      get("state").textContent = live.error;
      return;
    }
    if (!live.looked) return;
    get("state").textContent = (live.running ? `${count(live.process_count, "process", "processes")} running, for ${seconds(live.running_s)}.`
                                             : `A saved session: no process is running. It took ${seconds(live.running_s)}.`)
      + (live.trace.armed ? ` Every call is recorded for ${seconds(Math.ceil(live.trace.seconds_left))} more.` : "");
    showTiles(live);
    showTables(live);
    showCharts(live);
    root.dataset.ready = "yes";
  };

  let timer = 0;
  const look = async () => {
    clearTimeout(timer);
    let pause = 1000;
    try {
      const answer = await ask("/live");
      if (!answer.ok) throw new Error((await answer.text()).trim());
      const live = await answer.json();
      show(live);
      pause = live.running || !live.looked ? 1000 : 5000;
    } catch (problem) {
      get("state").textContent = problem instanceof TypeError ? "The server does not answer: it has ended, or this machine is suspended." : problem.message;
      pause = 3000;
    }
    timer = setTimeout(look, pause);
  };

  // ---- what can be done
  const say = (text, failed = false) => {
    get("said").textContent = text;
    get("said").className = failed ? "said failure" : "said";
  };
  const act = async (path, done) => {
    try {
      const answer = await ask(path, "POST");
      if (answer.ok) say(done(await answer.json()));
      else say((await answer.text()).trim(), true);
    } catch {
      say("The server does not answer.", true);
    }
    look();
  };
  get("trace").addEventListener("submit", (event) => {
    event.preventDefault();
    const time = Math.round(Number(get("seconds").value));
    act(`/trace?seconds=${time}`, (trace) => `Recording every call of ${count(trace.running, "process", "processes")} for ${time} s.`);
  });
  get("disarm").addEventListener("click", () => act("/trace?seconds=0", () => "Calls are now only counted."));
  get("snapshot").addEventListener("click", () => {
    say("Copying...");
    act("/snapshot", (made) => `Snapshot written to '${visible(made.session)}'.`);
  });
  for (const [id, path] of [["report", "/report"], ["report-json", "/report.json"], ["download", "/download"]])
    get(id).href = `${path}?token=${encodeURIComponent(token)}`;
  look();
})();
