#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A walk through all pages of `sonde up`: as text, with tidy and lynx, in a real Chromium, with hostile names, as several people."""
import base64
import collections
import fnmatch
import html.parser
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import tempfile
import time
import unittest
import urllib.parse

import sonde
from browser import NARROW, WIDE, Browser
from capabilities import AXE_CORE, need
from sonde import ROOT, SONDE, tables, wait_until

CSP = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; style-src-attr 'unsafe-inline'; "
       "form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
FIRST_VISIT_BYTES, LATER_VISIT_BYTES = 250_000, 60_000
# Debian's tidy is older than some words of HTML, and takes those of SVG for HTML's.
UNKNOWN_TO_TIDY = re.compile('<data> is not approved by W3C|proprietary attribute "(aria-current|loading|font-family)"|<title> proprietary attribute "id"')
PAGES = ("/", "/jobs", "/nodes", "/partitions", "/reservations", "/clusters", "/allocations", "/health", "/search?q=cn01",
         "/jobs?kept=1", "/nodes?view=table", "/jobs?state=PENDING", "/jobs?offset=1000000", "/jobs?user=nobody-has-this-name")


class Up(sonde.Up):
    """`sonde up`, with whatever it keeps in a directory of the test's own."""

    def __init__(self, directory, *flags, **arguments):
        os.chmod(directory, 0o1777)  # started by root, it becomes another user
        environment = {"XDG_STATE_HOME": str(directory), "XDG_RUNTIME_DIR": str(directory), "TMPDIR": str(directory)}
        super().__init__(*flags, env=environment, **arguments)

    @staticmethod
    def complete(flags):
        """Whom root becomes cannot start what makes PDFs where only root can look, in its home say."""
        can_reach = all(place.stat().st_mode & stat.S_IXOTH for place in SONDE.parents)
        return sonde.Up.complete(flags if can_reach or os.geteuid() else ("--user=root", *flags))


class Page(html.parser.HTMLParser):
    """What is in a page: its elements, in order, with their attributes, what is drawn within it (SVG), and its texts."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.drawn, self.texts, self.open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        (self.drawn if "svg" in self.open else self.elements).append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def of(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]

    def words(self):
        """All pairs of an element and an attribute."""
        return {(tag, name) for tag, attrs in self.elements + self.drawn for name in (None, *attrs)}

    def addresses(self):
        """What it leads to and what it needs."""
        for tag, attrs in self.elements:
            yield from (attrs[name] for name in ("href", "src", "srcset", "action", "data-series") if attrs.get(name) is not None)


def shape(path):
    """The same for pages of one kind: /job/7?a=1 and /job/8?a=2."""
    address = urllib.parse.urlsplit(path)
    parts = address.path.split("/")
    return "/".join(parts[:4] if parts[1] == "api" else parts[:2]), tuple(sorted(dict(urllib.parse.parse_qsl(address.query))))


def walk(get, alike, most=600, more=()):
    """path → answer: all that can be reached from these pages by links of this host, so many of each shape."""
    first = (*PAGES, *more)
    answers, waiting, seen, known = {}, collections.deque(first), collections.Counter(map(shape, first)), set(first)
    while waiting and len(answers) < most:
        path = waiting.popleft()
        answers[path] = answer = get(path)
        if not (answer.headers["Content-Type"] or "").startswith("text/html"):
            continue
        for address in Page(answer.text).addresses():
            whole = urllib.parse.urlsplit(urllib.parse.urljoin(f"http://here{path}", address))
            if whole.netloc != "here" or whole.scheme != "http":
                continue
            target = urllib.parse.urlunsplit(("", "", whole.path, whole.query, ""))
            if target not in known and seen[shape(target)] < alike:
                known.add(target)
                seen[shape(target)] += 1
                waiting.append(target)
    return answers


def is_page(answer):
    return (answer.headers["Content-Type"] or "").startswith("text/html")


def numbers(text):
    return set(re.findall(r"\d[\d.,:]*\d|\d", text))


class OfDemo(unittest.TestCase):
    """On the simulated cluster, which is walked through once for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.up = cls.enterClassContext(Up(directory, "--demo"))
        wait_until(lambda: cls.up.get("/jobs").status == 200, "pages are there")
        wait_until(lambda: "/job/" in cls.up.get("/jobs?kept=1&state=TIMEOUT&min_seconds=600").text, "a day of jobs is kept")
        cls.special = tuple(cls.special_pages())
        cls.answers = walk(cls.up.get, alike=3, more=cls.special)
        cls.pages = {path: answer for path, answer in cls.answers.items() if is_page(answer)}

    @classmethod
    def special_pages(cls):
        """Jobs of several kinds, which the first links need not lead to."""
        queue = json.loads(cls.up.get("/api/v1/queue?limit=1000").text)["jobs"]
        yield f"/array/{next(job['array_job_id'] for job in queue if 'array_job_id' in job)}"
        yield f"/job/{next(job['job_id'] for job in queue if job['state'] == 'RUNNING')}"
        for question in ("state=COMPLETED&min_gpus=1&min_seconds=3600", "state=FAILED,TIMEOUT&min_seconds=600"):
            found, = wait_until(lambda: json.loads(cls.up.get(f"/api/v1/jobs?limit=1&{question}").text)["jobs"], question)
            yield f"/job/{found['job_id']}?key={found['key']}"

    def on_each_page(self, check):
        for path, answer in self.pages.items():
            with self.subTest(path):
                check(answer, Page(answer.text))

    def one_of_each(self):
        """A page of each kind, the first that was met, and those that are looked at in several ways."""
        found = {}
        for path in self.pages:
            found.setdefault(shape(path)[0], path)
        return list({path: None for path in (*PAGES, *self.special, *found.values()) if path in self.pages})


