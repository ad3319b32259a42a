#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Every program, libslurm helper and Slurm plugin of a build is hardened by the flags of meson.build."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import elf

BUILD = pathlib.Path(os.environ["SONDE_BUILD"]) / "src"
FLAGS = "-fstack-protector-strong", "-fstack-clash-protection"


def programs():
    return [path for path in sorted(BUILD.glob("sonde*")) if path.is_file() and os.access(path, os.X_OK)]


def modules():
    return sorted(BUILD.glob("plugin/slurm-*/*.so"))


def faults(program):
    """What a linked file lacks, in words."""
    if program.type != elf.ET_DYN:
        yield "is not position-independent"
    if elf.PT_GNU_RELRO not in program.segments or not program.is_bound_at_start():
        yield "has no full RELRO"
    if program.segments.get(elf.PT_GNU_STACK, elf.PF_X) & elf.PF_X:
        yield "has an executable stack"
    if "__stack_chk_fail" not in program.imports:
        yield "has no stack protector"
    # The sanitizers take the place of the fortified functions.
    if "__asan_init" not in program.imports and not program.has_fortified_calls():
        yield "calls no fortified function"


def object_faults(file):
    """What an object file lacks. Without debugging information it does not show its flags."""
    if file.machine == elf.EM_X86_64 and file.control_flow() & (elf.IBT | elf.SHSTK) != elf.IBT | elf.SHSTK:
        yield "has no CET"
    if producer := file.named(".debug_str"):
        yield from (f"was compiled without {flag}" for flag in FLAGS if flag.encode() not in producer)


class Hardening(unittest.TestCase):
    def test_programs_and_plugins(self):
        self.assertLessEqual({"sonde", "sonde-agent"}, {path.name for path in programs()})
        files = [elf.Program(path) for path in programs() + modules()]
        self.assertEqual([f"{file.path.name} {fault}" for file in files for fault in faults(file)], [])

    def test_objects(self):
        """What a linked file does not show: flags, and CET, which the linker drops if the C library's start files lack it."""
        objects = [elf.File(path) for path in sorted(BUILD.rglob("*.o"))]
        self.assertTrue(objects)
        self.assertEqual([f"{file.path.name} {fault}" for file in objects for fault in object_faults(file)], [])


class Faults(unittest.TestCase):
    """A program that is built with none of it."""

    def test_every_fault_is_found(self):
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (directory / "a.c").write_text('#include <stdio.h>\nint main(int n, char **v)\n{\n\tchar a[9];\n\n\treturn sprintf(a, "%s", v[n - 1]);\n}\n')
        subprocess.run(["cc", "-g", "-O1", "-fno-pie", "-no-pie", "-fno-stack-protector", "-fcf-protection=none", "-U_FORTIFY_SOURCE",
                        "-c", "a.c"], cwd=directory, check=True, stderr=subprocess.DEVNULL)
        subprocess.run(["cc", "-no-pie", "-Wl,-z,lazy,-z,norelro,-z,execstack", "a.o", "-o", "a"], cwd=directory, check=True)
        self.assertEqual(list(faults(elf.Program(directory / "a"))),
                         ["is not position-independent", "has no full RELRO", "has an executable stack", "has no stack protector",
                          "calls no fortified function"])
        self.assertEqual(list(object_faults(elf.File(directory / "a.o"))),
                         ["has no CET", *(f"was compiled without {flag}" for flag in FLAGS)])


if __name__ == "__main__":
    import tap
    tap.main()
