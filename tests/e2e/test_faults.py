#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What Slurm's commands can do wrong, each on the real exporter."""
import concurrent.futures
import os
import pathlib
import socket
import tempfile
import unittest

from clock import Clock
from sonde import Exporter, FakeCommands, job, node, wait_until

RUNNING = 'slurm_job_count_per_state{state="RUNNING"}'
JOBS_UP = 'sonde_source_up{source="cli",kind="jobs"}'
NODES_UP = 'sonde_source_up{source="cli",kind="nodes"}'
JOBS_AGE = 'sonde_source_age_seconds{source="cli",kind="jobs"}'
HOUR = 3600  # of the test's clock, longer than anything is fresh, waited for or in back-off


def errors(reason, kind="jobs"):
    return f'sonde_source_errors_total{{source="cli",kind="{kind}",reason="{reason}"}}'


def good_job(**changes):
    return f"answer '{job(**changes)}'"


def good_node(**changes):
    return f"answer '{node(**changes)}'"


class Faults(unittest.TestCase):
    """The exporter's time stands still until a test moves it on."""

    def setUp(self):
        self.clock = self.enterContext(Clock(stands=1800000000))

    def start(self, squeue, *flags, sinfo=good_node(), **options):
        self.commands = self.enterContext(FakeCommands(squeue, sinfo))
        return self.enterContext(Exporter(*flags, path=self.commands.path, env=self.clock.env, **options))

    def in_background(self, action, *arguments, **options):
        pool = concurrent.futures.ThreadPoolExecutor(1)
        self.addCleanup(pool.shutdown)
        return pool.submit(action, *arguments, **options)

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
        exporter = self.start(good_job())
        self.commands.remove("squeue")
        answer = exporter.metrics()
        self.assert_failed(answer, "missing")
        self.assertNotIn("slurm_job_count", answer.text)
        self.assertEqual(answer.value("slurm_cpus_total"), 8)
        wait_until(lambda: "squeue" in exporter.log(), "it is logged")

    def test_an_exit_status_is_a_failure_and_squeue_is_quoted(self):
        exporter = self.start("echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
        self.assert_failed(exporter.metrics(), "failed")
        wait_until(lambda: "Unable to contact slurm controller" in exporter.log(), "it is logged")

    def test_words_on_stderr_with_success_are_a_warning(self):
        exporter = self.start(good_job() + "; echo 'squeue: warning: careful' >&2")
        answer = exporter.metrics()
        self.assertEqual(answer.value(JOBS_UP), 1)
        self.assertEqual(answer.value(RUNNING), 1)
        self.assertEqual(answer.value('sonde_source_warnings_total{source="cli",kind="jobs"}'), 1)
        wait_until(lambda: "careful" in exporter.log(), "it is logged")

    def test_an_empty_queue_is_an_answer(self):
        answer = self.start(":").metrics()
        self.assertEqual(answer.value(JOBS_UP), 1)
        self.assertEqual(answer.value(RUNNING), 0)

    def test_half_a_record_is_refused_whole(self):
        exporter = self.start(f"answer '{job()}'; answer '2~2~N/A~'")
        answer = exporter.metrics()
        self.assert_failed(answer, "garbled")
        self.assertNotIn("slurm_job_count", answer.text)

    def test_garbage_is_refused(self):
        exporter = self.start(r"printf '\001\377\000garbage\n'; head -c 3000000 /dev/urandom")
        self.assert_failed(exporter.metrics(), "garbled")

    def test_a_record_that_cannot_be_read_is_left_out_counted_and_logged(self):
        exporter = self.start(f"answer '{job()}{job(JobID='x1')}{job(JobID='3', ArrayTaskID='1,2,...')}'")
        answer = exporter.metrics()
        self.assertEqual(answer.value(RUNNING), 1)
        self.assertEqual(answer.value('sonde_source_skipped_records_total{source="cli",kind="jobs"}'), 2)
        wait_until(lambda: "records=2 first=x1" in exporter.log(), "it is logged")

    def test_a_record_that_is_too_long_takes_nothing_else_along(self):
        exporter = self.start(f"answer '{job()}'; printf '%s' 9; head -c 3000000 /dev/zero | tr '\\0' x; "
                              f"answer '{job(JobID='~'.join(['']))}'; answer '{job(JobID='4')}'")
        answer = exporter.metrics()
        self.assertEqual(answer.value(RUNNING), 2)
        self.assertEqual(answer.value('sonde_source_skipped_records_total{source="cli",kind="jobs"}'), 1)

    def test_words_of_a_newer_slurm_lose_no_job_and_no_node(self):
        exporter = self.start(good_job(State="LEVITATING"), sinfo=good_node(StateComplete="idle+quantum"))
        answer = exporter.metrics()
        self.assertEqual(answer.value('slurm_job_count_per_state{state="UNKNOWN"}'), 1)
        self.assertEqual(answer.value('slurm_node_count_per_state{state="idle"}'), 1)
        self.assertEqual(answer.value("slurm_cpus_total"), 8)

    def test_what_slurm_does_not_tell_is_absent_and_not_zero(self):
        exporter = self.start(good_job(tres_alloc="(null)"),
                              sinfo=good_node(FreeMem="N/A", CPUsLoad="N/A", AllocMem="N/A"))
        samples = exporter.metrics().samples()
        for name in ("slurm_mem_free", "slurm_cpu_load", "slurm_mem_alloc",
                     'slurm_user_mem_alloc{username="alice",state="RUNNING"}'):
            self.assertNotIn(name, samples)
        self.assertEqual(samples["slurm_mem_real"], str(16000 << 20))

    def test_amounts_that_cannot_be_true_do_not_wrap(self):
        exporter = self.start(good_job(tres_alloc="cpu=1,mem=8P", State="PENDING", ArrayTaskID="1-4000"),
                              sinfo=good_node(CPUsLoad="inf"))
        samples = exporter.metrics().samples()
        self.assertNotIn('slurm_user_mem_alloc{username="alice",state="PENDING"}', samples)
        self.assertNotIn("slurm_cpu_load", samples)

    def test_sums_that_do_not_fit_are_absent(self):
        huge = "9000000000000"  # in MiB: three of them are more than 64 bits of bytes
        exporter = self.start(f"answer '{job(tres_alloc='cpu=1,mem=9E')}{job(JobID='2', tres_alloc='cpu=1,mem=9E')}'",
                              sinfo="answer '" + "".join(node(NodeList=f"n{i}", Memory=huge) for i in range(3)) + "'")
        samples = exporter.metrics().samples()
        self.assertNotIn('slurm_user_mem_alloc{username="alice",state="RUNNING"}', samples)
        self.assertEqual(samples['slurm_user_cpu_alloc{username="alice",state="RUNNING"}'], "2")
        self.assertNotIn("slurm_mem_real", samples)

    def test_a_user_may_be_called_none_and_another_have_no_name(self):
        answer = self.start(f"answer '{job(UserName='none')}{job(JobID='2', UserName='unknown')}"
                            f"{job(JobID='3', UserName='(null)', UserID='4711')}'").metrics()
        for name in ("none", "unknown", "4711"):
            self.assertEqual(answer.value(f'slurm_user_state_total{{username="{name}",state="RUNNING"}}'), 1)

    def test_reasons_without_end_are_folded(self):
        records = "i=0; while [ $i -lt 150 ]; do i=$((i+1)); answer \"" + \
            job(JobID="$i", State="PENDING", Reason="told by a plugin: $i") + "\"; done; answer '" + \
            job(JobID="200", State="PENDING", Reason="Priority", ArrayTaskID="1-9") + "'"
        answer = self.start(records).metrics()
        self.assertEqual(answer.value('slurm_pending_reason_total{reason="Priority"}'), 9)
        self.assertEqual(answer.value('slurm_pending_reason_total{reason="other"}'), 51)
        self.assertEqual(answer.value('sonde_collector_folded_series{collector="jobs"}'), 51)

    def test_jobs_without_end_are_stopped_at_the_ceiling_and_the_last_ones_served(self):
        exporter = self.start(good_job(), "--slurm.max-answer=8M", "--slurm.poll-limit=1m")
        self.assertEqual(exporter.metrics().value(RUNNING), 1)
        self.commands.set("squeue", f"record=$(answer '{job()}'); exec yes \"$record\"")
        self.clock.advance(61)
        answer = exporter.metrics()
        self.assertEqual(answer.value(errors("too_big")), 1)
        self.assertEqual(answer.value(JOBS_UP), 0)
        self.assertEqual(answer.value(RUNNING), 1, "the last snapshot is served")
        exporter.wait_log("the jobs take more than 8388608 bytes of memory; raise --slurm.max-answer")
        self.assertLess(answer.value("process_resident_memory_bytes"), 1 << 30)

    def test_an_answer_may_be_longer_than_the_ceiling_on_what_is_kept_of_it(self):
        job = '{"job_id":1,"job_state":"RUNNING","comment":"'
        exporter = self.start(f"printf %s '{{\"jobs\":[{job}'; head -c 33554432 /dev/zero | tr '\\0' x; echo '\"}}]}}'",
                              "--source=json", "--slurm.max-answer=16M")
        self.assertEqual(exporter.metrics().value(RUNNING), 1)

    def test_a_hung_squeue_is_killed_and_the_last_snapshot_served(self):
        file = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "sonde.yml")
        settings = "slurm:\n  poll-limit: 1m\n  stale-limit: 10m\n  timeout: "
        file.write_text(f"{settings}1h\n")
        exporter = self.start(good_job(), f"--config.file={file}")
        self.assertEqual(exporter.metrics().value(RUNNING), 1)

        def set_timeout(text):
            file.write_text(f"{settings}{text}\n")
            self.assertEqual(exporter.get("/-/reload", method="POST").status, 200)

        self.commands.hold("squeue")
        self.clock.advance(61)
        set_timeout("100ms")
        answer = exporter.get("/metrics?collect[]=jobs")  # nothing else, which might take longer
        self.assertEqual(answer.value(errors("timeout")), 1)
        self.assertEqual(answer.value(JOBS_UP), 0)
        self.assertEqual(answer.value(RUNNING), 1, "the last snapshot is served")
        self.assertEqual(answer.value(JOBS_AGE), 61)
        for pid in self.commands.held("squeue"):  # on a slow machine it is killed before it gets there
            self.assertFalse(os.path.exists(f"/proc/{pid}"), "the hung squeue is dead")

        self.clock.advance(600)
        answer = exporter.get("/metrics?collect[]=jobs")
        self.assertNotIn(RUNNING, answer.samples(), "stale values are withdrawn")
        self.assertEqual(answer.value(JOBS_UP), 0)
        self.assertEqual(answer.value(JOBS_AGE), 661)
        set_timeout("1h")
        answer = exporter.metrics()  # squeue is not asked: it has just failed
        self.assertNotIn(RUNNING, answer.samples())
        self.assertEqual(answer.value("slurm_cpus_total"), 8, "nodes have nothing to do with it")

        self.commands.set("squeue", good_job())
        self.clock.advance(HOUR)
        self.assertEqual(exporter.metrics().value(RUNNING), 1, "works again by itself")

    def test_a_slurm_that_hangs_is_down_for_every_kind_that_is_wanted(self):
        exporter = self.start(good_job(), "--slurm.timeout=1h", "--slurm.poll-limit=1m")
        self.assertEqual(exporter.metrics().value(JOBS_UP), 1)
        self.commands.hold("sinfo")
        self.commands.hold("squeue")
        self.clock.advance(61)
        scrape = self.in_background(exporter.get, "/metrics?collect[]=jobs&collect[]=nodes",
                                    headers={"X-Prometheus-Scrape-Timeout-Seconds": "100"})
        wait_until(lambda: self.commands.held("sinfo") or self.commands.held("squeue"), "one of them is started")
        self.clock.advance(HOUR)
        # Although the other one has not been started.
        self.assertEqual([scrape.result().value(series) for series in (JOBS_UP, NODES_UP)], [0, 0])

    def test_a_scrape_does_not_outlive_its_timeout(self):
        exporter = self.start(":", "--slurm.poll-limit=1d")
        self.commands.hold("squeue", good_job())
        exporter.get("/metrics?collect[]=nodes")  # fresh from now on: who asks for them again does not wait
        patient = self.in_background(exporter.metrics, X_Prometheus_Scrape_Timeout_Seconds="3000")
        self.commands.wait_held("squeue")
        other = self.in_background(exporter.metrics, X_Prometheus_Scrape_Timeout_Seconds="100")

        def scrapes():
            self.clock.advance(1)  # what sonde says of itself is renewed each second
            return exporter.get("/metrics?collect[]=nodes").value("promhttp_metric_handler_requests_in_flight")
        wait_until(lambda: scrapes() == 3, "both wait")
        self.clock.advance(90)
        self.assertEqual(scrapes(), 3, "both still wait")
        self.clock.advance(10)
        answer = other.result()
        self.assertEqual(answer.value(JOBS_UP), 0)
        self.assertNotIn("slurm_job_count", answer.text)
        self.assertFalse(patient.done())
        self.commands.release("squeue")
        self.assertEqual(patient.result().value(RUNNING), 1)

    def test_a_new_format_is_answered_in_text_while_slurm_hangs(self):
        exporter = self.start(good_job())
        self.assertEqual(exporter.metrics().value(RUNNING), 1)
        for name in ("squeue", "sinfo"):
            self.commands.hold(name)
        self.clock.advance(60)
        other = self.in_background(exporter.metrics, Accept="application/openmetrics-text", X_Prometheus_Scrape_Timeout_Seconds="1")
        wait_until(lambda: self.commands.held("squeue") or self.commands.held("sinfo"), "one is started, whosever turn it was")
        wait_until(lambda: self.clock.advance(1) or other.done(), "it is answered as time passes")
        answer = other.result()
        self.assertEqual(answer.value(RUNNING), 1)
        self.assertIn("text/plain", answer.headers["Content-Type"])
        self.assertEqual(answer.value('sonde_collector_success{collector="jobs"}'), 1)

    def test_a_log_that_nobody_reads_stops_nothing(self):
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        os.set_blocking(writing, False)
        try:
            while True:
                os.write(writing, b"x" * 65536)
        except BlockingIOError:
            os.set_blocking(writing, True)
        exporter = self.start("echo no >&2; exit 1", stderr=writing)
        os.close(writing)
        for failures in range(1, 4):
            answer = exporter.metrics()
            self.assert_failed(answer, "failed")
            self.assertEqual(answer.value(errors("failed")), failures)
            self.clock.advance(HOUR)
        self.assertEqual(exporter.get("/-/healthy").status, 200)

    def test_a_hundred_scrapers_ask_slurm_once(self):
        exporter = self.start("echo x >>\"$(dirname \"$0\")/count\"; " + good_job())
        for _ in range(100):
            exporter.metrics()
        with open(f"{self.commands.path}/count") as file:
            self.assertEqual(len(file.readlines()), 1)

    def test_nobody_scrapes_and_slurm_is_left_alone(self):
        exporter = self.start("echo x >>\"$(dirname \"$0\")/count\"")
        for _ in range(3):
            self.assertEqual(exporter.get("/").status, 200)
            self.assertEqual(exporter.get("/-/healthy").status, 200)
            self.clock.advance(HOUR)
        exporter.metrics()
        self.assertEqual(pathlib.Path(self.commands.path, "count").read_text(), "x\n", "the first one is the scrape's")

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


