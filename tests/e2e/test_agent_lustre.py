#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent on Lustre servers made of files: job_stats that change, begin anew, come and go, hang or are hostile, and an lctl
that is a script. Lustre itself cannot run here: the texts follow the formats of 2.12 and 2.15."""
import contextlib
import os
import pathlib
import signal
import tempfile
import unittest

from clock import Clock
from sonde import Agent, wait_until
from capabilities import need

OST = "proc/fs/lustre/obdfilter"
MDT = "proc/fs/lustre/mdt"
DEBUG = "sys/kernel/debug/lustre/obdfilter"
FULL_HOUR = 1800000000  # seconds; ticks come at whole multiples of their distance


def io(name, samples, total):
    return f"  {name}:      {{ samples: {samples:11}, unit: bytes, min: {4096:8}, max: {1048576:8}, sum: {total:16} }}\n"


def entry(job, read=0, written=0, **operations):
    return (f"- job_id:          {job}\n  snapshot_time:   1700000000\n"
            + io("read_bytes", 3, read) + io("write_bytes", 2, written)
            + "".join(f"  {name}:         {{ samples: {count:11}, unit:  reqs }}\n" for name, count in operations.items()))


class LustreServer(unittest.TestCase):
    """Time stands still until a test moves it on to the next tick."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        (self.root / "proc/self").mkdir(parents=True)
        self.clock = self.enterContext(Clock(stands=FULL_HOUR))

    def write(self, target, *entries, text=None):
        """In place at once, as the kernel's are."""
        path = self.root / target / "job_stats"
        path.parent.mkdir(parents=True, exist_ok=True)
        new = self.root / "new"
        text = "job_stats:\n" + "".join(entries) if text is None else text
        new.write_bytes(text if isinstance(text, bytes) else text.encode())
        new.rename(path)

    def agent(self, *flags, seconds=0.1, text="", **arguments):
        """One whose ticks are so far apart."""
        self.settings = self.root / "agent.yml"
        self.configure(seconds, text)
        agent = self.enterContext(Agent(f"--path.procfs={self.root}/proc", f"--path.sysfs={self.root}/sys",
                                        f"--config.file={self.settings}", "--node.name=oss1", *flags, env=self.clock.env,
                                        **arguments))
        wait_until(lambda: agent.get("/-/ready").status == 200, "a first tick")
        return agent

    def configure(self, seconds, text):
        self.seconds = seconds
        self.settings.write_text(f"timer: {int(seconds * 1000)}ms\n{text}")

    def reload(self, agent, seconds, text):
        self.configure(seconds, text)
        agent.process.send_signal(signal.SIGHUP)

    def fifo(self, target):
        """A job_stats that whoever opens it waits for."""
        new = self.root / "new"
        os.mkfifo(new)
        path = self.root / target / "job_stats"
        path.parent.mkdir(parents=True, exist_ok=True)
        new.rename(path)
        return path

    def answer_later(self, fifo):
        """As soon as it is read; until it is closed, the look that reads it does not come to its end."""
        def open_it():
            try:
                return os.fdopen(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK), "w")
            except OSError:
                return None  # nobody reads it yet
        return wait_until(open_it, "it is read")

    def values(self, agent, family, **wanted):
        """jobid, or jobid and operation → value, of those samples that have these labels."""
        found = {}
        for labels, value in agent.metrics().families(family)[family].items():
            labels = dict(labels)
            if all(labels.get(name) == text for name, text in wanted.items()):
                found[(labels["jobid"], labels["operation"]) if "operation" in labels else labels["jobid"]] = value
        return found

    def ticks(self, agent):
        return agent.metrics().value('sonde_agent_samples_total{cause="tick"}')

    def tick(self, agent, seconds=None):
        before = self.ticks(agent)
        self.clock.advance(seconds or self.seconds)
        wait_until(lambda: self.ticks(agent) > before, "a tick")

    @staticmethod
    def is_at_rest(agent):
        """The thread that looks at Lustre sleeps, because its look is over or waits for a file; and no lctl runs."""
        for task in pathlib.Path(f"/proc/{agent.process.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # another thread, which has ended
                if (task / "comm").read_text() == "lustre\n":
                    state = (task / "stat").read_text().rpartition(")")[2].split()[0]
                    return state == "S" and not (task / "children").read_text()
        return True

    def wait_told(self, agent, condition, what):
        """After as many ticks as it takes. Each has the result of the look that the one before asked for, however long it took."""
        def look():
            if condition():
                return True
            wait_until(lambda: self.is_at_rest(agent), "the look is over")
            self.tick(agent)
            return condition()
        wait_until(look, what)
        wait_until(lambda: self.is_at_rest(agent), "the look is over")

    def wait_values(self, agent, family, expected, **wanted):
        self.wait_told(agent, lambda: self.values(agent, family, **wanted) == expected, f"{family} {wanted} is {expected}")

    def own(self, agent, name):
        family = f"sonde_agent_lustre_{name}"
        return agent.metrics().families(family)[family].get(())

    def wait_own(self, agent, name, value):
        self.wait_told(agent, lambda: self.own(agent, name) == value, f"sonde_agent_lustre_{name} is {value}")

    def wait_old(self, agent):
        """Until the look that is under way has lasted too long, or the last one is too old."""
        def look():
            self.tick(agent, 1)
            return self.own(agent, "up") == 0
        wait_until(look, "it is told that job_stats cannot be read")


class Files(LustreServer):
    def test_values_follow_the_files_and_begin_anew(self):
        self.write(f"{OST}/scratch-OST0000", entry("4711", 1000, 50, punch=1), entry("cp.1000", 7))
        self.write(f"{MDT}/scratch-MDT0000", entry("4711", open=5, close=4))
        agent = self.agent()
        self.wait_values(agent, "lustre_job_read_bytes_total", {"4711": 1000, "cp.1000": 7}, component="ost",
                         target="scratch-OST0000")
        self.wait_values(agent, "lustre_job_write_bytes_total", {"4711": 50, "cp.1000": 0}, component="ost")
        self.wait_values(agent, "lustre_job_stats_total", {("4711", "open"): 5, ("4711", "close"): 4}, component="mdt",
                         target="scratch-MDT0000")
        self.write(f"{OST}/scratch-OST0000", entry("4711", 1234567890123456, 51, punch=1), entry("cp.1000", 7))
        self.wait_values(agent, "lustre_job_read_bytes_total", {"4711": 1234567890123456, "cp.1000": 7}, component="ost")
        # cleared: an ordinary reset of a counter; one that has expired is gone
        self.write(f"{OST}/scratch-OST0000", entry("4711", 3))
        self.wait_values(agent, "lustre_job_read_bytes_total", {"4711": 3}, component="ost")
        self.assertEqual(self.own(agent, "up"), 1)

    def test_targets_come_and_go(self):
        agent = self.agent()
        self.assertNotIn("lustre", "".join(agent.metrics().samples()).replace('collector="lustre"', ""))
        self.write(f"{OST}/a-OST0000", entry("1", 1))
        self.write(f"{DEBUG}/a-OST0001", entry("1", 2))
        self.wait_values(agent, "lustre_job_read_bytes_total", {"1": 2}, target="a-OST0001")
        self.wait_values(agent, "lustre_job_read_bytes_total", {"1": 1}, target="a-OST0000")
        self.wait_own(agent, "targets", 2)
        (self.root / OST / "a-OST0000/job_stats").unlink()
        (self.root / OST / "a-OST0000").rmdir()
        self.wait_own(agent, "targets", 1)
        self.assertEqual(self.values(agent, "lustre_job_read_bytes_total", target="a-OST0000"), {})
        self.write(f"{DEBUG}/a-OST0001", text="")  # idle
        self.wait_values(agent, "lustre_job_read_bytes_total", {})
        self.assertEqual(self.own(agent, "up"), 1)

    def test_a_file_that_hangs_stops_neither_the_agent_nor_its_scrapes(self):
        self.write(f"{OST}/a-OST0000", entry("1", 1))
        agent = self.agent("--collector.disable-defaults", "--collector.lustre")
        self.wait_values(agent, "lustre_job_read_bytes_total", {"1": 1})
        fifo = self.fifo(f"{OST}/a-OST0001")
        self.tick(agent)
        with self.answer_later(fifo) as answer:
            # What was last read is withdrawn when it is old, and everything else goes on.
            self.wait_old(agent)
            self.assertEqual(self.values(agent, "lustre_job_read_bytes_total"), {})
            for _ in range(3):
                self.tick(agent)
            self.assertEqual(agent.metrics().value("sonde_agent_up"), 1)
            agent.wait_log("Lustre's job_stats cannot be read")
            # Once it can be read, all is well again.
            self.write(f"{OST}/a-OST0001", entry("1", 3))
            answer.write("job_stats:\n" + entry("1", 2))
        self.wait_values(agent, "lustre_job_read_bytes_total", {"1": 3}, target="a-OST0001")
        self.wait_own(agent, "up", 1)
        agent.wait_log("Lustre's job_stats can be read again")
        self.assertEqual(agent.log().count("Lustre's job_stats cannot be read"), 1)

    def test_an_agent_whose_file_hangs_can_be_stopped(self):
        fifo = self.fifo(f"{OST}/a-OST0000")
        agent = self.agent()
        with self.answer_later(fifo):
            agent.stop()

    def test_a_hostile_id_is_a_label_value_and_no_more(self):
        ids = ['a b: c "d" {e} #f', "'quoted", "", ".", "x" * 64, "job_id: 7", "- job_id", "a\\nb"]
        self.write(f"{OST}/a-OST0000", *(entry(job, i) for i, job in enumerate(ids)))
        self.write(f"{OST}/a-OST0001", entry('"a\\x0Ab\\x22} 1"', 7), entry('"\\xFF\\xFE"', 8), entry('"\\xFF"', 9),
                   entry('"\\xFE"', 100))
        agent = self.agent()
        self.wait_values(agent, "lustre_job_read_bytes_total", {job: i for i, job in enumerate(ids)}, target="a-OST0000")
        self.wait_values(agent, "lustre_job_read_bytes_total", {'a\nb"} 1': 7, "\ufffd\ufffd": 8, "\ufffd": 109},
                         target="a-OST0001")
        self.assertEqual(self.own(agent, "ids_merged"), 1)

    def test_nonsense_is_left_out_and_counted(self):
        agent = self.agent()
        texts = (b"\0" * 100000 + b"\n", b"job_stats:\n- job_id:          2\n  read_bytes: { samples: -1, sum: 5 }\n",
                 b"x" * (1 << 20), b"\xff\xfe\n" * 1000, b"- job_id:\n  open: 1\n" * 1000,
                 b"job_stats:\n- job_id:          3\n  open: { samples: 99999999999999999999, unit: reqs }\n",
                 ("job_stats:\n" + entry("4", 5, punch=1))[:-10].encode())
        for i, text in enumerate(texts):
            self.write(f"{OST}/a-OST0001", text=text)
            self.write(f"{OST}/a-OST0000", entry("1", i))  # is read first: a look that has it has the other as well
            self.wait_values(agent, "lustre_job_read_bytes_total", {"1": i}, target="a-OST0000")
            self.assertGreater(self.own(agent, "lines_left_out"), 0, text[:40])
            self.assertEqual(self.values(agent, "lustre_job_stats_total"), {}, text[:40])
        # Cut off in the midst of a line: what is whole counts.
        self.assertEqual(self.values(agent, "lustre_job_read_bytes_total", target="a-OST0001"), {"4": 5})
        self.assertEqual(self.own(agent, "up"), 1)

    def test_ids_told_twice_are_one(self):
        self.write(f"{OST}/a-OST0000", entry("1", 5, punch=1), entry("2", 1), entry("1", 7, punch=3))
        agent = self.agent()
        self.wait_values(agent, "lustre_job_read_bytes_total", {"1": 12, "2": 1})
        self.assertEqual(self.values(agent, "lustre_job_stats_total")["1", "punch"], 4)
        self.assertEqual(self.own(agent, "ids_merged"), 1)

    def test_past_the_ceiling_those_that_move_are_shown(self):
        self.write(f"{OST}/a-OST0000", *(entry(job, job << 30) for job in range(1, 21)))
        agent = self.agent("--lustre.max-ids=3")
        self.wait_values(agent, "lustre_job_read_bytes_total", {str(job): job << 30 for job in (18, 19, 20)})
        self.assertEqual(self.own(agent, "ids_left_out"), 17)
        self.assertEqual(self.own(agent, "ids"), 3)
        self.assertEqual(agent.metrics().value('sonde_collector_folded_series{collector="lustre"}'), 17)
        self.write(f"{OST}/a-OST0000", *(entry(job, (job << 30) + (1 << 20) * (job in (2, 5))) for job in range(1, 21)))
        self.wait_told(agent, lambda: {"2", "5"} <= set(self.values(agent, "lustre_job_read_bytes_total")), "those that move")

    def test_8_targets_with_500_ids_of_64_bytes_are_shown(self):
        operations = {f"operation_{i:02}": i for i in range(20)}
        for target in range(8):
            self.write(f"{OST}/scratch-OST{target:04x}", *(entry(f"{job:064}", job, **operations) for job in range(500)))
        agent = self.agent(seconds=3600)
        self.wait_told(agent, lambda: self.own(agent, "ids"), "ids")
        self.assertEqual(self.own(agent, "ids"), 4000)
        answer = agent.get(headers={"Accept-Encoding": "gzip"})
        self.assertEqual(answer.value('sonde_collector_success{collector="lustre"}'), 1)
        self.assertEqual(answer.value('sonde_collector_samples{collector="lustre"}'), 4000 * 28 + 9)

    def test_with_more_ids_than_an_answer_holds_those_that_move_least_are_left_out(self):
        operations = {f"operation_{i:02}": i for i in range(20)}
        for target in range(40):
            self.write(f"{OST}/scratch-OST{target:04x}",
                       *(entry('"' + f"{job:04}" + "\\xFF" * 60 + '"', job << 20, **operations) for job in range(500)))
        agent = self.agent("--lustre.max-ids=10000", seconds=3600)
        self.wait_told(agent, lambda: self.own(agent, "ids"), "ids")
        answer = agent.get(headers={"Accept-Encoding": "gzip"})
        self.assertEqual(answer.value('sonde_collector_success{collector="lustre"}'), 1)
        shown, left_out = self.own(agent, "ids"), self.own(agent, "ids_left_out")
        self.assertEqual(shown + left_out, 40 * 500)
        self.assertGreater(shown, 1000)
        self.assertEqual(self.own(agent, "up"), 1)
        # on each target the same: those that have moved most
        jobs = {job[:4] for job in self.values(agent, "lustre_job_read_bytes_total")}
        self.assertEqual(jobs, {f"{499 - i:04}" for i in range(len(jobs))})
        self.assertLess(len(jobs), shown / 40 + 2)

    def test_the_collector_can_be_switched_off_and_on(self):
        self.write(f"{OST}/a-OST0000", entry("1", 1))
        agent = self.agent(text="collector:\n  lustre: false\n")
        for _ in range(5):
            self.tick(agent)
        self.assertEqual(self.values(agent, "lustre_job_read_bytes_total"), {})
        self.reload(agent, self.seconds, "collector:\n  lustre: true\n")
        self.wait_values(agent, "lustre_job_read_bytes_total", {"1": 1})
        self.reload(agent, self.seconds, "collector:\n  lustre: true\nlustre:\n  max-ids: 7\n")
        agent.wait_log("lustre.max-ids has changed: restart sonde for that")


class Silence(LustreServer):
    """What is not there is not said to be there, nor what may not be seen to be absent."""

    def test_a_pause_of_the_agent_is_no_look_that_does_not_end(self):
        fifo = self.fifo(f"{OST}/a-OST0000")
        agent = self.agent()
        with self.answer_later(fifo):
            self.tick(agent, 3600)
            for _ in range(3):
                self.tick(agent)
            self.assertNotIn("job_stats cannot be read", agent.log())
            # But one that still does not end, with ticks going on, is one.
            self.wait_old(agent)

    def test_nor_are_ticks_that_have_become_shorter(self):
        fifo = self.fifo(f"{OST}/a-OST0000")
        agent = self.agent(seconds=3600)
        with self.answer_later(fifo):
            self.tick(agent)
            self.reload(agent, 0.1, "collector:\n  gpu: false\n")
            # What is not wanted any longer goes as soon as the ticks are short.
            wait_until(lambda: 'sonde_collector_success{collector="gpu"}' not in agent.metrics().samples(), "the change is in force")
            for _ in range(3):
                self.tick(agent)
            self.assertNotIn("job_stats cannot be read", agent.log())
            self.wait_old(agent)

    def test_a_target_that_is_gone_is_not_read_again(self):
        (self.root / OST / "a-OST0000/job_stats").mkdir(parents=True)
        agent = self.agent()
        self.wait_own(agent, "up", 0)
        (self.root / OST / "a-OST0000/job_stats").rmdir()
        (self.root / OST / "a-OST0000").rmdir()
        self.wait_own(agent, "up", None)
        self.write(f"{OST}/a-OST0001", entry("1", 1))
        self.wait_own(agent, "up", 1)
        self.assertNotIn("read again", agent.log())

    def test_what_may_not_be_looked_for_is_said_once(self):
        need("root")
        self.write(f"{DEBUG}/a-OST0000", entry("1", 1))
        self.root.chmod(0o755)
        (self.root / "sys/kernel/debug").chmod(0o700)
        agent = self.agent(starter=("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all",
                                    "--bounding-set=-all"))
        self.wait_told(agent, lambda: "whether there is Lustre here cannot be seen" in agent.log(), "a line in the log")
        agent.wait_log("nor Lustre's job_stats where only root may read them")
        self.assertEqual(self.own(agent, "up"), None)
        (self.root / "sys/fs/lustre/obdfilter/a-OST0000").mkdir(parents=True)
        self.wait_own(agent, "up", 0)
        agent.wait_log("whether there is Lustre here")
        self.assertEqual(agent.log().count("whether there is Lustre here"), 1)


class Lctl(LustreServer):
    def setUp(self):
        super().setUp()
        for device in ("obdfilter/a-OST0000", "mdt/a-MDT0000"):
            (self.root / "sys/fs/lustre" / device).mkdir(parents=True)
        self.lctl = self.root / "lctl"

    def script(self, text):
        new = self.root / "new"
        new.write_text(f"#!/bin/sh\n{text}\n")
        new.chmod(0o755)
        new.rename(self.lctl)

    def answer(self, *texts):
        (self.root / "answer").write_text("".join(texts))
        return f'[ "$*" = "get_param obdfilter.*.job_stats mdt.*.job_stats" ] && cat {self.root}/answer'

    def test_lctl_is_asked_where_there_are_no_files(self):
        self.script(self.answer("obdfilter.a-OST0000.job_stats=\njob_stats:\n", entry("1", 5), entry("2", 6),
                                "mdt.a-MDT0000.job_stats=\njob_stats:\n", entry("1", open=3)))
        agent = self.agent(f"--lustre.lctl={self.lctl}")
        self.wait_values(agent, "lustre_job_read_bytes_total", {"1": 5, "2": 6}, component="ost", target="a-OST0000")
        self.wait_values(agent, "lustre_job_stats_total", {("1", "open"): 3}, component="mdt", target="a-MDT0000")
        self.assertEqual(self.own(agent, "up"), 1)
        self.script("echo 'error: get_param: cannot do that' >&2; exit 1")
        self.wait_own(agent, "up", 0)
        self.wait_own(agent, "unread_targets", 2)
        agent.wait_log("cannot do that")
        self.script(self.answer("obdfilter.a-OST0000.job_stats=\njob_stats:\n", entry("1", 9)))
        self.wait_values(agent, "lustre_job_read_bytes_total", {"1": 9})
        self.wait_own(agent, "up", 1)
        self.script("echo hello; echo world")
        self.wait_own(agent, "up", 0)

    def test_an_lctl_that_hangs_holds_up_nobody_and_is_gone_with_the_agent(self):
        self.script(f"echo $$ >{self.root}/pid; exec sleep 1000")
        agent = self.agent(f"--lustre.lctl={self.lctl}")
        pid = int(wait_until(lambda: (self.root / "pid").exists() and (self.root / "pid").read_text().strip(), "its start"))
        self.wait_old(agent)
        self.assertEqual(agent.metrics().value("sonde_agent_up"), 1)
        agent.stop()
        wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "its end")

    def test_without_an_lctl_the_log_says_what_is_missing(self):
        agent = self.agent(f"--lustre.lctl={self.root}/nowhere")
        self.wait_own(agent, "up", 0)
        agent.wait_log("nowhere")
        agent.stop()
        agent = self.agent("--lustre.lctl=")
        self.wait_own(agent, "up", 0)
        agent.wait_log("has no job_stats")


if __name__ == "__main__":
    import tap
    tap.main()
