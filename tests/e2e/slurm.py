# SPDX-License-Identifier: GPL-2.0-or-later
"""The sandbox's Slurm: bringing it up, asking it, and what it says as plain Python values.

Facts reads other commands and other fields than sonde does wherever Slurm says a thing in two ways (scontrol show job
for squeue, AllocTRES for GresUsed, sacctmgr and the jobs themselves for scontrol show assoc_mgr), so that a wrong
choice of field would show.
"""
import collections
import contextlib
import os
import pathlib
import re
import secrets
import shlex
import subprocess
import tempfile
import time

from invariants import real_commands
from pool import SUITES, Lease, Wish  # noqa: F401 (SUITES is for those who import it from here)
from sonde import BUILD, wait_until
import capabilities  # from tests/, which sonde has made importable

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


# For Slurm.calm: Slurm schedules when a job is submitted or ends, and backfills twice a minute; shares stay as they are.
CALM = {"SchedulerParameters": "bf_interval=30,bf_continue,sched_interval=10800,batch_sched_delay=1,default_queue_depth=1000",
        "PriorityCalcPeriod": "1440"}


class Slurm:
    """One suite's cluster, leased from the pool for this program alone until end(): seeded or with nothing in it; with the
    machine's cgroups, or cgroup="none". Lines for slurm.conf take the place of those that set the same; what is in the
    directory etc goes beside slurm.conf."""

    def __init__(self, suite, seeded=True, conf="", etc=None, cgroup=""):
        self.suite = suite
        capabilities.need("root")  # whose the files, sockets and processes of a cluster are
        capabilities.need(f"slurm-{suite}" if f"slurm-{suite}" in capabilities.PROBES else "namespaces")
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(conf)
            file.flush()
            flags = [*(["--conf", file.name] if conf else []), *(["--etc", etc] if etc else [])]
            # These a running cluster does not take.
            is_new = re.search("^(ClusterName|FirstJobId)=", conf, re.M)
            self.lease = Lease(Wish(suite, seeded, cgroup), *(flags if is_new else []))
            self.name = self.lease.slot.name
            try:
                if flags and not is_new:
                    self.lease.slot.must("restart", *flags)
                self._read_env()
            except BaseException:
                self.end()
                raise

    def _read_env(self):
        done = self.sandbox("env")
        assert done.returncode == 0, done.stderr
        self.env = dict(shlex.split(line)[0].split("=", 1) for line in done.stdout.splitlines())
        real_commands.add(self.env["SANDBOX_BIN"])
        self.release = tuple(int(part) for part in self.env["SANDBOX_SLURM_VERSION"].split(".")[:2])
        self.conf = pathlib.Path(self.env["SANDBOX_STATE"], "etc/slurm.conf")
        entries = pathlib.Path(self.env["SANDBOX_ROOT"], "etc/passwd").read_text().splitlines()
        self.users = {entry.split(":")[0]: entry.split(":") for entry in entries}

    def sandbox(self, command, *arguments, **options):
        return self.lease.slot.sandbox(command, *arguments, **options)

    def command(self, *command, user="root"):
        """The words that run a command inside. As ./sandbox shell does, but several times quicker: tests do it often."""
        _, _, uid, gid, _, home, _ = self.users[user]
        words = []
        if self.env["SANDBOX_MODE"] == "namespace":
            words += ["nsenter", f"--target={self.env['SANDBOX_PID']}", "--mount", "--pid", "--uts", "--cgroup", "--root", "--wd"]
        if user != "root":
            words += ["/usr/bin/setpriv", f"--reuid={uid}", f"--regid={gid}", "--init-groups"]
        return [*words, "/usr/bin/env", "-i", f"--chdir={home}", f"PATH={PATH}", f"HOME={home}", f"USER={user}", f"LOGNAME={user}",
                "LANG=C.UTF-8", "TERM=dumb", f"SLURM_CONF={self.inside('etc/slurm.conf')}", *command]

    def run(self, *command, user="root", check=True, **options):
        done = subprocess.run(self.command(*command, user=user), capture_output=True, text=True,
                              **{"errors": "surrogateescape", **options})
        assert not check or done.returncode == 0, f"{command}: {done.stderr}"
        return done

    def lines(self, *command):
        return self.run(*command).stdout.splitlines()

    def ask(self, commands):
        """What each of the shell commands prints; all in one visit, which is quick."""
        mark = secrets.token_hex(16)
        script = "export SLURM_TIME_FORMAT=%s SLURM_BITSTR_LEN=0\n"
        script += "".join(f"{command}\nprintf %s {mark}\n" for command in commands)
        return self.run("sh", "-c", script).stdout.split(mark)[:-1]

    def inside(self, path):
        """The name inside of what is at that path below SANDBOX_STATE."""
        is_apart = self.env["SANDBOX_MODE"] == "namespace"
        return f"/sandbox/{path}" if is_apart else f"{self.env['SANDBOX_STATE']}/{path}"

    def write_command(self, directory, name):
        """A script there that runs a command inside, as those in SANDBOX_BIN do, for who has the capabilities."""
        script = pathlib.Path(self.env["SANDBOX_BIN"], "squeue").read_text()
        lines = [line for line in script.splitlines(True) if "sudo" not in line]
        target = pathlib.Path(directory, name)
        target.write_text("".join(lines).replace("/usr/bin/squeue", f"/usr/bin/{name}"))
        target.chmod(0o755)
        return target

    def write_helper(self, directory, release=None):
        """The same for the helper of this release or another, which is copied with its libslurm to where both are seen inside."""
        name = f"sonde-libslurm-{release or f'{self.release[0]}.{self.release[1]:02}'}"
        helper = BUILD / "src" / name
        assert helper.exists(), f"{helper} is not built: ./check builds it with -Dlibslurm_prefix"
        loader = subprocess.run(["ldd", helper], capture_output=True, text=True).stdout
        library = pathlib.Path(re.search(r"=> (/\S*/libslurm\.so\.\d+)", loader)[1])
        place = self.inside("helper")
        for file in (helper, library):
            self.run("sh", "-c", 'mkdir -p "$1" && cat >"$1/$2.new" && chmod 755 "$1/$2.new" && mv "$1/$2.new" "$1/$2"',
                     "sh", place, file.name, input=file.read_bytes().decode(errors="surrogateescape"))
        target = self.write_command(directory, name)
        target.write_text(target.read_text().replace(
            f"/usr/bin/{name}", f"/usr/bin/env LD_LIBRARY_PATH={place} {place}/{name}"))
        return target

    def starter_as(self, user, directory):
        """What starts a command as that user, with what it takes to enter the sandbox by the commands that are put into
        the directory; so that Slurm and sonde both see that user."""
        capabilities = "+sys_admin,+sys_chroot,+sys_ptrace,+dac_override"
        pathlib.Path(directory).chmod(0o755)
        for command in ("squeue", "sinfo", "scontrol", "sdiag", "sshare"):
            self.write_command(directory, command)
        number = self.run("id", "-u", user).stdout.strip()
        return ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups", f"--inh-caps={capabilities}",
                f"--ambient-caps={capabilities}"]

    def calm(self):
        """From now on little changes by itself, so that two readings fit between two changes, however long they take. Without a
        restart: after one, 22.05 counts a GPU of no type twice."""
        text = self.conf.read_text()
        for name, value in CALM.items():
            text = re.sub(rf"^{name}=.*$", f"{name}={value}", text, flags=re.M)
        self.conf.write_text(text)
        self.run("scontrol", "reconfigure")
        wait_until(lambda: CALM["SchedulerParameters"] in self.run("scontrol", "show", "config", check=False).stdout, "it is in force")

    @contextlib.contextmanager
    def private_data(self, words):
        config = pathlib.Path(self.env["SANDBOX_STATE"], "etc/slurm.conf")
        text = config.read_text()

        def set_to(lines, told):
            config.write_text(text + lines)
            self.run("scontrol", "reconfigure")
            setting = re.compile(rf"^PrivateData *= {told}$", re.M)
            wait_until(lambda: setting.search(self.run("scontrol", "show", "config").stdout), "it is in force")
        try:
            set_to(f"PrivateData={words}\n", words)
            yield
        finally:
            set_to("", "none")

    def pid(self, daemon):
        return pathlib.Path(self.env["SANDBOX_STATE"], "run", f"{daemon}.pid").read_text().strip()

    def signal(self, daemon, name):
        pid = self.pid(daemon)
        self.run("kill", f"-{name}", pid)
        if name in ("KILL", "TERM"):
            wait_until(lambda: self.run("kill", "-0", pid, check=False).returncode, f"{daemon} has ended")

    def start(self, daemon, *env):
        self.run("env", *env, "/src/tests/sandbox/cluster", f"start_{daemon}", "/sandbox")

    def end(self):
        self.lease.end()


