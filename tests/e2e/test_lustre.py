#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""sonde lustre in the place of prometheus-cluster-exporter, with a Prometheus whose answers the test writes."""
import concurrent.futures
import os
import pathlib
import socket
import subprocess
import tempfile
import unittest

from clock import Clock
from lustre import Lustre, StandIn, own_ids, squeue_lines
from sonde import DEADLINE, SONDE, Exporter, FakeCommands, http_get, job, own_host, wait_until

READ, WRITE, METADATA = "read_bytes_total", "write_bytes_total", "round("
JOBS = ((101, "physics", "alice"), (102, "physics", "alice"), (103, "bio", "bob"))


class LustreTest(unittest.TestCase):
    """Time stands still until a test moves it on."""

    def setUp(self):
        self.clock = self.enterContext(Clock(stands=1800000000))
        self.prometheus = self.enterContext(StandIn())
        self.commands = self.enterContext(FakeCommands(squeue=squeue_lines(*JOBS)))
        self.pool = concurrent.futures.ThreadPoolExecutor(4)
        self.addCleanup(self.pool.shutdown)

    def start(self, *flags, command=Lustre, **options):
        return self.enterContext(command(f"--prometheus.url={self.prometheus.url}", "--prometheus.timeout=1h", "--slurm.poll-limit=1s",
                                         *flags, path=self.commands.path, env=self.clock.env, **options))

    def look_again(self, lustre, later=2):
        self.clock.advance(later)
        return lustre.metrics()

    def throughput(self, answer, family):
        return {tuple(value for _, value in labels): number for labels, number in answer.families()[family].items()}


