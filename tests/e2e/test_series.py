#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What facts_series makes of a real Prometheus with samples of known jobs: a day, seconds, thousands of nodes."""
import math
import subprocess
import unittest

from prometheus import Prometheus
from sonde import BUILD

BEGIN = 1_700_000_000
DAY, HOUR, INTERVAL, LINGER = 86400, 3600, 15, 120
MIB, GIB = 1 << 20, 1 << 30
CLUSTER = 'cluster="a"'
PLOTS = ("cpu", "memory", "read", "written", "gpu", "gpu_memory", "gpu_power")


class Samples:
    """OpenMetrics with times: each series every INTERVAL seconds, from some seconds after its beginning."""

    def __init__(self):
        self.lines = []

    def add(self, name, value, begin, end, phase=7, interval=INTERVAL, cluster="a", **labels):
        """value: of the seconds since its beginning; None: no sample then."""
        text = ",".join(f'{key}="{label}"' for key, label in {**labels, "cluster": cluster}.items())
        for at in range(begin + phase, end + 1, interval):
            number = value(at - begin) if callable(value) else value
            if number is not None:
                self.lines.append(f"{name}{{{text}}} {number} {at}\n")

    def text(self):
        return "".join(self.lines) + "# EOF\n"


def add_day(samples):
    """Job 4711 of two nodes with two GPUs, and its double on another cluster, which has ten times as much of everything."""
    end = BEGIN + DAY
    for cluster, times in (("a", 1), ("b", 10)):
        def add(name, value, lasts=False, **labels):
            samples.add(name, value, BEGIN, end + (LINGER if lasts else 0), cluster=cluster, instance="host:9798", **labels)

        def job(name, value, node, lasts=False, **labels):
            add(f"sonde_job_{name}", value, lasts, job_id="4711", node=node, **labels)

        for node, cpus in (("n1", lambda t: 4 * min(t, DAY)), ("n2", lambda t: 8 * min(t, DAY / 2))):
            job("info", 1, node, True, user="alice", account="physics")
            job("cpus_allocated", 8, node, True)
            job("cpu_seconds_total", lambda t, cpus=cpus: times * cpus(t), node, True)
            job("cpu_user_seconds_total", lambda t, cpus=cpus: times * cpus(t) * 0.75, node, True)
            # one sample of all is the peak
            job("memory_bytes", lambda t: times * (20 * GIB if t == 7 + 1000 * INTERVAL else 10 * GIB), node)
            job("threads", "NaN", node)
            job("open_files", lambda t: "NaN" if t % 2 else "+Inf", node)
        job("memory_peak_bytes", times * 21 * GIB, "n1", True)
        job("pressure_waiting_seconds_total", 60, "n1", True, resource="io")
        job("pressure_waiting_seconds_total", 30, "n1", True, resource="cpu")
        job("written_bytes_total", lambda t: times * 1000 * t, "n1")
        for name, threads in (("python3", 33), ('a"b\\\\nc{}'.replace('"', '\\"'), 1)):
            for node in ("n1", "n2"):
                job("process_instances", 2, node, process=name)
                job("process_threads", threads, node, process=name)
                job("process_cpu_seconds_total", 500, node, True, process=name)
        for gpu in ("0", "1"):
            job("gpu_info", 1, "n1", gpu=gpu)
            job("gpu_processes", lambda t, gpu=gpu: 2 if gpu == "0" and t > HOUR else 0, "n1", gpu=gpu)
        job("gpu_memory_used_bytes", lambda t: times * (3 * GIB if t < HOUR else GIB), "n1", gpu="0")
        for gpu, ratio in (("0", lambda t: (0.25, 0.75)[t // INTERVAL % 2]), ("1", lambda t: 0), ("2", lambda t: 1)):
            def of_gpu(name, value, gpu=gpu, **labels):
                samples.add(f"sonde_gpu_{name}", value, BEGIN - HOUR, end + HOUR, cluster=cluster, node="n1", gpu=gpu, **labels)
            of_gpu("info", 1, uuid=f"GPU-{gpu}", model="NVIDIA A100")
            of_gpu("utilization_ratio", lambda t, ratio=ratio: ratio(t) if HOUR <= t <= HOUR + DAY else 1)
            of_gpu("memory_used_bytes", 5 * GIB)
            of_gpu("memory_total_bytes", 40 * GIB)
            of_gpu("power_watts", lambda t: 100 if HOUR <= t <= HOUR + DAY else 400)
            of_gpu("energy_joules_total", lambda t: 1e9 + 100 * t)
        samples.add("sonde_job_lustre_read_bytes_per_second", lambda t: 1000 if t <= HOUR else 0, BEGIN, end, cluster=cluster, job_id="4711")
        samples.add("lustre_job_read_bytes_total", 5, BEGIN, end, cluster=cluster, jobid="4711", target="OST0")
        # Lustre clears what it has counted: 100 and 50 more
        samples.add("lustre_job_write_bytes_total", lambda t: 100 * times if t < HOUR else 50 * times, BEGIN, end, interval=300,
                    cluster=cluster, jobid="4711", target="OST1")
        samples.add("lustre_job_stats_total", 12, BEGIN, end, cluster=cluster, jobid="4711", target="MDT0", operation="open")
        samples.add("lustre_job_stats_total", 30, BEGIN, end, cluster=cluster, jobid="4711", target="MDT0", operation="close")


def add_others(samples):
    def job(job_id, name, value, node, seconds, **labels):
        samples.add(f"sonde_job_{name}", value, BEGIN, BEGIN + seconds, job_id=job_id, node=node, **labels)

    job("5", "cpu_seconds_total", lambda t: t if t < 1000 else t - 1000, "n5", 1500)  # the agent began anew
    job("5", "cpu_seconds_total", lambda t: t if t < 1000 else t - 1000, "n5", 1500, replica="b")  # and is scraped twice
    job("5", "resident_bytes", GIB, "n5", 1500)
    job("6", "cpu_seconds_total", lambda t: t if not HOUR < t < 2 * HOUR else None, "n6", 3 * HOUR)
    for name, value in (("cpu_time_total", lambda t: 2 * t), ("user_time", lambda t: 190 * t), ("system_time", lambda t: 10 * t), ("rss", 512),
                        ("read_mb", lambda t: 3 * t), ("opened_files", 12), ("uses_scratch", 1)):
        for instance in ("old1:9091", "old2"):
            samples.add(f"jobs_{name}", value, BEGIN, BEGIN + HOUR, slurm_job="7", instance=instance)
        samples.add(f"jobs_{name}", value, BEGIN, BEGIN + HOUR, slurm_job="7", instance="gateway:9091", exported_instance="old3")
    for core, seconds in (("10", 3000), ("2", 600)):
        samples.add("jobs_cpu_time_core", seconds, BEGIN, BEGIN + HOUR, slurm_job="7", instance="old1:9091", core=core)
    samples.add("jobs_thread_count", 9, BEGIN, BEGIN + HOUR, slurm_job="7", instance="old2", proc_name="R")
    samples.add("sonde_job_cpu_seconds_total", 2.5, BEGIN, BEGIN + 3 + LINGER, job_id="8", node="n8")
    samples.add("sonde_job_memory_bytes", GIB, BEGIN, BEGIN + 3, phase=2, job_id="8", node="n8")
    for i in range(60):
        job("9", "cpu_seconds_total", lambda t, i=i: i * t, f"m{i}", HOUR)
        job("9", "memory_bytes", i * GIB, f"m{i}", HOUR)
        job("9", "read_bytes_total", lambda t: 10 * t, f"m{i}", HOUR)
        job("9", "pressure_waiting_seconds_total", i, f"m{i}", HOUR, resource="memory")
        for gpu in range(2):
            job("9", "gpu_info", 1, f"m{i}", HOUR, gpu=gpu)
            samples.add("sonde_gpu_utilization_ratio", i / 100, BEGIN, BEGIN + HOUR, node=f"m{i}", gpu=gpu)
    job("10", "cpu_seconds_total", lambda t: t, "mig", HOUR)
    job("10", "gpu_info", 1, "mig", HOUR, gpu="0", gpu_instance="3")
    job("10", "gpu_utilization_ratio", 0.5, "mig", HOUR, gpu="0", gpu_instance="3")
    samples.add("sonde_gpu_info", 1, BEGIN, BEGIN + HOUR, node="mig", gpu="0", gpu_instance="3", uuid="MIG-7", model="A100 1g.5gb")
    # Requeued, from two nodes to one of them: agents still show what they counted of the run before
    samples.add("sonde_job_cpu_seconds_total", lambda t: 32 * min(t, DAY), BEGIN - DAY - 120, BEGIN + 115, job_id="12", node="r1")
    samples.add("sonde_job_cpu_seconds_total", lambda t: 32 * min(t, DAY), BEGIN - DAY - 120, BEGIN + 30, job_id="12", node="r2")
    samples.add("sonde_job_cpu_seconds_total", lambda t: 3 * t, BEGIN + 40, BEGIN + 5 * DAY, job_id="12", node="r2")
    # Lustre still has what the run before did: 5,000, and 3,600 by this one; two exporters tell of opens
    samples.add("lustre_job_read_bytes_total", lambda t: 5000 + max(0, t - HOUR), BEGIN - HOUR, BEGIN + HOUR, jobid="11", target="OST0")
    for instance in ("one", "two"):
        samples.add("sonde_job_lustre_opens_per_second", 2, BEGIN, BEGIN + HOUR, job_id="11", instance=instance)


class Facts:
    def __init__(self, text):
        self.lines = text.splitlines()
        self.plots, self.plot_lines = {}, {}
        for line in self.lines:
            word, _, rest = line.partition(" ")
            if word == "plot":
                kind, *numbers = map(int, rest.split())
                self.plots[PLOTS[kind]] = dict(zip(("begin", "step", "points", "members"), numbers))
            if word == "line":
                (kind, _, name), values = (part := rest.rpartition(":"))[0].partition(" "), part[2].split()
                self.plot_lines.setdefault(PLOTS[int(kind)], {})[name] = list(map(float, values))

    def of(self, what, name):
        """fact → number, or numbers."""
        prefix = f"{what} {name} "
        found = {}
        for line in self.lines:
            if line.startswith(prefix):
                fact, *values = line[len(prefix):].split()
                if fact != "model":
                    found[fact] = float(values[0]) if len(values) == 1 else tuple(map(float, values))
        return found

    def names(self, what):
        return {line.split(" ")[1] for line in self.lines if line.startswith(f"{what} ")}

    def word(self, word):
        return next((line[len(word) + 1:] for line in self.lines if line.startswith(f"{word} ")), None)


class Series(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        samples = Samples()
        add_day(samples)
        add_others(samples)
        cls.prometheus = Prometheus("/", "scrape_configs: []\n", samples.text())
        cls.addClassCleanup(cls.prometheus.end)

    def facts(self, job, seconds, nodes=1, matcher=CLUSTER, what="plots", url=None, timeout_ms=300000, now=None, restarts=0):
        done = subprocess.run([BUILD / "tests/e2e/series_probe", url or self.prometheus.url, str(job), str(BEGIN), str(BEGIN + seconds),
                               str(now or BEGIN + 10 * DAY), str(nodes), matcher, what, str(timeout_ms), str(restarts)],
                              stdout=subprocess.PIPE, text=True, check=True)
        self.assertNotRegex(done.stdout.replace(" nan", ""), r"-?\bnan\b|\binf\b")
        return Facts(done.stdout)

    def near(self, value, expected, part=0.001):
        self.assertTrue(math.isclose(value, expected, rel_tol=part), f"{value}, not {expected}")

    def test_a_day_of_one_cluster(self):
        facts = self.facts(4711, DAY, nodes=2)
        first, second = facts.of("node", "n1"), facts.of("node", "n2")
        self.assertEqual((first["cpu_seconds"], second["cpu_seconds"]), (4 * DAY, 4 * DAY))
        self.assertEqual(first["user_seconds"], 3 * DAY)
        self.assertEqual((first["memory_peak_bytes"], second["memory_peak_bytes"]), (21 * GIB, 20 * GIB))
        self.assertEqual((first["io_waiting_seconds"], first["cpu_waiting_seconds"]), (60, 30))
        self.assertNotIn("threads_peak", first)
        self.assertNotIn("files_peak", first)
        total = facts.of("total", "-")
        self.assertEqual((total["cpu_seconds"], total["memory_peak_bytes"]), (8 * DAY, 41 * GIB))
        self.near(total["busiest_cpus"], 12)
        self.near(second["busiest_cpus"], 8)
        self.assertEqual(facts.word("has_series"), "1")
        self.assertIsNone(facts.word("why"))

    def test_the_same_job_id_of_another_cluster(self):
        self.assertEqual(self.facts(4711, DAY, nodes=2, matcher='cluster="b"').of("node", "n1")["cpu_seconds"], 40 * DAY)
        self.assertEqual(self.facts(4711, DAY, matcher='cluster="c"').word("has_series"), "0")

    def test_gpus_are_those_of_the_job_in_its_time(self):
        facts = self.facts(4711, DAY, nodes=2)
        self.assertEqual(facts.names("gpu"), {"n1/0", "n1/1"})
        first, second = facts.of("gpu", "n1/0"), facts.of("gpu", "n1/1")
        self.assertEqual(first["utilization_ratio"][::2], (0.25, 0.75))
        self.near(first["utilization_ratio"][1], 0.5)
        self.assertEqual(second["utilization_ratio"], (0, 0, 0))
        self.assertEqual(first["memory_used_bytes"][::2], (GIB, 3 * GIB))
        self.assertEqual(second["memory_used_bytes"], (5 * GIB,) * 3)
        self.assertEqual(first["power_watts"], (100, 100, 100))
        self.near(first["energy_joules"], 100 * DAY)
        self.assertEqual((first["memory_bytes"], first["processes_peak"], second["processes_peak"]), (40 * GIB, 2, 0))
        self.assertIn("gpu n1/0 model NVIDIA A100", facts.lines)

    def test_processes_by_name(self):
        facts = self.facts(4711, DAY, nodes=2)
        self.assertEqual(facts.of("process", "python3"), {"instances_peak": 4, "threads_peak": 66, "cpu_seconds": 1000})
        self.assertEqual(facts.of("process", 'a"b\\nc{}')["threads_peak"], 2)

    def test_lustre_by_the_exporter_else_by_its_own_counters(self):
        lustre = self.facts(4711, DAY, nodes=2).of("lustre", "-")
        self.near(lustre["read_bytes"], 1000 * HOUR, 0.01)
        self.near(lustre["written_bytes"], 50, 0.01)
        self.assertEqual((lustre["operations"], lustre["opens"]), (42, 12))

    def test_lustre_of_a_run_before_is_left_out_and_no_exporter_counts_twice(self):
        lustre = self.facts(11, HOUR).of("lustre", "-")
        self.near(lustre["read_bytes"], HOUR, 0.02)
        self.near(lustre["opens"], 2 * HOUR, 0.02)

    def test_what_a_run_before_has_left_is_not_counted(self):
        for what, seconds in (("plots", HOUR), ("numbers", HOUR), ("plots", 5 * DAY), ("numbers", 5 * DAY)):
            with self.subTest(what, seconds=seconds):
                facts = self.facts(12, seconds, what=what, restarts=1)
                self.assertEqual(facts.names("node"), {"r2"})
                self.near(facts.of("total", "-")["cpu_seconds"], 3 * seconds, 0.02)
                self.near(facts.of("total", "-")["busiest_cpus"], 3, 0.02)
                self.assertLess(max(value for value in facts.plot_lines.get("cpu", {}).get("r2", [0]) if not math.isnan(value)), 3.1)

    def test_a_day_is_drawn_with_a_thousand_points_at_most(self):
        facts = self.facts(4711, DAY, nodes=2)
        plot, lines = facts.plots["cpu"], facts.plot_lines["cpu"]
        self.assertEqual((plot["begin"], plot["step"], plot["points"], plot["members"]), (BEGIN, 87, 994, 2))
        self.assertEqual(set(lines), {"n1", "n2"})
        self.near(lines["n1"][500], 4)
        self.near(lines["n2"][400], 8)
        self.assertEqual(lines["n2"][600], 0)
        self.assertEqual(max(facts.plot_lines["memory"]["n1"][1:]), 20 * GIB)
        self.near(facts.plot_lines["written"]["n1"][10], 1000)
        self.assertEqual(set(facts.plot_lines["gpu"]), {"n1 0", "n1 1"})
        self.near(facts.plot_lines["gpu"]["n1 0"][10], 0.5, 0.3)
        self.assertEqual(facts.plot_lines["gpu_power"]["n1 0"][10], 100)
        self.assertEqual(facts.plot_lines["gpu_memory"]["n1 0"][-5], GIB)
        self.assertNotIn("read", facts.plots)

    def test_numbers_are_the_same_without_plots(self):
        with_plots, without = self.facts(4711, DAY, nodes=2), self.facts(4711, DAY, nodes=2, what="numbers")
        for node in ("n1", "n2"):
            first, second = with_plots.of("node", node), without.of("node", node)
            self.near(first.pop("busiest_cpus"), second.pop("busiest_cpus"), 0.01)
            self.assertEqual(first, second)
        self.assertEqual(without.plots, {})

    def test_a_counter_that_began_anew_is_not_too_small(self):
        facts = self.facts(5, 1500)
        self.assertEqual(facts.of("node", "n5")["cpu_seconds"], 997)
        self.assertEqual(facts.of("total", "-")["cpu_seconds"], 997)
        self.near(facts.of("total", "-")["busiest_cpus"], 1, 0.05)

    def test_memory_of_processes_where_jobs_have_no_cgroups(self):
        facts = self.facts(5, 1500)
        self.assertEqual(facts.of("node", "n5")["memory_peak_bytes"], GIB)
        self.assertEqual(max(facts.plot_lines["memory"]["n5"][1:]), GIB)

    def test_a_gap_is_drawn_as_one(self):
        facts = self.facts(6, 3 * HOUR)
        step, values = facts.plots["cpu"]["step"], facts.plot_lines["cpu"]["n6"]
        self.assertEqual(step, INTERVAL)
        self.assertTrue(math.isnan(values[HOUR * 3 // 2 // step]))
        self.near(values[HOUR // 2 // step], 1)
        self.near(values[HOUR * 5 // 2 // step], 1)
        self.near(facts.of("total", "-")["busiest_cpus"], 1)

    def test_names_of_jobs_exporter_where_there_are_no_others(self):
        facts = self.facts(7, HOUR, nodes=3)
        self.assertEqual(facts.names("node"), {"old1", "old2", "old3"})
        node = facts.of("node", "old1")
        seconds = HOUR // INTERVAL * INTERVAL - INTERVAL + 7
        self.assertEqual((node["cpu_seconds"], node["memory_peak_bytes"]), (2 * seconds, 512 * MIB))
        self.assertEqual((node["read_bytes"], node["files_peak"], node["uses_scratch"]), (3 * seconds * MIB, 12, 1))
        self.assertNotIn("user_seconds", node, "it was in clock ticks")
        self.assertEqual([line for line in facts.lines if line.startswith("core")], ["core old1 2 600", "core old1 10 3000"])
        self.assertEqual(facts.of("process", "R"), {"threads_peak": 9})
        self.near(facts.plot_lines["read"]["old3"][20], 3 * MIB)

    def test_three_seconds_have_totals_and_no_rates(self):
        facts = self.facts(8, 3)
        node = facts.of("node", "n8")
        self.assertEqual((node["cpu_seconds"], node["memory_peak_bytes"]), (2.5, GIB))
        self.assertNotIn("busiest_cpus", node)
        self.assertNotIn("cpu", facts.plots)

    def test_of_many_nodes_median_and_range(self):
        facts = self.facts(9, HOUR, nodes=60)
        self.assertEqual(len(facts.names("node")), 60)
        self.assertEqual(facts.of("node", "m59")["cpu_seconds"], 59 * 3592)
        self.assertEqual(set(facts.of("node", "m59")), {"cpu_seconds", "memory_peak_bytes"})
        total = facts.of("total", "-")
        self.assertEqual((total["read_bytes"], total["memory_waiting_seconds"]), (60 * 10 * 3592, 59))
        self.near(total["busiest_cpus"], sum(range(60)))
        lines = facts.plot_lines["cpu"]
        self.assertEqual(facts.plots["cpu"]["members"], 60)
        self.assertEqual(set(lines), {"median", "lowest", "highest"})
        self.near(lines["median"][50], 29.5)
        self.assertEqual(lines["lowest"][50], 0)
        self.near(lines["highest"][50], 59)
        self.assertEqual((len(facts.names("gpu")), facts.plots["gpu"]["members"]), (120, 120))
        self.near(facts.plot_lines["gpu"]["highest"][50], 0.59)
        self.near(self.facts(9, HOUR, nodes=60, what="numbers").of("total", "-")["busiest_cpus"], sum(range(60)))

    def test_a_part_of_a_gpu_is_called_as_its_agent_does(self):
        facts = self.facts(10, HOUR)
        self.assertEqual(facts.names("gpu"), {"mig/MIG-7"})
        self.assertEqual(facts.of("gpu", "mig/MIG-7")["utilization_ratio"], (0.5, 0.5, 0.5))
        self.assertEqual(facts.plot_lines["gpu"]["mig 0:3"][50], 0.5)

    def test_a_job_that_nobody_has_samples_of(self):
        facts = self.facts(99, HOUR)
        self.assertEqual(facts.word("has_series"), "0")
        self.assertEqual(facts.word("why"), f'{self.prometheus.url} has no samples of job 99 from the time of this run ({CLUSTER})')

    def test_one_that_runs_until_now(self):
        facts = self.facts(6, -BEGIN, now=BEGIN + HOUR)
        self.assertEqual(facts.of("node", "n6")["cpu_seconds"], 3592)
        self.assertEqual(facts.plots["cpu"]["points"], HOUR // INTERVAL + 1)

    def test_a_server_that_is_down(self):
        facts = self.facts(4711, DAY, url="http://127.0.0.1:1")
        self.assertRegex(facts.word("failed"), "127.0.0.1:1")
        self.assertEqual((facts.word("why"), facts.word("has_series")), (facts.word("failed"), "0"))
        self.assertEqual(facts.names("node"), set())

    def test_the_time_for_all_is_kept(self):
        facts = self.facts(4711, DAY, nodes=2, timeout_ms=1)
        self.assertIn("in time", facts.word("failed") or "")


if __name__ == "__main__":
    import tap
    tap.main()