class Sources(unittest.TestCase):
    """Whatever Slurm is asked through: while it does not answer, scrapes are answered."""

    def setUp(self):
        self.clock = self.enterContext(Clock(stands=1800000000))

    def assert_answered(self, exporter, wait_asked):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            scrape = pool.submit(exporter.metrics, X_Prometheus_Scrape_Timeout_Seconds="1")
            wait_asked()
            wait_until(lambda: self.clock.advance(1) or scrape.done(), "it is answered as time passes")
            families = scrape.result().families()
        self.assertEqual(set(families["sonde_source_up"].values()), {0})
        self.assertEqual(sum(families["sonde_source_errors_total"].values()), 0, "it is still waited for")

    def start(self, *flags, **options):
        return self.enterContext(Exporter(*flags, env=self.clock.env, **options))

    def test_commands_that_hang(self):
        for source in ("cli", "json"):
            with FakeCommands() as commands:
                # whichever is asked first
                for name in ("squeue", "sinfo", "scontrol", "sdiag", "sshare"):
                    commands.set(name, f"echo $$ >{commands.path}/asked; exec sleep 1000")
                self.assert_answered(self.start(f"--source={source}", path=commands.path), lambda: wait_until(
                    pathlib.Path(commands.path, "asked").exists, f"{source} asks"))

    def test_a_slurmrestd_that_hangs(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            url = f"--slurm.rest-url=http://127.0.0.1:{server.getsockname()[1]}"
            self.assert_answered(self.start("--source=rest", url), lambda: self.enterContext(server.accept()[0]))

    def test_a_helper_that_hangs(self):
        for source in ("libslurm", "auto"):
            directory = self.enterContext(tempfile.TemporaryDirectory())
            helper = pathlib.Path(directory, "sonde-libslurm-22.05")
            helper.write_text(f"#!/bin/sh\necho $$ >{directory}/asked\nexec sleep 1000\n")
            helper.chmod(0o755)
            self.assert_answered(self.start(f"--source={source}", f"--slurm.helper-dir={directory}"), lambda: wait_until(
                pathlib.Path(directory, "asked").exists, f"{source} asks"))


if __name__ == "__main__":
    import tap
    tap.main()
