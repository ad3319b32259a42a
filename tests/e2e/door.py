# SPDX-License-Identifier: GPL-2.0-or-later
"""An exporter through one door into a cluster that is made to fail: scraped all the time, and watched."""
import contextlib
import http.client
import pathlib
import re
import threading

from sonde import Exporter, wait_until

KINDS = ("nodes", "jobs")  # the others are asked for so rarely that they notice nothing
SCRAPE_TIMEOUT = 1
FLAGS = ("--slurm.poll-limit=500ms", "--no-collector.diag", "--no-collector.scheduler")
STEADY = ("slurm_cpus_total", "slurm_node_count_per_state", "slurm_job_count_per_state", "slurm_partition_total_cpus")

# Stands between sonde and the helper. When there is a file of the name given, it passes on as many bytes of what the helper
# sends from then on as stand in the file, removes it and dies.
RELAY = """#!/usr/bin/python3
import os, select, signal, socket, subprocess, sys
ours, theirs = socket.socketpair()
subprocess.Popen([{helper!r}], stdin=theirs)
theirs.close()
asker = socket.socket(fileno=0)
left = None
while True:
    for ready in select.select([ours, asker], [], [])[0]:
        data = ready.recv(1 << 20)
        if not data:
            sys.exit()
        if ready is ours and left is None and os.path.exists({cut!r}):
            left = int(open({cut!r}).read())
        if ready is ours and left is not None:
            if len(data) >= left:
                asker.sendall(data[:left])
                os.unlink({cut!r})
                os.kill(os.getpid(), signal.SIGKILL)
            left -= len(data)
        (asker if ready is ours else ours).sendall(data)
"""


def put_relay(script):
    """Puts a relay in the place of the script that starts a helper; gives the file that makes it die."""
    real, cut = script.with_name("real"), script.with_name("cut")
    script.rename(real)
    script.write_text(RELAY.format(helper=str(real), cut=str(cut)))
    script.chmod(0o755)
    return cut


def children(pid):
    """The ids of a process's children; of those that one of its threads has left meanwhile, some may be missing."""
    found = []
    for file in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has just ended
            found += map(int, file.read_text().split())
    return found


class Door:
    """An exporter that is scraped all the time, as by Prometheus, and what was noticed of it meanwhile. `only` names the one
    collector that is wanted, jobs or nodes: nothing else is asked for, but the configuration at the start."""

    def __init__(self, slurm, name, *flags, only=None, **options):
        self.name = name
        self.kinds, self.query = ((only, "config"), f"?collect[]={only}") if only else (KINDS, "")
        self.exporter = Exporter(f"--source={name}", *FLAGS, *flags, path=slurm.env["SANDBOX_BIN"], **options)
        self.last_families = {}
        self.failure = None  # why it is no longer scraped
        self.most_children = 0
        self.read_until = 0
        self.is_ending = threading.Event()
        self.thread = threading.Thread(target=self._scrape, daemon=True)
        self.thread.start()

    def _scrape(self):
        headers = {"X-Prometheus-Scrape-Timeout-Seconds": str(SCRAPE_TIMEOUT)}
        try:
            while not self.is_ending.wait(0.2):
                # A connection that the exporter has cut is no answer, as it is none to Prometheus.
                with contextlib.suppress(OSError, http.client.HTTPException):
                    self.last_families = self.exporter.get(f"/metrics{self.query}", headers=headers).families()
                self.most_children = max(self.most_children, len(self.children()))
        except BaseException as failure:
            self.failure = failure
            raise

    @property
    def families(self):
        """Of the last answer. Fails at once if the exporter or the scraping thread has ended."""
        assert self.exporter.process.poll() is None, f"{self.name}: the exporter has ended: {self.exporter.log()}"
        assert self.failure is None, f"{self.name} is no longer scraped: {self.failure!r}"
        return self.last_families

    def children(self):
        """pid → state and command of each."""
        found = {}
        for pid in children(self.exporter.process.pid):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
                found[pid] = stat.rpartition(") ")[2][0] + " " + stat.partition("(")[2].rpartition(")")[0]
        return found

    def zombies(self):
        return {pid for pid, words in self.children().items() if words.startswith("Z")}

    def value(self, family, **labels):
        """None where there is no such sample."""
        wanted = set(labels.items())
        for series, value in self.families.get(family, {}).items():
            if wanted <= set(series):
                return value
        return None

    def labels(self, family):
        return dict(next(iter(self.families.get(family, {(): 1}))))

    def are_up(self, value=1):
        return all(self.value("sonde_source_up", kind=kind) == value for kind in self.kinds)

    def await_up(self, value=1):
        words = f"{self.name}: {'works' if value else 'fails'}"
        try:
            wait_until(lambda: self.are_up(value), words)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.exporter.log()}") from None

    def await_door(self, name):
        wait_until(lambda: self.labels("sonde_source_info").get("door") == name,
                   f"{self.name} takes {name}\n{self.exporter.log()}")

    def steady(self):
        return {name: self.families[name] for name in STEADY}

    def news(self):
        """What has been logged since this was last asked."""
        log = self.exporter.log()
        lines = []
        for line in log[self.read_until:].splitlines():
            pairs = re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)', line)
            lines.append({key: value.strip('"') for key, value in pairs})
        self.read_until = len(log)
        return lines

    def check_health(self, case):
        zombies = self.zombies()
        wait_until(lambda: not zombies & self.zombies(), "none stays a zombie")
        case.assertLessEqual(self.most_children, 2 if self.name == "auto" else 1)

    def stop(self):
        self.is_ending.set()
        self.thread.join()
        self.exporter.stop()


def follow(doors, what, is_seen):
    """Waits until each tells of it."""
    waiting = list(doors)

    def look():
        waiting[:] = [door for door in waiting if not is_seen(door)]
        return not waiting
    try:
        wait_until(look, f"all tell of {what}")
    except AssertionError as error:
        logs = "".join(f"\n{door.name}: {door.exporter.log()}" for door in waiting)
        raise AssertionError(f"{error}{logs}") from None
