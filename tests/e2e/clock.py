# SPDX-License-Identifier: GPL-2.0-or-later
"""A clock that a test moves forward, for programs that take theirs from the environment (base/clock.h): what comes with
time comes when the test says so."""
import ctypes
import mmap
import os
import tempfile


class Clock:
    """Ahead of the real clocks by as much as it was moved; or, if it stands, at that moment (SECONDS) and as much. Give `env` to the
    programs that are to have it."""

    def __init__(self, stands=None):
        self.file = tempfile.NamedTemporaryFile(prefix="sonde-clock-")
        os.fchmod(self.file.fileno(), 0o644)  # the program may be another user's
        os.truncate(self.file.fileno(), 8)
        self.map = mmap.mmap(self.file.fileno(), 8)
        self.ahead_ns = ctypes.c_int64.from_buffer(self.map)  # written in one piece
        self.env = {"SONDE_CLOCK_AHEAD": self.file.name, **({"SONDE_CLOCK": str(stands)} if stands else {})}

    def advance(self, seconds):
        self.ahead_ns.value += int(seconds * 1e9)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        del self.ahead_ns
        self.map.close()
        self.file.close()
