"""A headless Chromium driven over its debugging pipe: no port, no package, only the standard library."""

import json
import os
import select
import shutil
import subprocess
import time

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--disable-default-apps", "--disable-extensions",
    "--hide-scrollbars", "--remote-debugging-pipe",
]


def find():
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if path := shutil.which(name):
            return path
    return None


class Browser:
    """One page. `events` collects everything that the browser reported: [{"method", "params"}]."""

    def __init__(self, profile, timeout=60):
        self.timeout = timeout
        self.events = []
        self.answers = {}
        self.rest = b""
        self.number = 0
        self.session = None
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        def take_pipes():  # Chromium reads commands from descriptor 3 and answers on 4.
            copies = (os.dup(to_browser), os.dup(from_browser))
            os.dup2(copies[0], 3)
            os.dup2(copies[1], 4)

        self.process = subprocess.Popen([find(), *FLAGS, f"--user-data-dir={profile}", "about:blank"], preexec_fn=take_pipes,
                                        close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        for end in (self.write_end, self.read_end):
            os.close(end)
        self.process.kill()
        self.process.wait()

    def call(self, method, **params):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self.timeout
        while number not in self.answers:
            self.listen(deadline)
        answer = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def listen(self, deadline):
        if not select.select([self.read_end], [], [], max(0, deadline - time.monotonic()))[0]:
            raise TimeoutError("the browser is silent")
        chunk = os.read(self.read_end, 1 << 20)
        if not chunk:
            raise RuntimeError("the browser is gone")
        *messages, self.rest = (self.rest + chunk).split(b"\0")
        for text in messages:
            message = json.loads(text)
            if "id" in message:
                self.answers[message["id"]] = message
            else:
                self.events.append(message)

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def open(self, url, dark=False, width=1440, height=1000, ready="document.readyState === 'complete'"):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.events.clear()
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + self.timeout
        while not self.evaluate(f"location.href !== 'about:blank' && {ready}"):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{url} never got ready")
            time.sleep(0.05)

    def draw(self):
        """Waits for two frames, so that what was drawn last is on the canvas."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def requests(self):
        """Requested addresses, except the page itself and what it contains."""
        urls = [event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith(("file:", "data:", "blob:", "about:"))], urls

    def complaints(self):
        """What a console would show in red or yellow."""
        found = []
        for event in self.events:
            params = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(params["exceptionDetails"])[:600])
            if event["method"] == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(json.dumps(params["args"])[:600])
            if event["method"] == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
        return found