class Attribution(LustreTest):
    def test_three_questions_are_those_of_the_peer(self):
        self.start().metrics()
        self.assertEqual([query for _, query, _ in self.prometheus.asked], [
            "round(sum by(target,jobid)(irate(lustre_job_stats_total[1m])>=1))",
            "sum by(jobid)(irate(lustre_job_read_bytes_total[1m])!=0)",
            "sum by(jobid)(irate(lustre_job_write_bytes_total[1m])!=0)"])
        self.assertEqual({path for path, _, _ in self.prometheus.asked}, {"/api/v1/query"})

    def test_jobs_are_added_up_by_account_and_user(self):
        self.prometheus.put(READ, [({"jobid": "101"}, 1000.5), ({"jobid": "102"}, 2000), ({"jobid": "103"}, 7)])
        self.prometheus.put(WRITE, [({"jobid": "103"}, 5e9)])
        answer = self.start().metrics()
        self.assertEqual(self.throughput(answer, "cluster_job_read_throughput_bytes"),
                         {("physics", "alice"): 3000.5, ("bio", "bob"): 7})
        self.assertEqual(self.throughput(answer, "cluster_job_write_throughput_bytes"), {("bio", "bob"): 5e9})
        self.assertEqual(answer.value("cluster_exporter_scrape_ok"), 1)

    def test_processes_are_named_with_their_user_and_primary_group_at_once(self):
        samples = [({"jobid": f"my.tool.{uid}"}, 10 + uid) for uid, _, _ in own_ids()]
        self.prometheus.put(READ, samples)
        answer = self.start().metrics()
        self.assertEqual(self.throughput(answer, "cluster_proc_read_throughput_bytes"),
                         {("my.tool", group, name): 10 + uid for uid, name, group in own_ids()})

    def test_metadata_is_of_mdts_only(self):
        self.prometheus.put(METADATA, [({"jobid": "101", "target": "fs-MDT0000"}, 40), ({"jobid": "102", "target": "fs-MDT0000"}, 2),
                                       ({"jobid": "101", "target": "fs-MDT00ff"}, 5), ({"jobid": "101", "target": "fs-OST0000"}, 99),
                                       ({"jobid": "cp.0", "target": "fs-MDT0000"}, 3)])
        answer = self.start().metrics()
        self.assertEqual(self.throughput(answer, "cluster_job_metadata_operations"),
                         {("physics", "alice", "fs-MDT0000"): 42, ("physics", "alice", "fs-MDT00ff"): 5})
        self.assertEqual(self.throughput(answer, "cluster_proc_metadata_operations"), {("cp", "root", "root", "fs-MDT0000"): 3})

    def test_the_stages_of_the_peer_are_timed(self):
        stages = self.start().metrics().families()["cluster_exporter_stage_execution_seconds"]
        self.assertEqual({labels[0][1] for labels in stages}, {
            "retrieve_running_jobs", "retrieve_user_name_info", "retrieve_group_name_info", "build_metadata_metrics",
            "build_read_throughput_metrics", "build_write_throughput_metrics"})

    def test_formats_of_ids_that_a_site_has_set(self):
        self.prometheus.put(WRITE, [({"jobid": "101:bash:n1"}, 1), ({"jobid": "101:dd:n2"}, 2), ({"jobid": "103"}, 4),
                                    ({"jobid": "dd.0"}, 8), ({"jobid": ":scp:login1"}, 16)])
        answer = self.start("--lustre.jobid-format=%j:%e:%H").metrics()
        self.assertEqual(self.throughput(answer, "cluster_job_write_throughput_bytes"), {("physics", "alice"): 3, ("bio", "bob"): 4})
        self.assertEqual(self.throughput(answer, "cluster_proc_write_throughput_bytes"),
                         {("dd", "root", "root"): 8, ("scp", "", ""): 16})

    def test_matchers_and_time_range_are_part_of_every_question(self):
        self.start("--collector.lustre_jobs", '--lustre.matchers=cluster="a"', "--lustre.time-range=5m").metrics()
        queries = [query for _, query, _ in self.prometheus.asked]
        self.assertEqual(len(queries), 9)
        for query in queries:
            self.assertEqual(query.count('cluster="a"}[5m]'), query.count("irate("), query)

    def test_a_job_that_has_ended_within_the_window_is_still_attributed(self):
        self.prometheus.put(READ, [({"jobid": "103"}, 70)])
        lustre = self.start("--lustre.time-range=1h")
        lustre.metrics()
        self.commands.set("squeue", squeue_lines(*JOBS[:2]))
        self.assertEqual(self.throughput(self.look_again(lustre, 3500), "cluster_job_read_throughput_bytes"), {("bio", "bob"): 70})

    def test_a_job_that_ended_before_the_window_is_not(self):
        self.prometheus.put(READ, [({"jobid": "103"}, 70)])
        lustre = self.start("--lustre.time-range=1h")
        lustre.metrics()
        self.commands.set("squeue", squeue_lines(*JOBS[:2]))
        self.look_again(lustre, 3500)
        answer = self.look_again(lustre, 3700)
        self.assertEqual(self.throughput(answer, "cluster_job_read_throughput_bytes"), {})
        self.assertEqual(answer.value('sonde_lustre_unattributed_ids{reason="unknown_job"}'), 1)

    def test_the_exporter_has_it_as_a_collector(self):
        self.commands.set("squeue", f"answer '{job(JobID='101')}{job(JobID='103', Account='bio', UserName='bob')}'")
        self.prometheus.put(READ, [({"jobid": "101"}, 1000), ({"jobid": "103"}, 5)])
        answer = self.start(command=Exporter).metrics()
        self.assertEqual(self.throughput(answer, "cluster_job_read_throughput_bytes"), {("physics", "alice"): 1000, ("bio", "bob"): 5})
        self.assertEqual(answer.value("cluster_exporter_scrape_ok"), 1)
        self.assertEqual(answer.value('slurm_job_count_per_state{state="RUNNING"}'), 2)

    def test_a_job_is_not_that_of_another_user_who_says_so(self):
        self.commands.set("squeue", f"answer '{job(JobID='101', UserID='1000')}'")
        self.prometheus.put(READ, [({"jobid": "101:1000"}, 8), ({"jobid": "101:6666"}, 1000), ({"jobid": "101:0"}, 4)])
        answer = self.start("--lustre.jobid-format=%j:%u", command=Exporter).metrics()
        self.assertEqual(self.throughput(answer, "cluster_job_read_throughput_bytes"), {("physics", "alice"): 12})
        self.assertEqual(answer.value('sonde_lustre_unattributed_ids{reason="other_user"}'), 1)
        self.assertEqual(answer.value('sonde_lustre_unattributed_throughput_bytes{direction="read"}'), 1000)

    def test_per_job_rates(self):
        self.prometheus.put("lustre_job_read_samples_total[1m])!=0", [({"jobid": "101"}, 100)])
        self.prometheus.put("read_small_samples", [({"jobid": "101"}, 25)])
        self.prometheus.put('operation=~"open|close"', [({"jobid": "101", "operation": "open"}, 8), ({"jobid": "101", "operation": "close"}, 7)])
        self.prometheus.put(READ, [({"jobid": "101"}, 409600)])
        samples = {series: value for series, value in self.start("--collector.lustre_jobs").metrics().samples().items()
                   if series.startswith("sonde_job_lustre")}
        self.assertTrue(all('job_id="101"' in series for series in samples), samples)
        values = {series.partition("{")[0].removeprefix("sonde_job_lustre_"): float(value) for series, value in samples.items()}
        self.assertEqual(values["read_mean_bytes"], 4096)
        self.assertEqual(values["small_io_ratio"], 0.25)
        self.assertEqual(sorted(values.values()), sorted([409600, 100, 8, 7, 4096, 0.25]), values)


