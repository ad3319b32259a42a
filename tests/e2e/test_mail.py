#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Mail from Slurm's MailProg to a real mail server: sonde-mail and src/mail."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from smtp import Server, Talker, certificate
from sonde import BUILD, DEADLINE, SONDE, own_host, wait_until
from capabilities import need

PROBE = BUILD / "tests/e2e/mail_probe"
SONDE_MAIL = BUILD / "src/sonde-mail"
# Each entry of a spool is synced: ten thousand of them take minutes on some disks.
MEMORY = os.environ.get("SONDE_MEMORY_DIR", "/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
ENDED = {"SLURM_CLUSTER_NAME": "beluga", "SLURM_JOB_ID": "4711", "SLURM_JOBID": "4711", "SLURM_JOB_NAME": "my job",
         "SLURM_JOB_USER": "anna", "SLURM_JOB_ACCOUNT": "(null)", "SLURM_JOB_PARTITION": "cpu",
         "SLURM_JOB_NODELIST": "c1", "SLURM_JOB_STATE": "COMPLETED", "SLURM_JOB_MAIL_TYPE": "Ended",
         "SLURM_JOB_RUN_TIME": "00:01:20", "SLURM_JOB_EXIT_CODE": "0", "SLURM_JOB_EXIT_CODE2": "0:0"}


class WithSpool(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(dir=MEMORY)
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.spool = self.directory / "spool"
        self.spool.mkdir()

    def entries(self, suffix="mail"):
        return sorted(self.spool.glob(f"*.{suffix}"))

    def sonde_mail(self, *arguments, env=None, program=SONDE_MAIL, flags=None):
        """As slurmctld calls it."""
        flags = [f"--mail.spool={self.spool}"] if flags is None else flags
        return subprocess.run([program, *flags, "-s", *arguments], env=ENDED if env is None else env, cwd="/",
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE)

    def add(self, n, to="anna", event="Ended"):
        subprocess.run([PROBE, "add", self.spool, str(n), to, event], check=True)

    def drain(self, url, *settings):
        done = subprocess.run([PROBE, self.spool, url, *settings], capture_output=True, text=True, timeout=DEADLINE)
        self.log = done.stderr
        self.assertEqual(done.returncode, 0, done.stderr)
        return {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", done.stdout)}

    @staticmethod
    def stop_clock():
        """After the entries were added. Gives the setting for a run so many seconds later, however long the runs take."""
        began = int(time.time()) + 1
        return lambda seconds: f"at={began + seconds}"

    def serve(self, *arguments, **settings):
        server = Server(*arguments, **settings)
        self.addCleanup(server.stop)
        return server


class MailProg(WithSpool):
    """sonde-mail, as slurmctld calls it."""

    def test_keeps_what_the_environment_says_and_is_silent(self):
        done = self.sonde_mail("Slurm Job_id=1 Name=x Ended", "anna@users.org")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        [path] = self.entries()
        entry = json.loads(path.read_text())
        self.assertEqual(entry["job_id"], 4711)
        self.assertEqual(entry["name"], "my job")
        self.assertEqual(entry["to"], "anna@users.org")
        self.assertNotIn("account", entry)
        self.assertEqual(path.stat().st_mode & 0o777, 0o640)

    def test_a_link_with_its_name_to_sonde_is_it(self):
        bin_, libexec = self.directory / "bin", self.directory / "libexec/sonde"
        bin_.mkdir()
        libexec.mkdir(parents=True)
        shutil.copy(SONDE, bin_ / "sonde")
        shutil.copy(SONDE_MAIL, libexec / "sonde-mail")
        (bin_ / "sonde-mail").symlink_to("sonde")
        done = self.sonde_mail("s", "anna", program=bin_ / "sonde-mail")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(self.entries()), 1)
        (libexec / "sonde-mail").unlink()
        done = self.sonde_mail("s", "anna", program=bin_ / "sonde-mail")
        self.assertEqual(done.returncode, 1)
        self.assertIn("installed whole", done.stderr)

    def test_neither_subject_nor_recipient_is_a_flag(self):
        elsewhere = self.directory / "elsewhere"
        elsewhere.mkdir()
        done = self.sonde_mail(f"--mail.spool={elsewhere}", f"--mail.spool={elsewhere}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(list(elsewhere.iterdir()), [])
        self.assertEqual(len(self.entries()), 1)
        done = self.sonde_mail("--help", "--help")
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_several_recipients_get_a_mail_each(self):
        self.sonde_mail("s", "anna, bob@users.org")
        self.assertEqual({json.loads(path.read_text())["to"] for path in self.entries()}, {"anna", "bob@users.org"})

    def test_more_recipients_than_it_takes_are_told_of(self):
        done = self.sonde_mail("s", ",".join(f"u{i}" for i in range(18)))
        self.assertEqual(done.returncode, 1)
        self.assertIn("lost: u16,u17", done.stderr)
        self.assertEqual(len(self.entries()), 16)

    def test_a_spool_that_is_not_there_is_told_with_what_to_do(self):
        self.spool.rmdir()
        done = self.sonde_mail("s", "anna")
        self.assertEqual(done.returncode, 1)
        self.assertIn("install -d", done.stderr)

    def test_wrong_use_is_told(self):
        for arguments in [(), ("s",), ("s", "anna", "more")]:
            self.assertEqual(self.sonde_mail(*arguments).returncode, 2, arguments)

    def test_the_spool_comes_from_the_file_and_a_file_that_is_wrong_is_told(self):
        file = self.directory / "report.yml"
        file.write_text(f"mail.spool: {self.spool}\nmail.url: smtp://x\n")
        done = self.sonde_mail("s", "anna", flags=[f"--config.file={file}"])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(self.entries()), 1)
        file.write_text("mail.spool: [")
        self.assertIn("report.yml", self.sonde_mail("s", "anna", flags=[f"--config.file={file}"]).stderr)

    def test_is_quick(self):
        """slurmctld waits for it: it loads little, and waits for the disk some times and for nothing else."""
        loaded = subprocess.run(["ldd", SONDE_MAIL], capture_output=True, text=True, check=True).stdout
        libraries = set(re.findall(r"(\S+)\.so\S* => ", loaded)) - {"libasan", "libubsan", "libgcc_s", "libstdc++"}
        self.assertLessEqual(libraries, {"libyaml-0", "libc", "libm"})
        process = subprocess.Popen([SONDE_MAIL, f"--mail.spool={self.spool}", "-s", "s", "anna"], env=ENDED, cwd="/")
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        # what it had to read from the disk is the machine's affair
        self.assertLess(usage.ru_nvcsw - usage.ru_majflt - usage.ru_inblock, 50)


class Sending(WithSpool):
    """To a server that takes it."""

    def test_a_report_arrives_whole(self):
        server = self.serve()
        self.sonde_mail("s", "anna")
        result = self.drain(f"smtp://127.0.0.1:{server.port}", "pdf=300000", "hello=portal.cluster.org")
        self.assertEqual(result, {"sent": 1, "summarised": 0, "given_up": 0, "left": 0})
        [mail] = server.mails
        self.assertEqual((mail.sender, mail.recipients), ("sonde@cluster.org", ["anna@users.org"]))
        self.assertEqual(mail.subject, "Job done: Käse")
        self.assertEqual(mail.text.strip(), "The report of job 4711: Käse …")
        self.assertEqual(mail.message.get_body(("html",)).get_content().split(),
                         "<!DOCTYPE html> <p>Käse = cheese.</p>".split())
        [pdf] = mail.message.iter_attachments()
        self.assertEqual((pdf.get_filename(), pdf.get_content_type()), ("job-4711.pdf", "application/pdf"))
        self.assertEqual(pdf.get_content(), bytes(300000))
        self.assertEqual(mail.message["Auto-Submitted"], "auto-generated")
        self.assertEqual(server.handler.hellos, ["portal.cluster.org"])
        self.assertLessEqual(max(map(len, mail.content.split(b"\r\n"))), 78)
        self.assertEqual(self.entries(), [])

    def test_hostile_names_stay_names(self):
        server = self.serve()
        for name in ["x\r\nBcc: evil@x.org\r\n\r\nbody", "</script><h1>", ".\n.\r\n.\n", "=?UTF-8?Q?=0D=0ABcc=3A_x?=", "é" * 500]:
            self.sonde_mail("s", "anna", env=dict(ENDED, SLURM_JOB_NAME=name, SLURM_JOB_MAIL_TYPE="Began"))
        self.sonde_mail("s\r\nBcc: evil@x.org\r\n\r\n", "anna", env={"SLURM_CLUSTER_NAME": "old"})
        self.assertEqual(self.drain(f"smtp://127.0.0.1:{server.port}")["sent"], 6)
        for mail in server.mails:
            self.assertEqual(mail.recipients, ["anna@users.org"])
            self.assertIsNone(mail.message["Bcc"])
            self.assertNotIn("\n", mail.subject)
            self.assertEqual(mail.message["To"], "anna@users.org")
        self.assertEqual(server.mails[1].subject, "Job 4711 (</script><h1>) on beluga began")
        self.assertIn("=?UTF-8?Q?", server.mails[3].subject)

    def test_with_starttls_and_a_password(self):
        need("openssl")
        crt, key = certificate(self.directory, "mail.localhost")
        server = self.serve((crt, key), (b"me", b"secret"))
        password = self.directory / "password"
        password.write_text("secret\n")
        password.chmod(0o600)
        self.add(1)
        url = f"smtp://mail.localhost:{server.port}"
        login = ("user=me", f"password-file={password}")

        self.assertEqual(self.drain(url, *login)["left"], 1)  # nobody vouches for it
        self.assertIn("no trusted TLS connection", self.log)
        self.assertIn("mail.ca-file", self.log)
        other, _ = certificate(self.directory, "other.localhost")
        self.assertEqual(self.drain(url, f"ca-file={other}", *login)["left"], 1)
        self.assertEqual(self.drain(url, f"ca-file={crt}")["left"], 1)  # and no password
        self.assertEqual(self.entries("mail")[0].name.count("_"), 0, "the server's failure is not the mail's")

        password.write_text("wrong\n")
        self.assertEqual(self.drain(url, f"ca-file={crt}", *login)["left"], 1)
        self.assertIn("does not let us in", self.log)
        self.assertNotIn("wrong", self.log)

        password.write_text("secret\n")
        self.assertEqual(self.drain(url, f"ca-file={crt}", *login)["sent"], 1, self.log)
        self.assertEqual(len(server.mails), 1)

    def test_with_tls_from_the_first_byte(self):
        need("openssl")
        crt, key = certificate(self.directory, "localhost")
        server = self.serve((crt, key), with_starttls=False)
        self.add(1)
        url = f"smtps://localhost:{server.port}"
        self.assertEqual(self.drain(url)["left"], 1)
        self.assertIn("no trusted TLS connection", self.log)
        self.assertEqual(self.drain(url, f"ca-file={crt}")["sent"], 1, self.log)

    def test_nothing_goes_to_another_host_without_tls_unless_that_is_said(self):
        server = self.serve()
        self.add(1)
        url = f"smtp://mail.localhost:{server.port}"
        self.assertEqual(self.drain(url)["left"], 1)
        self.assertIn("offers no STARTTLS", self.log)
        self.assertEqual(server.handler.n_recipients, 0)
        self.assertEqual(self.drain(url, "tls=off")["sent"], 1)

    def test_a_report_that_accounting_does_not_know_yet_waits(self):
        server = self.serve()
        self.add(1)
        url = f"smtp://127.0.0.1:{server.port}"
        at = self.stop_clock()
        self.assertEqual(self.drain(url, "unknown=1", at(0))["left"], 1)
        self.assertEqual(self.drain(url, "unknown=1", at(121))["sent"], 1)


class Faults(WithSpool):
    """Of the server, and of us."""

    def test_a_recipient_that_is_refused_for_good_is_given_up_with_the_servers_words(self):
        server = self.serve()
        server.handler.answers["nobody@users.org"] = ["550 5.1.1 no such user here \x1b[31m"]
        self.add(1, to="nobody")
        self.add(1)
        result = self.drain(f"smtp://127.0.0.1:{server.port}")
        self.assertEqual((result["sent"], result["given_up"], result["left"]), (1, 1, 0))
        self.assertIn("no such user here", self.log)
        self.assertNotIn("\x1b", self.log)
        self.assertEqual(len(list((self.spool / "given-up").iterdir())), 1)

    def test_a_recipient_that_is_refused_for_now_is_tried_again(self):
        server = self.serve()
        server.handler.answers["anna@users.org"] = ["451 4.7.1 greylisted, come back", "250 OK"]
        self.add(1)
        self.add(1, to="bob")
        url = f"smtp://127.0.0.1:{server.port}"
        at = self.stop_clock()
        result = self.drain(url, at(0))
        self.assertEqual((result["sent"], result["left"]), (1, 1))
        self.assertIn("greylisted", self.log)
        self.assertEqual(self.drain(url, at(1))["left"], 1)
        self.assertEqual(self.drain(url, at(61))["sent"], 1)
        self.assertEqual([mail.recipients[0] for mail in server.mails], ["bob@users.org", "anna@users.org"])

    def test_a_server_that_is_away_or_unwilling_is_asked_once(self):
        self.add(50)
        for lines, words in [(("554 no mail here",), "takes no mail from us"), (("421 busy",), "busy"),
                             (("220 hi", "250 hi", "550 you are nobody"), "you are nobody"),
                             (("220 hi", "250 hi", "250 ok", "421 that is enough"), "enough")]:
            talker = Talker(*lines)
            result = self.drain(f"smtp://127.0.0.1:{talker.port}")
            talker.stop()
            self.assertEqual((result["left"], talker.n_connections), (50, 1), lines)
            self.assertIn(words, self.log)
        self.assertEqual(self.drain(f"smtp://{own_host()}:2525")["left"], 50)
        self.assertIn("is it running", self.log)
        self.assertEqual(len(self.entries()), 50)

    def test_a_server_that_refuses_one_after_the_other_is_left_alone(self):
        server = self.serve()
        for i in range(20):
            server.handler.answers[f"user{i}@users.org"] = ["450 try later"]
            self.add(1, to=f"user{i}")
        self.assertEqual(self.drain(f"smtp://127.0.0.1:{server.port}")["left"], 20)
        self.assertEqual(server.handler.n_recipients, 5)

    def test_a_server_that_hangs_does_not_keep_it_from_stopping(self):
        for lines in [(), ("220 hi", "250 hi")]:
            talker = Talker(*lines)
            self.addCleanup(talker.stop)
            self.add(1)
            probe = subprocess.Popen([PROBE, self.spool, f"smtp://127.0.0.1:{talker.port}", "follow"],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            wait_until(lambda: talker.n_connections, "a connection")
            probe.send_signal(signal.SIGTERM)
            out, log = probe.communicate(timeout=DEADLINE)
            self.assertIn(b"sent=0", out)
            self.assertNotIn(b"did not answer in time", log)

    def test_ten_thousand_tasks_become_a_few_mails_and_nobody_is_forgotten(self):
        server = self.serve()
        self.add(10000)
        url = f"smtp://127.0.0.1:{server.port}"
        at = self.stop_clock()
        result = self.drain(url, at(0))
        self.assertEqual((result["sent"], result["left"]), (20, 9980))
        result = self.drain(url, at(900))
        self.assertEqual((result["sent"], result["summarised"], result["left"]), (0, 9980, 0))
        self.assertEqual(len(server.mails), 21)
        mail = server.mails[-1]
        self.assertEqual(mail.subject, "9980 mails about jobs on beluga: 998 FAILED, 8982 COMPLETED")
        self.assertIn("and 9780 more", mail.text)
        self.assertEqual(len(re.findall(r"(?m)^1000_\d+ ", mail.text)), 200)
        told = {int(task) for task in re.findall(r"report of job (\d+)", "".join(m.text for m in server.mails[:20]))}
        self.assertEqual(len(told), 20)
        self.assertEqual(self.entries() + self.entries("summary"), [])

    def test_killed_in_the_middle_it_goes_on_and_repeats_nothing_but_under_the_same_id(self):
        server = self.serve()
        for i in range(60):
            self.add(1, to=f"user{i}")
        url = f"smtp://127.0.0.1:{server.port}"
        for n in (10, 25, 40):
            server.handler.n_unanswered = n
            probe = subprocess.Popen([PROBE, self.spool, url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_until(lambda: len(server.mails) == n, f"{n} mails")
            probe.kill()
            probe.wait()
        self.assertEqual(self.drain(url)["left"], 0)
        ids = [mail.message["Message-ID"] for mail in server.mails]
        self.assertEqual(len(set(ids)), 60)
        self.assertEqual(len(ids), 63)
        self.assertEqual(len({mail.recipients[0] for mail in server.mails}), 60)

    def test_killed_while_it_sums_up_it_tells_each_of_them_once(self):
        server = self.serve()
        self.add(3000)
        url = f"smtp://127.0.0.1:{server.port}"
        at = self.stop_clock()
        self.drain(url, "per-hour=1", at(0))
        for _ in range(5):
            probe = subprocess.Popen([PROBE, self.spool, url, "per-hour=1", at(900)], stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
            # From when it has the summary until that is sent, it removes what that stands for.
            wait_until(lambda: self.entries("summary") or probe.poll() is not None, "a summary")
            probe.kill()
            probe.wait()
        self.assertEqual(self.drain(url, "per-hour=1", at(900))["left"], 0)
        summaries = {mail.message["Message-ID"]: mail.subject for mail in server.mails if "mails about" in mail.subject}
        self.assertEqual(len(summaries), 1)
        self.assertIn("2999 mails", *summaries.values())


if __name__ == "__main__":
    import tap
    tap.main()
