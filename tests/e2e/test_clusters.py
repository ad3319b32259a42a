#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Several clusters in one exporter: each has its door, its name as a label, and its own failures."""
import pathlib
import signal
import tempfile
import unittest

from prometheus_client import parser as text_parser
from prometheus_client.openmetrics import parser as openmetrics_parser

from clock import Clock
from sonde import Exporter, FakeCommands, job, node, run_exporter, wait_until

OPENMETRICS = "application/openmetrics-text;version=1.0.0"


class Bare(Exporter):
    """Whose file says which door it takes."""

    @staticmethod
    def complete(flags):
        return flags


class Clusters(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def file(self, name, text):
        (self.directory / f"{name}.yml").write_text(text)
        return f"--cluster.file={self.directory / name}.yml"

    def fake(self, name, **scripts):
        commands = self.enterContext(FakeCommands(**scripts))
        return commands, self.file(name, f"source: cli\nslurm: {{bin-path: {commands.path}, timeout: 1h}}\n")

    def exporter(self, *flags, **arguments):
        return self.enterContext(Bare(*flags, **arguments))


class Several(Clusters):
    def test_somebody_elses_parsers_read_what_all_of_them_say(self):
        exporter = self.exporter("--slurm.poll-limit=1h", *(self.file(name, f"source: sim:nodes=50,jobs={jobs},seed={jobs}\nslurm.timeout: 1h\n")
                                                            for name, jobs in (("beluga", 300), ("cedar", 200), ("graham", 100))))
        plain = exporter.metrics()
        for accept, parse in (("text/plain", text_parser), (OPENMETRICS, openmetrics_parser)):
            for encoding in ("identity", "gzip"):
                answer = exporter.metrics(Accept=accept, Accept_Encoding=encoding)
                families = list(parse.text_string_to_metric_families(answer.text))
                self.assertEqual(len(families), len({family.name for family in families}))
                self.assertEqual({name for name in answer.samples().keys() ^ plain.samples().keys() if "_bucket{" not in name},
                                 set())
                self.assertEqual({sample.labels["cluster"] for family in families for sample in family.samples
                                  if family.name.startswith("slurm_")}, {"beluga", "cedar", "graham"})
        totals = {dict(labels)["cluster"]: value for labels, value in plain.families()["slurm_partition_job_state_total"].items()}
        self.assertEqual(totals.keys(), {"beluga", "cedar", "graham"})
        # What is of no cluster has no name of one.
        self.assertIn("process_resident_memory_bytes", plain.samples())
        self.assertRegex(exporter.get("/").text, "3 clusters: beluga, cedar, graham")

    def test_equal_jobs_of_two_clusters_are_told_apart(self):
        flags = [self.fake(name, squeue=f"answer '{job(tres_alloc=f'cpu={cpus},node=1')}'", sinfo=f"answer '{node()}'")[1]
                 for name, cpus in (("a", 4), ("b", 8))]
        answer = self.exporter(*flags).metrics()
        self.assertEqual(answer.families()["slurm_account_cpu_alloc"],
                         {(("cluster", "a"), ("account", "physics")): 4, (("cluster", "b"), ("account", "physics")): 8})

    def test_the_failures_of_one_are_its_own(self):
        scripts = {"squeue": f"answer '{job()}'", "sinfo": f"answer '{node()}'"}
        good, good_flag = self.fake("good", **scripts)
        bad, bad_flag = self.fake("bad", squeue="echo 'no controller' >&2; exit 1")
        bad.hold("sinfo")
        clock = self.enterContext(Clock())
        exporter = self.exporter(good_flag, bad_flag, "--slurm.poll-limit=1m", "--slurm.stale-limit=10m", env=clock.env)

        def is_answered():
            """Of those that answer, whatever the other one does."""
            families = exporter.metrics(X_Prometheus_Scrape_Timeout_Seconds="1").families()
            up = {(dict(labels)["cluster"], dict(labels)["kind"]): value for labels, value in families["sonde_source_up"].items()}
            return [up.get(key) for key in (("good", "jobs"), ("good", "nodes"), ("bad", "jobs"))] == [1, 1, 0] and families
        families = wait_until(is_answered, "one is told, the other is not")
        bad.wait_held("sinfo")
        self.assertEqual(families["slurm_cpus_total"], {(("cluster", "good"),): 8})
        bad.release("sinfo")
        wait_until(lambda: "no controller" in exporter.log(), "why is told")
        for name, script in scripts.items():
            bad.set(name, script)

        def cpus():
            clock.advance(60)
            return exporter.metrics().families().get("slurm_cpus_total", {})
        wait_until(lambda: cpus() == {(("cluster", "bad"),): 8, (("cluster", "good"),): 8}, "it is back")
        good.set("squeue", "exit 1")
        clock.advance(600)
        wait_until(lambda: {dict(labels)["cluster"] for labels in exporter.metrics().families()["slurm_user_cpu_alloc"]} == {"bad"},
                   "old values of one are withdrawn")

    def test_only_the_jobs_of_some_accounts_and_users_are_ours(self):
        jobs = "".join(job(JobID=str(i), ArrayJobID=str(i), Account=account, UserName=user) for i, (account, user) in enumerate(
            [("def-bengio", "ann"), ("def-bengio-gpu", "bob"), ("other", "cyd"), ("other", "eve"), ("xdef-bengio", "fay")], 1))
        _, flag = self.fake("foreign", squeue=f"answer '{jobs}'", sinfo=f"answer '{node()}'")
        with open(self.directory / "foreign.yml", "a", encoding="ascii") as settings:
            settings.write("jobs:\n  accounts: ['def-bengio.*']\n  users: [eve]\n")
        _, own = self.fake("own", squeue=f"answer '{job(UserName='zoe')}'", sinfo=f"answer '{node()}'")
        families = self.exporter(flag, own).metrics().families()
        self.assertEqual({(dict(labels)["cluster"], dict(labels)["username"]) for labels in families["slurm_user_cpu_alloc"]},
                         {("foreign", "ann"), ("foreign", "bob"), ("foreign", "eve"), ("own", "zoe")})
        self.assertEqual(families["slurm_cpus_total"][("cluster", "foreign"),], 8)

    def test_a_reload_takes_another_cluster_in(self):
        flag = self.file("one", "source: sim:nodes=5,jobs=5\n")
        settings = self.directory / "sonde.yml"
        settings.write_text(f"cluster.file: [{flag.partition('=')[2]}]\n")
        exporter = self.enterContext(Bare(f"--config.file={settings}"))
        self.assertNotIn('cluster="two"', exporter.metrics().text)
        self.assertIn("process_resident_memory_bytes", exporter.metrics().samples())
        two = self.file("two", "source: sim:nodes=7,jobs=5\n")
        settings.write_text(f"cluster.file: [{flag.partition('=')[2]}, {two.partition('=')[2]}]\n")
        exporter.process.send_signal(signal.SIGHUP)
        wait_until(lambda: 'cluster="two"' in exporter.metrics().text, "both are told")


    def test_a_reload_does_not_pretend_to_ask_slurmdbd_otherwise(self):
        settings = self.directory / "sonde.yml"
        text = f"demo: true\nstore: sqlite:{self.directory}/store.db\n"
        settings.write_text(text)
        exporter = self.exporter(f"--config.file={settings}")
        for line in ("store.history: false", "store.history-interval: 1h", "store.history-timeout: 1h",
                     "store.history-from: 2026-01-01"):
            before = exporter.log().count("how slurmdbd is asked")
            settings.write_text(f"{text}{line}\n")
            exporter.process.send_signal(signal.SIGHUP)
            wait_until(lambda n=before: exporter.log().count("how slurmdbd is asked") > n, f"{line} is refused")


class Mistakes(Clusters):
    def refused(self, words, *flags):
        done = run_exporter(*flags, "--web.listen-address=127.0.0.1:0")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, words)

    def test_a_file_with_a_mistake_is_named_with_its_line(self):
        self.refused(r"a\.yml:2: .*slurm\.bin-pth.*slurm\.bin-path", self.file("a", "source: cli\nslurm.bin-pth: /\n"))
        self.refused(r"missing\.yml", f"--cluster.file={self.directory}/missing.yml")
        self.refused(r"a\.yml: .*pattern|a\.yml: --jobs", self.file("a", "jobs.accounts: ['(']\n"))
        self.refused("cluster.name has letters", self.file("a", "cluster.name: 'a\"b'\n"))
        self.refused("say in cluster.name", self.file(".a", "demo: true\n"))

    def test_what_holds_for_all_clusters_is_refused_in_the_file_of_one(self):
        for key, value in (("slurm.poll-limit", "30s"), ("store", "sqlite:/x"), ("store.interval", "1m"), ("web.listen-address", ":1")):
            self.refused(rf"a\.yml:1: {key} does not belong here: it holds for all clusters, as a flag", self.file("a", f"{key}: '{value}'\n"))

    def test_what_is_for_a_store_is_refused_without_one(self):
        for key, value in (("store.retention", "90d"), ("store.max-size", "1G"), ("store.interval", "30s"), ("store.history", "false"),
                           ("store.history-from", "2026-01-01"), ("ingest.token-file", "/x"), ("allocations.file", "/x")):
            self.refused(f"--{key} is for a store, and there is none: say where with --store", "--demo", f"--{key}={value}")
            self.refused(f"--{key} is for a store", "--demo", "--store=", f"--{key}={value}")
        self.refused(r"a\.yml: store.retention and store.max-size are for a store", self.file("a", "demo: true\nstore.retention: 3y\n"))

    def test_two_of_one_name_are_none(self):
        self.refused('another cluster "a"', self.file("a", "demo: true\n"), self.file("b", "demo: true\ncluster.name: a\n"))

    def test_what_is_for_one_cluster_is_refused_for_several(self):
        flag = self.file("a", "demo: true\n")
        store = f"--store=sqlite:{self.directory}/store.db"
        for key, value in (("source", "cli"), ("store.retention", "90d"), ("store.max-size", "1G"), ("slurm.conf", "/etc/slurm.conf"),
                           ("slurm.timeout", "10s"), ("slurm.prefix", "ssh a"), ("cluster.name", "a"), ("jobs.users", "ann")):
            self.refused(f"--{key} is of one cluster: .*file of each, as the key {key}", flag, store, f"--{key}={value}")
        self.refused("run another", flag, "--trace.enabled")
        self.refused("run sonde lustre for each", flag, "--prometheus.url=http://localhost:9090")

    def test_simulated_and_real_ones_are_not_kept_together(self):
        self.refused("simulated and real", self.file("a", "demo: true\n"), self.file("b", "source: cli\n"),
                     f"--store=sqlite:{self.directory}/store.db")


