#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The real exporter on a real Slurm, scraped by a real Prometheus: ./sandbox; and the pool that tests have theirs from.

Its numbers are the business of test_numbers.py. SONDE_SUITES names the Debian releases to try: bullseye has Slurm
20.11, bookworm 22.05, trixie 24.11, sid 26.05. By default bookworm and trixie.
"""
import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

from cluster import cgroup_files, pids_in
from pool import sandbox
from slurm import SUITES, Slurm
from sonde import ROOT, Exporter, http_get, mount_namespace, wait_until  # first: it makes tests/ importable
from capabilities import need

CGROUPS = pathlib.Path("/sys/fs/cgroup")
POOL = "trial"  # one of its own: that of ./check has other lessees
LESSEE = """
import sys
from slurm import Slurm
slurm = Slurm(sys.argv[1], seeded=False)
print(slurm.name, flush=True)
for line in sys.stdin:
    print(*slurm.run("sh", "-c", line).stdout.split(), flush=True)
slurm.end()
"""


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

    def test_its_ports_are_its_own_while_it_is_up(self):
        with open(f"/run/sonde-sandbox/{self.slurm.env['SANDBOX_PORT']}", "w", encoding="utf-8") as lock:
            self.assertRaises(BlockingIOError, fcntl.flock, lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

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
        # What is scraped is what this scrape has made it learn, however long that took.
        exporter = self.enterContext(Exporter("--slurm.poll-limit=1h", path=self.slurm.env["SANDBOX_BIN"]))
        told = exporter.metrics().value("slurm_cpus_total")
        target = pathlib.Path(self.slurm.env["SANDBOX_TARGETS"], "sonde-test.json")
        target.write_text(json.dumps([{"targets": [f"127.0.0.1:{exporter.port}"]}]))
        self.addCleanup(target.unlink)
        instance = f'{{instance="127.0.0.1:{exporter.port}"}}'

        def query(expression, **at):
            url = f"{self.slurm.env['SANDBOX_PROMETHEUS']}/api/v1/query?" + urllib.parse.urlencode({"query": expression, **at})
            return [float(row["value"][1]) for row in json.loads(http_get(url).text)["data"]["result"]]
        # The time of that scrape: what it has stored stays, whatever becomes of the next one.
        moment, = wait_until(lambda: query(f"timestamp(up{instance} == 1)"), "Prometheus finds it up")
        self.assertEqual(query(f"slurm_cpus_total{instance}", time=moment), [told])
        self.assertEqual(query(f"scrape_samples_scraped{instance} > 50", time=moment) != [], True)

    def test_a_controller_that_hangs_is_survived(self):
        up = 'sonde_source_up{source="cli",kind="jobs"}'
        settings = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "sonde.yml")
        settings.write_text("slurm.timeout: 1h\n")
        exporter = self.enterContext(Exporter("--slurm.poll-limit=1ms", "--slurm.stale-limit=1h", f"--config.file={settings}",
                                              path=self.slurm.env["SANDBOX_BIN"]))

        def set_timeout(text):
            settings.write_text(f"slurm.timeout: {text}\n")
            self.assertEqual(exporter.get("/-/reload", method="POST").status, 200)
        wait_until(lambda: exporter.metrics().value(up) == 1, "it works")
        self.slurm.run("pkill", "-STOP", "slurmctld")
        try:
            set_timeout("1s")
            answer = wait_until(lambda: (a := exporter.metrics(X_Prometheus_Scrape_Timeout_Seconds="2"))
                                and a.value(up) == 0 and a, "noticed")
            self.assertIn('slurm_job_count_per_state{state="RUNNING"}', answer.samples())
        finally:
            self.slurm.run("pkill", "-CONT", "slurmctld")
        set_timeout("1h")
        wait_until(lambda: exporter.metrics().value(up) == 1, "works again by itself")


class WhatCannotBeHad(unittest.TestCase):
    """One sentence each, and nothing stays that would be taken for whole."""

    def setUp(self):
        need("namespaces")
        self.cache = self.enterContext(tempfile.TemporaryDirectory())

    def ask(self, *command, starter=(), **env):
        done = subprocess.run([*starter, *command], capture_output=True, text=True, cwd=ROOT,
                              env=dict(os.environ, SONDE_CACHE=self.cache, **env))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr

    def test_a_mirror_that_does_not_answer(self):
        need("root")  # or files of root stay in the cache
        nowhere = {"SANDBOX_MIRROR": "http://127.0.0.1:9/debian"}
        self.assertRegex(self.ask("./sandbox", "up", **nowhere), "^./sandbox: debootstrap fails: Failed getting release file .*127.0.0.1:9")
        for command in (["scripts/slurm-headers"], ["scripts/slurm-headers", "--source"]):
            self.assertRegex(self.ask(*command, "bookworm", **nowhere), "^slurm-headers: apt-get update fails: .*127.0.0.1:9")
        self.assertEqual([str(path) for path in pathlib.Path(self.cache).glob("slurm*")], [])

    def test_a_full_disk(self):
        need("mounts")
        small = [*mount_namespace(), "sh", "-c", 'mount -t tmpfs -o size=1m small "$SONDE_CACHE" && exec "$@"', "sh"]
        for command, name in ((["./sandbox", "up"], "./sandbox"), (["scripts/slurm-headers", "bookworm"], "slurm-headers")):
            self.assertRegex(self.ask(*command, starter=small), rf"^{name}: no room for .* in {self.cache}/.*: it needs \d+ MB, \d MB are free$")

    def test_a_package_that_does_not_exist(self):
        need("root")
        config = pathlib.Path(self.cache, "apt.conf")  # of an apt without sources, which leaves this machine's lists alone
        config.write_text(f'Dir::State "{self.cache}"; Dir::Cache "{self.cache}"; Dir::State::status "/var/lib/dpkg/status";\n'
                          'Dir::Etc::sourcelist "/dev/null"; Dir::Etc::sourceparts "-";\n')
        # But for the first line, which says what is about to be installed.
        script = ". scripts/packages.sh; (need_packages sonde-no-such-package) 2>&1 | tail -n +2 >&2; exit 1"
        self.assertRegex(self.ask("sh", "-c", script, APT_CONFIG=str(config)),
                         "^apt-get could not install sonde-no-such-package: Unable to locate package sonde-no-such-package ")


class Lessee:
    """A process that has leased a cluster and runs commands in it."""

    def __init__(self, test, suite):
        self.process = subprocess.Popen([sys.executable, "-c", LESSEE, suite], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=test.env)
        test.addCleanup(self.end)

    def name(self):
        """As soon as it has its cluster."""
        return self.process.stdout.readline().strip()

    def run(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
        return self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Pool(unittest.TestCase):
    """What is leased is one's own, and clean; and nothing stays, whoever is killed."""

    def setUp(self):
        self.suite = SUITES[0]
        need("root")
        need(f"slurm-{self.suite}")
        self.env = dict(os.environ, SONDE_POOL=POOL)
        self.addCleanup(self.clean)

    def clean(self):
        done = sandbox(self.suite, "clean", env=self.env)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def is_up(self, name):
        return sandbox(self.suite, "status", "--name", name).returncode == 0

    def keeper(self, *stock):
        keeper = subprocess.Popen([sys.executable, ROOT / "tests/e2e/pool.py", *stock], stdout=subprocess.PIPE, text=True, env=self.env)
        self.addCleanup(keeper.stdout.close)
        self.addCleanup(keeper.wait)
        self.addCleanup(keeper.terminate)
        self.assertEqual(keeper.stdout.readline(), "the pool is open\n")
        return keeper

    def submit(self, lessee):
        """The id of a job that runs on."""
        return int(lessee.run("sbatch --parsable -D/ -o/dev/null --wrap 'sleep 86400'"))

    def test_without_a_keeper_a_lessee_starts_a_cluster_and_ends_it(self):
        first, second = Lessee(self, self.suite), Lessee(self, self.suite)
        names = [first.name(), second.name()]
        self.assertNotEqual(*names)
        self.assertEqual([self.is_up(name) for name in names], [True, True])
        self.assertEqual(first.end(), 0)
        self.assertEqual([self.is_up(name) for name in names], [False, True])
        # What a killed one has left is nobody's.
        second.kill()
        self.assertTrue(self.is_up(names[1]))
        self.clean()
        self.assertFalse(self.is_up(names[1]))

    def test_what_is_leased_is_not_cleaned(self):
        lessee = Lessee(self, self.suite)
        name = lessee.name()
        self.assertEqual(self.clean(), "")
        self.assertTrue(self.is_up(name))
        self.assertEqual(lessee.run("scontrol ping | grep -o UP"), "UP")

    def test_a_cluster_that_comes_back_is_rebuilt(self):
        keeper = self.keeper(f"{self.suite}/empty=1")
        first = Lessee(self, self.suite)
        name = first.name()
        job = self.submit(first)
        self.assertEqual(first.run("squeue -h -o %A"), str(job))
        self.assertEqual(first.end(), 0)
        jobs = {job}
        # Killed ones give theirs back too.
        for _ in range(2):
            lessee = Lessee(self, self.suite)
            lessee.name()
            self.assertEqual(lessee.run("squeue -h -t all -o %A"), "")
            jobs.add(self.submit(lessee))
            lessee.kill()
        self.assertEqual(len(jobs), 3, "no two clusters have had the same job ids")
        keeper.terminate()
        self.assertEqual(keeper.wait(), 0)
        self.assertFalse(self.is_up(name))
        self.assertEqual(self.clean(), "")

    def test_a_keeper_that_is_killed_leaves_leases_alone_and_the_rest_to_be_cleaned(self):
        keeper = self.keeper(f"{self.suite}/empty=1")
        lessee = Lessee(self, self.suite)
        name = lessee.name()
        wait_until(lambda: self.others_up(name), "another one is ready")
        ready = self.others_up(name)
        keeper.kill()
        keeper.wait()
        self.clean()
        self.assertEqual([self.is_up(other) for other in ready], [False] * len(ready))
        self.assertEqual(lessee.run("scontrol ping | grep -o UP"), "UP")
        self.assertEqual(lessee.end(), 0)
        self.assertFalse(self.is_up(name))
        another = Lessee(self, self.suite)
        self.assertTrue(self.is_up(another.name()))

    def test_the_cgroups_of_jobs_go_whatever_has_become_of_their_processes(self):
        need("root")
        need("cgroup-v1")
        lessee = Lessee(self, self.suite)
        name = lessee.name()
        job = self.submit(lessee)
        procs = f"*/slurm_*/uid_*/job_{job}/**/cgroup.procs"
        def has_processes():
            return bool(pids_in(procs))
        wait_until(has_processes, "the job runs")
        other = CGROUPS / f"memory/slurm_other/uid_1/job_{job}5"  # a longer number, and nobody's
        other.mkdir(parents=True)
        for directory in other.parents[1], other.parent, other:
            self.addCleanup(directory.rmdir)
        pid, = re.findall(r"SANDBOX_PID='?(\d+)", sandbox(self.suite, "env", "--name", name).stdout)
        os.kill(int(pid), signal.SIGKILL)
        wait_until(lambda: not has_processes(), "all have ended")
        self.assertTrue(cgroup_files(procs))
        lessee.kill()
        self.clean()
        self.assertEqual(cgroup_files(procs), [])
        self.assertTrue(other.exists())

    def others_up(self, name):
        return [other for other in (f"{POOL}{number}" for number in range(1, 4)) if other != name and self.is_up(other)]


for suite in SUITES:
    globals()[f"On_{suite}"] = type(f"On_{suite}", (OnSlurm, unittest.TestCase), {"suite": suite})


if __name__ == "__main__":
    import tap
    tap.main()