def pairs(text):
    """Key=value …; of a key that stands twice the first."""
    found = {}
    for key, value in re.findall(r"(?<!\S)([^\s=]+)=(\S*)", text):
        found.setdefault(key, value)
    return found


def number(text):
    """62.50G, 100M, 8 → with Slurm's letters, which are binary."""
    scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}.get(text[-1:], 1)
    value = float(text.rstrip("KMGT")) * scale
    return int(value) if value == int(value) else value


def tres(text):
    """cpu=4,mem=800M,gres/gpu:a100=2 → {"cpu": 4, "mem": bytes, …}"""
    found = {}
    for part in text.split(",") if text not in ("", "(null)") else []:
        name, value = part.split("=")
        is_bare = name == "mem" and value[-1].isdigit()
        found[name] = number(value) << 20 if is_bare else number(value)
    return found


def gres(amounts):
    """GRES by name and type, from what tres() gives; those of no type are of type none."""
    found = collections.defaultdict(dict)
    for kind in {name[len("gres/"):].split(":")[0] for name in amounts if name.startswith("gres/")}:
        whole = f"gres/{kind}"
        found[kind] = {name[len(whole) + 1:]: count for name, count in amounts.items() if name.startswith(whole + ":")}
        rest = amounts.get(whole, 0) - sum(found[kind].values())
        if rest > 0:
            found[kind]["none"] = rest
    return found


