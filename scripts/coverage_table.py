#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Adds gcovr's numbers up by directory: coverage_table.py SUMMARY TABLE.

SUMMARY is what gcovr --json-summary wrote. Prints the directories and writes them, and below them each file, to TABLE.
"""
import collections
import json
import pathlib
import sys

COUNTS = ("line_covered", "line_total", "branch_covered", "branch_total")


def row(name, counts):
    cells = [f"{covered:7} of {total:6} {100 * covered / total if total else 100:6.1f} %" for covered, total in (counts[:2], counts[2:])]
    return f"{name:<36}{cells[0]:>27}{cells[1]:>27}"


def main():
    directories, files = collections.defaultdict(lambda: [0] * len(COUNTS)), {}
    for file in json.loads(pathlib.Path(sys.argv[1]).read_text())["files"]:
        path = pathlib.PurePath(file["filename"])
        files[str(path)] = [file[name] for name in COUNTS]
        for name in (str(path.parent), "all"):
            directories[name] = [a + b for a, b in zip(directories[name], files[str(path)])]
    total = directories.pop("all")
    head = f"{'':<36}{'lines':>27}{'branches':>27}"
    table = [head, *(row(name, directories[name]) for name in sorted(directories)), row("all", total)]
    print("\n".join(table))
    pathlib.Path(sys.argv[2]).write_text("\n".join([*table, "", *(row(name, files[name]) for name in sorted(files)), ""]))


if __name__ == "__main__":
    main()
