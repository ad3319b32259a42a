#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Job reports as a site has them: jobs of known behaviour on a real Slurm, seen by the agent, kept by a real Prometheus,
and mailed through a real SMTP server when slurmctld says so."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import smtp
from cluster import Cluster, JobTest
from prometheus import Prometheus
from sonde import BUILD, DEADLINE, SONDE, Agent, wait_until

SCRAPE = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: agent
    static_configs: [{{targets: ['127.0.0.1:{port}'], labels: {{cluster: site}}}}]
"""
# What a job can burn is what others on the machine leave it, and then it waits until Prometheus knows: however little it uses
# on average, that is not told. Whoever is given four cores and uses one is below the strict thresholds on any machine.
CHECKS = "least_runtime: 1s\nchecks: {cpu_low: {threshold: 1}, cpu_very_low: {threshold: 1}, cpu_uneven: {threshold: 1}}\n"
STRICT_CHECKS = "least_runtime: 1s\nchecks: {cpu_low: {threshold: 45}, cpu_very_low: {threshold: 40}}\n"
# What a job used is not judged, however long the machine takes to run it.
SHORT_CHECKS = "least_runtime: 1d\n"
# Burns, says what it burnt, stays until Prometheus knows, and ends well.
BURN = """
coproc burner {{ exec {behave} burn {seconds} 1; }}
read -r line <&"${{burner[0]}}"
echo "$line"
read -r _ <{gate}
kill $burner_PID {others}
"""


FEWER_CPUS = "--cpus-per-task=[123]\\b"  # than the four that it was given; samples that come late show more than it used


def setUpModule():
    global agent, prometheus, directory
    directory = make_directory()
    JobTest.cluster = Cluster(conf="MailProg=/sandbox/mail/prog\n")
    unittest.addModuleCleanup(JobTest.cluster.end)
    install_mail_prog(JobTest.cluster)
    agent = Agent("-t", "1")
    unittest.addModuleCleanup(agent.stop)
    port = agent.url.rsplit(":", 1)[1]
    prometheus = Prometheus("/", SCRAPE.format(port=port))
    unittest.addModuleCleanup(prometheus.end)
    (directory / "checks.yml").write_text(CHECKS)
    (directory / "strict.yml").write_text(STRICT_CHECKS)
    (directory / "short.yml").write_text(SHORT_CHECKS)


def make_directory():
    made = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(made.cleanup)
    return pathlib.Path(made.name)


def install_mail_prog(cluster):
    """sonde-mail where slurmctld can start it, with the libraries of this machine, and a spool for both."""
    place = pathlib.Path(cluster.env["SANDBOX_STATE"], "mail")
    inside = cluster.inside("mail")
    program = BUILD / "src/sonde-mail"
    libraries = re.findall(r"=> (/\S+)", subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout)
    (place / "spool").mkdir(parents=True)
    for file in (program, *map(pathlib.Path, libraries)):
        if not re.match(r"libc\.so|libm\.so|libpthread|libdl", file.name):
            (place / file.name).write_bytes(file.read_bytes())
            (place / file.name).chmod(0o755)
    (place / "prog").write_text(f"#!/bin/sh\nexport LD_LIBRARY_PATH={inside}\n"
                                f'exec {inside}/sonde-mail --mail.spool={inside}/spool "$@"\n')
    (place / "prog").chmod(0o755)
    cluster.run("chown", "-R", "slurm", f"{inside}/spool")


def report(*flags, job_id=None, checks="checks"):
    done = subprocess.run(
        [SONDE, "report", f"--slurm.bin-path={JobTest.cluster.env['SANDBOX_BIN']}", f"--prometheus.url={prometheus.url}",
         '--prometheus.match=cluster="site"', f"--checks.file={directory}/{checks}.yml", f"--store=sqlite:{directory}/none.db", "--timeout=5m",
         *flags, *([str(job_id)] if job_id else [])],
        capture_output=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


class Reports(JobTest):
    def wait_ended(self, job_id):
        def has_ended():
            told = self.cluster.run("sacct", "-nPXj", str(job_id), "-o", "State,End").stdout.strip()
            return told if told and not re.match("RUNNING|PENDING|COMPLETING", told) and "Unknown" not in told else None
        return wait_until(has_ended, f"accounting knows of the end of job {job_id}")

    def burn(self, seconds, *flags, before="", others="", shown=None):
        """`shown`: a metric, its labels and what it has to reach in Prometheus before the job ends."""
        gate = self.gate()
        script = before + BURN.format(behave=self.cluster.behave, gate=gate.path, seconds=seconds, others=others)
        job_id = self.batch(f"exec bash -c '{script}'", *flags)
        wait_until(lambda: self.burnt(job_id), f"job {job_id} has burnt")
        wait_until(lambda: any(value >= self.burnt(job_id) * 0.99 for _, value in
                               prometheus.query(f'sonde_job_cpu_seconds_total{{job_id="{job_id}"}}')),
                   f"Prometheus knows what job {job_id} burnt")
        if shown:
            name, labels, least = shown
            wait_until(lambda: any(value >= least for _, value in prometheus.query(f'{name}{{job_id="{job_id}"{labels}}}')),
                       f"Prometheus has {name} of at least {least} for job {job_id}")
        gate.open()
        self.wait_ended(job_id)
        return job_id

    def burnt(self, job_id):
        """CPU seconds, by the clock of the process."""
        said = re.search(r"cpu ([\d.]+)", self.cluster.said(job_id))
        return float(said[1]) if said else None

    def json(self, job_id, **options):
        return json.loads(report("--json", job_id=job_id, **options))

    def findings(self, told):
        return [finding["check"] for finding in told["findings"] if finding["severity"] != "note"]

    def assert_burnt(self, told, job_id):
        self.assertAlmostEqual(told["total"]["cpu_seconds"] / self.burnt(job_id), 1, delta=0.02, msg=told)

    def test_a_job_that_behaves_well_gets_no_warning(self):
        job_id = self.burn(6, "-n1")
        told = self.json(job_id)
        self.assertEqual(self.findings(told), [])
        self.assert_burnt(told, job_id)
        self.assertEqual(told["job"]["state"], "COMPLETED")

    def test_idle_cores_are_told(self):
        job_id = self.burn(6, "-n1", "-c4")
        told = self.json(job_id, checks="strict")
        self.assertEqual(len(self.findings(told)), 1, told["findings"])
        self.assertIn(self.findings(told)[0], ("serial_code", "cpu_very_low"))
        self.assert_burnt(told, job_id)
        lines = " ".join(line["line"] for line in told["advice"]["lines"])
        self.assertRegex(lines, FEWER_CPUS)

    def test_memory_that_was_not_used_is_told(self):
        told = self.json(self.burn(2, "-n1", "--mem=3G"))
        self.assertEqual(self.findings(told), ["memory_low"])
        self.assertEqual(told["total"]["memory_bytes"], 3 << 30)

    def test_a_job_that_ran_out_of_memory_is_told_so(self):
        job_id = self.batch(f"{self.cluster.behave} oom 50 200", "-n1", "--mem=100M")
        self.wait_ended(job_id)
        told = self.json(job_id, checks="short")
        self.assertEqual(self.findings(told), ["out_of_memory"])
        self.assertEqual(told["job"]["state"], "OUT_OF_MEMORY")

    def test_many_small_files_are_told(self):
        job_id = self.burn(2, "-n1", others="$files", shown=("sonde_job_open_files", "", 1100), before=f"""