def listed_gres(text):
    """tpu:v4:4(S:0),bandwidth:lustre:no_consume:4G → [("tpu", "v4", 4), ("bandwidth", "lustre", 4 << 30)]"""
    found = []
    for part in re.sub(r"\([^)]*\)", "", text).split(","):
        if part:
            name, *kind, count = part.replace(":no_consume", "").split(":")
            found.append((name, kind[0] if kind and kind[0] else "none", number(count)))
    return found


def seconds(text):
    """1-02:03:04, 02:03:04"""
    days, _, clock = text.rpartition("-")
    total = 0
    for part in clock.split(":"):
        total = 60 * total + int(part)
    return total + 86400 * int(days or 0)


def timestamp(text):
    """0 for Unknown"""
    return int(text) if text.isdigit() else 0


def array_tasks(text):
    """How many tasks 1-2,4-50%2 are; 0-15:4 is a range with a step."""
    count = 0
    for part in text.split("%")[0].split(","):
        first, last, step = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part).groups()
        count += len(range(int(first), int(last or first) + 1, int(step or 1)))
    return count


def count_licenses(text):
    """matlab:4,ansys → {"matlab": 4, "ansys": 1}"""
    counts = collections.Counter()
    for part in text.split(",") if text else []:
        name, _, count = part.partition(":")
        counts[name] += int(count or 1)
    return counts


