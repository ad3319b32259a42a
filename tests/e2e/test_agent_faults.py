#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent on jobs that misbehave, and on a host that takes things away from it: it goes on, and what it says is right."""
import contextlib
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys

from fakejobs import SLURMD_UID, FaultTest, remove_tree
from sonde import ROOT, wait_until
from capabilities import need

MIB = 1 << 20
JOB = 700
WITHOUT_PTRACE = ("setpriv", "--bounding-set=-sys_ptrace,-dac_read_search", "--inh-caps=-all", "--")
WRITTEN = "sonde_job_requested_written_bytes_total"


def may_have_files(n):
    code = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({n}, {n}))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


class Jobs(FaultTest):
    def test_ten_thousand_processes_are_started_while_it_is_read(self):
        agent = self.agent()
        forking = self.node.job(JOB).start("fork", "10000")
        wait_until(lambda: agent.metrics() and "forked" in forking.said(), "it has forked")
        self.wait_ticks(agent, 1)
        self.assertEqual(agent.job(JOB)["sonde_job_processes"][()], 1)

    def test_thirty_thousand_open_files_are_counted(self):
        agent = self.agent()
        # In one process, where root may raise the limit.
        limit = 1 << 18 if may_have_files(1 << 18) else resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        each = next(each for each in (30000, 10000, 1000) if each + 10 < limit)
        n = 30000 // each
        job = self.node.job(JOB)
        for i in range(n):
            files = self.node.work / f"files-{i}"
            files.mkdir()
            files.chmod(0o777)
            job.start("files", str(each), files).wait_said("opened")
        # Files are looked at in every fourth tick; the output is one.
        self.wait_passing(lambda: agent.job(JOB)["jobs_opened_files"].get(()) == n * (each + 1), "all are counted")
        self.assertEqual(agent.job(JOB)["sonde_job_open_descriptors"][()], n * (each + 3))

    def test_names_of_any_bytes_make_no_other_samples(self):
        agent = self.agent()
        job = self.node.job(JOB)
        names = {b"new\nline": "new\nline", b"a b": "a b", b")": ")", b"(x) R 1 2 3": "(x) R 1 2 3", b'"quo"te': '"quo"te',
                 b"back\\slash": "back\\slash", b"": "", b"}{,=": "}{,=", "kühe".encode(): "kühe",
                 b"\xff\xfe": "\ufffd\ufffd"}
        for name in names:
            job.start("name", name).wait_said("is called so")
        self.wait_ticks(agent, 2)
        told = {labels[0][1] for labels in agent.job(JOB)["jobs_thread_count"]}
        self.assertEqual(told, set(names.values()))

    def test_names_past_the_ceiling_are_added_up(self):
        job = self.node.job(JOB)
        for i in range(12):
            job.start("name", f"name-{i}").wait_said("is called so")
        # Started last: it sees none by the name that it had before.
        agent = self.agent("--processes.max-names=5")
        instances = self.wait_job(agent, JOB, "sonde_job_process_instances")["sonde_job_process_instances"]
        self.assertEqual(len(instances), 6)
        self.assertEqual(sum(instances.values()), 12)
        self.assertEqual(instances[("process", "other"),], 7)

    def test_processes_of_new_names_that_end_unseen_are_told_at_once(self):
        agent = self.agent(tick=3600)
        job = self.node.job(JOB)
        job.start("name", "known").wait_said("is called so")
        self.wait_job(agent, JOB, "sonde_job_process_instances", lambda s: (("process", "known"),) in s)
        # The looks at a young job end when the pause between them, which doubles each time, is longer than a tick.
        self.wait_ticks(agent, 20)
        job.start("names", "40").wait_said("children are done")
        self.node.job(JOB + 1).start("name", "another")
        self.wait_job(agent, JOB + 1)
        agent.metrics()
        job.end()
        wait_until(lambda: "sonde_job_processes" not in agent.job(JOB), "its end")

    def test_a_process_that_becomes_another_program_leaves_its_time_to_both_names(self):
        agent = self.agent()
        go = self.fifo("go")
        burn = "i=0; while [ $i -lt 400000 ]; do i=$((i + 1)); done; "
        process = self.node.job(JOB).start("/bin/sh", "-c", f"{burn} read line <{go}; exec '{self.node.work}/behave' burn 2 1")
        name = "sonde_job_process_cpu_seconds_total"
        self.wait_job(agent, JOB, name, lambda samples: samples.get((("process", "sh"),), 0) > 0.05)
        go.write_text("go\n")
        process.wait_said("cpu")
        self.wait_ticks(agent, 2)
        job = agent.job(JOB)
        times = job[name]
        self.assertGreater(times[("process", "sh"),], 0.05)
        self.assertGreater(times[("process", "behave"),], 0.5)
        self.assertAlmostEqual(sum(times.values()), job["sonde_job_cpu_seconds_total"][()], delta=0.2)

    def test_a_process_that_becomes_another_program_and_ends_between_looks_is_known_by_its_last_name(self):
        need("taskstats")
        agent = self.agent(tick=3600)
        brief, go = self.node.work / "brief", self.fifo("go")
        brief.symlink_to("/bin/true")
        self.node.job(JOB).start("/bin/sh", "-c", f"read line <{go}; exec {brief}")

        def is_called(name):
            return lambda samples: any(("process", name) in labels for labels in samples)
        self.wait_job(agent, JOB, "sonde_job_process_cpu_seconds_total", is_called("sh"))
        go.write_text("go\n")
        self.wait_job(agent, JOB, "sonde_job_process_cpu_seconds_total", is_called("brief"))

    def test_stopped_processes_count_and_ended_ones_that_nobody_waits_for_do_not(self):
        agent = self.agent()
        job = self.node.job(JOB)
        stopped = job.start("name", "stopped")
        stopped.wait_said("is called so")
        stopped.kill(signal.SIGSTOP)
        late = job.start("late", "1", self.node.work)
        child = int(re.search(r"child (\d+)", late.wait_said("child "))[1])
        late.wait_said("wrote")
        os.kill(child, signal.SIGKILL)
        late.wait_said("has ended")
        self.wait_ticks(agent, 1)
        self.assertEqual(agent.job(JOB)["sonde_job_processes"][()], 2)

    def test_a_process_without_its_main_thread_counts(self):
        agent = self.agent()
        self.node.job(JOB).start("headless", "20", self.node.work / "headless").wait_said("wrote")
        self.wait_ticks(agent, 1)
        job = agent.job(JOB)
        self.assertEqual(job["sonde_job_processes"][()], 1)
        self.assertEqual(job["sonde_job_threads"][()], 1)
        self.assertAlmostEqual(job[WRITTEN][()], 20 * MIB, delta=4096)

    def test_a_job_without_processes_lives_as_long_as_its_slurmstepd(self):
        agent = self.agent()
        job, never = self.node.job(JOB), self.node.job(JOB + 1)
        process = job.start("name", "first")
        never.step("extern")
        self.wait_job(agent, JOB, "sonde_job_processes", lambda samples: samples[()] == 1)
        process.kill()
        self.wait_job(agent, JOB, "sonde_job_processes", lambda samples: samples[()] == 0)
        self.wait_job(agent, JOB + 1, "sonde_job_processes", lambda samples: samples[()] == 0)
        never.end(with_directories=False)
        wait_until(lambda: "sonde_job_processes" not in agent.job(JOB + 1), "its end")

    def test_an_unknown_user_is_a_number(self):
        agent = self.agent()
        self.node.job(JOB, uid=3999999999).start("name", "x")
        job = self.wait_job(agent, JOB, good=lambda samples: "3999999999" in str(samples))
        self.assertEqual(job["sonde_job_info"], {(("account", ""), ("user", "3999999999")): 1})

    def test_a_kill_for_memory_is_known_although_all_directories_went_before_anybody_looked(self):
        agent = self.agent("--job.linger=24h", tick=60)
        killed, spared = self.node.job(JOB), self.node.job(JOB + 1)
        for job in (killed, spared):
            process = job.start("hold", "10")
            process.wait_said("10 MiB")
            self.wait_job(agent, job.number)
        agent.process.send_signal(signal.SIGSTOP)
        self.addCleanup(agent.process.send_signal, signal.SIGCONT)
        memory = self.node.tops["memory"]
        (memory / killed.path / "memory.limit_in_bytes").write_text("50M")
        victim = killed.start("hold", "200")
        wait_until(lambda: "oom_kill 1" in (memory / killed.path / "step_batch/task_0/memory.oom_control").read_text(),
                   "it is killed")
        victim_says = victim.said()
        killed.end()
        spared.end()
        agent.process.send_signal(signal.SIGCONT)
        self.assertEqual(victim_says, "")
        for job, kills in ((killed, 1), (spared, 0)):
            wait_until(lambda: "jobs_rss" not in agent.job(job.number), "it has ended")
            self.assertEqual(agent.job(job.number)["sonde_job_oom_kills_total"][()], kills)

    def test_a_job_that_starts_one_task_after_another_is_not_looked_at_for_ever(self):
        need("taskstats")
        agent = self.agent()
        job = self.node.job(JOB)
        job.start("hold", "1").wait_said("1 MiB")
        self.wait_job(agent, JOB)

        def looks():
            return agent.metrics().value('sonde_agent_samples_total{cause="event"}')

        # A look at most every half second, and each once doubled the pause after it.
        for _ in range(45):
            before = looks()
            job.start("/bin/true")
            self.wait_passing(lambda: looks() > before + 1, "a look at the job", 0.5)

        def is_left_alone():
            before = looks()
            self.wait_ticks(agent, 1)
            return looks() == before
        wait_until(is_left_alone, "two ticks without a look between them")

    def test_many_jobs_come_and_go_without_a_trace(self):
        agent = self.agent("--job.linger=1s")

        def held():
            """Descriptors, and directories that are watched."""
            place = pathlib.Path(f"/proc/{agent.process.pid}")
            watches = 0
            for name in os.listdir(place / "fdinfo"):
                with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                    watches += (place / "fdinfo" / name).read_text().count("inotify wd:")
            return len(os.listdir(place / "fd")), watches

        def come_and_go(n):
            for _ in range(n):
                job = self.node.job(JOB)
                job.start("/bin/true")
                job.end()
                self.node.jobs.remove(job)
            self.wait_ticks(agent, 2)
            self.wait_gone(agent, JOB)

        come_and_go(1)
        most = held()
        come_and_go(300)
        # A look, or an answer that is not closed yet, holds some for a moment.
        wait_until(lambda: all(n <= limit for n, limit in zip(held(), most)), f"no more than {most} are held")
        self.assertEqual(agent.metrics().value('sonde_agent_jobs{state="running"}'), 0)


