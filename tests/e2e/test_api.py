#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the API answers is what docs/openapi.json says: every described path is answered, with nothing that is not described."""
import copy
import json
import pathlib
import re
import tempfile
import unittest
import urllib.parse

import jsonschema

from pages import PAST
from sonde import ROOT, Exporter, Up, wait_until
from test_web import Probe, Web

FILE = ROOT / "docs/openapi.json"

# A value of each parameter that a path takes, as somebody might write it.
VALUES = {
    "account": "physics", "after": None, "cluster": "sim", "efficiency_above": "0.1", "efficiency_below": "0.9", "ended": "true",
    "from": "2026-09-01", "gpu_type": "a100", "group_by": "user,state", "job": "123", "key": None, "hours": "2", "limit": "3",
    "min_cpus": "1", "min_gpus": "1", "min_seconds": "1", "name": "x", "node": "n[1-2]", "offset": "1", "partition": "gpu",
    "plot": "cpu", "q": "a", "qos": "normal", "reason": "Priority", "reservation": "x", "sort": "-cpus", "state": "COMPLETED",
    "to": "2100-01-01", "user": "alice",
}


class Description:
    """The file, read strictly: what is not described is not there."""

    def __init__(self):
        self.plain = json.loads(FILE.read_text())
        self.strict = copy.deepcopy(self.plain)
        self._forbid_others(self.strict)
        self.resolver = jsonschema.RefResolver.from_schema(self.strict)

    def _forbid_others(self, part):
        if isinstance(part, dict):
            if "properties" in part and isinstance(part["properties"], dict) and part.get("type") == "object":
                part.setdefault("additionalProperties", False)
            for value in part.values():
                self._forbid_others(value)
        elif isinstance(part, list):
            for value in part:
                self._forbid_others(value)

    def schema(self, path, status="200"):
        answer = self.strict["paths"][path]["get"]["responses"][status]
        while "$ref" in answer:
            answer = self.resolver.resolve(answer["$ref"])[1]
        return answer["content"]["application/json"]["schema"]

    def all_schemas(self):
        for path, operations in self.strict["paths"].items():
            yield path, self.schema(path)
        yield from self.strict["components"]["schemas"].items()

    def check(self, path, status, document):
        mistakes = list(jsonschema.Draft202012Validator(self.schema(path, status), resolver=self.resolver).iter_errors(document))
        assert not mistakes, (path, [f"{'/'.join(map(str, m.absolute_path))}: {m.message[:300]}" for m in mistakes[:5]])

    def parameters(self, path):
        return [(parameter["name"], parameter["in"]) for parameter in self.plain["paths"][path]["get"]["parameters"]]


