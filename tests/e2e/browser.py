# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's Chromium without a screen, by chromium-driver and python3-selenium: what a page looks like and complains of."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from sonde import DEADLINE, ROOT, wait_until

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
except ImportError:
    Service = object

SCREENSHOTS = ROOT / "build/screenshots"
WIDE, NARROW = (1280, 900), (390, 844)
PORTS_TRIED = 20

# A pipe, since chromedriver would call a port by the name localhost.
FLAGS = ("--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions", "--mute-audio")


class Driver(Service):
    """Chromedriver on a port that it chooses itself, called by its address: not every container has a name for it."""

    @property
    def service_url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        """It chooses a port that is free for IPv6, and ends if another program has that port for IPv4: then it chooses another."""
        said = "port not available"
        for _ in range(PORTS_TRIED):
            if "port not available" in said:
                said = self._start_once()
        assert self.port, f"chromedriver did not start: {said}"

    def _start_once(self):
        """Sets the port, or returns what it printed."""
        self.port, said = 0, ""
        self.process = subprocess.Popen([self.path, "--port=0", "--disable-dev-shm-usage", *self.service_args],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=self.env)
        for line in self.process.stdout:  # that it has ended ends it too
            said += line
            if found := re.search(r"started successfully on port (\d+)", line):
                self.port = int(found[1])
                return ""
        self.process.wait()
        return said

    def is_connectable(self):
        return self.process.poll() is None


class Browser:
    """One window; end() closes it. What it is like is set by look() and holds for what is opened afterwards."""

    def __init__(self):
        # A short name: Chromium makes a socket two directories below, whose path has 107 bytes at most.
        self.home = tempfile.TemporaryDirectory(prefix="cr-")
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in (*FLAGS, f"--user-data-dir={self.home.name}/profile"):
            options.add_argument(flag)
        options.add_experimental_option("browserStartupTimeout", DEADLINE * 1000)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        log = str(pathlib.Path(self.home.name, "chromedriver.log"))
        # It writes nowhere else.
        homes = {name: self.home.name for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "TMPDIR")}
        self.driver = webdriver.Chrome(service=Driver(shutil.which("chromedriver"), log_path=log, env=os.environ | homes), options=options)
        self.driver.set_page_load_timeout(DEADLINE)
        # What a page fetches may take as long as it needs.
        self.command("Page.addScriptToEvaluateOnNewDocument", source="AbortSignal.timeout = () => new AbortController().signal")
        self.look()

    def end(self):
        self.driver.quit()
        self.home.cleanup()

    def command(self, name, **arguments):
        return self.driver.execute_cdp_cmd(name, arguments)

    def look(self, size=WIDE, is_dark=False, has_script=True, is_still=False):
        """A still page does not renew itself."""
        self.size, self.has_script = size, has_script
        self.command("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=size == NARROW)
        self.command("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if is_still else "no-preference"}])
        self.command("Emulation.setScriptExecutionDisabled", value=not has_script)

    def identify(self, headers):
        """Sends these with every request."""
        self.command("Network.enable")
        self.command("Network.setExtraHTTPHeaders", headers=headers)

    def forget(self):
        """As if never visited."""
        self.command("Network.clearBrowserCache")

    def open(self, url):
        """Returns what came of it. The page before, which may poll a server that has ended, adds no complaint."""
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(url)
        return Visit(self, url)

    def ask(self, expression):
        """The value of an expression of JavaScript in the page, also where its own scripts are off."""
        return self._value(self.command("Runtime.evaluate", expression=f"JSON.stringify({expression})"))

    def ask_promise(self, expression):
        """… of one that gives a promise: what it promises. Not where scripts are off, for nothing goes on there."""
        return self._value(self.command("Runtime.evaluate", expression=f"({expression}).then(value => JSON.stringify(value))", awaitPromise=True))

    @staticmethod
    def _value(answer):
        assert "exceptionDetails" not in answer, answer
        return json.loads(answer["result"].get("value", "null"))

    def overflow(self):
        """What is wider than the window, beyond what scrolls in a box of its own: a list of elements."""
        return self.ask("""(() => {
            const width = document.documentElement.clientWidth, found = [];
            if (document.documentElement.scrollWidth <= width) return found;
            for (const element of document.body.querySelectorAll('*')) {
                const box = element.getBoundingClientRect();
                if (box.right <= width + 1 || !box.width) continue;
                let outer = element.parentElement;
                while (outer && getComputedStyle(outer).overflowX === 'visible') outer = outer.parentElement;
                if (!outer || outer === document.body || outer === document.documentElement)
                    found.push(element.tagName + '.' + element.className + ' to ' + Math.round(box.right));
            }
            return found.length ? found : ['the page itself: ' + document.documentElement.scrollWidth];
        })()""")

    def screenshot(self, name):
        """The whole page, as a file of that name below SCREENSHOTS."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / (re.sub(r"[^\w.-]+", "_", name).strip("_")[:120] + ".png")
        height = min(self.ask("document.documentElement.scrollHeight"), 6000)
        self.command("Emulation.setDeviceMetricsOverride", width=self.size[0], height=max(height, self.size[1]), deviceScaleFactor=1,
                     mobile=self.size == NARROW)
        self.driver.save_screenshot(str(path))
        self.command("Emulation.setDeviceMetricsOverride", width=self.size[0], height=self.size[1], deviceScaleFactor=1,
                     mobile=self.size == NARROW)
        return path


class Visit:
    """What opening an address did."""

    def __init__(self, browser, url):
        self.browser, self.url = browser, url
        self.complaints, self.under_way, self.bytes, self.status = [], {}, 0, None
        self._look()

    def _look(self):
        driver = self.browser.driver
        self.complaints += [entry["message"] for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        for entry in driver.get_log("performance"):
            event = json.loads(entry["message"])["message"]
            self._take(event["method"], event["params"])

    def _take(self, method, params):
        # A page of Chromium's own, which a new window shows first, ends without a word about what it was fetching.
        if method == "Network.requestWillBeSent" and params["request"]["url"].startswith("http"):
            self.under_way[params["requestId"]] = params["request"]["url"]
        elif method == "Network.responseReceived":
            status = params["response"]["status"]
            if params["type"] == "Document":
                self.status = status
            elif status >= 400:  # a script that does not read it to its end lets it stand
                self.under_way.pop(params["requestId"], None)
        elif method in ("Network.loadingFinished", "Network.loadingFailed"):
            self.bytes += params.get("encodedDataLength", 0)
            self.under_way.pop(params["requestId"], None)

    def settle(self):
        """Until what its scripts have begun to fetch is there."""
        def is_quiet():
            if self.browser.has_script:
                self.browser.ask_promise("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(1)))))")
            self._look()
            return not self.under_way
        wait_until(is_quiet, f"{self.url} has all that it fetches; it waits for {list(self.under_way.values())}")

    def first_paint_ms(self):
        """Since the request, as the browser measured it; None: nothing was painted."""
        return self.browser.ask("(performance.getEntriesByName('first-paint')[0] || {startTime: null}).startTime")