class Trouble(LustreTest):
    def assert_failed(self, answer):
        samples = answer.samples()
        self.assertEqual(samples["cluster_exporter_scrape_ok"], "0")
        self.assertFalse([series for series in samples if series.startswith(("cluster_job", "cluster_proc", "sonde_job_lustre"))])

    def scrape_in_vain(self, lustre):
        """What is answered when its time is over, while Prometheus is held."""
        scrape = self.pool.submit(lustre.metrics, X_Prometheus_Scrape_Timeout_Seconds="100")
        wait_until(lambda: self.prometheus.asked, "Prometheus is asked for it")
        self.clock.advance(100)
        return scrape.result()

    def test_nobody_runs_a_job(self):
        self.commands.set("squeue", ":")
        self.prometheus.put(READ, [({"jobid": "dd.0"}, 3)])
        answer = self.start().metrics()
        self.assertEqual(answer.value("cluster_exporter_scrape_ok"), 1)
        self.assertEqual(self.throughput(answer, "cluster_proc_read_throughput_bytes"), {("dd", "root", "root"): 3})

    def test_a_job_without_an_account(self):
        self.commands.set("squeue", "echo '101  alice'")
        self.prometheus.put(READ, [({"jobid": "101"}, 3)])
        self.assertEqual(self.throughput(self.start().metrics(), "cluster_job_read_throughput_bytes"), {("", "alice"): 3})

    def test_ids_of_nobody_are_counted_and_the_rest_is_shown(self):
        self.prometheus.put(READ, [({"jobid": "999"}, 1), ({"jobid": "kworker/0:1"}, 2), ({"jobid": ""}, 4), ({}, 8),
                                   ({"jobid": "dd.4000000000"}, 16), ({"jobid": "101"}, 32), ({"jobid": "a\nb.0"}, 64)])
        answer = self.start().metrics()
        self.assertEqual(self.throughput(answer, "cluster_job_read_throughput_bytes"), {("physics", "alice"): 32})
        self.assertEqual(self.throughput(answer, "cluster_proc_read_throughput_bytes"),
                         {("dd", "", "4000000000"): 16, ("a\nb", "root", "root"): 64})
        self.assertEqual(answer.value('sonde_lustre_unattributed_ids{reason="unknown_job"}'), 1)
        self.assertEqual(answer.value('sonde_lustre_unattributed_ids{reason="unknown_user"}'), 1)
        self.assertEqual(answer.value('sonde_lustre_unattributed_ids{reason="unreadable"}'), 2)

    def test_metadata_of_nobody_is_told(self):
        self.prometheus.put(METADATA, [({"jobid": "xyz", "target": "fs-MDT0000"}, 1e6)])
        self.assertEqual(self.start().metrics().value('sonde_lustre_unattributed_metadata_operations{target="fs-MDT0000"}'), 1e6)

    def test_what_cannot_be_told_of_each_job_does_not_hide_the_rest(self):
        self.prometheus.put("small_samples", {"status": "error", "errorType": "execution", "error": "too many samples"}, status=422)
        self.prometheus.put(READ, [({"jobid": "101"}, 7)])
        lustre = self.start("--collector.lustre_jobs")
        answer = lustre.metrics()
        self.assertEqual(self.throughput(answer, "cluster_job_read_throughput_bytes"), {("physics", "alice"): 7})
        self.assertFalse([series for series in answer.samples() if series.startswith("sonde_job_lustre")])
        wait_until(lambda: "too many samples" in lustre.log(), "it is logged")

    def test_what_slurm_hides_is_told(self):
        self.commands.set("scontrol", FakeCommands.SCONTROL.replace("PrivateData = none", "PrivateData = jobs"))
        self.assertTrue(self.start().metrics().families()["sonde_source_limited"])

    def test_a_hundred_thousand_made_up_users_do_not_hide_the_real_ones(self):
        self.prometheus.put(READ, [({"jobid": "rsync.0"}, 5), *(({"jobid": f"x.{uid}"}, 1) for uid in range(200000, 270000))])
        lustre = self.start()
        for _ in range(3):
            answer = self.look_again(lustre)
            self.assertEqual(self.throughput(answer, "cluster_proc_read_throughput_bytes")[("rsync", "root", "root")], 5)
        self.assertEqual(answer.value('sonde_lustre_unattributed_ids{reason="unknown_user"}'), 70000)

    def test_numbers_that_are_none_are_left_out(self):
        self.prometheus.put(READ, [({"jobid": "101"}, "NaN"), ({"jobid": "102"}, "+Inf"), ({"jobid": "103"}, 6)])
        answer = self.start().metrics()
        self.assertEqual(self.throughput(answer, "cluster_job_read_throughput_bytes"), {("bio", "bob"): 6})
        self.assertEqual(answer.value('sonde_source_skipped_records_total{source="prometheus",kind="lustre"}'), 2)

    def test_prometheus_says_that_it_failed(self):
        self.prometheus.put(WRITE, {"status": "error", "errorType": "timeout", "error": "query timed out"}, status=503)
        lustre = self.start()
        self.assert_failed(lustre.metrics())
        wait_until(lambda: "query timed out" in lustre.log(), "it is logged")

    def test_prometheus_warns_that_something_is_missing(self):
        self.prometheus.put(READ, {"status": "success", "warnings": ["store 3 is away"], "data": {"resultType": "vector", "result": []}})
        lustre = self.start()
        self.assertEqual(lustre.metrics().value("cluster_exporter_scrape_ok"), 1)
        wait_until(lambda: "store 3 is away" in lustre.log(), "it is logged")

    def test_prometheus_is_away_and_comes_back(self):
        lustre = self.enterContext(Lustre(f"--prometheus.url=http://{own_host()}:9090", "--slurm.poll-limit=1ms", path=self.commands.path))
        self.assert_failed(lustre.metrics())
        self.assertEqual(lustre.metrics().value('sonde_source_up{source="prometheus",kind="lustre"}'), 0)

    def test_what_was_true_a_moment_ago_is_not_shown_when_prometheus_fails(self):
        self.prometheus.put(READ, [({"jobid": "101"}, 1000)])
        lustre = self.start()
        self.assertEqual(lustre.metrics().value("cluster_exporter_scrape_ok"), 1)
        self.prometheus.put(READ, b"<html>", status=502)
        self.assert_failed(self.look_again(lustre))

    def test_who_cannot_wait_is_told_so_and_the_next_shares_the_same_look(self):
        self.prometheus.put(READ, [({"jobid": "101"}, 1000)])
        lustre = self.start("--slurm.poll-limit=1h")
        self.prometheus.may_answer.clear()
        self.assert_failed(self.scrape_in_vain(lustre))
        lustre.wait_log("Collect is still active... - Skipping now")
        answers = [self.pool.submit(lustre.metrics) for _ in range(4)]
        self.prometheus.may_answer.set()
        for answer in answers:
            self.assertEqual(answer.result().value("cluster_exporter_scrape_ok"), 1)
        self.assertEqual(sum(READ in query and "small" not in query for _, query, _ in self.prometheus.asked), 1)

    def test_a_prometheus_that_hangs_does_not_hold_back_slurm(self):
        running, later = 'slurm_job_count_per_state{state="RUNNING"}', 61
        self.commands.set("squeue", f"answer '{job(JobID='101')}'")
        exporter = self.start("--slurm.poll-limit=1m", command=Exporter)
        exporter.get("/metrics?collect[]=jobs")  # fresh from now on
        self.prometheus.may_answer.clear()

        def scrape():
            return exporter.get("/metrics?collect[]=jobs&collect[]=lustre", headers={"X-Prometheus-Scrape-Timeout-Seconds": "1000"})
        first = self.pool.submit(scrape)
        wait_until(lambda: self.prometheus.asked, "Prometheus is asked")
        self.clock.advance(2)
        self.assertEqual(first.result().value("cluster_exporter_scrape_ok"), 0)
        self.assertEqual(first.result().value(running), 1)

        self.commands.set("squeue", f"answer '{job(JobID='101')}{job(JobID='102')}'")
        self.clock.advance(later)
        answer = scrape()  # while the clock stands: it waits for Slurm alone
        self.assertEqual(answer.value("cluster_exporter_scrape_ok"), 0)
        self.assertEqual(answer.value(running), 2, "Slurm is polled")

        self.prometheus.may_answer.set()
        wait_until(lambda: self.clock.advance(1) or scrape().value('sonde_source_up{source="prometheus",kind="lustre"}') == 1, "it has answered")
        self.clock.advance(later)
        self.assertEqual(scrape().value("cluster_exporter_scrape_ok"), 1)

    def test_squeue_hangs(self):
        self.commands.set("squeue", "exec sleep 1000")
        lustre = self.start("--slurm.timeout=500ms")
        self.assert_failed(lustre.metrics())
        wait_until(lambda: "squeue" in lustre.log(), "it is logged")

    def test_squeue_is_missing(self):
        self.commands.remove("squeue")
        lustre = self.enterContext(Lustre(f"--prometheus.url={self.prometheus.url}", "--slurm.bin-path=" + self.commands.path))
        self.assert_failed(lustre.metrics())

    def test_it_ends_while_a_question_hangs(self):
        lustre = self.start()
        self.prometheus.may_answer.clear()
        self.assert_failed(self.scrape_in_vain(lustre))
        lustre.stop()


