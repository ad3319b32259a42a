#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A store in trouble: scrapes go on, the metrics and the log tell, and what was missed is written afterwards."""
import contextlib
import json
import os
import pathlib
import re
import resource
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest

from clock import Clock
from sonde import DEADLINE, SONDE, Exporter, FakeCommands, http_get, job, node, run_exporter, wait_until

TOKEN = "0123456789abcdef" * 4


class Faults(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.directory / "store").mkdir()
        self.store = self.directory / "store/sonde.db"
        self.token = self.directory / "token"
        self.token.write_text(TOKEN)
        self.commands = self.enterContext(FakeCommands(squeue=f"answer_file {self.directory}/queue", sinfo=f"answer '{node()}'"))
        self.queue(10)

    def queue(self, n, **changes):
        """From now on there are the jobs 1 to n."""
        fresh = self.directory / "queue.new"
        fresh.write_text("".join(job(JobID=str(i), ArrayJobID=str(i), **changes) for i in range(1, n + 1)).replace("\\n", "\n"))
        fresh.rename(self.directory / "queue")

    def exporter(self, *flags, has_history=False, env=None):
        return Exporter(f"--store=sqlite:{self.store}", f"--ingest.token-file={self.token}", "--store.interval=1s",
                        "--slurm.poll-limit=1s", "--store.history-interval=1s",
                        *([] if has_history else ["--no-store.history"]), *flags, path=self.commands.path, env=env)

    def rows(self, question):
        with contextlib.closing(sqlite3.connect(f"file:{self.store}?mode=ro", uri=True)) as connection:
            return connection.execute(question).fetchall()

    def kept(self):
        try:
            return self.rows("SELECT count(*) FROM job")[0][0]
        except sqlite3.Error:
            return None

    def wait_kept(self, n):
        wait_until(lambda: self.kept() == n, f"{n} jobs are kept")

    @staticmethod
    def stop(exporter):
        exporter.process.send_signal(signal.SIGSTOP)
        os.waitpid(exporter.process.pid, os.WUNTRACED)

    def remove_store(self, exporter):
        """All of it at once: no new one is made of which a part would be removed."""
        self.stop(exporter)
        for path in self.store.parent.iterdir():
            path.unlink()
        exporter.process.send_signal(signal.SIGCONT)

    @contextlib.contextmanager
    def stopped(self, exporter):
        """All is in the file itself and stays there meanwhile, so that what is done to it matters."""
        def is_flushed():
            self.stop(exporter)
            with contextlib.closing(sqlite3.connect(self.store)) as connection:
                if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0:
                    return True
            exporter.process.send_signal(signal.SIGCONT)  # it was writing
            return False
        wait_until(is_flushed, "all is in the file")
        try:
            yield
        finally:
            exporter.process.send_signal(signal.SIGCONT)

    def is_up(self, exporter):
        """Scrapes are answered, whatever is done to the store meanwhile."""
        answer = exporter.metrics()
        self.assertEqual(answer.value('sonde_source_up{source="cli",kind="jobs"}'), 1)
        return answer.value("sonde_store_up") == 1

    def wait_down(self, exporter, words):
        wait_until(lambda: not self.is_up(exporter), "the metric tells")
        wait_until(lambda: re.search(words, exporter.log()), f"the log tells: {words}")

    def check_whole(self, n):
        self.assertEqual(self.rows("PRAGMA integrity_check"), [("ok",)])
        self.assertEqual(self.kept(), n)
        self.assertEqual(self.rows("SELECT count(*) FROM job WHERE id NOT IN (SELECT job FROM life)"), [(0,)])

    @staticmethod
    def post(exporter, job_id):
        record = {"job_id": job_id, "node": "n1", "begin_time": 1700000000, "end_time": 1700000003}
        return http_get(f"{exporter.url}/ingest", {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
                        json.dumps({"records": [record]}).encode(), "POST")

    def finals(self):
        return {job_id for job_id, in self.rows("SELECT job_id FROM final UNION SELECT job_id FROM held")}


class Room(Faults):
    def test_a_full_disk_is_told_and_what_was_missed_is_written_when_there_is_room(self):
        with self.exporter() as exporter:
            self.wait_kept(10)
            pid = exporter.process.pid
            before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (self.store.stat().st_size, before[1]))
            self.queue(2000, Name="x" * 100)
            self.wait_down(exporter, "there is no room")
            wait_until(lambda: self.post(exporter, 1).status == 503, "nothing is acknowledged that is not kept")
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
            self.wait_kept(2000)
            wait_until(lambda: self.is_up(exporter), "the metric tells that it is over")
            wait_until(lambda: self.post(exporter, 1).status == 200, "posts are taken")
            exporter.wait_log("the store is written again")
        self.check_whole(2000)


