#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""sonde run: that the command notices nothing, and that what is told of it is true."""
import base64
import contextlib
import http.server
import json
import os
import pathlib
import pty
import random
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from clock import Clock
from sonde import AS_AT_A_TERMINAL, BUILD, DEADLINE, SONDE, mount_namespace, wait_until
from capabilities import need

NO_MUNGE = "--munge-socket=/nonexistent"
MUNGED = shutil.which("munged", path="/usr/sbin:/usr/local/sbin")
PYTHON = sys.executable
# Processor time is used until as much has been used. What is said is said on standard error, where sonde run prints no samples.
BURN = """
import os, sys, time
def burn(seconds):
    while time.process_time() < seconds:
        pass
def say(word):
    print(word, file=sys.stderr, flush=True)
"""
PERIOD = 10  # seconds of the test's clock, from one sample to the next
FIRST = 1  # until the first
LEAST = 0.05  # that the end of a command may be held up


class Receiver:
    """Stands in for the exporter: keeps what is posted, and answers as it is told to."""

    def __init__(self, address=("127.0.0.1", 0), status=200, words=b""):
        self.posts, self.ended = [], []  # ended: those whose sender has closed the connection
        self.hold = threading.Event()
        self.hold.set()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.posts.append((self.path, self.headers, body))
                outer.hold.wait()
                with contextlib.suppress(OSError):
                    self.send_response(outer.status)
                    self.send_header("Content-Length", str(len(outer.words)))
                    self.end_headers()
                    self.wfile.write(outer.words)
                    self.connection.recv(1)
                outer.ended.append(self.path)

            def log_message(self, *_):
                pass

        self.status, self.words = status, words
        self.server = http.server.ThreadingHTTPServer(address, Handler)
        self.server.daemon_threads = True
        self.address = "%s:%d" % self.server.server_address
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def samples(self):
        return [json.loads(body) for _, _, body in list(self.posts)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hold.set()
        self.server.shutdown()
        self.server.server_close()


def environment(**changes):
    """Ours, without a job's, and the changes; None takes a variable away."""
    env = {key: value for key, value in os.environ.items()
           if not key.startswith("SLURM_") and key not in ("SAMPLE_RATE", "http_proxy")}
    env.update({"USER": "alice"}, **changes)
    return {key: value for key, value in env.items() if value is not None}


def start(*arguments, env=None, **options):
    return subprocess.Popen([*AS_AT_A_TERMINAL, SONDE, "run", *arguments], env=env or environment(), text=True, **options)


def run(*arguments, env=None, starter=AS_AT_A_TERMINAL, **options):
    return subprocess.run([*starter, SONDE, "run", *arguments], env=env or environment(), text=True,
                          capture_output=True, timeout=DEADLINE, **options)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def own_group():
    """For SIGTSTP, which nobody heeds whose group has no parent elsewhere in the session."""
    os.setpgid(0, 0)


class Case(unittest.TestCase):
    """Time stands still, for those that have the clock in their environment, until a test moves it on."""

    def setUp(self):
        self.clock = self.enterContext(Clock(stands=1800000000))
        self.env = environment(**self.clock.env, SAMPLE_RATE=str(PERIOD))

    def receiver(self, **options):
        receiver = self.enterContext(Receiver(**options))
        receiver.env = dict(self.env, SLURM_EXPORTER=receiver.address, SLURM_JOB_ID="42")
        return receiver

    def start_waiting(self, *arguments, script="echo ready >&2; read line", **options):
        """A command that runs, and will until its standard input is closed."""
        process = self.enterContext(start(*arguments, "sh", "-c", script, stdin=subprocess.PIPE,
                                          stderr=subprocess.PIPE, **options))
        self.assertEqual(process.stderr.readline(), "ready\n")
        return process

    def wait_posts(self, receiver, n):
        """As many posts, one for each time that the clock is moved on. It stands until the answer has been read, if there is one."""
        while len(receiver.posts) < n:
            before = len(receiver.posts)
            self.clock.advance(PERIOD if before else FIRST)
            wait_until(lambda: len(receiver.posts) > before, f"post {before + 1}")
            if receiver.hold.is_set():
                wait_until(lambda: len(receiver.ended) > before, f"the answer to post {before + 1} is read")

    def end(self, process, status=0):
        """Ends the command, and gives what was said on standard error since."""
        process.stdin.close()
        errors = process.stderr.read()
        self.assertEqual(process.wait(DEADLINE), status, errors)
        return errors

    def directory(self):
        return pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))


