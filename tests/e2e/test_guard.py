#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/guard: whatever a command leaves, and however it ends."""
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

from sonde import AS_AT_A_TERMINAL, DEADLINE, ROOT, wait_until
from capabilities import need  # in a directory that sonde adds to the path

GUARD = ROOT / "scripts/guard"
# Leaves one process in a session of its own, whose parent is gone, tells its pid, and goes on as it is told. That one has two
# names, of the shell and then of sleep: it is waited for until it has the second.
LEAVE = """setsid --fork sh -c 'echo $$ >"$0/left"; mv "$0/left" "$0/pid"; exec sleep 86400' "$HERE"
until [ -e "$HERE/pid" ]; do sleep 0.02; done
until grep -q ^sleep "/proc/$(cat "$HERE/pid")/cmdline"; do sleep 0.02; done
echo "$TMPDIR" >"$HERE/temporary"
touch "$TMPDIR/file" "$HERE/ready"
"""


def lives(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class GuardTest(unittest.TestCase):
    def setUp(self):
        self.here = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        # No pool, and not below the guard of ./check, which would take this one's place.
        self.env = dict(os.environ, HERE=str(self.here), SONDE_CACHE=str(self.here), TMPDIR=str(self.here))
        self.env.pop("SONDE_GUARD", None)

    def start(self, script):
        guard = subprocess.Popen([*AS_AT_A_TERMINAL, GUARD, "sh", "-c", script], env=self.env, stderr=subprocess.PIPE, text=True,
                                 start_new_session=True)
        self.addCleanup(guard.stderr.close)
        self.addCleanup(guard.wait)
        self.addCleanup(guard.kill)
        return guard

    def leave(self, then):
        """Starts a guard, and waits until its command has left a process; gives the guard and that process."""
        guard = self.start(LEAVE + then)
        wait_until(lambda: (self.here / "ready").exists(), "a process is left")
        self.temporary = pathlib.Path((self.here / "temporary").read_text().strip())
        left = int((self.here / "pid").read_text())
        self.assertTrue(lives(left))
        return guard, left

    def assert_status(self, guard, status):
        _, said = guard.communicate(timeout=DEADLINE)
        self.assertEqual(guard.returncode, status, said)
        return said

    def warden_of(self, guard):
        child, = pathlib.Path(f"/proc/{guard.pid}/task/{guard.pid}/children").read_text().split()
        return int(child)

    def assert_gone(self, left):
        wait_until(lambda: not lives(left), f"process {left} ends")
        wait_until(lambda: not self.temporary.exists(), "temporary files are removed")

    def test_the_status_is_that_of_the_command(self):
        self.assert_status(self.start("exit 7"), 7)
        self.assert_status(self.start("kill -9 $$"), 128 + 9)
        done = subprocess.run([GUARD, "sonde-no-such-command"], env=self.env, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (127, "guard: cannot run sonde-no-such-command: No such file or directory\n"))

    def test_what_a_command_leaves_is_ended_and_named(self):
        guard = self.start(LEAVE)
        said = self.assert_status(guard, 0)
        self.assertEqual(said, f"guard: ended what was left: sleep 86400 ({(self.here / 'pid').read_text().strip()})\n")
        self.temporary = pathlib.Path((self.here / "temporary").read_text().strip())
        self.assert_gone(int((self.here / "pid").read_text()))

    def test_a_signal_reaches_the_command_and_what_it_waits_for(self):
        guard, left = self.leave("""trap 'exit 5' INT; sh -c 'touch "$HERE/waits"; exec sleep 86400'""")
        wait_until(lambda: (self.here / "waits").exists(), "the command waits for another one")
        guard.send_signal(signal.SIGINT)
        self.assert_status(guard, 5)
        self.assert_gone(left)

    def test_the_second_signal_ends_a_command_that_does_not_end(self):
        guard, left = self.leave("trap 'touch $HERE/asked' TERM; touch $HERE/trapped; while :; do sleep 0.02; done")
        wait_until(lambda: (self.here / "trapped").exists(), "the signal is trapped")
        guard.terminate()
        wait_until(lambda: (self.here / "asked").exists(), "the first one has arrived")
        guard.terminate()
        self.assert_status(guard, 130)
        self.assert_gone(left)

    def test_a_guard_that_is_killed_leaves_nothing(self):
        guard, left = self.leave("exec sleep 86400")
        guard.kill()
        self.assert_gone(left)

    def test_a_warden_that_is_killed_leaves_nothing(self):
        guard, left = self.leave("exec sleep 86400")
        os.kill(self.warden_of(guard), signal.SIGKILL)
        self.assert_status(guard, 128 + 9)
        self.assert_gone(left)

    def test_the_next_guard_ends_what_a_guard_left_that_was_killed_altogether(self):
        guard, left = self.leave("exec sleep 86400")
        warden = self.warden_of(guard)
        os.kill(warden, signal.SIGSTOP)  # so that it does not see the other's end
        guard.kill()
        guard.wait()
        os.kill(warden, signal.SIGKILL)
        self.assertTrue(lives(left))
        self.assertTrue(self.temporary.exists())
        said = self.assert_status(self.start("exit 0"), 0)
        self.assertRegex(said, "^guard: ending [0-9]+ processes that an earlier run has left\n$")
        self.assert_gone(left)

    def test_a_guard_leaves_alone_what_another_one_guards(self):
        guard, left = self.leave("exec sleep 86400")
        self.assert_status(self.start("exit 0"), 0)
        self.assertTrue(lives(left))
        self.assertTrue((self.temporary / "file").exists())
        guard.kill()
        self.assert_gone(left)

    def test_a_guard_leaves_alone_what_runs_in_another_pid_namespace(self):
        for name in "root", "namespaces", "first-pid-namespace":
            need(name)
        script = 'echo "$TMPDIR" >"$HERE/temporary"; touch "$HERE/ready"; exec sleep 86400'
        guard = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", GUARD, "sh", "-c", script],
                                 env=self.env)
        self.addCleanup(guard.wait)
        self.addCleanup(guard.kill)
        wait_until(lambda: (self.here / "ready").exists(), "the command runs")
        self.assertEqual(self.start("exit 0").wait(DEADLINE), 0)
        self.assertIsNone(guard.poll())
        self.assertTrue(pathlib.Path((self.here / "temporary").read_text().strip()).exists())

    def test_cgroups_of_tests_that_have_ended_are_removed(self):
        for name in "root", "cgroup-v1", "first-pid-namespace":
            need(name)
        ended = subprocess.Popen(["true"])
        ended.wait()
        left, others = (pathlib.Path(f"/sys/fs/cgroup/freezer/sonde-test-{pid}/job_1") for pid in (ended.pid, os.getpid()))
        for cgroup in (left, others):
            cgroup.mkdir(parents=True)
            self.addCleanup(lambda c=cgroup: [path.rmdir() for path in (c, c.parent) if path.exists()])
        process = subprocess.Popen(["sleep", "86400"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        (left / "cgroup.procs").write_text(str(process.pid))
        self.assert_status(self.start("exit 0"), 0)
        self.assertEqual(process.wait(DEADLINE), -signal.SIGKILL)
        self.assertFalse(left.parent.exists())
        self.assertTrue(others.exists())


if __name__ == "__main__":
    import tap
    tap.main()
