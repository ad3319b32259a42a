#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What jobs have used is handed in when they end: a real agent, a real Slurm with cgroup v1, and a server that stands in for
the exporter, so that it can be away; and once the exporter itself."""
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading

import unit
from cluster import Cluster, JobTest
from sonde import SONDE, Agent, Exporter, wait_until

MIB = 1 << 20


def setUpModule():
    global CLUSTER
    CLUSTER = Cluster()
    JobTest.cluster = CLUSTER


def tearDownModule():
    CLUSTER.run("scancel", "-u", "alice", check=False)
    CLUSTER.end()


class StandIn:
    """Takes posts to /ingest, on the same port each time that it is opened."""

    def __init__(self):
        self.port, self.server, self.records, self.headers, self.clusters = 0, None, [], [], []
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

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        if self.server:
            self.server.shutdown()
            self.server.server_close()
        self.server = None

    def of(self, job_id):
        return [record for record in self.records if record["job_id"] == job_id]


class Ingest(JobTest):
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

    def agent(self, *flags, **arguments):
        return self.enterContext(self.start(*flags, **arguments))

    def start(self, *flags, **arguments):
        return Agent("-t", "15", f"--ingest.url=http://127.0.0.1:{self.exporter.port}",
                     f"--ingest.token-file={self.token}", f"--ingest.spool-dir={self.spool}", "--ingest.cluster=one",
                     *flags, **arguments)

    def wait_record(self, job_id, deadline=30):
        return wait_until(lambda: self.exporter.of(job_id), f"a record of job {job_id}", deadline)[-1]

    def files(self):
        return list(self.spool.iterdir())

    @staticmethod
    def burn(seconds):
        """Shell that uses so much CPU time, says how much it was, and goes on."""
        said = f"{CLUSTER.place}/burn.$SLURM_JOB_ID"
        return f"{CLUSTER.behave} burn {seconds} 1 >{said} & until grep -q cpu {said}; do sleep 0.1; done; " \
            f"kill $!; wait; cat {said}; "

    def end_job(self):
        """One that has used a second, and has ended."""
        job_id = self.batch(self.burn(1))
        wait_until(lambda: CLUSTER.state(job_id) == "COMPLETED", f"job {job_id} ends", 40)
        return job_id

    def test_a_job_of_three_seconds_arrives_with_what_it_used(self):
        agent = self.agent()
        script = f"{self.burn(2)} {CLUSTER.behave} write 64 {CLUSTER.place}/three; sleep 0.5"
        job_id = self.batch(script, "--mem=400M", "-c2")
        record = self.wait_record(job_id, 60)
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
        lasted = record["end_time"] - record["begin_time"]
        self.assertTrue(2 <= lasted <= 120, lasted)
        names = {name["name"]: name["cpu_seconds"] for name in record["names"]}
        self.assertGreaterEqual(names["behave"], 0.9 * burnt)
        steps = {step["id"]: step for step in record["steps"]}
        self.assertIn("batch", steps)
        self.assertGreaterEqual(steps["batch"]["io"]["write_chars"], 64 * MIB)
        self.assertGreaterEqual(steps["batch"]["cpu_seconds"], 0.9 * burnt)
        self.assertEqual(self.exporter.headers[-1]["Authorization"], "Bearer s3cret")
        self.assertEqual(set(self.exporter.clusters), {"one"})
        wait_until(lambda: not self.files(), "what was taken is removed")
        metrics = agent.metrics()
        self.assertEqual(metrics.value("sonde_agent_ingest_up"), 1)
        self.assertGreaterEqual(metrics.value("sonde_agent_ingest_posted_total"), 1)
        self.assertEqual(metrics.value("sonde_agent_ingest_dropped_total"), 0)

    def test_a_job_killed_for_its_memory_says_so(self):
        self.agent()
        job_id = self.submit("oom", "98", "200")
        self.assertGreaterEqual(self.wait_record(job_id, 60)["oom_kills"], 1)

    def test_while_the_exporter_is_away_it_waits_on_disk_through_a_restart(self):
        self.exporter.close()
        with self.start() as agent:
            first = self.end_job()
            wait_until(lambda: agent.metrics().value('sonde_agent_ingest_waiting{place="disk"}') >= 1, "it is on disk", 40)
            wait_until(lambda: agent.metrics().value("sonde_agent_ingest_up") == 0, "it is told", 40)
            text = b"".join(file.read_bytes() for file in self.files())
            self.assertIn(f'"job_id":{first},'.encode(), text)
            self.assertEqual({file.stat().st_mode & 0o777 for file in self.files()}, {0o600})
            self.assertEqual(self.spool.stat().st_mode & 0o777, 0o700)
            second = self.end_job()
            wait_until(lambda: agent.metrics().value('sonde_agent_ingest_waiting{place="disk"}') >= 2, "so is the second", 40)
            agent.process.kill()  # not even a goodbye
            agent.process.wait()
        self.agent()
        self.exporter.open()
        for job_id in (first, second):
            self.assertGreaterEqual(self.wait_record(job_id, 150)["cpu_seconds"], 0.9)
        wait_until(lambda: not self.files(), "what was taken is removed")

    def test_a_job_that_goes_on_through_a_restart_is_told_with_all_its_cpu_time(self):
        with self.start() as agent:
            job_id = self.batch(f"{self.burn(2)} exec sleep 300")
            said = self.wait_said(job_id, r"cpu (\S+)", 40)
            self.wait_family(agent, job_id, "sonde_job_cpu_seconds_total", lambda s: s[()] > 1.9, 40)
        self.assertEqual(self.exporter.of(job_id), [])
        agent = self.agent()
        self.wait_family(agent, job_id, "sonde_job_info", deadline=40)
        CLUSTER.run("scancel", str(job_id))
        self.assertGreaterEqual(self.wait_record(job_id, 60)["cpu_seconds"], 0.95 * float(said[1]))

    def test_under_its_unit_it_writes_where_systemd_lets_it(self):
        self.spool.mkdir(mode=0o700)
        os.chown(self.spool, unit.DYNAMIC_UID, unit.DYNAMIC_UID)
        agent = self.agent(starter=unit.prefix())
        self.exporter.status = 503
        job_id = self.end_job()
        wait_until(lambda: agent.metrics().value('sonde_agent_ingest_waiting{place="disk"}') >= 1, "it is on disk", 40)
        self.exporter.status = 200
        self.assertGreaterEqual(self.wait_record(job_id, 150)["cpu_seconds"], 0.9)

    def test_as_another_user_it_has_its_directory(self):
        self.agent(f"--user={unit.DYNAMIC_UID}")
        wait_until(self.spool.exists, "the directory is made")
        self.assertEqual(self.spool.stat().st_uid, unit.DYNAMIC_UID)
        job_id = self.end_job()
        self.wait_record(job_id, 60)


class Whole(JobTest):
    """With a real exporter and its store."""

    def test_a_job_of_three_seconds_is_in_the_store_with_what_it_used(self):
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        token, store = directory / "token", f"--store=sqlite:{directory}/sonde.db"
        token.write_text("s3cret\n")
        token.chmod(0o600)
        exporter = self.enterContext(Exporter(store, f"--ingest.token-file={token}", "--store.interval=1s",
                                              path=CLUSTER.env["SANDBOX_BIN"]))
        self.enterContext(Agent("-t", "15", f"--ingest.url={exporter.url}", f"--ingest.token-file={token}",
                                f"--ingest.spool-dir={directory}/spool"))
        job_id = self.submit("burn", "2", "1")
        said = self.wait_said(job_id, r"cpu (\S+)")
        CLUSTER.run("scancel", str(job_id))

        def told():
            done = subprocess.run([SONDE, "jobs", store, "--json", str(job_id)], capture_output=True, text=True, timeout=20)
            jobs = json.loads(done.stdout)["jobs"] if done.returncode == 0 else []
            return jobs[0] if jobs and jobs[0].get("agents") else None
        job = wait_until(told, "the job is in the store with its end", 60)
        self.assertEqual((job["cluster"], job["user"], job["account"]), ("sandbox", "alice", "physics"))
        final = job["agents"][0]["counted"]
        self.assertAlmostEqual(final["cpu_seconds"], float(said[1]), delta=0.3)
        # The agent sees the jobs of other tests too.
        self.assertGreaterEqual(exporter.metrics().value('sonde_ingest_posts_total{outcome="taken"}'), 1)
        self.assertEqual([moment["state"] for moment in job["life"]][:2], ["PENDING", "RUNNING"])
        refused = exporter.get("/ingest", data=b"{}", headers={"Content-Type": "application/json"})
        self.assertEqual(refused.status, 401)


if __name__ == "__main__":
    import tap
    tap.main()
