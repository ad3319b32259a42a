#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/fuzz.py BUILD MINUTES [TARGET...]: runs fuzz targets with libFuzzer; ./check fuzz calls it.

All targets together take MINUTES, as many at a time as there are cores, each for the same time. Prints a table: executions,
executions a second, and inputs that were added to tests/fuzz/corpus because they reach code that the corpus did not reach.
Exit status: 0, or 1 if a target crashed, hung or leaked; each such input is kept, and the command that repeats it printed.
"""
import concurrent.futures
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
CORPUS = ROOT / "tests/fuzz/corpus"
# Every ./check unit replays the corpus.
MOST_ADDED, MOST_FILES, MOST_FILE_BYTES, MOST_BYTES = 12, 100, 2048, 100 * 1024
HANG_SECONDS, MOST_MEMORY_MB = 60, 2048
# What malloc gives is not zero, as it is not in a process that has run for a while: tests/meson.build.
ENVIRONMENT = {
    **os.environ,
    "ASAN_OPTIONS": "max_malloc_fill_size=65536:malloc_fill_byte=165",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}


class Target:
    def __init__(self, program, work):
        self.program = program
        self.name = program.name.removeprefix("libfuzzer_")
        self.corpus = CORPUS / self.name
        self.new = work / self.name
        self.log = work / f"{self.name}.log"
        self.crashes = work / "crashes"
        self.executions, self.per_second, self.added, self.failed = 0, 0, 0, False

    def run(self, seconds):
        self.new.mkdir()
        with self.log.open("wb") as log:
            # The power schedule (entropic) costs more than the target itself where a target reaches much code.
            code = subprocess.run([
                self.program, "-entropic=0", f"-max_total_time={seconds}", "-print_final_stats=1", f"-timeout={HANG_SECONDS}",
                f"-rss_limit_mb={MOST_MEMORY_MB}", f"-artifact_prefix={self.crashes}/{self.name}-", self.new, self.corpus
            ], cwd=self.new.parent, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=ENVIRONMENT, check=False).returncode
        self.failed = code != 0
        self.executions = self.statistic("number_of_executed_units")
        self.per_second = self.statistic("average_exec_per_sec")
        if not self.failed:
            self.merge()
        return self

    def statistic(self, name):
        found = re.search(rf"^stat::{name}: +(\d+)", self.log.read_text(errors="replace"), re.M)
        return int(found.group(1)) if found else 0

    def merge(self):
        """Adds inputs that reach more code (not: the same code more often), the smallest first."""
        merged = self.new.with_name(f"{self.name}-merged")
        shutil.copytree(self.corpus, merged)
        before = set(os.listdir(merged))
        with self.log.open("ab") as log:
            self.failed = subprocess.run(
                [self.program, "-merge=1", "-use_counters=0", f"-timeout={HANG_SECONDS}", merged, self.new],
                cwd=self.new.parent, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=ENVIRONMENT,
                check=False).returncode != 0
        found = sorted((path for path in merged.iterdir() if path.name not in before), key=lambda path: path.stat().st_size)
        kept = [path.stat().st_size for path in self.corpus.iterdir()]
        for path in found[:MOST_ADDED]:
            size = path.stat().st_size
            if len(kept) >= MOST_FILES or size > MOST_FILE_BYTES or sum(kept) + size > MOST_BYTES:
                break
            content = path.read_bytes()
            (self.corpus / f"found-{hashlib.sha256(content).hexdigest()[:8]}").write_bytes(content)
            kept.append(size)
            self.added += 1

    def row(self):
        return f"{self.name:<18}{self.executions:>12,}{self.per_second:>10,}{self.added:>8}{'  FAILED' if self.failed else ''}"


def find_targets(build, names, work):
    programs = {path.name.removeprefix("libfuzzer_"): path for path in (build / "tests/fuzz").glob("libfuzzer_*")
                if path.is_file()}
    unknown = [name for name in names if name not in programs]
    if unknown:
        sys.exit(f"./check: no fuzz target {unknown[0]}; there are: {' '.join(sorted(programs))}")
    return [Target(programs[name], work) for name in sorted(names or programs)]


def report_failure(target):
    crashes = sorted(target.crashes.glob(f"{target.name}-*"))
    print(f"\n{target.name} failed (log: {target.log})")
    for crash in crashes:
        print(f"  input: {crash}\n  repeat it: {target.program} {crash}")
    if crashes:
        print(f"  once it is fixed, keep the input: tests/fuzz/corpus/{target.name}/NAME")


def main():
    build, minutes, names = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]), sys.argv[3:]
    work = build / "run"
    lock = (build / "run.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit("./check: another ./check fuzz runs in this directory: wait for its end")
    shutil.rmtree(work, ignore_errors=True)
    (work / "crashes").mkdir(parents=True)
    targets = find_targets(build, names, work)
    workers = min(os.cpu_count(), len(targets))
    seconds = max(1, minutes * 60 * workers // len(targets))
    print(f"{len(targets)} targets, {workers} at a time, {seconds} s each\n")
    print(f"{'target':<18}{'executions':>12}{'a second':>10}{'added':>8}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for done in concurrent.futures.as_completed([pool.submit(target.run, seconds) for target in targets]):
            print(done.result().row(), flush=True)
    print(f"{'all':<18}{sum(target.executions for target in targets):>12,}{'':>10}{sum(target.added for target in targets):>8}")
    failed = [target for target in targets if target.failed]
    for target in failed:
        report_failure(target)
    return 1 if failed else 0


sys.exit(main())