class Command(Case):
    """What the command, and whoever started it, can see."""

    def test_the_exit_status_is_the_commands(self):
        for script, status in (("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -KILL $$", 137),
                               ("kill -TERM $$", 143), ("kill -SEGV $$", 139), ("kill -INT $$", 130)):
            self.assertEqual(run("sh", "-c", script).returncode, status, script)

    def test_a_command_that_cannot_be_started_is_told_as_by_a_shell(self):
        missing, denied = run("sonde-no-such-command"), run("/etc/passwd")
        self.assertEqual((missing.returncode, denied.returncode), (127, 126))
        self.assertIn("sonde-no-such-command: there is no such command", missing.stderr)
        self.assertIn("/etc/passwd: Permission denied", denied.stderr)
        self.assertEqual(run("").returncode, 127)

    def test_a_directory_of_path_that_may_not_be_entered_is_passed_over(self):
        directory = self.directory()
        directory.chmod(0)
        self.addCleanup(directory.chmod, 0o700)
        env = environment(PATH=f"{directory}:{os.environ['PATH']}")
        if os.geteuid() == 0:
            need("root")
        # Root may enter every directory, and nobody else perhaps not that of the build.
        nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        copy = self.directory()
        copy.chmod(0o755)
        program = shutil.copy(BUILD / "src/sonde-run", copy)
        for command, status in (("sonde-no-such-command", 127), ("true", 0)):
            done = subprocess.run([program, "--", command], env=env, capture_output=True, timeout=DEADLINE, **nobody)
            self.assertEqual(done.returncode, status, done.stderr)

    def test_a_missing_command_and_a_wrong_flag_are_told(self):
        for arguments in ((), ("--",), ("--cmd",), ("--no-such-flag", "true")):
            result = run(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn("--help", result.stderr)

    def test_the_command_line_is_taken_as_it_is(self):
        for arguments in (["--", "echo", "-n", "--verbose"], ["echo", "-n", "--verbose"],
                          ["--cmd", "echo", "-n", "--verbose"], ["--sample-rate", "5", "echo", "-n", "--verbose"]):
            self.assertEqual(run(*arguments).stdout, "--verbose")
        self.assertEqual(run("printf", "%s|", "", "a b", "--", "$HOME").stdout, "|a b|--|$HOME|")

    def test_standard_input_and_output_pass_through(self):
        text = "line\n" * 100000
        result = run("--jobid=1", "--endpoint=127.0.0.1:1", "sh", "-c", "cat; echo careful >&2", input=text, env=self.env)
        self.assertEqual(result.stdout, text)
        self.assertEqual(result.stderr, "careful\n")

    def test_descriptors_are_those_that_we_were_given(self):
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        script = f"{PYTHON} -c 'import os; print(sorted(map(int, os.listdir(\"/proc/self/fd\"))))'"
        for redirections in ("", "<&-", "2>&-", "<&- 2>&-"):
            alone = subprocess.run(f"{script} {redirections}", shell=True, pass_fds=[write],
                                   capture_output=True, text=True)
            ours = subprocess.run(f"{SONDE} run {script} {redirections}", shell=True, pass_fds=[write],
                                  capture_output=True, text=True, env=environment())
            self.assertIn(str(write), alone.stdout)
            self.assertEqual(ours.stdout, alone.stdout, redirections)
        os.close(write)

    def test_no_copy_of_a_descriptor_is_held_back(self):
        """Who waits for the command to close its standard output does not wait for us."""
        with start("sh", "-c", "echo x; exec >&-; read line", stdin=subprocess.PIPE,
                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            self.assertEqual(process.stdout.read(), "x\n")
            self.assertIsNone(process.poll())
            process.stdin.close()
            self.assertEqual(process.wait(DEADLINE), 1)

    def test_group_session_directory_environment_and_signals_are_those_that_we_were_given(self):
        script = ("import os, signal; print(os.getpgid(0), os.getsid(0), os.getcwd(), os.environ, "
                  "signal.pthread_sigmask(signal.SIG_BLOCK, []), "
                  "[n for n in range(1, 32) if signal.getsignal(n) == signal.SIG_IGN])")

        def prepare():
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, signal.SIGTERM])
            for ignored in (signal.SIGHUP, signal.SIGCHLD):
                signal.signal(ignored, signal.SIG_IGN)

        command = [PYTHON, "-c", script]
        ours = run(*command, cwd="/usr", preexec_fn=prepare, starter=())
        alone = subprocess.run(command, cwd="/usr", preexec_fn=prepare, env=environment(),
                               capture_output=True, text=True)
        self.assertEqual(alone.stderr, "")
        self.assertEqual(ours.stdout, alone.stdout)

    def test_signals_are_passed_on(self):
        script = """
import os, signal
signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b"got term\\n"), os._exit(5)))  # print() may be under way
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"got usr1\\n"))
print("ready", flush=True)
while True:
    signal.pause()
"""
        with start(PYTHON, "-c", script, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.send_signal(signal.SIGUSR1)
            self.assertEqual(process.stdout.readline(), "got usr1\n")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.stdout.read(), "got term\n")
            self.assertEqual(process.wait(DEADLINE), 5)

    def test_an_ended_command_ends_us_whatever_it_was_ended_by(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGABRT,
                       signal.SIGSEGV, signal.SIGALRM, signal.SIGPIPE, signal.SIGRTMIN + 3):
            with start("sh", "-c", "ulimit -c 0; echo ready; exec sleep 1000", stdout=subprocess.PIPE,
                       stderr=subprocess.DEVNULL) as process:
                self.assertEqual(process.stdout.readline(), "ready\n")
                process.send_signal(number)
                self.assertEqual(process.wait(DEADLINE), 128 + number)

    def test_a_killed_wrapper_takes_its_command_along(self):
        with start("sh", "-c", "echo $$; exec sleep 1000", stdout=subprocess.PIPE,
                   stderr=subprocess.DEVNULL) as process:
            child = int(process.stdout.readline())
            process.kill()
            process.wait(DEADLINE)
            wait_until(lambda: not alive(child), "the command is gone")

    def test_a_command_that_was_stopped_and_woken_by_others_goes_on(self):
        with start("sh", "-c", "echo $$; read line; exit 7", stdin=subprocess.PIPE, preexec_fn=own_group,
                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            child = int(process.stdout.readline())
            for stop in (signal.SIGSTOP, signal.SIGTSTP):
                os.kill(child, stop)
                wait_until(lambda: self.state(child) == "T", "it has stopped")
                os.kill(child, signal.SIGCONT)
                wait_until(lambda: self.state(child) != "T", "it goes on")
            self.assertNotEqual(self.state(process.pid), "T")
            process.stdin.close()
            self.assertEqual(process.wait(DEADLINE), 7)

    def test_suspending_and_resuming_us_suspends_and_resumes_the_command(self):
        """As Slurm does with a task: SIGTSTP, and SIGCONT later."""
        with start("sh", "-c", "echo $$; read line; exit 7", stdin=subprocess.PIPE, preexec_fn=own_group,
                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            child = int(process.stdout.readline())
            process.send_signal(signal.SIGTSTP)
            wait_until(lambda: self.state(child) == "T" and self.state(process.pid) == "T", "both have stopped")
            process.send_signal(signal.SIGCONT)
            wait_until(lambda: self.state(child) != "T" and self.state(process.pid) != "T", "both go on")
            process.stdin.close()
            self.assertEqual(process.wait(DEADLINE), 7)

    @staticmethod
    def state(pid):
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]

    def test_orphans_are_waited_for_and_outlive_us(self):
        script = "(sleep 1000 & echo $!); (true & echo $!); echo $PPID; read line"
        with start("sh", "-c", script, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                   stderr=subprocess.DEVNULL) as process:
            lasting, ended, wrapper = (int(process.stdout.readline()) for _ in range(3))
            wait_until(lambda: not os.path.exists(f"/proc/{ended}"), "no zombie is left")
            with open(f"/proc/{lasting}/stat") as file:
                self.assertEqual(int(file.read().rpartition(")")[2].split()[1]), wrapper)
            process.stdin.close()
            process.wait(DEADLINE)
            self.assertTrue(alive(lasting))
            os.kill(lasting, signal.SIGKILL)

    def test_it_can_be_the_first_process_of_a_container(self):
        need("pid-namespaces")
        unshare = [*mount_namespace(), "--pid", "--fork", "--mount-proc", "--kill-child"]
        result = subprocess.run([*unshare, SONDE, "run", "sh", "-c", "echo $PPID; kill -USR1 1; sleep 1000"],
                                capture_output=True, text=True, env=environment(), timeout=DEADLINE)
        self.assertEqual((result.stdout, result.returncode), ("1\n", 128 + signal.SIGUSR1))


class Terminal(Case):
    """A shell with job control on a terminal."""

    def setUp(self):
        super().setUp()
        self.said = ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execvpe("env", [*AS_AT_A_TERMINAL, "sh", "-i"], environment(PS1="$ ", ENV=None))
        self.addCleanup(self.close)

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.pid, 0)

    def type(self, text):
        os.write(self.terminal, text.encode())

    def expect(self, text):
        def has_come():
            while select.select([self.terminal], [], [], 0)[0]:
                self.said += os.read(self.terminal, 4096).decode(errors="replace")
            return text in self.said
        wait_until(has_come, f"{text!r} on the terminal; it said {self.said!r}")
        self.said = self.said.partition(text)[2]

    def test_it_can_be_stopped_and_continued(self):
        self.type(f"{SONDE} run sh -c 'echo rea''dy; read line; echo got $line; exit 6'\n")
        self.expect("ready")
        self.type("\x1a")
        self.expect("Stopped")
        self.type("echo sh''ell\n")
        self.expect("shell")
        self.type("fg\n")
        self.type("this\n")
        self.expect("got this")
        self.type("echo status=$?.\n")
        self.expect("status=6.")

    def test_the_terminals_interrupt_comes_once_and_ends_a_loop(self):
        self.type(f"for i in 1 2 3; do {SONDE} run sh -c "
                  "'trap \"n=\\${n}x; echo int=\\$n.\" INT; echo rea''dy; read a; read b'; done\n")
        self.expect("ready")
        self.type("\x03")
        self.expect("int=x.")
        self.type("\n\n")
        self.expect("ready")  # it was not ended by it, so the loop goes on
        self.type("\n\n")
        self.expect("ready")
        self.type("\n\n")
        self.type(f"for i in 1 2 3; do echo tu''rn $i; {SONDE} run sleep 1000; done\n")
        self.expect("turn 1")
        wait_until(self.sleeps, "the command runs")
        self.type("\x03")
        self.type("echo sta''tus=$?.\n")
        self.expect("status=130.")
        self.assertNotIn("turn 2", self.said)

    def sleeps(self):
        group = os.tcgetpgrp(self.terminal)
        for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                name, _, rest = path.read_text(errors="replace").partition(" (")[2].rpartition(")")
                if name == "sleep" and int(rest.split()[2]) == group:
                    return True
        return False


