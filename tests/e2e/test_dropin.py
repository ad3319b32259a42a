#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""In the place of prometheus-slurm-exporter: its name, its flags, its environment, its formats."""
import pathlib
import subprocess
import tempfile
import unittest

from sonde import BUILD, DEADLINE, Exporter, FakeCommands, job, node, run_exporter

MIB = 1 << 20

# As its squeue -o prints them: nothing in a field is escaped.
SQUEUE = [
    '{"a": "physics", "id": 101, "end_time": "2026-11-15T20:00:00", "u": "alice", "state": "RUNNING", "p": "cpu",'
    ' "cpu": 4, "mem": "8G", "array_id": "N/A", "r": "n[1-2]"}',
    '{"a": "physics", "id": 102, "end_time": "N/A", "u": "alice", "state": "PENDING", "p": "cpu,gpu",'
    ' "cpu": 2, "mem": "4000M", "array_id": "N/A", "r": "(Priority)"}',
    # a number of megabytes without saying so, a suffix per CPU, a time that is not known: each lost the whole job there
    '{"a": "bio", "id": 103, "end_time": "NONE", "u": "bob", "state": "RUNNING", "p": "gpu",'
    ' "cpu": 1, "mem": "500", "array_id": "7", "r": "n3"}',
    '{"a": "bio", "id": 104, "end_time": "Unknown", "u": "bob", "state": "RUNNING", "p": "gpu",'
    ' "cpu": 3, "mem": "100Mc", "array_id": "8", "r": "n3"}',
    # quotes and backslashes in a reason
    '{"a": "bio", "id": 105, "end_time": "N/A", "u": "carol", "state": "PENDING", "p": "gpu",'
    ' "cpu": 1, "mem": "1G", "array_id": "N/A", "r": "(Held "by" C:\\temp)"}',
    # two lines of one waiting array
    '{"a": "bio", "id": 106, "end_time": "N/A", "u": "carol", "state": "PENDING", "p": "gpu",'
    ' "cpu": 1, "mem": "1G", "array_id": "1", "r": "(ReqNodeNotAvail, UnavailableNodes:n[4-9])"}',
    '{"a": "bio", "id": 106, "end_time": "N/A", "u": "carol", "state": "PENDING", "p": "gpu",'
    ' "cpu": 1, "mem": "1G", "array_id": "2", "r": "(ReqNodeNotAvail, UnavailableNodes:n4)"}',
]
SINFO = [
    '{"s": "mixed", "mem": 16000, "n": "n1", "l": "1.50", "p": "cpu", "fmem": "9000", "cstate": "4/4/0/8", "w": 10}',
    '{"s": "idle", "mem": 16000, "n": "n2", "l": "N/A", "p": "cpu", "fmem": "N/A", "cstate": "0/8/0/8", "w": 1}',
    '{"s": "mixed", "mem": 32000, "n": "n3", "l": "2.25", "p": "gpu", "fmem": "1000", "cstate": "4/12/0/16", "w": 5}',
    '{"s": "mixed", "mem": 32000, "n": "n3", "l": "2.25", "p": "cpu", "fmem": "1000", "cstate": "4/12/0/16", "w": 5}',
    '{"s": "down*", "mem": 32000, "n": "n4", "l": "N/A", "p": "gpu", "fmem": "N/A", "cstate": "nonsense", "w": 5}',
]
LICENSES = """{"meta": {}, "licenses": [
 {"LicenseName": "matlab", "Total": 10, "Used": 10, "Free": 0, "Remote": true, "Reserved": 2,
  "LastConsumed": 0, "LastDeficit": 0, "LastUpdate": 0}]}"""
SDIAG = """{"statistics": {"server_thread_count": 3, "dbd_agent_queue_size": 7, "bf_backfilled_jobs": 11,
 "bf_cycle_counter": 5, "bf_cycle_sum": 999, "bf_last_depth": 40, "bf_last_depth_try": 12,
 "rpcs_by_message_type": [
  {"message_type": "REQUEST_JOB_INFO", "type_id": 2003, "count": 9, "total_time": 900,
   "average_time": {"set": true, "infinite": false, "number": 100}},
  {"message_type": "REQUEST_PING", "type_id": 1008, "count": 0, "total_time": 0,
   "average_time": {"set": false, "infinite": false, "number": 0}}],
 "rpcs_by_user": [{"user": "alice", "user_id": 1000, "count": 4, "average_time": 25, "total_time": 100}]},
 "meta": {"plugin": {"data_parser": "data_parser/v0.0.41"}}, "errors": [], "warnings": []}"""
