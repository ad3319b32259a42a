#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What this machine gives to tests. Each capability is probed once, here and nowhere else.

./check runs this file at its start, prints what is missing and exports it to all tests as SONDE_MISSING, lines of
"name: reason". A Python test declares what it needs by need("cgroup-v1"), a C test by need("cgroup-v1") of
tests/unit/test.h; both are skipped with the reason if it is missing. A Python test that is started by hand probes what it asks for.

usage: capabilities.py [NAME...]    prints one line "name: reason" for each that is missing; of all, without names
"""
import getpass
import importlib.util
import os
import pathlib
import resource
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
HANG = 300  # seconds; bounds a probe that does not return
DOWNLOAD_HANG = 3600  # … that downloads a Debian root, however slow the mirror and the machine are
AXE_CORE = "build/axe/node_modules/axe-core/axe.min.js"
SUITES = os.environ.get("SONDE_SUITES", "bookworm trixie").split()


def run(*command, timeout=HANG, **options):
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=timeout, **options)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 127, "", str(error))


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def as_root(*command):
    """The command, with sudo where the caller is not root."""
    return command if os.geteuid() == 0 else ("sudo", "-n", *command)


def becomes_other_users():
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


def root():
    if os.geteuid() != 0:
        return "the tests are run by an ordinary user"
    if not becomes_other_users():
        return "root of a user namespace, which cannot become another user"
    return None


def namespaces():
    if run(*as_root("true")).returncode:
        return "not root, and sudo does not work without a password"
    if os.geteuid() == 0 and not becomes_other_users():
        return "root of a user namespace, which cannot make the users of a cluster"
    done = run(*as_root("unshare", "--mount", "--pid", "--uts", "--fork", "--propagation", "unchanged", "true"))
    return f"unshare --mount --pid --uts fails: {last_line(done.stderr)}" if done.returncode else None


def first_pid_namespace():
    # PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h
    if os.readlink("/proc/self/ns/pid") != f"pid:[{0xEFFFFFFC}]":
        return "this is a pid namespace of its own, as in a container"
    return None


def _attribute(kind, value):
    return struct.pack("HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def _ask_kernel(netlink, family, command, attribute):
    """Sends a generic netlink request (linux/genetlink.h) and returns the first reply."""
    payload = struct.pack("BBH", command, 1, 0) + attribute
    acknowledged = 0x5  # NLM_F_REQUEST | NLM_F_ACK
    netlink.send(struct.pack("IHHII", 16 + len(payload), family, acknowledged, 1, 0) + payload)
    return netlink.recv(65536)


def _error_of(reply):
    """errno, if it is an acknowledgement (NLMSG_ERROR)."""
    return -struct.unpack_from("i", reply, 16)[0] if struct.unpack_from("IH", reply)[1] == 2 else 0


def taskstats():
    """Registers for exit records as the agent does; only the first pid namespace may."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16) as netlink:
        netlink.settimeout(HANG)
        netlink.bind((0, 0))
        reply = _ask_kernel(netlink, 16, 3, _attribute(2, b"TASKSTATS\0"))
        if _error_of(reply):
            return "the kernel has no taskstats"
        netlink.recv(65536)  # its acknowledgement
        at, family = 20, None
        while family is None:
            length, kind = struct.unpack_from("HH", reply, at)
            family = struct.unpack_from("H", reply, at + 4)[0] if kind == 1 else None
            at += (length + 3) & ~3
        error = _error_of(_ask_kernel(netlink, family, 1, _attribute(3, b"0\0")))
        return f"registering for exit records fails: {os.strerror(error)}" if error else None


def ptrace():
    """CAP_SYS_PTRACE, and CAP_DAC_OVERRIDE or CAP_DAC_READ_SEARCH, as proc_sight() of src/source/proc.h wants them."""
    status = pathlib.Path("/proc/self/status").read_text()
    held = int(next(line for line in status.splitlines() if line.startswith("CapEff:")).split()[1], 16)
    return None if held & 1 << 19 and held & 0b110 else "other users' processes cannot be read (CAP_SYS_PTRACE)"


