#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What is under packaging/: each file by the checks of the program that it is for, and on what sonde really says."""
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.parse

import unit
from prometheus import Prometheus
from sonde import BUILD, DEADLINE, ROOT, SONDE, Exporter, http_get, wait_until
from capabilities import need

PACKAGING = ROOT / "packaging"
UP = PACKAGING / "systemd/sonde-up.service.in"
MOST_EXPOSURE = 3.0  # as test_unit.py has it for the others
DEFAULT_PORTS = {"sonde-exporter": 9092, "sonde-agent": 9798, "sonde-web": 8080}

# What a simulated cluster that is seen for seconds has none of.
WITHOUT_DATA = {
    "Looks that fail",
    "Wait of jobs that started: half of them",
    "Wait of jobs that started: nine of ten",
    "Nodes with more load than CPUs",
}


def known_names():
    """All families of docs/metrics.md, and what belongs to histograms."""
    text = (ROOT / "docs/metrics.md").read_text()
    names = set()
    for name, kind in re.findall(r"^\| `(\w+)` \| (\w+) ", text, re.M):
        names |= {f"{name}_{end}" for end in ("bucket", "sum", "count")} if kind == "histogram" else {name}
    return names


def asked_names(expression):
    return set(re.findall(r"\b((?:slurm|sonde|process)_\w+)", re.sub(r'"[^"]*"|\[[^]]*\]', "", expression)))


class Unit(unittest.TestCase):
    """sonde-up.service; test_unit.py has the others."""

    def test_systemd_finds_no_mistake_and_it_is_little_exposed(self):
        need("systemd-tools")
        with tempfile.TemporaryDirectory() as directory:
            path = unit.write(directory, SONDE.parent, UP)
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))
            done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager", path],
                                  capture_output=True, text=True)
            exposure = float(re.search(r"Overall exposure level.*: ([\d.]+)", done.stdout)[1])
            self.assertLessEqual(exposure, MOST_EXPOSURE, done.stdout)

    def test_it_gives_the_agent_what_the_agents_own_unit_gives(self):
        ours, agents = unit.settings(UP), unit.settings(unit.AGENT)
        for name in ("AmbientCapabilities", "CapabilityBoundingSet", "DeviceAllow", "DevicePolicy", "ProtectProc", "ProcSubset",
                     "LimitNICE", "SystemCallFilter"):
            self.assertEqual(ours[name], agents[name], name)
        # Threads that handle requests give up what the agent keeps.
        self.assertIn("capset", " ".join(ours["SystemCallFilter"]))

    def test_it_has_the_exporters_store_and_user_and_does_not_run_beside_it(self):
        ours, exporters = unit.settings(UP), unit.settings(unit.EXPORTER)
        for name in ("User", "Group", "StateDirectory", "StateDirectoryMode", "UMask", "ReadWritePaths"):
            self.assertEqual(ours[name], exporters[name], name)
        self.assertEqual(set(ours["Conflicts"][0].split()), {f"{name}.service" for name in DEFAULT_PORTS})

    def test_all_who_can_send_mails_may_write_where_they_wait(self):
        made = (PACKAGING / "systemd/sonde.tmpfiles").read_text()
        spool = re.search(r"^d (\S+/mail) ", made, re.M)[1]
        for name in ("exporter", "up", "web"):
            helped = subprocess.run([SONDE, name, "--help"], capture_output=True, text=True, check=True).stdout
            self.assertIn("--report.config", helped)
            self.assertEqual(unit.settings(PACKAGING / f"systemd/sonde-{name}.service.in")["ReadWritePaths"], [f"-{spool}"], name)

    def test_it_starts_sonde_up(self):
        self.assertEqual(unit.command_line(UP), ["@bindir@/sonde", "up"])

    def test_all_units_are_installed(self):
        listed = re.search(r"foreach program : \[(.*)\]", (PACKAGING / "meson.build").read_text())[1]
        self.assertEqual({f"sonde-{name}.service.in" for name in re.findall(r"'(\w+)'", listed)},
                         {path.name for path in (PACKAGING / "systemd").glob("*.service.in")})


