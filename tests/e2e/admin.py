# SPDX-License-Identifier: GPL-2.0-or-later
"""`sonde admin`, run to its end, and the pages that its commands print."""
import os
import re
import subprocess

from sonde import DEADLINE, SONDE


def run_admin(*arguments, path=None, env=None, starter=()):
    environment = dict(os.environ, **(env or {}))
    if path:
        environment["PATH"] = f"{path}:{environment['PATH']}"
    return subprocess.run([*starter, SONDE, "admin", *arguments], capture_output=True, text=True, env=environment,
                          timeout=DEADLINE)


class Page:
    """What was printed, as findings: (mark, name, text, what to do)."""

    LINE = re.compile(r"  (ok  |note|warn|FAIL)  (\S.{11}) (.*)")

    def __init__(self, done):
        self.text, self.status, self.errors = done.stdout, done.returncode, done.stderr
        self.findings = []
        for line in self.text.splitlines():
            if match := self.LINE.fullmatch(line):
                self.findings.append([match[1].strip(), match[2].strip(), match[3], ""])
                column = 2
            elif line.startswith("              to do: "):
                self.findings[-1][3] = line[21:]
                column = 3
            elif line.startswith(" " * 21):
                self.findings[-1][column] += " " + line.strip()

    def of(self, name):
        return [(mark, text, advice) for mark, own, text, advice in self.findings if own == name]

    def one(self, name):
        found = self.of(name)
        assert len(found) == 1, f"{name}: {found}\n{self.text}{self.errors}"
        return found[0]

    def counts(self):
        marks = [mark for mark, _, _, _ in self.findings]
        return {mark: marks.count(mark) for mark in ("ok", "note", "warn", "FAIL")}
