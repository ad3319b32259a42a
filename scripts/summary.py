#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Adds up meson's JUnit files: prints why tests were skipped, which failed, and one closing line.

usage: summary.py yes|no FILE...   yes: meson said that something failed, so something did.
"""
import sys
import xml.etree.ElementTree as ET


def main(broken, paths):
    passed, failed, skipped = 0, [], []
    for path in paths:
        for suite in ET.parse(path).getroot().iter("testsuite"):
            for case in suite.iter("testcase"):
                name = f"{suite.get('name')}: {case.get('name')}"
                skip = case.find("skipped")
                if case.find("failure") is not None or case.find("error") is not None:
                    failed.append(name)
                elif skip is not None:
                    skipped.append((name, skip.get("message") or skip.text or "its reason is in meson's log"))
                else:
                    passed += 1
    if broken and not failed:
        failed.append("a test program that died before it could tell; meson's output is above")
    for name, reason in skipped:
        print(f"skipped: {name}: {reason}")
    for name in failed:
        print(f"FAILED: {name}")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or not passed and not skipped else 0


sys.exit(main(sys.argv[1] == "yes", sys.argv[2:]))