class Build(unittest.TestCase):
    """scripts/build.sh, on a project that is soon built."""

    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.directory / "meson.build").write_text(
            "project('small')\ncustom_target('copy', input: 'text', output: 'copy', command: ['cp', '@INPUT@', '@OUTPUT@'], build_by_default: true)\n")
        self.change("one")

    def change(self, text):
        (self.directory / "text").write_text(text)

    def build(self):
        done = subprocess.run(["sh", "-euc", f". '{ROOT}/scripts/build.sh'; build build/small"], cwd=self.directory, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertEqual((self.directory / "build/small/copy").read_text(), (self.directory / "text").read_text())
        return done.stderr

    def test_it_says_that_it_builds_whenever_it_does_and_only_then(self):
        told = "Building in build/small (log: build/small.log)\n"
        self.assertEqual(self.build(), told)
        self.assertEqual(self.build(), "")
        self.change("two")
        self.assertEqual(self.build(), told)
        self.assertEqual(self.build(), "")


class Places(unittest.TestCase):
    """What sonde.sysusers and sonde.tmpfiles make, below a root of their own."""

    def setUp(self):
        need("root")
        need("systemd-tools")
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for kind in ("sysusers", "tmpfiles"):
            path = self.root / f"usr/local/lib/{kind}.d/sonde.conf"
            path.parent.mkdir(parents=True)
            shutil.copy(PACKAGING / f"systemd/sonde.{kind}", path)
        (self.root / "etc").mkdir()

    def make(self, *users):
        for number, name in enumerate(users, 64030):
            with open(self.root / "etc/passwd", "a") as passwd:
                passwd.write(f"{name}:x:{number}:{number}::/:/bin/false\n")
        subprocess.run(["systemd-sysusers", f"--root={self.root}"], check=True, capture_output=True)
        done = subprocess.run(["systemd-tmpfiles", "--create", f"--root={self.root}"], capture_output=True, text=True)
        self.sonde = int(re.search(r"^sonde:\w*:\d+:(\d+):", (self.root / "etc/passwd").read_text(), re.M)[1])
        return done

    def assert_directory(self, path, mode, uid, gid):
        status = (self.root / path).stat()
        self.assertEqual((oct(status.st_mode & 0o7777), status.st_uid, status.st_gid), (oct(mode), uid, gid), path)

    def test_slurm_writes_mails_and_sonde_sends_them(self):
        done = self.make("slurm")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assert_directory("etc/sonde", 0o755, 0, 0)
        self.assert_directory("var/spool/sonde/mail", 0o2770, 64030, self.sonde)

    def test_a_host_without_slurms_user_has_all_but_the_spool(self):
        self.assertIn("'slurm'", self.make().stderr)
        self.assert_directory("etc/sonde", 0o755, 0, 0)
        self.assertFalse((self.root / "var/spool/sonde/mail").exists())


class Documents(unittest.TestCase):
    """What people are told to type."""

    @classmethod
    def setUpClass(cls):
        cls.texts = {path: path.read_text() for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))}

    def all_of(self, pattern):
        return {match for text in self.texts.values() for match in re.findall(pattern, text)}

    def test_each_file_has_one_name(self):
        self.assertEqual(self.all_of(r"MailProg=([\w/.-]+)"), {"/usr/local/bin/sonde-mail"})
        self.assertEqual(self.all_of(r"ingest\.token-file=(/[\w/.-]+)"), {"/etc/sonde/ingest-token"})

    def test_those_that_help_and_manual_name_are_installed_where_these_say(self):
        plan = json.loads((BUILD / "meson-info/intro-install_plan.json").read_text())
        places = {pathlib.Path(path).name: item["destination"] for group in plan.values() for path, item in group.items()}
        self.assertRegex(places["docs"], r"^\{\w+\}.*/doc/sonde$|/share/doc/sonde$")
        named = set()
        for name in ("admin doctor", "agent", "exporter", "jobs", "lustre", "report", "run", "up", "usage", "web"):
            for flag in ("--help", "--man"):
                shown = subprocess.run([SONDE, *name.split(), flag], capture_output=True, text=True, check=True).stdout
                found = set(re.findall(r"docs/([\w-]+\.md)", shown.replace("\\", "")))
                named |= found
                if found or flag == "--man":
                    self.assertRegex(shown, r"/share/doc/sonde\b", f"{name} {flag}")
        self.assertIn("report.md", named)
        for name in named:
            self.assertTrue((ROOT / "docs" / name).exists(), name)

    def test_nobodys_flags_are_overwritten(self):
        self.assertEqual(self.all_of(r"[^>]>\s*/etc/default/\S+"), set())

    def test_secrets_are_written_for_who_reads_them(self):
        self.assertEqual(self.all_of(r">\s*(/etc/sonde/\S+)"), set())
        written = self.all_of(r"install ([^`\n]* /dev/stdin /etc/sonde/\S+)")
        self.assertEqual({line.split()[-1].rsplit("/")[-1] for line in written}, {"ingest-token", "mail-password", "token", "view-password"})
        for line in written:
            # What create-view is given root alone reads.
            self.assertRegex(line, "^-D -m 600 " if "view" in line else "^-D -m 640 -g sonde ")


