#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`sonde web` on stores that are written while it reads them."""
import base64
import concurrent.futures
import json
import pathlib
import re
import signal
import sqlite3
import subprocess
import tempfile
import threading
import unittest
import urllib.parse

from sonde import BUILD, DEADLINE, ROOT, SONDE, Exporter, http_get, wait_until
from capabilities import need

BASE = 1790000000
ASKERS = 6  # twice as many as have their questions answered at once


class Probe:
    """store_probe, which writes runs into a store."""

    def __init__(self, path, kind="real"):
        self.process = subprocess.Popen([BUILD / "tests/e2e/store_probe", f"sqlite:{path}", kind],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._await()

    def _await(self):
        line = self.process.stdout.readline().decode()
        assert line == "done\n", line

    def _say(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()
        self._await()

    def runs(self, cluster, count, first_id, first_submit=BASE):
        self._say(f"runs {cluster} {count} {first_id} {first_submit}\n".encode())

    def named(self, cluster, job_id, name, submit=BASE):
        self._say(f"named {cluster} {job_id} {submit} {len(name)}\n".encode() + name)

    def end(self):
        self.process.stdin.close()
        status = self.process.wait(DEADLINE)
        self.process.stdout.close()
        assert status == 0, status


class Web(Exporter):
    command = "web"

    @staticmethod
    def complete(flags):
        return "--api.timeout=5m", *flags

    def ask(self, path, status=200):
        answer = self.get(path)
        assert answer.status in (status if isinstance(status, tuple) else (status,)), (path, answer.status, answer.body[:500])
        assert answer.headers["Content-Type"] == "application/json", answer.headers
        assert answer.headers["X-Content-Type-Options"] == "nosniff", answer.headers
        assert answer.headers["Cache-Control"] == "no-store", answer.headers
        return json.loads(answer.body)

    def jobs(self, **query):
        return self.ask("/api/v1/jobs?" + urllib.parse.urlencode(query))["jobs"]


class WithStore(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.path = self.directory / "sonde.db"

    def probe(self, kind="real"):
        probe = Probe(self.path, kind)
        self.addCleanup(probe.end)
        return probe

    def web(self, *flags, **arguments):
        return self.enterContext(Web(f"--store=sqlite:{self.path}", *flags, **arguments))


class Reading(WithStore):
    def test_paging_through_a_thousand_runs_gives_each_once_while_others_are_added(self):
        probe, added, pages = self.probe(), 5000, 0
        probe.runs("one", 700, 1)
        probe.runs("two", 300, 1)
        web, seen, path = self.web(), [], "/api/v1/jobs?limit=37&account=physics"
        while path:
            answer = web.get(path)
            page = json.loads(answer.body)
            seen += [(job["cluster"], job["job_id"], job["submit_time"]) for job in page["jobs"]]
            probe.runs("one", 3, added, BASE + 50)  # in the midst of the others, and before them
            probe.runs("two", 3, added, BASE + 90000)
            added += 3
            pages += 1
            link = re.fullmatch(r'<(/\S+)>; rel="next"', answer.headers.get("Link", ""))
            self.assertEqual(bool(link), page["next"] is not None)
            path = link and link[1]
        self.assertGreaterEqual(pages, 1000 // 37)
        self.assertEqual(len(seen), len(set(seen)))
        self.assertEqual({run for run in seen if run[1] < 5000},
                         {(cluster, i + 1, BASE + i // 10) for cluster, n in (("one", 700), ("two", 300)) for i in range(n)})
        order = [(submit, job_id) for _, job_id, submit in seen]
        self.assertEqual(order, sorted(order, reverse=True))

    def test_hostile_names_come_out_as_they_are_and_only_as_json(self):
        probe = self.probe()
        names = [b'"', b"\\", b"\n\r\t\x01\x1b[2J", b"</script><script>alert(1)</script>", b'"},{"job_id":1,"x":"',
                 b"\xff\xfe\xc3", "日本 \U0001f600 \u2028".encode(), b"'; DROP TABLE job; --", b"%s%n", b"x" * 4000]
        for i, name in enumerate(names):
            probe.named("one", 1 + i, name)
        web = self.web()
        self.assertEqual([job["name"] for job in reversed(web.jobs())],
                         [re.sub(rb"[\xff\xfe\xc3]$|[\xff\xfe]", b"\xef\xbf\xbd", name).decode()
                          if b"\xff" in name else name.decode() for name in names])
        for name in names:
            if b"\xff" not in name and len(name) < 1000:
                found = web.ask("/api/v1/jobs?name=" + urllib.parse.quote(name, safe=""))["jobs"]
                self.assertEqual([job["name"] for job in found], [name.decode()])
        script = names[3].decode()
        self.assertNotIn(script, web.get("/").text)
        refused = web.get("/api/v1/jobs?" + urllib.parse.quote(script) + "=1")
        self.assertEqual((refused.status, refused.headers["Content-Type"]), (400, "application/json"))
        self.assertIn(script, json.loads(refused.body)["error"])

    def test_fifty_ask_at_once(self):
        self.probe().runs("one", 1000, 1)
        web = self.web()
        paths = ["/api/v1/jobs?limit=500", "/api/v1/usage?group_by=user&from=2026-09-01&to=2026-10-01", "/api/v1/clusters",
                 "/api/v1/jobs?user=alice", "/api/v1/nodes"] * 10
        with concurrent.futures.ThreadPoolExecutor(50) as pool:
            answers = list(pool.map(web.ask, paths))
        for path, answer in zip(paths, answers):
            self.assertEqual(answer, answers[paths.index(path)])
        self.assertEqual(len(answers[0]["jobs"]), 500)
        self.assertEqual(sum(row["jobs"] for row in answers[1]["rows"]), 1000)

    def test_a_run_whole_and_what_was_used(self):
        self.probe().runs("one", 20, 1)
        web = self.web()
        row = web.jobs(limit=1)[0]
        whole = web.ask(f"/api/v1/jobs/{row['key']}")
        self.assertEqual({name: whole["job"][name] for name in row}, row)
        self.assertEqual([moment["state"] for moment in whole["life"]], ["PENDING", "RUNNING", row["state"]])
        self.assertEqual([run["key"] for run in whole["runs"]], [row["key"]])
        usage = web.ask(f"/api/v1/usage?group_by=user,state&from={BASE}&to={BASE + 1000}")
        self.assertEqual((usage["from"], usage["to"]), (BASE, BASE + 1000))
        self.assertEqual(usage["total"]["gpu_seconds"], 20 * 2 * 100)
        self.assertEqual(sum(row["cpu_seconds"] for row in usage["rows"]), 20 * 4 * 100)
        self.assertEqual({(row["user"], row["state"]): row["jobs"] for row in usage["rows"]},
                         {("alice", "COMPLETED"): 10, ("bob", "COMPLETED"): 8, ("bob", "FAILED"): 2})

    def test_simulated_jobs_are_called_so_in_every_answer(self):
        self.probe("simulated").runs("one", 3, 1)
        web = self.web()
        key = web.jobs()[0]["key"]
        for path in ("jobs", f"jobs/{key}", "clusters", "nodes", "usage"):
            self.assertIs(web.ask(f"/api/v1/{path}")["simulated"], True)


class Docs(WithStore):
    def test_the_examples_work_and_answer_with_what_they_show(self):
        self.probe().runs("mila", 5, 121)
        (self.directory / "allocations.yml").write_text((ROOT / "packaging/examples/allocations.yml").read_text())
        web = self.web(f"--allocations.file={self.directory}/allocations.yml")
        text = (ROOT / "docs/api.md").read_text()
        blocks = re.findall(r"```\n((?:curl [^\n]*\n)+)```\n\n```json\n(.*?)```", text, re.S)
        self.assertEqual(len(blocks), 6)
        for commands, shown in blocks:
            for url in re.findall(r"http://127\.0\.0\.1:8080([^'\s]+)", commands):
                answer = web.ask(url.replace("KEY", web.jobs()[0]["key"]).replace("[", "%5B").replace("]", "%5D"))
                self.assertEqual(answer.keys(), json.loads(shown).keys(), url)


class Failing(WithStore):
    def test_a_store_that_is_locked_holds_up_nobody_else(self):
        probe = Probe(self.path)
        probe.runs("one", 3, 1)
        probe.end()
        # As somebody with another program might: nobody can read meanwhile.
        other = sqlite3.connect(self.path, isolation_level=None)
        self.addCleanup(other.close)
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        web, answers, enough = self.web(), [], threading.Event()

        def ask_on():
            while not enough.is_set():
                answers.append(web.ask("/api/v1/jobs", status=503))

        def is_answered_first():
            """What had to wait for any of the others would come after it."""
            n_before = len(answers)
            self.assertEqual(web.get("/-/healthy").status, 200)
            return n_before == len(answers)
        with concurrent.futures.ThreadPoolExecutor(ASKERS) as pool:
            asking = [pool.submit(ask_on) for _ in range(ASKERS)]
            try:
                wait_until(lambda: len(answers) >= ASKERS, "all that may wait at once do")
                wait_until(is_answered_first, "an answer while none of the others gets theirs")
            finally:
                enough.set()
            for future in asking:
                future.result()
        self.assertEqual({tuple(answer) for answer in answers}, {("error",)})
        other.close()
        self.assertEqual(len(web.jobs()), 3)

    def test_it_starts_without_a_store_and_finds_it_later(self):
        web = self.web()
        wait_until(lambda: f"there is no store at {self.path}" in web.log(), "that there is none is in the log")
        ready = web.get("/-/ready")
        self.assertEqual((ready.status, web.get("/-/healthy").status), (503, 200))
        self.assertRegex(ready.text, "the store cannot be read at the moment")
        self.assertNotIn(str(self.directory), ready.text)
        answer = web.ask("/api/v1/jobs", status=503)
        self.assertRegex(answer["error"], "the store cannot be read")
        self.assertNotIn(str(self.directory), answer["error"])
        self.assertIn(str(self.path), web.log())
        self.probe().runs("one", 3, 1)
        self.assertEqual(len(web.jobs()), 3)
        self.assertEqual(web.get("/-/ready").status, 200)
        for suffix in ("", "-wal", "-shm"):
            pathlib.Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        web.ask("/api/v1/jobs", status=503)
        self.assertEqual(web.get("/-/ready").status, 503)
        self.probe().runs("two", 4, 1)
        self.assertEqual({job["cluster"] for job in web.jobs()}, {"two"})

    def test_a_time_that_has_passed_is_504(self):
        self.probe().runs("one", 20000, 1)  # more than any machine adds up in a millisecond
        web = self.web("--api.timeout=1ms")
        late = web.ask(f"/api/v1/usage?group_by=user&from={BASE}&to={BASE + 10000}", status=504)
        self.assertIn("--api.timeout", late["error"])


class Access(WithStore):
    def run_web(self, *flags):
        return subprocess.run([SONDE, "web", f"--store=sqlite:{self.path}", *flags], capture_output=True, text=True,
                              timeout=DEADLINE)

    def config(self, text):
        path = self.directory / "web.yml"
        path.write_text(text)
        return f"--web.config.file={path}"

    def test_it_does_not_listen_to_everybody_unless_told_so(self):
        for address in (":0", "0.0.0.0:0", "[::]:0"):
            done = self.run_web(f"--web.listen-address={address}")
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, "--web.config.file, listen on 127.0.0.1, or say --web.allow-anonymous")
            self.assertEqual(done.stdout, "")
        done = self.run_web("--web.listen-address=:0", self.config("basic_auth_users: {}\n"))
        self.assertEqual(done.returncode, 2)
        self.probe().runs("one", 3, 1)
        self.assertEqual(len(self.web("--web.allow-anonymous", listen="0.0.0.0:0").jobs()), 3)
        for host, address in (("localhost", "127.0.0.1"), ("127.0.0.2", "127.0.0.2")):
            self.check_local(host, address)

    def test_it_listens_to_this_machine_by_ipv6_without_being_told_so(self):
        need("ipv6")
        self.probe().runs("one", 3, 1)
        self.check_local("[::1]", "[::1]")

    def check_local(self, host, address):
        with Web(f"--store=sqlite:{self.path}", listen=f"{host}:0") as web:
            self.assertEqual(http_get(f"http://{address}:{web.port}/api/v1/clusters").status, 200)

    def test_on_loopback_it_is_called_by_its_own_names_and_elsewhere_by_any(self):
        self.probe().runs("one", 3, 1)

        def statuses(web):
            return [web.get("/api/v1/jobs", headers={"Host": host}).status
                    for host in ("localhost", f"127.0.0.1:{web.port}", "portal.site", "evil.example")]

        self.assertEqual(statuses(self.web()), [200, 200, 421, 421])
        self.assertEqual(statuses(self.web("--web.host=portal.site")), [200, 200, 200, 421])
        self.assertEqual(statuses(self.web("--web.allow-anonymous", listen="0.0.0.0:0")), [200] * 4)

    def test_with_users_their_password_is_asked_for_and_without_them_later_nobody_is_answered(self):
        self.probe().runs("one", 3, 1)
        flag = self.config(self.users())
        web = self.web(flag, listen="0.0.0.0:0")
        named = {"Authorization": "Basic " + base64.b64encode(b"anna:secret").decode()}
        self.assertEqual(web.get("/api/v1/jobs").status, 401)
        self.assertEqual(web.get("/").status, 401)
        self.assertEqual(web.get("/api/v1/jobs", headers=named).status, 200)
        self.assertEqual(web.get("/-/healthy").status, 200)
        self.config("basic_auth_users: {}\n")
        wait_until(lambda: web.get("/api/v1/jobs").status == 403, "the file without users is read")
        self.assertEqual(web.get("/").status, 403)

    @staticmethod
    def users():
        made = subprocess.run(["/usr/bin/python3", "-W", "ignore", "-c",
                               "import crypt; print(crypt.crypt('secret', crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16)))"],
                              capture_output=True, text=True, check=True).stdout.strip()
        return f"basic_auth_users:\n  anna: {made}\n"


class Flags(WithStore):
    def test_mistakes_are_told(self):
        for flag, sentence in (("--store=mysql://x", "--store"), ("--api.timeout=0", "must be more than 0"),
                               ("--web.telemetry-path=/x", "web.telemetry-path"), ("--web.max-connections=0", "from 1")):
            done = subprocess.run([SONDE, "web", flag], capture_output=True, text=True, timeout=DEADLINE)
            self.assertEqual(done.returncode, 2, flag)
            self.assertIn(sentence, done.stderr)

    def test_the_store_can_be_named_by_the_environment_and_the_configuration_is_read_again(self):
        self.probe().runs("one", 2, 1)
        with Web(env={"SONDE_STORE": f"sqlite:{self.path}"}) as web:
            self.assertEqual(len(web.jobs()), 2)
            self.assertEqual(web.get("/-/reload", method="POST", data=b"").status, 200)
            self.assertEqual(web.get("/-/reload").status, 405)
            web.process.send_signal(signal.SIGHUP)
            wait_until(lambda: web.log().count("configuration reloaded") == 2, "SIGHUP reads it again")
            self.assertEqual(web.get("/-/ready").status, 200)
            self.assertIn("/api/v1/usage?group_by=account,gpu_type", web.get("/api").text)


if __name__ == "__main__":
    import tap
    tap.main()
