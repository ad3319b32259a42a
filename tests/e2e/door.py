# SPDX-License-Identifier: GPL-2.0-or-later
"""An exporter through one door into a cluster that is made to fail: scraped all the time, and watched."""
import pathlib
import re
import threading
import time

from sonde import Exporter, wait_until

KINDS = ("nodes", "jobs")  # the others are asked for so rarely that they notice nothing
TIMEOUT = 2  # for one answer of Slurm's; its own patience is CONF's
SCRAPE_TIMEOUT = 1
FLAGS = ("--slurm.poll-limit=500ms", f"--slurm.timeout={TIMEOUT}s", "--no-collector.diag", "--no-collector.scheduler")
CONF = "MessageTimeout=1\n"
LASTING = 70  # seconds; nothing here takes longer
STEADY = ("slurm_cpus_total", "slurm_node_count_per_state", "slurm_job_count_per_state", "slurm_partition_total_cpus")


class Door:
    """An exporter that is scraped all the time, as by Prometheus, and what was noticed of it meanwhile."""

    def __init__(self, slurm, name, *flags, **options):
        self.name = name
        self.exporter = Exporter(f"--source={name}", *FLAGS, *flags, path=slurm.env["SANDBOX_BIN"], **options)
        self.families = {}
        self.longest_scrape = self.most_children = 0
        self.zombies = {}  # pid → since when
        self.lasting_zombies = set()
        self.read_until = 0
        self.is_ending = threading.Event()
        self.thread = threading.Thread(target=self._scrape, daemon=True)
        self.thread.start()

    def _scrape(self):
        while not self.is_ending.wait(0.2):
            began = time.monotonic()
            answer = self.exporter.metrics(X_Prometheus_Scrape_Timeout_Seconds=str(SCRAPE_TIMEOUT))
            self.longest_scrape = max(self.longest_scrape, time.monotonic() - began)
            self.families = answer.families()
            self._count_children()

    def children(self):
        """pid → state and command of each."""
        found = {}
        for file in pathlib.Path(f"/proc/{self.exporter.process.pid}/task").glob("*/children"):
            for pid in file.read_text().split():
                try:
                    stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
                    found[int(pid)] = stat.rpartition(") ")[2][0] + " " + stat.partition("(")[2].rpartition(")")[0]
                except (FileNotFoundError, ProcessLookupError):
                    pass
        return found

    def _count_children(self):
        children = self.children()
        self.most_children = max(self.most_children, len(children))
        now = time.monotonic()
        self.zombies = {pid: self.zombies.get(pid, now) for pid, words in children.items() if words.startswith("Z")}
        self.lasting_zombies |= {pid for pid, since in self.zombies.items() if now - since > 2 * TIMEOUT}

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
        return all(self.value("sonde_source_up", kind=kind) == value for kind in KINDS)

    def await_up(self, value=1):
        words = f"{self.name}: {'works' if value else 'fails'}"
        try:
            wait_until(lambda: self.are_up(value), words, LASTING)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.exporter.log()}") from None

    def await_door(self, name):
        wait_until(lambda: self.labels("sonde_source_info").get("door") == name,
                   f"{self.name} takes {name}\n{self.exporter.log()}", LASTING)

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
        # Many threads of this test measure it, on a machine that is busy with others; one that waited for Slurm would
        # have taken until its timeout.
        case.assertLess(self.longest_scrape, (SCRAPE_TIMEOUT + TIMEOUT) / 2)
        case.assertEqual(self.lasting_zombies, set())
        case.assertLessEqual(self.most_children, 2 if self.name == "auto" else 1)

    def stop(self):
        self.is_ending.set()
        self.thread.join()
        self.exporter.stop()


def follow(doors, what, is_seen):
    """Waits until each tells of it, and prints after how long."""
    began = time.monotonic()
    waiting = list(doors)

    def look():
        for door in [door for door in waiting if is_seen(door)]:
            print(f"# {door.name} tells of {what} after {time.monotonic() - began:.1f} s")
            waiting.remove(door)
        return not waiting
    try:
        wait_until(look, f"all tell of {what}", LASTING)
    except AssertionError as error:
        logs = "".join(f"\n{door.name}: {door.exporter.log()}" for door in waiting)
        raise AssertionError(f"{error}{logs}") from None