class UnderItsUnit(unittest.TestCase):
    AGENTS = sum(1 << bit for bit in (2, 12, 19))  # DAC_READ_SEARCH, NET_ADMIN, SYS_PTRACE

    @staticmethod
    def capabilities(pid):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        return {name: int(value, 16) for name, value in re.findall(r"^(Cap\w+):\t(\w+)$", status, re.M)}

    def agent_of(self, directory):
        """Its process: the one that was started by this sonde up, and listens there."""
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if path.joinpath("comm").read_text(errors="replace").startswith("sonde-agent") and \
                        f"XDG_STATE_HOME={directory}".encode() in path.joinpath("environ").read_bytes().split(b"\0"):
                    return int(path.name)
            except OSError:
                continue
        return None

    def test_the_agent_has_its_capabilities_and_who_answers_strangers_has_none(self):
        need("root")
        with tempfile.TemporaryDirectory() as directory:
            os.chown(directory, unit.DYNAMIC_UID, unit.DYNAMIC_UID)
            with Up("--source=cli", env={"XDG_STATE_HOME": directory}, starter=unit.prefix(UP)) as up:
                agent = wait_until(lambda: self.agent_of(directory), "the agent is started")
                wait_until(lambda: self.capabilities(agent)["CapEff"] == self.AGENTS, "the agent has what it needs")
                words = pathlib.Path(f"/proc/{agent}/cmdline").read_bytes().split(b"\0")
                self.assertIn(b"--profile.socket=", words, "the profile plugin tells an agent that Prometheus reaches")
                found = self.capabilities(up.process.pid)
                self.assertEqual({name: found[name] for name in ("CapPrm", "CapEff", "CapAmb")}, {"CapPrm": 0, "CapEff": 0, "CapAmb": 0})
                kept = sorted(path.name for path in pathlib.Path(directory, "sonde").iterdir())
                self.assertIn("sonde.db", kept)


class Up(Exporter):
    """`sonde up`."""

    command = "up"