class Locked(Faults):
    def test_a_locked_store_is_told_and_caught_up_with(self):
        with self.exporter() as exporter:
            self.wait_kept(10)
            with contextlib.closing(sqlite3.connect(self.store, isolation_level=None)) as other:
                other.execute("BEGIN EXCLUSIVE")
                self.queue(20)
                self.wait_down(exporter, "another process writes it")
                self.queue(30)
                self.assertFalse(self.is_up(exporter))
                self.assertEqual(self.kept(), 10)
            self.wait_kept(30)
        self.check_whole(30)

    def test_a_second_that_would_write_one_store_says_so_and_ends(self):
        with self.exporter() as exporter:
            self.wait_kept(10)
            for command, flags in (("exporter", ["--source=cli"]), ("up", ["--no-agent", "--user=root", "--series.path=", "--source=cli"])):
                done = subprocess.run([SONDE, command, f"--store=sqlite:{self.store}", "--web.listen-address=127.0.0.1:0", *flags],
                                      capture_output=True, text=True, timeout=DEADLINE, check=False,
                                      env=os.environ | {"PATH": f"{self.commands.path}:{os.environ['PATH']}"})
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(f"the store {self.store} is in use: process {exporter.process.pid}", done.stderr)
            self.queue(20)
            self.wait_kept(20)
        with self.exporter():
            self.queue(30)
            self.wait_kept(30)
        self.check_whole(30)


class Damage(Faults):
    def test_a_store_that_was_removed_is_made_anew(self):
        with self.exporter() as exporter:
            self.wait_kept(10)
            self.remove_store(exporter)
            self.queue(15)
            self.wait_kept(15)
            # before it was written to, or afterwards
            wait_until(lambda: re.search("was removed or replaced|has gone while it was written", exporter.log()), "the log tells")
            counter = 'sonde_store_errors_total{reason="missing"}'
            wait_until(lambda: exporter.metrics().samples().get(counter) == "1", "it is counted")
        self.check_whole(15)

    def test_a_directory_that_goes_and_comes_back(self):
        away = self.directory / "away"
        with self.exporter() as exporter:
            self.wait_kept(10)
            self.store.parent.rename(away)
            self.queue(15)
            # whichever is noticed first
            self.wait_down(exporter, "check its directory|has gone while it was written|has been removed or replaced")
            away.rename(self.store.parent)
            self.wait_kept(15)
            wait_until(lambda: self.is_up(exporter), "the metric tells that it is over")
        self.check_whole(15)

    def test_what_is_no_store_is_left_alone_until_it_is_moved_away(self):
        garbage = b"no store at all " * 1000
        for has_moved in (True, False):  # another file in its place, or the same with other bytes
            with self.subTest(has_moved=has_moved):
                self.queue(10)
                with self.exporter() as exporter:
                    self.wait_kept(10)
                    with self.stopped(exporter):
                        if has_moved:
                            fresh = self.store.with_suffix(".new")
                            fresh.write_bytes(garbage)
                            fresh.rename(self.store)
                        else:
                            with self.store.open("r+b") as file:
                                file.write(garbage[:self.store.stat().st_size])
                        damaged = self.store.read_bytes()
                    self.queue(15)
                    self.wait_down(exporter, "it is not a store")
                    self.assertEqual(self.store.read_bytes(), damaged)
                    self.remove_store(exporter)
                    self.wait_kept(15)
                self.check_whole(15)
                for path in self.store.parent.iterdir():
                    path.unlink()

    def test_a_store_of_real_jobs_takes_no_simulated_ones(self):
        with self.exporter():
            self.wait_kept(10)
        done = run_exporter("--demo", f"--store=sqlite:{self.store}", "--web.listen-address=127.0.0.1:0")
        self.assertEqual(done.returncode, 2)
        self.assertIn("is of real jobs, these are simulated", done.stderr)
        self.check_whole(10)


class Clocks(Faults):
    """What is deleted by age, while slurmctld's clock is right."""

    DAY = 86400

    def setUp(self):
        super().setUp()
        self.commands.set("sdiag", r"""answer "sdiag output at now ($(date +%s))\nData since then (1699999999)\n" """)

    def record_ended(self, days_ago):
        self.queue(10, State="COMPLETED", EndTime=str(int(time.time()) - days_ago * self.DAY))
        with self.exporter("--store.retention=90d"):
            self.wait_kept(10)
        self.queue(0)
        with contextlib.closing(sqlite3.connect(self.store)) as connection:
            connection.execute("DELETE FROM section")
            connection.commit()

    @staticmethod
    def pass_minutes(clock, exporter, words):
        """What is due once a minute is done until the log has these words."""
        def is_logged():
            clock.advance(61)
            return words in exporter.log()
        wait_until(is_logged, f"the log tells {words!r}")

    def test_a_clock_that_is_ahead_deletes_nothing(self):
        self.record_ended(days_ago=10)
        with Clock() as clock:
            clock.advance(100 * self.DAY)
            with self.exporter("--store.retention=90d", env=clock.env) as exporter:
                self.pass_minutes(clock, exporter, "the clock differs from slurmctld's")
                wait_until(lambda: exporter.metrics().value("sonde_store_retention_paused") == 1, "the metric says so")
        self.check_whole(10)

    def test_what_is_past_its_retention_is_deleted_and_logged(self):
        self.record_ended(days_ago=100)
        with Clock() as clock, self.exporter("--store.retention=90d", env=clock.env) as exporter:
            wait_until(lambda: self.rows("SELECT count(*) FROM section WHERE kind = 'diag'") == [(1,)], "slurmctld's time is known")
            clock.advance(61)
            self.wait_kept(0)
            exporter.wait_log('msg="deleted recorded jobs past their retention" cluster=fake runs=10')
            self.assertEqual(exporter.metrics().value("sonde_store_retention_paused"), 0)


