#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""That every number on /metrics is the one that Slurm's own commands give: families.py computes each a second time.

SONDE_SUITES names the Debian releases to try, as for test_sandbox.py.
"""
import contextlib
import json
import pathlib
import re
import subprocess
import tempfile
import unittest
import urllib.parse

from families import FAMILIES, OF_DIAG, OF_FACTS, OF_MILA, differences, moved
from invariants import EQUATIONS
from slurm import SUITES, Diag, Facts, Slurm, read_jobs
from sonde import DEADLINE, ROOT, Exporter, http_get, own_host, tables, wait_until

ALWAYS_ASK = [f"--slurm.{kind}poll-limit=1ms" for kind in ("", "shares-", "associations-", "reservations-", "config-")]


class Moment:
    """A scrape, and what Slurm said right before and right after it."""

    def __init__(self, slurm, exporter, rows, ask, query=""):
        self.rows = rows
        self.before = ask(slurm)
        self.families = exporter.get(f"/metrics{query}").families()
        self.after = ask(slurm)

    @classmethod
    def at_rest(cls, slurm, exporter, rows, *arguments):
        """Between two cycles of the schedulers."""
        def look():
            moment = cls(slurm, exporter, rows, *arguments)
            return None if moved(rows, moment.before, moment.after) else moment
        return wait_until(look, "the cluster comes to rest")

    def differences(self):
        return "\n".join(words for name, row in self.rows.items()
                         for words in differences(name, row, self.before, self.after, self.families.get(name, {})))


class Numbers:
    """The tests; a class for each suite is made below. The cluster is calm: all that is compared must fit between two changes."""

    suite = None
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.slurm = Slurm(cls.suite)
        cls.addClassCleanup(cls.slurm.end)
        cls.slurm.calm()
        cls.exporter = Exporter(*ALWAYS_ASK, path=cls.slurm.env["SANDBOX_BIN"])
        cls.addClassCleanup(cls.exporter.stop)
        cls.moment = Moment.at_rest(cls.slurm, cls.exporter, OF_FACTS, Facts)

    def another_exporter(self, *flags, **options):
        return self.enterContext(Exporter(*flags, **{"path": self.slurm.env["SANDBOX_BIN"], **options}))

    def submit(self, user, name, script, state):
        """A job of one CPU where there is room, as soon as it is in that state; gives its id."""
        done = self.slurm.run("sbatch", "--parsable", "-D/", "-pgpu", "-n1", "-t5", "-o/dev/null", "-J", name,
                              "--wrap", script, user=user)
        job_id = int(done.stdout)
        self.addCleanup(self.slurm.run, "scancel", str(job_id))
        wait_until(lambda: f"JobState={state}" in self.slurm.run("scontrol", "show", "job", str(job_id)).stdout,
                   f"job {job_id} is {state}")
        return job_id

    def test_every_number_is_what_slurm_says(self):
        self.assertEqual(self.moment.differences(), "")

    def test_every_number_of_the_scheduler_is_what_sdiag_says(self):
        """Apart from the others, so that there is a moment between two of its cycles; by an exporter of its own, which has not seen
        a slurmctld that another test has ended."""
        exporter = self.another_exporter(*ALWAYS_ASK)
        wait_until(lambda: Diag(self.slurm).backfill["Total cycles"], "there was a cycle of backfill")
        first_look = Moment(self.slurm, exporter, OF_DIAG, Diag)
        cycles = first_look.after.main["Total cycles"]
        self.submit("mallory", "cycle", "exit 5", "FAILED")
        wait_until(lambda: Diag(self.slurm).main["Total cycles"] > cycles, "there was another cycle")
        moment = Moment.at_rest(self.slurm, exporter, OF_DIAG, Diag, "?collect[]=diag&collect[]=scheduler")
        moment.before.first_look = first_look
        self.assertEqual(moment.differences(), "")

    def test_every_number_of_mila_is_what_slurm_says(self):
        moment = Moment.at_rest(self.slurm, self.exporter, OF_MILA, Facts, "?profile=mila")
        self.assertEqual(moment.differences(), "")
        self.assertNotIn("slurm_node_count_per_state", moment.families)  # of the usual profile

    def test_what_jobs_hold_by_state_is_what_their_nodes_have_allocated(self):
        """Whoever adds up the states that are not pending gets what scontrol show node calls allocated: nothing of the jobs that have
        ended and are still listed, no CPUs of the suspended one."""
        nodes = self.moment.before.nodes
        ended = [job for job in self.moment.before.jobs if job.state in ("CANCELLED", "COMPLETED", "FAILED")]
        self.assertGreater(sum(job.tres["cpu"] for job in ended), 0)
        self.assertIn("SUSPENDED", [job.state for job in self.moment.before.jobs])
        for cpus, memory in (("slurm_user_cpu_alloc", "slurm_user_mem_alloc"),
                             ("slurm_account_job_state_cpu_alloc", "slurm_account_job_state_mem_alloc"),
                             ("slurm_partition_job_cpus", "slurm_partition_job_memory_bytes"),
                             ("slurm_qos_job_cpus", "slurm_qos_job_memory_bytes")):
            for family, allocated in ((cpus, sum(node.cpus_allocated for node in nodes)),
                                      (memory, sum(node.memory_allocated for node in nodes))):
                held = sum(value for series, value in self.moment.families[family].items() if dict(series)["state"] != "PENDING")
                self.assertEqual(held, allocated, family)

    def test_a_node_in_use_that_is_to_fail_is_called_as_sinfo_calls_it(self):
        """Of which some CPUs are idle: before Slurm 25.11.1 it is fail, then failing."""
        node = next(node.name for node in self.moment.before.nodes if node.base == "mixed" and not node.flags)
        self.slurm.run("scontrol", "update", f"nodename={node}", "state=fail", "reason=test")
        self.addCleanup(self.slurm.run, "scontrol", "update", f"nodename={node}", "state=resume")
        rows = {name: OF_FACTS[name] for name in ("slurm_node_count_per_state", "slurm_cpus_per_state", "slurm_gpus_per_state")}
        moment = Moment.at_rest(self.slurm, self.exporter, rows, Facts)
        self.assertEqual(moment.differences(), "")
        told = self.slurm.run("sinfo", "-h", "-n", node, "-o", "%T").stdout.split()[0].rstrip("*~#!%$@^-")
        self.assertEqual(told, "failing" if self.slurm.release >= (26, 5) else "fail")
        states = {dict(series)["state"]: value for series, value in moment.families["slurm_node_count_per_state"].items()}
        self.assertEqual(states[told], 1)

    def test_every_family_is_compared(self):
        needed = "each family needs a row in families.py, and each row a family"
        shown = {re.sub("(?<=slurm_job_wait_seconds)_.*", "", name) for name in self.moment.families
                 if name.startswith("slurm_")}
        self.assertEqual(shown - FAMILIES.keys(), set(), needed)
        listed = set(tables()["self"]).union(*(row["families"] for row in tables()["collectors"]
                                               if not row["profile"] and row["name"] not in ("ended", "allocations")))
        self.assertEqual({name for name in listed if name.startswith("slurm_")}, FAMILIES.keys(), needed)

    def test_every_equation_is_checked(self):
        """But those of shards, of which the sandbox has none."""
        exporter = self.another_exporter()
        exporter.metrics()
        exporter.get("/metrics?profile=mila")
        of_cluster = {side for equation in EQUATIONS for side in equation.sums if side.families[0].startswith("slurm_") and "shards" not in str(side)}
        self.assertEqual({str(side) for side in of_cluster - exporter.scrapes.checked}, set())

    def test_nothing_is_missing_stale_hidden_or_folded(self):
        for name, value in (("sonde_source_up", 1), ("sonde_collector_success", 1), ("sonde_source_limited", 0),
                            ("sonde_source_skipped_records_total", 0), ("sonde_source_errors_total", 0),
                            ("sonde_source_warnings_total", 0), ("sonde_collector_duplicate_samples", 0),
                            ("sonde_collector_folded_series", 0)):
            for series, shown in self.moment.families.get(name, {}).items():
                self.assertEqual(shown, value, f"{name} {series}")
        kinds = [dict(series)["kind"] for series in self.moment.families["sonde_source_up"]]
        self.assertEqual(kinds, "nodes jobs reservations licenses diag shares associations config".split())

    def run_hostile_job(self):
        """What scontrol and sonde say before it and after it; None if meanwhile another's job has changed."""
        name = ('"} 1\nslurm_forged{a="\n' + "@0123456789abcdef@".join(
            ["4711", "4711", "N/A", "N/A", "N/A", "2001", "alice", "physics", "cpu", "normal", "RUNNING"])
            + "\n999999|cpu|forged|alice|RUNNING|\\\n")
        before, first = read_jobs(self.slurm), self.exporter.metrics().families()
        self.submit("mallory", name, "exit 5", "FAILED")
        second, after = self.exporter.metrics().families(), read_jobs(self.slurm)
        self.assertNotIn("forged", self.exporter.metrics().text)

        def of_others(jobs):
            return [(job.id, job.state, job.reason) for job in jobs if job.user != "mallory"]
        return (before, first, second, after) if of_others(before) == of_others(after) else None

    def test_a_hostile_job_changes_its_owners_numbers_only_and_its_wait_is_counted(self):
        before, first, second, after = wait_until(self.run_hostile_job, "nobody else's jobs change")

        def of_others(found):
            return {(family, series, value) for family in found if re.match("slurm_(user|account)_(?!fair)", family)
                    for series, value in found[family].items()
                    if not {"mallory", "guests"} & set(dict(series).values())}
        self.assertEqual(of_others(first) ^ of_others(second), set())
        self.assertGreater(len(of_others(first)), 50)
        failed = (("username", "mallory"), ("state", "FAILED"))
        counts = [found["slurm_user_state_total"].get(failed, 0) for found in (first, second)]
        self.assertEqual(counts[1], counts[0] + 1)

        old = {(job.id, job.start) for job in before if not job.is_pending}
        started, = [job for job in after if not job.is_pending and (job.id, job.start) not in old]
        wait = started.start - max(started.submit, started.eligible)

        def grown(name):
            return {series: value - first[name][series] for series, value in second[name].items()}
        for (partition,), count in grown("slurm_job_wait_seconds_count").items():
            self.assertEqual(count, partition == ("partition", "gpu"), partition)
        self.assertEqual(grown("slurm_job_wait_seconds_sum")[("partition", "gpu"),], wait)
        for (partition, (_, bound)), count in grown("slurm_job_wait_seconds_bucket").items():
            self.assertEqual(count, partition == ("partition", "gpu") and wait <= float(bound), (partition, bound))

    def test_what_a_job_tells_of_itself_stands_beside_what_slurm_gave_it(self):
        job_id = self.submit("dave", "traced", "sleep 300", "RUNNING")
        job = next(job for job in read_jobs(self.slurm) if job.id == job_id)
        body = {"job_id": job_id, "pid": 4711, "cpus": 150.5, "mem": 1 << 20, "read_bytes": 3, "write_bytes": 4,
                "threads": 5, "hostname": "c1", "period": 60}
        socket_path = f"{self.slurm.env['SANDBOX_STATE']}/run/munge/socket"
        exporter = self.another_exporter("--trace.enabled", f"--trace.munge-socket={socket_path}")
        exporter.metrics()

        def post(user):
            credential = self.slurm.run("munge", "-S", self.slurm.inside("run/munge/socket"), "-s", json.dumps(body),
                                        user=user).stdout
            return exporter.get("/trace", data=credential.encode(), method="POST")
        self.assertEqual(post("mallory").status, 403)
        self.assertEqual(exporter.metrics().families()["slurm_proc_cpu_usage"], {})
        answer = post("dave")
        self.assertEqual(answer.status, 200, answer.text)
        found = wait_until(lambda: (shown := exporter.metrics().families()) and shown["slurm_job_cpu_alloc"] and shown,
                           "it is shown")
        of_job, of_user = (("jobid", str(job_id)),), (("jobid", str(job_id)), ("username", "dave"))
        self.assertEqual(found["slurm_job_cpu_alloc"], {of_job: job.tres["cpu"]})
        self.assertEqual(found["slurm_job_mem_alloc"], {of_job: job.tres["mem"]})
        for name, value in (("cpu_usage", 150.5), ("mem_usage", 1 << 20), ("read_bytes", 3), ("write_bytes", 4),
                            ("threadcount", 5)):
            self.assertEqual(found[f"slurm_proc_{name}"], {of_user: value}, name)
        self.assertEqual(found["slurm_proc_pid"], {(("jobid", str(job_id)), ("hostname", "c1")): 4711})

    def exporter_as(self, user):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        return self.another_exporter(path=directory, starter=self.slurm.starter_as(user, directory))

    def test_what_private_data_hides_is_told(self):
        with self.slurm.private_data("jobs"):
            for user, hidden in (("root", {}), ("dave", {}), ("monitor", {"jobs": 1})):  # dave is an operator
                exporter = self.exporter_as(user)
                found = exporter.metrics().families()
                limited = {reason: value for ((_, reason),), value in found["sonde_source_limited"].items() if value}
                self.assertEqual(limited, hidden, user)
                self.assertEqual(sum(found["slurm_job_count_per_state"].values()) == 0, bool(hidden), user)
            wait_until(lambda: "PrivateData hides jobs" in exporter.log(), "it is logged")

    def prometheus(self, config):
        """A Prometheus of its own; gives a function that asks it."""
        address = f"{own_host()}:9090"
        state = self.enterContext(tempfile.TemporaryDirectory(dir=self.slurm.env["SANDBOX_STATE"]))
        inside = self.slurm.inside(pathlib.Path(state).name)
        pathlib.Path(state, "prometheus.yml").write_text(config)
        command = self.slurm.write_command(state, "prometheus")
        process = subprocess.Popen(
            [command, f"--config.file={inside}/prometheus.yml", f"--storage.tsdb.path={inside}/data",
             f"--web.listen-address={address}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait, DEADLINE)
        self.addCleanup(process.terminate)

        def query(expression, **at):
            url = f"http://{address}/api/v1/query?" + urllib.parse.urlencode({"query": expression, **at})
            with contextlib.suppress(OSError):
                answer = http_get(url)
                return json.loads(answer.text)["data"]["result"] if answer.status == 200 else []
            return []  # it has not started yet
        return query

    def test_prometheus_shows_them_with_the_configuration_of_the_readme(self):
        config, = re.findall(r"```yaml\n(scrape_configs:\n.*?)```", (ROOT / "README.md").read_text(), re.S)
        # A poll limit that outlasts the test: what is scraped is then what is shown here.
        exporter = self.another_exporter("--slurm.poll-limit=10m")
        config, targets = re.subn(r'"[\w.-]+:9092"', f'"127.0.0.1:{exporter.port}"', config)
        config, intervals = re.subn(r"scrape_interval: \w+", "scrape_interval: 1s", config)
        self.assertEqual((targets, intervals), (1, 1))

        def same(label, value):  # bounds are 1.0 in OpenMetrics, which Prometheus asks for
            return label, str(float(value)) if label == "le" else value
        shown = {(family, frozenset(same(label, value) for label, value in series if value)): value
                 for family, found in exporter.metrics().families().items() if family.startswith("slurm_")
                 for series, value in found.items()}
        query = self.prometheus(config)
        scraped, = wait_until(lambda: query("timestamp(slurm_cpus_total)"), "Prometheus has scraped it")
        stored = {}
        # As of that scrape: the next one may come late, and then nothing is shown.
        for row in query('{__name__=~"slurm_.*",job="sonde-exporter"}', time=scraped["value"][1]):
            labels = dict(same(label, value) for label, value in row["metric"].items() if label not in ("job", "instance"))
            stored[labels.pop("__name__"), frozenset(labels.items())] = float(row["value"][1])
        self.assertGreater(len(shown), 500)
        self.assertEqual(sorted(shown.items() ^ stored.items(), key=str), [])


for suite in SUITES:
    globals()[f"On_{suite}"] = type(f"On_{suite}", (Numbers, unittest.TestCase), {"suite": suite})


if __name__ == "__main__":
    import tap
    tap.main()
