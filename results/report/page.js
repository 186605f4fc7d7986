"use strict";
// Draws what the page's JSON says; every text goes through textContent.
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  const json = (id) => JSON.parse(document.getElementById(id).textContent);
  const element = (name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const style = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  // Numbers as in the tables: three digits, thousands in groups.
  const format = (value) => {
    if (value === null || value === undefined || !isFinite(value)) return "-";
    const size = Math.abs(value);
    if (size === 0) return "0";
    if (size >= 1e15) return value.toPrecision(3);
    if (size < 0.0995) return value.toPrecision(2);
    const text = value.toFixed(size >= 999.95 ? 0 : size >= 9.995 ? 1 : 2);
    const [whole, part] = text.split(".");
    return whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",") + (part ? "." + part : "");
  };
  const tick = (value) => format(value).replace(/\.0+$/, "").replace(/(\.\d*?)0+$/, "$1");

  // ---- colours: system, light, dark
  const themes = ["system", "light", "dark"];
  const button = document.getElementById("theme");
  let theme = "system";
  try {
    theme = themes.includes(localStorage.getItem("penstock-theme")) ? localStorage.getItem("penstock-theme") : theme;
  } catch { /* a page opened from a file may have no storage */ }
  const applyTheme = () => {
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
    button.textContent = "Colours: " + theme;
    button.setAttribute("aria-label", `Colours: ${theme}; press to change`);
  };
  applyTheme();

  // Of any number of numbers: Math.max(...list) takes some ten thousand.
  const most = (list) => list.reduce((a, b) => Math.max(a, b), -Infinity);
  const least = (list) => list.reduce((a, b) => Math.min(a, b), Infinity);

  // ---- the numbers behind a picture: rows of text, the columns' names first
  const plain = (value) => (value === null || value === undefined ? "" : String(value));
  const rowsOf = (chart) => {
    const ranged = (series) => series.low.length > 0;
    const names = chart.series.flatMap((series) => [`${series.label} (${chart.y_label})`,
      ...(ranged(series) ? ["low", "high", "range"].map((end) => `${series.label}: ${end}`) : [])]);
    const range = (series, k) => (series.low[k] === null ? "" : series.sure?.[k] ? "95% of the median" : "lowest to highest");
    return [[chart.x_label, ...names], ...chart.x.map((x, k) => [plain(x), ...chart.series.flatMap((series) =>
      [plain(series.y[k]), ...(ranged(series) ? [plain(series.low[k]), plain(series.high[k]), range(series, k)] : [])])])];
  };
  const csvText = (rows) => rows.map((row) => row.map((field) => (/[,"\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field))
    .join(",") + "\r\n").join("");
  const save = (parts, type, name) => {
    const link = element("a");
    link.href = URL.createObjectURL(new Blob(parts, { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  // ---- line charts
  const shapes = ["circle", "square", "triangle", "diamond", "down", "cross", "plus"];
  const tracePath = (path, shape, x, y, r) => {
    const points = (...list) => {
      list.forEach(([dx, dy], i) => path[i ? "lineTo" : "moveTo"](x + dx * r, y + dy * r));
      path.closePath();
    };
    if (shape === "circle") path.arc(x, y, r, 0, 2 * Math.PI);
    if (shape === "square") points([-0.88, -0.88], [0.88, -0.88], [0.88, 0.88], [-0.88, 0.88]);
    if (shape === "triangle") points([0, -1.2], [1.1, 0.85], [-1.1, 0.85]);
    if (shape === "down") points([0, 1.2], [1.1, -0.85], [-1.1, -0.85]);
    if (shape === "diamond") points([0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]);
    if (shape === "plus") points([-0.35, -1.1], [0.35, -1.1], [0.35, -0.35], [1.1, -0.35], [1.1, 0.35], [0.35, 0.35],
      [0.35, 1.1], [-0.35, 1.1], [-0.35, 0.35], [-1.1, 0.35], [-1.1, -0.35], [-0.35, -0.35]);
    if (shape === "cross") points([-1, -0.6], [-0.6, -1], [0, -0.4], [0.6, -1], [1, -0.6], [0.4, 0], [1, 0.6], [0.6, 1],
      [0, 0.4], [-0.6, 1], [-1, 0.6], [-0.4, 0]);
  };
  const dashes = { solid: [], dashed: [9, 6], dotted: [2, 5], dash_dotted: [11, 4, 2, 4] };
  const colourOf = (series) => style(`--c${series.colour % 7}`);
  const shapeOf = (series) => shapes[(series.mark ?? series.colour) % shapes.length];

  // What a legend or tooltip shows of a line: its colour, dash and mark.
  const swatch = (series) => {
    const size = 26;
    const canvas = element("canvas");
    const ratio = window.devicePixelRatio || 1;
    canvas.width = size * ratio;
    canvas.height = 14 * ratio;
    canvas.style.width = size + "px";
    canvas.style.height = "14px";
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.strokeStyle = context.fillStyle = colourOf(series);
    context.lineWidth = 2.2;
    context.setLineDash(dashes[series.stroke].map((length) => length * 0.75));
    context.beginPath();
    context.moveTo(0, 7);
    context.lineTo(size, 7);
    context.stroke();
    if (series.marks) {
      context.beginPath();
      tracePath(context, shapeOf(series), size / 2, 7, 4.2);
      context.fill();
    }
    canvas.setAttribute("aria-hidden", "true");
    return canvas;
  };

  const live = document.getElementById("live");

  class LineChart {
    constructor(chart) {
      this.chart = chart;
      this.figure = document.getElementById(chart.id);
      this.place = this.figure.querySelector(".plot");
      this.logarithmic = chart.logarithmic;
      this.hidden = new Set();
      this.xs = chart.x.map((x) => (chart.x_doubles ? Math.log2(x) : x));
      this.tip = element("div", "tooltip");
      this.tip.hidden = true;
      this.index = null;
      this.addScaleButton();
      this.addUnitButton();
      this.figure.querySelector(".numbers").addEventListener("toggle", (event) => this.listNumbers(event.target));
      this.draw();
      new ResizeObserver(() => this.resize()).observe(this.place);
      this.place.addEventListener("keydown", (event) => this.key(event));
      this.place.addEventListener("blur", () => this.leave());
    }

    addScaleButton() {
      const values = this.chart.series.flatMap((series) => series.y).filter((y) => y > 0);
      this.logarithmic &&= values.length > 0;
      if (!values.length || (!this.logarithmic && most(values) < 4 * least(values))) return;
      const toggle = element("button", "", "log scale");
      toggle.type = "button";
      toggle.setAttribute("aria-pressed", String(this.logarithmic));
      toggle.addEventListener("click", () => {
        this.logarithmic = !this.logarithmic;
        toggle.setAttribute("aria-pressed", String(this.logarithmic));
        this.draw();
      });
      this.figure.querySelector("figcaption").append(toggle);
    }

    // Switches between the two units of the chart.
    addUnitButton() {
      if (!this.chart.other) return;
      const toggle = element("button", "", `show ${this.chart.other.y_label}`);
      toggle.type = "button";
      toggle.addEventListener("click", () => {
        const { y_label: label, series } = this.chart;
        this.chart.y_label = this.chart.other.y_label;
        this.chart.series = this.chart.other.series;
        this.chart.other = { y_label: label, series };
        toggle.textContent = `show ${label}`;
        this.figure.querySelector(".numbers .table")?.remove();
        this.listNumbers(this.figure.querySelector(".numbers"));
        this.draw();
      });
      this.figure.querySelector("figcaption").append(toggle);
    }

    // The text at a value of the x axis.
    xText(x) {
      return this.chart.x_names?.[this.chart.x.indexOf(x)] ?? tick(x);
    }

    // The names of the ticks; "" for one that would overlap the name before it.
    namedTicks() {
      const [low, high] = this.xRange();
      const width = this.size().width - 90;
      let end = -Infinity;
      return this.xs.map((x, i) => {
        const half = this.chart.x_names[i].length * 4 + 3;
        const at = ((x - low) / (high - low)) * width;
        if (at - half < end) return "";
        end = at + half;
        return this.chart.x_names[i];
      });
    }

    // The most rows that a reader scrolls through; all of them are in the CSV.
    static mostRows = 1000;

    listNumbers(details) {
      if (!details.open || details.querySelector("table")) return;
      const [names, ...rows] = rowsOf(this.chart);
      const table = element("table");
      const head = table.createTHead().insertRow();
      for (const name of names) {
        const cell = element("th", "number", name);
        cell.scope = "col";
        head.append(cell);
      }
      const body = table.createTBody();
      for (const row of rows.slice(0, LineChart.mostRows)) {
        const line = body.insertRow();
        row.forEach((text, i) => {
          const number = text === "" || isNaN(text) ? text : format(Number(text));
          const cell = element(i ? "td" : "th", "number", i && number === "" ? "-" : number);
          if (!i) cell.scope = "row";
          line.append(cell);
        });
      }
      const place = element("div", "table");
      place.tabIndex = 0;
      place.setAttribute("role", "region");
      place.setAttribute("aria-label", `Numbers of: ${this.chart.title}`);
      place.append(table);
      details.append(place);
      if (rows.length > LineChart.mostRows)
        details.append(element("p", "", `The first ${LineChart.mostRows} of ${rows.length} rows; the CSV has all.`));
    }

    size() {
      const width = Math.max(260, this.place.clientWidth);
      const height = Math.min(430, Math.max(300, width * 0.6));
      return { width, height: Math.round(this.chart.low ? height / 2 : height) };
    }

    // Charts in one stack share their time: their axes begin at one place.
    wide() {
      return this.figure.parentElement.classList.contains("stack");
    }

    resize() {
      if (this.plot && this.plot.width !== this.size().width) this.plot.setSize(this.size());
    }

    // From 0, or whole powers of ten.
    yRange(low, high) {
      if (this.logarithmic) {
        const values = this.chart.series.flatMap((series) => [...series.y, ...series.low]).filter((y) => y > 0);
        return [10 ** Math.floor(Math.log10(least(values))), 10 ** Math.ceil(Math.log10(most(values) * 1.01))];
      }
      const top = most([high || 0, ...this.chart.series.filter((_, i) => !this.hidden.has(i)).flatMap((series) => series.high)]);
      return [0, top > 0 ? top * 1.06 : 1];
    }

    xRange() {
      const first = this.xs[0];
      const last = this.xs[this.xs.length - 1];
      if (first === last) return [first - 1, last + 1];
      const margin = (last - first) * (this.chart.x_doubles ? 0.06 : 0.02);
      return [this.chart.x_doubles ? first - margin : 0, last + margin];
    }

    options() {
      const ink = style("--muted");
      const line = style("--line");
      const font = `12.5px ${getComputedStyle(document.body).fontFamily}`;
      const axis = { stroke: ink, font, labelFont: font, labelSize: 22, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1, size: 5 } };
      const doubles = this.chart.x_doubles;
      return {
        ...this.size(),
        padding: [14, 18, 0, 2],
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
        scales: {
          x: { time: false, range: () => this.xRange() },
          y: { distr: this.logarithmic ? 3 : 1, range: (_, low, high) => this.yRange(low, high) },
        },
        axes: [
          { ...axis, label: this.chart.x_label, size: 34,
            ...(doubles ? { splits: () => this.xs, values: (_, at) => (this.chart.x_names ? this.namedTicks() : at.map((x) => tick(Math.round(2 ** x)))) }
                        : { values: (_, at) => at.map(tick) }) },
          { ...axis, label: this.chart.y_label, values: (_, at) => at.map((y) => (y === null ? "" : tick(y))),
            size: (_, values) => 18 + 7.4 * Math.max(this.wide() ? 6 : 3, ...(values || []).map((text) => text.length)) },
        ],
        series: [{}, ...this.chart.series.map((series, i) => ({
          label: series.label, stroke: colourOf(series), width: series.stroke === "solid" ? 2.4 : 1.8,
          dash: dashes[series.stroke], spanGaps: true, points: { show: false }, show: !this.hidden.has(i),
        }))],
        hooks: {
          drawAxes: [(plot) => this.drawBands(plot)],
          drawSeries: [(plot, i) => this.drawMarks(plot, i)],
          setCursor: [(plot) => this.moved(plot)],
          draw: [(plot) => this.painted(plot)],
        },
      };
    }

    draw() {
      if (this.plot) this.plot.destroy();
      this.looked = false;
      this.tip.remove();
      const positive = (y) => (this.logarithmic && !(y > 0) ? null : y);
      this.plot = new uPlot(this.options(), [this.xs, ...this.chart.series.map((series) => series.y.map(positive))], this.place);
      this.plot.over.append(this.tip);
      this.plot.over.addEventListener("mouseleave", () => this.leave());
      this.drawLegend();
    }

    // Where medians lie with 95%, as an area between neighbouring points that both say so.
    drawBands(plot) {
      const context = plot.ctx;
      context.save();
      context.globalAlpha = 0.16;
      this.chart.series.forEach((series, i) => {
        if (!series.sure || this.hidden.has(i)) return;
        context.fillStyle = colourOf(series);
        const known = this.xs.map((_, k) => k).filter((k) => series.y[k] !== null);
        for (let n = 1; n < known.length; ++n) {
          const pair = [known[n - 1], known[n]];
          if (!pair.every((k) => series.sure[k] && (!this.logarithmic || series.low[k] > 0))) continue;
          const [a, b] = pair;
          context.beginPath();
          [[a, series.low], [b, series.low], [b, series.high], [a, series.high]].forEach(([k, ends], corner) =>
            context[corner ? "lineTo" : "moveTo"](plot.valToPos(this.xs[k], "x", true), plot.valToPos(ends[k], "y", true)));
          context.closePath();
          context.fill();
        }
      });
      context.restore();
    }

    // Marks at the points, a bar from the slowest to the fastest repeat, and a stroke for a line of one point.
    drawMarks(plot, i) {
      if (i === 0 || !plot.series[i].show) return;
      const series = this.chart.series[i - 1];
      const context = plot.ctx;
      const ratio = uPlot.pxRatio;
      context.save();
      context.strokeStyle = context.fillStyle = colourOf(series);
      context.setLineDash([]);
      const alone = series.y.filter((y) => y !== null).length === 1;
      this.xs.forEach((x, k) => {
        const y = series.y[k];
        if (y === null || (this.logarithmic && !(y > 0))) return;
        const left = plot.valToPos(x, "x", true);
        const top = plot.valToPos(y, "y", true);
        if (!series.marks) {
          if (!alone) return;
          context.lineWidth = 1.8 * ratio;
          context.setLineDash(dashes[series.stroke].map((length) => length * ratio));
          context.beginPath();
          context.moveTo(left - 46 * ratio, top);
          context.lineTo(left + 46 * ratio, top);
          context.stroke();
          return;
        }
        const low = series.low[k];
        const high = series.high[k];
        if (low !== undefined && low !== null && high > low && !(this.logarithmic && !(low > 0))) {
          const [from, to] = [plot.valToPos(low, "y", true), plot.valToPos(high, "y", true)];
          context.lineWidth = 1.4 * ratio;
          context.beginPath();
          context.moveTo(left, from);
          context.lineTo(left, to);
          for (const end of [from, to]) {
            context.moveTo(left - 5 * ratio, end);
            context.lineTo(left + 5 * ratio, end);
          }
          context.stroke();
        }
        context.beginPath();
        tracePath(context, shapeOf(series), left, top, 4.8 * ratio);
        context.fill();
      });
      context.restore();
    }

    drawLegend() {
      const legend = this.figure.querySelector(".legend");
      legend.replaceChildren(...this.chart.series.map((series, i) => {
        const entry = element("button");
        entry.type = "button";
        entry.setAttribute("aria-pressed", String(!this.hidden.has(i)));
        entry.title = "show or hide";
        entry.append(swatch(series), element("span", "", series.label));
        entry.style.color = "inherit";
        entry.style.background = "none";
        entry.addEventListener("click", () => {
          if (!this.hidden.delete(i)) this.hidden.add(i);
          entry.setAttribute("aria-pressed", String(!this.hidden.has(i)));
          this.plot.setSeries(i + 1, { show: !this.hidden.has(i) });
        });
        return entry;
      }));
    }

    moved(plot) {
      const k = plot.cursor.idx;
      if (k === null || k === undefined || plot.cursor.left < 0) {
        this.tip.hidden = true;
        return;
      }
      this.index = k;
      const rows = this.chart.series.map((series, i) => ({ series, y: series.y[k], shown: !this.hidden.has(i) }))
        .filter((row) => row.shown && row.y !== null).sort((a, b) => b.y - a.y);
      const unit = this.chart.y_label;
      const x = this.chart.x[k];
      const head = this.chart.x_names ? `${this.chart.x_label}: ${this.xText(x)}` : this.chart.x_doubles ? `${tick(x)} ${x === 1 ? this.chart.x_label.replace(/s$/, "") : this.chart.x_label}`
                                        : `${tick(x)} ${this.chart.x_label}`;
      this.tip.replaceChildren(element("b", "", head), ...rows.map((row) => {
        const line = element("div");
        line.append(swatch(row.series), element("span", "", row.series.label), element("span", "", `${format(row.y)} ${unit}`));
        return line;
      }));
      this.spoken = head + ": " + rows.map((row) => `${row.series.label} ${format(row.y)} ${unit}`).join(", ");
      this.tip.hidden = rows.length === 0;
      const room = plot.over.clientWidth;
      const left = plot.valToPos(this.xs[k], "x");
      const width = this.tip.offsetWidth;
      this.tip.style.left = Math.max(0, left + 16 + width > room ? left - width - 16 : left + 16) + "px";
      this.tip.style.top = Math.max(0, Math.min((plot.cursor.top || 0) - 20, plot.over.clientHeight - this.tip.offsetHeight)) + "px";
    }

    leave() {
      this.tip.hidden = true;
    }

    key(event) {
      const step = { ArrowRight: 1, ArrowLeft: -1, Home: -this.xs.length, End: this.xs.length }[event.key];
      if (event.key === "Escape") this.leave();
      if (!step) return;
      event.preventDefault();
      const next = this.index === null ? 0 : Math.min(this.xs.length - 1, Math.max(0, this.index + step));
      this.plot.setCursor({ left: this.plot.valToPos(this.xs[next], "x"), top: this.plot.over.clientHeight / 3 });
      live.textContent = this.spoken || "";
    }

    // Says on the figure whether its lines really reached the canvas: a chart that stays empty must not pass unnoticed.
    painted(plot) {
      // A plot that was replaced before its first frame still draws it.
      if (this.looked || plot !== this.plot) return;
      this.looked = true;
      const { ctx: context, bbox: box } = plot;
      const pixels = context.getImageData(box.left, box.top, Math.max(1, box.width), Math.max(1, box.height)).data;
      const line = parseInt(style("--line").slice(1), 16);
      let coloured = 0;
      for (let i = 0; i < pixels.length; i += 4)
        if (pixels[i + 3] > 200 && ((pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2]) !== line) ++coloured;
      this.figure.dataset.pixels = coloured;
      this.figure.dataset.drawn = coloured > 20 ? "yes" : "no";
    }
  }

  // Few charts are drawn at once; of many, those that come into view, and all before printing.
  const charts = new Map(typeof uPlot === "undefined" ? [] : json("charts").map((chart) => [chart.id, chart]));
  const drawn = new Map();
  const drawChart = (id) => drawn.has(id) || drawn.set(id, new LineChart(charts.get(id)));
  const drawAll = () => charts.forEach((_, id) => drawChart(id));
  const atOnce = 48;
  if (charts.size <= atOnce) {
    drawAll();
  } else {
    root.style.scrollBehavior = "auto";  // what is drawn on the way would move the target of a slow scroll
    const near = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        near.unobserve(entry.target);
        drawChart(entry.target.id);
      }
    }, { rootMargin: "500px" });
    charts.forEach((_, id) => near.observe(document.getElementById(id)));
  }
  addEventListener("beforeprint", drawAll);
  for (const figure of document.querySelectorAll("figure.bars"))
    figure.dataset.drawn = [...figure.querySelectorAll(".track")].some((track) => track.firstElementChild?.offsetWidth > 0) ? "yes" : "no";

  const redraw = () => drawn.forEach((chart) => chart.draw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try {
      localStorage.setItem("penstock-theme", theme);
    } catch { /* see above */ }
    applyTheme();
    redraw();
  });

  // ---- saving the numbers
  let sheets = null;
  for (const saver of document.querySelectorAll("button.csv"))
    saver.addEventListener("click", () => {
      sheets ??= json("sheets");
      const chart = charts.get(saver.dataset.csv);
      save([chart ? csvText(rowsOf(chart)) : sheets[saver.dataset.csv]], "text/csv", saver.dataset.file);
    });

  // ---- links lead into what is folded away
  const unfold = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    let folded = false;
    for (let at = target; at; at = at.parentElement)
      if (at.tagName === "DETAILS" && !at.open) folded = at.open = true;
    if (folded) target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  if (location.hash) unfold();

  // ---- raw records: one a line, read when they are asked for
  let lines = null;
  const records = () => (lines ??= document.getElementById("records-data").textContent.split("\n").filter((line) => line));
  const dialog = document.getElementById("raw");
  document.addEventListener("click", (event) => {
    const show = event.target.closest?.(".show-record");
    if (!show) return;
    dialog.querySelector("pre").textContent = JSON.stringify(JSON.parse(records()[Number(show.dataset.record)]), null, 2);
    dialog.showModal();
  });
  document.getElementById("save-records")?.addEventListener("click", () =>
    save(records().map((line) => JSON.stringify(JSON.parse(line)) + "\n"), "application/x-ndjson", "penstock-records.jsonl"));
  root.dataset.ready = "yes";
})();
