#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Adds up meson's results: prints why tests were skipped, which failed and the last that each said, and one closing line.

usage: summary.py NAME... [--alone NAME]   of NAME.xml and NAME.json each: meson's testlog.junit.xml and testlog.json;
                                         --alone: of programs that failed beside others and were run again by themselves,
                                         which counts, and is told
       summary.py --failed NAME          prints the names of those programs
"""
import json
import pathlib
import sys
import xml.etree.ElementTree as ET

LAST_LINES = 6


def output(element):
    return (element.findtext("system-out") or "").splitlines() if element is not None else []


def last_words(lines, name):
    """Of a test whose result is told by "not ok N - name", below what it said."""
    end = next((i for i, line in enumerate(lines) if line.startswith("not ok ") and line[7:].startswith(name)), len(lines))
    begin = next((i + 1 for i in range(end - 1, -1, -1) if lines[i].startswith(("ok ", "not ok "))), 0)
    return [line for line in lines[begin:end] if line.strip(" #^~")][-LAST_LINES:]


def cmocka_skip(lines, name):
    """cmocka says "not ok N # SKIP test", which meson's file has as a failure of "N"; the reason is the line above."""
    end = next((i for i, line in enumerate(lines) if line.startswith(f"not ok {name} # SKIP ")), None)
    if end is None:
        return None
    return lines[end].partition("# SKIP ")[2], lines[end - 1].strip("# ") if end else ""


def why_skipped(suite, case, skip):
    lines = output(case) or [line for line in output(suite) if line.startswith(f"ok {case.get('name')} #")]
    reasons = [line.partition("# SKIP ")[2] for line in lines if "# SKIP " in line]
    return skip.get("message") or skip.text or " ".join(reasons or lines) or "its reason is in meson's log"


def died(path):
    """Programs that ended badly. By what cmocka calls skipped, meson finds one failed that has not."""
    runs = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
    return [run["name"] for run in runs if run["result"] not in ("OK", "SKIP") and (run["result"] != "FAIL" or run["returncode"])]


class Outcome:
    """Of the tests of one program."""

    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], []

    def add(self, suite, case):
        name = f"{suite.get('name')}: {case.get('name')}"
        skip = case.find("skipped")
        by_cmocka = cmocka_skip(output(suite), case.get("name"))
        if by_cmocka:
            self.skipped.append((f"{suite.get('name')}: {by_cmocka[0]}", by_cmocka[1]))
        elif case.find("failure") is not None or case.find("error") is not None:
            self.failed.append((name, last_words(output(suite) or output(case), case.get("name"))))
        elif skip is not None:
            self.skipped.append((name, why_skipped(suite, case, skip)))
        else:
            self.passed += 1


def outcomes(result):
    """program → its outcome"""
    found = {}
    for suite in ET.parse(f"{result}.xml").getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            found.setdefault(suite.get("name"), Outcome()).add(suite, case)
    for program in died(f"{result}.json"):
        name = next((name for name in found if name.endswith(program)), program)
        outcome = found.setdefault(name, Outcome())
        if not any(program in name for name, _ in outcome.failed):
            outcome.failed.append((f"{program}: it died before it could tell; meson's output is above", []))
    return found


def print_failed(heading, failed):
    for name, lines in failed:
        print(f"{heading}: {name}", *lines, sep="\n    ")


def main(names, alone):
    first = [outcome for result in names for outcome in outcomes(result).items()]
    again = outcomes(alone) if alone else {}
    final = [again.get(program, outcome) for program, outcome in first]
    failed = [row for outcome in final for row in outcome.failed]
    skipped = [row for outcome in final for row in outcome.skipped]
    passed = sum(outcome.passed for outcome in final)
    for name, reason in skipped:
        print(f"skipped: {name}: {reason}")
    for program, outcome in first:
        if program in again:
            print_failed("beside others, but not alone" if not again[program].failed else "beside others", outcome.failed)
    print_failed("FAILED", failed)
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or not passed and not skipped else 0


def list_failed(result):
    for program, outcome in outcomes(result).items():
        if outcome.failed:
            print(program.rpartition(" / ")[2])
    return 0


if sys.argv[1] == "--failed":
    sys.exit(list_failed(sys.argv[2]))
names = sys.argv[1:]
alone = names.pop() if "--alone" in names else None
sys.exit(main([name for name in names if name != "--alone"], alone))
