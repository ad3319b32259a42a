# SPDX-License-Identifier: GPL-2.0-or-later
"""The profile plugin as it is installed, without sanitizers, under valgrind."""
import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parent.parent)]
import tap  # noqa: E402
from capabilities import need  # noqa: E402
from test_plugin import Agent, harness  # noqa: E402


class Valgrind(unittest.TestCase):
    def test_valgrind_finds_nothing_in_the_life_of_a_step(self):
        need("valgrind")
        for key, value in (("Agent", Agent(self).path), ("Host", "http://127.0.0.1:1")):
            with self.subTest(key):
                slurm = harness("valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full", "--track-fds=no",
                                "--errors-for-leak-kinds=definite", is_plain=True, **{
                                    f"ProfilePrometheus{key}": value, "ProfilePrometheusFrequency": 1})
                slurm.start_step(tasks=2)
                slurm.do("conf_values")
                slurm.do("group", "Tasks")
                for name, parent in (("0", 0), ("1", 0), ("Energy", -1), ("Network", -1), ("Filesystem", -1)):
                    dataset = slurm.one("dataset", name, parent)
                    slurm.do("sample", dataset)
                slurm.do("measure", 0, 2000, 500)
                slurm.do("fork")
                slurm.end_step(tasks=2)
                slurm.do("log")
                self.assertEqual(slurm.end(), (0, ""))


if __name__ == "__main__":
    tap.main()