ALERTS_TEST = """
rule_files: [{alerts}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {{series: 'up{{job="sonde-agent", instance="n1:9798"}}', values: '0x40'}}
      - {{series: 'up{{job="other", instance="x"}}', values: '0x40'}}
      - {{series: 'up{{job="sonde-up", instance="one:8080"}}', values: '0x40'}}
      - {{series: 'sonde_agent_up{{job="sonde-up", instance="two:8080"}}', values: '1x10 0x30'}}
      - {{series: 'sonde_agent_up{{job="sonde-agent", instance="n2:9798"}}', values: '1x40'}}
      - {{series: 'sonde_source_up{{source="cli", kind="jobs", cluster="a"}}', values: '1x5 0x35'}}
      - {{series: 'sonde_source_age_seconds{{source="cli", kind="jobs", cluster="a"}}', values: '0+60x40'}}
      - {{series: 'sonde_source_age_seconds{{source="cli", kind="config", cluster="a"}}', values: '3000x40'}}
      - {{series: 'sonde_store_retention_paused{{job="sonde-exporter", instance="e1:9092"}}', values: '0x10 1x30'}}
      - {{series: 'sonde_series_retention_paused{{job="sonde-up", instance="two:8080"}}', values: '0x40'}}
      - {{series: 'sonde_reconcile_differences{{cluster="a", comparison="usage", explained="false"}}', values: '0x10 2x30'}}
      - {{series: 'sonde_reconcile_differences{{cluster="a", comparison="runs", explained="true"}}', values: '7x40'}}
      - {{series: 'sonde_reconcile_last_run_timestamp_seconds{{cluster="a"}}', values: '-258300x40'}}
      - {{series: 'slurm_state_cpus{{cluster="a", state="idle", use="unusable"}}', values: '20x40'}}
      - {{series: 'slurm_cpus_total{{cluster="a"}}', values: '100x40'}}
      - {{series: 'slurm_state_cpus{{cluster="b", state="idle", use="unusable"}}', values: '1x40'}}
      - {{series: 'slurm_cpus_total{{cluster="b"}}', values: '100x40'}}
      - {{series: 'slurm_node_flag{{cluster="a", node="n7", flag="not_responding"}}', values: '1x40'}}
      - {{series: 'slurm_node_flag{{cluster="a", node="n8", flag="drain"}}', values: '1x40'}}
    alert_rule_test:
      - eval_time: 30m
        alertname: SondeDown
        exp_alerts: [{{exp_labels: {{severity: warning, job: sonde-agent, instance: "n1:9798"}},
                       exp_annotations: {{summary: "sonde-agent at n1:9798 does not answer",
                                          description: "Look at it there: systemctl status sonde-agent."}}}},
                     {{exp_labels: {{severity: warning, job: sonde-up, instance: "one:8080"}},
                       exp_annotations: {{summary: "sonde-up at one:8080 does not answer",
                                          description: "Look at it there: systemctl status sonde-up."}}}}]
      - {{eval_time: 14m, alertname: SondeAgentDown, exp_alerts: []}}
      - eval_time: 30m
        alertname: SondeAgentDown
        exp_alerts: [{{exp_labels: {{severity: warning, job: sonde-up, instance: "two:8080"}},
                       exp_annotations: {{summary: "Nothing is known of the jobs on two:8080: the agent there does not answer, or takes no samples",
                                          description: "Its log says why: journalctl -u sonde-up."}}}}]
      - {{eval_time: 10m, alertname: SondeSourceDown, exp_alerts: []}}
      - eval_time: 30m
        alertname: SondeSourceDown
        exp_alerts: [{{exp_labels: {{severity: warning, source: cli, kind: jobs, cluster: a}},
                       exp_annotations: {{summary: "Slurm does not tell of jobs (a)",
                                          description: "The log of sonde says why, and sonde admin doctor what to do."}}}}]
      - eval_time: 30m
        alertname: SondeDataOld
        exp_alerts: [{{exp_labels: {{severity: warning, source: cli, kind: jobs, cluster: a}},
                       exp_annotations: {{summary: "What is shown of jobs is 30m 0s old"}}}}]
      - {{eval_time: 14m, alertname: SondeRetentionPaused, exp_alerts: []}}
      - eval_time: 30m
        alertname: SondeRetentionPaused
        exp_alerts: [{{exp_labels: {{severity: warning, job: sonde-exporter, instance: "e1:9092"}},
                       exp_annotations: {{summary: "The clock of e1:9092 is in doubt: sonde-exporter deletes no data by age",
                                          description: "Check NTP there and on slurmctld's host. The log of sonde says what is wrong with the clock."}}}}]
      - eval_time: 30m
        alertname: SondeReconcileDifferences
        exp_alerts: [{{exp_labels: {{severity: warning, cluster: a, comparison: usage, explained: "false"}},
                       exp_annotations: {{summary: "2 unexplained differences between the store and slurmdbd (usage)",
                                          description: "Run sonde admin reconcile on the exporter's host: docs/reconcile.md."}}}}]
      - eval_time: 10m
        alertname: SondeReconcileNotRun
        exp_alerts: []
      - eval_time: 30m
        alertname: SondeReconcileNotRun
        exp_alerts: [{{exp_labels: {{severity: warning, cluster: a}},
                       exp_annotations: {{summary: "sonde admin reconcile has not run for 3 days",
                                          description: "Check sonde-reconcile.timer on the exporter's host."}}}}]
      - eval_time: 30m
        alertname: SlurmCpusUnusable
        exp_alerts: [{{exp_labels: {{severity: warning, cluster: a}},
                       exp_annotations: {{summary: "20% of the CPUs are on nodes that take no jobs"}}}}]
      - eval_time: 30m
        alertname: SlurmNodeNotResponding
        exp_alerts: [{{exp_labels: {{severity: warning, cluster: a, node: n7, flag: not_responding}},
                       exp_annotations: {{summary: "n7 does not answer slurmctld"}}}}]
"""


