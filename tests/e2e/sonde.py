# SPDX-License-Identifier: GPL-2.0-or-later
"""What the end-to-end tests share: starting the real exporter, asking it, reading what it says."""
import atexit
import collections
import contextlib
import functools
import gzip
import json
import os
import pathlib
import random
import re
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from invariants import Scrapes, check_store, real_commands

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
BUILD = pathlib.Path(os.environ.get("SONDE_BUILD", ROOT / "build/check"))
DEADLINE = 300  # seconds; it only bounds a hang: no test is decided by how long something takes


def place_programs():
    """The directory that they are started from: everybody can enter it, even if the build is in a home that is its owner's alone."""
    built = BUILD.resolve() / "src"
    if all(place.stat().st_mode & stat.S_IXOTH for place in (built, *built.parents)):
        return built
    place = pathlib.Path(tempfile.mkdtemp(prefix="sonde-programs-"))
    atexit.register(shutil.rmtree, place)
    place.chmod(0o755)
    for program in built.glob("sonde*"):
        if program.is_file() and os.access(program, os.X_OK):
            try:
                os.link(program, place / program.name)
            except OSError:  # another file system
                shutil.copy(program, place)
    return place


SONDE = place_programs() / "sonde"


def wait_until(condition, what):
    """Polls until the condition gives something true, and returns that. Half of the time at most goes into polling, so that
    what is awaited gets the other half."""
    end = time.monotonic() + DEADLINE
    while True:
        began = time.monotonic()
        value = condition()
        if value:
            return value
        now = time.monotonic()
        if now > end:
            raise AssertionError(f"not within {DEADLINE} s: {what}")
        time.sleep(min(max(now - began, 0.02), 1))


def own_host():
    """An address of this machine for one server of one test: nobody else takes its port before the server is started, or while it is
    away. No two processes choose the same of sixteen million addresses; use a port below those that the kernel hands out."""
    return f"127.{random.randrange(256)}.{random.randrange(256)}.{random.randrange(1, 255)}"


# Starts a command with the signals of a shell at a terminal. What sh runs in the background ignores SIGINT and SIGQUIT, what
# nohup runs SIGHUP, and what they start inherits that.
AS_AT_A_TERMINAL = ("env", "--default-signal")


class Log:
    """What a program writes to `file`, in a file without a name. It is read at a place of its own: a program and its reader share
    the place at which they are in the file, and a line that is written after a seek would stand in the place of another."""

    def __init__(self):
        self.file = tempfile.TemporaryFile()

    def text(self):
        return os.pread(self.file.fileno(), os.fstat(self.file.fileno()).st_size, 0).decode(errors="replace")

    def close(self):
        self.file.close()


def mount_namespace():
    """A command that runs another one in a mount namespace of its own. The root of a chroot is no mount, and only its maker can
    have made it private."""
    mounts = [line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
    return ("unshare", "--mount", "--propagation", "private" if "/" in mounts else "unchanged")


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode()

    def is_scrape(self):
        return self.status == 200 and self.headers.get("Content-Type", "").startswith("text/plain; version=")

    def samples(self, having=""):
        """name{labels} → value, as text, of the lines that have this in them; each must be a comment or a sample."""
        found = {}
        for line in self.text.split("\n")[:-1]:
            if line.startswith("#") or having not in line:
                continue
            match = re.fullmatch(r'([a-zA-Z_:][\w:]*(?:\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?) (\S+)', line)
            assert match, f"not a sample: {line!r}"
            assert match[1] not in found, f"twice: {line!r}"
            found[match[1]] = match[2]
        return found

    def families(self, having=""):
        """family → {((label, value), …): value}, as numbers; of a histogram each sample is a family."""
        found = collections.defaultdict(dict)
        for series, value in self.samples(having).items():
            name, _, labels = series.partition("{")
            labels = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels)
            found[name][tuple((label, self._plain(text)) for label, text in labels)] = float(value)
        return found

    @staticmethod
    def _plain(text):
        return re.sub(r"\\(.)", lambda escaped: "\n" if escaped[1] == "n" else escaped[1], text) if "\\" in text else text

    def value(self, series):
        samples = self.samples(f"{series} ")
        assert series in samples, f"no {series}; there are {sorted(self.samples())[:400]}"
        return float(samples[series])


