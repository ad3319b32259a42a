#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The pool of Slurm clusters: each is leased to one test program at a time, so that no test meets the jobs of another.

A slot is a cluster of ./sandbox with the name poolN. Whoever holds the lock of its file in $SONDE_CACHE/pool has it: the
kernel releases the lock when the holder ends, however it ends. The keeper, which is this file as a program, holds a few
clusters ready, hands them out together with their locks, and rebuilds those that come back. Without a keeper a lessee takes
a free slot and starts the cluster itself.

usage: pool.py [SUITE/seeded=N] [SUITE/empty=N]...    holds so many ready, until SIGINT or SIGTERM; without arguments, what
                                                      ./check needs
SONDE_POOL in the environment names another pool, with slots of its own.
"""
import collections
import contextlib
import errno
import fcntl
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUITES = os.environ.get("SONDE_SUITES", "bookworm trixie").split()
SLOTS = 16  # of each suite; there are never that many, unless a test program leases one after the other
BUILDERS = 2  # clusters that the keeper starts at the same time to have them ready; for those who wait, twice as many
FRESH = 30 * 60  # seconds; seeded jobs and reservations end after an hour

# What a lessee asks for. cgroup: "" as the machine has them, "none" for a Slurm that does without.
Wish = collections.namedtuple("Wish", "suite seeded cgroup")
NAME = os.environ.get("SONDE_POOL", "pool")


def directory():
    cache = os.environ.get("SONDE_CACHE") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "sonde")
    path = pathlib.Path(cache).absolute() / NAME
    path.mkdir(parents=True, exist_ok=True)
    return path


def sandbox(suite, command, *arguments, env=None, run=subprocess.run, **options):
    return run([ROOT / "sandbox", command, "--suite", suite, *arguments], capture_output=True, text=True,
               errors="surrogateescape", env=dict(os.environ, **(env or {})), **options)


class CannotStart(Exception):
    """This machine has no clusters: the reason is the text."""


class Slot:
    def __init__(self, suite, name, lock):
        self.suite, self.name, self.lock = suite, name, lock
        self.built = 0  # when, by the monotonic clock

    @classmethod
    def take(cls, suite):
        """The first that nobody has."""
        for number in range(1, SLOTS + 1):
            with contextlib.suppress(BlockingIOError):
                return cls.locked(suite, f"{NAME}{number}", fcntl.LOCK_EX | fcntl.LOCK_NB)
        raise AssertionError(f"all {SLOTS} clusters of {suite} are leased")

    @classmethod
    def locked(cls, suite, name, how=fcntl.LOCK_EX):
        lock = os.open(directory() / f"{suite}-{name}.lease", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(lock, how)
        except BaseException:
            os.close(lock)
            raise
        return cls(suite, name, lock)

    def sandbox(self, command, *arguments, **options):
        return sandbox(self.suite, command, "--name", self.name, *arguments, **options)

    def must(self, command, *arguments, **options):
        done = self.sandbox(command, *arguments, **options)
        if done.returncode == 3:
            raise CannotStart(done.stderr or done.stdout)
        assert done.returncode == 0, f"sandbox {command} --suite {self.suite} --name {self.name}: {done.stdout}{done.stderr}"

    def build(self, wish, *flags, **options):
        self.must("down", **options)
        self.must("up", *flags, env={"SANDBOX_NO_CGROUP": "1"} if wish.cgroup == "none" else {}, **options)
        if wish.seeded:
            self.must("seed", **options)
        self.built = time.monotonic()

    def release(self):
        os.close(self.lock)


class Lease:
    """One cluster for this process alone, until it is returned."""

    def __init__(self, wish, *flags):
        """Flags of ./sandbox up that cannot be had later (restart) make it a cluster of the lessee's own."""
        self.keeper = None if flags else connect()
        try:
            self.slot = self._ask(wish) if self.keeper else self._build(wish, flags)
        except CannotStart as error:
            raise unittest.SkipTest(f"no sandbox here: {error}") from None

    def _ask(self, wish):
        self.keeper.sendall(json.dumps(wish).encode() + b"\n")
        answer, fds, _, _ = socket.recv_fds(self.keeper, 65536, 1)
        if not answer:  # the keeper has ended
            self.keeper.close()
            self.keeper = None
            return self._build(wish, ())
        answer = json.loads(answer)
        if "skip" in answer:
            raise CannotStart(answer["skip"])
        assert "name" in answer, answer["error"]
        return Slot(wish.suite, answer["name"], fds[0])

    @staticmethod
    def _build(wish, flags):
        slot = Slot.take(wish.suite)
        try:
            slot.build(wish, *flags)
        except BaseException:
            slot.sandbox("down")
            slot.release()
            raise
        return slot

    def end(self):
        """With a keeper, the end of the connection is the return. If there is none any more, the cluster ends here."""
        if self.keeper:
            with contextlib.suppress(OSError):
                self.keeper.sendall(b"returned\n")
                if self.keeper.recv(1):
                    self.slot.release()
                    self.keeper.close()
                    return
            self.keeper.close()
        self.slot.sandbox("down")
        self.slot.release()


def connect():
    """None if there is no keeper."""
    keeper = socket.socket(socket.AF_UNIX)
    try:
        keeper.connect(str(directory() / "socket"))
        return keeper
    except OSError as error:
        keeper.close()
        if error.errno not in (errno.ENOENT, errno.ECONNREFUSED):
            raise
        return None