class Flags(LustreTest):
    def run_alone(self, *flags):
        return subprocess.run([SONDE, "lustre", *flags], capture_output=True, text=True, timeout=DEADLINE)

    def test_by_its_old_name_with_its_old_flags(self):
        with socket.create_server(("", 0)) as server:  # -port is of all addresses
            port = server.getsockname()[1]
        with tempfile.TemporaryDirectory() as directory:
            link = pathlib.Path(directory, "prometheus-cluster-exporter")
            link.symlink_to(SONDE)
            process = subprocess.Popen([link, "-promserver", self.prometheus.url, "-log", "DEBUG", "-port", str(port), "-timeout", "300",
                                        "-timerange", "2m"], env=dict(os.environ, PATH=f"{self.commands.path}:{os.environ['PATH']}"),
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            try:
                def ask():
                    try:
                        return http_get(f"http://127.0.0.1:{port}/metrics")
                    except OSError:
                        return None
                answer = wait_until(ask, "it listens")
                self.assertEqual(answer.value("cluster_exporter_scrape_ok"), 1)
                self.assertTrue(all("[2m]" in query for _, query, _ in self.prometheus.asked))
                self.assertIn("Who reads from and writes to Lustre", http_get(f"http://127.0.0.1:{port}/").text)
            finally:
                process.terminate()
                self.assertIn(b"level=debug", process.communicate(timeout=DEADLINE)[1])
            self.assertEqual(process.returncode, 0)

    def test_its_version(self):
        done = self.run_alone("-version")
        self.assertEqual(done.returncode, 0)
        self.assertIn("sonde", done.stdout)

    def test_mistakes_are_told(self):
        url = "--prometheus.url=http://127.0.0.1:1"
        for flags, words in (((), "where is the Prometheus"), ((url, "-timerange", "1"), "like 1m"), ((url, "-timerange", "1m]"), "like 1m"),
                             ((url, "-timerange", "1.5m"), "like 1m"), ((url, "-timerange", "30m1h"), "like 1m"),
                             ((url, "-port", "70000"), "65535"), ((url, "-port", "0"), "65535"),
                             ((url, "-port", "9999", "--web.listen-address=127.0.0.1:1"), "leave one out"),
                             ((url, "--no-collector.lustre"), "nothing is left"), ((url, "--lustre.jobid-format=%q"), "%q"),
                             (("--prometheus.url=ftp://x",), "http"), ((url, "-log", "LOUD"), "TRACE")):
            done = self.run_alone(*flags)
            self.assertIn(words, done.stderr, flags)
            self.assertNotEqual(done.returncode, 0, flags)

    def test_passwords_and_tokens(self):
        with tempfile.TemporaryDirectory() as directory:
            secret = pathlib.Path(directory, "secret")
            secret.write_text("s3cret\n")
            with Lustre(f"--prometheus.url={self.prometheus.url}", f"--prometheus.bearer-file={secret}", path=self.commands.path) as lustre:
                lustre.metrics()
                self.assertNotIn("s3cret", lustre.log())
            self.assertEqual({authorization for *_, authorization in self.prometheus.asked}, {"Bearer s3cret"})
            self.prometheus.asked.clear()
            with Lustre(f"--prometheus.url={self.prometheus.url}/select/0", "--prometheus.user=me", f"--prometheus.password-file={secret}",
                        path=self.commands.path) as lustre:
                lustre.metrics()
            self.assertEqual({(path, authorization) for path, _, authorization in self.prometheus.asked},
                             {("/select/0/api/v1/query", "Basic bWU6czNjcmV0")})

    def test_a_reload_asks_another_prometheus(self):
        with tempfile.TemporaryDirectory() as directory, StandIn() as other:
            file = pathlib.Path(directory, "sonde.yml")
            file.write_text(f"prometheus.url: {self.prometheus.url}\nslurm.poll-limit: 1ms\nslurm.timeout: 1h\n")
            lustre = self.enterContext(Lustre(f"--config.file={file}", path=self.commands.path))
            lustre.metrics()
            self.assertTrue(self.prometheus.asked)
            file.write_text(f"prometheus.url: {other.url}\nslurm.poll-limit: 1ms\n")
            self.assertEqual(lustre.get("/-/reload", method="POST").status, 200)
            lustre.metrics()
            self.assertTrue(other.asked)


if __name__ == "__main__":
    import tap
    tap.main()