def http_get(url, headers=None, data=None, method=None, timeout=DEADLINE):
    request = urllib.request.Request(url, headers=headers or {}, data=data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as reply:
            answer = Answer(reply.status, reply.headers, reply.read())
    except urllib.error.HTTPError as error:
        answer = Answer(error.code, error.headers, error.read())
    if answer.headers.get("Content-Encoding") == "gzip":
        answer.body = gzip.decompress(answer.body)
    return answer


class Exporter:
    """`sonde exporter` on a free port, stopped and looked at for leaks at the end; through cli unless a flag says else."""

    command = "exporter"

    def __init__(self, *flags, path=None, env=None, listen="127.0.0.1:0", stderr=None, starter=()):
        environment = dict(os.environ, **(env or {}))
        if path:
            environment["PATH"] = f"{path}:{environment['PATH']}"
        flags = self.complete(flags)
        self.flags, self.path = flags, path
        self.errors = Log()
        self.process = subprocess.Popen(
            [*starter, SONDE, self.command, f"--web.listen-address={listen}", *flags],
            stdout=subprocess.PIPE, stderr=stderr or self.errors.file, env=environment)
        line = self._first_line()
        match = re.search(r"(https?)://(\S+?):(\d+)(/\S*)", line)
        if not match:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"did not start: {line!r} {self.log()}")
        self.url = f"{match[1]}://127.0.0.1:{match[3]}"
        self.port = int(match[3])
        self.scrapes = Scrapes()

    @staticmethod
    def complete(flags):
        """Slurm has as long as it takes to answer, unless a flag or a file names a limit."""
        has_source = any(re.match("--?(source|demo|slurm.*-cli)", flag) for flag in flags)
        has_limit = any(re.match(r"--?(slurm\.timeout|config\.file|cluster\.file)", flag) for flag in flags)
        return (*([] if has_source else ["--source=cli"]), *([] if has_limit else ["--slurm.timeout=1h"]), *flags)

    def _first_line(self):
        ready, _, _ = select.select([self.process.stdout], [], [], DEADLINE)
        return self.process.stdout.readline().decode() if ready else ""

    def log(self):
        return self.errors.text()

    def wait_log(self, words):
        """What a program does can be seen before it has been logged."""
        wait_until(lambda: words in self.log(), f"the log tells {words!r}")

    def get(self, path="/metrics", **arguments):
        before = self.scrapes.counters
        answer = http_get(self.url + path, **arguments)
        if answer.is_scrape():
            self.scrapes.check(answer.text, before)
        return answer

    def metrics(self, **headers):
        answer = self.get(headers={k.replace("_", "-"): v for k, v in headers.items()})
        assert answer.status == 200, answer.body
        return answer

    def stop(self, with_signal=signal.SIGTERM):
        self.process.send_signal(with_signal)
        status = self.process.wait(DEADLINE)
        log = self.log()
        self.process.stdout.close()
        self.errors.close()
        assert status == 0, f"exit status {status}: {log}"
        self.check_store()
        return log

    def check_store(self):
        """That the job history that it has written is slurmdbd's, if it reads a real Slurm."""
        stores = [match[1] for flag in self.flags if (match := re.match(r"--store=(?:sqlite:)?(.+)", flag))]
        stores += [f"{match[1]}/sonde.db" for flag in self.flags if (match := re.match("--state.directory=(.+)", flag)) and not stores]
        files = [match[1] for flag in self.flags if (match := re.match("--cluster.file=(.+)", flag))]
        flags = [*self.flags, *(f"--{line.replace(': ', '=')}" for file in files for line in pathlib.Path(file).read_text().splitlines())]
        places = [match[1] for flag in flags if (match := re.match(r"--slurm\.bin-path=(.+)", flag))] or [self.path]
        if stores and self.command != "web" and "--no-store.history" not in flags:
            check_store(stores[0], [place for place in places if place in real_commands])

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.process.poll() is None:
            if kind:
                print(f"# {self.log()}".replace("\n", "\n# "))
                self.process.kill()
                self.process.wait()
            else:
                self.stop()


class Agent(Exporter):
    """`sonde agent`, likewise; it sees the jobs of every sandbox on this machine."""

    command = "agent"

    @staticmethod
    def complete(flags):
        return flags

    def job(self, job_id):
        """family → {labels other than the job and its node: value} of one job."""
        found = collections.defaultdict(dict)
        for family, samples in self.metrics().families(f'="{job_id}"').items():
            for labels, value in samples.items():
                pairs = dict(labels)
                if pairs.pop("job_id", pairs.pop("slurm_job", None)) == str(job_id):
                    pairs.pop("instance", None)
                    pairs.pop("node", None)
                    found[family][tuple(sorted(pairs.items()))] = value
        return found


def run_exporter(*flags, env=None):
    """Runs it to its end: for flags that make it stop by itself."""
    return subprocess.run([SONDE, "exporter", *flags], capture_output=True, text=True,
                          timeout=DEADLINE, env=dict(os.environ, **(env or {})))


