#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Holds this repository to its house rules (rules.py), and each rule to finding what it is for."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import rules
from capabilities import need

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SONDE_BUILD", ROOT / "build/check"))


class House(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tree = rules.Tree(ROOT)

    def hold(self, findings):
        findings = list(findings)
        if findings:
            self.fail("\n" + "\n".join(findings))

    def test_code_is_formatted(self):
        need("clang-format-14")
        self.assertGreater(len(self.tree.c_files()), 1000)
        self.hold(rules.formatting(self.tree))

    def test_no_layer_includes_a_higher_one(self):
        self.hold(rules.layering(self.tree))

    def test_no_pointer_outlives_a_quoted_text(self):
        self.hold(rules.lifetimes(self.tree))

    def test_files_begin_with_license_and_purpose(self):
        self.hold(rules.heads(self.tree))

    def test_shell_scripts_have_no_findings(self):
        self.assertIn("check", self.tree.shell_scripts())
        self.hold(rules.shell(self.tree))

    def test_man_pages_have_no_warnings(self):
        pages = sorted((BUILD / "src").glob("*.1"))
        self.assertIn("sonde.1", [page.name for page in pages])
        self.hold(rules.manual(pages))

    def test_every_function_is_called_by_a_program(self):
        self.hold(rules.dead_functions(BUILD))


HEAD = "/* SPDX-License-Identifier: GPL-2.0-or-later */\n"
LAYERS = "◀\n\n## Layers\n\n```\nlow ◀ middle side ◀ high\n```\n"


class Rules(unittest.TestCase):
    """Each on a small tree that breaks it."""

    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        subprocess.run(["git", "init", "--quiet", self.root], check=True)

    def put(self, files):
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return rules.Tree(self.root)

    def places(self, findings):
        """file:line of each, in order."""
        return sorted(":".join(finding.split(":")[:2]) for finding in findings)

    def test_ignored_files_are_nobodys(self):
        tree = self.put({".gitignore": "/build\n", "build/x.c": "", "src/base/x.c": ""})
        self.assertEqual(tree.files, [".gitignore", "src/base/x.c"])

    def test_formatting(self):
        need("clang-format-14")
        tree = self.put({".clang-format": "BasedOnStyle: LLVM\n", "src/a.c": "int a;\nint  b;\n", "tests/b.h": "int c;\n",
                         "other/c.c": "int  d;\n"})
        self.assertEqual(self.places(rules.formatting(tree)), ["src/a.c:2"])

    def test_layering(self):
        tree = self.put({
            "ARCHITECTURE.md": LAYERS,
            "src/low/a.c": '#include "low/a.h"\n#include <middle/system.h>\n  # include "middle/b.h"\n',
            "src/middle/b.h": '#include "low/a.h"\n#include "side/c.h"\n#include "made.h"\n',
            "src/side/c.h": '\n#include "high/d.h"\n',
            "src/high/d.h": '#include "low/a.h"\n',
        })
        self.assertEqual(self.places(rules.layering(tree)), ["src/low/a.c:3", "src/side/c.h:2"])

    def test_every_directory_has_a_layer_and_every_layer_a_directory(self):
        tree = self.put({"ARCHITECTURE.md": LAYERS, "src/low/a.c": "", "src/middle/b.c": "", "src/side/c.c": "",
                         "src/new/d.c": '#include "low/a.h"\n'})
        found = list(rules.layering(tree))
        self.assertEqual([finding.split(" (")[0] for finding in found],
                         ["ARCHITECTURE.md:6: src/new is in no layer", "ARCHITECTURE.md:6: there is no src/high"])
        self.assertEqual(len(list(rules.layering(self.put({"ARCHITECTURE.md": "# Nothing\n"})))), 4)

    def test_lifetimes(self):
        tree = self.put({"src/a.c": 'const char *a = quote(b).text;\nstruct quote c = quote(d);\ne =\n    f ? quote(f).text : quote(g).text;\n'
                                    'if (h == 1)\n    err_set(err, EINVAL, "%s", quote(h).text);\n'
                                    'code = err_set(err, EINVAL, "%s", quote(i).text);\n'})
        self.assertEqual(self.places(rules.lifetimes(tree)), ["src/a.c:1", "src/a.c:4"])

    def test_heads(self):
        tree = self.put({
            "good.c": HEAD + "/* Adds. */\n", "good.py": HEAD + '"""Adds."""\n', "meson.build": HEAD, "docs.md": "",
            "good": "#!/bin/sh\n# SPDX-License-Identifier: GPL-2.0-or-later\n# Adds.\n",
            "tests/data/recorded.yml": "x: 1\n", "tests/golden/pages/x.js": "", "tests/golden/test.py": "",
            "none.h": "", "late.c": "\n" + HEAD, "purposeless.c": HEAD + '#include "purposeless.h"\n',
            "purposeless.py": HEAD + "import os\n", "script": "#!/usr/bin/env python3\n" + HEAD + "# Adds.\n",
            "packaging/meson.build": "", "tests/data/record": "#!/bin/sh\ntrue\n",
        })
        self.assertEqual(self.places(rules.heads(tree)), [
            "late.c:1", "none.h:1", "packaging/meson.build:1", "purposeless.c:2", "purposeless.py:2", "script:3",
            "tests/data/record:2", "tests/golden/test.py:1"])

    def test_shell(self):
        self.assertEqual(list(rules.shell(self.put({"a.c": ""}))), [])
        tree = self.put({"good": "#!/bin/sh\necho \"$1\"\n", "bad": "#!/bin/sh\ntrue\necho $1\n",
                         "sourced.sh": "# shellcheck shell=sh\necho $1\n", "other": "echo $1\n"})
        self.assertEqual(self.places(rules.shell(tree)), ["bad:3", "sourced.sh:2"])

    def test_manual(self):
        self.put({"good.1": ".TH GOOD 1\n.SH NAME\ngood \\- is good\n", "bad.1": ".TH BAD 1\n.SH NAME\n.nonsense\n"})
        found = list(rules.manual(sorted(self.root.glob("*.1"))))
        self.assertEqual(len(found), 1)
        self.assertRegex(found[0], "^bad.1: .*:3: .*nonsense")

    def test_dead_functions(self):
        self.assertEqual(len(list(rules.dead_functions(self.root))), 1)
        self.put({
            # Reached directly, by a table, through a local function and from another file; called by the dead alone.
            "src/main.c": "int direct(void);\nextern int (*const table[])(void);\nint main(void)\n{\n"
                          "\treturn direct() + table[0]();\n}\n",
            "src/some.c": "int far(void);\nint spare(void);\nint row(void) { return 1; }\nint (*const table[])(void) = { row };\n"
                          "static __attribute__((noinline)) int local(void) { return far(); }\n"
                          "int direct(void) { return local(); }\nint dead(void) { return spare(); }\n",
            "src/far.c": "int far(void) { return 2; }\n\nint spare(void) { return far(); }\nint __lsan_is_ours(void) { return 0; }\n",
            "src/plugin.c": "int called_by_slurm(void) { return 3; }\n",
            "src/ring.c": "int ring(int n);\nint gnir(int n) { return ring(n) + 1; }\nint ring(int n) { return n ? gnir(n - 1) : 0; }\n",
        })
        for name in ("main", "some", "far", "ring", "plugin"):
            subprocess.run(["cc", "-g", "-O1", "-fPIC", "-c", f"src/{name}.c", "-o", f"src/{name}.o"], cwd=self.root, check=True)
        subprocess.run(["cc", "-shared", "src/plugin.o", "-o", "src/plugin.so"], cwd=self.root, check=True)
        self.assertEqual(self.places(rules.dead_functions(self.root)),
                         ["src/far.c:3", "src/ring.c:2", "src/ring.c:3", "src/some.c:7"])


if __name__ == "__main__":
    import tap
    tap.main()
