#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent on nodes made of files: what the kernel would never say, directories that Slurm did not make or has left behind,
and what a reload changes."""
import os
import pathlib
import shutil
import signal
import tempfile
import unittest

from clock import Clock
from sonde import Agent, wait_until
from capabilities import need

WRITTEN = "sonde_job_requested_written_bytes_total"
NONSENSE = (b"", b"\n", b"max\n", b"banana", b"-1\n", b"99999999999999999999999999\n", b"1 2 3\n", b"\0" * 5000,
            b"\xff\xfe\n" * 1000, b"total \nrss -\n", b"x" * (1 << 20), b"18446744073709551615\n", b"12")


class PlainNode(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        self.root.chmod(0o755)

    def write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def process(self, pid, parent, name, uid=64990, title=None, cgroup="", environ="SLURM_JOB_ACCOUNT=physics"):
        fields = [parent, 0, 0, 0, -1, 0, 0, 0, 0, 0, 150, 50, 0, 0, 20, 0, 1, 0, 7000 + pid, 1 << 20, 25] + [0] * 28
        self.write(f"proc/{pid}/stat", f"{pid} ({name}) S {' '.join(map(str, fields))}\n")
        self.write(f"proc/{pid}/status", f"Name:\t{name}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
        self.write(f"proc/{pid}/cmdline", f"{title or name}\0")
        self.write(f"proc/{pid}/environ", f"{environ}\0")
        self.write(f"proc/{pid}/cgroup", f"{cgroup}\n")
        for path in ("io", f"task/{pid}/io"):
            self.write(f"proc/{pid}/{path}", "rchar: 1\nwchar: 5000\nsyscr: 1\nsyscw: 2\nread_bytes: 0\n"
                       "write_bytes: 4096\ncancelled_write_bytes: 0\n")
        (self.root / f"proc/{pid}/fd").mkdir()
        (self.root / f"proc/{pid}/exe").symlink_to(f"/usr/sbin/{name}")


    def agent(self, *flags, **options):
        return self.enterContext(Agent(f"--path.procfs={self.root}/proc", f"--path.sysfs={self.root}/sys", "-t", "100ms",
                                       "--node.name=host", *flags, **options))

    def wait_ticks(self, agent, n):
        """So many whole samples that began after now."""
        def ticks():
            return float(agent.metrics().samples().get('sonde_agent_samples_total{cause="tick"}', 0))
        end = ticks() + n + 1
        wait_until(lambda: ticks() >= end, f"{n} ticks")

    def wait_value(self, agent, family, value, job=5):
        wait_until(lambda: agent.job(job)[family].get(()) == value, f"{family} is {value}")


class V1(PlainNode):
    def setUp(self):
        super().setUp()
        mounts = "".join(f"{i} 1 0:{i} / /sys/fs/cgroup/{name} rw - cgroup cgroup rw,{name}\n"
                         for i, name in enumerate(("memory", "cpuacct", "cpuset"), 30))
        self.write("proc/self/mountinfo", mounts)
        self.job = "slurm/uid_64990/job_5"
        for hierarchy in ("memory", "cpuacct", "cpuset"):
            self.write(f"sys/fs/cgroup/{hierarchy}/{self.job}/step_batch/task_0/cgroup.procs", "101\n")
            for path in (self.job, f"{self.job}/step_batch"):
                self.write(f"sys/fs/cgroup/{hierarchy}/{path}/cgroup.procs", "")
        self.write(self.file("memory", "memory.usage_in_bytes"), "4096\n")
        self.write(self.file("memory", "memory.limit_in_bytes"), "8192\n")
        self.write(self.file("cpuacct", "cpuacct.usage"), "2000000000\n")
        self.process(100, 1, "slurmstepd", uid=0, title="slurmstepd: [5.batch]")
        self.process(101, 100, "a.out")

    def file(self, hierarchy, name):
        return f"sys/fs/cgroup/{hierarchy}/{self.job}/{name}"


    def test_nonsense_is_absent_and_the_rest_is_there(self):
        agent = self.agent()
        self.wait_value(agent, "sonde_job_memory_bytes", 4096)
        self.wait_value(agent, "sonde_job_cpu_seconds_total", 2)
        self.wait_value(agent, WRITTEN, 5000)
        files = [self.file("memory", f"memory.{name}") for name in (
            "usage_in_bytes", "limit_in_bytes", "stat", "oom_control", "failcnt", "max_usage_in_bytes")]
        files += [self.file("cpuacct", f"cpuacct.{name}") for name in ("usage", "usage_percpu", "stat")]
        files += [self.file("cpuset", "cpuset.cpus"), self.file("memory", "cgroup.procs"),
                  self.file("memory", "step_batch/task_0/memory.oom_control")]
        files += [f"proc/101/{name}" for name in ("stat", "io", "status", "cmdline", "environ", "task/101/io")]
        files += [f"proc/100/{name}" for name in ("cmdline", "status", "io")]
        before = {file: (self.root / file).read_bytes() for file in files if (self.root / file).exists()}
        for nonsense in NONSENSE:
            for file in files:
                self.write(file, nonsense)
            self.wait_ticks(agent, 2)
            for family, samples in agent.job(5).items():
                for labels, value in samples.items():
                    self.assertLess(value, 1e18, (family, labels, nonsense[:20]))
        for file, text in before.items():
            self.write(file, text)
        self.wait_value(agent, "sonde_job_memory_bytes", 4096)
        self.wait_value(agent, "sonde_job_processes", 1)

    def test_a_look_that_does_not_end_keeps_no_scrape_waiting(self):
        agent = self.agent()
        self.wait_value(agent, "sonde_job_processes", 1)
        text = (self.root / "proc/101/io").read_bytes()
        os.mkfifo(self.root / "fifo")
        (self.root / "fifo").rename(self.root / "proc/101/io")

        def open_for_writing():
            try:
                return os.open(self.root / "proc/101/io", os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                return None  # nobody reads it yet
        held = wait_until(open_for_writing, "a look comes to the file")
        with os.fdopen(held, "wb"):  # until then it is read
            told = [agent.metrics().value('sonde_agent_samples_total{cause="tick"}') for _ in range(5)]
            self.assertEqual(set(told), {told[0]})
            self.assertEqual(agent.job(5)["sonde_job_processes"][()], 1)
            (self.root / "proc/101/io").unlink()
            self.write("proc/101/io", text)
        self.wait_ticks(agent, 2)
        self.wait_value(agent, "sonde_job_processes", 1)

    def test_an_environment_that_is_not_there_yet_is_read_at_the_next_look(self):
        environment = (self.root / "proc/101/environ").read_bytes()
        self.write("proc/101/environ", b"")
        clock = self.enterContext(Clock(stands=1800000000))  # a process that stays silent for some looks is asked no more
        agent = self.agent(env=clock.env)
        self.wait_value(agent, "sonde_job_processes", 1)
        self.write("proc/101/environ", environment)
        clock.advance(0.1)
        wait_until(lambda: dict(*agent.job(5)["sonde_job_info"]).get("account") == "physics", "its account")

    def test_a_process_that_is_listed_twice_counts_once(self):
        self.write(f"sys/fs/cgroup/memory/{self.job}/step_batch/task_0/cgroup.procs", "101\n101\n" * 100)
        agent = self.agent()
        self.wait_value(agent, "sonde_job_processes", 1)
        self.assertEqual(agent.job(5)[WRITTEN][()], 5000)

    def test_a_process_may_be_anything_but_a_directory_of_files(self):
        agent = self.agent()
        self.wait_value(agent, "sonde_job_processes", 1)
        shutil.rmtree(self.root / "proc/101")
        self.write("proc/101", "a file")
        self.wait_value(agent, "sonde_job_processes", 0)
        for pids in ("0\n-1\n4294967397\n101\n101\n1\n100\n", "101", "101\n" * 100000, "\0" * 4096):
            self.write(f"sys/fs/cgroup/memory/{self.job}/step_batch/task_0/cgroup.procs", pids)
            self.wait_ticks(agent, 2)
            self.assertEqual(agent.job(5)["sonde_job_processes"][()], 0)

    def test_a_slurmstepd_that_is_gone_ends_its_job_where_nobody_tells(self):
        agent = self.agent("--job.linger=24h")
        self.wait_value(agent, "sonde_job_processes", 1)
        shutil.rmtree(self.root / "proc/100")
        wait_until(lambda: "sonde_job_processes" not in agent.job(5), "its end")
        self.assertIn("sonde_job_cpu_seconds_total", agent.job(5))

    def test_what_slurm_has_left_of_another_users_job_of_the_same_id_is_not_the_job(self):
        shutil.rmtree(self.root / "sys")
        left, job = "slurm/uid_64990/job_5", "slurm/uid_64991/job_5"
        self.write(f"sys/fs/cgroup/memory/{left}/step_batch/task_0/cgroup.procs", "")
        self.write(f"sys/fs/cgroup/memory/{left}/memory.usage_in_bytes", "1\n")
        for pid in (100, 101):
            shutil.rmtree(self.root / f"proc/{pid}")
        agent = self.agent()
        self.wait_ticks(agent, 2)
        self.process(100, 1, "slurmstepd", 0, "slurmstepd: [5.batch]", f"4:memory:/{job}/step_batch")
        self.process(101, 100, "a.out", 64991, cgroup=f"4:memory:/{job}/step_batch/task_0")
        self.write(f"sys/fs/cgroup/memory/{job}/memory.usage_in_bytes", "4096\n")
        self.wait_ticks(agent, 5)  # in which the slurmstepd is seen, but no process in any directory
        self.write(f"sys/fs/cgroup/memory/{job}/step_batch/task_0/cgroup.procs", "101\n")
        self.wait_value(agent, "sonde_job_memory_bytes", 4096)
        self.wait_value(agent, "sonde_job_processes", 1)
        self.assertEqual(agent.job(5)["sonde_job_info"], {(("account", "physics"), ("user", "64991")): 1})

    def test_a_process_of_a_job_that_is_not_known_yet_is_no_slurmstepd_of_another(self):
        for pid in (100, 101):
            shutil.rmtree(self.root / f"proc/{pid}")
        agent = self.agent()
        self.process(100, 1, "slurmstepd", 0, "slurmstepd: [5.batch]", "4:memory:/slurm/uid_0/job_6/step_batch/task_0")
        self.wait_ticks(agent, 9)
        self.assertEqual(agent.job(5), {})

    def test_a_hierarchy_that_comes_late_counts(self):
        late = self.root / "sys/fs/cgroup/cpuacct/slurm"
        late.rename(self.root / "late")
        agent = self.agent()
        self.wait_value(agent, "sonde_job_processes", 1)
        self.wait_ticks(agent, 8)
        self.write("late/uid_64990/job_5/cpuacct.usage", "9000000000\n")
        (self.root / "late").rename(late)
        self.wait_value(agent, "sonde_job_cpu_seconds_total", 9)


class V2(PlainNode):
    def setUp(self):
        super().setUp()
        self.write("proc/self/mountinfo", "30 1 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
        self.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n")
        self.job("system.slice/slurmstepd.scope", 5, 100)

    def job(self, scope, number, pid, uid=64991):
        path = f"{scope}/job_{number}"
        files = {"cpu.stat": "usage_usec 3000000\nuser_usec 2000000\nsystem_usec 1000000\n", "memory.current": "4096\n",
                 "memory.stat": "anon 1024\nfile 2048\n", "memory.max": "8192\n", "cpuset.cpus": "\n",
                 "cpuset.cpus.effective": "0-127\n"}
        for name, text in files.items():
            self.write(f"sys/fs/cgroup/{path}/{name}", text)
        self.process(pid, 1, "slurmstepd", 0, f"slurmstepd: [{number}.batch]", f"0::/{path}/step_batch/slurm")
        self.process(pid + 1, pid, "a.out", uid, cgroup=f"0::/{path}/step_batch/user/task_0",
                     environ="SLURM_JOB_ACCOUNT=physics\0SLURM_CPUS_ON_NODE=2")
        self.write(f"sys/fs/cgroup/{path}/step_batch/slurm/cgroup.procs", f"{pid}\n")
        self.write(f"sys/fs/cgroup/{path}/step_batch/user/task_0/cgroup.procs", f"{pid + 1}\n")

    def settings(self, collectors):
        self.write("agent.yml", "collector:\n" + "".join(f"  {name}: {value}\n" for name, value in collectors.items()))
        return f"--config.file={self.root}/agent.yml"

    def test_each_slurmd_of_a_host_has_a_scope(self):
        self.job("system.slice/n2_slurmstepd.scope", 6, 200)
        agent = self.agent()
        self.wait_value(agent, "sonde_job_processes", 1, 6)
        self.assertEqual(agent.metrics().samples()['sonde_job_processes{job_id="6",node="n2"}'], "1")
        self.assertEqual(agent.metrics().samples()['sonde_job_processes{job_id="5",node="host"}'], "1")

    def test_cores_that_a_job_was_not_given_are_not_its_allocation(self):
        agent = self.agent()
        self.wait_value(agent, "sonde_job_cpus_allocated", 2)
        self.write("sys/fs/cgroup/system.slice/slurmstepd.scope/job_5/cpuset.cpus", "0-3\n")
        self.wait_value(agent, "sonde_job_cpus_allocated", 4)

    def test_what_a_user_makes_in_a_directory_that_he_was_given_is_no_job(self):
        need("root")
        his = self.root / "sys/fs/cgroup/user.slice/user@64990.service"
        his.mkdir(parents=True)
        agent = self.agent("--max-jobs=4")
        self.wait_value(agent, "sonde_job_processes", 1)
        os.chown(his, 64990, 64990)
        for number in range(6, 20):
            path = his / f"slurmstepd.scope/job_{number}/step_batch/user/task_0"
            path.mkdir(parents=True)
            for parent in [path, *path.parents][:5]:
                os.chown(parent, 64990, 64990)
        self.wait_ticks(agent, 2)
        self.job("system.slice/slurmstepd.scope", 6, 200)
        wait_until(lambda: agent.job(6)["sonde_job_info"] == {(("account", "physics"), ("user", "64991")): 1}, "it is his who runs it")
        self.wait_value(agent, "sonde_job_memory_bytes", 4096, 6)
        self.assertEqual(agent.metrics().value("sonde_agent_leftover_cgroups"), 0)

    def test_what_slurm_has_left_behind_shuts_no_job_out(self):
        for number in range(50, 60):
            (self.root / f"sys/fs/cgroup/system.slice/slurmstepd.scope/job_{number}/step_batch").mkdir(parents=True)
        agent = self.agent("--max-jobs=4")
        self.wait_value(agent, "sonde_job_processes", 1)
        self.job("system.slice/slurmstepd.scope", 6, 200)
        self.wait_value(agent, "sonde_job_memory_bytes", 4096, 6)

    def test_a_user_who_is_not_to_be_looked_at_is_not_whatever_else_is_asked_for(self):
        self.write("users", "64991\n")
        self.job("system.slice/slurmstepd.scope", 6, 200, uid=64992)
        collectors = self.settings(dict.fromkeys(("activity", "jobs", "processes", "allocation"), "false"))
        agent = self.agent(collectors, f"--blacklist={self.root}/users")
        self.wait_value(agent, "sonde_job_memory_bytes", 4096, 6)
        self.wait_ticks(agent, 2)
        self.assertEqual(agent.job(5), {})

    def test_a_collector_that_is_switched_on_tells_of_jobs_that_run(self):
        agent = self.agent(self.settings({"cgroup": "false", "jobs": "false", "allocation": "false"}))
        self.wait_value(agent, "sonde_job_processes", 1)
        self.settings({"tasks": "true", "steps": "true"})
        agent.process.send_signal(signal.SIGHUP)
        self.wait_value(agent, "sonde_job_memory_anonymous_bytes", 1024)
        self.wait_value(agent, "sonde_job_memory_allocated_bytes", 8192)
        wait_until(lambda: agent.job(5)["sonde_job_task_processes"], "tasks are told of")

    def test_the_allocation_is_told_without_the_collector_of_cgroups(self):
        agent = self.agent(self.settings({"cgroup": "false"}))
        self.wait_value(agent, "sonde_job_memory_allocated_bytes", 8192)


if __name__ == "__main__":
    import tap
    tap.main()
