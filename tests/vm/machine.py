# SPDX-License-Identifier: GPL-2.0-or-later
"""A small machine in qemu with a real Slurm on cgroup v2 and nothing of v1, or the reverse: boots it and runs commands
in it."""
import fcntl
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import socket
import struct
import subprocess
import tempfile
import time

import pack
from sonde import BUILD, ROOT, Answer

HERE = pathlib.Path(__file__).parent
CACHE = pathlib.Path(os.environ.get("SONDE_CACHE")
                     or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "sonde")
MEMORY = 3000  # MiB: the root, a gigabyte in page cache, the jobs
DISK = 4000  # MiB, of which the host stores what is written
HANG = 1800  # seconds; bounds a machine that hangs
CLOCK = "/run/clock"  # of the agent: machine.advance_clock()
ASK = "curl -fsS -m 20 http://127.0.0.1:9798/metrics"

# Of the sandbox's root, what neither Slurm nor a job needs: the kernel copies all the rest before it starts.
LEFT_OUT = [
    "dev/*", "proc/*", "sys/*", "run/*", "tmp/*", "sandbox/*", "src/*", "boot/*", "var/cache/*", "var/log/*",
    "var/lib/apt/*", "var/lib/dpkg/*", "var/lib/mysql/*", "var/lib/prometheus/*", "usr/share/*", "usr/include/*",
    "usr/lib/x86_64-linux-gnu/perl", "usr/lib/x86_64-linux-gnu/gconv", "usr/lib/*/libperl*", "usr/lib/*/systemd",
    "usr/lib/apt", "usr/lib/mysql", "usr/lib/libgalera*", "usr/lib/udev", "usr/lib/git-core",
    "usr/bin/aria*", "usr/bin/inno*", "usr/bin/maria*", "usr/bin/my*", "usr/bin/perror", "usr/bin/prom*",
    "usr/bin/replace", "usr/bin/resolve*", "usr/sbin/mariadbd", "usr/sbin/slurmdbd*", "usr/sbin/slurmrestd*",
]


class CannotRun(Exception):
    """This computer is not able to; the reason is one sentence."""


def why_not():
    """Why no machine can run here, or None."""
    if os.uname().machine != "x86_64":
        return f"the machine is an x86_64, this computer is an {os.uname().machine}"
    for program, package in ("qemu-system-x86_64", "qemu-system-x86"), ("mke2fs", "e2fsprogs"):
        if not find(program):
            return f"{program} is not here (Debian's {package})"
    available = int(re.search(r"MemAvailable: *(\d+) kB", pathlib.Path("/proc/meminfo").read_text())[1]) // 1024
    if available < MEMORY + 500:
        return f"the machine needs {MEMORY + 500} MiB of memory, {available} MiB are free"
    return None