class Audit(unittest.TestCase):
    """sonde-reconcile.service runs once, as the exporter's user and as confined as it; its timer is not enabled."""

    def test_it_is_as_confined_as_the_exporter(self):
        ours = unit.settings(PACKAGING / "systemd/sonde-reconcile.service.in")
        exporter = unit.settings(PACKAGING / "systemd/sonde-exporter.service.in")
        own = {"Description", "Documentation", "Type", "EnvironmentFile", "ExecStart", "SuccessExitStatus"}
        left_out = {"ExecReload", "Restart", "RestartSec", "RestartPreventExitStatus", "ReadWritePaths", "WantedBy"}
        self.assertEqual({name: value for name, value in exporter.items() if name not in own | left_out},
                         {name: value for name, value in ours.items() if name not in own})
        self.assertEqual(ours["Type"], ["oneshot"])
        self.assertNotIn("WantedBy", ours)
        timer = unit.settings(PACKAGING / "systemd/sonde-reconcile.timer")
        self.assertEqual((timer["OnCalendar"], timer["Persistent"]), (["daily"], ["yes"]))
        self.assertIn("RandomizedDelaySec", timer)


class Scraping(unittest.TestCase):
    def promtool(self, *words):
        done = subprocess.run(["promtool", *words], capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_promtool_finds_no_mistake(self):
        for name in ("prometheus", "exporter-scrape", "agent-scrape"):
            self.promtool("check", "config", PACKAGING / f"prometheus/{name}.yml")
        self.promtool("check", "rules", PACKAGING / "prometheus/alerts.yml")

    def test_alerts_fire_when_they_should(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "test.yml")
            path.write_text(ALERTS_TEST.format(alerts=PACKAGING / "prometheus/alerts.yml"))
            self.promtool("test", "rules", path)

    def test_jobs_are_called_as_their_units_so_that_alerts_know_them(self):
        watched = re.search(r'up\{job=~"(.*)"\} == 0', (PACKAGING / "prometheus/alerts.yml").read_text())[1]
        units = {path.name.removesuffix(".service.in") for path in (PACKAGING / "systemd").glob("*.service.in")}
        files = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(PACKAGING / "prometheus").glob("*.yml"))
        named = {name for path in files for name in re.findall(r"^[ #]*- job_name: (\S+)", path.read_text(), re.M)} - {"pushgateway"}
        self.assertEqual(named - {"sonde-exporter-mila"}, units - {"sonde-web", "sonde-reconcile"})
        for name in named:
            self.assertRegex(name, rf"^(?:{watched})$")

    def test_alerts_ask_for_what_there_is(self):
        text = (PACKAGING / "prometheus/alerts.yml").read_text()
        expressions = re.findall(r"expr: (?:>-\n)?(.*)", text)
        self.assertEqual(len(expressions), text.count("- alert:"))
        asked = set().union(*map(asked_names, expressions))
        self.assertGreater(len(asked), 10)
        self.assertEqual(asked - known_names(), set())