class Walk(OfDemo):
    def test_every_link_leads_somewhere(self):
        self.assertEqual({path: answer.status for path, answer in self.answers.items() if answer.status != 200}, {})

    def test_all_kinds_of_pages_are_met(self):
        met = {name for name, _ in map(shape, self.pages)}
        self.assertEqual({"/", "/jobs", "/job", "/user", "/account", "/nodes", "/node", "/partitions", "/reservations", "/clusters",
                          "/allocations", "/health", "/array"} - met, set())

    def test_every_page_says_that_the_cluster_is_simulated(self):
        self.on_each_page(lambda _, page: self.assertRegex(" ".join(page.texts).lower(), "simulated"))

    def test_headers_let_nothing_else_in_and_nothing_be_kept(self):
        wanted = {"Content-Security-Policy": CSP, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Set-Cookie": None}
        self.on_each_page(lambda answer, _: self.assertEqual({name: answer.headers[name] for name in wanted}, wanted))

    def test_nothing_is_fetched_from_elsewhere(self):
        def check(_, page):
            needed = [attrs.get("src") or attrs.get("srcset") or attrs.get("href") for tag in ("img", "script", "link", "iframe", "source") for attrs in page.of(tag)]
            self.assertEqual([address for address in needed if not (address or "").startswith("/")], [])
            self.assertEqual([attrs for attrs in page.of("script") if not attrs.get("src")], [])
            self.assertEqual(page.of("style"), [])
        self.on_each_page(check)

    def test_pages_can_be_read_without_being_seen(self):
        def check(_, page):
            self.assertEqual(page.of("html")[0].get("lang"), "en")
            self.assertEqual((len(page.of("h1")), len(page.of("main")), len(page.of("title"))), (1, 1, 1))
            self.assertEqual([attrs for attrs in page.of("img") if not attrs.get("alt")], [])
            self.assertEqual(len(page.of("table")), len(page.of("caption")))
            named = {attrs.get("for") for attrs in page.of("label")}
            fields = [attrs for tag in ("input", "select") for attrs in page.of(tag) if attrs.get("type") not in ("hidden", "submit")]
            wrapped = len(page.of("label")) - len(named - {None})
            unnamed = [attrs for attrs in fields if attrs.get("id") not in named and not attrs.get("aria-label")]
            self.assertLessEqual(len(unnamed), wrapped, unnamed)
        self.on_each_page(check)

    def test_ids_are_unique_and_links_within_a_page_lead_to_one(self):
        def check(_, page):
            ids = [attrs["id"] for _, attrs in page.elements + page.drawn if attrs.get("id")]
            self.assertEqual([name for name, count in collections.Counter(ids).items() if count > 1], [])
            inner = {attrs["href"][1:] for attrs in page.of("a") if (attrs.get("href") or "").startswith("#")}
            self.assertEqual(inner - set(ids), set())
        self.on_each_page(check)

    @unittest.skipUnless(shutil.which("tidy"), "tidy is not installed")
    def test_tidy_finds_no_mistake(self):
        def check(answer, _):
            done = subprocess.run(["tidy", "-q", "-e", "-utf8", "--drop-empty-elements", "no", "--new-inline-tags", "data"],
                                  input=answer.body, capture_output=True)
            self.assertEqual([line for line in done.stderr.decode().splitlines() if not UNKNOWN_TO_TIDY.search(line)], [])
        self.on_each_page(check)

    def test_what_there_is_not_is_404_and_says_so_on_a_page(self):
        for path in ("/nothing", "/job/999999999", "/job/what", "/user/nobody-has-this-name", "/account/none", "/node/none", "/array/999999999"):
            with self.subTest(path):
                answer = self.up.get(path)
                self.assertEqual((answer.status, is_page(answer)), (404, True))
                self.assertTrue(Page(answer.text).of("nav"))


class InChromium(OfDemo):
    @classmethod
    def setUpClass(cls):
        need("chromium")
        super().setUpClass()
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.end)

    def visit(self, path, **look):
        self.browser.look(**look)
        visit = self.browser.open(self.up.url + path)
        visit.settle()
        self.assertEqual((visit.status, visit.complaints), (200, []))
        return visit

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

    @unittest.skipUnless(shutil.which("lynx"), "lynx is not installed")
    def test_lynx_shows_the_same_numbers(self):
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
        self.hasten()
        self.browser.look()
        self.browser.open(self.up.url + "/")
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

    def test_axe_finds_nothing(self):
        need("axe-core")
        source = (ROOT / AXE_CORE).read_text()
        for path in self.one_of_each():
            for is_dark in (False, True):
                with self.subTest(path, is_dark=is_dark):
                    self.visit(path, is_dark=is_dark)
                    self.browser.command("Runtime.evaluate", expression=source)
                    found = self.browser.ask_promise("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'best-practice']}).then(r => r.violations.map(v => "
                                                     "[v.id, v.nodes.length, v.nodes[0].html.slice(0, 200)]))")
                    self.assertEqual(found, [])


