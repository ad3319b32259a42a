#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The real exporter on a real Slurm, scraped by a real Prometheus: ./sandbox.

Its numbers are the business of test_numbers.py. SONDE_SUITES names the Debian releases to try: bullseye has Slurm
20.11, bookworm 22.05, trixie 24.11, sid 26.05. By default bookworm and trixie.
"""
import json
import pathlib
import unittest
import urllib.parse

from slurm import SUITES, Slurm
from sonde import Exporter, http_get, wait_until


class OnSlurm:
    """The tests; a class for each suite is made below."""

    suite = None

    @classmethod
    def setUpClass(cls):
        cls.slurm = Slurm(cls.suite)
        cls.addClassCleanup(cls.slurm.end)
        cls.exporter = Exporter("--slurm.poll-limit=1ms", path=cls.slurm.env["SANDBOX_BIN"])
        cls.addClassCleanup(cls.exporter.stop)

    def test_a_named_cluster_has_job_ids_of_its_own(self):
        if self.slurm.env["SANDBOX_CGROUP"] != "v1":
            self.skipTest("only there do clusters share the directories of cgroups")
        ids = {int(line) for line in self.slurm.lines("squeue", "-hro%A")}
        self.assertGreater(min(ids), 1000000)  # those without a name begin at 300001, or before

    def test_promtool_finds_nothing_but_what_older_names_bring(self):
        answer = self.exporter.metrics()
        done = self.slurm.run("promtool", "check", "metrics", input=answer.text, check=False)
        findings = {line for line in (done.stdout + done.stderr).splitlines() if line.strip()}
        known = set(pathlib.Path(__file__).with_name("promtool.txt").read_text().splitlines())
        # a rule that promtool has dropped between 2.42 and 2.53
        dropped = {line for line in known if "metric name should not include type" in line}
        self.assertEqual(findings | dropped, known)
        self.assertNotIn("sonde_", done.stdout + done.stderr)

    def test_prometheus_scrapes_it(self):
        target = pathlib.Path(self.slurm.env["SANDBOX_TARGETS"], "sonde-test.json")
        target.write_text(json.dumps([{"targets": [f"127.0.0.1:{self.exporter.port}"]}]))
        self.addCleanup(target.unlink)

        def query(expression):
            url = f"{self.slurm.env['SANDBOX_PROMETHEUS']}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
            return [float(row["value"][1]) for row in json.loads(http_get(url).text)["data"]["result"]]
        instance = f'instance="127.0.0.1:{self.exporter.port}"'
        wait_until(lambda: query(f"up{{{instance}}}") == [1], "Prometheus finds it up", 60)
        wait_until(lambda: query(f"slurm_cpus_total{{{instance}}}"), "its metrics are there", 60)
        self.assertEqual(query(f"slurm_cpus_total{{{instance}}}"), [self.exporter.metrics().value("slurm_cpus_total")])
        self.assertEqual(query(f"scrape_samples_scraped{{{instance}}} > 50") != [], True)

    def test_a_controller_that_hangs_is_survived(self):
        up = 'sonde_source_up{source="cli",kind="jobs"}'
        exporter = self.enterContext(Exporter("--slurm.poll-limit=1ms", "--slurm.timeout=1s",
                                              path=self.slurm.env["SANDBOX_BIN"]))
        self.assertEqual(exporter.metrics().value(up), 1)
        self.slurm.run("pkill", "-STOP", "slurmctld")
        try:
            answer = wait_until(lambda: (a := exporter.metrics(X_Prometheus_Scrape_Timeout_Seconds="2"))
                                and a.value(up) == 0 and a, "noticed")
            self.assertIn('slurm_job_count_per_state{state="RUNNING"}', answer.samples())
        finally:
            self.slurm.run("pkill", "-CONT", "slurmctld")
        wait_until(lambda: exporter.metrics().value(up) == 1, "works again by itself", 60)


for suite in SUITES:
    globals()[f"On_{suite}"] = type(f"On_{suite}", (OnSlurm, unittest.TestCase), {"suite": suite})


if __name__ == "__main__":
    import tap
    tap.main()
