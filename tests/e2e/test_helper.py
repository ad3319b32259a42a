#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What can happen to the helper that asks libslurm, and to the clock of the slurmctld that it asks."""
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

from clock import Clock
from door import STEADY, Door, follow, put_relay
from slurm import Slurm
from sonde import wait_until

SUITE = os.environ.get("SONDE_OUTAGES_SUITE", "bookworm")
PAUSE = 600  # seconds, after which may be asked again what has failed


def setUpModule():
    global CLUSTER
    CLUSTER = Slurm(SUITE)
    unittest.addModuleCleanup(CLUSTER.end)


def rest_url():
    return f"--slurm.rest-url=unix:{CLUSTER.env['SANDBOX_RESTD_SOCKET']}"


def waiting_jobs(door):
    return door.value("slurm_job_count_per_state", state="PENDING")


# For slurmctld: a clock that goes wrong by as many seconds as a file says.
CLOCK = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static volatile long *shift;

__attribute__((constructor)) static void begin(void)
{
    shift = mmap(NULL, sizeof(*shift), PROT_READ, MAP_SHARED, open("/sandbox/clock", O_RDONLY), 0);
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
    int code = (int)syscall(SYS_clock_gettime, id, ret);

    if (code == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        ret->tv_sec += *shift;
    return code;
}

time_t time(time_t *ret)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return ret ? (*ret = now.tv_sec) : now.tv_sec;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *ret = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
    return 0;
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until)
{
    int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *) =
        dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec shifted = { until->tv_sec - *shift, until->tv_nsec };

    return real(cond, lock, &shifted);
}
"""

class Helper(unittest.TestCase):
    """What can happen to the helper, and what auto makes of it; all while slurmctld's clock is an hour behind, which
    takes a minute to be noticed."""

    @classmethod
    def setUpClass(cls):
        cls.state = pathlib.Path(CLUSTER.env["SANDBOX_STATE"])
        cls.set_clock(0)
        cls.make_clock()
        CLUSTER.signal("slurmctld", "TERM")
        CLUSTER.start("slurmctld", "LD_PRELOAD=/sandbox/clock.so")
        cls.start_doors()
        cls.set_clock(-3600)
        CLUSTER.run("sbatch", "--parsable", "-D/", "-n1", "-t5", "-o/dev/null", "--hold", "--wrap", "true", user="bob")
        CLUSTER.run("scontrol", "update", "nodename=c1", "state=drain", "reason=clock")

    @classmethod
    def make_clock(cls):
        compiler = ["cc", "-xc", "-", "-shared", "-fPIC", "-o", cls.state / "clock.so"]
        subprocess.run(compiler, input=CLOCK, text=True, check=True)

    @classmethod
    def set_clock(cls, seconds):
        file = os.open(cls.state / "clock", os.O_WRONLY | os.O_CREAT, 0o644)  # not truncated: it is mapped
        os.write(file, seconds.to_bytes(8, "little", signed=True))
        os.close(file)

    @classmethod
    def start_doors(cls):
        helpers = tempfile.TemporaryDirectory()
        cls.addClassCleanup(helpers.cleanup)
        CLUSTER.write_helper(helpers.name)
        cls.doors = [Door(CLUSTER, "libslurm", f"--slurm.helper-dir={helpers.name}"), Door(CLUSTER, "rest", rest_url())]
        for door in cls.doors:
            cls.addClassCleanup(door.stop)
            door.await_up()
        cls.before = {door: waiting_jobs(door) for door in cls.doors}

    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        self.script = CLUSTER.write_helper(self.directory)
        self.works = self.script.read_text()

    def start(self, name="libslurm", *flags, **options):
        door = Door(CLUSTER, name, f"--slurm.helper-dir={self.directory}", *flags, **options)
        self.addCleanup(door.stop)
        return door

    def start_still(self, timeout="1h"):
        """One whose time stands still: it has asked for jobs, and asks again when the test moves the clock."""
        self.clock = self.enterContext(Clock(stands=1800000000))
        self.settings = pathlib.Path(self.directory, "sonde.yml")
        self.settings.write_text(f"slurm.timeout: {timeout}\n")
        return self.start("libslurm", f"--config.file={self.settings}", only="jobs", env=self.clock.env)

    def set_timeout(self, door, timeout):
        self.settings.write_text(f"slurm.timeout: {timeout}\n")
        self.assertEqual(door.exporter.get("/-/reload", method="POST").status, 200)

    def ask_until(self, condition, what):
        """It asks once each time, after its pause if it has failed."""
        wait_until(lambda: self.clock.advance(PAUSE) or condition(), what)

    def write(self, text, path=None):
        path = path or self.script
        fresh = path.with_suffix(".new")
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.rename(path)

    @staticmethod
    def pid_of_helper(door):
        """The one that waits for a question or works on one."""
        return wait_until(lambda: next((pid for pid, words in door.children().items() if words[0] not in "ZT"), None),
                          "a helper runs")

    def environment_of_helper(self, door):
        try:
            return pathlib.Path(f"/proc/{self.pid_of_helper(door)}/environ").read_bytes()
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            return b""

    def kill(self, door, number=signal.SIGKILL):
        pid = self.pid_of_helper(door)
        os.kill(pid, number)
        wait_until(lambda: door.children().get(pid, "Z")[0] in "ZT", "it has ended, or stopped")
        return pid

    def check_no_failure(self, door):
        seen = door.value("sonde_source_read_bytes_total", kind="jobs")
        self.ask_until(lambda: door.value("sonde_source_read_bytes_total", kind="jobs") > seen, "it is asked")
        self.assertEqual(door.news(), [])
        self.assertTrue(door.are_up())
        door.check_health(self)

    def check_one_failure(self, door, error):
        """That kind which was next to be asked for has failed once, and works again."""
        wait_until(lambda: "source works again" in door.exporter.log(), f"it works again\n{door.exporter.log()}")
        door.await_up()
        failed, again = (line for line in door.news() if line["msg"].startswith("source "))
        self.assertRegex(failed["error"], error)
        self.assertEqual((again["msg"], again["kind"]), ("source works again", failed["kind"]))
        door.check_health(self)

    def test_one_that_is_killed_between_questions_is_started_again(self):
        door = self.start_still()
        door.await_up()
        killed = self.kill(door)
        self.clock.advance(PAUSE)
        wait_until(lambda: self.pid_of_helper(door) != killed, "another runs")
        self.check_no_failure(door)

    def test_one_that_is_killed_in_the_middle_of_a_record_is_started_again(self):
        cut = put_relay(self.script)
        door = self.start()
        door.await_up()
        before = door.steady()
        fresh = cut.with_suffix(".new")
        fresh.write_text("100")
        fresh.rename(cut)
        wait_until(lambda: "source failed" in door.exporter.log(), "it dies")
        self.assertEqual(door.steady(), before, "no half of a record is taken for one")
        self.check_one_failure(door, "sonde-libslurm-.*signal 9")

    def test_one_that_is_stopped_is_killed_at_the_deadline(self):
        door = self.start_still()
        door.await_up()
        stopped = self.kill(door, signal.SIGSTOP)
        self.set_timeout(door, "1s")
        self.clock.advance(PAUSE)
        door.exporter.wait_log("source failed")
        self.set_timeout(door, "1h")
        self.clock.advance(PAUSE)
        self.check_one_failure(door, "sonde-libslurm-.*1 s.*killed")
        self.assertFalse(os.path.exists(f"/proc/{stopped}"))

    def test_a_missing_slurm_conf_is_named_and_no_processes_pile_up(self):
        self.write(re.sub(r"SLURM_CONF=\S+", "SLURM_CONF=/nowhere/slurm.conf", self.works))
        door = self.start_still(timeout="1s")  # libslurm looks for it until it is killed
        door.await_up(0)
        seconds = 1
        # Where the helper takes longer to come to that, it has twice as long the next time.
        while "libslurm cannot read slurm.conf" not in door.exporter.log():
            seconds *= 2
            self.set_timeout(door, f"{seconds}s")
            self.fail_again(door)
        for _ in range(4):
            self.fail_again(door)
        self.assertEqual([name for name in STEADY if name in door.families], [])
        self.write(self.works)
        self.set_timeout(door, "1h")
        self.clock.advance(PAUSE)
        self.assertEqual(door.exporter.get("/metrics?collect[]=config").status, 200)
        lines = []

        def kinds(message):
            return {line["kind"] for line in lines if line["msg"] == message}
        wait_until(lambda: lines.extend(door.news()) or kinds("source failed") == kinds("source works again"),
                   f"each kind that has failed works again\n{door.exporter.log()}")
        door.await_up()
        self.assertRegex([line["error"] for line in lines if line["msg"] == "source failed"][-1], "slurm.conf.*--slurm.conf")
        door.check_health(self)

    def fail_again(self, door):
        """It asks for jobs once more, and that fails."""
        def failures():
            errors = door.families.get("sonde_source_errors_total", {})
            return sum(value for series, value in errors.items() if dict(series)["kind"] == "jobs")
        before = failures()
        self.clock.advance(PAUSE)
        wait_until(lambda: failures() > before, f"it is tried again\n{door.exporter.log()}")

    def test_after_an_upgrade_the_helper_of_the_new_release_is_taken(self):
        door = self.start_still()
        door.await_up()
        self.write("#!/bin/sh\necho 'error while loading shared libraries: libslurm.so.38' >&2\nexit 127\n")
        self.write(self.works.replace("export ", "export UPGRADED=yes "), self.script.with_name("sonde-libslurm-99.05"))
        self.kill(door)
        self.clock.advance(PAUSE)
        wait_until(lambda: b"UPGRADED=yes" in self.environment_of_helper(door), "the new one runs")
        self.check_no_failure(door)

    def test_auto_leaves_a_helper_that_keeps_failing_and_comes_back_to_it(self):
        door = self.start("auto", rest_url())
        door.await_door("libslurm")
        self.write("#!/bin/sh\necho broken >&2\nexit 1\n")
        self.kill(door)
        door.await_door("rest")
        about = door.labels("sonde_source_info")
        self.assertRegex(about["reason"], "libslurm: sonde-libslurm-.* does not start: .*broken")
        self.assertRegex(about["interface"], r"^v0\.0\.\d\d$")
        door.await_up()
        self.write(self.works)
        door.await_door("libslurm")
        self.assertEqual(door.labels("sonde_source_info")["reason"], "it works again")
        chosen = [line["source"] for line in door.news() if line["msg"] == "source chosen"]
        self.assertEqual(chosen, ["libslurm", "rest", "libslurm"])
        door.check_health(self)

    def test_auto_does_without_rest_where_there_is_no_url(self):
        self.write("#!/bin/sh\nexit 1\n")
        door = self.start("auto")
        door.await_door("json")
        self.assertRegex(door.labels("sonde_source_info")["reason"], "libslurm: .*; rest: there is no --slurm.rest-url")

    def test_the_numbers_follow_a_controller_whose_clock_has_gone_back(self):
        follow(self.doors, "a new job", lambda door: waiting_jobs(door) == self.before[door] + 1)
        follow(self.doors, "a drained node", lambda door: door.value("slurm_node_reason_info", reason="clock") == 1)


if __name__ == "__main__":
    import tap
    tap.main()
