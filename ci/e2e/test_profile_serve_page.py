"""What a browser makes of the page of `penstock profile serve`."""

import base64
import json
import os
import pathlib
import shutil
import signal
import time
import unittest
import urllib.parse

import browser
from messages import message
from penstock_cli import PATIENCE_S, has_library, main
from profile_serve_case import Page, RunningTest

# Pixels that the lines of a chart have, by their colours: the test's own look.
PAINTED = """[...document.querySelectorAll('figure.chart')].map((figure) => {
  const canvas = figure.querySelector('.plot canvas');
  const copy = Object.assign(document.createElement('canvas'), {width: canvas.width, height: canvas.height});
  const context = copy.getContext('2d', {willReadFrequently: true});
  context.drawImage(canvas, 0, 0);
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
  const strokes = ['--c0', '--c1', '--c2'].map((name) => parseInt(getComputedStyle(document.documentElement).getPropertyValue(name).trim().slice(1), 16));
  let count = 0;
  for (let i = 0; i < pixels.length; i += 4)
    if (pixels[i + 3] > 200 && strokes.includes((pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2])) ++count;
  return [figure.id, figure.dataset.drawn, count];
})"""




@unittest.skipIf(browser.find() is None, "no Chromium here (ci/bootstrap browser brings it)")
class Seen(RunningTest):
    def setUp(self):
        super().setUp()
        self.browser = browser.Browser(self.folder / "profile")
        self.addCleanup(self.end_browser)
        self.charts = has_library("uplot")

    def end_browser(self):
        """Its own children write for a moment longer than it lives."""
        self.browser.close()
        until = time.monotonic() + PATIENCE_S
        while (self.folder / "profile").exists() and time.monotonic() < until:
            shutil.rmtree(self.folder / "profile", ignore_errors=True)
            time.sleep(0.1)

    def show(self, page, **kwargs):
        self.browser.open(page.url, ready="document.documentElement?.dataset.ready === 'yes'", **kwargs)
        self.browser.draw()

    def check(self, page, painted=True):
        foreign, _ = self.browser.requests()
        self.assertEqual([url for url in foreign if not url.startswith(f"http://127.0.0.1:{page.port}/")], [])
        self.assertEqual(self.browser.complaints(), [])
        self.assertEqual(self.browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), True, "the page is no wider than the window")
        if painted and self.charts:
            for name, output, pixels in self.browser.evaluate(PAINTED):
                self.assertEqual(output, "yes", name)
                self.assertGreater(pixels, 20, name)

    def until(self, what):
        deadline = time.monotonic() + PATIENCE_S
        while not self.browser.evaluate(what):
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.1)

    def picture(self, name):
        if folder := os.environ.get("PENSTOCK_PICTURES"):
            data = self.browser.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
            pathlib.Path(folder, name + ".png").write_bytes(base64.b64decode(data))

    def test_while_it_runs(self):
        process, page, live = self.busy()
        page.wait(self, "there is something to draw", lambda live: len(live["history"]) > 2)
        for dark, width in ((False, 1440), (True, 1440), (False, 390), (True, 390)):
            with self.subTest(dark=dark, width=width):
                self.show(page, dark=dark, width=width)
                self.check(page)
                self.picture(f"live-{'dark' if dark else 'light'}-{width}")
        self.assertEqual(self.browser.evaluate("[...document.querySelectorAll('#process-table tbody tr')].length"), len(live["processes"]))
        self.assertRegex(self.browser.evaluate("document.getElementById('state').textContent"), r"^1 process running, for ")
        self.browser.evaluate("(document.getElementById('seconds').value = '3600', document.querySelector('#trace button').click())")
        self.until("document.getElementById('state').textContent.includes('Every call is recorded')")
        self.browser.evaluate("document.getElementById('disarm').click()")
        self.until("!document.getElementById('state').textContent.includes('Every call is recorded')")
        self.browser.evaluate("document.getElementById('snapshot').click()")
        self.until("document.getElementById('said').textContent.includes('-snapshot-')")
        os.kill(live["processes"][0]["pid"], signal.SIGTERM)
        process.wait()
        self.until("document.documentElement.dataset.running === 'false'")
        self.assertTrue(self.browser.evaluate("document.getElementById('trace').hidden && document.getElementById('snapshot').hidden"))
        self.check(page)

    def test_after_it_has_ended(self):
        page = Page(self, self.saved())
        page.wait(self, "it is looked at", lambda live: True)
        for dark, width in ((False, 1440), (True, 390)):
            self.show(page, dark=dark, width=width)
            self.check(page)
            self.picture(f"saved-{'dark' if dark else 'light'}-{width}")
        self.assertIn(message("page-shows-saved-session"), self.browser.evaluate("document.getElementById('state').textContent"))
        self.assertTrue(self.browser.evaluate("document.getElementById('trace').hidden"))
        report = self.browser.evaluate("document.getElementById('report').href")
        self.browser.open(report, ready="document.documentElement?.dataset.ready === 'yes'")
        self.check(page, painted=False)
        self.assertIn(message("page-heading-what-io-did"), self.browser.evaluate("document.body.textContent"))

    def test_other_colours_leave_nothing_of_the_last_ones(self):
        self.show(Page(self, self.saved()))
        if not self.charts:
            self.skipTest("this build has no charts")
        for _ in range(3):
            self.browser.evaluate("document.getElementById('theme').click()")
        self.assertEqual(self.browser.evaluate("['figure', 'figure .plot canvas', 'figure .plot .tooltip'].map((what) => document.querySelectorAll(what).length)"),
                         [2, 2, 2])

    def test_a_name_may_be_anything(self):
        _, page, _ = self.busy_with_a_strange_name()
        live = page.wait(self, "it is seen", lambda live: any("<script>" in file["path"] for file in live["hottest"]))
        path = next(file["path"] for file in live["hottest"] if "<script>" in file["path"])
        self.show(page)
        self.assertEqual(self.browser.evaluate("document.title"), "session - penstock")
        cells = "[...document.querySelectorAll('#file-table td:first-child')].map((cell) => cell.textContent)"
        self.until(f"{cells}.includes({json.dumps(path.replace(chr(10), chr(0x240a)))})")
        self.assertEqual(self.browser.complaints(), [])

    def test_links_bring_what_they_say(self):
        page = Page(self, self.saved())
        self.show(page)
        links = self.browser.evaluate("['report', 'report-json', 'download'].map((id) => document.getElementById(id).getAttribute('href'))")
        self.assertEqual([urllib.parse.urlsplit(link).path for link in links], ["/report", "/report.json", "/download"])
        for link in links:
            self.assertEqual(page.status(link, token=""), 200)


if __name__ == "__main__":
    main()