HOSTILE = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "' onfocus='alert(1)' autofocus='", "</title></main><svg/onload=alert(1)>",
    "javascript:alert(1)//", "&lt;b&gt;&#60;i&#62;", "../../etc/passwd?x=1&y=2#z", "%3Cimg%20src%3Dx%3E%00", "a\nb\r\tc\x1b[31m", "\u202egnp\u2066",
    "{{7*7}}${7*7}`", "<!--", "]]></textarea>", "long" * 70, "<a href=javascript:alert(1)>", "\\u003cb\\u003e\\", "+ & = ; ' \"", "<base href=//x>",
)
IN_HOST_LISTS = [text for text in HOSTILE if not re.search(r"[\[\],\s\x00-\x1f]", text)]


class Recording:
    """A small cluster as `sonde admin record` writes it; names are either such ones or harmless."""

    JOBS = len(HOSTILE)

    def __init__(self, directory, is_hostile):
        self.is_hostile, self.names = is_hostile, {}
        self.directory, self.now = pathlib.Path(directory), int(time.time())
        self.directory.mkdir()
        self.directory.parent.chmod(0o755)
        for kind, members in (("config", {"config.cluster": self.name("cluster", 1), "config.version": "24.11.5", "config.user_id": 0, "config.hidden": 0}),
                              ("diag", {"diag.time": self.now}), ("nodes", self.nodes()), ("jobs", self.jobs()), ("reservations", self.reservations()), ("shares", self.shares()),
                              ("licenses", {"licenses": [{"name": self.name("licence", 0), "total": 4, "used": 1, "free": 3, "reserved": 0}]}),
                              ("associations", {"associations": [], "qos": [], "limits": []})):
            head = {"sonde": "0.1.0", "format": 1, "kind": kind, "source": "cli", "time": self.now}
            (self.directory / f"000001-{kind}.json").write_text(json.dumps({**head, **members}))

    def name(self, kind, i):
        texts = IN_HOST_LISTS if kind == "node" else HOSTILE
        harmless = f"{kind}{i:03}"
        hostile = texts[i % len(texts)] + harmless
        self.names[hostile] = harmless
        return hostile if self.is_hostile else harmless

    def nodes(self):
        n = len(IN_HOST_LISTS)
        nodes = [{"name": self.name("node", i), "state": "mixed" if i % 3 else "idle+drain", "cpus": 64, "cpus_alloc": 8, "cpus_idle": 56, "cpus_other": 0,
                  "cpu_load": 7.5, "memory_bytes": 1 << 38, "memory_alloc_bytes": 1 << 34, "memory_free_bytes": 1 << 37, "gres": "gpu:a100:4",
                  "gres_used": "gpu:a100:1(IDX:0)", "features": self.name("feature", i), "version": "24.11.5", "weight": 1, "first_partition": i,
                  "n_partitions": 1, "reservation": self.name("reservation", i % 3),
                  **({} if i % 3 else {"reason": self.name("remark", i), "reason_user": "root", "reason_time": self.now - 3600})} for i in range(n)]
        return {"nodes.lacks_settings": False, "nodes": nodes, "memberships": [{"partition": i} for i in range(n)],
                "partitions": [{"name": self.name("partition", i), "is_default": i == 0, "is_up": True, "time_limit_minutes": 1440} for i in range(n)]}

    def jobs(self):
        def one(i):
            state = ("RUNNING", "PENDING", "COMPLETED", "FAILED")[i % 4]
            node = self.name("node", i % len(IN_HOST_LISTS))
            return {"id": 1000 + i, "array_job_id": 1003 if i in (3, 7) else 0, **({"array_task_id": i} if i in (3, 7) else {}), "tasks": 1,
                    "het_job_id": 0, "het_offset": 0, "user_id": 2000 + i, "restarts": 0, "state": state, "user": self.name("user", i),
                    "account": self.name("account", i), "qos": self.name("qos", i), "name": self.name("job", i), "features": self.name("feature", i),
                    "partition": self.name("partition", i % len(IN_HOST_LISTS)), "alloc_node": "login1", "reservation": self.name("reservation", i % 3),
                    "tres": "cpu=8,mem=16G,node=1,billing=8,gres/gpu=1,gres/gpu:a100=1", "cpus": 8, "node_count": 1, "memory_bytes": 1 << 34,
                    "time_limit_minutes": 600, "priority": 100 + i, "submit_time": self.now - 7200 - i, "eligible_time": self.now - 7200 - i,
                    **({"reason": self.name("reason", i)} if state == "PENDING" else {"nodes": node, "start_time": self.now - 3600}),
                    **({"end_time": self.now - 60} if state in ("COMPLETED", "FAILED") else {})}
        return {"jobs.lacks_features": False, "jobs.lacks_qos": False, "jobs": [one(i) for i in range(self.JOBS)]}

    def reservations(self):
        return {"reservations": [{"name": self.name("reservation", i), "nodes": self.name("node", i), "users": self.name("user", i), "flags": "SPEC_NODES",
                                  "tres": "cpu=64", "node_count": 1, "core_count": 64, "is_active": True, "start_time": self.now - 3600,
                                  "end_time": self.now + 3600} for i in range(3)]}

    def shares(self):
        return {"shares": [{"account": self.name("account", i), "user": self.name("user", i), "parent": self.name("account", i), "is_parent": False,
                            "raw_shares": 1, "normalised_shares": 0.1, "raw_usage": 1000, "normalised_usage": 0.1, "effective_usage": 0.1,
                            "factor": 0.5, "level": 1.5} for i in range(self.JOBS)]}

    def harmless(self, path):
        """The address that the same page has where names are harmless."""
        text = re.sub(r"\bfrom=\d+", "from=then", urllib.parse.unquote(path, errors="replace").replace("+", " "))
        for hostile, harmless in sorted(self.names.items(), key=lambda pair: -len(pair[0])):
            text = text.replace(hostile.replace("+", " "), harmless)
        return text