def find(program):
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def last_line(command):
    """Of what a script prints: where it has put things."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise CannotRun(f"{command[0].name} failed: {' '.join(done.stderr.split())}")
    return pathlib.Path(done.stdout.splitlines()[-1])


def packed_root(suite):
    """The root as an archive, made anew when the sandbox's is, or what is left out."""
    root = last_line([ROOT / "sandbox", "root", "--suite", suite])
    recipe = hashlib.sha256(((root / ".sonde-recipe").read_text() + repr(LEFT_OUT)).encode()).hexdigest()[:16]
    CACHE.joinpath("vm").mkdir(parents=True, exist_ok=True)
    path = CACHE / f"vm/{suite}-{recipe}.cpio"
    with open(CACHE / "vm/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            for old in CACHE.glob(f"vm/{suite}-*"):
                old.unlink()
            new = path.with_suffix(".new")
            with pack.Archive(new) as archive:
                archive.tree(root, LEFT_OUT)
            new.rename(path)
    return path


def modules_in_order(directory, name):
    """A module after those that it needs, by its own word."""
    data = (directory / f"{name}.ko").read_bytes()
    needed = re.search(rb"\0depends=([^\0]*)\0", data)[1].decode()
    order = []
    for other in filter(None, needed.split(",")):
        order += modules_in_order(directory, other)
    return order + [name]


def add_programs(archive):
    """sonde with the libraries of this computer, its libc included: the root's may be older. The path of the loader
    stands in the program, with room."""
    loader, ours = b"/lib64/ld-linux-x86-64.so.2", b"/machine/lib/ld.so"
    for name in "sonde", "sonde-agent":
        program = BUILD / "src" / name
        data = program.read_bytes()
        assert data.count(loader + b"\0") == 1, f"{name} has another loader"
        archive.regular(f"machine/bin/{name}", data.replace(loader, ours.ljust(len(loader), b"\0")), 0o755)
        listed = subprocess.run(["ldd", program], check=True, stdout=subprocess.PIPE, text=True).stdout
        for library in re.findall(r"(/\S+) \(0x", listed):
            archive.regular(f"machine/lib/{pathlib.Path(library).name}", pathlib.Path(library).read_bytes(), 0o755)
    archive.regular(ours.decode().lstrip("/"), pathlib.Path(loader.decode()).read_bytes(), 0o755)
    archive.regular("machine/bin/behave", (BUILD / "tests/agent/behave").read_bytes(), 0o755)


def add_own(archive, kernel):
    """What differs from run to run, unpacked over the root."""
    for name in "dev", "proc", "sys", "run", "tmp":
        archive.directory(name)
    archive.character_device("dev/console", 5, 1)
    archive.regular("init", (HERE / "init").read_bytes(), 0o755)
    archive.regular("machine/snapshot", (HERE / "snapshot").read_bytes(), 0o755)
    for name in "slurm.conf", "cgroup.conf", "gres.conf":
        archive.regular(f"machine/{name}", (HERE / name).read_bytes())
    modules = list(dict.fromkeys(modules_in_order(kernel / "modules", "virtio_pci")
                                 + modules_in_order(kernel / "modules", "virtio_blk")))
    for name in modules:
        archive.regular(f"machine/{name}.ko", (kernel / f"modules/{name}.ko").read_bytes())
    archive.regular("machine/modules", "".join(f"/machine/{name}.ko\n" for name in modules).encode())
    add_programs(archive)


class Machine:
    """Up from its making until close()."""

    def __init__(self, suite="bookworm", cgroups="v2"):
        self.directory = tempfile.TemporaryDirectory(prefix="sonde-vm-", dir=os.environ.get("TMPDIR") or "/var/tmp")
        self.process = self.channel = self.console = None
        try:
            self._start(suite, cgroups)
            self._connect()
        except BaseException:
            self.close()
            raise

    def _start(self, suite, cgroups):
        here = pathlib.Path(self.directory.name)
        root, kernel = packed_root(suite), last_line([HERE / "kernel"])
        shutil.copyfile(root, here / "initrd")
        with pack.Archive(here / "own") as archive:
            add_own(archive, kernel)
        with open(here / "initrd", "ab") as initrd, open(here / "own", "rb") as own:
            shutil.copyfileobj(own, initrd)
        with open(here / "disk", "wb") as disk:
            disk.truncate(DISK << 20)
        subprocess.run([find("mke2fs"), "-q", "-t", "ext4", "-E", "lazy_itable_init=1,lazy_journal_init=1",
                        here / "disk"], check=True, stdout=subprocess.DEVNULL)
        parameters = "console=ttyS0 rdinit=/init quiet panic=-1 psi=1 cgroups=" + cgroups
        if cgroups == "v2":
            parameters += " cgroup_no_v1=all"
        self.end = time.monotonic() + HANG
        self.console = open(here / "console", "w+", errors="replace")
        # Not KVM, which hangs in a virtual machine that offers it without being able to. It ends with this process,
        # however that ends.
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", find("qemu-system-x86_64"),
             "-accel", "tcg,thread=multi", "-cpu", "max", "-m", str(MEMORY), "-smp", "2",
             "-nodefaults", "-display", "none", "-no-reboot",
             "-kernel", kernel / "vmlinuz", "-initrd", here / "initrd",
             "-append", parameters,
             "-drive", f"file={here}/disk,if=virtio,format=raw,cache=unsafe",
             "-serial", f"file:{here}/console", "-serial", f"unix:{here}/channel,server=on,wait=off"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def _connect(self):
        self.channel = socket.socket(socket.AF_UNIX)
        while self.channel.connect_ex(f"{self.directory.name}/channel"):
            self._check()
            time.sleep(0.05)
        self._read_until(b"ready\n")
        self.directory.cleanup()  # all is open by now: nothing can stay behind

    def _check(self):
        if self.process.poll() is not None:
            self._give_up(f"it has ended: {self.process.stdout.read().decode(errors='replace')}")
        if time.monotonic() > self.end:
            self._give_up(f"it has not done its work in {HANG} s")

    def _give_up(self, why):
        self.console.seek(0)
        raise AssertionError(f"the machine: {why}\n{self.console.read()[-3000:]}")

    def _read_until(self, ending):
        data = b""
        self.channel.settimeout(1)
        while not re.search(ending, data):
            try:
                piece = self.channel.recv(65536)
            except TimeoutError:
                piece = None
            if not piece:
                self._check()
            data += piece or b""
        return data

    def try_run(self, command):
        """Exit status and output of one line of shell."""
        assert "\n" not in command, command
        self.channel.sendall(command.encode() + b"\n")
        data = self._read_until(rb"\n\x01\d+\n$")
        output, _, status = data.rpartition(b"\n\x01")
        return int(status), output.decode(errors="replace")

    def run(self, command):
        status, output = self.try_run(command)
        if status:
            raise AssertionError(f"in the machine: {command}: exit status {status}\n{output}")
        return output

    def wait_for(self, condition, what):
        """Polls until it gives something true, and returns that."""
        end = time.monotonic() + HANG / 3
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > end:
                self._give_up(f"still waiting: {what}\n"
                              + self.try_run("squeue -a; sinfo -N -l; tail -n 30 /run/slurmd.log /run/agent.log")[1])
            time.sleep(0.3)

    def wait_for_slurm(self):
        self.wait_for(lambda: self.try_run("sinfo -h -o %T")[1].strip() == "idle", "an idle node")

    def start_agent(self, *flags):
        """Without GPUs and Pushgateway; from then on metrics() can be read. Its clock can be moved forward."""
        flags = shlex.join(("--web.listen-address=127.0.0.1:9798", *flags))
        self.ahead_seconds = 0
        self.advance_clock(0)
        self.run(f"setsid env LD_LIBRARY_PATH=/machine/lib SONDE_CLOCK_AHEAD={CLOCK} /machine/bin/sonde agent {flags} "
                 ">/run/agent.log 2>&1 &")
        self.wait_for(lambda: "\nsonde_agent_up 1\n" in self.try_run(ASK)[1], "an agent that is up")

    def advance_clock(self, seconds):
        """The file of base/clock.h, overwritten in place: it is mapped."""
        self.ahead_seconds += seconds
        number = "".join(f"\\{byte:03o}" for byte in struct.pack("<q", self.ahead_seconds * 10**9))
        self.run(f"printf '{number}' | dd of={CLOCK} bs=8 conv=notrunc status=none")

    def metrics(self):
        return Answer(200, {}, self.run(ASK).encode())

    def submit(self, script, user="alice", account="physics", **options):
        """The id of a batch job."""
        flags = " ".join(f"--{name.replace('_', '-')}={value}" for name, value in options.items())
        return self.run(f"cd /tmp && setpriv --reuid={user} --regid={user} --init-groups sbatch --parsable "
                        f"--account={account} --output=/tmp/%j.out {flags} --wrap={shlex.quote(script)}").strip()

    def output_of(self, job, pattern):
        """Waits until a job has said something, and gives the match."""
        return self.wait_for(lambda: re.search(pattern, self.try_run(f"cat /tmp/{job}.out")[1]),
                             f"job {job} saying {pattern}")

    def wait_for_end(self, job):
        """And gives the state in which it has ended."""
        def ended():
            state = re.search(r"JobState=(\w+)", self.run(f"scontrol show job {job}"))[1]
            return state not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING") and state
        return self.wait_for(ended, f"the end of job {job}")

    def close(self):
        if self.channel:
            self.channel.close()
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.console.close()
        self.directory.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
