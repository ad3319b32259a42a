#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""slurm_version.py META DIRECTORY: writes, below DIRECTORY, what Slurm's configure would make of the META file of its
sources and its private headers need; prints the version, which is the name of the directory there."""
import pathlib
import re
import sys

NUMBER = "#define SLURM_VERSION_NUMBER 0x{0:02x}{1:02x}{2:02x}"
VERSION = """\
#ifndef _SLURM_VERSION_H_
#define _SLURM_VERSION_H_
""" + NUMBER + """
#define SLURM_VERSION_NUM(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#define SLURM_VERSION_MAJOR(a) (((a) >> 16) & 0xff)
#define SLURM_VERSION_MINOR(a) (((a) >> 8) & 0xff)
#define SLURM_VERSION_MICRO(a) ((a) & 0xff)
#endif
"""

# Slurm's functions have a second name with slurm_ before it, by which its own plugins call them.
CONFIG = "#define USE_ALIAS 1\n"


def numbers(meta):
    text = pathlib.Path(meta).read_text(encoding="utf-8", errors="replace")
    found = dict(re.findall(r"^\s*(Major|Minor|Micro):\s*(\d+)", text, re.MULTILINE))
    if len(found) != 3 or any(int(value) > 255 for value in found.values()):
        sys.exit(f"{meta} has no version: is this Slurm's source tree?")
    return [found[key] for key in ("Major", "Minor", "Micro")]


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main(meta, directory):
    parts = numbers(meta)
    version = ".".join(parts)
    place = pathlib.Path(directory) / version
    write(place / "slurm" / "slurm_version.h", VERSION.format(*map(int, parts)))
    # Until 20.11 the version stood in slurm.h itself.
    template = pathlib.Path(meta).parent / "slurm" / "slurm.h.in"
    if template.exists():
        text = template.read_text(encoding="utf-8")
        write(place / "slurm" / "slurm.h",
              text.replace("#undef SLURM_VERSION_NUMBER", NUMBER.format(*map(int, parts))))
    write(place / "config.h", CONFIG)
    print(version)


main(*sys.argv[1:])