def start_on(test, recording, *flags):
    directory = test.enterContext(tempfile.TemporaryDirectory())
    up = test.enterContext(Up(directory, f"--source=replay:{recording.directory}", "--no-agent", f"--store=sqlite:{directory}/sonde.db",
                              f"--series.path={directory}/series.db", *flags))
    return up


class Hostile(unittest.TestCase):
    def walked(self, is_hostile):
        recording = Recording(pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "recording"), is_hostile)
        up = start_on(self, recording)
        wait_until(lambda: "/job/1000" in up.get("/jobs?kept=1").text, "jobs are kept")
        answers = walk(up.get, alike=Recording.JOBS)
        return up, recording, {path: answer for path, answer in answers.items() if is_page(answer)}

    @staticmethod
    def tags(page):
        """How many there are of each, but for what is around a long name that is cut."""
        return collections.Counter(tag for tag, attrs in page.elements if tag != "span" or set(attrs) != {"title"})

    def test_no_name_becomes_markup_on_any_page(self):
        _, recording, hostile = self.walked(True)
        _, _, harmless = self.walked(False)
        harmless = {recording.harmless(path): Page(answer.text) for path, answer in harmless.items()}
        shown, matched = set(), 0
        for path, answer in hostile.items():
            page = Page(answer.text)
            with self.subTest(path):
                self.assertEqual([(tag, name) for tag, attrs in page.elements + page.drawn for name in attrs if name.startswith("on")], [])
                self.assertEqual([address for address in page.addresses() if not address.startswith(("/", "#", "?"))], [])
                shown |= {name for name in recording.names if any(name in text for text in page.texts)}
                same = harmless.get(recording.harmless(path))
                if same:
                    matched += 1
                    self.assertEqual(self.tags(page), self.tags(same))
                    self.assertEqual(page.words() - same.words() - {("span", "title")}, set())
        self.assertGreater(matched, len(hostile) * 0.8)
        printable = {name for name in recording.names if name.isprintable() and "long" not in name and "licence" not in name}
        self.assertEqual({name for name in printable if recording.names[name].startswith(("user", "account", "job", "node", "partition"))} - shown, set())

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