class Trace(Case):
    """What is posted."""

    def test_a_sample_says_what_it_must(self):
        receiver = self.receiver()
        receiver.env.update(SLURM_STEP_ID="3", SLURM_PROCID="17", SAMPLE_RATE="0.5")
        process = self.start_waiting(NO_MUNGE, env=receiver.env, stdout=subprocess.PIPE, script="echo $$; echo ready >&2; read line")
        pid = int(process.stdout.readline())
        self.clock.advance(0.5)
        wait_until(lambda: receiver.posts, "a post")
        self.end(process, 1)
        path, headers, _ = receiver.posts[0]
        sample = receiver.samples()[0]
        self.assertEqual((path, headers["Content-Type"]), ("/trace", "application/json"))
        self.assertEqual(set(sample), {"job_id", "pid", "cpus", "threads", "mem", "read_bytes", "write_bytes",
                                       "username", "hostname", "step", "task", "period"})
        expected = {"job_id": 42, "pid": pid, "threads": 1, "username": "alice", "step": 3, "task": 17,
                    "period": 0.5, "hostname": socket.gethostname()}
        self.assertEqual({key: sample[key] for key in expected}, expected)
        self.assertGreater(sample["mem"], 100000)
        self.assertLess(sample["cpus"], 100)

    def test_the_first_post_does_not_wait_for_a_period(self):
        receiver = self.receiver()
        process = self.start_waiting(NO_MUNGE, "--sample-rate=600", env=receiver.env)
        self.clock.advance(FIRST)
        wait_until(lambda: receiver.posts, "a post")
        self.end(process, 1)

    def test_the_last_post_says_that_all_is_over(self):
        receiver = self.receiver()
        with start(NO_MUNGE, PYTHON, "-c", BURN + "burn(0.2); say('ready'); sys.stdin.readline(); burn(1)", env=receiver.env,
                   stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            self.assertEqual(process.stderr.readline(), "ready\n")
            self.wait_posts(receiver, 2)  # so that the answer to one has arrived
            self.clock.advance(FIRST)
            self.end(process)
        *_, sample = receiver.samples()
        self.assertEqual((sample["threads"], sample["mem"], sample["period"]), (0, 0, 0))
        self.assertGreater(sample["cpus"], 100 * (1 - 0.2) * 0.9)

    def test_of_a_moment_no_use_of_processors_is_told(self):
        receiver = self.receiver()
        process = self.start_waiting(NO_MUNGE, env=receiver.env)
        self.wait_posts(receiver, 2)
        self.end(process, 1)
        *_, sample = receiver.samples()
        self.assertNotIn("cpus", sample)
        self.assertEqual((sample["threads"], sample["period"]), (0, 0))

    def test_posts_come_at_the_sample_rate(self):
        receiver = self.receiver()
        process = self.start_waiting(NO_MUNGE, env=receiver.env)
        self.wait_posts(receiver, 10)
        self.end(process, 1)
        self.assertEqual([sample["period"] for sample in receiver.samples()], [PERIOD] * 10 + [0])

    def samples_of(self, script, n=1):
        """Of a command that says "ready" whenever a sample is due, as often, and then waits for a line."""
        samples = []
        with start("--dry-run", PYTHON, "-c", BURN + script, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                   stderr=subprocess.PIPE) as process:
            for i in range(n):
                self.assertEqual(process.stderr.readline(), "ready\n")
                self.clock.advance(PERIOD if i else FIRST)
                samples.append(json.loads(process.stdout.readline()))
                process.stdin.write("go on\n")
                process.stdin.flush()
            self.end(process)
        return samples

    def assert_cpu_is_told(self, script, seconds, processes=1):
        """What they use is told, less what the kernel cuts off of each process; and no more than all have used."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        sample, = self.samples_of(script + "\nsay('ready')\nsys.stdin.readline()")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        told = sample["cpus"] / 100 * FIRST
        self.assertGreater(told, seconds - 0.05 * processes)
        self.assertLess(told, used)

    def test_a_busy_command_uses_a_processor(self):
        samples = self.samples_of("""
for second in 1, 2:
    burn(second)
    say("ready")
    sys.stdin.readline()
""", 2)
        self.assertAlmostEqual(samples[1]["cpus"], 100 / PERIOD, delta=20 / PERIOD)
        self.assertGreater(samples[0]["cpus"], 95)

    def test_forked_children_and_their_threads_count(self):
        samples = self.samples_of("""
import threading
end = threading.Event()
ready, go_on = os.pipe(), os.pipe()
for _ in range(2):
    if os.fork() == 0:
        os.close(go_on[1])
        for _ in range(3):
            threading.Thread(target=end.wait, daemon=True).start()
        burn(0.5)
        os.write(ready[1], b"x")
        os.read(go_on[0], 1)
        os._exit(0)
os.read(ready[0], 1), os.read(ready[0], 1)
say("ready")
sys.stdin.readline()
os.close(go_on[1])
os.wait(), os.wait()
""")
        self.assertEqual([sample["threads"] for sample in samples], [9])
        self.assertGreater(samples[0]["cpus"], 95)

    def test_children_shorter_than_a_period_are_not_lost(self):
        self.assert_cpu_is_told("""
for _ in range(20):
    if os.fork() == 0:
        burn(time.process_time() + 0.05); os._exit(0)
    os.wait()
""", 1)

    def test_grandchildren_whose_parents_are_gone_are_not_lost(self):
        self.assert_cpu_is_told("""
read, write = os.pipe()
for _ in range(6):
    if os.fork() == 0:
        if os.fork() == 0:
            burn(time.process_time() + 0.2)
        os._exit(0)
    os.wait()
os.close(write)
os.read(read, 1)  # until the last of them is about to end
""", 1.2, processes=6)

    def test_written_bytes_stay_when_their_writer_has_ended(self):
        need("counted-io")
        directory = self.directory()
        samples = self.samples_of(f"""
import subprocess
for _ in range(2):
    say("ready")
    sys.stdin.readline()
    subprocess.run("dd if=/dev/zero of={directory}/a bs=1M count=8 conv=fsync 2>/dev/null", shell=True)
say("ready")
sys.stdin.readline()
""", 3)
        told = [sample["write_bytes"] for sample in samples]
        for before, after in zip(told, told[1:]):
            self.assertGreaterEqual(after - before, 8 << 20)
            self.assertLess(after - before, 16 << 20)

    def test_the_endpoint_is_completed(self):
        def path_for(endpoint, receiver):
            process = self.start_waiting(NO_MUNGE, "--jobid=1", f"--endpoint={endpoint}", env=self.env)
            self.wait_posts(receiver, 1)
            self.end(process, 1)
            path = receiver.posts[0][0]
            wait_until(lambda: len(receiver.ended) == len(receiver.posts), "all answers are read")
            receiver.posts.clear()
            receiver.ended.clear()
            return path
        receiver = self.receiver()
        for endpoint, path in ((receiver.address, "/trace"), (f"http://{receiver.address}", "/trace"),
                               (f"http://{receiver.address}/", "/trace"), (f"{receiver.address}/other", "/other"),
                               (f"http://{receiver.address}/a/b", "/a/b")):
            self.assertEqual(path_for(endpoint, receiver), path)
        # Nobody else takes it: no two processes choose the same of sixteen million addresses.
        host = f"127.{random.randrange(256)}.{random.randrange(256)}.{random.randrange(1, 255)}"
        usual = self.receiver(address=(host, 9092))
        for endpoint in (host, f"http://{host}"):
            self.assertEqual(path_for(endpoint, usual), "/trace")

    def test_a_password_is_sent_and_never_shown(self):
        receiver = self.receiver(status=401)
        env = dict(receiver.env, SLURM_EXPORTER=f"http://alice:s3cret@{receiver.address}")
        process = self.start_waiting("--verbose", env=env)
        self.wait_posts(receiver, 2)
        errors = self.end(process, 1)
        self.assertEqual(receiver.posts[0][1]["Authorization"], "Basic " + base64.b64encode(b"alice:s3cret").decode())
        self.assertIn("401", errors)
        self.assertNotIn("s3cret", errors)

    def test_where_munge_is_there_a_sample_is_a_credential(self):
        need("munge")
        if os.geteuid() == 0:
            need("root")  # munged does not trust directories whose owner has no number in a user namespace
        directory = self.directory()
        directory.chmod(0o755)
        key, at = directory / "key", directory / "socket"
        key.touch(0o600)
        key.write_bytes(os.urandom(256))
        munged = subprocess.Popen(
            [MUNGED, "--foreground", f"--key-file={key}", f"--socket={at}", f"--pid-file={directory}/pid",
             f"--log-file={directory}/log", f"--seed-file={directory}/seed"], stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (munged.terminate(), munged.wait(DEADLINE)))
        wait_until(at.exists, "munged listens")
        receiver = self.receiver()
        process = self.start_waiting(f"--munge-socket={at}", env=receiver.env)
        self.wait_posts(receiver, 1)
        self.end(process, 1)
        _, headers, body = receiver.posts[0]
        self.assertEqual(headers["Content-Type"], "text/plain")
        self.assertTrue(body.startswith(b"MUNGE:"))
        opened = subprocess.run(["unmunge", f"--socket={at}", "-m", "/dev/null"], input=body, capture_output=True)
        self.assertEqual(opened.returncode, 0)
        self.assertEqual(json.loads(opened.stdout)["job_id"], 42)


class Trouble(Case):
    """The command does not care what becomes of its samples."""

    def test_an_exporter_that_hangs_costs_no_time(self):
        receiver = self.receiver()
        receiver.hold.clear()
        process = self.start_waiting(NO_MUNGE, env=receiver.env)
        self.wait_posts(receiver, 1)
        self.assertEqual(self.end(process, 1), "", "we ended before the post was given up")

    def test_an_exporter_that_begins_to_hang_costs_a_moment(self):
        receiver = self.receiver()
        process = self.start_waiting(NO_MUNGE, env=receiver.env)
        self.wait_posts(receiver, 1)
        receiver.hold.clear()
        self.wait_posts(receiver, 2)
        process.stdin.close()
        # In small steps, because the post is given up five seconds after it began.
        wait_until(lambda: self.clock.advance(LEAST / 25) or process.poll() is not None, "the end")
        self.assertEqual((process.returncode, process.stderr.read()), (1, ""), "we ended before the post was given up")

    def test_an_exporter_that_is_away_costs_a_line_and_no_time(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            address = "127.0.0.1:%d" % closed.getsockname()[1]
            process = self.start_waiting(NO_MUNGE, "--jobid=42", f"--endpoint={address}", env=self.env)
            self.clock.advance(FIRST)
            self.assertIn(f"cannot connect to http://{address}", process.stderr.readline())
            self.assertEqual(self.end(process, 1), "")

    def test_a_refusal_is_told_once_with_the_exporters_words(self):
        receiver = self.receiver(status=403, words=b"job 42 is not yours\n\x1b[2J")
        process = self.start_waiting(NO_MUNGE, env=receiver.env)
        self.wait_posts(receiver, 4)
        errors = self.end(process, 1)
        self.assertEqual(errors.count("\n"), 1)
        self.assertIn("403: job 42 is not yours", errors)
        self.assertNotIn("\x1b", errors)

    def test_an_exporter_that_comes_back_is_posted_to(self):
        receiver = self.receiver(status=503)
        process = self.start_waiting(NO_MUNGE, "--sample-rate=0.1", env=receiver.env)

        def wait_more(n, what):
            n += len(receiver.posts)
            wait_until(lambda: self.clock.advance(0.1) or len(receiver.posts) >= n, what)
        wait_more(1, "a post")
        receiver.hold.clear()
        wait_more(2, "posts that hang are given up")
        receiver.status = 200
        receiver.hold.set()
        wait_more(3, "posts go on")
        self.end(process, 1)

    def test_an_endpoint_that_is_none_is_told(self):
        for endpoint in ("ftp://host/x", "http://", "a b c", "::1:2:3"):
            with start(NO_MUNGE, "--jobid=1", "--sample-rate=0.1", f"--endpoint={endpoint}", "sh", "-c", "read line",
                       stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                self.assertIn("sonde run: ", process.stderr.readline())
                process.stdin.close()
                self.assertEqual(process.wait(DEADLINE), 1)

    def test_without_a_job_it_runs_untraced_and_says_so(self):
        receiver = self.receiver()
        with start("sh", "-c", "read line; exit 4", env=dict(self.env, SLURM_EXPORTER=receiver.address), stdin=subprocess.PIPE,
                   stderr=subprocess.PIPE) as process:
            self.assertRegex(process.stderr.readline(), "sonde run: not traced: .*SLURM_JOB_ID")
            self.clock.advance(3 * PERIOD)
            self.assertEqual(self.end(process, 4), "")
        self.assertEqual(receiver.posts, [])

    def test_variables_with_something_else_in_them_do_not_matter(self):
        for name, value in (("SAMPLE_RATE", "44.1kHz"), ("SAMPLE_RATE", "0"), ("SAMPLE_RATE", "-1"),
                            ("SAMPLE_RATE", "inf"), ("SLURM_JOB_ID", "x"), ("SLURM_JOB_ID", "99999999999")):
            result = run("sh", "-c", "exit 4", env=environment(**{"SLURM_JOBID": "1", name: value}))
            self.assertEqual(result.returncode, 4)
            self.assertRegex(result.stderr, rf"\Asonde run: not traced: .*{value}.*{name}\n\Z")

    def test_both_names_of_the_jobs_number_are_taken(self):
        for name in ("SLURM_JOBID", "SLURM_JOB_ID"):
            result = run("--validate", "sleep", "1000", env=environment(**{name: "77"}))
            self.assertEqual(json.loads(result.stdout)["job_id"], 77)

    def test_a_standard_error_that_nobody_reads_stops_nothing(self):
        read, write = os.pipe()
        os.set_blocking(write, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(write, b"x" * 4096)
        os.set_blocking(write, True)
        process = start("sh", "-c", "exit 9", stderr=write)  # it is to say that there is no job
        self.assertEqual(process.wait(DEADLINE), 9)
        os.close(read)
        os.close(write)


class Printing(Case):
    def test_a_dry_run_prints_samples_and_posts_nothing(self):
        receiver = self.receiver()
        process = self.start_waiting("--dry-run", env=receiver.env, stdout=subprocess.PIPE, script="echo ready >&2; read line; exit 3")
        samples = []
        for seconds in (FIRST, PERIOD, PERIOD):
            self.clock.advance(seconds)
            samples.append(json.loads(process.stdout.readline()))
        self.assertEqual(self.end(process, 3), "")
        samples.append(json.loads(process.stdout.read()))
        self.assertEqual([(sample["job_id"], sample["period"]) for sample in samples], [(42, PERIOD)] * 3 + [(42, 0)])
        self.assertEqual(receiver.posts, [])

    def test_a_dry_run_needs_no_job_and_prints_at_least_once(self):
        result = run("--dry-run", "true", env=self.env)
        self.assertNotIn("job_id", json.loads(result.stdout))

    def test_validate_prints_one_sample_and_ends_the_command(self):
        process = self.start_waiting("--validate", "--jobid=5", env=self.env, stdout=subprocess.PIPE,
                                     script="echo $$; echo ready >&2; exec sleep 1000")
        pid = int(process.stdout.readline())
        self.clock.advance(FIRST)
        self.assertEqual(json.loads(process.stdout.read())["pid"], pid)
        self.assertEqual(process.wait(DEADLINE), 0)
        self.assertFalse(alive(pid))

    def test_validate_fails_if_it_cannot_sample(self):
        result = run("--validate", "--sample-rate=often", "sleep", "1000")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("often", result.stderr)

    def test_validate_ends_a_command_that_does_not_want_to(self):
        process = self.start_waiting("--validate", env=self.env, stdout=subprocess.PIPE,
                                     script="trap '' TERM; echo ready >&2; exec sleep 1000")
        self.clock.advance(FIRST)
        json.loads(process.stdout.readline())
        wait_until(lambda: self.clock.advance(5) or process.poll() is not None, "the end")
        self.assertEqual((process.returncode, process.stdout.read()), (0, ""))

    def test_verbose_tells_of_each_post(self):
        receiver = self.receiver()
        process = self.start_waiting(NO_MUNGE, "--verbose", env=receiver.env)
        self.wait_posts(receiver, 2)
        errors = self.end(process, 1)
        self.assertGreaterEqual(errors.count('status 200: {"job_id":42'), 2)


if __name__ == "__main__":
    import tap
    tap.main()
