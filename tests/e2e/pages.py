# SPDX-License-Identifier: GPL-2.0-or-later
"""The pages of `sonde up`: walking through all of them, reading what is in them, and a small cluster with hostile names."""
import collections
import html.parser
import json
import os
import pathlib
import re
import tempfile
import time
import unittest
import urllib.parse

import sonde
from sonde import wait_until

PAST = "the simulated past is complete"  # what `sonde up --demo` logs when a day of series and jobs has been written
PAGES = ("/", "/jobs", "/nodes", "/partitions", "/reservations", "/clusters", "/allocations", "/health", "/search?q=cn01",
         "/jobs?kept=1", "/nodes?view=table", "/jobs?state=PENDING", "/jobs?offset=1000000", "/jobs?user=nobody-has-this-name")


class Up(sonde.Up):
    """`sonde up`, with whatever it keeps in a directory of the test's own."""

    def __init__(self, directory, *flags, env=None, **arguments):
        os.chmod(directory, 0o1777)  # started by root, it becomes another user
        environment = {"XDG_STATE_HOME": str(directory), "XDG_RUNTIME_DIR": str(directory), "TMPDIR": str(directory)}
        super().__init__(*flags, env=environment | (env or {}), **arguments)


class Page(html.parser.HTMLParser):
    """What is in a page: its elements, in order, with their attributes, what is drawn within it (SVG), and its texts."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.drawn, self.texts, self.open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        (self.drawn if "svg" in self.open else self.elements).append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def of(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]

    def words(self):
        """All pairs of an element and an attribute."""
        return {(tag, name) for tag, attrs in self.elements + self.drawn for name in (None, *attrs)}

    def addresses(self):
        """What it leads to and what it needs."""
        for tag, attrs in self.elements:
            yield from (attrs[name] for name in ("href", "src", "srcset", "action", "data-series") if attrs.get(name) is not None)


def page_of(answer):
    """What is in it, read once."""
    if not hasattr(answer, "page"):
        answer.page = Page(answer.text)
    return answer.page


def shape(path):
    """The same for pages of one kind: /job/7?a=1 and /job/8?a=2."""
    address = urllib.parse.urlsplit(path)
    parts = address.path.split("/")
    return "/".join(parts[:4] if parts[1] == "api" else parts[:2]), tuple(sorted(dict(urllib.parse.parse_qsl(address.query))))


def walk(get, alike, most=600, more=()):
    """path → answer: all that can be reached from these pages by links of this host, so many of each shape."""
    first = (*PAGES, *more)
    answers, waiting, seen, known = {}, collections.deque(first), collections.Counter(map(shape, first)), set(first)
    while waiting and len(answers) < most:
        path = waiting.popleft()
        answers[path] = answer = get(path)
        if not (answer.headers["Content-Type"] or "").startswith("text/html"):
            continue
        for address in page_of(answer).addresses():
            whole = urllib.parse.urlsplit(urllib.parse.urljoin(f"http://here{path}", address))
            if whole.netloc != "here" or whole.scheme != "http":
                continue
            target = urllib.parse.urlunsplit(("", "", whole.path, whole.query, ""))
            if target not in known and seen[shape(target)] < alike:
                known.add(target)
                seen[shape(target)] += 1
                waiting.append(target)
    return answers


def is_page(answer):
    return (answer.headers["Content-Type"] or "").startswith("text/html")


def numbers(text):
    return set(re.findall(r"\d[\d.,:]*\d|\d", text))


class OfDemo(unittest.TestCase):
    """On the simulated cluster, which is walked through once for all tests of a class."""

    alike = 1  # pages of each shape

    @classmethod
    def setUpClass(cls):
        directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        # Its time stands still: pages say the same again, however long a test takes.
        cls.up = cls.enterClassContext(Up(directory, "--demo", env={"SONDE_CLOCK": str(int(time.time()))}))
        cls.up.wait_log(PAST)
        cls.special = tuple(cls.special_pages())
        cls.answers = walk(cls.up.get, alike=cls.alike, more=cls.special)
        cls.pages = {path: answer for path, answer in cls.answers.items() if is_page(answer)}

    @classmethod
    def special_pages(cls):
        """Jobs of several kinds, which the first links need not lead to."""
        queue = json.loads(cls.up.get("/api/v1/queue?limit=1000").text)["jobs"]
        yield f"/array/{next(job['array_job_id'] for job in queue if 'array_job_id' in job)}"
        yield f"/job/{next(job['job_id'] for job in queue if job['state'] == 'RUNNING')}"
        for question in ("state=COMPLETED&min_gpus=1&min_seconds=3600", "state=FAILED,TIMEOUT&min_seconds=600"):
            found, = wait_until(lambda: json.loads(cls.up.get(f"/api/v1/jobs?limit=1&{question}").text)["jobs"], question)
            yield f"/job/{found['job_id']}?key={found['key']}"

    def on_each_page(self, check):
        for path, answer in self.pages.items():
            with self.subTest(path):
                check(answer, page_of(answer))

    def one_of_each(self):
        """A page of each kind, the first that was met, and those that are looked at in several ways."""
        found = {}
        for path in self.pages:
            found.setdefault(shape(path)[0], path)
        return list({path: None for path in (*PAGES, *self.special, *found.values()) if path in self.pages})


HOSTILE = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "' onfocus='alert(1)' autofocus='", "</title></main><svg/onload=alert(1)>",
    "javascript:alert(1)//", "&lt;b&gt;&#60;i&#62;", "../../etc/passwd?x=1&y=2#z", "%3Cimg%20src%3Dx%3E%00", "a\nb\r\tc\x1b[31m", "\u202egnp\u2066",
    "{{7*7}}${7*7}`", "<!--", "]]></textarea>", "long" * 70, "<a href=javascript:alert(1)>", "\\u003cb\\u003e\\", "+ & = ; ' \"", "<base href=//x>",
)
IN_HOST_LISTS = [text for text in HOSTILE if not re.search(r"[\[\],\s\x00-\x1f]", text)]


class Recording:
    """A small cluster as `sonde admin record` writes it; names are either such ones or harmless."""

    JOBS = len(HOSTILE)

    def __init__(self, directory, is_hostile):
        self.is_hostile, self.names = is_hostile, {}
        self.directory, self.now = pathlib.Path(directory), int(time.time())
        self.directory.mkdir()
        self.directory.parent.chmod(0o755)
        for kind, members in (("config", {"config.cluster": self.name("cluster", 1), "config.version": "24.11.5", "config.user_id": 0, "config.hidden": 0}),
                              ("diag", {"diag.time": self.now}), ("nodes", self.nodes()), ("jobs", self.jobs()), ("reservations", self.reservations()), ("shares", self.shares()),
                              ("licenses", {"licenses": [{"name": self.name("licence", 0), "total": 4, "used": 1, "free": 3, "reserved": 0}]}),
                              ("associations", {"associations": [], "qos": [], "limits": []})):
            head = {"sonde": "0.1.0", "format": 1, "kind": kind, "source": "cli", "time": self.now}
            (self.directory / f"000001-{kind}.json").write_text(json.dumps({**head, **members}))

    def name(self, kind, i):
        texts = IN_HOST_LISTS if kind == "node" else HOSTILE
        harmless = f"{kind}{i:03}"
        hostile = texts[i % len(texts)] + harmless
        self.names[hostile] = harmless
        return hostile if self.is_hostile else harmless

    def nodes(self):
        n = len(IN_HOST_LISTS)
        nodes = [{"name": self.name("node", i), "state": "mixed" if i % 3 else "idle+drain", "cpus": 64, "cpus_alloc": 8, "cpus_idle": 56, "cpus_other": 0,
                  "cpu_load": 7.5, "memory_bytes": 1 << 38, "memory_alloc_bytes": 1 << 34, "memory_free_bytes": 1 << 37, "gres": "gpu:a100:4",
                  "gres_used": "gpu:a100:1(IDX:0)", "features": self.name("feature", i), "version": "24.11.5", "weight": 1, "first_partition": i,
                  "n_partitions": 1, "reservation": self.name("reservation", i % 3),
                  **({} if i % 3 else {"reason": self.name("remark", i), "reason_user": "root", "reason_time": self.now - 3600})} for i in range(n)]
        return {"nodes.lacks_settings": False, "nodes": nodes, "memberships": [{"partition": i} for i in range(n)],
                "partitions": [{"name": self.name("partition", i), "is_default": i == 0, "is_up": True, "time_limit_minutes": 1440} for i in range(n)]}

    def jobs(self):
        def one(i):
            state = ("RUNNING", "PENDING", "COMPLETED", "FAILED")[i % 4]
            node = self.name("node", i % len(IN_HOST_LISTS))
            return {"id": 1000 + i, "array_job_id": 1003 if i in (3, 7) else 0, **({"array_task_id": i} if i in (3, 7) else {}), "tasks": 1,
                    "het_job_id": 0, "het_offset": 0, "user_id": 2000 + i, "restarts": 0, "state": state, "user": self.name("user", i),
                    "account": self.name("account", i), "qos": self.name("qos", i), "name": self.name("job", i), "features": self.name("feature", i),
                    "partition": self.name("partition", i % len(IN_HOST_LISTS)), "alloc_node": "login1", "reservation": self.name("reservation", i % 3),
                    "tres": "cpu=8,mem=16G,node=1,billing=8,gres/gpu=1,gres/gpu:a100=1", "cpus": 8, "node_count": 1, "memory_bytes": 1 << 34,
                    "time_limit_minutes": 600, "priority": 100 + i, "submit_time": self.now - 7200 - i, "eligible_time": self.now - 7200 - i,
                    **({"reason": self.name("reason", i)} if state == "PENDING" else {"nodes": node, "start_time": self.now - 3600}),
                    **({"end_time": self.now - 60} if state in ("COMPLETED", "FAILED") else {})}
        return {"jobs.lacks_features": False, "jobs.lacks_qos": False, "jobs": [one(i) for i in range(self.JOBS)]}

    def reservations(self):
        return {"reservations": [{"name": self.name("reservation", i), "nodes": self.name("node", i), "users": self.name("user", i), "flags": "SPEC_NODES",
                                  "tres": "cpu=64", "node_count": 1, "core_count": 64, "is_active": True, "start_time": self.now - 3600,
                                  "end_time": self.now + 3600} for i in range(3)]}

    def shares(self):
        return {"shares": [{"account": self.name("account", i), "user": self.name("user", i), "parent": self.name("account", i), "is_parent": False,
                            "raw_shares": 1, "normalised_shares": 0.1, "raw_usage": 1000, "normalised_usage": 0.1, "effective_usage": 0.1,
                            "factor": 0.5, "level": 1.5} for i in range(self.JOBS)]}

    def harmless(self, path):
        """The address that the same page has where names are harmless."""
        text = re.sub(r"\bfrom=\d+", "from=then", urllib.parse.unquote(path, errors="replace").replace("+", " "))
        for hostile, harmless in sorted(self.names.items(), key=lambda pair: -len(pair[0])):
            text = text.replace(hostile.replace("+", " "), harmless)
        return text


def start_on(test, recording, *flags):
    directory = test.enterContext(tempfile.TemporaryDirectory())
    up = test.enterContext(Up(directory, f"--source=replay:{recording.directory}", "--no-agent", f"--store=sqlite:{directory}/sonde.db",
                              f"--series.path={directory}/series.db", *flags))
    return up


class OfHostile(unittest.TestCase):
    def walked(self, is_hostile):
        recording = Recording(pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "recording"), is_hostile)
        up = start_on(self, recording)
        wait_until(lambda: "/job/1000" in up.get("/jobs?kept=1").text, "jobs are kept")
        answers = walk(up.get, alike=Recording.JOBS)
        return up, recording, {path: answer for path, answer in answers.items() if is_page(answer)}
