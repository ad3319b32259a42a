#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A cluster behind a login node: the exporter with a prefix of ssh, and a real sshd on this machine."""
import contextlib
import getpass
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from clock import Clock
from families import FLEETING, scrape_at_rest
from slurm import SUITES, Slurm
from sonde import Exporter, FakeCommands, job, node, wait_until
from capabilities import need

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:" + os.environ["PATH"])
RUNNING = 'slurm_job_count_per_state{state="RUNNING"}'
# Each kind of facts costs a login.
JOBS_AND_NODES = [f"--no-collector.{name}" for name in ("config", "diag", "fairshare", "licenses", "limits", "reservations", "scheduler")]
ASKING = ("--slurm.poll-limit=50ms", "--slurm.stale-limit=1h")
JOBS_UP = 'sonde_source_up{source="cli",kind="jobs"}'


def errors(reason):
    return f'sonde_source_errors_total{{source="cli",kind="jobs",reason="{reason}"}}'


class Sshd:
    """A server of its own: keys, address and configuration in a temporary directory, nothing of ~/.ssh."""

    def __init__(self, **variables):
        self.directory = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.directory.name)
        # Nobody else takes it while the server is away: no two processes choose the same of sixteen million addresses.
        self.host, self.port = f"127.{random.randrange(256)}.{random.randrange(256)}.{random.randrange(1, 255)}", 2222
        for name in ("host_key", "key", "wrong_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path / name], check=True)
        shutil.copy(self.path / "key.pub", self.path / "authorized_keys")
        host_key = (self.path / "host_key.pub").read_text()
        (self.path / "known_hosts").write_text(f"[{self.host}]:{self.port} {host_key}")
        (self.path / "banner").write_text("Authorised use only.\n" * 100)
        (self.path / "greeting").write_text("echo Welcome to the login node\n")
        # bash reads BASH_ENV as others do their login files.
        variables = {"BASH_ENV": self.path / "greeting", **variables}
        (self.path / "config").write_text("\n".join([
            f"Port {self.port}", f"ListenAddress {self.host}", f"HostKey {self.path}/host_key", "PidFile none",
            f"AuthorizedKeysFile {self.path}/authorized_keys", "StrictModes no", "UsePAM no", "PermitRootLogin yes",
            "PasswordAuthentication no", "KbdInteractiveAuthentication no", f"Banner {self.path}/banner",
            "SetEnv " + " ".join(f"{name}={value}" for name, value in variables.items()), ""]))
        self.start()

    def start(self):
        if os.getuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # where it shuts itself in
        self.process = subprocess.Popen([SSHD, "-D", "-f", self.path / "config", "-E", self.path / "log"])
        wait_until(self.answers, "sshd listens")

    def answers(self):
        assert self.process.poll() is None, (self.path / "log").read_text()
        with socket.socket() as client:
            return client.connect_ex((self.host, self.port)) == 0

    def prefix(self, *options, key="key", known_hosts="known_hosts"):
        """As --slurm.prefix. A later option of the same name does not count: ours come after."""
        return " ".join(["ssh", "-F", "none", *options, "-oBatchMode=yes", "-oIdentitiesOnly=yes", "-oIdentityAgent=none",
                         f"-oUserKnownHostsFile={self.path}/{known_hosts}", "-oGlobalKnownHostsFile=none",
                         "-i", f"{self.path}/{key}", f"-p{self.port}", f"{getpass.getuser()}@{self.host}"])

    def kill(self):
        """Also those that serve a connection each."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        self.process.kill()
        self.process.wait()
        for pid in children:
            with contextlib.suppress(ProcessLookupError):  # its client may have gone meanwhile
                os.kill(int(pid), signal.SIGKILL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.directory.cleanup()


class Ssh(unittest.TestCase):
    def setUp(self):
        need("sshd")
        self.commands = self.enterContext(FakeCommands(f"answer '{job()}'", f"answer '{node()}'"))
        self.notes = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.sshd = self.enterContext(Sshd(PATH=f"{self.commands.path}:/usr/local/bin:/usr/bin:/bin",
                                           SQUEUE_FORMAT="%i", SINFO_SORT="N", SQUEUE_STATES="PD"))

    def start(self, *flags, prefix=None):
        """One whose time stands still: each kind is asked for once."""
        clock = self.enterContext(Clock(stands=1800000000))
        return self.enterContext(Exporter(f"--slurm.prefix={prefix or self.sshd.prefix()}", *JOBS_AND_NODES, *flags, env=clock.env))

    def start_asking(self, *flags, prefix=None):
        """One that asks again and again."""
        return self.enterContext(Exporter(f"--slurm.prefix={prefix or self.sshd.prefix()}", *JOBS_AND_NODES, *(flags or ASKING)))

    def start_limited(self):
        """One whose limits can be changed; as yet, each command may take an hour."""
        file = self.notes / "sonde.yml"

        def set_timeout(text):
            file.write_text(f"slurm: {{poll-limit: 50ms, stale-limit: 1h, timeout: {text}}}\n")
            if exporter:
                self.assertEqual(exporter.get("/-/reload", method="POST").status, 200)
        exporter = None
        set_timeout("1h")
        exporter = self.start_asking(f"--config.file={file}")
        return exporter, set_timeout

    def first_look(self, exporter):
        """A scrape after the first look at the jobs and nodes."""
        def looked():
            answer = exporter.metrics()
            samples = answer.samples()
            done = [any(re.match(rf'sonde_source_(up|errors_total){{source="cli",kind="{kind}".* [^0]', f"{series} {value}")
                        for series, value in samples.items()) for kind in ("jobs", "nodes")]
            return answer if all(done) else None
        return wait_until(looked, "jobs and nodes have been asked for")

    def assert_good(self, answer):
        self.assertEqual(answer.value(JOBS_UP), 1)
        self.assertEqual(answer.value(RUNNING), 1)
        self.assertEqual(answer.value("slurm_cpus_total"), 8)

    def test_commands_run_on_the_other_side_and_a_banner_and_a_greeting_do_no_harm(self):
        exporter = self.start()
        answer = self.first_look(exporter)
        self.assert_good(answer)
        for series, value in answer.samples().items():
            if re.match("sonde_source_(up|warnings_total|skipped_records_total)", series):
                self.assertEqual(value, str(int("_up{" in series)), series)
        self.assertEqual(exporter.log(), "")

    def test_only_the_environment_that_was_asked_for_counts_there(self):
        self.commands.set("squeue", f"env >{self.notes}/env; answer '{job()}'")
        self.assert_good(self.first_look(self.start("--slurm.conf=/etc/my slurm/it's.conf")))
        env = (self.notes / "env").read_text()
        self.assertIn("\nSLURM_CONF=/etc/my slurm/it's.conf\n", env)
        self.assertIn("\nSLURM_TIME_FORMAT=%s\n", env)
        self.assertIn("\nSLURM_BITSTR_LEN=0\n", env)
        self.assertEqual(re.findall(r"^(S(?:QUEUE|INFO)_\w+)=", env, re.M), ["SQUEUE_FORMAT2"])

    def test_the_commands_are_looked_for_where_the_path_of_the_flag_says_there(self):
        directory = self.notes / "it's a path"
        directory.symlink_to(self.commands.path)
        with Sshd(PATH="/usr/bin:/bin") as sshd:
            prefix = sshd.prefix()
            self.assert_good(self.first_look(self.start(f"--slurm.bin-path={directory}", prefix=prefix)))
            exporter = self.start(prefix=prefix)
            self.assertEqual(self.first_look(exporter).value(errors("missing")), 1)
            wait_until(lambda: "squeue is not to be found there; name its place" in exporter.log(), "it is logged")

    def test_arguments_arrive_exactly(self):
        words = ["two  words", "", "it's", "$HOME `id` $(id)", "back\\slash\\", "no!!body!", "*", "# ; & | < >",
                 "first\nsecond\n", "caf\u00e9 \u65e5\u672c", "~root", "%s\\n", "\t"]
        self.commands.set("squeue", f"printf '%s\\0' \"$@\" >{self.notes}/argv; echo '{{\"jobs\": []}}'")
        line = " ".join(['"it\'s"' if word == "it's" else f"'{word}'" for word in words])
        answer = self.first_look(self.start(f"--slurm.squeue-cli=squeue {line}"))
        self.assertEqual(answer.value(JOBS_UP), 1)
        self.assertEqual((self.notes / "argv").read_text().split("\0")[:-1], words)

    def test_the_token_is_in_nobodys_arguments(self):
        self.commands.set("squeue", f"""printf %s "$SQUEUE_FORMAT2" >{self.notes}/format
cat /proc/[0-9]*/cmdline 2>/dev/null >{self.notes}/arguments
answer '{job()}'""")
        self.assert_good(self.first_look(self.start()))
        token = re.search(r"JobID:(@[0-9a-f]{16}@),", (self.notes / "format").read_text())[1]
        arguments = (self.notes / "arguments").read_bytes()
        self.assertIn(b"--states=all", arguments)
        self.assertNotIn(token.strip("@").encode(), arguments)

    def test_what_users_write_is_not_run(self):
        evil = f"$(touch {self.notes}/owned);`touch {self.notes}/owned`|sonde:begin"
        lines = job(Name=evil) + job(JobID="2", Name="sonde:begin\\nsonde:begin\\n")
        self.commands.set("squeue", f"cat <<'END' | sed \"s/~/$token/g\"\n{lines}END\n".replace("\\n", "\n"))
        answer = self.first_look(self.start())
        self.assertEqual(answer.value(RUNNING), 2)
        self.assertEqual(os.listdir(self.notes), [])

    def test_a_failing_command_is_quoted_with_the_way_to_it(self):
        self.commands.set("squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
        exporter = self.start()
        self.assertEqual(self.first_look(exporter).value(errors("failed")), 1)
        log = wait_until(lambda: exporter.log(), "it is logged")
        self.assertIn("squeue through", log)
        self.assertIn("ssh -F none", log)
        self.assertIn("exited with status 1: slurm_load_jobs error: Unable to contact", log)
        self.assertNotIn("Authorised use", log)

    def test_a_command_that_fails_as_ssh_does_or_crashes_is_not_the_connections_fault(self):
        self.commands.set("squeue", "echo 'Unable to contact slurm controller' >&2; exit 255")
        self.commands.set("sinfo", "echo 'unable to find plugin' >&2; kill -SEGV $$")
        exporter = self.start()
        self.assertEqual(self.first_look(exporter).value(errors("failed")), 1)
        for words in ("exited with status 254: Unable to contact", "exited with status 139: unable to find plugin"):
            wait_until(lambda: words in exporter.log(), f"{words} is logged")

    def assert_out(self, exporter, reason, *words):
        """Not to be reached, for that reason, the last answer still shown. A source that hangs is down before the poll of jobs ends."""
        def failed():
            answer = exporter.metrics()
            return answer if answer.value(JOBS_UP) == 0 and errors(reason) in answer.samples() else None
        answer = wait_until(failed, "it is noticed")
        self.assertEqual(answer.value(RUNNING), 1)
        for word in words:
            wait_until(lambda: word in exporter.log(), f"{word} is logged")

    def assert_back(self, exporter):
        def is_back():
            answer = exporter.metrics()
            return answer if answer.value(JOBS_UP) == 1 else None
        self.assert_good(wait_until(is_back, "it is back"))

    def test_a_server_that_is_gone_is_the_connections_fault_until_it_is_back(self):
        exporter = self.start_asking()
        self.assert_good(self.first_look(exporter))
        self.sshd.kill()
        self.assert_out(exporter, "unreachable", "Connection refused", "is sshd running there")
        self.assertNotIn("squeue", exporter.log())
        self.sshd.start()
        self.assert_back(exporter)

    def test_a_server_that_hangs_is_given_up_at_the_deadline_until_it_is_back(self):
        exporter, set_timeout = self.start_limited()
        self.assert_good(self.first_look(exporter))
        self.sshd.process.send_signal(signal.SIGSTOP)
        set_timeout("1s")
        self.assert_out(exporter, "timeout", "no answer within --slurm.timeout (1 s): ",
                        "does not get as far as a shell")
        set_timeout("1h")
        self.sshd.process.send_signal(signal.SIGCONT)
        self.assert_back(exporter)

    def test_a_session_that_stops_in_the_middle_is_given_up_and_ends_by_itself(self):
        exporter, set_timeout = self.start_limited()
        self.assert_good(self.first_look(exporter))
        self.commands.set("squeue", f"echo $$ >>{self.notes}/pids; printf 1; kill -STOP $$")
        seconds, seen = 1, 0
        set_timeout(f"{seconds}s")

        def is_given_up():
            """There. Where a login takes longer, it has twice as long the next time."""
            nonlocal seconds, seen
            given_up = exporter.metrics().samples().get(errors("timeout"), "0")
            if int(given_up) > seen and "did not finish in time and was killed" not in exporter.log():
                seconds, seen = 2 * seconds, int(given_up)
                set_timeout(f"{seconds}s")
            return "did not finish in time and was killed" in exporter.log()
        wait_until(is_given_up, "the command is given up")
        self.assert_out(exporter, "timeout")
        self.commands.set("squeue", f"answer '{job()}'")
        set_timeout("1h")
        self.assert_back(exporter)
        pids = (self.notes / "pids").read_text().split()
        wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), "nothing is left running there")

    def test_a_session_that_breaks_in_the_middle_is_the_connections_fault(self):
        exporter = self.start_asking()
        self.assert_good(self.first_look(exporter))
        os.mkfifo(self.notes / "end")
        # more than all buffers on the way hold: what comes first has been read; its parent, or that one's, is the sshd of this connection
        self.commands.set("squeue", f"""record=$(answer '{job()}'); yes "$record" | head -c {32 << 20}; pid=$$
until grep -q '^sshd' /proc/$pid/comm; do read -r _ _ _ pid _ </proc/$pid/stat; done
kill -9 $pid; read -r line <{self.notes}/end""")
        self.assert_out(exporter, "unreachable", "lost its connection")
        self.commands.set("squeue", f"answer '{job()}'")
        self.assert_back(exporter)
        with open(self.notes / "end", "w", encoding="utf-8"):  # what was left behind ends
            pass

    def check_refused(self, words, **wrong):
        exporter = self.start(prefix=self.sshd.prefix(**wrong))
        answer = self.first_look(exporter)
        self.assertEqual(answer.value(errors("unreachable")), 1)
        self.assertNotIn("slurm_job_count", answer.text)
        for word in words:
            wait_until(lambda: word in exporter.log(), f"{word} is logged")
        self.assertNotIn("Authorised use", exporter.log())

    def test_a_key_that_is_not_taken_is_told(self):
        self.check_refused(["Permission denied (publickey)", "a key that is taken there without a password"],
                           key="wrong_key")

    def test_a_host_that_is_not_known_is_told(self):
        self.check_refused(["Host key verification failed", "known_hosts"], known_hosts="empty")

    def test_a_shared_connection_is_left_behind_and_not_waited_for(self):
        path = f"{self.sshd.path}/master"
        exporter = self.start_asking(prefix=self.sshd.prefix("-oControlMaster=auto", f"-oControlPath={path}", "-oControlPersist=yes"))
        try:
            self.assert_good(self.first_look(exporter))
            self.assertTrue(os.path.exists(path), "the master is there")
            self.assert_back(exporter)
            self.assertEqual(exporter.log(), "")
        finally:
            subprocess.run(["ssh", "-F", "none", "-S", path, "-O", "exit", "x"], capture_output=True)

    def test_a_prefix_that_cannot_be_run_is_told_at_the_start(self):
        exporter = self.start(prefix="sonde-no-ssh cedar")
        wait_until(lambda: "sonde-no-ssh, with which --slurm.prefix begins, is not to be found" in exporter.log(),
                   "it is logged")


class RealSlurm(unittest.TestCase):
    """The sandbox's commands, asked here and through ssh."""

    @classmethod
    def setUpClass(cls):
        need("sshd")
        cls.slurm = Slurm(SUITES[0])
        cls.addClassCleanup(cls.slurm.end)
        cls.slurm.calm()

    def check_source(self, source):
        sshd = self.enterContext(Sshd())
        flags = (f"--source={source}", f"--slurm.bin-path={self.slurm.env['SANDBOX_BIN']}",
                 *(f"--slurm.{kind}poll-limit=1ms" for kind in ("", "shares-", "associations-", "reservations-")))
        here = self.enterContext(Exporter(*flags))
        there = self.enterContext(Exporter(f"--slurm.prefix={sshd.prefix()}", *flags))

        def series_of(families):
            return {(name, series): value for name, found in families.items() if name.startswith("slurm_")
                    and not FLEETING.fullmatch(name) for series, value in found.items()}
        looks = scrape_at_rest(here, there)
        before, through, after = map(series_of, looks)
        steady = before.items() & after.items()  # requests are counted, also ours
        self.assertGreater(len(steady), 500)
        self.assertEqual(sorted(steady - through.items(), key=str), [])
        self.assertEqual(*({name for name in look if name.startswith("slurm_")} for look in looks[:2]))
        self.assertEqual(there.log(), "")

    def test_every_number_is_the_same_through_text(self):
        self.check_source("cli")

    def test_every_number_is_the_same_through_json(self):
        self.check_source("json")


if __name__ == "__main__":
    import tap
    tap.main()
