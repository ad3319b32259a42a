#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What jobs have used is handed in when they end: a real agent, a real Slurm with cgroup v1, and a server that stands in for
the exporter, so that it can be away; and once the exporter itself."""
import contextlib
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

import unit
from clock import Clock
from cluster import Cluster, JobTest
from sonde import DEADLINE, SONDE, Agent, Exporter, mount_namespace, own_host, wait_until
from capabilities import need

MIB = 1 << 20


def setUpModule():
    global CLUSTER
    CLUSTER = Cluster()
    JobTest.cluster = CLUSTER


def tearDownModule():
    CLUSTER.run("scancel", "-u", "alice", check=False)
    CLUSTER.end()


class StandIn:
    """Takes posts to /ingest, at the same address each time that it is opened."""

    def __init__(self):
        self.host, self.port, self.server, self.records, self.headers, self.clusters = own_host(), 8080, None, [], [], []
        self.status = 200
        self.open()

    def open(self):
        stand_in = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status = stand_in.status if self.path == "/ingest" else 404
                stand_in.headers.append(dict(self.headers))
                if status == 200:
                    stand_in.clusters.append(body["cluster"])
                    stand_in.records.extend(body["records"])
                answer = json.dumps({"records": len(body["records"])}).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((self.host, self.port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        if self.server:
            self.server.shutdown()
            self.server.server_close()
        self.server = None

    def of(self, job_id):
        return [record for record in self.records if record["job_id"] == job_id]


class Ingest(JobTest):
    """Agents that tick when the test moves their clock."""

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)
        self.directory.chmod(0o755)
        self.token = self.directory / "token"
        self.token.write_text("s3cret\n")
        self.token.chmod(0o600)
        self.spool = self.directory / "spool"
        self.exporter = StandIn()
        self.addCleanup(self.exporter.close)
        self.clock = self.enterContext(Clock())

    def agent(self, *flags, **arguments):
        return self.enterContext(self.start(*flags, **arguments))

    def start(self, *flags, **arguments):
        return Agent("-t", "10m", "--ingest.munge-socket=/nonexistent", f"--ingest.url=http://{self.exporter.host}:{self.exporter.port}",
                     f"--ingest.token-file={self.token}", f"--ingest.spool-dir={self.spool}", "--ingest.cluster=one",
                     f"--ingest.timeout={DEADLINE}s", "--collector.steps", *flags, env=self.clock.env, **arguments)

    def tick(self, agent):
        """Until all that a job has done is summed up for good."""
        self.wait_ticks(agent, 4, self.clock, 600)

    def wait_record(self, job_id):
        return wait_until(lambda: self.exporter.of(job_id), f"a record of job {job_id}")[-1]

    def wait_records(self, *job_ids):
        """While the pauses between attempts pass."""
        def have_come():
            self.clock.advance(10)
            return all(map(self.exporter.of, job_ids))
        wait_until(have_come, f"records of {job_ids}")
        return [self.exporter.of(job_id)[-1] for job_id in job_ids]

    def spooled(self, job_id):
        """The files that hold what is told of the job; others may hold jobs of other clusters on this machine."""
        found = []
        for file in self.spool.iterdir():
            with contextlib.suppress(FileNotFoundError):  # posted and removed meanwhile
                if f'"job_id":{job_id},'.encode() in file.read_bytes():
                    found.append(file)
        return found

    def wait_spooled(self, job_id):
        return wait_until(lambda: self.spooled(job_id), f"job {job_id} is on disk")

    def wait_removed(self, *job_ids):
        wait_until(lambda: not any(map(self.spooled, job_ids)), "what was taken is removed")

    @staticmethod
    def burn(seconds):
        """Shell that uses so much CPU time, says how much it was, and goes on."""
        said = f"{CLUSTER.place}/burn.$SLURM_JOB_ID"
        return f"mkfifo {said}; {CLUSTER.behave} burn {seconds} 1 >{said} & read line <{said}; echo $line; kill $!; wait; "

    def end_job(self, agent):
        """One that has used a second, as the agent has seen, and has ended."""
        gate = self.gate()
        job_id = self.batch(self.burn(1) + gate.wait)
        burnt = float(self.wait_said(job_id, r"cpu (\S+)")[1])
        self.wait_ticks(agent, 1, self.clock, 600)
        self.assertGreaterEqual(agent.job(job_id)["sonde_job_cpu_seconds_total"][()], burnt)
        gate.open()
        wait_until(lambda: CLUSTER.state(job_id) == "COMPLETED", f"job {job_id} ends")
        return job_id

    def test_a_job_arrives_with_what_it_used(self):
        need("taskstats")
        agent = self.agent()
        gate = self.gate()
        script = f"{self.burn(2)} {CLUSTER.behave} write 64 {CLUSTER.place}/three; echo worked; {gate.wait}"
        submitted = int(time.time())
        job_id = self.batch_known([agent], script, "--mem=400M", "-c2")
        began = time.time()
        self.wait_said(job_id, "worked")
        self.tick(agent)
        self.assertEqual(self.exporter.of(job_id), [])
        worked = int(time.time())
        gate.open()
        record = self.wait_record(job_id)
        burnt = float(self.wait_said(job_id, r"cpu (\S+)")[1])
        self.assertEqual((record["uid"], record["account"]), (2001, "physics"))
        self.assertEqual(record["allocated"]["cpus"], 2)
        self.assertEqual(record["allocated"]["memory_bytes"], 400 * MIB)
        self.assertGreaterEqual(record["cpu_seconds"], burnt * 0.98)
        self.assertLess(record["cpu_seconds"], burnt + 2)
        self.assertAlmostEqual(record["user_seconds"] + record["system_seconds"], record["cpu_seconds"], delta=0.3)
        self.assertGreaterEqual(record["io"]["write_chars"], 64 * MIB)
        self.assertLess(record["io"]["write_chars"], 66 * MIB)
        self.assertGreater(record["memory_peak_bytes"], MIB)
        self.assertLess(record["memory_peak_bytes"], 400 * MIB)
        self.assertEqual(record["oom_kills"], 0)
        # By the agent's clock, which has been moved in between.
        ahead = self.clock.ahead_ns.value / 1e9
        self.assertTrue(submitted <= record["begin_time"] <= began, (submitted, record["begin_time"], began))
        self.assertTrue(worked + ahead <= record["end_time"] + 1 <= time.time() + ahead + 1, (worked, record["end_time"]))
        names = {name["name"]: name["cpu_seconds"] for name in record["names"]}
        self.assertGreaterEqual(names["behave"], 0.9 * burnt)
        steps = {step["id"]: step for step in record["steps"]}
        self.assertIn("batch", steps)
        self.assertGreaterEqual(steps["batch"]["io"]["write_chars"], 64 * MIB)
        self.assertGreaterEqual(steps["batch"]["cpu_seconds"], 0.9 * burnt)
        self.assertEqual(self.exporter.headers[-1]["Authorization"], "Bearer s3cret")
        self.assertEqual(set(self.exporter.clusters), {"one"})
        self.wait_removed(job_id)
        wait_until(lambda: agent.metrics().value("sonde_agent_ingest_posted_total") >= 1, "it is counted")
        metrics = agent.metrics()
        self.assertEqual(metrics.value("sonde_agent_ingest_up"), 1)
        self.assertEqual(metrics.value("sonde_agent_ingest_dropped_total"), 0)
        self.assertEqual(metrics.value("sonde_agent_ingest_retention_paused"), 0)

    def test_a_job_killed_for_its_memory_says_so(self):
        agent = self.agent()
        gate = self.gate()
        # The script outlives what is killed until the agent has seen that: of a directory that is gone the kernel may not tell.
        seen = self.gate()
        job_id = self.batch(f"{CLUSTER.behave} oom 98 200 <>{gate.path}; echo over; {seen.wait}")
        self.wait_said(job_id, "held")
        self.wait_family(agent, job_id, "sonde_job_memory_peak_bytes", lambda s: s[()] >= 98 * MIB)
        gate.open()
        self.wait_said(job_id, "over")
        self.tick(agent)
        self.assertGreaterEqual(agent.job(job_id)["sonde_job_oom_kills_total"][()], 1)
        self.assertEqual(self.exporter.of(job_id), [])
        seen.open()
        self.assertGreaterEqual(self.wait_record(job_id)["oom_kills"], 1)

    def test_while_the_exporter_is_away_it_waits_on_disk_through_a_restart(self):
        self.exporter.close()
        with self.start() as agent:
            first = self.end_job(agent)
            files = self.wait_spooled(first)
            wait_until(lambda: agent.metrics().value("sonde_agent_ingest_up") == 0, "it is told")
            wait_until(lambda: agent.metrics().value('sonde_agent_ingest_waiting{place="disk"}') >= 1, "it waits")
            self.assertEqual({file.stat().st_mode & 0o777 for file in files}, {0o600})
            self.assertEqual(self.spool.stat().st_mode & 0o777, 0o700)
            second = self.end_job(agent)
            self.wait_spooled(second)
            agent.process.kill()  # not even a goodbye
            agent.process.wait()
        self.agent()
        self.exporter.open()
        for record in self.wait_records(first, second):
            self.assertGreaterEqual(record["cpu_seconds"], 0.9)
        self.wait_removed(first, second)

    def test_a_job_that_goes_on_through_a_restart_is_told_with_all_its_cpu_time(self):
        with self.start() as agent:
            job_id = self.batch(f"{self.burn(2)} exec sleep infinity")
            burnt = float(self.wait_said(job_id, r"cpu (\S+)")[1])
            # The next look is as far away as the job is old.
            self.wait_ticks(agent, 1, self.clock, 600)
            self.assertGreaterEqual(agent.job(job_id)["sonde_job_cpu_seconds_total"][()], burnt)
        self.assertEqual(self.exporter.of(job_id), [])
        agent = self.agent()
        self.wait_family(agent, job_id, "sonde_job_cpu_seconds_total", lambda s: s[()] >= burnt)
        CLUSTER.run("scancel", str(job_id))
        self.assertGreaterEqual(self.wait_record(job_id)["cpu_seconds"], burnt)

    def test_under_its_unit_it_writes_where_systemd_lets_it(self):
        self.spool.mkdir(mode=0o700)
        os.chown(self.spool, unit.DYNAMIC_UID, unit.DYNAMIC_UID)
        agent = self.agent(starter=unit.prefix())
        self.exporter.status = 503
        job_id = self.end_job(agent)
        self.wait_spooled(job_id)
        self.exporter.status = 200
        record, = self.wait_records(job_id)
        self.assertGreaterEqual(record["cpu_seconds"], 0.9)

    def test_as_another_user_it_has_its_directory(self):
        agent = self.agent(f"--user={unit.DYNAMIC_UID}")
        wait_until(self.spool.exists, "the directory is made")
        self.assertEqual(self.spool.stat().st_uid, unit.DYNAMIC_UID)
        self.wait_record(self.end_job(agent))


class Whole(JobTest):
    """With a real exporter and its store."""

    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def start(self, *flags, starter=()):
        store = f"--store=sqlite:{self.directory}/sonde.db"
        exporter = self.enterContext(Exporter(store, "--store.interval=1s", *flags, starter=starter,
                                              path=CLUSTER.env["SANDBOX_BIN"]))
        agent = self.enterContext(Agent("-t", "1", f"--ingest.url={exporter.url}", f"--ingest.spool-dir={self.directory}/spool",
                                        *flags))
        return store, exporter, agent

    @staticmethod
    def munge():
        return f"--ingest.munge-socket={CLUSTER.env['SANDBOX_STATE']}/run/munge/socket"

    def resolving_nodes_to(self, address):
        """Starts a program with an /etc/hosts that has the nodes."""
        etc = self.directory / "etc"
        shutil.copytree("/etc", etc, symlinks=True)
        nodes = {node for line in CLUSTER.run("sinfo", "-h", "-N", "-o", "%N").stdout.splitlines() for node in line.split()}
        (etc / "hosts").write_text("".join(f"{address} {node}\n" for node in sorted(nodes)))
        return [*mount_namespace(), "sh", "-c", 'mount --bind "$1" /etc && shift && exec "$@"', "sh", str(etc)]

    def test_a_job_is_in_the_store_by_a_token(self):
        token = self.directory / "token"
        token.write_text("s3cret\n")
        token.chmod(0o600)
        self.check_kept(f"--ingest.token-file={token}", "--ingest.munge-socket=/nonexistent")

    def test_a_job_is_in_the_store_by_munge(self):
        self.check_kept(self.munge(), starter=self.resolving_nodes_to("127.0.0.1"))

    def test_an_agent_does_not_post_for_another_node(self):
        _, exporter, agent = self.start(self.munge(), starter=self.resolving_nodes_to("127.1.2.3"))
        job_id = self.submit("hold", "5")
        self.wait_said(job_id, "held")
        self.wait_family(agent, job_id, "jobs_rss", bool)
        CLUSTER.run("scancel", str(job_id))
        wait_until(lambda: "has another address than the sender" in agent.log(), "the reason is logged")
        self.assertEqual(exporter.metrics().value('sonde_ingest_posts_total{outcome="taken"}'), 0)

    def check_kept(self, *flags, starter=()):
        store, exporter, agent = self.start(*flags, starter=starter)

        def wait_kept(good, what):
            def kept():
                done = subprocess.run([SONDE, "jobs", store, "--json", str(job_id)], capture_output=True, text=True,
                                      timeout=DEADLINE)
                jobs = json.loads(done.stdout)["jobs"] if done.returncode == 0 else []
                return jobs[0] if jobs and good(jobs[0]) else None
            return wait_until(kept, what)
        job_id = self.submit("burn", "2", "1", flags=["--hold"])
        wait_kept(lambda job: job["state"] == "PENDING", "that it is pending is kept")
        CLUSTER.run("scontrol", "release", str(job_id))
        burnt = float(self.wait_said(job_id, r"cpu (\S+)")[1])
        wait_kept(lambda job: job["state"] == "RUNNING", "that it runs is kept")
        # The cgroup lacks what the process used before it was in it.
        self.wait_family(agent, job_id, "sonde_job_cpu_seconds_total", lambda s: s[()] >= burnt - 0.1)
        CLUSTER.run("scancel", str(job_id))
        job = wait_kept(lambda job: job.get("agents"), "what it used is kept")
        self.assertEqual((job["cluster"], job["user"], job["account"]), ("sandbox", "alice", "physics"))
        final = job["agents"][0]["counted"]
        self.assertAlmostEqual(final["cpu_seconds"], burnt, delta=0.3)
        # The agent sees the jobs of other tests too.
        wait_until(lambda: exporter.metrics().value('sonde_ingest_posts_total{outcome="taken"}') >= 1, "the post is counted")
        self.assertEqual([moment["state"] for moment in job["life"]][:2], ["PENDING", "RUNNING"])
        refused = exporter.get("/ingest", data=b"{}", headers={"Content-Type": "application/json"})
        self.assertEqual(refused.status, 401)


if __name__ == "__main__":
    import tap
    tap.main()
