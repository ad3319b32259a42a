#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""All pages of `sonde up` in a real Chromium: wide, narrow, dark, on paper, with and without script, live, with hostile names."""
import re
import subprocess
import tempfile

from browser import NARROW, WIDE, Browser
from capabilities import need
from pages import PAST, OfHostile, Up, numbers, shape
from pages_in_chromium import InChromium
from sonde import wait_until

FIRST_VISIT_BYTES, LATER_VISIT_BYTES = 250_000, 60_000


class Visits(InChromium):
    def walk(self, name, **look):
        for path in self.one_of_each():
            with self.subTest(path):
                self.visit(path, **look)
                self.browser.screenshot(f"{name}-{path}")
                self.assertEqual(self.browser.overflow(), [])

    def test_wide_and_light(self):
        self.walk("wide")

    def test_wide_and_dark(self):
        self.walk("dark", is_dark=True)

    def test_narrow_and_dark(self):
        self.walk("narrow", size=NARROW, is_dark=True)

    def test_narrow_without_script(self):
        self.walk("plain", size=NARROW, has_script=False)

    def test_lynx_shows_the_same_numbers(self):
        need("lynx")
        for path in self.one_of_each():
            with self.subTest(path):
                self.visit(path, has_script=False)
                source, shown = self.browser.ask("[document.documentElement.outerHTML, document.querySelector('main').innerText]")
                dumped = subprocess.run(["lynx", "-dump", "-stdin", "-nolist", "-width=1000", "-assume_charset=utf-8", "-display_charset=utf-8"],
                                        input=source, capture_output=True, text=True, check=True).stdout
                self.assertEqual(numbers(shown) - numbers(dumped), set())

    def test_a_page_says_the_same_with_and_without_script(self):
        for path in self.one_of_each():
            with self.subTest(path):
                said = []
                for has_script in (False, True):
                    self.visit(path, has_script=has_script)
                    said.append(self.browser.ask("[...document.querySelectorAll('h1, h2, th[scope=col], nav a, label')].map(e => e.innerText.trim())"))
                self.assertEqual(*said)

    def test_charts_can_be_zoomed_with_script(self):
        self.visit("/")
        wait_until(lambda: self.browser.ask("document.querySelectorAll('main canvas').length"), "a chart is drawn by the script")

    def hasten(self, times=100):
        """Clocks of pages that are opened from here on run so much faster: what is renewed every minute, in half a second."""
        added = self.browser.command("Page.addScriptToEvaluateOnNewDocument", source=f"""(() => {{
            const after = window.setTimeout.bind(window), now = performance.now.bind(performance), get = window.fetch.bind(window);
            window.setTimeout = (call, wait = 0, ...rest) => after(call, wait / {times}, ...rest);
            performance.now = () => {times} * now();
            window.asked = [];
            window.fetch = (address, ...rest) => {{ window.asked.push(String(address)); return get(address, ...rest); }};
        }})()""")
        self.addCleanup(lambda: self.browser.command("Page.removeScriptToEvaluateOnNewDocument", identifier=added["identifier"]))

    def test_charts_renew_and_keep_the_zoom_and_the_focus(self):
        up = self.enterContext(Up(self.enterContext(tempfile.TemporaryDirectory()), "--demo"))
        up.wait_log(PAST)
        self.hasten()
        self.browser.look()
        self.browser.open(up.url + "/")
        figure = "document.querySelector('figure.chart')"
        wait_until(lambda: self.browser.ask(f"Boolean({figure}.graph)"), "a chart is drawn by the script")
        self.browser.ask(f"""(() => {{
            const graph = {figure}.graph, ends = graph.xAxisRange(), third = (ends[1] - ends[0]) / 3;
            graph.updateOptions({{dateWindow: [ends[0] + third, ends[1] - third]}});
            document.querySelector('main a').focus({{preventScroll: true}});
            window.zoomed = graph.xAxisRange();
            window.first = {figure}.data;
            window.section = document.activeElement.closest('[data-live]');
        }})()""")
        focus = self.browser.ask("document.activeElement.getAttribute('href')")
        self.assertTrue(focus)
        wait_until(lambda: self.browser.ask(f"{figure}.data !== window.first"), "a chart has new numbers")
        wait_until(lambda: self.browser.ask("!window.section.isConnected"), "what has the focus is replaced")
        self.assertEqual(*self.browser.ask(f"[{figure}.graph.xAxisRange(), window.zoomed]"))
        self.assertEqual(self.browser.ask("document.activeElement.getAttribute('href')"), focus)

    def test_images_renew_where_the_script_draws_none(self):
        self.hasten()
        self.browser.command("Network.enable")
        self.browser.command("Network.setBlockedURLs", urls=["*dygraph*"])
        self.addCleanup(lambda: self.browser.command("Network.setBlockedURLs", urls=[]))
        self.browser.look()
        self.browser.open(self.up.url + "/")
        image = "document.querySelector('figure.chart img')"
        first = self.browser.ask(f"{image}.getAttribute('src')")
        wait_until(lambda: self.browser.ask(f"{image}.getAttribute('src')") != first, "an image is renewed")
        self.assertEqual(self.browser.ask("document.querySelectorAll('main canvas').length"), 0)
        wait_until(lambda: self.browser.ask(f"{image}.complete && {image}.naturalWidth > 0"), "it is seen")

    def test_a_page_that_is_paused_asks_for_nothing_and_goes_on_when_told(self):
        self.hasten()
        self.browser.look(is_still=True)
        self.browser.open(self.up.url + "/partitions")
        resting = "window.asked.filter((address) => address === location.href).length"
        self.browser.ask_promise("new Promise(done => setTimeout(() => done(1), 100000))")  # as long as a minute and a half of the page's
        self.assertEqual(self.browser.ask(resting), 0)
        self.browser.ask("document.querySelector('footer button').click()")
        wait_until(lambda: self.browser.ask(resting) > 1, "the page is asked for again")
        self.browser.ask("document.querySelector('footer button').click()")
        wait_until(lambda: self.browser.ask_promise(f"new Promise(done => {{ const before = {resting}; setTimeout(() => done({resting} === before), 60000); }})"),
                   "it stands still")

    def test_a_hidden_page_asks_for_nothing(self):
        self.hasten()
        self.browser.look()
        self.browser.open(self.up.url + "/partitions")
        wait_until(lambda: self.browser.ask("window.asked.length > 1"), "the page is asked for again")
        self.browser.ask("""(() => {
            window.state = 'hidden';
            Object.defineProperty(document, 'visibilityState', {get: () => window.state});
            document.dispatchEvent(new Event('visibilitychange'));
        })()""")
        wait_until(lambda: self.browser.ask_promise("new Promise(done => { const before = asked.length; setTimeout(() => done(asked.length === before), 60000); })"),
                   "it asks no more")
        before = self.browser.ask("window.asked.length")
        self.browser.ask("(() => { window.state = 'visible'; document.dispatchEvent(new Event('visibilitychange')); })()")
        wait_until(lambda: self.browser.ask("window.asked.length") > before, "it asks again")

    def test_a_server_that_is_away_is_asked_less_and_less(self):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        self.hasten()
        self.browser.look()
        with Up(directory, "--demo") as up:
            wait_until(lambda: up.get("/partitions").status == 200, "pages are there")
            self.browser.open(up.url + "/partitions")
            wait_until(lambda: self.browser.ask("window.asked.length > 1"), "the page is asked for again")
            self.assertEqual(self.browser.ask("document.querySelector('footer [role=status]').textContent"), "")
        wait_until(lambda: "asking again in 120 s" in self.browser.ask("document.querySelector('footer [role=status]').textContent"), "it says so")
        self.assertTrue(self.browser.ask("document.querySelectorAll('main tbody tr').length"))

    def test_paper_has_the_images_of_the_server_in_colours_for_white(self):
        self.visit("/", is_dark=True)
        wait_until(lambda: self.browser.ask("document.querySelectorAll('main canvas').length"), "a chart is drawn by the script")
        self.browser.command("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.addCleanup(lambda: self.browser.command("Emulation.setEmulatedMedia", media="", features=[]))
        self.assertEqual(self.browser.ask("getComputedStyle(document.querySelector('.drawn')).display"), "none")
        self.assertGreater(self.browser.ask("document.querySelector('figure.chart img').getBoundingClientRect().width"), 300)
        self.assertEqual(self.browser.ask("getComputedStyle(document.documentElement).getPropertyValue('--blue').trim()"), "#0b5cad")

    def test_charts_have_the_same_colours_with_and_without_script(self):
        for is_dark in (False, True):
            with self.subTest(is_dark=is_dark):
                self.visit("/", is_dark=is_dark)
                wait_until(lambda: self.browser.ask("Boolean(document.querySelector('figure.chart').graph)"), "a chart is drawn by the script")
                drawn = self.browser.ask("document.querySelector('figure.chart').graph.getColors()")
                image = self.up.get(self.browser.ask("document.querySelector('figure.chart img').getAttribute('src')")).text
                numbers = list(dict.fromkeys(re.findall(r'class="sonde-line-(\d)"', image)))
                light = [re.search(rf'class="sonde-line-{number}"[^>]* stroke="(#\w+)"', image)[1] for number in numbers]
                dark = [re.search(rf'\.sonde-line-{number}{{stroke:(#\w+)}}', image)[1] for number in numbers]
                self.assertGreater(len(numbers), 1)
                self.assertEqual(drawn[:len(numbers)], dark if is_dark else light)

    def test_visits_are_small(self):
        """Without what is fetched anew while a page is looked at."""
        self.browser.forget()
        first = self.visit("/", is_still=True)
        self.assertLess(first.bytes, FIRST_VISIT_BYTES)
        later = {path: self.visit(path, is_still=True).bytes for path in self.one_of_each()}
        print(f"# first visit {first.bytes} bytes; later at most {max(later.values())} ({max(later, key=later.get)})")
        self.assertEqual({path: size for path, size in later.items() if size >= LATER_VISIT_BYTES}, {})


class Hostile(OfHostile):
    def test_a_browser_runs_none_of_it(self):
        need("chromium")
        up, _, pages = self.walked(True)
        window = Browser()
        self.addCleanup(window.end)
        for size in (WIDE, NARROW):
            window.look(size=size)
            for path in {shape(path)[0]: path for path in pages}.values():
                with self.subTest(path, size=size):
                    visit = window.open(up.url + path)
                    visit.settle()
                    self.assertEqual((visit.status, visit.complaints, window.overflow()), (200, [], []))
                    if size == NARROW:
                        window.screenshot(f"hostile-{shape(path)[0]}")


if __name__ == "__main__":
    import tap
    tap.main()