def mounts():
    """By the tests themselves, without sudo."""
    with tempfile.TemporaryDirectory() as directory:
        # In a chroot, mounts cannot be made private. Where others see this one, they see its end as well.
        done = run("unshare", "--mount", "--propagation", "unchanged", "sh", "-c",
                   'mount -t tmpfs none "$1" && umount "$1"', "sh", directory)
    return f"nothing can be mounted: {last_line(done.stderr)}" if done.returncode else None


def pid_namespaces():
    """By the tests themselves, without sudo."""
    done = run("unshare", "--pid", "--fork", "--mount", "--propagation", "unchanged", "--mount-proc", "--kill-child", "true")
    return f"unshare --pid fails: {last_line(done.stderr)}" if done.returncode else None


def counted_io():
    if not os.path.exists("/proc/self/io"):
        return "the kernel does not count bytes"
    kind = run("stat", "-fc", "%T", tempfile.gettempdir()).stdout.strip()
    return f"files in {tempfile.gettempdir()} are in memory, which the kernel does not count" if kind == "tmpfs" else None


def set_uid():
    why = missing_reason("root")
    if why:
        return why
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        program = shutil.copy("/usr/bin/id", directory)
        os.chmod(program, 0o4755)
        done = run(program, "-u", user=65534, group=65534, extra_groups=[])
    return None if done.stdout == "0\n" else f"a program in {tempfile.gettempdir()} cannot be set-uid"


def _cannot_make_cgroup(directory):
    probe = directory / f"sonde-probe.{os.getpid()}"
    done = run(*as_root("mkdir", str(probe)))
    if done.returncode:
        return f"cannot make a cgroup: {last_line(done.stderr)}"
    run(*as_root("rmdir", str(probe)))
    return None


def cgroup_v1():
    for controller in ("freezer", "memory", "cpuacct", "pids", "cpuset", "devices"):
        directory = pathlib.Path("/sys/fs/cgroup", controller)
        if not (directory / "release_agent").exists():
            return f"{directory} is not the root of a cgroup v1 hierarchy"
        why = _cannot_make_cgroup(directory)
        if why:
            return why
    return None


def cgroup_v2():
    """Beside v1, or alone."""
    for directory in (pathlib.Path("/sys/fs/cgroup"), pathlib.Path("/sys/fs/cgroup/unified")):
        if (directory / "cgroup.controllers").exists():
            return _cannot_make_cgroup(directory)
    return "there is no cgroup v2 in /sys/fs/cgroup"


def ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError as error:
        return f"cannot bind to ::1: {error.strerror}"
    return None


def many_files():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return f"at most {hard} files may be open" if hard != resource.RLIM_INFINITY and hard < 10000 else None


def munge():
    return None if shutil.which("munged", path="/usr/sbin") else "munged is not installed"


def openssl():
    return None if shutil.which("openssl") else "openssl is not installed"


def systemd_tools():
    """Of the package systemd; the system need not run it."""
    missing = [name for name in ("systemd-analyze", "systemd-sysusers", "systemd-tmpfiles") if not shutil.which(name)]
    return f"{', '.join(missing)}: not installed" if missing else None


def groff():
    return None if shutil.which("groff") else "groff is not installed"


def poppler():
    return None if shutil.which("pdftotext") else "pdftotext is not installed"


def valgrind():
    return None if shutil.which("valgrind") else "valgrind is not installed"


def clang_format():
    """Other releases format some lines in other ways; Debian 12 has 14."""
    done = run("clang-format", "--version")
    return None if " version 14." in done.stdout else f"another clang-format: {last_line(done.stdout or done.stderr)}"


def lynx():
    return None if shutil.which("lynx") else "lynx is not installed"


def tidy():
    return None if shutil.which("tidy") else "tidy is not installed"


