# SPDX-License-Identifier: GPL-2.0-or-later
"""How much later a job ends for being profiled, by the clock of a real Slurm, with a Pushgateway that never answers.

Two clusters of one release have the plugin, and all that it can be told to sample goes on in one of them (of the extern step
too, which is part of every job) and nothing in the other. Each job says when its last line runs; slurmctld's log
says, to the millisecond, when it heard that the job is over, and when its node was free for another."""
import concurrent.futures
import contextlib
import dataclasses
import datetime
import pathlib
import re
import shutil
import socket
import statistics
import tempfile
import time

from cluster import Cluster
from rows import row
from sonde import wait_until
from test_profile import plugin_of

LONG_SECONDS, SHORT_SECONDS = 60, 10
SHORT_PAIRS = 5
APART_SECONDS = 4.3  # the starts of short jobs: all of them are within the long one, and no two end together
LATER_AT_MOST_MS = 200
CONF = """AcctGatherProfileType=acct_gather_profile/prometheus
PluginDir=/usr/lib/x86_64-linux-gnu/slurm-wlm:@STATE@/etc
JobAcctGatherFrequency=task=1
SlurmctldDebug=debug2
LogTimeFormat=rfc5424_ms
"""
# What slurmctld logs: the batch script has ended; the node has cleaned up.
MOMENTS = {"end": r"_job_complete: JobId={} done", "free": r"_slurm_rpc_epilog_complete.* JobId={}\b"}


class Profiling(Cluster):
    def __init__(self, suite, is_on, url):
        self.profile = "--profile=task" if is_on else "--profile=none"
        with tempfile.TemporaryDirectory() as directory:
            pathlib.Path(directory, "acct_gather.conf").write_text(
                f"ProfilePrometheusHost={url}\nProfilePrometheusFrequency=1\n"
                f"ProfilePrometheusDefault={'all' if is_on else 'none'}\n")
            shutil.copy(plugin_of(suite), directory)
            super().__init__(suite, conf=CONF, etc=directory)

    def start_job(self, seconds, node):
        return self.batch(f"sleep {seconds}; LC_ALL=C exec bash -c 'echo $EPOCHREALTIME'", self.profile, "-w", node)

    def late_ms(self, job_id):
        """moment → milliseconds after the job's last line."""
        log = self.run("cat", self.inside("log/slurmctld.log")).stdout
        last_line = float(re.search(r"^[0-9]+\.[0-9]+$", self.said(job_id), re.M)[0])  # slurmstepd writes there too
        late = {}
        for moment, words in MOMENTS.items():
            logged = re.search(rf"^\[([^]]+)\].*{words.format(job_id)}", log, re.M)
            assert logged, f"slurmctld has not logged {moment} of job {job_id}"
            late[moment] = 1000 * (datetime.datetime.fromisoformat(logged[1]).timestamp() - last_line)
        return late


@contextlib.contextmanager
def both_clusters(suite, url):
    """The one that profiles and the one that does not, brought up side by side."""
    with contextlib.ExitStack() as stack, concurrent.futures.ThreadPoolExecutor() as pool:
        starting = [pool.submit(Profiling, suite, is_on, url) for is_on in (True, False)]
        concurrent.futures.wait(starting)
        for cluster in starting:
            if not cluster.exception():
                stack.callback(cluster.result().end)
        yield [cluster.result() for cluster in starting]


@dataclasses.dataclass
class Pair:
    """moment → milliseconds after the job's last line, of both."""
    seconds: int
    profiled: dict
    plain: dict

    def later_ms(self, moment):
        return self.profiled[moment] - self.plain[moment]


def run_pairs(clusters):
    started = []  # (seconds, cluster, job)
    begin = time.monotonic()
    for cluster in clusters:
        started.append((LONG_SECONDS, cluster, cluster.start_job(LONG_SECONDS, "c1")))
        time.sleep(1.5)
    for i in range(2 * SHORT_PAIRS):
        cluster, node = clusters[i % 2], f"c{2 + i // 2 % 3}"
        time.sleep(max(0, begin + 3 + i * APART_SECONDS - time.monotonic()))
        started.append((SHORT_SECONDS, cluster, cluster.start_job(SHORT_SECONDS, node)))
    for seconds, cluster, job_id in started:
        wait_until(lambda: cluster.state(job_id) == "COMPLETED", f"job {job_id} ends", seconds + 60)
    late = [cluster.late_ms(job_id) for _, cluster, job_id in started]
    return [Pair(started[i][0], late[i], late[i + 1]) for i in range(0, len(started), 2)]


def print_pairs(release, pairs):
    short = [pair for pair in pairs if pair.seconds == SHORT_SECONDS]
    for moment, words in (("end", "ends later"), ("free", "node free later")):
        row(f"{release} {LONG_SECONDS} s job: {words}", pairs[0].later_ms(moment), "ms", LATER_AT_MOST_MS)
        later = [pair.later_ms(moment) for pair in short]
        row(f"{release} {SHORT_SECONDS} s jobs: {words}, median", statistics.median(later), "ms", LATER_AT_MOST_MS)
        row(f"{release} {SHORT_SECONDS} s jobs: {words}, worst", max(later), "ms", LATER_AT_MOST_MS)


def measure_jobs(release, suite):
    """The long pair first."""
    with socket.create_server(("127.0.0.1", 0)) as silent, \
         both_clusters(suite, f"http://127.0.0.1:{silent.getsockname()[1]}") as clusters:
        pairs = run_pairs(clusters)
    print_pairs(release, pairs)
    return pairs