class Token(Faults):
    def test_a_file_that_will_not_do_is_told_at_the_start_and_read_when_it_does(self):
        post = {"data": b'{"records": []}', "headers": {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}}
        for words, mode, text in (("No such file", None, None), ("holds no token", 0o600, ""), ("everybody may read", 0o644, TOKEN)):
            self.token.unlink(missing_ok=True)
            if mode:
                self.token.write_text(text)
                self.token.chmod(mode)
            with self.exporter() as exporter:
                wait_until(lambda: words in exporter.log(), f"the log tells: {words}")
                self.assertRegex(exporter.log(), "level=warn .*--ingest.token-file will not do")
                self.token.write_text(TOKEN)
                self.token.chmod(0o600)
                wait_until(lambda: exporter.get("/ingest", **post).status == 200, "it is read again")
        with self.exporter() as exporter:
            self.is_up(exporter)
            self.assertNotIn("will not do", exporter.log())


class Killed(Faults):
    def test_killed_again_and_again_it_loses_nothing_that_was_acknowledged(self):
        acknowledged = set()
        for turn in range(1, 13):
            self.queue(200 * turn)
            with contextlib.closing(Victim(self, turn)) as victim:
                wait_until(lambda v=victim, t=turn: len(v.acknowledged) > t % 5, "it takes posts")
                victim.exporter.process.kill()
                victim.exporter.process.wait()
            acknowledged |= victim.acknowledged
            self.assertEqual(self.rows("PRAGMA integrity_check"), [("ok",)])
            self.assertLessEqual(acknowledged, self.finals())
        with self.exporter():
            self.wait_kept(2400)
        self.check_whole(2400)


class Victim:
    """An exporter that is posted to until it is gone."""

    def __init__(self, test, turn):
        self.acknowledged = set()
        self.turn = turn
        self.exporter = test.exporter()
        self.thread = threading.Thread(target=self.post_all, args=(test.post,))
        self.thread.start()

    def post_all(self, post):
        n = 0
        while self.exporter.process.poll() is None:
            n += 1
            with contextlib.suppress(OSError):
                if post(self.exporter, 100000 * self.turn + n).status == 200:
                    self.acknowledged.add(100000 * self.turn + n)

    def close(self):
        if self.exporter.process.poll() is None:
            self.exporter.process.kill()
        self.thread.join()
        self.exporter.process.wait()
        self.exporter.process.stdout.close()


