#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""SIGTERM while something hangs: any thread, a server, a client. Time stands still until the test moves it, so that the guard of
a stop (base/stop_guard.h) does nothing before: whatever ends without that, ends by itself."""
import contextlib
import ctypes
import os
import pathlib
import signal
import socket
import sqlite3
import tempfile
import time
import unittest

from clock import Clock
from sonde import DEADLINE, ROOT, Agent, Exporter, FakeCommands, Up, own_host, wait_until
from capabilities import need

PTRACE_CONT, PTRACE_SEIZE, PTRACE_INTERRUPT = 7, 0x4206, 0x4207
WALL = 0x40000000
# Of a thread that waits and holds no lock: poll, futex, restart_syscall, epoll_wait, ppoll, epoll_pwait; on arm64 too.
WAITS = {"x86_64": (7, 202, 219, 232, 271, 281), "aarch64": (22, 73, 98, 128)}
NODE = ROOT / "tests/golden/agent/slurm-22.05-v1"


class Web(Exporter):
    command = "web"

    @staticmethod
    def complete(flags):
        return flags


class Lustre(Exporter):
    command = "lustre"


def threads_of(process):
    """name → id; of several with one name, one."""
    threads = {}
    for path in pathlib.Path(f"/proc/{process.pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended since
            threads[(path / "comm").read_text().strip()] = int(path.name)
    return threads


def ptrace(request, thread):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long] * 4
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(request, thread, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def hold(process, thread):
    """Stops it where it waits in the kernel, as if that never returned: so it holds no lock, not that of the log either."""
    calls = WAITS[os.uname().machine]
    ptrace(PTRACE_SEIZE, thread)

    def waits():
        ptrace(PTRACE_INTERRUPT, thread)
        os.waitpid(thread, WALL)
        if int(pathlib.Path(f"/proc/{process.pid}/task/{thread}/syscall").read_text().split()[0]) in calls:
            return True
        ptrace(PTRACE_CONT, thread)
        return False
    wait_until(waits, "a thread that waits")


class StopTest(unittest.TestCase):
    def setUp(self):
        self.place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="sonde-stop-")))
        self.place.chmod(0o777)  # sonde up becomes another user
        self.clock = self.enterContext(Clock(stands=int(time.time())))

    def start(self, program, *flags, env=None, **arguments):
        return self.enterContext(program("--log.level=debug", *flags, env=self.clock.env | (env or {}), **arguments))

    def ask(self, program, path):
        """Asks, and leaves the answer unread."""
        client = self.enterContext(socket.socket())
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # what it does not read, the program must hold
        client.settimeout(DEADLINE)
        client.connect(("127.0.0.1", program.port))
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return client

    def exporter(self):
        exporter = self.start(Exporter, "--source=sim:nodes=4", f"--store=sqlite:{self.place}/sonde.db")
        exporter.metrics()
        wait_until(self.count_jobs, "jobs in the store")
        return exporter

    def count_jobs(self):
        with sqlite3.connect(f"file:{self.place}/sonde.db?mode=ro", uri=True) as store:
            return store.execute("SELECT count(*) FROM job").fetchone()[0]


class Threads(StopTest):
    """Each thread of each program hangs once."""

    @classmethod
    def setUpClass(cls):
        need("ptrace")

    def assert_ends_without(self, program, name, writers=()):
        """Two seconds after the signal, eight if it has data to write, and with the status of any other stop."""
        thread = threads_of(program.process)[name]
        hold(program.process, thread)
        program.process.send_signal(signal.SIGTERM)
        program.wait_log("msg=stopping")
        self.clock.advance(8 if name in writers else 2)
        program.wait_log("did not stop in time")
        if thread != program.process.pid:
            os.waitpid(thread, WALL)
        self.assertEqual(program.process.wait(DEADLINE), 0, program.log())

    def assert_none_keeps(self, start, writers=(), but=()):
        first = start()
        names = set(threads_of(first.process)) - {"stop-guard", *but}
        first.stop()
        for name in sorted(names):
            with self.subTest(name):
                self.assert_ends_without(start(), name, writers)
        return names

    def test_no_thread_keeps_the_exporter(self):
        names = self.assert_none_keeps(self.exporter, writers=("recorder",))
        self.assertLessEqual({"sonde-exporter", "http", "http-work", "refresher", "recorder"}, names)
        self.assertTrue(self.count_jobs())

    def test_no_thread_keeps_the_web(self):
        self.exporter()

        def web():
            web = self.start(Web, f"--store=sqlite:{self.place}/sonde.db")
            self.assertEqual(web.get("/-/ready").status, 200)
            return web
        self.assertLessEqual({"sonde-web", "http-work"}, self.assert_none_keeps(web))

    def test_no_thread_keeps_lustre(self):
        def lustre():
            return self.start(Lustre, "--source=sim:nodes=4", f"--prometheus.url=http://{own_host()}:8080")
        self.assertLessEqual({"sonde-lustre", "refresher"}, self.assert_none_keeps(lustre))

    def test_no_thread_keeps_up(self):
        def up():
            up = self.start(Up, f"--state.directory={self.place}/state", "--source=sim:nodes=4", "--series.path=")
            up.metrics()
            return up
        self.assertLessEqual({"sonde-up", "refresher", "recorder"}, self.assert_none_keeps(up, writers=("recorder",)))
        self.assertFalse((self.place / "state/agent.sock").exists())

    def test_no_thread_keeps_the_agent(self):
        token = self.place / "token"
        token.write_text("s3cret\n")

        def agent():
            agent = self.start(Agent, f"--path.procfs={NODE}/proc", f"--path.sysfs={NODE}/sys", "--profile.socket=",
                               f"--push.url=http://{own_host()}:9091", f"--profile.pushgateway=http://{own_host()}:9091",
                               f"--ingest.url=http://{own_host()}:8080", f"--ingest.token-file={token}",
                               f"--ingest.spool-dir={self.place}/spool")
            wait_until(lambda: agent.get("/-/ready").status == 200, "a sample")
            return agent
        # Those of the GPUs and of Lustre are left behind after a second of real time.
        names = self.assert_none_keeps(agent, but=("gpus", "lustre"))
        self.assertLessEqual({"sonde-agent", "http", "http-work", "sampler", "spool", "push", "sweep", "resolver"}, names)

    def test_a_demo_that_hangs_leaves_nothing_behind(self):
        up = self.start(Up, "--demo", env={"TMPDIR": str(self.place)})
        up.metrics()
        up.wait_log("the simulated past is complete")
        [state] = self.place.glob("sonde-demo-*")
        self.assert_ends_without(up, "refresher")
        self.assertFalse(state.exists())


class Others(StopTest):
    """A server, a command or a client hangs: the guard is not needed."""

    def assert_ends_by_itself(self, program):
        program.process.send_signal(signal.SIGTERM)
        self.assertEqual(program.process.wait(DEADLINE), 0, program.log())
        self.assertNotIn("did not stop in time", program.log())

    def test_a_prometheus_that_hangs_does_not_keep_lustre(self):
        prometheus = self.enterContext(socket.create_server((own_host(), 8080)))
        commands = self.enterContext(FakeCommands())
        lustre = self.start(Lustre, "--prometheus.url=http://{}:{}".format(*prometheus.getsockname()), "--prometheus.timeout=1h",
                            path=commands.path)
        self.ask(lustre, "/metrics")
        prometheus.settimeout(DEADLINE)
        self.enterContext(prometheus.accept()[0])
        self.assert_ends_by_itself(lustre)

    def test_slurm_that_hangs_does_not_keep_the_exporter(self):
        commands = self.enterContext(FakeCommands())
        commands.hold("squeue")
        exporter = self.start(Exporter, path=commands.path)
        self.ask(exporter, "/metrics")
        commands.wait_held("squeue")
        self.assert_ends_by_itself(exporter)

    def test_a_client_that_does_not_read_does_not_keep_the_exporter(self):
        exporter = self.start(Exporter, "--source=sim:nodes=4000", "--collector.node")
        self.assertGreater(len(exporter.get().body), 1 << 20)
        self.ask(exporter, "/metrics").recv(1)
        self.assert_ends_by_itself(exporter)


if __name__ == "__main__":
    import tap
    tap.main()