class Job:
    def __init__(self, line):
        # A user writes the name, which comes first, and the comment and the command line, which come last.
        head, tail = line.split(" UserId=", 1)
        field = pairs("UserId=" + tail)
        self.id = int(re.match(r"JobId=(\d+) ", head)[1])
        array = re.match(r"JobId=\d+ ArrayJobId=\d+ ArrayTaskId=(\S+) ", head)
        self.tasks = array_tasks(array[1]) if array else 1
        self.state = field["JobState"]
        self.user = field["UserId"].split("(")[0]
        self.account, self.qos = field["Account"], field["QOS"]
        self.partitions = field["Partition"].split(",")
        # scontrol writes a blank as an underscore, and the nodes after a colon
        self.reason = field["Reason"].replace("_", " ").split(":")[0]
        requested = field.get("ReqTRES") or field["TRES"]
        allocated = field.get("AllocTRES") or field["TRES"]
        self.tres = tres(requested if allocated == "(null)" else allocated)
        self.gres = gres(self.tres)
        self.gres_per_node = listed_gres(re.sub(r"gres[:/]", "", field.get("TresPerNode", "").replace("(null)", "")))
        self.nodes = hostnames(field.get("NodeList", "").replace("(null)", ""))
        self.alloc_node = field["AllocNode:Sid"].rsplit(":", 1)[0]
        self.features = [] if field["Features"] == "(null)" else field["Features"].split("&")
        self.licenses = count_licenses(field["Licenses"].replace("(null)", ""))
        self.submit, self.eligible = timestamp(field["SubmitTime"]), timestamp(field["EligibleTime"])
        self.start = timestamp(field["StartTime"])
        self.priority = int(field["Priority"])
        self.is_pending = self.state == "PENDING"
        # squeue(1): these are pending too
        self.requests = self.state in ("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD",
                                       "EXPEDITING")
        # those that have not ended keep what they were given, also while suspended
        self.holds = self.state in ("RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING", "SIGNALING",
                                    "STOPPED")


def read_jobs(slurm):
    """All jobs, each asked for by its id, so that a hostile name can at most confuse what is read of its own job."""
    def read():
        owners = dict(line.split() for line in slurm.lines("squeue", "-h", "-a", "-r", "-t", "all", "-o", "%A %u"))
        jobs = {}
        for text in slurm.ask([f"scontrol -a -o show job {job_id} || :" for job_id in owners]):
            # arrays and heterogeneous jobs come together
            for line in re.split(r"\n(?=JobId=\d+ (?:ArrayJobId|HetJobId)=)", text):
                if line.strip():
                    job = Job(line)
                    jobs[str(job.id)] = job
        return jobs if {job_id: job.user for job_id, job in jobs.items()} == owners else None
    jobs = wait_until(read, "squeue and scontrol tell of the same jobs and owners")
    return sorted(jobs.values(), key=lambda job: job.id)


class Node:
    def __init__(self, line, words):
        field = pairs(line)
        self.name = field["NodeName"]
        self.word = words[self.name]
        self.base, *self.flags = field["State"].lower().split("+")
        self.cpus, self.cpus_allocated = int(field["CPUTot"]), int(field["CPUAlloc"])
        self.load = None if field["CPULoad"] == "N/A" else float(field["CPULoad"])
        self.memory, self.memory_allocated = int(field["RealMemory"]) << 20, int(field["AllocMem"]) << 20
        self.memory_free = None if field["FreeMem"] == "N/A" else int(field["FreeMem"]) << 20
        self.weight = int(field["Weight"])
        self.partitions = field["Partitions"].split(",")
        self.features, self.version = field["AvailableFeatures"], field["Version"]
        self.gres, self.gres_allocated = gres(tres(field["CfgTRES"])), gres(tres(field["AllocTRES"]))
        # those that AccountingStorageTRES lacks; what is allocated of them, their jobs tell
        self.other_gres = set()
        for kind, of_type, count in listed_gres(field["Gres"].replace("(null)", "")):
            if f"gres/{kind}" not in tres(field["CfgTRES"]):
                self.gres[kind][of_type] = count
                self.other_gres.add(kind)
        reason = re.search(r" Reason=(.*) \[(\S+)@(\d+)\]", line)
        self.reason, self.reason_user, self.reason_time = reason.groups() if reason else (None, None, None)
        unusable = {"down", "unknown", "error", "future", "drain", "fail", "not_responding", "maintenance",
                    "powered_down", "powering_down", "power_down", "reboot_issued", "invalid_reg", "blocked"}
        self.takes_jobs = not unusable & {self.base, *self.flags}


class Partition:
    def __init__(self, line, cpus):
        field = pairs(line)
        self.name = field["PartitionName"]
        self.is_up = field["State"] == "UP"
        self.seconds = None if field["MaxTime"] == "UNLIMITED" else seconds(field["MaxTime"])
        _, self.idle, _, self.cpus = (int(part) for part in cpus[self.name].split("/"))


