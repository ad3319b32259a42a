# SPDX-License-Identifier: GPL-2.0-or-later
"""./check bench profile: what the profile plugin costs the steps and the jobs of each Slurm that the sandbox is tried with."""
import argparse
import os
import signal
import statistics
import sys
import unittest

from calls import SPARSE_SAMPLES, TASKS, TIGHT_SAMPLES, TIMEOUT_MS, measure_calls
from jobs import LONG_SECONDS, SHORT_PAIRS, SHORT_SECONDS, measure_jobs
from rows import digits, foot, head
from sonde import ROOT
from test_profile import RELEASES, plugin_of

PAGE = ROOT / "docs/performance.md"
BEGIN, END = "<!-- the measured plugin (./check bench profile --update) -->\n", "<!-- end of the measured plugin -->\n"


def table(columns, rows):
    lines = [columns, ["---"] + ["--:"] * (len(columns) - 1), *rows]
    return "".join(f"|{'|'.join(line)}|\n" if line[0] == "---" else f"| {' | '.join(line)} |\n" for line in lines)


def calls_table(costs):
    def cells(release, cost):
        latencies = [digits(value) for latency in (cost.tight, cost.sparse) for value in (latency.median, latency.p999)]
        blocking = digits(cost.blocking.median) if cost.blocking else "-"
        return [f"{release}, {cost.receiver}", *latencies, digits(cost.nothing.p999), blocking, digits(max(cost.end_ms)),
                digits(cost.memory_mb)]
    return table(["receiver", "in a loop, µs", "99.9 %", "each ms, µs", "99.9 %", "doing nothing, 99.9 %",
                  "a blocking push, µs", "end of a step, ms", "memory, MB"],
                 [cells(release, cost) for release, list_ in costs.items() for cost in list_])


def jobs_table(pairs):
    def cells(name, some, moment):
        def shown(values):
            values = sorted(values)
            ends = f" ({values[0]:.0f} to {values[-1]:.0f})" if len(values) > 1 else ""
            return f"{statistics.median(values):.0f}{ends}"
        return [name, shown([pair.plain[moment] for pair in some]), shown([pair.profiled[moment] for pair in some]),
                shown([pair.later_ms(moment) for pair in some])]

    def rows():
        for release, (long, *short) in pairs.items():
            for moment, words in (("end", "its end"), ("free", "its node is free")):
                yield cells(f"{release}, {LONG_SECONDS} s: {words}", [long], moment)
                yield cells(f"{release}, {SHORT_PAIRS} × {SHORT_SECONDS} s: {words}", short, moment)
    return table(["after a job's last line, ms", "not profiled", "profiled", "later"], rows())


def update_page(text):
    """It stands between two comments of the page."""
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    assert END in rest, f"{PAGE} has no place for it"
    PAGE.write_text(before + BEGIN + text + END + rest.partition(END)[2])


def caption():
    return (f"\n{TASKS} tasks; {TIGHT_SAMPLES} samples in a loop, {SPARSE_SAMPLES} at one each ms; {os.cpu_count()} cores. "
            f"A push gives up after {TIMEOUT_MS / 1000:g} s.\n")


def main():
    parser = argparse.ArgumentParser(prog="./check bench profile", description=__doc__)
    parser.add_argument("--update", action="store_true", help="write the tables of docs/performance.md")
    update = parser.parse_args().update
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))  # so that clusters are brought down
    plugins = {RELEASES[suite]: plugin_of(suite) for suite in RELEASES}
    head()
    costs = {release: measure_calls(release, plugin) for release, plugin in plugins.items()}
    pairs = {release: measure_jobs(release, suite) for suite, release in RELEASES.items()}
    foot()
    if update:
        update_page(calls_table(costs) + "\n" + jobs_table(pairs) + caption())


if __name__ == "__main__":
    try:
        main()
    except unittest.SkipTest as reason:
        sys.exit(f"profile: could not measure: {reason}")
