#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The helper of the door libslurm, on a real Slurm: that it dies, or cannot begin, hurts nobody, and that it is not told
twice what it has told. What it tells is compared in test_doors.py, but for fair shares without Fair Tree; outages of
Slurm itself are in test_outages.py."""
import pathlib
import tempfile
import unittest

from door import children, put_relay
from slurm import SUITES, Slurm
from sonde import Exporter, wait_until

ALWAYS_ASK = [f"--slurm.{kind}poll-limit=1ms" for kind in ("", "licenses-", "associations-")]


def state(pid):
    """The letter of proc(5), or None."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return None


class Helper:
    """The tests; a class for each suite is made below."""

    suite = None

    @classmethod
    def setUpClass(cls):
        cls.slurm = Slurm(cls.suite)
        cls.addClassCleanup(cls.slurm.end)

    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        self.script = self.slurm.write_helper(self.directory)

    def exporter(self, *flags):
        return self.enterContext(Exporter("--source=libslurm", f"--slurm.helper-dir={self.directory}", *ALWAYS_ASK, *flags))

    def up(self, exporter):
        return {dict(series)["kind"]: value for series, value in exporter.metrics().families()["sonde_source_up"].items()}

    def await_up(self, exporter):
        wait_until(lambda: set(self.up(exporter).values()) == {1}, "all kinds are told")

    def test_one_that_dies_anywhere_in_an_answer_is_started_again(self):
        cut = put_relay(self.script)
        exporter = self.exporter()
        self.await_up(exporter)
        before = exporter.metrics().families()["slurm_cpus_total"]
        pid = exporter.process.pid
        for n in (0, 1, 7, 100, 1000, 10000, 100000):
            fresh = cut.with_suffix(".new")
            fresh.write_text(str(n))
            fresh.rename(cut)
            # it is started when something is asked of it, and not at once when it has failed often
            wait_until(lambda: exporter.metrics() and not cut.exists(), f"it dies after {n} bytes")
        self.await_up(exporter)
        self.assertEqual(exporter.metrics().families()["slurm_cpus_total"], before)
        wait_until(lambda: len(children(pid)) == 1 and state(children(pid)[0]) != "Z", "one helper and no zombie")

    def test_a_missing_slurm_conf_is_explained_and_one_that_is_put_there_is_read(self):
        right = self.script.read_text()
        self.script.write_text(right.replace("/etc/slurm.conf", "/etc/missing.slurm.conf"))
        settings = pathlib.Path(self.directory, "sonde.yml")
        settings.write_text("slurm.timeout: 1s\n")  # libslurm looks for it until it is killed
        exporter = self.exporter(f"--config.file={settings}")

        def set_timeout(text):
            settings.write_text(f"slurm.timeout: {text}\n")
            self.assertEqual(exporter.get("/-/reload", method="POST").status, 200)
        seconds, seen = 1, 0

        def is_explained():
            """Where the helper takes longer to come to that, it has twice as long the next time."""
            nonlocal seconds, seen
            failed = sum(exporter.metrics().families()["sonde_source_errors_total"].values())
            is_told = "libslurm cannot read slurm.conf" in exporter.log()
            if failed > seen and not is_told:
                seconds, seen = 2 * seconds, failed
                set_timeout(f"{seconds}s")
            return is_told
        wait_until(is_explained, "that is told")
        self.assertNotIn(1, self.up(exporter).values())
        self.script.write_text(right)
        set_timeout("1h")
        self.await_up(exporter)

    def test_a_helper_of_another_release_says_so_and_blames_nothing_else(self):
        other = {"bullseye": "22.05", "bookworm": "20.11"}.get(self.suite, "22.05")  # runs with this suite's C library
        self.script.unlink()
        self.slurm.write_helper(self.directory, other)
        exporter = self.exporter()
        wait_until(lambda: exporter.metrics() and "source failed" in exporter.log(), "it fails")
        error = exporter.log()
        self.assertRegex(error, rf"sonde-libslurm-{other}: it is built for Slurm {other}, (but|which has no option)")
        self.assertRegex(error, "; install (sonde-libslurm-|the helper of the cluster's release)")
        self.assertNotIn("munge running", error)
        self.assertNotIn("--slurm.conf", error)

    def test_what_has_not_changed_is_not_sent_again(self):
        exporter = self.exporter()

        def read_bytes():
            families = exporter.metrics().families()
            return next(value for series, value in families["sonde_source_read_bytes_total"].items()
                        if dict(series)["kind"] == "licenses")

        def is_short():
            before, after = read_bytes(), read_bytes()
            return 0 < after - before < 50
        self.assertGreater(read_bytes(), 100)
        wait_until(is_short, "an answer that says only that nothing has changed")
        self.assertTrue(exporter.metrics().families()["slurm_lic_total"])

    def test_tasks_that_are_not_in_a_row_are_all_counted(self):
        exporter = self.exporter()
        tasks = [7 * i + i % 3 for i in range(100)]

        def waiting():
            states = exporter.metrics().families()["slurm_user_state_total"]
            return states.get((("username", "mallory"), ("state", "PENDING")), 0)
        before = wait_until(waiting, "mallory's jobs are told")
        job = self.slurm.run("sbatch", "--parsable", "--hold", "-D", "/tmp", "-o", "/dev/null", "--wrap", "true",
                             f"--array={','.join(map(str, tasks))}", user="mallory").stdout.strip()
        self.addCleanup(self.slurm.run, "scancel", job)
        wait_until(lambda: waiting() == before + len(tasks), "each task counts")

    def test_it_ends_with_the_exporter(self):
        exporter = self.exporter()
        self.await_up(exporter)
        helper, = children(exporter.process.pid)
        exporter.process.kill()
        exporter.process.wait()
        wait_until(lambda: state(helper) in (None, "Z"), "it has ended")


