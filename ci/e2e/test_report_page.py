"""The report as a browser sees it. Exits 77 where there is no Chromium (ci/bootstrap browser brings it)."""

import csv
import io
import json

import browser
from messages import message
import synthetic_records as synthetic
from penstock_cli import SOURCE, CliTest, has_library, main

# Unpack what `npm pack axe-core` brings there.
AXE = SOURCE / "build" / "npm" / "node_modules" / "axe-core" / "axe.min.js"
HOSTILE = "</script><img src=http://example.invalid/x onerror=\"document.title='owned'\">"

# Counts the pixels of a chart's plotting area that differ from its corner's: the test's own look, not the page's word for it.
PAINTED = """[...document.querySelectorAll('figure.chart')].map((figure) => {
  const canvas = figure.querySelector('.plot canvas');
  const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Map();
  for (let i = 0; i < pixels.length; i += 4)
    if (pixels[i + 3] > 200) {
      const colour = (pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2];
      colours.set(colour, (colours.get(colour) || 0) + 1);
    }
  const wanted = [...figure.querySelectorAll('.legend button')].length;
  const strokes = [0, 1, 2, 3, 4, 5, 6].map((i) => parseInt(getComputedStyle(document.documentElement).getPropertyValue('--c' + i).trim().slice(1), 16));
  return {id: figure.id, said: figure.dataset.drawn, lines: wanted,
          strokes: strokes.map((stroke) => colours.get(stroke) || 0).filter((count) => count > 20).length};
})"""


# Text whose contrast with its background is too low: WCAG 2.1 asks 4.5, or 3 of large text.
LOW_CONTRAST = """(() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = parts(colour).map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.backgroundImage !== 'none') return null;
      const colour = parts(style.backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return style.backgroundColor;
    }
    return null;
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || element.closest('script, .unseen, .skip, .u-wrap') || !element.checkVisibility()) continue;
    const back = behind(element);
    if (!back) continue;
    ++seen;
    const style = getComputedStyle(element);
    const [a, b] = [light(style.color), light(back)].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < (large ? 3 : 4.5)) found.push([node.data.trim().slice(0, 40), style.color, back, contrast]);
  }
  return {seen, found};
})()"""

# Presses every CSV button and returns what each would save, by file name.
SAVED = """(async () => {
  const blobs = [];
  const names = [];
  URL.createObjectURL = (blob) => (blobs.push(blob), 'blob:none');
  HTMLAnchorElement.prototype.click = function () { names.push(this.download); };
  document.querySelectorAll('button.csv').forEach((button) => button.click());
  const texts = await Promise.all(blobs.map((blob) => blob.text()));
  return Object.fromEntries(names.map((name, i) => [name, texts[i]]));
})()"""


def cells(text):
    """Rows of a CSV, numbers as numbers: 1 and 1.0 are the same."""
    def value(field):
        try:
            return float(field)
        except ValueError:
            return field
    return [[value(field) for field in row] for row in csv.reader(io.StringIO(text, newline=""))]


def all_views():
    """Records that fill every section but that of changes."""
    return (synthetic.whole_experiment() + synthetic.grid_experiment() + synthetic.saving_experiment() + synthetic.rank_experiment()
            + [synthetic.fio(90 + threads, "disk", threads, 380 * threads ** 0.5) for threads in (1, 2, 4, 8)]
            + [synthetic.read(200 + depth, "disk", 1, "cold", 90 * depth ** 0.5, 1210, depth=depth) for depth in (2, 8, 32)]
            + synthetic.probe_experiment())