class Directories(FaultTest):
    def test_a_directory_made_and_removed_again_and_again_is_the_last_one(self):
        agent = self.agent()
        job = self.node.job(JOB)
        for _ in range(500):
            job.remove_directories()
            job.make(f"{job.path}/step_batch/task_0")
        job.step().start("name", "last")
        self.wait_job(agent, JOB, "sonde_job_processes", lambda samples: samples[()] == 1)

    def test_directories_vanish_under_processes_that_are_looked_at(self):
        agent = self.agent(tick=0.1)
        for i in range(40):
            job = self.node.job(JOB + i)
            for n in range(4):
                job.start("name", f"x{n}")
            job.end()
        wait_until(lambda: agent.metrics().value('sonde_agent_jobs{state="running"}') == 0, "all have ended")
        self.wait_ticks(agent, 2)
        self.assertEqual(agent.metrics().value('sonde_agent_jobs{state="running"}'), 0)

    def test_what_a_job_makes_in_its_own_directory_is_no_other_job(self):
        agent = self.agent()
        job = self.node.job(JOB)
        job.start("name", "outer")
        for name in ("job_4242", "slurm_faults/uid_0/job_4242/step_batch/task_0", "step_9/task_0"):
            below = self.node.tops["memory"] / job.path / "step_batch/task_0" / name
            below.mkdir(parents=True)
            (below / "cgroup.procs").write_text(str(job.start("name", "inner").pid))
        self.wait_job(agent, JOB, "sonde_job_processes", lambda samples: samples[()] == 4)
        self.assertFalse(agent.job(4242))

    def test_directories_that_a_user_makes_take_no_descriptors_from_the_server(self):
        agent = self.agent(words=("prlimit", "--nofile=512", "--"))
        job, other = self.node.job(JOB), self.node.job(JOB + 1)
        job.start("name", "first")
        self.wait_job(agent, JOB, "sonde_job_processes", lambda samples: samples[()] == 1)
        for n in range(1, 400):
            (self.node.tops["memory"] / job.path / f"step_batch/task_{n}").mkdir()
        job.start("name", "last", task=399)
        self.wait_ticks(agent, 5)
        other.start("name", "other")
        self.wait_job(agent, JOB + 1, "sonde_job_processes", lambda samples: samples[()] == 1)
        self.wait_job(agent, JOB, "sonde_job_processes", lambda samples: samples[()] == 2)
        told = agent.metrics()
        self.assertGreater(told.value('sonde_agent_file_limit_hits_total{limit="step"}'), 0)
        self.assertLess(told.value("sonde_agent_open_files"), told.value("sonde_agent_open_files_limit"))
        agent.wait_log("a job has reached its limit of open files")
        self.assertEqual(agent.log().count("a job has reached its limit of open files"), 1)

    def test_kills_for_memory_are_counted_in_directories_past_the_limit_of_open_files(self):
        agent = self.agent(words=("prlimit", "--nofile=300", "--"))
        job = self.node.job(JOB)
        job.start("hold", "1").wait_said("held")
        (self.node.tops["memory"] / job.path / "memory.limit_in_bytes").write_text("50M")
        for n in range(1, 4):
            self.wait_job(agent, JOB, "sonde_job_processes", lambda samples: samples[()] == 1)
            self.assertEqual(job.start("hold", "200", task=n).said(), "")
            self.wait_passing(lambda: agent.job(JOB)["sonde_job_oom_kills_total"].get(()) == n, "the kill is counted")
        self.assertGreater(agent.metrics().value('sonde_agent_file_limit_hits_total{limit="step"}'), 0)

    def test_a_users_process_cannot_make_a_directory_a_job(self):
        agent = self.agent()
        false = self.node.job(JOB)
        false.step(has_stepd=False)
        program = self.node.work / "false/slurmstepd"
        program.parent.mkdir()
        shutil.copy(self.node.work / "behave", program)
        words = ("/bin/bash", "-c", f"exec -a 'slurmstepd: [{JOB}.batch]' '{program}' name slurmstepd")
        own = subprocess.Popen(words, preexec_fn=lambda: os.setresuid(64997, 64997, 64997), stdout=subprocess.PIPE)
        self.addCleanup(own.stdout.close)
        self.addCleanup(own.wait)
        self.addCleanup(own.kill)
        self.assertEqual(own.stdout.readline(), b"is called so\n")
        # And one of the right user: a job of slurmd's own.
        self.node.job(JOB + 1, uid=SLURMD_UID).start(*words).wait_said("is called so")
        self.wait_job(agent, JOB + 1, "sonde_job_processes", lambda samples: samples[()] == 1)
        self.wait_ticks(agent, 9)
        self.assertFalse(agent.job(JOB))
        self.assertIsNone(own.poll())

    def test_what_is_left_of_jobs_is_counted_not_told_and_can_be_removed(self):
        agent = self.agent("--job.linger=3s")
        never, ended = self.node.job(JOB), self.node.job(JOB + 1)
        never.step(has_stepd=False)
        ended.start("name", "x")
        self.wait_job(agent, JOB + 1)
        ended.end(with_directories=False)
        self.wait_gone(agent, JOB + 1)

        def leftovers():
            return agent.metrics().samples().get("sonde_agent_leftover_cgroups")  # none while the sample is stale
        # What has just ended, or begun, is no leftover yet.
        self.wait_passing(lambda: leftovers() == "10", "leftovers are counted", 10)
        self.assertFalse(agent.job(JOB))
        for job in (never, ended):
            subprocess.run([*self.node.starter(), ROOT / "packaging/slurm/epilog-leftover-cgroups.sh"], check=True, env=dict(
                os.environ, SLURM_JOB_ID=str(job.number), SLURM_JOB_UID=str(job.uid), SLURMD_NODENAME="faults"))
        self.assertFalse(any(path.exists() for job in (never, ended) for path in job.directories()))
        self.wait_passing(lambda: leftovers() == "0", "they are gone")

    def test_a_leftover_in_one_hierarchy_does_not_make_it_the_one_to_watch(self):
        # freezer, where it is, has no directories of tasks.
        left = self.node.job(JOB + 1)
        for path in left.directories():
            if "freezer" not in str(path):
                remove_tree(path)
        agent = self.agent("--collector.tasks")
        self.node.job(JOB + 2).start("hold", "1").wait_said("held")
        self.wait_job(agent, JOB + 2, "sonde_job_task_processes")

    def test_a_directory_gets_another_slurmstepd_and_the_job_goes_on(self):
        agent = self.agent("--job.linger=24h")
        job = self.node.job(JOB)
        job.start("late", "8", self.node.work).wait_said("wrote")
        self.wait_job(agent, JOB, WRITTEN, lambda samples: samples[()] >= 8 * MIB)
        job.end(with_directories=False)
        wait_until(lambda: "sonde_job_processes" not in agent.job(JOB), "its end")
        job.step("0").start("late", "8", self.node.work).wait_said("wrote")
        told = self.wait_job(agent, JOB, WRITTEN, lambda samples: samples[()] >= 16 * MIB)
        self.assertEqual(told["sonde_job_processes"][()], 2)

    def test_a_user_who_is_not_to_be_looked_at_is_not_shown_at_the_end_either(self):
        users = self.node.work / "users"
        users.write_text("64990\n")
        agent = self.agent("-b", str(users))
        hidden = self.node.job(JOB, uid=64990)
        hidden.start("name", "x").wait_said("is called so")
        self.node.job(JOB + 1).start("name", "y")
        self.wait_job(agent, JOB + 1)
        self.wait_ticks(agent, 2)
        self.assertFalse(agent.job(JOB))
        hidden.end()
        self.wait_ticks(agent, 2)
        self.assertFalse(agent.job(JOB))


