#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A walk through the pages of `sonde up` on a real Slurm, whose jobs run on this machine: what they show is what Slurm says,
in text, with lynx, and in a real Chromium."""
import collections
import json
import re
import subprocess
import tempfile
import unittest

from browser import NARROW, WIDE, Browser
from cluster import Cluster, Gate
from relay import Relay
from sonde import wait_until
from capabilities import need
from pages import Page, Up, is_page, numbers, shape, walk

NAME = "<b>1 & \"2\"</b>"


def setUpModule():
    """One job that works, one that is held, some that have ended in several ways, and an array; and all pages about them."""
    Site.cluster = cluster = Cluster()
    unittest.addModuleCleanup(cluster.end)
    unittest.addModuleCleanup(cluster.run, "scancel", "-u", "alice", check=False)
    Site.gate, Site.rest = Gate(cluster), Gate(cluster)
    Site.works = cluster.batch(f"{Site.gate.wait} {cluster.behave} burn 86400 1 & {Site.rest.wait} kill $!; exec sleep infinity",
                               "-c2", "-J", NAME)
    Site.held = cluster.batch("true", "-H")
    Site.done, Site.failed = cluster.batch("true"), cluster.batch("exit 3")
    Site.array = cluster.batch("sleep 86400", "--array=1-4%2")
    for job_id, state in ((Site.done, "COMPLETED"), (Site.failed, "FAILED"), (Site.works, "RUNNING")):
        wait_until(lambda: cluster.state(job_id) == state, f"job {job_id} is {state}")
    relay = Relay(cluster)
    unittest.addModuleCleanup(relay.end)
    directory = unittest.enterModuleContext(tempfile.TemporaryDirectory())
    Site.up = up = unittest.enterModuleContext(Up(
        directory, f"--state.directory={directory}/state", f"--slurm.bin-path={relay.path}", "--source=cli", "--slurm.timeout=1h",
        "--series.interval=1s", "--slurm.poll-limit=1s", "--store.interval=1s", "--store.history-interval=1s"))
    wait_until(lambda: f"/job/{Site.works}" in up.get("/jobs").text, "jobs are there")
    wait_until(lambda: all(f"/job/{job_id}" in up.get("/jobs?kept=1").text for job_id in (Site.done, Site.failed)), "jobs are kept")
    wait_until(lambda: len(Site.points("cpu")) > 2, "the agent tells of the job")
    more = (f"/job/{Site.works}", f"/job/{Site.failed}", f"/job/{Site.held}", f"/array/{Site.array}")
    Site.answers = walk(up.get, alike=3, more=more)
    Site.pages = {path: answer for path, answer in Site.answers.items() if is_page(answer)}


class Site(unittest.TestCase):
    """What setUpModule has found."""

    @classmethod
    def points(cls, plot):
        answer = cls.up.get(f"/api/v1/series/{cls.works}?plot={plot}")
        return [point for point in json.loads(answer.text).get("points", []) if point[1] is not None] if answer.status == 200 else []

    def lines(self, *command):
        return self.cluster.run(*command).stdout.split("\n")[:-1]

    def one_of_each(self):
        found = {}
        for path in self.pages:
            found.setdefault(shape(path)[0], path)
        return [*found.values(), f"/job/{self.failed}", f"/job/{self.held}"]


class Facts(Site):
    def test_every_link_leads_somewhere(self):
        self.assertEqual({path: answer.status for path, answer in self.answers.items() if answer.status != 200}, {})
        met = {name for name, _ in map(shape, self.pages)}
        self.assertEqual({"/", "/jobs", "/job", "/user", "/account", "/nodes", "/node", "/partitions", "/clusters", "/health", "/array"} - met, set())

    def test_nothing_is_said_to_be_simulated(self):
        for path, answer in self.pages.items():
            self.assertNotIn("simulated cluster", answer.text.lower(), path)

    def test_states_are_those_that_squeue_counts_and_lists_have_as_many(self):
        def agree():
            told = collections.Counter(self.lines("squeue", "-hrat", "all", "-o%T"))
            overview = json.loads(self.up.get("/api/v1/overview").text)["clusters"][0]
            shown = {row["state"]: row["jobs"] for row in overview["job_states"]}
            listed = {state: json.loads(self.up.get(f"/api/v1/queue?state={state}").text)["tasks"] for state in shown}
            return shown == told == listed
        wait_until(agree, "squeue and the pages agree")

    def test_nodes_are_those_of_sinfo(self):
        told = set(self.lines("sinfo", "-hN", "-o%N"))
        page = self.up.get("/nodes").text
        self.assertEqual(set(re.findall(r'href="/node/([^"?]+)', page)), told)

    def test_a_job_that_works_has_its_name_its_facts_and_live_charts(self):
        page = Page(self.up.get(f"/job/{self.works}").text)
        text = " ".join(" ".join(page.texts).split())
        self.assertIn(NAME, text)
        self.assertRegex(text, "(?i)running")
        self.assertIn("alice", text)
        last = self.points("cpu")[-1]
        wait_until(lambda: self.points("cpu")[-1][0] > last[0], "there is a newer point")
        # It waits without CPU time, and then burns until a point of the chart shows that. How high that is depends on what others
        # leave it; where samples are missing, the chart has no points.
        idle = wait_until(lambda: (point := self.points("cpu")[-1])[1] < 0.01 and point, "it has started, and waits")
        self.gate.open()
        # No upper bound: a sample that comes late puts what two intervals used into one point.
        wait_until(lambda: any(point[0] > idle[0] and point[1] > 0.01 for point in self.points("cpu")),
                   "its chart has CPU time that it burns")
        self.rest.open()

    def test_what_has_ended_is_told_as_sacct_tells_it(self):
        for job_id, state in ((self.done, "COMPLETED"), (self.failed, "FAILED")):
            def told():
                run, = json.loads(self.up.get(f"/api/v1/jobs?job={job_id}").text)["jobs"]
                return [run["state"], run["user"], run["account"], str(run["cpus"]), f"{run.get('exit_code')}:{run.get('exit_signal', 0)}"]

            def accounted():
                rows = [line.split("|") for line in self.lines("sacct", "-nPX", "-j", str(job_id), "-o", "State,User,Account,AllocCPUS,ExitCode")]
                return rows[0] if rows and rows[0][0] == state else None
            row = wait_until(accounted, f"slurmdbd knows of the end of {job_id}")
            wait_until(lambda: told() == row, f"{row} is told")

    def test_lynx_shows_the_same_numbers(self):
        need("lynx")
        for path in self.one_of_each():
            with self.subTest(path):
                source = self.up.get(path).text
                main = re.search("<main.*</main>", source, re.S)[0]
                shown = " ".join(text for text in self.texts_of(main))
                dumped = subprocess.run(["lynx", "-dump", "-stdin", "-nolist", "-width=1000", "-assume_charset=utf-8", "-display_charset=utf-8"],
                                        input=source, capture_output=True, text=True, check=True).stdout
                self.assertEqual(numbers(shown) - numbers(dumped), set())

    @staticmethod
    def texts_of(main):
        return Page(re.sub("<(svg|datalist|title).*?</\\1>", "", main, flags=re.S)).texts


class InChromium(Site):
    def test_every_page_as_seen_by_several_eyes(self):
        need("chromium")
        window = Browser()
        self.addCleanup(window.end)
        for name, look in (("site-wide", {"size": WIDE}), ("site-narrow", {"size": NARROW, "is_dark": True}),
                           ("site-plain", {"size": WIDE, "has_script": False})):
            window.look(**look)
            for path in self.one_of_each():
                with self.subTest(path, look=name):
                    visit = window.open(self.up.url + path)
                    visit.settle()
                    window.screenshot(f"{name}-{path}")
                    self.assertEqual((visit.status, visit.complaints, window.overflow()), (200, [], []))


if __name__ == "__main__":
    import tap
    tap.main()
