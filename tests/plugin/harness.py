# SPDX-License-Identifier: GPL-2.0-or-later
"""The harness (harness.c) with a profile plugin in it: one process that does what slurmstepd would."""
import subprocess


class Harness:
    """Settings are those of the command line; what begins with Profile is of acct_gather.conf."""

    def __init__(self, program, plugin, *before, **settings):
        """before: words to put before the command, such as valgrind's."""
        self.settings = [f"{key}={value}" for key, value in settings.items()]
        self.process = subprocess.Popen([*before, program, plugin, *self.settings], text=True, encoding="utf-8",
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.process.kill()
        status, errors = self.end()
        assert kind or status == 0, f"the harness has ended with {status}: {errors}"

    def do(self, *words):
        """One command; the lines of its answer."""
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        lines = []
        while (line := self.process.stdout.readline()) != ".\n":
            if not line:
                raise AssertionError(f"the harness has ended with {self.process.wait()}: {self.process.stderr.read()}")
            lines.append(line.rstrip("\n"))
        return lines

    def one(self, *words):
        lines = self.do(*words)
        assert len(lines) == 1, f"{words}: {lines}"
        return lines[0]

    def read_options(self):
        """What every daemon of Slurm does."""
        self.do("init")
        self.do("conf_options")
        self.do("conf_set")

    def start_step(self, tasks=1):
        self.read_options()
        self.do("node_step_start")
        for task in range(tasks):
            self.do("task_start", task)

    def end_step(self, tasks=1):
        for _ in range(tasks):
            self.do("task_end")
        self.do("node_step_end")
        self.do("fini")

    def end(self):
        """Its exit status and what it wrote to its standard error."""
        if self.process.stdin:
            out, self.errors = self.process.communicate()
            assert out == "", out
            self.process.stdin = None
        return self.process.returncode, self.errors
