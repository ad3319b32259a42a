#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent beside a real Slurm on real cgroup v2: jobs that do a known amount of work, and what it says of them.

The machine boots once: setUpModule gathers what the tests compare. SONDE_SUITES names another Debian release than
bookworm, and so another Slurm: trixie 24.11, sid 26.05.
"""
import os
import re
import unittest

import machine

BEHAVE = "/machine/bin/behave"
SCOPE = "/sys/fs/cgroup/system.slice/n1_slurmstepd.scope"
# Not the 90 that cgroup v1 is tested with: the machine computes ten times as slowly as the computer.
BURN = 20
MIB = 1 << 20
TICK = 3600  # seconds: longer than the machine lives
SUITE = os.environ.get("SONDE_SUITES", "bookworm").split()[0]

seen = None


class Seen:
    """Jobs and what the agent has said of them."""

    def __init__(self, here):
        self.here = here
        here.wait_for_slurm()
        # What a site can do that wants them: Slurm hands on cpu, cpuset and memory alone.
        here.run(f"echo '+io +pids' >{SCOPE}/cgroup.subtree_control")
        # Ticks come when the test moves the clock, not while it runs.
        here.start_agent(f"--timer={TICK}", "--job.linger=24h")
        self.run_jobs_that_hold()
        self.run_short_job()
        self.run_jobs_that_write()
        self.run_job_that_burns()
        self.tick()
        self.last = here.metrics().families()
        self.log = here.run("cat /run/agent.log")

    def run_jobs_that_hold(self):
        here = self.here
        here.run("mkdir -m 1777 /scratch/files /scratch/children && mkfifo -m 666 /scratch/oom")
        self.oom = here.submit(f"{BEHAVE} oom 98 200 <>/scratch/oom", mem="100M")
        self.hold = here.submit(f"{BEHAVE} hold 300", user="bob", account="chemistry", mem="400M")
        self.files = here.submit(f"exec {BEHAVE} files 500 /scratch/files", mem="100M")
        self.threads = here.submit(f"{BEHAVE} threads 40", mem="100M")
        self.steps = here.submit(f"srun -n 2 {BEHAVE} hold 50", mem="200M", ntasks=2)
        here.output_of(self.hold, "held 300 MiB")
        here.output_of(self.files, "opened 500 files")
        here.output_of(self.threads, "has 40 threads")
        here.output_of(self.steps, "held 50 MiB")
        here.wait_for(lambda: self.memory_of(self.oom) >= 98 * MIB, "the agent seeing what the job holds")
        here.run("echo go >/scratch/oom")
        self.oom_state = here.wait_for_end(self.oom)

    def memory_of(self, job):
        """As the agent says now; 0 before it does."""
        told = self.here.metrics().families().get("sonde_job_memory_anonymous_bytes", {})
        return sum(value for labels, value in told.items() if ("job_id", str(job)) in labels)

    def run_short_job(self):
        """One that comes and goes between two ticks."""
        before = self.tick()
        self.short = self.here.submit(f"{BEHAVE} burn 2 1 & until grep -q cpu /tmp/$SLURM_JOB_ID.out; do sleep 0.2; done; kill $!",
                                      mem="50M")
        self.here.wait_for_end(self.short)
        self.short_said = self.here.output_of(self.short, r"cpu ([\d.]+)")
        self.ticks_of_short = self.ticks() - before

    def run_jobs_that_write(self):
        here = self.here
        self.write = here.submit(f"exec {BEHAVE} write 1024 /scratch/written", mem="1500M")
        self.write_said = here.output_of(self.write, r"wrote 1024 MiB in ([\d.]+) s")
        self.children = here.submit(f"{BEHAVE} unawaited 64 /scratch/children 2", mem="400M")
        self.direct = here.submit("dd if=/dev/zero of=/scratch/direct bs=1M count=64 oflag=direct; sleep 1000",
                                  mem="100M")
        here.output_of(self.children, "children are done")
        here.output_of(self.direct, "copied")
        self.write_state = here.wait_for_end(self.write)

    def run_job_that_burns(self):
        """Slurm's own processes are in the job too: nothing on a real node, but not here."""
        self.burn = self.here.submit(f"exec {BEHAVE} burn {BURN} 2", mem="100M", cpus_per_task=2)
        said = self.here.output_of(self.burn, r"cpu ([\d.]+) user ([\d.]+) system ([\d.]+)")
        # The directory of the job need not have its id in its name.
        step = self.here.run(f"cat /proc/$(pgrep -f '^{BEHAVE} burn {BURN}')/cgroup").split("::")[1]
        slurm = self.here.run(f"cat /sys/fs/cgroup{step.partition('/step_')[0]}/step_*/slurm/cpu.stat")
        self.burnt = [float(said[i + 1]) + sum(map(int, re.findall(rf"{name}_usec (\d+)", slurm))) / 1e6
                      for i, name in enumerate(("usage", "user", "system"))]

    def ticks(self):
        return self.here.metrics().value('sonde_agent_samples_total{cause="tick"}')

    def tick(self):
        """Makes the agent sample once more, just after a full interval: the next is far away. Returns the number of ticks."""
        before, now = self.ticks(), int(self.here.run("date +%s")) + self.here.ahead_seconds
        self.here.advance_clock(TICK - now % TICK + 1)
        return self.here.wait_for(lambda: self.ticks() > before and self.ticks(), "a tick")

    def of(self, name, job, **labels):
        """The value of the only series of a job, or None."""
        names = {"slurm_job": job} if name.startswith("jobs_") else {"job_id": job}
        wanted = set((names | labels).items())
        found = [value for series, value in self.last[name].items() if wanted <= set(series)]
        assert len(found) < 2, f"{name} of job {job} has {len(found)} series"
        return found[0] if found else None


