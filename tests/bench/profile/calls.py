# SPDX-License-Identifier: GPL-2.0-or-later
"""What the plugin's calls cost slurmstepd, whoever receives what it tells: the real .so in the harness of tests/plugin."""
import contextlib
import dataclasses
import os
import socket
import tempfile
import threading
import time

from harness import Harness
from pushgateway import Pushgateway, free_port
from rows import row
from sonde import BUILD

TASKS = 16
TIGHT_SAMPLES = 200000
SPARSE_SAMPLES, SPARSE_PAUSE_US = 4000, 1000
TIMEOUT_MS = 2000  # of a request: ProfilePrometheusTimeout's default
STEPS_TO_END = 5


@contextlib.contextmanager
def agent_there():
    """A socket as the agent has it, and somebody who reads."""
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
        path = f"{directory}/profile.sock"
        bound.bind(path)

        def drain():
            while bound.recv(1 << 16) != b"over":
                pass
        reader = threading.Thread(target=drain)
        reader.start()
        try:
            yield {"ProfilePrometheusAgent": path}
        finally:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
                last.sendto(b"over", path)
            reader.join()


@contextlib.contextmanager
def agent_away():
    with tempfile.TemporaryDirectory() as directory:
        yield {"ProfilePrometheusAgent": f"{directory}/profile.sock"}


@contextlib.contextmanager
def pushgateway_up():
    with Pushgateway() as gateway:
        yield {"ProfilePrometheusHost": gateway.url}


@contextlib.contextmanager
def pushgateway_down():
    yield {"ProfilePrometheusHost": f"http://127.0.0.1:{free_port()}"}


@contextlib.contextmanager
def packets_swallowed():
    """Who connects is not answered, as by a firewall that drops: the queue of connections is full."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        yield {"ProfilePrometheusHost": f"http://127.0.0.1:{server.getsockname()[1]}"}


@contextlib.contextmanager
def pushgateway_silent():
    """Connections are made, and nothing is answered."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield {"ProfilePrometheusHost": f"http://127.0.0.1:{server.getsockname()[1]}"}


# name: who receives, how many blocking pushes there is time for (none: it is not pushed)
RECEIVERS = {
    "agent": (agent_there, 0),
    "agent away": (agent_away, 0),
    "Pushgateway": (pushgateway_up, 300),
    "refused": (pushgateway_down, 300),
    "swallowed": (packets_swallowed, 1),
    "silent": (pushgateway_silent, 1),
}


@dataclasses.dataclass
class Latency:
    """Microseconds."""
    median: float
    p999: float
    worst: float

    @classmethod
    def of(cls, line):
        words = line.split()
        return cls(*(int(value) / 1000 for value in words[1::2]))


@dataclasses.dataclass
class Cost:
    receiver: str
    tight: Latency
    sparse: Latency
    nothing: Latency  # a call that does nothing, as often as sparse: what the machine adds
    blocking: Latency  # or None
    end_ms: list
    memory_mb: float


class Step:
    """One of 16 tasks and the node's own datasets, which tells what it has once in a second."""

    def __init__(self, plugin, settings):
        version = plugin.parent.name.removeprefix("slurm-")
        self.harness = Harness(BUILD / f"tests/plugin/harness-{version}", plugin, ProfilePrometheusFrequency=1, **settings)

    def __enter__(self):
        self.harness.__enter__()
        self._memory_kb()  # which itself takes some, once
        self.before_kb = self._memory_kb()
        self.harness.start_step(TASKS)
        self.begin = time.monotonic()
        names = [(task, 0) for task in range(TASKS)] + [(name, -1) for name in ("Energy", "Network", "Filesystem")]
        for name, parent in names:
            self.harness.do("sample", self.harness.one("dataset", name, parent))
        self.unknown = self.harness.one("dataset", "Unknown", -1, "Field:u64")  # its samples are dropped
        return self

    def __exit__(self, *error):
        self.harness.__exit__(*error)

    def _memory_kb(self):
        return int(self.harness.one("memory").split()[1])

    def memory_mb(self):
        return (self._memory_kb() - self.before_kb) / 1024

    def wait_until_told(self):
        """The first message goes within the first second."""
        time.sleep(max(0, self.begin + 1.3 - time.monotonic()))

    def measure(self, n, pause_us, dataset=0):
        return Latency.of(self.harness.one("measure", dataset, n, pause_us))

    def end_ms(self):
        begin = time.monotonic()
        self.harness.do("node_step_end")
        took = time.monotonic() - begin
        self.harness.do("fini")
        return 1000 * took


def end_steps(plugin, settings):
    """How long each took, in ms."""
    with contextlib.ExitStack() as stack:
        steps = [stack.enter_context(Step(plugin, settings)) for _ in range(STEPS_TO_END)]
        for step in steps:
            step.wait_until_told()
        return [step.end_ms() for step in steps]


def measure_receiver(plugin, name):
    receiver, n_blocking = RECEIVERS[name]
    with receiver() as settings:
        with Step(plugin, settings) as step:
            step.wait_until_told()
            memory_mb = step.memory_mb()
            tight = step.measure(TIGHT_SAMPLES, 0)
            sparse = step.measure(SPARSE_SAMPLES, SPARSE_PAUSE_US)
            nothing = step.measure(SPARSE_SAMPLES, SPARSE_PAUSE_US, step.unknown)
            step.end_ms()
            blocking = Latency.of(step.harness.one("blocking", n_blocking, TIMEOUT_MS)) if n_blocking else None
        end_ms = end_steps(plugin, settings)
    return Cost(name, tight, sparse, nothing, blocking, end_ms, memory_mb)


def print_cost(release, cost):
    start = f"{release} {cost.receiver}"
    blocking = cost.blocking.median if cost.blocking else None
    for kind, latency, floor in (("in a loop", cost.tight, None), ("each ms", cost.sparse, cost.nothing.p999)):
        row(f"{start}: sample {kind}, median", latency.median, "us", 2, blocking)
        row(f"{start}: sample {kind}, 99.9 %", latency.p999, "us", 20, floor)
    row(f"{start}: end of a step, worst", max(cost.end_ms), "ms", 110)
    row(f"{start}: memory added", cost.memory_mb, "MB", 0.2 if cost.receiver.startswith("agent") else None)


def measure_calls(release, plugin):
    os.sync()  # pages of a program that was just built are dirty, and would be taken for its memory
    costs = []
    for name in RECEIVERS:
        costs.append(measure_receiver(plugin, name))
        print_cost(release, costs[-1])
    return costs