class Simulated(Exporter):
    """An exporter that keeps what a simulated cluster does, of all kinds."""

    def __init__(self, store):
        super().__init__("--demo", f"--store=sqlite:{store}")


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.description = Description()
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        store = cls.directory / "sonde.db"
        allocations = cls.directory / "allocations.yml"
        allocations.write_text((ROOT / "packaging/examples/allocations.yml").read_text())
        cls.exporter = cls.enterClassContext(Simulated(store))
        cls.web = cls.enterClassContext(Web(f"--store=sqlite:{store}", f"--allocations.file={allocations}"))
        # Boards are looked at anew every ten seconds.
        wait_until(lambda: cls.exporter.get().status == 200 and cls.has_all(), "the store has jobs and nodes")
        job = cls.web.ask("/api/v1/jobs?state=RUNNING&limit=1")["jobs"][0]
        arrays = [job for job in cls.web.ask("/api/v1/jobs?limit=1000")["jobs"] if "array_job_id" in job]
        cls.parts = {"key": job["key"], "id": str(job["job_id"]), "name": job["user"], "account": job["account"],
                     "array": str(arrays[0]["array_job_id"] if arrays else 0)}

    @classmethod
    def has_all(cls):
        answer = cls.web.get("/api/v1/overview")
        if answer.status != 200:
            return False
        clusters = json.loads(answer.body)["clusters"]
        return clusters and clusters[0].get("node_states") and clusters[0].get("job_states")

    def address(self, path):
        """What stands between braces, filled in."""
        part = "account" if "/accounts/" in path else "array" if "/arrays/" in path else None
        if "/trends/" in path:
            return path.replace("{name}", "cpus")
        return re.sub(r"\{(\w+)\}", lambda found: urllib.parse.quote(self.parts[part or found[1]], safe=""), path)

    def needed(self, path):
        return {"/api/v1/search": "?q=a", "/api/v1/series/{id}": "?plot=cpu"}.get(path, "")

    def test_the_description_is_valid_and_is_what_is_answered(self):
        for _, schema in self.description.all_schemas():
            jsonschema.Draft202012Validator.check_schema(schema)
        self.assertEqual(self.web.get("/api/v1/openapi.json").text, FILE.read_text())

    def test_every_described_path_is_answered_with_what_is_described_and_nothing_else(self):
        for path in self.description.plain["paths"]:
            with self.subTest(path):
                answer = self.web.get(self.address(path) + self.needed(path))
                self.assertEqual(answer.status, 200, answer.body[:300])
                self.description.check(path, str(answer.status), json.loads(answer.body))

    def test_answers_have_something_in_them(self):
        for path, member in (("jobs", "jobs"), ("queue", "jobs"), ("nodes", "nodes"), ("partitions", "partitions"),
                             ("clusters", "clusters"), ("search?q=a", "results"), ("usage?group_by=user", "rows"),
                             ("constants", "constants")):
            self.assertTrue(self.web.ask(f"/api/v1/{path}")[member], path)

    def test_every_described_parameter_is_taken(self):
        for path in self.description.plain["paths"]:
            for name, place in self.description.parameters(path):
                value = "idle" if (path, name) == ("/api/v1/nodes", "state") else VALUES.get(name)
                if place != "query" or value is None or "/trends/" in path:
                    continue
                query = dict(urllib.parse.parse_qsl(self.needed(path)[1:]), **{name: value})
                if name == "ended":
                    query["from"] = VALUES["from"]
                answer = self.web.get(self.address(path) + "?" + urllib.parse.urlencode(query))
                if answer.status == 404:  # nothing of it is in this place
                    self.description.check(path, "404", json.loads(answer.body))
                    continue
                self.assertEqual(answer.status, 200, (path, name, answer.body[:300]))
                self.description.check(path, "200", json.loads(answer.body))

    def test_refusals_are_as_described(self):
        for path, status in (("/api/v1/jobs?state=NONE", 400), ("/api/v1/queue?sort=x", 400), ("/api/v1/jobs/x", 404),
                             ("/api/v1/arrays/0", 404), ("/api/v1/users/nobody-at-all/summary", 404)):
            document = self.web.ask(path, status)
            self.description.check("/api/v1/jobs", str(status), document)
            self.assertTrue(document["error"])

    def test_all_of_a_simulated_cluster_says_so(self):
        for path in ("overview", "queue", "partitions", "reservations", "search?q=a", "jobs", "nodes", "usage"):
            self.assertIs(self.web.ask(f"/api/v1/{path}")["simulated"], True, path)


class Series(unittest.TestCase):
    def test_numbers_over_time_are_as_described(self):
        description = Description()
        with Up("--demo") as up:
            def ask(path, described):
                answer = up.get(path)
                self.assertEqual(answer.status, 200, (path, answer.body[:300]))
                document = json.loads(answer.body)
                description.check(described, "200", document)
                self.assertTrue(all(len(point) == len(document["labels"]) for point in document["points"]), path)
                return document

            up.wait_log(PAST)
            jobs = json.loads(up.get("/api/v1/jobs?state=RUNNING&min_seconds=3600&limit=1").body)["jobs"]
            for name in ("cpus", "gpus", "memory", "nodes", "jobs"):
                ask(f"/api/v1/trends/{name}?hours=2", "/api/v1/trends/{name}")
            ask(f"/api/v1/series/{jobs[0]['job_id']}?plot=cpu", "/api/v1/series/{id}")


class Examples(unittest.TestCase):
    def test_what_the_docs_show_is_what_the_description_says(self):
        description = Description()
        text = (ROOT / "docs/api.md").read_text()
        shown = re.findall(r"\n## `(/api/v1/[^`]*)`\n(.*?)(?=\n## )", text, re.S)
        described = {re.sub(r"[A-Z]+", lambda word: "{" + word[0].lower() + "}", path): part for path, part in shown}
        for path, part in described.items():
            self.assertIn(path, description.plain["paths"])
            for example in re.findall(r"```json\n(.*?)```", part, re.S):
                description.check(path, "200", json.loads(example))


class Empty(unittest.TestCase):
    def test_a_store_of_few_jobs_is_answered_as_described_too(self):
        description = Description()
        with tempfile.TemporaryDirectory() as directory:
            probe = Probe(f"{directory}/sonde.db")
            probe.runs("one", 3, 1)
            with Web(f"--store=sqlite:{directory}/sonde.db") as web:
                for path in ("/api/v1/jobs", "/api/v1/clusters", "/api/v1/nodes", "/api/v1/usage", "/api/v1/overview",
                             "/api/v1/reservations", "/api/v1/health"):
                    description.check(path, "200", web.ask(path))
                for path in ("/api/v1/queue", "/api/v1/partitions"):  # nobody has looked at what there is now
                    description.check(path, "503", web.ask(path, status=503))
            probe.end()


if __name__ == "__main__":
    import tap
    tap.main()