def sshd():
    """Logs in to one of the caller's own, over a pipe."""
    server = shutil.which("sshd", path=f"/usr/sbin:/usr/local/sbin:{os.environ['PATH']}")
    if not server or not shutil.which("ssh"):
        return "openssh-client and openssh-server are not installed"
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # where it shuts itself in
    with tempfile.TemporaryDirectory() as directory:
        for name in ("host_key", "key"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{directory}/{name}")
        pathlib.Path(directory, "config").write_text(
            f"HostKey {directory}/host_key\nAuthorizedKeysFile {directory}/key.pub\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n")
        done = run("ssh", "-F", "none", "-oBatchMode=yes", "-oIdentitiesOnly=yes", "-oIdentityAgent=none", "-oStrictHostKeyChecking=no",
                   "-oUserKnownHostsFile=/dev/null", f"-oProxyCommand={server} -i -f {directory}/config", "-i", f"{directory}/key",
                   f"{getpass.getuser()}@localhost", "true")
    return f"nobody can log in to a sshd: {last_line(done.stderr)}" if done.returncode else None


def chromium():
    if not shutil.which("chromium") or not shutil.which("chromedriver") or not importlib.util.find_spec("selenium"):
        return "chromium, chromium-driver and python3-selenium are not installed"
    with tempfile.TemporaryDirectory() as home:
        done = run("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", f"--user-data-dir={home}", "--dump-dom", "data:text/html,<p>works",
                   env=dict(os.environ, HOME=home))
    return None if "works" in done.stdout else f"chromium does not start: {last_line(done.stderr)}"


def axe_core():
    """Deque's accessibility rules, which Debian does not package."""
    if (ROOT / AXE_CORE).exists():
        return None
    if not shutil.which("npm"):
        return "npm is not installed"
    directory = ROOT / "build/axe"
    directory.mkdir(parents=True, exist_ok=True)
    done = run("npm", "install", "--no-save", "--no-audit", "--no-fund", f"--prefix={directory}", "axe-core@4")
    return f"npm cannot install it: {last_line(done.stderr)}" if done.returncode else None


def slurm_of(suite):
    """Makes the Debian root with that Slurm, if it is not there yet and its tests can run."""
    def probe():
        why = missing_reason("root") or missing_reason("namespaces")
        if why:
            return why
        done = run(str(ROOT / "sandbox"), "root", "--suite", suite, timeout=DOWNLOAD_HANG)
        return f"no {suite} sandbox: {last_line(done.stderr or done.stdout)}" if done.returncode else None
    return probe


PROBES = {
    "root": root,
    "namespaces": namespaces,
    "first-pid-namespace": first_pid_namespace,
    "taskstats": taskstats,
    "ptrace": ptrace,
    "mounts": mounts,
    "pid-namespaces": pid_namespaces,
    "counted-io": counted_io,
    "set-uid": set_uid,
    "cgroup-v1": cgroup_v1,
    "cgroup-v2": cgroup_v2,
    "ipv6": ipv6,
    "many-files": many_files,
    "munge": munge,
    "openssl": openssl,
    "systemd-tools": systemd_tools,
    "groff": groff,
    "poppler": poppler,
    "valgrind": valgrind,
    "clang-format-14": clang_format,
    "lynx": lynx,
    "tidy": tidy,
    "sshd": sshd,
    "chromium": chromium,
    "axe-core": axe_core,
    **{f"slurm-{suite}": slurm_of(suite) for suite in SUITES},
}
_known = None


def missing_reason(name):
    """Why this machine does not have it; None if it has."""
    global _known
    if _known is None:
        lines = os.environ.get("SONDE_MISSING")
        _known = {name: None for name in PROBES} if lines is not None else {}
        _known.update(line.split(": ", 1) for line in (lines or "").splitlines())
    if name not in _known:
        _known[name] = PROBES[name]()
    return _known[name]


def need(name):
    """Skips the calling test, class or module unless the machine has it."""
    reason = missing_reason(name)
    if reason:
        raise unittest.SkipTest(f"needs {name}: {reason}")


def main(names):
    for name in names or PROBES:
        reason = missing_reason(name)
        if reason:
            print(f"{name}: {' '.join(reason.split())}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
