# SPDX-License-Identifier: GPL-2.0-or-later
"""A real Pushgateway for tests: the one of the sandbox's Debian root, so that nobody has to install one, which
Debian's package would start at once on port 9091."""
import pathlib
import signal
import subprocess

from pool import SUITES, sandbox
from sonde import DEADLINE, Log, http_get, own_host, wait_until
from capabilities import need  # from tests/, which sonde has made importable


def find_program(suite):
    """Makes the root if there is none."""
    need(f"slurm-{suite}")
    done = sandbox(suite, "root")
    assert done.returncode == 0, f"sandbox root: {done.stdout}{done.stderr}"
    program = pathlib.Path(done.stdout.splitlines()[-1], "usr/bin/prometheus-pushgateway")
    assert program.exists(), f"there is no {program}"
    return program


class Pushgateway:
    """Started at an address of its own, and ended by end(). It keeps nothing when it is stopped unless it has a file for it."""

    def __init__(self, suite=SUITES[0], *flags, file="", host=None):
        self.flags = (*flags, f"--persistence.file={file}")
        self.program = find_program(suite)
        self.address = f"{host or own_host()}:9091"
        self.url = f"http://{self.address}"
        self.errors = Log()
        self.process = None
        self.start()

    def start(self):
        """At the same address each time."""
        self.process = subprocess.Popen(
            [self.program, f"--web.listen-address={self.address}", *self.flags],
            stdin=subprocess.DEVNULL, stdout=self.errors.file, stderr=self.errors.file)
        try:
            wait_until(self._is_ready, "the Pushgateway is ready")
        except BaseException:
            self.stop()
            raise

    def _is_ready(self):
        assert self.process.poll() is None, f"the Pushgateway has ended: {self.log()}"
        try:
            return http_get(f"{self.url}/-/ready").status == 200
        except OSError:
            return False

    def stop(self):
        if self.process and self.process.poll() is None:
            self.resume()
            self.process.terminate()
            try:
                self.process.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def pause(self):
        """Connections are still made, and nothing is answered."""
        self.process.send_signal(signal.SIGSTOP)

        def has_stopped():
            stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
            return stat.rpartition(")")[2].split()[0] == "T"
        wait_until(has_stopped, "the Pushgateway has stopped")

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        self.stop()
        self.errors.close()

    def log(self):
        return self.errors.text()

    def families(self):
        """What it holds, without what it says of itself: family → {((label, value), …): number}."""
        families = http_get(f"{self.url}/metrics").families()
        return {name: samples for name, samples in families.items()
                if not name.startswith(("pushgateway_", "go_", "process_", "push_"))}

    def instances(self, job):
        """Of which there is a group, empty ones too."""
        families = http_get(f"{self.url}/metrics").families()
        groups = [dict(labels) for labels in families.get("push_time_seconds", {})]
        return {group.get("instance") for group in groups if group.get("job") == job}

    def delete(self, job, instance):
        answer = http_get(f"{self.url}/metrics/job/{job}/instance/{instance}", method="DELETE")
        assert answer.status == 202, answer.body

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