LIMITS = "|root||||\n|physics|200|4000|10|100\nalice|physics|50|||\n|bio|||5|\n|bio|1|||\n"


class DropIn(unittest.TestCase):
    def file(self, name, text):
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), name)
        path.write_text(text)
        return path

    def start(self, *flags, squeue=None, sinfo=None):
        squeue = self.file("squeue.txt", "\n".join(SQUEUE if squeue is None else squeue) + "\n")
        sinfo = self.file("sinfo.txt", "\n".join(SINFO if sinfo is None else sinfo) + "\n")
        return self.enterContext(Exporter(f"-slurm.squeue-cli=cat {squeue}", f"-slurm.sinfo-cli=cat {sinfo}", *flags))

    def assert_values(self, answer, expected):
        samples = answer.samples()
        self.assertEqual({series: samples.get(series) for series in expected},
                         {series: str(value) for series, value in expected.items()})

    def test_its_squeue_format_is_read_and_no_job_is_lost(self):
        answer = self.start().metrics()
        self.assert_values(answer, {
            "job_scrape_errors": 0,
            "slurm_job_scrape_error": 0,
            'slurm_job_count_per_state{state="RUNNING"}': 3,
            'slurm_job_count_per_state{state="PENDING"}': 4,
            'slurm_user_state_total{username="alice",state="RUNNING"}': 1,
            'slurm_user_state_total{username="carol",state="PENDING"}': 3,
            'slurm_user_cpu_alloc{username="bob",state="RUNNING"}': 4,
            'slurm_user_mem_alloc{username="alice",state="RUNNING"}': 8 << 30,
            'slurm_user_mem_alloc{username="alice",state="PENDING"}': 4000 * MIB,
            'slurm_user_mem_alloc{username="bob",state="RUNNING"}': (500 + 3 * 100) * MIB,
            'slurm_account_cpu_alloc{account="physics"}': 4,
            'slurm_account_mem_alloc{account="bio"}': 800 * MIB,
            'slurm_account_job_state_total{account="bio",state="PENDING"}': 3,
            'slurm_account_job_state_cpu_alloc{account="physics",state="PENDING"}': 2,
            'slurm_account_job_state_mem_alloc{account="physics",state="PENDING"}': 4000 * MIB,
            'slurm_partition_job_state_total{partition="cpu",state="PENDING"}': 1,
            'slurm_partition_job_state_total{partition="gpu",state="PENDING"}': 4,
            'slurm_pending_reason_total{reason="Priority"}': 1,
            'slurm_pending_reason_total{reason="(ReqNodeNotAvail, UnavailableNodes)"}': 2,
            r'slurm_pending_reason_total{reason="Held \"by\" C:\\temp"}': 1,
        })
        self.assertNotIn("slurm_feature_", answer.text)  # its format does not tell

    def test_its_sinfo_format_is_read_and_a_bad_column_loses_only_itself(self):
        answer = self.start().metrics()
        self.assert_values(answer, {
            "slurm_node_scrape_error": 1,
            "slurm_cpus_total": 32,
            "slurm_cpus_idle": 24,
            "slurm_cpu_load": 3.75,
            "slurm_mem_real": 96000 * MIB,
            "slurm_mem_free": 10000 * MIB,
            'slurm_node_count_per_state{state="mixed"}': 2,
            'slurm_node_count_per_state{state="down"}': 1,
            'slurm_cpus_per_state{state="mixed"}': 24,
            'slurm_partition_total_cpus{partition="cpu"}': 32,
            'slurm_partition_node_count{partition="gpu",state="mixed"}': 1,
            'slurm_partition_node_count{partition="gpu",state="down"}': 1,
            'slurm_partition_alloc_cpus{partition="cpu",state="mixed"}': 8,
            'slurm_partition_weight{partition="cpu"}': 16,
        })
        self.assertNotIn("slurm_mem_alloc", answer.samples())  # nor does it tell what is allocated

    def test_an_empty_queue_is_an_answer(self):
        answer = self.start(squeue=[]).metrics()
        self.assertEqual(answer.value('slurm_job_count_per_state{state="RUNNING"}'), 0)
        self.assertEqual(answer.value("job_scrape_errors"), 0)

    def test_lines_that_cannot_be_read_are_counted_and_lose_nothing_else(self):
        answer = self.start(squeue=["", "slurm_load_jobs error", *SQUEUE, '{"id": 0}']).metrics()
        self.assertEqual(answer.value('slurm_job_count_per_state{state="RUNNING"}'), 3)
        self.assertGreaterEqual(answer.value("job_scrape_errors"), 2)

    def test_its_other_commands_can_be_given_too(self):
        answer = self.start(
            f"-slurm.lic-cli=cat {self.file('lic.json', LICENSES)}", "-slurm.collect-licenses",
            f"-slurm.diag-cli=cat {self.file('sdiag.json', SDIAG)}", "-slurm.collect-diags",
            f"-slurm.sacctmgr-cli=cat {self.file('limits.txt', LIMITS)}", "-slurm.collect-limits").metrics()
        self.assert_values(answer, {
            'slurm_lic_total{name="matlab"}': 10,
            'slurm_lic_used{name="matlab"}': 10,
            'slurm_lic_free{name="matlab"}': 0,
            'slurm_lic_reserved{name="matlab"}': 2,
            'slurm_lic_last_deficit{name="matlab"}': 0,
            "slurm_lic_scrape_error": 0,
            "slurm_daemon_thread_count": 3,
            "slurm_dbd_agent_queue_size": 7,
            "slurm_backfill_job_count": 11,
            "slurm_backfill_cycle_count": 5,
            "slurm_backfill_cycle_counter": 5,
            "slurm_backfill_last_depth": 40,
            "slurm_backfill_last_depth_try_sched": 12,
            'slurm_rpc_msg_type_count{type="REQUEST_JOB_INFO"}': 9,
            'slurm_rpc_msg_type_avg_time{type="REQUEST_JOB_INFO"}': 100,
            'slurm_rpc_msg_type_total_time{type="REQUEST_JOB_INFO"}': 900,
            'slurm_rpc_user_count{user="alice"}': 4,
            'slurm_rpc_user_total_time{user="alice"}': 100,
            "slurm_diag_scrape_error": 0,
            'slurm_account_cpu_limit{account="physics"}': 200,
            'slurm_account_mem_limit{account="physics"}': 4000 * MIB,
            'slurm_account_job_alloc_limit{account="physics"}': 10,
            'slurm_account_job_limit{account="physics"}': 100,
            'slurm_account_job_alloc_limit{account="bio"}': 5,
            "slurm_account_collect_error": 0,
        })
        self.assertIn("slurm_diag_scrape_duration", answer.samples())
        self.assertIn("slurm_limit_scrape_duration", answer.samples())

    def test_what_it_collects_can_be_switched_off(self):
        answer = self.start(f"-slurm.diag-cli=cat {self.file('sdiag.json', SDIAG)}", "-slurm.collect-diags=false").metrics()
        self.assertNotIn("slurm_daemon_thread_count", answer.samples())

    def test_metrics_are_excluded_by_their_names(self):
        answer = self.start("-metrics.exclude=^slurm_user_|_mem_|^process_").metrics()
        names = {series.split("{")[0] for series in answer.samples()}
        self.assertEqual({name for name in names if name.startswith(("slurm_user_", "process_")) or "_mem_" in name}, set())
        self.assertIn("slurm_cpus_total", names)
        self.assertNotIn("# HELP slurm_user_", answer.text)
        done = run_exporter("-metrics.exclude=slurm_(cpus")
        self.assertEqual(done.returncode, 2)
        self.assertIn("metrics.exclude", done.stderr)

    def test_its_name_and_all_its_flags_and_variables_are_understood(self):
        squeue = self.file("squeue.txt", "\n".join(SQUEUE) + "\n")
        link = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "prometheus-slurm-exporter")
        link.symlink_to(BUILD / "src/sonde")
        done = subprocess.run(
            [link, "-web.listen-address=127.0.0.1:0", "-web.telemetry-path", "/m", "-web.log-level=debug",
             "-slurm.poll-limit=1", f"-slurm.squeue-cli=cat {squeue}", "-slurm.cli-fallback",
             "-slurm.collect-licenses", "-slurm.collect-diags", "-slurm.collect-limits", "-metrics.exclude=x",
             "-trace.enabled", "-trace.path=/t", "-trace.rate=5", "-help"],
            capture_output=True, text=True, timeout=DEADLINE,
            env={"PATH": "/usr/bin:/bin", "POLL_LIMIT": "0", "LOGLEVEL": "warn", "CLI_TIMEOUT": "0.5", "TRACE_ROOT_PATH": "/x"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_without_a_poll_limit_every_scrape_asks(self):
        with FakeCommands(f"echo x >>\"$(dirname \"$0\")/count\"; answer '{job()}'", f"answer '{node()}'") as commands, \
                Exporter(path=commands.path, env={"POLL_LIMIT": "0"}) as exporter:
            for _ in range(3):
                exporter.metrics()
            self.assertEqual(len(pathlib.Path(commands.path, "count").read_text().splitlines()), 3)


if __name__ == "__main__":
    import tap
    tap.main()