def hostnames(text):
    """c[1-3,5],g1 → each; the sandbox has no leading zeros."""
    found = []
    for name, ranges in re.findall(r"([^,\[]+)(?:\[([^]]*)\])?", text):
        for part in ranges.split(",") if ranges else []:
            first, _, last = part.partition("-")
            found += [f"{name}{i}" for i in range(int(first), int(last or first) + 1)]
        found += [] if ranges else [name]
    return found


class Reservation:
    def __init__(self, line, text):
        self.name, state, start, end, _, hosts = line.split()
        self.is_active = state == "ACTIVE"
        self.start, self.end = int(start), int(end)
        self.nodes = hostnames(hosts) if hosts != "(null)" else []
        field = {key: "" if value == "(null)" else value for key, value in pairs(text).items()}
        self.cores = tres(field["TRES"]).get("cpu", 0)  # the sandbox's cores have one thread each
        self.users, self.accounts = field["Users"], field["Accounts"]
        self.partition, self.flags = field["PartitionName"], field["Flags"]
        self.licenses = count_licenses(field["Licenses"])


def read_table(text):
    """A table of -P as a list of dictionaries."""
    head, *rows = (line.split("|") for line in text.splitlines())
    return [dict(zip(head, row)) for row in rows]


class Association:
    def __init__(self, row):
        self.account, self.user, self.partition = row["Account"].strip(), row["User"], row["Partition"]
        self.key = (self.account, self.user, self.partition)
        self.row = row
        self.below = [self.account]  # accounts, itself included


def read_associations(text):
    """With the tree that the indentation tells."""
    associations, path = [], []
    for row in read_table(text):
        depth = len(row["Account"]) - len(row["Account"].lstrip())
        association = Association(row)
        associations.append(association)
        if not association.user:
            path[depth:] = [association]
            for above in path[:-1]:
                above.below.append(association.account)
    return associations


class License:
    def __init__(self, name, total, is_remote):
        self.name, self.total, self.is_remote = name, total, is_remote
        self.held = self.reserved = 0


