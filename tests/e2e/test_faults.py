#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What Slurm's commands can do wrong, each on the real exporter."""
import os
import time
import unittest

import sonde
from sonde import Exporter, FakeCommands, job, node, wait_until

RUNNING = 'slurm_job_count_per_state{state="RUNNING"}'
JOBS_UP = 'sonde_source_up{source="cli",kind="jobs"}'
NODES_UP = 'sonde_source_up{source="cli",kind="nodes"}'
JOBS_AGE = 'sonde_source_age_seconds{source="cli",kind="jobs"}'
FAST = ("--slurm.poll-limit=50ms", "--slurm.timeout=2s")


def errors(reason, kind="jobs"):
    return f'sonde_source_errors_total{{source="cli",kind="{kind}",reason="{reason}"}}'


def good_job(**changes):
    return f"answer '{job(**changes)}'"


def good_node(**changes):
    return f"answer '{node(**changes)}'"


class Faults(unittest.TestCase):
    def start(self, squeue, *flags, sinfo=good_node()):
        self.commands = self.enterContext(FakeCommands(squeue, sinfo))
        return self.enterContext(Exporter(*flags, path=self.commands.path))

    def assert_failed(self, answer, reason, kind="jobs"):
        self.assertEqual(answer.value(f'sonde_source_up{{source="cli",kind="{kind}"}}'), 0)
        self.assertGreaterEqual(answer.value(errors(reason, kind)), 1)

    def test_a_good_answer_is_shown(self):
        answer = self.start(good_job()).metrics()
        self.assertEqual(answer.value(RUNNING), 1)
        self.assertEqual(answer.value('slurm_user_mem_alloc{username="alice",state="RUNNING"}'), 8 << 30)
        self.assertEqual(answer.value("slurm_cpus_total"), 8)
        self.assertEqual(answer.value(JOBS_UP), 1)
        self.assertEqual(answer.value(NODES_UP), 1)

    def test_a_missing_squeue_hides_nothing_but_the_jobs(self):
        exporter = self.start(good_job(), "--slurm.squeue-cli=no-such-squeue")
        answer = exporter.metrics()
        self.assert_failed(answer, "missing")
        self.assertNotIn("slurm_job_", answer.text)
        self.assertEqual(answer.value("slurm_cpus_total"), 8)
        self.assertIn("no-such-squeue", exporter.log())

    def test_an_exit_status_is_a_failure_and_squeue_is_quoted(self):
        exporter = self.start("echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
        self.assert_failed(exporter.metrics(), "failed")
        self.assertIn("Unable to contact slurm controller", exporter.log())

    def test_words_on_stderr_with_success_are_a_warning(self):
        exporter = self.start(good_job() + "; echo 'squeue: warning: careful' >&2")
        answer = exporter.metrics()
        self.assertEqual(answer.value(JOBS_UP), 1)
        self.assertEqual(answer.value(RUNNING), 1)
        self.assertEqual(answer.value('sonde_source_warnings_total{source="cli",kind="jobs"}'), 1)
        self.assertIn("careful", exporter.log())

    def test_an_empty_queue_is_an_answer(self):
        answer = self.start(":").metrics()
        self.assertEqual(answer.value(JOBS_UP), 1)
        self.assertEqual(answer.value(RUNNING), 0)

    def test_half_a_record_is_refused_whole(self):
        exporter = self.start(f"answer '{job()}'; answer '2~2~N/A~'")
        answer = exporter.metrics()
        self.assert_failed(answer, "garbled")
        self.assertNotIn("slurm_job_", answer.text)

    def test_garbage_is_refused(self):
        exporter = self.start(r"printf '\001\377\000garbage\n'; head -c 3000000 /dev/urandom")
        self.assert_failed(exporter.metrics(), "garbled")

    def test_a_record_that_cannot_be_read_is_left_out_and_counted(self):
        answer = self.start(f"answer '{job()}{job(JobID='x')}{job(JobID='3', State='LEVITATING')}'").metrics()
        self.assertEqual(answer.value(RUNNING), 1)
        self.assertEqual(answer.value('sonde_source_skipped_records_total{source="cli",kind="jobs"}'), 2)

    def test_two_gigabytes_are_stopped_at_the_ceiling(self):
        exporter = self.start(
            f"record=$(answer '{job()}'); exec yes \"$record\" | head -c 2147483648",
            "--slurm.max-answer=64M", "--slurm.timeout=60s")
        answer = exporter.metrics(X_Prometheus_Scrape_Timeout_Seconds="60")
        self.assert_failed(answer, "too_big")
        self.assertIn("67108864 bytes", exporter.log())
        self.assertLess(answer.value("process_resident_memory_bytes"), 1 << 30)

    def test_a_record_without_end_is_stopped_long_before_that(self):
        exporter = self.start("exec head -c 2147483648 /dev/zero", "--slurm.timeout=60s")
        answer = exporter.metrics(X_Prometheus_Scrape_Timeout_Seconds="60")
        self.assert_failed(answer, "garbled")

    def test_a_hung_squeue_is_killed_and_the_last_snapshot_served(self):
        exporter = self.start(good_job(), "--slurm.poll-limit=50ms", "--slurm.timeout=300ms",
                              "--slurm.stale-limit=4s")
        self.assertEqual(exporter.metrics().value(RUNNING), 1)
        pid_file = f"{self.commands.path}/pid"
        self.commands.set("squeue", f"echo $$ >{pid_file}; exec sleep 1000")

        def failed():
            answer = exporter.metrics()
            return answer if errors("timeout") in answer.samples() else None
        answer = wait_until(failed, "the hung squeue is noticed")
        self.assertEqual(answer.value(JOBS_UP), 0)
        self.assertEqual(answer.value(RUNNING), 1, "the last snapshot is served")
        age = answer.value(JOBS_AGE)
        wait_until(lambda: exporter.metrics().value(JOBS_AGE) > age, "its age grows")
        with open(pid_file) as file:
            pid = int(file.read())
        wait_until(lambda: not os.path.exists(f"/proc/{pid}")
                   or open(f"/proc/{pid}/stat").read().rsplit(")")[1].split()[0] == "Z"
                   or open(pid_file).read() != f"{pid}\n", "the hung squeue is dead")
        answer = wait_until(lambda: (a := exporter.metrics()) and RUNNING not in a.samples() and a,
                            "stale values are withdrawn")
        self.assertEqual(answer.value(JOBS_UP), 0)
        self.assertGreater(answer.value(JOBS_AGE), 4)
        self.assertEqual(answer.value("slurm_cpus_total"), 8, "nodes have nothing to do with it")

        self.commands.set("squeue", good_job())
        wait_until(lambda: RUNNING in exporter.metrics().samples(), "works again by itself")

    def test_a_scrape_does_not_outlive_its_timeout(self):
        exporter = self.start("exec sleep 1000", "--slurm.timeout=30s")
        began = time.monotonic()
        answer = exporter.metrics(X_Prometheus_Scrape_Timeout_Seconds="1")
        self.assertLess(time.monotonic() - began, 1)
        self.assertGreater(time.monotonic() - began, 0.7)
        self.assertEqual(answer.value(JOBS_UP), 0)
        self.assertNotIn("slurm_job_", answer.text)

    def test_a_hundred_scrapers_ask_slurm_once(self):
        count = "echo x >>\"$(dirname \"$0\")/count\"; "
        exporter = self.start(count + good_job(), "--slurm.poll-limit=10m")
        for _ in range(100):
            exporter.metrics()
        with open(f"{self.commands.path}/count") as file:
            self.assertEqual(len(file.readlines()), 1)

    def test_nobody_scrapes_and_slurm_is_left_alone(self):
        exporter = self.start("echo x >>\"$(dirname \"$0\")/count\"", *FAST)
        self.assertEqual(exporter.get("/").status, 200)
        self.assertEqual(exporter.get("/-/healthy").status, 200)
        self.assertFalse(os.path.exists(f"{self.commands.path}/count"))

    def test_our_users_own_squeue_settings_change_nothing(self):
        commands = self.enterContext(FakeCommands(
            f"[ -z \"$SQUEUE_STATES$SQUEUE_FORMAT$SINFO_FORMAT\" ] && {good_job()}", good_node()))
        exporter = self.enterContext(Exporter(path=commands.path, env={
            "SQUEUE_STATES": "PENDING", "SQUEUE_FORMAT": "%i", "SINFO_FORMAT": "%n"}))
        self.assertEqual(exporter.metrics().value(RUNNING), 1)

    def test_the_token_cannot_be_seen_in_the_process_list(self):
        exporter = self.start("tr '\\0' '\\n' </proc/$$/cmdline >\"$(dirname \"$0\")/seen\"; " + good_job())
        self.assertEqual(exporter.metrics().value(RUNNING), 1)
        with open(f"{self.commands.path}/seen") as file:
            self.assertNotIn("@", file.read())


if __name__ == "__main__":
    import tap
    tap.main()