class Privileges(FaultTest):
    def test_without_ptrace_what_needs_it_is_absent_and_said_once(self):
        agent = self.agent(words=WITHOUT_PTRACE)
        self.node.job(JOB).start("name", "x")
        told = self.wait_job(agent, JOB, "sonde_job_processes", lambda samples: samples[()] == 1)
        self.wait_ticks(agent, 3)
        for family in ("jobs_write_mb", WRITTEN, "jobs_opened_files", "sonde_job_open_files", "sonde_job_open_descriptors"):
            self.assertNotIn(family, told)
        for family in ("jobs_rss", "jobs_cpu_time_total", "sonde_job_memory_bytes", "sonde_job_threads"):
            self.assertIn(family, told)
        self.assertEqual(agent.metrics().value("sonde_agent_may_read_processes"), 0)
        agent.wait_log("processes of jobs cannot be read")
        self.assertEqual(agent.log().count("processes of jobs cannot be read"), 1)

    def test_where_proc_hides_processes_the_cgroups_still_tell(self):
        agent = self.agent(more="mount -t proc -o hidepid=2,gid=64999 proc /proc", words=WITHOUT_PTRACE)
        self.node.job(JOB).start("hold", "20").wait_said("held")
        told = self.wait_job(agent, JOB, "sonde_job_memory_anonymous_bytes", lambda samples: samples[()] >= 20 * MIB)
        self.wait_ticks(agent, 3)
        for family in (WRITTEN, "jobs_opened_files", "jobs_rss", "sonde_job_processes", "sonde_job_threads"):
            self.assertNotIn(family, told)
        agent.wait_log("processes of jobs cannot be read")
        self.assertEqual(agent.log().count("processes of jobs cannot be read"), 1)

    def test_without_any_more_inotify_instances_jobs_are_found_at_ticks(self):
        code = "import ctypes, sys; c = ctypes.CDLL(None); f = [c.inotify_init1(0) for _ in range(2000)]; " \
            "print(f[-1], flush=True); sys.stdin.read()"
        filler = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  preexec_fn=lambda: os.setresuid(64996, 64996, 64996))
        self.addCleanup(filler.stdin.close)
        self.addCleanup(filler.stdout.close)
        self.addCleanup(filler.wait)
        self.addCleanup(filler.kill)
        if filler.stdout.readline().strip() != b"-1":
            self.skipTest("a user may have as many inotify instances as files")
        agent = self.agent("--user=64996")
        self.node.job(JOB).start("name", "x")
        self.wait_job(agent, JOB, "sonde_job_processes", lambda samples: samples[()] == 1)
        self.node.jobs[0].end()
        wait_until(lambda: "sonde_job_processes" not in agent.job(JOB), "its end")

    def test_two_agents_say_the_same(self):
        agents = [self.agent(), self.agent()]
        self.node.job(JOB).start("late", "8", self.node.work).wait_said("wrote")
        for agent in agents:
            told = self.wait_job(agent, JOB, WRITTEN, lambda samples: samples[()] >= 8 * MIB)
            self.assertEqual(told["sonde_job_processes"][()], 2)


if __name__ == "__main__":
    import tap
    tap.main()