def read_licenses(config, resources, jobs, reservations):
    """What the configuration, or slurmdbd of a licence server, says that there are, and what is taken of them."""
    found = {name: License(name, count, False) for name, count in count_licenses(config["Licenses"]).items()}
    for line in resources.splitlines():
        name, server, count, percent = line.split("|")
        found[f"{name}@{server}"] = License(f"{name}@{server}", int(count) * int(percent) // 100, True)
    for name, one in found.items():
        one.held = sum(job.licenses[name] for job in jobs if job.holds)
        one.reserved = sum(reservation.licenses[name] for reservation in reservations if reservation.is_active)
    return list(found.values())


def add_other_gres(nodes, jobs):
    """What is allocated of GRES that AccountingStorageTRES lacks: what each job requested of each of its nodes."""
    for node in nodes:
        for job in (job for job in jobs if job.holds and node.name in job.nodes):
            for kind, of_type, count in job.gres_per_node:
                if kind in node.other_gres:
                    node.gres_allocated[kind][of_type] = node.gres_allocated[kind].get(of_type, 0) + count


class Facts:
    """What Slurm says at one moment of all but its scheduler."""

    def __init__(self, slurm):
        self.release = slurm.release
        self.jobs = read_jobs(slurm)
        (words, nodes, partitions, cpus, all_cpus, config, resources, reservations, details, associations, qos, shares,
         manager, cluster, version) = slurm.ask([
             "sinfo -h -a -N -o '%N %T'", "scontrol -a -o show node", "scontrol -a -o show partition",
             "sinfo -h -a -o '%R %C'", "sinfo -h -a -o %C", "scontrol show config",
             "sacctmgr -nP show resource withclusters format=name,server,count,allowed", "sinfo -h -T || :",
             "scontrol show reservation", "sacctmgr -P show association tree", "sacctmgr -P show qos",
             "sshare -a -m -P -o Account,User,Partition,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,"
             "FairShare,LevelFS,GrpTRESRaw,TRESRunMins", "scontrol -o show assoc_mgr flags=assoc,qos",
             "sacctmgr -nP show cluster format=cluster", "scontrol version"])
        words = {name: word.rstrip("*~#!%$@^-+") for name, word in (line.split() for line in words.splitlines())}
        self.nodes = [Node(line, words) for line in nodes.splitlines() if line.strip()]
        add_other_gres(self.nodes, self.jobs)
        cpus = dict(line.split() for line in cpus.splitlines())
        self.partitions = [Partition(line, cpus) for line in partitions.splitlines() if line.strip()]
        _, self.cpus_idle, _, self.cpus = (int(part) for part in all_cpus.split("/"))
        config = dict(re.findall(r"^(\w+) *= (.*?) *$", config, re.M))
        details = dict(re.findall(r"^ReservationName=(\S+) (.*?)(?=^ReservationName=|\Z)", details, re.M | re.S))
        self.reservations = [Reservation(line, details[line.split()[0]]) for line in reservations.splitlines()]
        self.licenses = read_licenses(config, resources, self.jobs, self.reservations)
        self.associations = read_associations(associations)
        self.qos = read_table(qos)
        self.shares = {(row["Account"].strip(), row["User"], row["Partition"]): row for row in read_table(shares)}
        self.used_minutes = read_used_minutes(manager)
        self.cluster, self.version = cluster.strip(), version.split()[-1]
        self.time = time.time()


def read_used_minutes(text):
    """What associations and QOS have used of limits on time, where no other command tells:
    (account, user, partition) or (qos,) → {"GrpWall": "1.85", "GrpTRESMins": {"cpu": "1", …}, …}
    And whether a QOS has been used, since limits of its users are told only then."""
    found = {}
    for line in text.splitlines():
        key = re.match(r"ClusterName=\S* Account=(\S*) UserName=(\w*)\S* Partition=(\S*) ", line) \
            or re.match(r"QOS=(\w+)\(", line)
        if key:
            used = dict(re.findall(r" (GrpWall)=\w+\(([\d.]+)\)", line), tells_of_users="{MaxJobsPU=" in line)
            for name, amounts in re.findall(r" (GrpTRES(?:Run)?Mins)=(\S+)", line):
                used[name] = dict(re.findall(r"([^,=]+)=\w+\((\d+)\)", amounts))
            found[key.groups()] = used
    return found


class Diag:
    """What sdiag says: the numbers of each block by their label, and the requests by type and by user."""

    def __init__(self, slurm):
        self.blocks = collections.defaultdict(dict)
        self.types, self.users, self.pending = {}, {}, {}
        block = ""
        for line in slurm.run("sdiag").stdout.splitlines():
            rpc = re.fullmatch(r"\t(\S+) +\( *\d+\) count:(\d+) +ave_time:(\d+) +total_time:(\d+).*", line)
            waiting = re.fullmatch(r"\t(\S+) +\( *\d+\) count:(\d+)", line)
            labelled = re.fullmatch(r"\t?([^\t].*?): *(\d+)(?: microseconds)?", line)
            dated = re.fullmatch(r"\t?(.*?)(?::| {2,}| at) .*\((\d+)\)", line)
            if rpc:
                of = self.users if "by user" in block else self.types
                of[rpc[1]] = {"count": int(rpc[2]), "mean": int(rpc[3]), "total": int(rpc[4])}
            elif waiting:
                self.pending[waiting[1]] = int(waiting[2])
            elif labelled:
                self.blocks[block if line.startswith("\t") else ""][labelled[1]] = int(labelled[2])
            elif dated:
                self.blocks[block if line.startswith("\t") else ""][dated[1]] = int(dated[2])
            elif line.strip("* ") and not line.startswith("\t"):
                block = line.strip(": ")
        self.top = self.blocks[""]
        self.main = self.blocks["Main schedule statistics (microseconds)"]
        self.backfill = self.blocks["Backfilling stats"]
        self.main_exits = self.blocks["Main scheduler exit"]
        self.backfill_exits = self.blocks["Backfill exit"]
