# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes archives that the kernel unpacks as its first root ("newc", Documentation/driver-api/early-userspace/
buffer-format.rst). By hand, because cpio can neither add a device without being root nor leave out by pattern."""
import fnmatch
import os
import stat


class Archive:
    def __init__(self, path):
        self.file = open(path, "wb")
        self.count = 0
        self.made = set()

    def _entry(self, name, mode, data=b"", owner=(0, 0), device=(0, 0)):
        self.count += 1
        name = name.encode() + b"\0"
        fields = (self.count, mode, *owner, 1, 0, len(data), 0, 0, *device, len(name), 0)
        self._aligned(b"070701" + b"".join(b"%08X" % field for field in fields) + name)
        self._aligned(data)

    def _aligned(self, data):
        self.file.write(data)
        self.file.write(bytes(-self.file.tell() % 4))

    def directory(self, name, mode=0o755, owner=(0, 0)):
        """With those above it, which the kernel does not make by itself."""
        parent = os.path.dirname(name)
        if parent and parent not in self.made:
            self.directory(parent)
        self.made.add(name)
        self._entry(name, stat.S_IFDIR | mode, owner=owner)

    def regular(self, name, data, mode=0o644):
        if os.path.dirname(name) not in self.made:
            self.directory(os.path.dirname(name))
        self._entry(name, stat.S_IFREG | mode, data)

    def character_device(self, name, major, minor):
        if os.path.dirname(name) not in self.made:
            self.directory(os.path.dirname(name))
        self._entry(name, stat.S_IFCHR | 0o600, device=(major, minor))

    def tree(self, root, left_out, below=""):
        """What is below a directory, but for paths that match one of the patterns."""
        for entry in sorted(os.scandir(os.path.join(root, below)), key=lambda entry: entry.name):
            name = os.path.join(below, entry.name)
            if any(fnmatch.fnmatch(name, pattern) for pattern in left_out):
                continue
            status = entry.stat(follow_symlinks=False)
            owner = (status.st_uid, status.st_gid)
            if entry.is_symlink():
                self._entry(name, status.st_mode, os.fsencode(os.readlink(entry.path)), owner)
            elif entry.is_dir():
                self.directory(name, stat.S_IMODE(status.st_mode), owner)
                self.tree(root, left_out, name)
            elif entry.is_file() and os.access(entry.path, os.R_OK):
                with open(entry.path, "rb") as file:
                    self._entry(name, status.st_mode, file.read(), owner)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._entry("TRAILER!!!", 0)
        self.file.close()
