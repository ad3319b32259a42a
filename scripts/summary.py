#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Adds up the results of a check: why tests were skipped, which failed, where the time went, and one closing line.

usage: summary.py PHASES RESULT...
PHASES has a line "SECONDS NAME" for each phase of the check. Each RESULT stands for two files that meson wrote:
RESULT.xml (testlog.junit.xml) and RESULT.json (testlog.json); its name ends with that of the phase.

A test may be skipped for want of a capability that tests/capabilities.py found missing (SONDE_MISSING), or if
tests/skips.txt lists it. Any other skip counts as a failure, so that none goes unnoticed.
"""
import json
import os
import pathlib
import re
import sys
import xml.etree.ElementTree as ET

LAST_LINES = 12
SLOWEST = 10
SKIPS = pathlib.Path(__file__).resolve().parents[1] / "tests/skips.txt"


def last_lines(lines, name):
    """What a test printed, which stands above its "not ok N - name"."""
    end = next((i for i, line in enumerate(lines) if line.startswith("not ok ") and line[7:].startswith(name)), len(lines))
    begin = next((i + 1 for i in range(end - 1, -1, -1) if lines[i].startswith(("ok ", "not ok "))), 0)
    return [line for line in lines[begin:end] if line.strip(" #^~")][-LAST_LINES:]


def skip_reason(lines, name):
    """From "ok N - name # SKIP reason", or "1..0 # SKIP reason" of a program that was skipped whole."""
    number = re.match(r"\d+", name)
    start = rf"ok {number[0]}\b" if number else r"1\.\.0"
    return next((line.partition("# SKIP ")[2] for line in lines if "# SKIP " in line and re.match(start, line)), "")


def listed_skips():
    lines = (line.partition("#")[0].strip() for line in SKIPS.read_text().splitlines())
    return {line for line in lines if line}


class Summary:
    def __init__(self):
        self.passed, self.failed, self.skipped, self.durations = 0, [], [], []
        self.missing = {line.partition(":")[0] for line in os.environ.get("SONDE_MISSING", "").splitlines()}
        self.listed = listed_skips()

    def add(self, result):
        runs = [json.loads(line) for line in pathlib.Path(f"{result}.json").read_text().splitlines()]
        printed = {run["name"]: run.get("stdout", "").splitlines() for run in runs}
        programs = set()
        for suite in ET.parse(f"{result}.xml").getroot().iter("testsuite"):
            for case in suite.iter("testcase"):
                self._add_case(suite, case, printed, programs)
        for run in runs:
            self.durations.append((run["duration"], f"{run['name'].rpartition(' / ')[2]} ({result.rpartition('-')[2]})"))
            if run["result"] not in ("OK", "SKIP") and run["name"] not in programs:
                self.failed.append((f"{run['name']}: {run['result'].lower()}, exit status {run['returncode']}",
                                    run.get("stdout", "").splitlines()[-LAST_LINES:]))

    def _add_case(self, suite, case, printed, programs):
        """The suite is named "sonde." and the program; of a program that prints no TAP, it is the case that has the name."""
        program = suite.get("name").removeprefix("sonde.")
        program = program if program in printed else case.get("name")
        name, lines = f"{program}: {case.get('name')}".removesuffix(f": {program}"), printed.get(program, [])
        if case.find("failure") is not None or case.find("error") is not None:
            self.failed.append((name, last_lines(lines, case.get("name"))))
            programs.add(program)
        elif case.find("skipped") is None:
            self.passed += 1
        else:
            self._add_skip(name, skip_reason(lines, case.get("name")))

    def _add_skip(self, name, reason):
        lacks = re.match(r"needs ([\w-]+):", reason)
        test = re.sub(r"^.*/ |(?<=: )\d+ - ", "", name)
        if lacks and lacks[1] in self.missing or test in self.listed:
            self.skipped.append((name, reason))
        else:
            self.failed.append((f"{name}: skipped, which tests/skips.txt does not allow: {reason}", []))

    def print(self, phases):
        for name, reason in self.skipped:
            print(f"skipped: {name}: {reason}")
        for name, lines in self.failed:
            print(f"FAILED: {name}", *lines, sep="\n    ")
        print("Time: " + ", ".join(phases))
        slowest = sorted(self.durations, reverse=True)[:SLOWEST]
        print("Slowest programs: " + ", ".join(f"{name} {seconds:.0f} s" for seconds, name in slowest))
        print(f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped")
        return 1 if self.failed or not self.passed else 0


def read_phases(path):
    """0 m 41 s are nothing to read: minutes only where there are some."""
    for line in pathlib.Path(path).read_text().splitlines():
        seconds, name = line.split(maxsplit=1)
        minutes, rest = divmod(int(seconds), 60)
        yield f"{name} {f'{minutes} min ' if minutes else ''}{rest} s"


def main(phases, results):
    summary = Summary()
    for result in results:
        summary.add(result)
    return summary.print(list(read_phases(phases)))


sys.exit(main(sys.argv[1], sys.argv[2:]))