ROUNDED = 0.5e-6 + 1e-12  # and what floating point adds


class Shares:
    """Fair shares without Fair Tree: what sshare makes of them is not what is in the structs."""

    suite = None
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.slurm = Slurm(cls.suite, conf="PriorityFlags=NO_FAIR_TREE\n")
        cls.addClassCleanup(cls.slurm.end)

    def setUp(self):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        self.slurm.write_helper(directory)
        self.cli, self.libslurm = (
            self.enterContext(Exporter(f"--source={door}", f"--slurm.helper-dir={directory}", "--slurm.shares-poll-limit=1ms",
                                       path=self.slurm.env["SANDBOX_BIN"])) for door in ("cli", "libslurm"))

    def shares(self, exporter):
        return {name: series for name, series in exporter.metrics().families().items() if "_fairshare_" in name}

    def looks(self):
        """Through cli and through libslurm, which looks between two looks of sshare at the same shares: they decay."""
        def told():
            before, told, after = (self.shares(exporter) for exporter in (self.cli, self.libslurm, self.cli))
            return before == after and before and (before, told)
        return wait_until(told, "shares do not change")

    def test_the_classic_factor_is_that_of_sshare(self):
        looks = self.looks()
        for sort in ("account", "user"):
            self.assert_factors(*(told.pop(f"slurm_{sort}_fairshare_factor") for told in looks),
                                *(looks[0][f"slurm_{sort}_fairshare_{name}"] for name in ("effective_usage", "norm_shares")))
        self.assertEqual(*looks)

    def assert_factors(self, through_cli, through_libslurm, usage, shares):
        """2 to the power of -usage / shares. slurmctld sends six decimals of both to libslurm, and all of them to sshare."""
        self.assertEqual(through_cli.keys(), through_libslurm.keys())
        for series, factor in through_libslurm.items():
            least, most = (2 ** -((usage[series] + off) / (shares[series] - off)) for off in (ROUNDED, -ROUNDED))
            for value in (factor, through_cli[series]):
                self.assertTrue(least - ROUNDED <= value <= most + ROUNDED, (series, least, value, most))

    def restart_with(self, conf):
        self.slurm.conf.write_text(conf)
        self.slurm.signal("slurmctld", "TERM")
        wait_until(lambda: self.slurm.run("scontrol", "ping", check=False).returncode, "slurmctld has ended")
        self.slurm.start("slurmctld")

    def test_what_a_plugin_without_shares_leaves_unset_is_not_told(self):
        conf = self.slurm.conf.read_text()
        self.addCleanup(self.restart_with, conf)
        self.restart_with(conf.replace("priority/multifactor", "priority/basic"))
        self.assertEqual(*self.looks())


for suite in SUITES:
    globals()[f"On_{suite}"] = type(f"On_{suite}", (Helper, unittest.TestCase), {"suite": suite})
    globals()[f"Shares_on_{suite}"] = type(f"Shares_on_{suite}", (Shares, unittest.TestCase), {"suite": suite})


if __name__ == "__main__":
    import tap
    tap.main()