def setUpModule():
    global seen
    why = machine.why_not()
    if why:
        raise unittest.SkipTest(why)
    try:
        here = machine.Machine(SUITE)
    except machine.CannotRun as reason:
        raise unittest.SkipTest(str(reason)) from None
    unittest.addModuleCleanup(here.close)
    seen = Seen(here)
    for line in seen.log.splitlines():
        print(f"# agent: {line}")


class RealCgroups(unittest.TestCase):
    def near(self, name, job, expected, tolerance=0.02, **labels):
        value = seen.of(name, job, **labels)
        self.assertIsNotNone(value, f"no {name} of job {job}")
        print(f"# {name} {labels or ''} {value} expected {expected}")
        self.assertLessEqual(abs(value - expected), tolerance * expected, f"{name} is {value}, expected {expected}")

    def test_cpu_time_is_what_the_job_burnt(self):
        self.near("sonde_job_cpu_seconds_total", seen.burn, seen.burnt[0])
        self.near("jobs_cpu_time_total", seen.burn, seen.burnt[0])

    def test_user_and_system_time_are_told_apart(self):
        cpu, user, system = seen.burnt
        for name, expected in ("user", user), ("system", system):
            self.near(f"sonde_job_cpu_{name}_seconds_total", seen.burn, expected, 0.02 * cpu / expected)
            self.near(f"jobs_{name}_time", seen.burn, expected, 0.02 * cpu / expected)

    def test_memory_is_what_the_job_holds(self):
        self.near("sonde_job_memory_anonymous_bytes", seen.hold, 300 * MIB)
        self.near("jobs_rss", seen.hold, 300)
        self.near("sonde_job_memory_limit_bytes", seen.hold, 400 * MIB, 0)

    def test_the_peak_of_memory_is_told(self):
        for job in seen.hold, seen.burn:
            peak, now = (seen.of(f"sonde_job_memory_{what}bytes", job) for what in ("peak_", ""))
            self.assertGreaterEqual(peak, now)

    def test_all_tasks_of_a_step_are_seen(self):
        self.near("sonde_job_process_resident_bytes", seen.steps, 100 * MIB, process="behave")
        self.assertEqual(seen.of("jobs_thread_count", seen.steps, proc_name="behave"), 2)

    def test_what_was_written_just_before_the_end_counts(self):
        self.assertEqual(seen.write_state, "COMPLETED")
        print(f"# {seen.write_said[0]}")
        self.near("jobs_write_mb", seen.write, 1024)
        self.near("sonde_job_written_bytes_total", seen.write, 1024 * MIB)

    def test_what_children_wrote_that_nobody_waited_for_counts(self):
        self.near("jobs_write_mb", seen.children, 128)

    def test_open_files_are_counted(self):
        self.near("jobs_opened_files", seen.files, 500)
        self.assertEqual(seen.of("jobs_uses_scratch", seen.files), 1)
        self.assertEqual(seen.of("jobs_uses_scratch", seen.threads), 0)

    def test_threads_are_counted_by_name(self):
        self.assertEqual(seen.of("jobs_thread_count", seen.threads, proc_name="behave"), 40)

    def test_a_kill_for_want_of_memory_is_told_after_the_end(self):
        self.assertEqual(seen.oom_state, "OUT_OF_MEMORY")
        self.assertEqual(seen.of("sonde_job_oom_kills_total", seen.oom), 1)
        self.assertEqual(seen.of("sonde_job_oom_kills_total", seen.hold), 0)

    def test_a_short_job_between_two_ticks_is_seen(self):
        self.assertEqual(seen.ticks_of_short, 0)
        self.assertGreaterEqual(seen.of("sonde_job_cpu_seconds_total", seen.short), float(seen.short_said[1]))

    def test_the_kernel_tells_no_time_by_core(self):
        self.assertFalse(seen.last["jobs_cpu_time_core"])

    def test_pressure_is_told(self):
        for what in "waiting", "stalled":
            for resource in "cpu", "memory", "io":
                name = f"sonde_job_pressure_{what}_seconds_total"
                self.assertIsNotNone(seen.of(name, seen.burn, resource=resource), f"{name} of {resource}")
        # Two threads, and the rest of the machine, on two cores.
        self.assertGreater(seen.of("sonde_job_pressure_waiting_seconds_total", seen.burn, resource="cpu"), 0)

    def test_controllers_that_a_site_adds_are_read(self):
        self.assertGreaterEqual(seen.of("sonde_job_pids", seen.threads), 40)
        self.near("sonde_job_device_written_bytes_total", seen.direct, 64 * MIB, device="vda")

    def test_user_and_account_are_told(self):
        for job, user, account in (seen.burn, "alice", "physics"), (seen.hold, "bob", "chemistry"), \
                (seen.write, "alice", "physics"), (seen.short, "alice", "physics"):
            self.assertEqual(seen.of("sonde_job_info", job, user=user, account=account, node="n1"), 1)

    def test_exit_records_are_read(self):
        self.assertEqual(seen.last["sonde_agent_exit_records"], {(): 1})
        self.assertEqual(seen.last["sonde_agent_exits_lost_total"], {(): 0})

    def test_the_agent_has_nothing_to_complain_of(self):
        self.assertFalse(re.findall(r"level=(?:warn|error).*", seen.log))


if __name__ == "__main__":
    import tap
    tap.main()