class Page(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.charts = has_library("uplot")

    def setUp(self):
        super().setUp()
        self.browser = browser.Browser(self.dir / "profile")
        self.addCleanup(self.browser.close)

    def show(self, records, dark=False, **kwargs):
        synthetic.write(self.dir / "runs", records)
        self.run_cli("report", "runs", "-o", "r.html")
        self.browser.open((self.dir / "r.html").as_uri(), dark=dark, ready="document.documentElement?.dataset.ready === 'yes'", **kwargs)
        self.browser.draw()

    def check_quiet(self):
        foreign, every = self.browser.requests()
        self.assertEqual(foreign, [])
        self.assertEqual(len([url for url in every if url.startswith("file:")]), 1, every)
        self.assertEqual(self.browser.complaints(), [])

    def check_painted(self, at_least):
        if not self.charts:
            self.assertIsNotNone(self.browser.evaluate("document.getElementById('no-charts')?.textContent"))
            return
        charts = self.browser.evaluate(PAINTED)
        self.assertGreaterEqual(len(charts), at_least)
        for chart in charts:
            self.assertEqual(chart["said"], "yes", chart)
            self.assertGreaterEqual(chart["lines"], 1, chart)
            self.assertGreaterEqual(chart["strokes"], 1, chart)
        bars = self.browser.evaluate("[...document.querySelectorAll('figure.bars')].map((bars) => bars.dataset.drawn)")
        self.assertEqual(set(bars) - {"yes"}, set())

    def test_light_and_dark_are_drawn_and_ask_no_network(self):
        backgrounds = set()
        for dark in (False, True):
            with self.subTest(dark=dark):
                self.show(synthetic.whole_experiment(), dark=dark)
                self.check_quiet()
                self.check_painted(at_least=5)
                self.assertEqual(self.browser.evaluate("document.querySelectorAll('figure.bars').length"), 3)
                backgrounds.add(self.browser.evaluate("getComputedStyle(document.body).backgroundColor"))
        self.assertEqual(len(backgrounds), 2)

    def test_saves_have_steps_above_rates_that_begin_at_one_place(self):
        self.show(synthetic.saving_experiment())
        self.check_quiet()
        self.check_painted(at_least=4)
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('figure.bars').length"), 1)
        if not self.charts:
            return
        stacks = self.browser.evaluate("""[...document.querySelectorAll('.stack')].map((stack) =>
          [...stack.querySelectorAll('.u-over')].map((over) => {
            const box = over.getBoundingClientRect();
            return [Math.round(box.left), Math.round(box.right), Math.round(box.top), Math.round(box.height)];
          }))""")
        self.assertEqual(len(stacks), 2)
        for steps, rates in stacks:
            self.assertEqual(steps[:2], rates[:2])
            self.assertLess(steps[2] + steps[3], rates[2])
            self.assertLess(steps[3], rates[3])

    def test_the_toggle_redraws_in_the_other_colours(self):
        self.show(synthetic.whole_experiment())
        before = self.browser.evaluate("getComputedStyle(document.body).backgroundColor")
        self.browser.evaluate("document.getElementById('theme').click(); document.getElementById('theme').click()")
        self.browser.draw()
        self.assertEqual(self.browser.evaluate("document.documentElement.dataset.theme"), "dark")
        self.assertNotEqual(before, self.browser.evaluate("getComputedStyle(document.body).backgroundColor"))
        self.check_quiet()
        self.check_painted(at_least=5)

    def test_every_chart_has_a_table_and_fits_narrow_screens(self):
        for records in (synthetic.saving_experiment(), synthetic.whole_experiment()):
            self.show(records, width=420, height=900)
            self.check_quiet()
            self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), 420)
        alone = self.browser.evaluate("[...document.querySelectorAll('.side-by-side > figure')].filter((figure) => !figure.parentElement.querySelector('table')).length")
        self.assertEqual(alone, 0)

    def test_keyboard_reads_a_chart_and_a_record(self):
        self.show(synthetic.whole_experiment())
        if self.charts:
            spoken = self.browser.evaluate("""(() => {
              const plot = document.querySelector('#chart-1 .plot');
              plot.focus();
              for (let i = 0; i < 2; ++i) plot.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}));
              return [document.activeElement === plot, document.getElementById('live').textContent];
            })()""")
            self.assertTrue(spoken[0])
            self.assertRegex(spoken[1], r"2 threads: .*disk [\d.]+ MiB/s")
        shown = self.browser.evaluate("document.querySelector('.show-record').click(); document.querySelector('#raw pre').textContent")
        self.assertEqual(json.loads(shown)["command"], "read")

    def test_every_view_is_drawn_in_light_and_dark_with_enough_contrast(self):
        for dark in (False, True):
            with self.subTest(dark=dark):
                self.show(all_views(), dark=dark)
                self.check_quiet()
                self.check_painted(at_least=10)
                contrast = self.browser.evaluate(LOW_CONTRAST)
                self.assertGreater(contrast["seen"], 500)
                self.assertEqual(contrast["found"], [])
                ids = self.browser.evaluate("[...document.querySelectorAll('main > section')].map((section) => section.id)")
                self.assertEqual(ids, ["findings", "tiers", "ranks", "depth", "reading", "peers", "training", "checkpoints", "probe", "generating",
                                       "time", "environment", "records"])

    def test_axe_finds_nothing(self):
        if not AXE.exists():
            self.skipTest(f"axe-core is missing in {AXE.parent}")
        for dark in (False, True):
            with self.subTest(dark=dark):
                self.show(all_views(), dark=dark)
                self.browser.evaluate(AXE.read_text() + "; 0")
                found = self.browser.evaluate("""axe.run(document, {resultTypes: ['violations']}).then((result) =>
                  result.violations.map((one) => [one.id, one.nodes.length, one.nodes[0].html.slice(0, 200)]))""")
                self.assertEqual(found, [])

    def test_a_chart_switches_to_samples_and_back(self):
        self.show(synthetic.whole_experiment())
        if not self.charts:
            return
        switched = self.browser.evaluate("""(async () => {
          const figure = document.getElementById('chart-1');
          const button = [...figure.querySelectorAll('figcaption button')].find((one) => one.textContent.startsWith('show '));
          const label = () => button.textContent;
          const numbers = () => [...figure.querySelectorAll('.numbers th')].map((cell) => cell.textContent).join();
          figure.querySelector('.numbers summary').click();
          await new Promise((done) => setTimeout(done, 50));
          const states = [[label(), numbers()]];
          for (let i = 0; i < 2; ++i) {
            button.click();
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            states.push([label(), numbers()]);
          }
          return [states, figure.dataset.drawn];
        })()""")
        (first, second, third), drawn = switched
        self.assertEqual(drawn, "yes")
        self.assertEqual(first, third)
        self.assertEqual([first[0], second[0]], ["show files/s", "show MiB/s"])
        self.assertIn("disk (MiB/s)", first[1])
        self.assertIn("disk (files/s)", second[1])
        self.check_quiet()

    def test_every_section_begins_with_an_answer_and_every_link_leads_somewhere(self):
        self.show(all_views())
        first = self.browser.evaluate("""[...document.querySelectorAll('main > section')].slice(1).map((section) =>
          [section.id, section.querySelector('h2').nextElementSibling.className, section.querySelector('.answer')?.textContent.trim().length])""")
        for section, kind, length in first:
            self.assertEqual(kind, "answer", section)
            self.assertGreater(length, 25, section)
        lost = self.browser.evaluate("""[...document.querySelectorAll('a[href^="#"]')].map((link) => link.getAttribute('href').slice(1))
          .filter((id) => !document.getElementById(id))""")
        self.assertEqual(lost, [])

    def test_saved_numbers_are_those_of_the_charts(self):
        self.show(all_views())
        saved = self.browser.evaluate(SAVED)
        self.check_quiet()
        self.run_cli("report", "runs", "--to", "csv", "-o", "numbers")
        written = {path.name: path.read_bytes().decode() for path in (self.dir / "numbers").iterdir()}
        del written["records.csv"], written["repeats.csv"]  # the page saves the records themselves
        names = json.loads(self.browser.evaluate("""JSON.stringify(Object.fromEntries(
          [...document.querySelectorAll('button.csv')].map((button) => [button.dataset.csv, button.dataset.file])))"""))
        if not self.charts:  # the page has no buttons of charts then
            written = {name: text for name, text in written.items() if name in names.values()}
        self.assertEqual(set(saved), set(written))
        for name, text in written.items():
            self.assertEqual(cells(saved[name]), cells(text), name)
            self.assertGreaterEqual(len(cells(text)), 2, name)
        charts = json.loads(self.browser.evaluate("document.getElementById('charts').textContent"))
        for chart in charts:
            rows = cells(saved[names[chart["id"]]])
            self.assertEqual([row[0] for row in rows[1:]], chart["x"])
            for series in chart["series"]:
                column = rows[0].index(f"{series['label']} ({chart['y_label']})")
                self.assertEqual([row[column] for row in rows[1:]], ["" if y is None else y for y in series["y"]])

    def test_a_chart_lists_its_numbers(self):
        self.show(synthetic.rank_experiment())
        if not self.charts:
            return
        listed = self.browser.evaluate("""(async () => {
          const figure = [...document.querySelectorAll('figure.chart')].find((figure) => figure.textContent.includes('against ranks'));
          const details = figure.querySelector('.numbers');
          details.querySelector('summary').click();
          await new Promise((done) => setTimeout(done, 0));
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          return [...details.querySelectorAll('tr')].map((row) => [...row.cells].map((cell) => cell.textContent));
        })()""")
        self.assertEqual([row[0] for row in listed], ["ranks", "1.00", "2.00", "4.00", "8.00"])
        self.assertEqual([row[-1] for row in listed[1:]], ["95% of the median"] * 4)
        self.assertEqual(len(listed[0]), 5)

    def test_the_heat_map_holds_the_records_numbers(self):
        records = synthetic.grid_experiment()
        self.show(records)
        self.check_quiet()
        shown = self.browser.evaluate("""[...document.querySelectorAll('.heat tbody tr')].map((row) =>
          [...row.cells].map((cell) => [cell.textContent, cell.querySelector('a')?.getAttribute('href'), getComputedStyle(cell).backgroundColor]))""")
        self.assertEqual([row[0][0] for row in shown], ["1", "2", "4", "8"])
        busy = {}
        for number, one in enumerate(records):
            row = [1, 2, 4, 8].index(one["parameters"]["threads"])
            column = [0, 1, 4].index(one["parameters"]["prefetch"])
            text, link, colour = shown[row][column + 1]
            value = one["metrics"]["accelerator_utilization"]["value"]
            self.assertAlmostEqual(float(text.rstrip("%")) / 100, value, delta=0.006)
            self.assertEqual(link, f"#record-{number + 1}")
            busy.setdefault(colour, []).append(value)
        self.assertGreaterEqual(len(busy), 4, "colours tell cells apart")
        steps = sorted(busy.values())
        for lower, upper in zip(steps, steps[1:]):
            self.assertLess(max(lower), min(upper), "a colour stands for one range of values")

    def test_a_keyboard_reaches_everything(self):
        self.show(all_views())
        expected = self.browser.evaluate("""[...document.querySelectorAll('a[href], button, summary, [tabindex="0"]')]
          .filter((element) => element.checkVisibility() && !element.closest('dialog')).length""")
        def press(key, code):
            for kind in ("keyDown", "keyUp"):
                self.browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                                  **({"text": "\r"} if key == "Enter" and kind == "keyDown" else {}))
        seen = []
        for _ in range(expected + 5):
            press("Tab", 9)
            at = self.browser.evaluate("""(() => {
              const at = document.activeElement;
              if (!at || at === document.body) return null;
              at.seen = (at.seen || 0) + 1;
              const style = getComputedStyle(at);
              return [at.seen, at.matches(':focus-visible'), style.outlineStyle, parseFloat(style.outlineWidth), at.outerHTML.slice(0, 80)];
            })()""")
            if at is None or at[0] > 1:
                break
            seen.append(at)
            self.assertTrue(at[1] and at[2] != "none" and at[3] >= 2, at)
        self.assertIn('class="skip"', seen[0][4])
        self.assertEqual(len(seen), expected)
        self.browser.evaluate("document.querySelector('.skip').focus()")
        press("Enter", 13)
        self.assertEqual(self.browser.evaluate("location.hash"), "#findings")

    def test_thousands_of_records_draw_what_is_shown(self):
        self.show(synthetic.many(3000))
        self.check_quiet()
        folded = self.browser.evaluate("[...document.querySelectorAll('details.part')].filter((part) => !part.open).length")
        self.assertGreater(folded, 40)
        if self.charts:
            drawn, all_charts = self.browser.evaluate("""[document.querySelectorAll('figure.chart[data-drawn]').length,
              document.querySelectorAll('figure.chart').length]""")
            self.assertGreater(all_charts, 100)
            self.assertLess(drawn, 48)
        self.browser.evaluate("location.hash = '#record-2777'")
        self.browser.evaluate("""new Promise((done) => {
          const look = () => {
            const box = document.getElementById('record-2777').getBoundingClientRect();
            return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight ? done() : setTimeout(look, 20);
          };
          look();
        })""")
        if self.charts:
            self.browser.evaluate("document.getElementById('reading-40').open = true; document.getElementById('reading-40').scrollIntoView()")
            self.browser.evaluate("""new Promise((done) => {
              const look = () => document.querySelector('#reading-40 figure.chart').dataset.drawn === 'yes' ? done() : setTimeout(look, 20);
              look();
            })""")
        shown = self.browser.evaluate("document.querySelector('[data-record=\"2776\"]').click(); document.querySelector('#raw pre').textContent")
        self.assertEqual(json.loads(shown)["id"], "00c0ffee00c0ffee-2776")

    def test_what_changed_is_drawn(self):
        self.show(synthetic.with_pairs({"base": 1000, "fast": 1300}))
        self.check_quiet()
        place = self.browser.evaluate("""(() => {
          const row = [...document.querySelectorAll('.changes tbody tr')].find((row) => row.textContent.includes('payload_bytes_per_s'));
          const bar = row.querySelector('.change');
          const box = bar.getBoundingClientRect();
          const at = bar.querySelector('.at').getBoundingClientRect();
          return [(at.left + at.right) / 2 - (box.left + box.right) / 2, box.width];
        })()""")
        self.assertGreater(place[0], place[1] / 10, "to the right of no change")

    def test_a_hostile_record_is_inert(self):
        records = synthetic.whole_experiment()
        for record in records:
            record["label"] = {HOSTILE: HOSTILE}
            record["reason"] = HOSTILE
            record["tiers"] = {"data": {**record["tiers"].get("data", {}), "name": HOSTILE}}
            record["environment"] = {**record["environment"], HOSTILE: HOSTILE}
        self.show(records)
        self.check_quiet()
        self.check_painted(at_least=4)
        self.assertEqual(self.browser.evaluate("document.images.length"), 0)
        self.assertNotEqual(self.browser.evaluate("document.title"), "owned")

    def test_one_cell_and_only_failures(self):
        self.show([synthetic.read(0, "disk", 1, "cold", 400, 1200)])
        self.check_quiet()
        self.check_painted(at_least=2)
        self.show([{**synthetic.read(0, "disk", 1, "cold", 400, 1200), "verdict": "failed", "reason": "cannot open 'x'"}])
        self.check_quiet()
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('figure').length"), 0)
        self.assertIn(message("page-cannot-open-record", name="x"), self.browser.evaluate("document.body.innerText"))

    def test_stays_readable_without_script(self):
        self.browser.call("Emulation.setScriptExecutionDisabled", value=True)
        synthetic.write(self.dir / "runs", synthetic.whole_experiment())
        self.run_cli("report", "runs", "-o", "r.html")
        self.browser.open((self.dir / "r.html").as_uri())
        self.assertIn("disk stops scaling at 4 threads", self.browser.evaluate("document.body.innerText"))


def lacking():
    """Why none of this can run here, or None."""
    return None if browser.find() else "skipped: there is no Chromium (ci/bootstrap browser)"


if __name__ == "__main__":
    main(lacking)