class FakeCommands:
    """A directory for PATH whose Slurm commands are shell scripts.

    In a script, answer TEXT prints TEXT with every ~ replaced by the token that sonde asked for.
    Of what a test does not name, there is little: no reservations, licences or limits.
    """

    PRELUDE = """#!/bin/sh
token=$(printf '%s\\n' "$SQUEUE_FORMAT2 $*" | sed -n 's/.*\\(@[0-9a-f]\\{16\\}@\\).*/\\1/p')
answer() { printf "$1" | sed "s/~/$token/g"; }
answer_file() { sed "s/~/$token/g" "$1"; }
"""
    SDIAG = "answer 'sdiag output at now (1700000000)\\nData since then (1699999999)\\n'"
    SSHARE = "answer 'root||||0.000000|0||1.000000||\\n'"
    SCONTROL = """case "$*" in
*" licenses") answer 'No licenses configured in Slurm.\\n' ;;
*" reservations") answer 'No reservations in the system\\n' ;;
*" partitions") answer 'No partitions in the system\\n' ;;
*" assoc_mgr "*) answer 'Current Association Manager state\\n' ;;
*" config") answer 'ClusterName = fake\\nPrivateData = none\\nSLURM_VERSION = 22.05.8\\n' ;;
*) echo "unexpected: scontrol $*" >&2; exit 1 ;;
esac"""

    def __init__(self, squeue=":", sinfo=":", sdiag=SDIAG, sshare=SSHARE, scontrol=SCONTROL):
        self.directory = tempfile.TemporaryDirectory()
        self.path = self.directory.name
        self.set("squeue", squeue)
        self.set("sinfo", sinfo)
        self.set("sdiag", sdiag)
        self.set("sshare", sshare)
        self.set("scontrol", scontrol)

    def set(self, name, script):
        target = pathlib.Path(self.path, name)
        fresh = target.with_suffix(".new")
        fresh.write_text(self.PRELUDE + script + "\n")
        fresh.chmod(0o755)
        fresh.rename(target)

    def remove(self, name):
        pathlib.Path(self.path, name).unlink()

    def hold(self, name, script=":"):
        """From now on it waits when it is started, and goes on with the script when it is released."""
        with contextlib.suppress(FileExistsError):
            os.mkfifo(f"{self.path}/{name}.go")
        self.set(name, f"echo $$ >>{self.path}/{name}.held; read line <{self.path}/{name}.go; {script}")

    def held(self, name):
        """The ids of all that wait or have waited."""
        path = pathlib.Path(self.path, f"{name}.held")
        return [int(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")] if path.exists() else []

    def wait_held(self, name):
        return wait_until(lambda: self.held(name), f"{name} is started")

    def release(self, name):
        """Those that wait go on; the next one waits again."""
        with open(f"{self.path}/{name}.go", "w"):
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.directory.cleanup()


@functools.cache
def tables():
    """What the programs are made from: tests/golden/tables.c."""
    return json.loads(subprocess.run([BUILD / "tests/golden/tables"], check=True, capture_output=True, text=True).stdout)


JOB = {"JobID": "1", "ArrayJobID": "1", "ArrayTaskID": "N/A", "HetJobID": "N/A",
       "HetJobOffset": "N/A", "UserID": "1000", "UserName": "alice", "Account": "physics",
       "Partition": "cpu", "QOS": "normal", "State": "RUNNING", "Reason": "None", "NumCPUs": "4",
       "NumNodes": "1", "tres-alloc": "cpu=4,mem=8G,node=1,billing=4", "NodeList": "n1",
       "Reservation": "(null)", "Licenses": "(null)", "Feature": "(null)", "PriorityLong": "100",
       "TimeLimit": "1:00:00", "SubmitTime": "1700000000", "EligibleTime": "1700000000",
       "StartTime": "1700000001", "EndTime": "1700003601", "RestartCnt": "0", "AllocNodes": "login1",
       "Name": "sim"}
NODE = {"NodeList": "n1", "Partition": "cpu*", "StateComplete": "idle", "CPUsState": "0/8/0/8",
        "Memory": "16000", "AllocMem": "0", "FreeMem": "15000", "CPUsLoad": "0.10",
        "Gres": "(null)", "GresUsed": "(null)", "Features": "(null)", "Weight": "1",
        "Version": "22.05.8", "Time": "1-00:00:00", "Available": "up", "Timestamp": "Unknown",
        "User": "Unknown", "Reason": "none"}


def job(**changes):
    values = dict(JOB, **{k.replace("_", "-"): v for k, v in changes.items()})
    return "".join(f"{values[name]}~" for name in tables()["squeue"]) + "\\n"


def node(**changes):
    values = dict(NODE, **changes)
    return "".join(f"{values[name]}~" for name in tables()["sinfo"]) + "\\n"


class Up(Exporter):
    """`sonde up`, whose pages may take as long as they need."""

    command = "up"

    @staticmethod
    def complete(flags):
        """Where no other user can be become, as in a rootless container, it stays who it is."""
        from capabilities import missing_reason  # in a directory that this file adds to the path
        stays_root = os.geteuid() == 0 and missing_reason("root")
        return ("--api.timeout=5m", *(("--user=root",) if stays_root else ()), *flags)