class Keeper:
    """Threads: one for each lessee, BUILDERS that start and end clusters; all that they share is under `changed`."""

    def __init__(self, stock):
        self.stock = stock  # wish → how many are to be ready
        self.changed = threading.Condition()
        self.ready = collections.defaultdict(list)  # wish → slots
        self.returned = []  # slots, and whatever is still up in them
        self.waiting, self.building = collections.Counter(), collections.Counter()
        self.failed = {}  # wish → why the last one did not come up
        self.groups = set()  # process groups of ./sandbox at work
        self.is_ending = False

    def serve(self):
        lock = os.open(directory() / "keeper.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("pool.py: there is a keeper already")
        ask = catch_signals()
        sandbox(SUITES[0], "clean")
        path = directory() / "socket"
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen(64)
            threading.Thread(target=self._accept, args=(server,), daemon=True).start()
            builders = [threading.Thread(target=self._build) for _ in range(2 * BUILDERS)]
            for builder in builders:
                builder.start()
            print("the pool is open", flush=True)
            os.read(ask, 1)
            path.unlink(missing_ok=True)
        with self.changed:
            self.is_ending = True
            self.returned += [slot for slots in self.ready.values() for slot in slots]
            self.ready.clear()
            for group in self.groups:
                os.killpg(group, signal.SIGKILL)  # a cluster that nobody will lease; its builder then ends what there is of it
            self.changed.notify_all()
        for builder in builders:
            builder.join()

    def _accept(self, server):
        with contextlib.suppress(OSError):  # closed
            while True:
                lessee, _ = server.accept()
                threading.Thread(target=self._serve, args=(lessee,), daemon=True).start()

    def _serve(self, lessee):
        with lessee, contextlib.suppress(OSError, ValueError):  # it has ended, perhaps before it has asked
            wish = Wish(*json.loads(lessee.makefile("rb").readline()))
            slot = self._await(wish)
            if isinstance(slot, dict):
                lessee.sendall(json.dumps(slot).encode())
                return
            try:
                socket.send_fds(lessee, [json.dumps({"name": slot.name}).encode()], [slot.lock])
                slot.release()  # it is the lessee's now
                if lessee.recv(16):
                    lessee.sendall(b"\n")
            except OSError:
                slot.release()
            # As soon as the lessee has let it go, be it by its end.
            self._add(self.returned, Slot.locked(slot.suite, slot.name))

    def _await(self, wish):
        """A slot, or what to tell in its place."""
        with self.changed:
            self.waiting[wish] += 1
            self.failed.pop(wish, None)
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.is_ending or self._fresh(wish) or wish in self.failed)
            self.waiting[wish] -= 1
            if self.ready[wish]:
                self.changed.notify_all()
                return self.ready[wish].pop(0)
            return self.failed.get(wish, {"error": "the keeper ends"})

    def _fresh(self, wish):
        """Those of that sort that may be handed out."""
        old = [slot for slot in self.ready[wish] if time.monotonic() - slot.built > FRESH]
        self.ready[wish] = [slot for slot in self.ready[wish] if slot not in old]
        self.returned += old
        return self.ready[wish]

    def _add(self, slots, slot):
        with self.changed:
            slots.append(slot)
            self.changed.notify_all()

    def _wanted(self):
        """The wish to build for now; None: nothing is missing. Who waits comes first, then what there is least of."""
        def missing(wish, count):
            return count - self.building[wish] - len(self.ready[wish])
        for wish, count in self.waiting.items():
            if missing(wish, count) > 0 and wish not in self.failed:
                return wish
        if self.building.total() >= BUILDERS:
            return None
        short = {wish: missing(wish, count) / count for wish, count in self.stock.items() if count and wish not in self.failed}
        return max((wish for wish in short if short[wish] > 0), key=short.get, default=None)

    def _take(self, suite):
        for slot in self.returned:
            if slot.suite == suite:
                self.returned.remove(slot)
                return slot
        return Slot.take(suite)

    def _build(self):
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.is_ending or self.returned or self._wanted())
                wish = None if self.is_ending else self._wanted()
                if wish:
                    slot = self._take(wish.suite)
                    self.building[wish] += 1
                elif self.returned:
                    slot = self.returned.pop()
                else:
                    return
            if wish:
                self._build_one(wish, slot)
            else:
                slot.sandbox("down")
                slot.release()

    def _run(self, command, capture_output, **options):
        """subprocess.run in a process group of its own."""
        with self.changed:
            if self.is_ending:
                raise InterruptedError("the keeper ends")
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **options)
            self.groups.add(process.pid)
        out, err = process.communicate()
        with self.changed:
            self.groups.remove(process.pid)
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def _build_one(self, wish, slot):
        try:
            slot.build(wish, run=self._run)
            problem = None
        except CannotStart as error:
            problem = {"skip": str(error)}
        except Exception as error:  # for the lessee to report
            problem = {"error": str(error)}
        with self.changed:
            self.building[wish] -= 1
            if problem and not self.is_ending:
                self.failed[wish] = problem
                print(f"pool.py: {problem}", file=sys.stderr, flush=True)
            (self.returned if problem or self.is_ending else self.ready[wish]).append(slot)
            self.changed.notify_all()


def catch_signals():
    """What to read from until one arrives that asks to end. Whichever thread gets it, its handler writes to the pipe."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return read


def read_stock(words):
    stock = {}
    for word in words or [f"{suite}/{kind}" for suite in SUITES for kind in ("seeded=2", "empty=1")]:
        match = re.fullmatch(r"(\w+)/(seeded|empty)=(\d+)", word)
        if not match:
            sys.exit(f'pool.py: "{word}" is not SUITE/seeded=N or SUITE/empty=N')
        stock[Wish(match[1], match[2] == "seeded", "")] = int(match[3])
    return stock


if __name__ == "__main__":
    Keeper(read_stock(sys.argv[1:])).serve()
