# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of Lustre share: `sonde lustre`, a server's job_stats as files, and a Prometheus whose answers a test writes."""
import http.server
import json
import os
import pathlib
import threading
import urllib.parse

from sonde import Exporter


class Lustre(Exporter):
    """`sonde lustre` on a free port."""

    command = "lustre"


class Target:
    """An OST or MDT: its job_stats as Lustre 2.15 prints it, replaced as a whole."""

    def __init__(self, proc, name):
        kind = "mdt" if "-MDT" in name else "obdfilter"
        self.path = pathlib.Path(proc, "fs/lustre", kind, name, "job_stats")
        self.path.parent.mkdir(parents=True)
        self.ids = {}
        self.write()

    @staticmethod
    def counter(name, samples, unit="reqs", **more):
        rest = "".join(f", {key}: {value}" for key, value in more.items())
        return f"  {name}:{'':{max(0, 15 - len(name))}} {{ samples: {samples:11}, unit: {unit:>5}{rest} }}\n"

    def set(self, job_id, read_bytes=0, write_bytes=0, io_bytes=1 << 20, **operations):
        self.ids[job_id] = "".join((
            f"- job_id:          {job_id}\n  snapshot_time:   1700000000.000000000\n",
            self.counter("read_bytes", read_bytes // io_bytes, "bytes", min=io_bytes, max=io_bytes, sum=read_bytes, sumsq=0),
            self.counter("write_bytes", write_bytes // io_bytes, "bytes", min=io_bytes, max=io_bytes, sum=write_bytes, sumsq=0),
            *(self.counter(name, samples) for name, samples in operations.items())))

    def write(self):
        fresh = self.path.with_suffix(".new")
        fresh.write_text("job_stats:\n" + "".join(self.ids.values()))
        fresh.rename(self.path)


def vector(samples):
    """The answer to a query: [({label: value}, number), …]."""
    rows = [{"metric": labels, "value": [1700000000.5, str(value)]} for labels, value in samples]
    return {"status": "success", "data": {"resultType": "vector", "result": rows}}


class StandIn:
    """Answers each query with what the test has put for a word of it; any other one with nothing."""

    def __init__(self):
        stand_in = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                url = urllib.parse.urlsplit(self.path)
                query = urllib.parse.parse_qs(url.query).get("query", [""])[0]
                stand_in.asked.append((url.path, query, self.headers.get("Authorization")))
                stand_in.may_answer.wait()
                status, body = stand_in.answer(query)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                try:
                    self.end_headers()
                    self.wfile.write(body)
                except (BrokenPipeError, ConnectionResetError):  # who asked has gone
                    self.close_connection = True

            def log_message(self, *_):
                pass

        self.asked, self.answers = [], {}
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def put(self, word, samples, status=200):
        """Samples, or an answer as it is."""
        self.answers[word] = (status, samples if isinstance(samples, bytes) else json.dumps(
            samples if isinstance(samples, dict) else vector(samples)).encode())

    def answer(self, query):
        for word, answer in self.answers.items():
            if word in query:
                return answer
        return 200, json.dumps(vector([])).encode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.may_answer.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def squeue_lines(*jobs):
    """A squeue of the peer's format: (id, account, user), …"""
    return "\n".join(f"echo '{job} {account} {user}'" for job, account, user in jobs) or ":"


def own_ids():
    """Users of this machine to be resolved: (uid, name, primary group)."""
    import grp
    import pwd
    return [(record.pw_uid, record.pw_name, grp.getgrgid(record.pw_gid).gr_name) for record in pwd.getpwall()
            if record.pw_uid in (0, 1, 2, os.getuid())]