mkdir -p {self.cluster.place}/many-$SLURM_JOB_ID
{self.cluster.behave} files 1100 {self.cluster.place}/many-$SLURM_JOB_ID &
files=$!
""")
        told = self.json(job_id)
        self.assertEqual(self.findings(told), ["files_small"])
        self.assertAlmostEqual(told["total"]["files_peak"] / 1100, 1, delta=0.02)

    def test_too_many_threads_are_told(self):
        told = self.json(self.burn(2, "-n1", others="$threads", shown=("sonde_job_process_threads", ',process="behave"', 13),
                                   before=f"{self.cluster.behave} threads 12 &\nthreads=$!\n"))
        self.assertEqual(self.findings(told), ["threads_many"])
        self.assertEqual([row["threads_peak"] for row in told["processes"] if row["name"] == "behave"], [13])

    def test_slurmctld_has_a_report_mailed(self):
        server = smtp.Server()
        self.addCleanup(server.stop)
        job_id = self.burn(2, "-n1", "-c4", "--mail-type=END", "--mail-user=alice@example.org",
                           "--job-name=</script><h1>\r\nBcc: x")
        spool = pathlib.Path(self.cluster.env["SANDBOX_STATE"], "mail/spool")
        wait_until(lambda: list(spool.glob("[0-9]*")), "slurmctld has called sonde-mail")
        report("--drain", f"--mail.url=smtp://127.0.0.1:{server.port}", f"--mail.spool={spool}", "--mail.from=sonde@example.org", checks="strict")
        got, = server.mails
        mail = got.message
        self.assertEqual(got.recipients, ["alice@example.org"])
        self.assertIsNone(mail["bcc"])
        self.assertIn(str(job_id), mail["subject"])
        text = mail.get_body("plain").get_content()
        self.assertRegex(text, FEWER_CPUS)
        self.assertNotIn("WARNING=", text)
        html = mail.get_body("html").get_content()
        self.assertNotIn("<h1>\n", html.replace("</script><h1>", "<h1>\n"))
        pdf, = mail.iter_attachments()
        self.assertEqual(pdf.get_content_type(), "application/pdf")
        content = pdf.get_content()
        self.assertLess(len(content), 300 << 10)
        paper = subprocess.run(["pdftotext", "-layout", "-", "-"], input=content, capture_output=True, check=True).stdout.decode()
        self.assertIn(str(job_id), paper)
        self.assertRegex(paper, FEWER_CPUS)
        self.assertEqual(list(spool.glob("[0-9]*")), [])
        if "SONDE_KEEP" in os.environ:
            pathlib.Path(os.environ["SONDE_KEEP"], "mail.pdf").write_bytes(content)
            pathlib.Path(os.environ["SONDE_KEEP"], "mail.txt").write_text(text)
            pathlib.Path(os.environ["SONDE_KEEP"], "mail.html").write_text(html)


if __name__ == "__main__":
    import tap
    tap.main()
