# SPDX-License-Identifier: GPL-2.0-or-later
"""A real Prometheus with a configuration of the test's own: the program of the sandbox's Debian root."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import urllib.parse

from sonde import DEADLINE, Log, http_get, wait_until


def listening_port(pid):
    """The port on which the process listens, or None: proc(5), of net/tcp."""
    inodes = set()
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink(link)))
        except FileNotFoundError:  # closed meanwhile
            pass
    for line in pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *_, inode = line.split()[:10]
        if state == "0A" and inode in inodes:
            return int(local.partition(":")[2], 16)
    return None


class Prometheus:
    """Started on a port that it chooses, with that configuration, and ended by end()."""

    def __init__(self, root, config, samples=None):
        """Samples that it has from the beginning: OpenMetrics with times, of any time."""
        self.directory = tempfile.TemporaryDirectory()
        if samples is not None:
            self._import(root, samples)
        pathlib.Path(self.directory.name, "prometheus.yml").write_text(config)
        self.errors = Log()
        self.process = subprocess.Popen(
            [pathlib.Path(root, "usr/bin/prometheus"), "--web.listen-address=127.0.0.1:0",
             f"--config.file={self.directory.name}/prometheus.yml", f"--storage.tsdb.path={self.directory.name}/data",
             "--storage.tsdb.retention.time=100y"],
            stdin=subprocess.DEVNULL, stdout=self.errors.file, stderr=self.errors.file)
        try:
            self.url = f"http://127.0.0.1:{wait_until(self._port, 'Prometheus listens')}"
            wait_until(self._is_ready, "Prometheus is ready")
        except BaseException:
            self.end()
            raise

    def _import(self, root, samples):
        path = pathlib.Path(self.directory.name, "samples")
        path.write_text(samples)
        # It parses the whole file for each block.
        subprocess.run([pathlib.Path(root, "usr/bin/promtool"), "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=480h",
                        path, f"{self.directory.name}/data"], stdout=subprocess.DEVNULL, check=True)
        path.unlink()

    def _port(self):
        assert self.process.poll() is None, f"Prometheus has ended: {self.log()}"
        return listening_port(self.process.pid)

    def _is_ready(self):
        assert self.process.poll() is None, f"Prometheus has ended: {self.log()}"
        return http_get(f"{self.url}/-/ready").status == 200

    def log(self):
        return self.errors.text()

    def query(self, expression, at=None):
        """A list of (labels, value), now or as of that time."""
        asked = {"query": expression, **({"time": at} if at else {})}
        answer = json.loads(http_get(f"{self.url}/api/v1/query?" + urllib.parse.urlencode(asked)).text)
        assert answer["status"] == "success", answer
        return [(row["metric"], float(row["value"][1])) for row in answer["data"]["result"]]

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.errors.close()
        self.directory.cleanup()
