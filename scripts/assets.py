#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the table of src/web/assets.c: files, compressed, as C. assets.py NAME=FILE... in the order of enum asset; a
FILE that is empty is left out."""
import gzip
import hashlib
import sys

TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


def row(name, path):
    if not path:
        return "    { 0 },"
    with open(path, "rb") as file:
        text = file.read()
    stem, _, kind = name.rpartition(".")
    digest = hashlib.sha256(text).hexdigest()[:10]
    packed = gzip.compress(text, 9, mtime=0)
    data = "".join(f"\\{byte:03o}" for byte in packed)
    lines = "\n".join(f'      "{data[i:i + 96]}"' for i in range(0, len(data), 96))
    address = f"/static/{stem}-{digest}.{kind}"
    return f'    {{ "{address}", "\\"{digest}\\"", "{TYPES[kind]}", {len(text)}, {len(packed)},\n{lines} }},'


print("\n".join(row(*argument.split("=", 1)) for argument in sys.argv[1:]))
