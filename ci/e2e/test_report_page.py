"""The report as a browser sees it. Exits 77 where there is no Chromium (ci/bootstrap browser brings it)."""

import json
import subprocess

import browser
import synthetic_records as synthetic
from penstock_cli import PENSTOCK, CliTest, main

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


class Page(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        rows = subprocess.run([PENSTOCK, "--version", "--json"], capture_output=True, text=True, check=True).stdout
        cls.charts = any(row.get("name") == "uplot" and row.get("present") for row in map(json.loads, rows.splitlines()))

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
        alone = self.browser.evaluate("[...document.querySelectorAll('.beside > figure')].filter((figure) => !figure.parentElement.querySelector('table')).length")
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
        self.assertIn("cannot open 'x'", self.browser.evaluate("document.body.innerText"))

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
