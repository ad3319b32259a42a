# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a command under the limits that a systemd unit of ours names, where systemd itself may not run."""
import collections
import pathlib
import resource
import shlex
import subprocess

from sonde import ROOT

AGENT, EXPORTER, WEB = (ROOT / f"packaging/systemd/sonde-{name}.service.in" for name in ("agent", "exporter", "web"))
DYNAMIC_UID = 61999  # of the range that systemd takes for DynamicUser


def settings(path=AGENT):
    """Name → list of values, as systemd reads them: a line that is empty behind its = clears those before it."""
    found = collections.defaultdict(list)
    for line in pathlib.Path(path).read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found[name] = [*found[name], value] if value else []
    return found


def write(directory, bindir, path=AGENT):
    """The unit as it would be installed, with programs in `bindir`; returns its path."""
    target = pathlib.Path(directory, pathlib.Path(path).name.removesuffix(".in"))
    target.write_text(pathlib.Path(path).read_text().replace("@bindir@", str(bindir)))
    return target


def prefix(path=AGENT):
    """The words that stand before a command to give it the unit's user, capabilities, priority and limits. For root. A user
    with a name need not exist here: he gets the number of a dynamic one."""
    unit = settings(path)
    assert unit["DynamicUser"] == ["yes"] or unit["User"], "the unit names no user"

    def capabilities(name):
        words = [word.removeprefix("CAP_").lower() for value in unit[name] for word in value.split()]
        assert not any("~" in word for word in words), f"{name} is not a list of capabilities"
        return ",".join(["-all", *(f"+{word}" for word in words)])

    assert "CapabilityBoundingSet" in unit, "the unit lets its program have every capability"
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]  # a container's root may not raise it
    words = ["prlimit", f"--nofile={min(int(unit['LimitNOFILE'][-1]), hard)}", "nice", "-n", (unit["Nice"] or ["0"])[-1]]
    words += ["setpriv", f"--reuid={DYNAMIC_UID}", f"--regid={DYNAMIC_UID}", "--clear-groups",
              f"--inh-caps={capabilities('AmbientCapabilities')}",
              f"--ambient-caps={capabilities('AmbientCapabilities')}",
              f"--bounding-set={capabilities('CapabilityBoundingSet')}"]
    if unit["NoNewPrivileges"] == ["yes"]:
        words.append("--no-new-privs")
    return [*words, "--"]


def start(command, path=AGENT, **arguments):
    """subprocess.Popen of the command under the unit's limits."""
    return subprocess.Popen([*prefix(path), *map(str, command)], **arguments)


def command_line(path=AGENT):
    """The words of ExecStart, without variables."""
    return [word for word in shlex.split(settings(path)["ExecStart"][-1]) if not word.startswith("$")]
