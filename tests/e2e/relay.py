# SPDX-License-Identifier: GPL-2.0-or-later
"""A sandbox's commands for who may not enter it: each asks a server of the test's over a unix socket, which runs the real one.
What `sonde up` starts has no capabilities, and can get none."""
import base64
import json
import os
import pathlib
import shutil
import socketserver
import subprocess
import tempfile
import threading

from invariants import real_commands
from sonde import DEADLINE

CLIENT = """#!/usr/bin/python3
import base64, json, os, socket, sys
with socket.socket(socket.AF_UNIX) as peer:
    peer.connect({socket!r})
    with peer.makefile("rw") as stream:
        stream.write(json.dumps([[{name!r}, *sys.argv[1:]], dict(os.environ)]) + "\\n")
        stream.flush()
        status, out, error = json.loads(stream.readline())
sys.stdout.buffer.write(base64.b64decode(out))
sys.stderr.buffer.write(base64.b64decode(error))
sys.exit(status)
"""


class Relay:
    """Its path is a directory of commands."""

    def __init__(self, slurm, names=("squeue", "sinfo", "scontrol", "sdiag", "sshare", "sacct", "sacctmgr")):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="sonde-relay-"))
        self.path.chmod(0o755)
        real_commands.add(str(self.path))
        place = str(self.path / "socket")
        commands = pathlib.Path(slurm.env["SANDBOX_BIN"])

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                argv, environment = json.loads(self.rfile.readline())
                done = subprocess.run([commands / argv[0], *argv[1:]], capture_output=True, stdin=subprocess.DEVNULL, timeout=DEADLINE,
                                      env=environment | {"PATH": os.environ["PATH"]})
                answer = [done.returncode, *(base64.b64encode(text).decode() for text in (done.stdout, done.stderr))]
                self.wfile.write(json.dumps(answer).encode() + b"\n")

        self.server = socketserver.ThreadingUnixStreamServer(place, Handler)
        self.server.daemon_threads = True
        os.chmod(place, 0o777)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        for name in names:
            if (commands / name).exists():
                (self.path / name).write_text(CLIENT.format(socket=place, name=name))
                (self.path / name).chmod(0o755)

    def end(self):
        self.server.shutdown()
        self.server.server_close()
        shutil.rmtree(self.path)