class Profile(Clusters):
    NODES = "".join([
        node(NodeList="cn-a006", StateComplete="mixed", CPUsState="32/48/0/80", Gres="gpu:rtx8000:8(S:0-1)",
             GresUsed="gpu:rtx8000:8(IDX:0-7)"),
        node(NodeList="cn-a007", StateComplete="idle+drain", CPUsState="0/0/80/80", Gres="gpu:rtx8000:8(S:0-1)",
             GresUsed="gpu:rtx8000:0(IDX:N/A)")])

    def test_the_metrics_of_another_are_there_for_who_asks(self):
        commands = self.enterContext(FakeCommands(squeue=f"answer '{job()}{job(JobID='2', State='PENDING', NodeList='')}'",
                                                  sinfo=f"answer '{self.NODES}'"))
        exporter = self.enterContext(Exporter("--metrics.prefix=mila_", path=commands.path))
        usual = exporter.metrics()
        self.assertNotIn("slurm_cpus_drain", usual.families())
        theirs = exporter.get("/metrics?profile=mila").families()
        none = ("reservation", "None")
        self.assertEqual([theirs[f"slurm_cpus_{word}"][(none,)] for word in ("alloc", "idle", "drain", "total")], [32, 48, 80, 160])
        gpus = [theirs[f"slurm_gpus_{word}"][(("type", "rtx8000"), none)] for word in ("alloc", "idle", "drain", "total")]
        self.assertEqual(gpus, [8, 0, 8, 16])
        self.assertEqual({dict(labels)["name"]: count for labels, count in theirs["mila_slurm_job_states"].items() if count},
                         {"running": 1, "pending": 1})
        self.assertEqual(theirs["slurm_node_states"][(("name", "cn-a007"), ("slurm_node_states", "drained"))], 1)
        self.assertNotIn("slurm_user_state_total", theirs)
        self.assertIn("sonde_source_up", theirs)
        self.assertEqual(exporter.metrics().families().keys() - usual.families().keys() - {"sonde_source_errors_total"}, set())
        self.assertEqual(exporter.get("/metrics?profile=nobody").status, 400)

    def test_a_flag_makes_it_the_usual_one(self):
        exporter = self.enterContext(Exporter("--demo", "--metrics.profile=mila"))
        families = exporter.metrics().families()
        self.assertIn("slurm_job_states", families)
        self.assertNotIn("slurm_user_state_total", families)
        done = run_exporter("--demo", "--metrics.profile=nobody")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is: mila", done.stderr)


if __name__ == "__main__":
    import tap
    tap.main()