class Consul(unittest.TestCase):
    def setUp(self):
        self.services = json.loads((PACKAGING / "consul/sonde.json").read_text())["services"]

    def test_each_program_is_registered_with_its_port(self):
        self.assertEqual({service["name"]: service["port"] for service in self.services}, DEFAULT_PORTS)
        for name, port in DEFAULT_PORTS.items():
            helped = subprocess.run([SONDE, name.removeprefix("sonde-"), "--help"], capture_output=True, text=True, check=True)
            self.assertRegex(helped.stdout, rf":{port}\b", name)

    def test_what_is_checked_answers(self):
        with Exporter("--demo") as exporter:
            for service in self.services:
                for check in service["checks"]:
                    address = urllib.parse.urlsplit(check["http"])
                    self.assertEqual(address.port, service["port"])
                    self.assertEqual(exporter.get(address.path).status, 200)


class Dashboard(unittest.TestCase):
    """Each query of packaging/grafana/sonde.json, on two clusters that a real Prometheus scrapes."""

    @classmethod
    def setUpClass(cls):
        cls.board = json.loads((PACKAGING / "grafana/sonde.json").read_text())
        cls.exporter = cls.enterClassContext(Exporter("--demo", "--slurm.poll-limit=1s"))
        targets = "".join(f"      - {{targets: ['127.0.0.1:{cls.exporter.port}'], labels: {{cluster: {name}}}}}\n" for name in "ab")
        cls.prometheus = Prometheus("/", "global: {scrape_interval: 2s, scrape_timeout: 2s}\n"
                                    "scrape_configs:\n  - job_name: sonde-exporter\n    static_configs:\n" + targets)
        cls.addClassCleanup(cls.prometheus.end)
        cls.moment = wait_until(cls.seen_at, "both are scraped some times")

    @classmethod
    def seen_at(cls):
        """When both had been scraped some times and told of all kinds. All queries are as of then: a scrape that comes late, or
        not at all, changes nothing of what was stored up to that sample."""
        for _, moment in cls.prometheus.query("min(timestamp(sonde_source_up{kind='jobs'}))"):
            seen = ("min(count_over_time(sonde_source_up{kind='jobs'}[1m])) > 3 and count(sonde_source_up{kind='jobs'}) == 2 "
                    "and min(sonde_source_up) == 1")
            return moment if cls.prometheus.query(seen, moment) else None

    def ask(self, expression, cluster=".*"):
        return self.prometheus.query(self.filled(expression, cluster), self.moment)

    def queries(self):
        for panel in self.board["panels"]:
            for target in panel.get("targets", []):
                yield panel["title"], target["expr"]

    @staticmethod
    def filled(expression, cluster=".*"):
        """As Grafana does it."""
        return expression.replace("$cluster", cluster).replace("$__rate_interval", "1m")

    def test_each_query_gives_data_or_is_known_not_to(self):
        empty = set()
        for title, expression in self.queries():
            with self.subTest(title, expression=expression):
                values = [value for _, value in self.ask(expression)]
                if not any(map(math.isfinite, values)):
                    empty.add(title)
        self.assertEqual(empty - WITHOUT_DATA, set())

    def test_what_is_known_not_to_give_data_is_still_there(self):
        self.assertEqual(WITHOUT_DATA - {title for title, _ in self.queries()}, set())

    def test_all_names_are_documented(self):
        asked = set().union(*(asked_names(expression) for _, expression in self.queries()))
        self.assertGreater(len(asked), 40)
        self.assertEqual(asked - known_names(), set())

    def test_one_cluster_can_be_chosen(self):
        asked = http_get(f"{self.prometheus.url}/api/v1/label/cluster/values?match[]=sonde_source_up").text
        self.assertEqual(json.loads(asked)["data"], ["a", "b"])
        variable = next(item for item in self.board["templating"]["list"] if item["name"] == "cluster")
        self.assertEqual(variable["definition"], "label_values(sonde_source_up, cluster)")
        for title, expression in self.queries():
            with self.subTest(title):
                self.assertIn('cluster=~"$cluster"', expression)
                self.assertEqual(self.ask(expression, "nowhere"), [])
        nodes = next(expression for title, expression in self.queries() if title == "Load and allocated CPUs" and "cpus_total" in expression)
        (_, both), = self.ask(nodes)
        (_, one), = self.ask(nodes, "a")
        self.assertEqual(both, 2 * one)

    def test_panels_have_titles_and_places_of_their_own(self):
        taken = {}
        for panel in self.board["panels"]:
            self.assertTrue(panel["title"])
            place = panel["gridPos"]
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertIsNone(taken.setdefault((x, y), None), panel["title"])
                    taken[x, y] = panel["title"]
            self.assertLessEqual(place["x"] + place["w"], 24)
        ids = [panel["id"] for panel in self.board["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual([panel["title"] for panel in self.board["panels"] if panel["type"] == "row"],
                         ["Overview", "Queue", "Nodes", "GPUs", "Users and accounts", "slurmctld", "sonde itself"])


class Container(unittest.TestCase):
    """The Containerfile, as far as it can be judged without building it."""

    def setUp(self):
        text = (PACKAGING / "container/Containerfile").read_text()
        lines = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.M)).splitlines()
        self.steps = [tuple(line.split(maxsplit=1)) for line in lines if line]

    def words(self, name):
        return [rest for step, rest in self.steps if step == name]

    def test_every_step_is_one_that_there_is(self):
        self.assertEqual({name for name, _ in self.steps} - {"FROM", "RUN", "COPY", "USER", "ENV", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD"}, set())
        self.assertEqual(self.words("FROM"), ["debian:12-slim AS build", "debian:12-slim"])

    def test_what_is_copied_is_there_and_all_that_the_build_reads(self):
        copied = [word for rest in self.words("COPY") if not rest.startswith("--from=build ") for word in rest.split()[:-1]]
        for name in copied:
            self.assertTrue((ROOT / name).exists(), name)
        read = set(re.findall(r"'\.\./(\w+)/", (ROOT / "src/meson.build").read_text())) | {"src", "packaging", "meson.build", "meson_options.txt"}
        self.assertEqual(read - set(copied), set())

    def test_shells_can_read_what_is_run(self):
        for command in self.words("RUN"):
            subprocess.run(["sh", "-n"], input=command, text=True, check=True)

    def test_it_runs_sonde_up_as_a_user(self):
        self.assertEqual(self.words("USER"), ["sonde"])
        self.assertEqual([json.loads(self.words(name)[0]) for name in ("ENTRYPOINT", "CMD")], [["/usr/bin/sonde"], ["up"]])
        names = [name for name, _ in self.steps]
        self.assertLess(max(index for index, name in enumerate(names) if name in ("RUN", "COPY")), names.index("USER"))

    @unittest.skipUnless(shutil.which("dpkg-query") and "bookworm" in pathlib.Path("/etc/os-release").read_text(), "this is not Debian 12")
    def test_the_libraries_of_all_programs_are_installed(self):
        installed = next(command for command in self.words("RUN") if "ca-certificates" in command).split()
        needed = set()
        for path in SONDE.parent.glob("sonde*"):
            if path.is_file() and os.access(path, os.X_OK) and "libslurm" not in path.name:
                listed = subprocess.run(["objdump", "-p", path], capture_output=True, text=True, check=True).stdout
                needed |= set(re.findall(r"NEEDED +(\S+)", listed))
        owners = set()
        for name in needed:
            found = subprocess.run(["dpkg-query", "-S", f"*/{name}"], capture_output=True, text=True).stdout
            owners |= {line.split(":")[0] for line in found.splitlines()}
        base = {"libc6", "libc6-i386", "libgcc-s1", "libstdc++6"}
        self.assertTrue(owners)
        self.assertEqual({name for name in owners if not re.match("lib(asan|ubsan|.*-dev)", name)} - base - set(installed), set())


if __name__ == "__main__":
    import tap
    tap.main()
