# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a module's unittest cases and prints TAP, which meson counts case by case."""
import sys
import time
import traceback
import unittest


class TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.count = 0
        self.began = time.monotonic()

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        print(f"# {time.monotonic() - self.began:.1f} s", flush=True)

    def _line(self, ok, test, note=""):
        self.count += 1
        name = getattr(test, "_testMethodName", str(test))
        doc = name.removeprefix("test_").replace("_", " ")
        print(f"{'ok' if ok else 'not ok'} {self.count} - {doc}{note}", flush=True)

    def _failure(self, test, err):
        for line in "".join(traceback.format_exception(*err)).splitlines():
            print(f"# {line}")
        self._line(False, test)

    def addSuccess(self, test):
        super().addSuccess(test)
        self._line(True, test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._failure(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self._failure(test, err)

    def addSubTest(self, test, subtest, err):
        if err:
            print(f"# in {subtest}")
            self._failure(test, err)
        super().addSubTest(test, subtest, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._line(True, test, f" # SKIP {' '.join(reason.split())}")


def main(module="__main__"):
    names = sys.argv[1:] or None
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(names, sys.modules[module]) if names \
        else loader.loadTestsFromModule(sys.modules[module])
    result = TapResult()
    suite.run(result)
    print(f"1..{result.count}")
    sys.exit(0 if result.wasSuccessful() and result.count else 1)
