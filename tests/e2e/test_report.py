#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`sonde report`: what it finds where, what it writes, and what happens when something is away. Jobs are those of a made
store (tests/golden/made_store.c) and of a recorded sacct (tests/data/sacct); Prometheus and the mail server are real."""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import tempfile
import termios
import unittest
import xml.dom.minidom

import smtp
from prometheus import Prometheus
from sonde import BUILD, DEADLINE, ROOT, SONDE, Exporter, wait_until

OCTOBER = 1790812800  # 2026-10-01T00:00:00Z
NOW = OCTOBER + 348 * 3600
RECORDED = 1794841651  # when job 5435002 of the recorded sacct began
HOUR, GIB = 3600, 1 << 30
CONFIG = "global: {scrape_interval: 15s}\n"
SACCT = ROOT / "tests/data/sacct"


def setUpModule():
    global directory, prometheus
    directory = unittest.enterModuleContext(tempfile.TemporaryDirectory())
    subprocess.run([BUILD / "tests/golden/made_store", f"{directory}/store.db"], check=True)
    prometheus = Prometheus("/", CONFIG, day_of_job_100())
    unittest.addModuleCleanup(prometheus.end)


def day_of_job_100():
    """Of cedar's: 4 of 8 CPUs on two nodes. Beluga's job with the same id is in there as well."""
    lines = []
    for cluster, rate in (("cedar", 2), ("beluga", 900)):
        for node in ("g1", "g2"):
            labels = f'{{cluster="{cluster}",job_id="100",node="{node}"}}'
            for name, value in (("cpu_seconds_total", lambda t, rate=rate: rate * t), ("memory_bytes", lambda t: 3 * GIB),
                                ("cpus_allocated", lambda t: 4)):
                lines += (f"sonde_job_{name}{labels} {value(t)} {OCTOBER + HOUR + t}\n" for t in range(5, 24 * HOUR + 60, 15))
    for t in range(3):  # of the recorded job, which took two seconds
        for name, value in (("cpu_seconds_total", t), ("memory_bytes", 77 << 20)):
            lines.append(f'sonde_job_{name}{{cluster="sandbox",job_id="5435002",node="c4"}} {value} {RECORDED + t}\n')
    return "".join(lines) + "# EOF\n"


class ReportTest(unittest.TestCase):
    def run_report(self, *arguments, env=None, clock=NOW):
        environment = {**os.environ, "FAKE_SACCT_ANSWER": str(SACCT / "24.11.txt"), "TZ": "UTC", "LC_ALL": "C.UTF-8", **(env or {})}
        if clock:
            environment["SONDE_CLOCK"] = str(clock)
        # unless a test names one: no store that this machine happens to have
        store = () if any(argument.startswith(("--store", "--config.file")) for argument in arguments) else ("--store=",)
        # a later flag of the same name counts
        return subprocess.run([SONDE, "report", f"--slurm.bin-path={SACCT}/bin", "--timeout=5m", *store, *arguments], capture_output=True,
                              env=environment, timeout=DEADLINE)

    def report(self, *arguments, errors="", **options):
        done = self.run_report(*arguments, **options)
        self.assertEqual((done.returncode, done.stderr.decode()), (0, errors))
        return done.stdout

    def refused(self, *arguments, status, words, **options):
        done = self.run_report(*arguments, **options)
        self.assertIn(words, done.stderr.decode())
        self.assertEqual(done.returncode, status)
        return done

    def store(self):
        return f"--store=sqlite:{directory}/store.db"

    def asking(self):
        return (self.store(), f"--prometheus.url={prometheus.url}", '--prometheus.match=cedar=cluster="cedar"',
                '--prometheus.match=beluga=cluster="beluga"')


class Finding(ReportTest):
    def test_a_job_of_accounting_alone(self):
        text = self.report("5435009").decode()
        self.assertIn("Job 5435009 of carol ran out of memory", text)
        self.assertIn("No measurements were found.", text)

    def test_several_jobs_are_told_one_after_the_other_and_a_missing_one_is_no_hindrance(self):
        done = self.refused("5435002", "99", "5435009", status=1, words="there is no job 99 in Slurm's accounting")
        text = done.stdout.decode()
        self.assertLess(text.index("Job 5435002"), text.index("\n\nJob 5435009"))
        told = self.report("--json", "5435002", "5435009").decode().splitlines()
        self.assertEqual([json.loads(line)["job"]["job_id"] for line in told], [5435002, 5435009])

    def test_a_mistake_in_a_name_is_told_before_anything_else(self):
        done = self.refused("5435002", "47a11", status=2, words='"47a11" is no job')
        self.assertEqual(done.stdout, b"")

    def test_a_job_of_two_clusters_must_say_of_which(self):
        self.refused(self.store(), "100", status=1, words="say which, as in beluga:100")
        told = json.loads(self.report(self.store(), "--json", "beluga:100"))
        self.assertEqual((told["job"]["cluster"], told["job"]["name"]), ("beluga", "elsewhere"))
        told = json.loads(self.report(self.store(), "--json", "--cluster=cedar", "100"))
        self.assertEqual((told["job"]["cluster"], told["job"]["name"]), ("cedar", "train"))

    def test_a_store_that_may_not_be_read_is_a_note(self):
        locked = pathlib.Path(directory, "locked")
        locked.write_text("not a store")
        text = self.run_report(f"--store=sqlite:{locked}", "5435009")
        self.assertEqual(text.returncode, 0)
        self.assertRegex(text.stderr.decode(), "^sonde report: .*; going on with what sacct tells\n$")
        self.assertIn(b"ran out of memory", text.stdout)
        self.refused("--store=mysql://u:secret@h/db", "5435009", status=2, words="--store")

    def test_an_array_is_summed_up(self):
        self.refused(self.store(), "103", status=1, words="--array")
        text = self.report(self.store(), "--array", "cedar:103").decode()
        self.assertIn("2 tasks of bob: 1 COMPLETED, 1 TIMEOUT.", text)
        self.assertEqual(json.loads(self.report(self.store(), "--array", "--json", "103"))["tasks"], 2)

    def test_wrong_flags_are_told(self):
        for flags, words in ((("--json", "--html", "1"), "--json and --html exclude each other"),
                             ((), "name a job"),
                             (("--html", "1", "2"), "name one only"),
                             (("--follow", "1"), "--follow is for --drain"),
                             (("--drain", "1"), "it takes no JOBID"),
                             (("--chart=cpu", "1"), "say --svg or --png"),
                             (("--svg", "1"), "say which with --chart"),
                             (("--chart=beauty", "--svg", "1"), 'there is no "beauty"'),
                             (("--timeout=0s", "1"), "--timeout must be more than 0"),
                             (("--report.url=ftp://x", "1"), "--report.url begins with https://"),
                             (("--report.url=https://x/%z", "1"), "%j for the job"),
                             (("--prometheus.match=}", "1"), "--prometheus.match"),
                             (("--prometheus.url=what", "1"), "--prometheus.url: "),
                             (("--mail.to=x@y", "1"), "--mail.to is for --mail"),
                             (("--checks.file=/nowhere.yml", "1"), "/nowhere.yml"),
                             (("--config.file=/nowhere.yml", "1"), "/nowhere.yml")):
            with self.subTest(flags):
                self.refused(*flags, status=2, words=words)


class Measured(ReportTest):
    def test_what_the_cluster_s_own_samples_tell(self):
        told = json.loads(self.report(*self.asking(), "--json", "cedar:100"))
        self.assertTrue(told["origin"]["has_series"])
        self.assertEqual(told["origin"]["series"], prometheus.url)
        self.assertAlmostEqual(told["total"]["cpu_seconds"] / (4 * 24 * HOUR), 1, delta=0.02)
        self.assertAlmostEqual(told["total"]["memory_peak_bytes"] / (6 * GIB), 1, delta=0.01)
        self.assertEqual(len(told["plots"]["cpus"]["lines"]), 2)
        self.assertNotRegex(json.dumps(told), r"(?i)\bnan\b|\binfinity\b")

    def test_text_has_no_colour_unless_it_is_on_a_terminal_or_wanted(self):
        plain = self.report(*self.asking(), "cedar:100").decode()
        self.assertNotIn("\033", plain)
        self.assertIn("\033[", self.report(*self.asking(), "--color=always", "cedar:100").decode())
        self.assertNotIn("█", self.report(*self.asking(), "cedar:100", env={"LC_ALL": "C"}).decode())
        self.assertIn("█", plain)

    def test_a_terminal_is_written_to_within_its_width(self):
        parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        for env, has_colour in (({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
            process = subprocess.Popen([SONDE, "report", f"--slurm.bin-path={SACCT}/bin", "--timeout=5m", "--store=", "5435009"], stdout=child,
                                       env={**os.environ, "FAKE_SACCT_ANSWER": str(SACCT / "24.11.txt"), "LC_ALL": "C.UTF-8", **env})
            text = b""
            while b"As of" not in text:
                self.assertTrue(select.select([parent], [], [], DEADLINE)[0], text)
                text += os.read(parent, 65536)
            self.assertEqual(process.wait(), 0)
            self.assertEqual(b"\033[" in text, has_colour, text)
            lines = re.sub(rb"\033\[[\d;]*m", b"", text).decode().splitlines()
            self.assertLessEqual(max(map(len, lines)), 60)
        process = subprocess.Popen([SONDE, "report", "--pdf=-", "1"], stdout=child, stderr=subprocess.PIPE)
        self.assertIn(b"is a terminal", process.communicate(timeout=DEADLINE)[1])
        self.assertEqual(process.returncode, 2)
        os.close(parent)
        os.close(child)

    def test_pages_paper_and_pictures(self):
        html = self.report(*self.asking(), "--html", "cedar:100").decode()
        self.assertRegex(html, "(?i)^<!doctype html>")
        self.assertIn("<svg", html)
        pdf = pathlib.Path(directory, "report.pdf")
        self.assertEqual(self.report(*self.asking(), f"--pdf={pdf}", "cedar:100"), b"")
        self.assertTrue(pdf.read_bytes().startswith(b"%PDF"))
        self.assertTrue(self.report(*self.asking(), "--pdf=-", "cedar:100").startswith(b"%PDF"))
        svg = self.report(*self.asking(), "--chart=cpu", "--svg", "cedar:100")
        self.assertEqual(xml.dom.minidom.parseString(svg).documentElement.tagName, "svg")
        self.assertTrue(self.report(*self.asking(), "--chart=jobs_rss", "--png", "cedar:100").startswith(b"\x89PNG"))
        self.refused(self.store(), "--chart=cpu", "--svg", "cedar:100", status=1, words="there is nothing to draw")
        self.refused(*self.asking(), "--pdf=/nowhere/x.pdf", "cedar:100", status=1, words="cannot write /nowhere/x.pdf")

    def test_the_old_shapes(self):
        self.assertRegex(self.report(*self.asking(), "--petricore=mail", "cedar:100").decode(), r"\nWARNING=(true|false)\n?\Z")
        self.assertIsInstance(json.loads(self.report(*self.asking(), "--petricore=usage", "cedar:100")), (dict, list))

    def test_where_more_is_to_be_seen(self):
        told = json.loads(self.report(self.store(), "--json", "--report.url=https://portal/%c/job/%j?100%%", "cedar:100"))
        self.assertEqual(told["more_url"], "https://portal/cedar/job/100?100%")

    def test_a_file_of_settings(self):
        file = pathlib.Path(directory, "report.yml")
        file.write_text(f"store: sqlite:{directory}/store.db\ncluster: cedar\nprometheus:\n  url: {prometheus.url}\n"
                        "  match: ['cedar=cluster=\"cedar\"']\nmail.spool: /nowhere\n")
        self.assertTrue(json.loads(self.report(f"--config.file={file}", "--json", "100"))["origin"]["has_series"])
        file.write_text("stor: x\n")
        self.refused(f"--config.file={file}", "1", status=2, words="did you mean store?")


class Away(ReportTest):
    def test_a_prometheus_that_is_away(self):
        text = self.report(self.store(), "--prometheus.url=http://127.0.0.1:9", "cedar:100").decode()
        self.assertRegex(text, r"Missing\s+.*127\.0\.0\.1:9")
        self.assertIn("Job 100 of alice completed", text)

    # --timeout is for what hangs and for what works: it is long, and such a test waits for it once.

    def test_a_prometheus_that_never_answers_is_waited_for_once_and_holds_up_no_report(self):
        hanging = smtp.Talker()
        self.addCleanup(hanging.stop)
        told = [json.loads(line) for line in self.report(
            self.store(), "--json", "--timeout=30s", f"--prometheus.url=http://127.0.0.1:{hanging.port}", "cedar:100", "cedar:101",
            "cedar:105", "beluga:100").splitlines()]
        self.assertEqual(len(told), 4)
        self.assertEqual(hanging.n_connections, 1)
        for report in told:
            self.assertIn(str(hanging.port), report["origin"]["why_no_series"])
        self.assertEqual([node["cpu_seconds"] for node in told[0]["nodes"]], [170000.5])  # as its agent told
        self.assertEqual(told[0]["total"]["cpu_seconds"], 345600)  # accounting has more

    def test_a_sacct_that_never_answers(self):
        self.refused("--timeout=1s", "5435009", status=1, words="sacct", env={"FAKE_SACCT_REFUSAL": "read x </dev/zero"})
        # what the store has is told all the same
        self.report(self.store(), "--timeout=30s", "cedar:106", env={"FAKE_SACCT_REFUSAL": "read x </dev/zero"})

    def test_a_pipe_that_is_closed_is_no_misfortune(self):
        done = subprocess.run(f"FAKE_SACCT_ANSWER={SACCT}/24.11.txt {SONDE} report --store= --slurm.bin-path={SACCT}/bin 5435009 5435002 | true",
                              shell=True, capture_output=True, timeout=DEADLINE)
        self.assertEqual(done.stderr, b"")


class Kept(ReportTest):
    def test_what_prometheus_told_of_a_job_outlives_it(self):
        store = f"--store=sqlite:{directory}/kept.db"
        exporter = Exporter(
            "--source=cli", f"--slurm.bin-path={SACCT}/bin", "--cluster.name=sandbox", store, f"--prometheus.url={prometheus.url}",
            '--prometheus.match=cluster="sandbox"', "--store.summaries=100", "--no-collector.lustre", "--no-collector.lustre_jobs",
            env={"FAKE_SACCT_ANSWER": str(SACCT / "24.11.txt"), "SONDE_CLOCK": str(RECORDED + HOUR)})
        try:
            wait_until(lambda: exporter.get().samples().get('sonde_summaries_total{outcome="written"}') == "1", "a summary is kept")
            samples = exporter.get().samples()
            self.assertEqual(samples["sonde_summaries_up"], "1")
            self.assertEqual(samples['sonde_summaries_total{outcome="failed"}'], "0")
        finally:
            exporter.stop()
        told = json.loads(self.report(store, "--json", "5435002", clock=RECORDED + HOUR))
        self.assertTrue(told["origin"]["has_summary"])
        self.assertFalse(told["origin"]["has_series"])
        self.assertEqual(told["total"]["memory_peak_bytes"], 77 << 20)
        self.assertIn("kept", self.report(store, "5435002", clock=RECORDED + HOUR).decode())


class Mail(ReportTest):
    def setUp(self):
        self.server = smtp.Server()
        self.addCleanup(self.server.stop)
        self.spool = pathlib.Path(tempfile.mkdtemp(dir=directory))

    def sending(self):
        return (f"--mail.url=smtp://127.0.0.1:{self.server.port}", "--mail.domain=example.org", f"--mail.spool={self.spool}")

    def spool_mail(self, job_id, cluster="", to="alice"):
        env = {"SLURM_JOB_ID": str(job_id), "SLURM_JOB_MAIL_TYPE": "Ended", "SLURM_CLUSTER_NAME": cluster, "SLURM_JOB_NAME": "x"}
        subprocess.run([BUILD / "src/sonde-mail", f"--mail.spool={self.spool}", "-s", "subject", to], env=env, check=True)

    def entries(self):
        return list(self.spool.glob("*.mail"))

    def test_a_report_is_sent_to_the_job_s_user(self):
        self.assertEqual(self.report(*self.sending(), "--mail", "5435009"), b"")
        mail, = self.server.mails
        self.assertEqual((mail.recipients, mail.sender), (["carol@example.org"], "sonde@example.org"))
        self.assertEqual(mail.subject, "Job 5435009: oom, ran out of memory")
        self.assertIn("ran out of memory", mail.text)
        self.assertIn("<table", mail.message.get_body("html").get_content())
        pdf, = mail.message.iter_attachments()
        self.assertTrue(pdf.get_content().startswith(b"%PDF"))

    def test_a_report_is_sent_to_whom_one_says(self):
        self.report(*self.sending(), "--mail", "--mail.to=staff@site", "5435009")
        self.assertEqual(self.server.mails[0].recipients, ["staff@site"])
        self.refused(*self.sending(), "--mail", "--mail.to=a b", "5435009", status=1, words="a b")

    def test_a_mail_that_cannot_be_sent_is_told(self):
        self.refused("--mail.url=smtp://127.0.0.1:9", "--mail", "5435009", status=1, words="127.0.0.1")

    def test_the_spool_is_emptied(self):
        self.spool_mail(5435009)
        self.spool_mail(100, "cedar", "bob@elsewhere")
        self.report(*self.sending(), self.store(), "--drain", "--log.level=error", clock=None)
        self.assertEqual(self.entries(), [])
        first, second = self.server.mails
        self.assertEqual((first.recipients, second.recipients), (["alice@example.org"], ["bob@elsewhere"]))
        self.assertIn("ran out of memory", first.text)
        self.assertEqual(second.subject, "Job 100 on cedar: train, completed")

    def test_a_job_that_accounting_does_not_know_yet_waits(self):
        self.spool_mail(99)
        self.report(*self.sending(), "--drain", "--log.level=error", clock=None)
        self.assertEqual(len(self.entries()), 1)
        self.assertEqual(self.server.mails, [])

    def test_a_wrong_setting_is_told_at_once(self):
        self.refused(*self.sending(), "--drain", f"--mail.spool={self.spool}/none", status=1, words="none")
        self.refused(*self.sending(), "--drain", "--mail.from=a b", status=2, words="--mail.from")

    def test_the_exporter_has_the_spool_emptied(self):
        config = pathlib.Path(directory, "mail.yml")
        config.write_text(f"mail:\n  url: smtp://127.0.0.1:{self.server.port}\n  domain: example.org\n  spool: {self.spool}\n"
                          f"slurm.bin-path: {SACCT}/bin\n")
        exporter = Exporter("--source=sim:nodes=2,jobs=2", f"--report.config={config}",
                            env={"FAKE_SACCT_ANSWER": str(SACCT / "24.11.txt")})
        try:
            wait_until(lambda: exporter.get("/metrics").value('sonde_mail_drain_up{simulated="true"}') == 1, "the child runs")
            self.spool_mail(5435009)
            wait_until(lambda: self.server.mails, "a mail came")
            child, = children_of(exporter.process.pid)
            os.kill(child, signal.SIGKILL)
            wait_until(lambda: [other for other in children_of(exporter.process.pid) if other != child], "another is started")
            child, = children_of(exporter.process.pid)
            self.spool_mail(5435002)
            wait_until(lambda: len(self.server.mails) == 2, "another mail came")
        finally:
            exporter.stop()
        self.assertFalse(pathlib.Path(f"/proc/{child}").exists())


def children_of(pid):
    """Those that have not ended."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text(errors="replace").rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(stat.parent.name))
    return found


if __name__ == "__main__":
    import tap
    tap.main()