class Copies(Faults):
    """sonde admin backup and restore."""

    def admin(self, command, file):
        return subprocess.run([SONDE, "admin", command, f"--store=sqlite:{self.store}", str(file)],
                              capture_output=True, text=True, timeout=DEADLINE, check=False)

    def copied(self, path, question="SELECT job_id FROM final UNION SELECT job_id FROM held"):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            self.assertEqual(connection.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            return {row[0] for row in connection.execute(question)}

    def backup(self):
        """Of a store with ten jobs that is no longer written."""
        copy = self.directory / "copy.db"
        with self.exporter():
            self.wait_kept(10)
        self.assertEqual(self.admin("backup", copy).returncode, 0)
        return copy

    def test_a_store_is_copied_whole_while_it_is_written(self):
        copies = []

        def is_written_meanwhile():
            """A copy has all that was acknowledged before it began, and nothing that was posted after it ended."""
            before = set(victim.acknowledged)
            copies.append(self.directory / f"copy-{len(copies)}.db")
            done = self.admin("backup", copies[-1])
            after = max(victim.acknowledged) + 1  # one may be written, and not acknowledged yet
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, "Copied and checked 10 runs of jobs")
            finals = self.copied(copies[-1])
            self.assertLessEqual(before, finals)
            self.assertLessEqual(max(finals), after)
            return len(victim.acknowledged) > len(before)

        with contextlib.closing(Victim(self, 1)) as victim:
            self.wait_kept(10)
            wait_until(lambda: victim.acknowledged, "it takes posts")
            wait_until(is_written_meanwhile, "posts are taken while a copy is made")
        self.assertEqual({path.name for path in self.directory.glob("copy*")}, {path.name for path in copies})

    def test_a_store_in_use_is_not_replaced(self):
        copy = self.backup()
        with self.exporter() as exporter:
            self.queue(20)
            self.wait_kept(20)
            done = self.admin("restore", copy)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"is in use: process {exporter.process.pid}", done.stderr)
        self.check_whole(20)
        self.assertFalse(pathlib.Path(f"{self.store}.replaced").exists())

    def test_a_copy_is_put_back_and_written_on(self):
        copy = self.backup()
        self.queue(20)
        with self.exporter():
            self.wait_kept(20)
        self.assertEqual(self.admin("restore", copy).returncode, 0)
        self.check_whole(10)
        self.assertEqual(self.copied(f"{self.store}.replaced", "SELECT count(*) FROM job"), {20})
        done = self.admin("restore", copy)
        self.assertIn(f"{self.store}.replaced exists", done.stderr)
        self.queue(30)
        with self.exporter():
            self.wait_kept(30)
        self.check_whole(30)

    def test_what_is_no_whole_store_is_not_put_back(self):
        copy = self.backup()
        whole = copy.read_bytes()
        for damaged in (b"", b"no store at all " * 1000, whole[:4096 * 3], whole[:8192] + b"\xa5" * 4096 + whole[12288:]):
            copy.write_bytes(damaged)
            done = self.admin("restore", copy)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.check_whole(10)
        self.assertEqual({path.name for path in self.store.parent.iterdir()} - {"sonde.db-wal", "sonde.db-shm"}, {"sonde.db", "sonde.db-lock"})

    def test_a_copy_replaces_nothing(self):
        copy = self.backup()
        done = self.admin("backup", copy)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{copy} exists", done.stderr)


class Web(Exporter):
    command = "web"

    @staticmethod
    def complete(flags):
        return flags


class Questions(Faults):
    """What was freed before is not empty: memory is handed out full of bytes that mean something else."""

    DIRTY = {"MALLOC_PERTURB_": "165", "ASAN_OPTIONS": "max_malloc_fill_size=1048576:malloc_fill_byte=165"}

    def test_a_question_that_fails_in_its_first_part_leaves_the_server_as_it_was(self):
        with self.exporter():
            self.wait_kept(10)
        with contextlib.closing(sqlite3.connect(self.store)) as connection:
            for name, in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql > ''").fetchall():
                connection.execute(f"DROP INDEX {name}")
        with Web(f"--store=sqlite:{self.store}", env=self.DIRTY) as web:
            for _ in range(2):
                for path in ("jobs?from=2020-01-01", "jobs?state=FAILED,RUNNING", "jobs?job=1", "usage?from=2020-01-01"):
                    self.assertEqual(web.get(f"/api/v1/{path}").status, 503, path)
                self.assertEqual(web.get("/api").status, 200)

    def test_usage_is_added_up_in_whatever_memory_there_is(self):
        with self.exporter():
            self.wait_kept(10)
        done = subprocess.run([SONDE, "usage", f"--store=sqlite:{self.store}", "--from=2023-11-01", "--to=2023-12-01",
                               "--by=state", "--format=csv"], capture_output=True, text=True, timeout=DEADLINE, env=os.environ | self.DIRTY)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, "RUNNING,10,")


class Accounting(Faults):
    """What sacct may do: the queue is recorded, and scrapes are answered, all the same."""

    PRELUDE = """[ "$1" = --helpformat ] && { echo JobIDRaw JobID State Submit JobName User Account Start End Eligible; exit; }
while [ $# -gt 0 ]; do [ "$1" = --delimiter ] && token=$2; shift; done
"""

    def test_whatever_sacct_prints_the_queue_is_kept(self):
        for name, script, words in (
                ("garbage", "head -c 100000 /dev/urandom", "is garbage"),
                ("half a record", 'printf "1${token}1${token}"', "in the middle of a record"),
                ("a refusal", "echo 'no, \033[31mnever' >&2; exit 1", r"no, \u001b[31mnever"),
                ("more than there may be", "yes", "more than --slurm.max-answer")):
            with self.subTest(name):
                self.commands.set("sacct", self.PRELUDE + script)
                with self.exporter("--slurm.max-answer=1M", has_history=True) as exporter:
                    self.wait_kept(10)
                    wait_until(lambda e=exporter, w=words: self.is_up(e) and w in e.log(), f"the log tells: {words}")
                    wait_until(lambda e=exporter: e.metrics().samples().get("sonde_history_up") == "0", "the metric tells")
                self.check_whole(10)


if __name__ == "__main__":
    import tap
    tap.main()
