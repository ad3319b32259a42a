#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the processes of a job read and wrote: the agent's sums have all of it, once, and never fall."""
import os
import re
import signal

from fakejobs import FaultTest
from sonde import wait_until
from capabilities import need

MIB = 1 << 20
JOB = 700
WITHOUT_NETLINK = ("setpriv", "--bounding-set=-net_admin", "--inh-caps=-all", "--")
WRITTEN = "sonde_job_requested_written_bytes_total"


class Sums(FaultTest):
    def write(self, megabytes, name):
        return f"'{self.node.work}/behave' write {megabytes} '{self.node.work}/{name}'; "

    def test_what_ended_before_the_agent_began_counts(self):
        job = self.node.job(JOB)
        ended = job.start("write", "16", self.node.work / "first")
        ended.wait_said("wrote")
        wait_until(lambda: not ended.is_there(), "its slurmstepd has waited for it")
        go = self.fifo("go")
        job.start("/bin/sh", "-c", self.write(32, "second") + f"echo done; read line <{go}").wait_said("done")
        for _ in range(2):  # and so it is when the agent is started again
            agent = self.agent()
            told = self.wait_job(agent, JOB, WRITTEN)
            self.wait_ticks(agent, 2)
            self.assertAlmostEqual(agent.job(JOB)[WRITTEN][()], 48 * MIB, delta=MIB // 4, msg=told)
            agent.stop()

    def check_late_child(self, agent):
        late = self.node.job(JOB).start("late", "32", self.node.work)
        late.wait_said("wrote")
        self.wait_job(agent, JOB, WRITTEN, lambda samples: samples[()] >= 32 * MIB)
        os.kill(int(re.search(r"child (\d+)", late.said())[1]), signal.SIGKILL)
        late.wait_said("has ended")
        self.wait_ticks(agent, 2)
        self.assertAlmostEqual(agent.job(JOB)[WRITTEN][()], 32 * MIB, delta=MIB // 4)
        late.kill(signal.SIGUSR1)
        late.wait_said("was waited for")
        self.wait_ticks(agent, 2)
        self.assertAlmostEqual(agent.job(JOB)[WRITTEN][()], 32 * MIB, delta=MIB // 4)

    def test_a_child_that_is_waited_for_late_counts_once(self):
        self.check_late_child(self.agent())

    def test_a_child_that_is_waited_for_late_counts_once_without_records(self):
        self.check_late_child(self.agent(words=WITHOUT_NETLINK))

    def known_job(self, agent):
        """One that the agent knows, with a process that stays; and what is written so far."""
        job = self.node.job(JOB)
        job.start("name", "idle").wait_said("is called so")
        told = self.wait_job(agent, JOB, "sonde_job_processes", lambda samples: samples[()] == 1)
        return job, told[WRITTEN][()]

    def check_last_writes(self, agent):
        """Between two ticks, by a process that nobody has seen, and by its parent's child."""
        job, before = self.known_job(agent)
        ended = job.start("/bin/sh", "-c", self.write(8, "a") + f"( {self.write(8, 'b')} : ) ; :")
        wait_until(lambda: not ended.is_there(), "it ends")
        told = self.wait_job(agent, JOB, WRITTEN, lambda samples: samples[()] - before > 15 * MIB)
        self.wait_ticks(agent, 2)
        self.assertAlmostEqual(agent.job(JOB)[WRITTEN][()] - before, 16 * MIB, delta=MIB // 4, msg=told)

    def test_the_last_writes_of_processes_count(self):
        self.check_last_writes(self.agent(tick=2))

    def test_the_last_writes_of_processes_count_without_records(self):
        self.check_last_writes(self.agent(tick=2, words=WITHOUT_NETLINK))

    def test_the_last_writes_of_processes_count_without_cgroups(self):
        self.check_last_writes(self.agent(f"--path.sysfs={self.node.work}", tick=2))

    def test_the_last_writes_of_processes_count_without_cgroups_and_records(self):
        self.check_last_writes(self.agent(f"--path.sysfs={self.node.work}", tick=2, words=WITHOUT_NETLINK))

    def check_slow_ends(self, threads):
        """Of processes that are there for some time after the kernel's record of their end has come: the agent looks at once,
        as ticks are rare and what it has told was a second ago."""
        agent = self.agent(tick=60)
        job, before = self.known_job(agent)
        for written in range(8 * MIB, 56 * MIB, 8 * MIB):
            ending = job.start("slow", "8", self.node.work / "slow", "256", str(threads))
            wait_until(lambda process=ending: not process.is_there(), "it ends")
            # What it leaves to its slurmstepd after that look is in the next one.
            told = self.wait_passing(lambda least=before + written: (job := agent.job(JOB))[WRITTEN][()] >= least and job, "all of it")
            self.assertAlmostEqual(told[WRITTEN][()] - before, written, delta=MIB // 4)

    def test_a_process_that_takes_long_to_end_counts_once(self):
        self.check_slow_ends(threads=1)

    def test_a_process_that_takes_long_to_end_with_its_threads_counts_once(self):
        self.check_slow_ends(threads=8)

    def test_what_a_slurmstepd_gets_some_time_after_the_record_counts_once(self):
        agent = self.agent()
        job, before = self.known_job(agent)
        for written in range(8 * MIB, 48 * MIB, 8 * MIB):
            ending = job.start("slow", "8", self.node.work / "slow", "512", "1")
            wait_until(lambda process=ending: not process.is_there(), "it ends")
            self.wait_ticks(agent, 2)
            self.assertAlmostEqual(agent.job(JOB)[WRITTEN][()] - before, written, delta=MIB // 4)

    def test_orphans_that_no_look_saw_are_counted_as_nobodys(self):
        need("taskstats")
        agent = self.agent(tick=60)
        job = self.node.job(JOB)
        job.start("hold", "1").wait_said("1 MiB")
        self.wait_job(agent, JOB)
        orphan = 'while kill -0 $PPID 2>/dev/null; do :; done'

        def is_counted():
            """Which of them a look sees is chance."""
            job.start("/bin/sh", "-c", f"sh -c '{orphan}' & exit 0")
            return agent.metrics().value("sonde_agent_exits_unattributed_total") > 0
        wait_until(is_counted, "one is counted")

    def test_numbers_of_calls_of_processes_that_ended_stay(self):
        """The kernel's records round them down to 1,024: what was seen of them before counts."""
        need("taskstats")
        agent = self.agent()
        job = self.node.job(JOB)
        for i in range(3):
            late = job.start("late", "100", self.node.work)
            late.wait_said("wrote")
            self.wait_job(agent, JOB, "jobs_write_count", lambda samples, n=i: samples[()] >= 100 * (n + 1))
            child = int(re.search(r"child (\d+)", late.said())[1])
            os.kill(child, signal.SIGKILL)
            late.wait_said("has ended")
            late.kill()
            # While they go, what others do may be taken for what they leave behind.
            wait_until(lambda: not late.is_there() and not os.path.exists(f"/proc/{child}"), "both have gone")
            self.wait_ticks(agent, 2)
        self.assertLess(agent.job(JOB)["jobs_write_count"][()], 350)

    @staticmethod
    def counters(agent, number):
        """All that must not fall."""
        for family, samples in agent.job(number).items():
            if re.search(r"_total$|^jobs_(read|write)_(count|mb)$|^jobs_cpu_time_", family):
                for labels, value in samples.items():
                    if ("process", "other") in labels or "process" not in family:
                        yield (family, labels), value

    def check_never_fall(self, **arguments):
        agent = self.agent(tick=0.1, **arguments)
        job = self.node.job(JOB)
        for _ in range(3):
            job.start("churn", self.node.work)
        before, ticks = {}, set()

        def fall_not():
            """Until 60 ticks were compared."""
            nonlocal before
            now = dict(self.counters(agent, JOB))
            for key, value in before.items():
                self.assertGreaterEqual(now.get(key, -1), value, key)
            before = now
            ticks.add(self.ticks(agent))
            return len(ticks) > 60
        wait_until(fall_not, "60 ticks")
        self.assertGreater(len(before), 10)
        self.assertGreater(before[WRITTEN, ()], MIB)

    def test_no_counter_falls_while_processes_come_and_go(self):
        self.check_never_fall()

    def test_no_counter_falls_without_records(self):
        self.check_never_fall(words=WITHOUT_NETLINK)


if __name__ == "__main__":
    import tap
    tap.main()
