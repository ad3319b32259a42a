#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages and API of the real programs, with their clock standing still, compared with files: `sonde up` on what a real Slurm
answered and on a simulated cluster with its day of history, `sonde web` on a store of a few jobs (made_store.c).

With SONDE_UPDATE_GOLDEN=1 the files are rewritten instead: ./check golden --update.
"""
import fnmatch
import json
import os
import re
import subprocess
import tempfile
import unittest

from sonde import BUILD, SONDE, Up, tables, wait_until
from test_golden import HERE, compare, replay
from test_questions import NOW

# file: address. What has a program of its own on paper or as pixels is told by its type alone.
RECORDED = {
    "pages/overview.html": "/",
    "pages/jobs.html": "/jobs?user=mallory",
    "pages/jobs_sorted.html": "/jobs?state=PENDING&sort=-cpus&account=ops",
    "pages/job_pending.html": "/job/8804037",
    "pages/job_running.html": "/job/8804020",
    "pages/job_failed.html": "/job/8804005",
    "pages/job_hostile.html": "/job/8804053",
    "pages/job_absent.html": "/job/4711",
    "pages/array.html": "/array/8804018",
    "pages/user.html": "/user/dave",
    "pages/account.html": "/account/ops",
    "pages/nodes.html": "/nodes",
    "pages/nodes_table.html": "/nodes?view=table",
    "pages/node.html": "/node/g1",
    "pages/partitions.html": "/partitions",
    "pages/reservations.html": "/reservations",
    "pages/clusters.html": "/clusters",
    "pages/search.html": "/search?q=c",
    "api/overview.json": "/api/v1/overview",
    "api/queue.json": "/api/v1/queue?user=bob,dave",
    "api/jobs.json": "/api/v1/jobs?user=dave",
    "api/job.json": "/api/v1/jobs/cjE3OTQ3ODc1NjQ6ODgwNDAyMDpzYW5kYm94",
    "api/array.json": "/api/v1/arrays/8804018",
    "api/nodes.json": "/api/v1/nodes",
    "api/partitions.json": "/api/v1/partitions",
    "api/reservations.json": "/api/v1/reservations",
    "api/user_summary.json": "/api/v1/users/dave/summary",
    "api/account_summary.json": "/api/v1/accounts/ops/summary",
    "api/clusters.json": "/api/v1/clusters",
    "api/search.json": "/api/v1/search?q=ca",
    "api/refusal.json": "/api/v1/jobs?colour=red",
}
SIMULATED = {
    "pages/demo_overview.html": "/",
    "pages/demo_job.html": "/job/39336",
    "pages/demo_job_running.html": "/job/39384",
    "pages/demo_user.html": "/user/alice",
    "pages/demo_node.html": "/node/cn01",
    "pages/allocations.html": "/allocations",
    "pages/plot.svg": "/plot/39384/cpu.svg",
    "pages/plot.png.txt": "/plot/39384/cpu.png",
    "pages/pie.png.txt": "/pie/39384/",
    "pages/chart.svg": "/chart/cpus.svg",
    "pages/report.txt": "/report/39384.txt",
    "pages/pdf.txt": "/pdf/39384",
    "pages/mail.txt": "/mail/39384",
    "api/series.json": "/api/v1/series/39384?plot=cpu",
    "api/trends.json": "/api/v1/trends/cpus",
    "api/job_usage.json": "/api/v1/jobs/39384/usage",
    "api/user.json": "/api/v1/users/alice",
    "api/usage.json": "/api/v1/usage?group_by=account,user",
    "api/constants.json": "/api/v1/constants",
}
STORED = {
    "pages/store_overview.html": "/",
    "pages/store_jobs.html": "/jobs?kept=1",
    "pages/store_job.html": "/job/103_1",
    "pages/store_job_choice.html": "/job/100",
    "pages/store_array.html": "/array/103",
    "pages/store_nodes.html": "/nodes",
    "pages/health.html": "/health",  # of sonde up it is full of durations
    "pages/store_allocations.html": "/allocations",
    "api/health.json": "/api/v1/health",
    "api/store_jobs.json": "/api/v1/jobs?cluster=cedar&limit=4",
    "api/store_queue.json": "/api/v1/queue",
    "api/store_usage.json": "/api/v1/usage?group_by=cluster,gpu_type",
}
MOMENT = "1794787738"  # when the answers were recorded
OCTOBER = "1790812800"
KINDS = {"nodes", "jobs", "reservations", "licenses", "diag", "shares", "associations", "config"}
# Soon polled and recorded again, with what another poll has completed.
OFTEN = ("--slurm.poll-limit=100ms", "--store.interval=1s", "--series.interval=1s")


def steady(text, directory):
    """What varies from run to run, from build to build, or with every change of a style sheet, by a word for it."""
    version = subprocess.run([SONDE, "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    text = text.replace(directory, "DIRECTORY").replace(version, "VERSION")
    return re.sub(r"(/static/\w+)-[0-9a-f]{10}\.", r"\1-HASH.", text)


# Pages leave out what takes too much of their time.
PATIENT = "--api.timeout=3h"


class Whole(Up):
    """Started by root, it stays root, who can read the recordings wherever this tree is."""

    @staticmethod
    def complete(flags):
        return PATIENT, *(("--user=root",) if os.geteuid() == 0 else ()), *flags


class Web(Up):
    command = "web"

    @staticmethod
    def complete(flags):
        return PATIENT, *flags


class Answers(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory())

    def get(self, program, path):
        return json.loads(program.get(path).text)

    def compare(self, program, rows):
        for name, path in rows.items():
            with self.subTest(name):
                answer = program.get(path)
                kind = answer.headers["Content-Type"]
                if kind in ("image/png", "application/pdf"):
                    text = f"{answer.status} {kind}\n"
                else:
                    text = steady(answer.body.decode(), self.directory)
                if kind == "application/json":
                    text = json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"
                compare(self, HERE / name, text)

    def test_a_recorded_cluster(self):
        commands = self.enterContext(replay(HERE / "slurm-24.11"))
        up = self.enterContext(Whole("--source=cli", "--no-agent", "--series.path=", "--no-store.history", *OFTEN,
                                     f"--state.directory={self.directory}/state", path=commands.path,
                                     env={"SONDE_CLOCK": MOMENT, "TZ": "UTC"}))
        wait_until(lambda: self.is_complete(up, {"c3"}), "the store has what Slurm told")
        self.compare(up, RECORDED)

    def is_complete(self, up, reserved):
        """All kinds were polled, and the store has the jobs, and the nodes with their reservations, which another poll
        tells."""
        kinds = {row["kind"] for cluster in self.get(up, "/api/v1/health").get("clusters", []) for row in cluster["kinds"]}
        queue = self.get(up, "/api/v1/queue?limit=1000").get("jobs", [])
        kept = {job["job_id"] for job in self.get(up, "/api/v1/jobs?limit=1000").get("jobs", [])}
        nodes = self.get(up, "/api/v1/nodes").get("nodes", [])
        return kinds >= KINDS and queue and all(job["job_id"] in kept for job in queue) and \
            nodes and reserved == {node["name"] for node in nodes if "reservation" in node}

    def test_a_simulated_cluster_with_its_past(self):
        up = self.enterContext(Whole("--source=sim:nodes=6,jobs=24,seed=2,users=3", *OFTEN,
                                     env={"SONDE_CLOCK": OCTOBER, "TZ": "UTC", "TMPDIR": self.directory}))
        up.wait_log("the simulated past is complete")
        wait_until(lambda: self.is_complete(up, set()), "the store has the present too")
        ticks = lambda: int(up.metrics().samples().get('sonde_series_ticks_total{simulated="true"}', "0"))
        before = ticks()
        wait_until(lambda: ticks() > before + 1, "a tick that has begun since then")
        self.compare(up, SIMULATED)

    def test_a_store(self):
        store = f"{self.directory}/store.db"
        subprocess.run([BUILD / "tests/golden/made_store", store], check=True)
        web = self.enterContext(Web(f"--store=sqlite:{store}", f"--allocations.file={HERE}/questions/promised.yml",
                                    env={"SONDE_CLOCK": str(NOW), "TZ": "UTC"}))
        self.compare(web, STORED)

    def test_every_page_and_every_resource_has_a_file(self):
        paths = [path.partition("?")[0] for rows in (RECORDED, SIMULATED, STORED) for path in rows.values()]
        for route in tables()["pages"] + tables()["api"]:
            self.assertTrue(fnmatch.filter(paths, route), f"no file shows {route}: add a row")

    def test_no_golden_file_is_left_over(self):
        files = {str(path.relative_to(HERE)) for kind in ("pages", "api") for path in (HERE / kind).iterdir()}
        self.assertEqual(files, {*RECORDED, *SIMULATED, *STORED})


if __name__ == "__main__":
    import tap
    tap.main()