# What there is of one job, user or account, and its answer to somebody else.
PRIVATE = (
    "/job/{job}", "/job/{job}?key={key}", "/plot/{job}/cpu.svg", "/plot/{job}/cpu.png", "/plot/{job}/cpu", "/pie/{job}/", "/pdf/{job}", "/mail/{job}", "/report/{job}.txt", "/report/{job}.json",
    "/array/1003", "/user/{user}", "/account/{account}",
    "/api/v1/jobs/{key}", "/api/v1/jobs/{job}/usage", "/api/v1/series/{job}?plot=cpu", "/api/v1/users/{user}", "/api/v1/users/{user}/summary",
    "/api/v1/accounts/{account}/summary", "/api/v1/arrays/1003",
)
# Routes with a star of nobody's.
PUBLIC = {"/node/*", "/chart/*", "/api/v1/trends/*"}


class Access(unittest.TestCase):
    """A user, another one whose job it is, and staff: with passwords."""

    PASSWORD = "secret"

    def setUp(self):
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        made = subprocess.run(["/usr/bin/python3", "-W", "ignore", "-c",
                               f"import crypt; print(crypt.crypt('{self.PASSWORD}', crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16)))"],
                              capture_output=True, text=True, check=True).stdout.strip()
        config = directory / "web.yml"
        config.write_text("basic_auth_users:\n" + "".join(f"  {name}: {made}\n" for name in ("user000", "user003", "anna")))
        self.recording = Recording(directory / "recording", False)
        self.up = start_on(self, self.recording, f"--web.config.file={config}", "--web.auth=basic", "--web.staff=anna",
                           "--web.coordinator=account003:user003")
        wait_until(lambda: "/job/1003" in self.get("anna", "/jobs?kept=1").text, "jobs are kept")
        runs = json.loads(self.get("anna", "/api/v1/jobs?user=user003").text)["jobs"]
        self.words = {"job": "1003_3", "key": runs[0]["key"], "user": "user003", "account": "account003"}

    def get(self, name, path):
        proof = base64.b64encode(f"{name}:{self.PASSWORD}".encode()).decode()
        return self.up.get(path, headers={"Authorization": f"Basic {proof}"})

    def test_anothers_job_is_refused_in_every_form(self):
        for form in PRIVATE:
            path = form.format(**self.words)
            with self.subTest(path):
                self.assertEqual(self.get("user000", path).status, 403)
                self.assertNotIn(self.get("user003", path).status, (401, 403))
                self.assertNotIn(self.get("anna", path).status, (401, 403))

    def test_a_reload_is_for_staff(self):
        for name, status in (("user000", 403), ("user003", 403), ("anna", 200)):
            proof = base64.b64encode(f"{name}:{self.PASSWORD}".encode()).decode()
            answer = self.up.get("/-/reload", headers={"Authorization": f"Basic {proof}"}, method="POST", data=b"")
            self.assertEqual(answer.status, status, name)
        self.assertEqual(self.up.get("/-/reload", method="POST", data=b"").status, 401)

    def test_nobody_is_answered_without_a_password(self):
        for form in (*PRIVATE, *PAGES):
            self.assertEqual(self.up.get(form.format(**self.words)).status, 401, form)

    def test_nothing_that_a_user_can_reach_names_another(self):
        others = re.compile(r"(?:user|account|job)0(?!00)\d\d\b")
        answers = walk(lambda path: self.get("user000", path), alike=4)
        self.assertGreater(len(answers), 20)
        for path, answer in answers.items():
            with self.subTest(path):
                self.assertNotRegex(answer.body.decode(errors="replace"), others)
        for path in ("/jobs?user=user003", "/search?q=user003", "/api/v1/queue", "/api/v1/jobs", "/api/v1/jobs?user=user003", "/api/v1/overview",
                     "/api/v1/usage?group_by=user", "/api/v1/usage?group_by=account", "/api/v1/search?q=use", "/api/v1/search?q=acc"):
            with self.subTest(path):
                said = self.get("user000", path).text.replace(path, "").replace("user003", "", 1 if "user003" in path and "api" not in path else 0)
                self.assertNotRegex(said, others)

    def test_all_routes_of_one_job_or_person_are_tried(self):
        routes = {path for path in tables()["pages"] + tables()["api"] if "*" in path} - PUBLIC
        self.assertGreater(len(routes), 10)
        self.assertEqual({route for route in routes if not any(fnmatch.fnmatch(form.partition("?")[0], route) for form in PRIVATE)}, set())
        described = json.loads((ROOT / "docs/openapi.json").read_text())["paths"]
        asked = [re.sub(r"\{\w+\}|1003", "X", form.partition("?")[0]) for form in PRIVATE]
        private = {path for path in described if "{" in path and not re.search("trends|nodes", path)}
        self.assertEqual({path for path in private if re.sub(r"\{\w+\}", "X", path) not in asked}, set())


if __name__ == "__main__":
    import tap
    tap.main()
