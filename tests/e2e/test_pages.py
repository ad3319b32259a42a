#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A walk through all pages of `sonde up`: as text, with tidy, with hostile names, as several people."""
import base64
import collections
import fnmatch
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

from pages import PAGES, OfDemo, OfHostile, Page, Recording, is_page, page_of, shape, start_on, walk
from sonde import ROOT, tables, wait_until
from capabilities import need

CSP = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; style-src-attr 'unsafe-inline'; "
       "form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
# Debian's tidy is older than some words of HTML, and takes those of SVG for HTML's.
UNKNOWN_TO_TIDY = re.compile('<data> is not approved by W3C|proprietary attribute "(aria-current|loading|font-family)"|<title> proprietary attribute "id"')


class Walk(OfDemo):
    alike = 3

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

    def test_tidy_finds_no_mistake(self):
        need("tidy")

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


class Hostile(OfHostile):
    @staticmethod
    def tags(page):
        """How many there are of each, but for what is around a long name that is cut."""
        return collections.Counter(tag for tag, attrs in page.elements if tag != "span" or set(attrs) != {"title"})

    def test_no_name_becomes_markup_on_any_page(self):
        _, recording, hostile = self.walked(True)
        _, _, harmless = self.walked(False)
        harmless = {recording.harmless(path): page_of(answer) for path, answer in harmless.items()}
        shown, matched = set(), 0
        for path, answer in hostile.items():
            page = page_of(answer)
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
