#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`sonde up`: everything on one machine, as real processes."""
import contextlib
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import unittest

import sonde
from fakejobs import mounted_hierarchies, remove_tree
from sonde import DEADLINE, SONDE, Exporter, wait_until
from capabilities import need

NOBODY = pwd.getpwnam("nobody")
AS_NOBODY = ("setpriv", f"--reuid={NOBODY.pw_uid}", f"--regid={NOBODY.pw_gid}", "--clear-groups", "--no-new-privs")


CAPABILITIES = "CapPrm", "CapEff", "CapBnd", "CapAmb"
AGENTS = 1 << 2 | 1 << 12 | 1 << 19  # CAP_DAC_READ_SEARCH, CAP_NET_ADMIN, CAP_SYS_PTRACE


def children(pid):
    """The processes that it has started, and theirs."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            found += [int(path.name), *children(int(path.name))]
    return found


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
    except OSError:
        return ""


def state_of(pid):
    """One letter of proc(5); nothing: it is gone."""
    try:
        return re.search(r"\) (\S)", pathlib.Path(f"/proc/{pid}/stat").read_text())[1]
    except OSError:
        return ""


def status_of(pid):
    """proc_pid_status(5), of a process or a thread."""
    return dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)


def threads_of(pid):
    return [status_of(path.name) for path in pathlib.Path(f"/proc/{pid}/task").iterdir()]


def is_there(pid):
    """One that has ended and is not waited for by its parent is not: the first process of a container need not wait for any."""
    return state_of(pid) not in ("", "Z", "X")


@contextlib.contextmanager
def stopped(process):
    """It does nothing meanwhile: what is done to several of its files is done at once."""
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: state_of(process.pid) == "T", "it stands still")
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


class Up(sonde.Up):
    def agents(self):
        return [pid for pid in children(self.process.pid) if command_of(pid).endswith("sonde-agent")]

    def keeper(self):
        """The process that starts the agent, again and again."""
        [pid] = [pid for pid in children(self.process.pid) if pathlib.Path(f"/proc/{pid}/comm").read_text() == "sonde-up-agent\n"]
        return pid

    def series(self):
        return json.loads(self.get("/api/v1/health").body)["sonde"]["facts"]["series"]

    def wait_answers(self):
        wait_until(lambda: self.series()["agent_answers"], "the agent's answer")

    def wait_ticks(self, n=2):
        """Of two ticks, the second began after this was called."""
        ticks = self.series()["ticks"]
        wait_until(lambda: self.series()["ticks"] >= ticks + n, f"{n} ticks")


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.directory.chmod(0o755)

    def up(self, *flags, **arguments):
        return self.enterContext(Up(*flags, **arguments))

    def real(self, *flags, **arguments):
        """Where there is no Slurm."""
        return self.up(f"--state.directory={self.directory}/state", "--slurm.bin-path=/nonexistent", "--series.interval=1s",
                       *flags, **arguments)


class Demo(Case):
    def test_it_says_everywhere_that_it_is_simulated(self):
        up = self.up("--demo")
        for path in "/", "/jobs", "/nodes":
            answer = up.get(path)
            self.assertEqual(answer.status, 200, path)
            self.assertIn("simulated", answer.text.lower(), path)
        metrics = up.get("/metrics")
        self.assertEqual(metrics.status, 200)
        self.assertIn('simulated="true"', metrics.text)

    def test_a_day_of_the_past_is_there_and_nothing_is_left_behind(self):
        up = self.up("--demo", env={"TMPDIR": str(self.directory)})
        if os.geteuid() == 0:
            self.directory.chmod(0o777)  # it is nobody who removes it
        [state] = wait_until(lambda: list(self.directory.glob("sonde-demo-*")), "a directory of its own")

        def ended():
            usage = json.loads(up.get("/api/v1/usage").body)
            return usage["rows"] and usage["rows"][0]["ended"] > 4000 and usage
        usage = wait_until(ended, "the jobs of a day")
        self.assertTrue(usage["simulated"])
        self.assertGreater(usage["rows"][0]["cpu_efficiency"], 0.3)
        trend = json.loads(up.get("/api/v1/trends/cpus?hours=24").body)
        self.assertGreater(trend["points"][-1][0] - trend["points"][0][0], 20 * 3600)
        [job] = json.loads(up.get("/api/v1/jobs?state=COMPLETED&limit=1").body)["jobs"]
        self.assertEqual(up.get(f"/job/{job['job_id']}").status, 200)
        self.assertEqual(children(up.process.pid), [])  # no agent: what it sees is real
        up.process.send_signal(signal.SIGTERM)
        self.assertEqual(up.process.wait(DEADLINE), 0)
        self.assertFalse(state.exists())

    def test_a_place_that_somebody_prepared_is_refused_and_left_alone(self):
        precious = self.directory / "precious"
        precious.mkdir()
        (precious / "sonde.db").write_text("all jobs ever")
        # The name ends with the number of the process: that of the shell, which becomes it.
        script = f'ln -s {precious} "$TMPDIR/sonde-demo-$$"; exec "$0" up --demo --web.listen-address=127.0.0.1:0'
        done = subprocess.run(["sh", "-c", script, SONDE], capture_output=True, text=True, timeout=DEADLINE,
                              env=dict(os.environ, TMPDIR=str(self.directory)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("is in the way", done.stderr)
        self.assertEqual((precious / "sonde.db").read_text(), "all jobs ever")

    def test_a_real_store_is_refused(self):
        path = self.directory / "sonde.db"
        flags = f"--store=sqlite:{path}", "--web.listen-address=127.0.0.1:0", "--user=root"
        with Exporter(f"--store=sqlite:{path}", "--source=cli", "--slurm.bin-path=/nonexistent") as exporter:
            wait_until(lambda: exporter.metrics().value("sonde_store_up") == 1, "a store")
        result = subprocess.run([SONDE, "up", "--demo", *flags], capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("simulated", result.stderr)


class Real(Case):
    def test_without_slurm_it_says_so_and_shows_nothing_else(self):
        up = self.real("--no-agent")
        page = up.get("/")
        self.assertEqual(page.status, 200)
        self.assertIn("no Slurm interface works", page.text)
        self.assertNotIn("simulated", up.get("/metrics").text)

    def stop_keeper(self, up):
        """As long as it stands still, no agent is replaced."""
        keeper = up.keeper()
        os.kill(keeper, signal.SIGSTOP)
        self.addCleanup(os.kill, keeper, signal.SIGCONT)
        return keeper

    def test_an_agent_that_is_killed_comes_back(self):
        up = self.real()
        [first] = wait_until(up.agents, "an agent")
        up.wait_answers()
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: [pid for pid in up.agents() if pid != first], "another agent")
        self.assertIn("sonde agent has ended; it is started again", up.log())
        up.wait_ticks()
        up.wait_answers()

    def test_an_agent_that_hangs_is_told_and_replaced(self):
        up = self.real()
        [first] = wait_until(up.agents, "an agent")
        notice = "The agent of this machine does not answer: what jobs"

        def told(name):
            return float(up.get("/metrics").samples()[name])
        wait_until(lambda: notice not in up.get("/").text and told("sonde_agent_up") == 1, "its answer")
        keeper = self.stop_keeper(up)
        os.kill(first, signal.SIGSTOP)
        up.wait_ticks()
        self.assertFalse(up.series()["agent_answers"])
        for path in "/", "/nodes":
            self.assertIn(notice, up.get(path).text, path)
        wait_until(lambda: told("sonde_agent_up") == 0, "the metric")
        up.wait_ticks(5)
        os.kill(keeper, signal.SIGCONT)
        wait_until(lambda: [pid for pid in up.agents() if pid != first], "another agent")
        self.assertFalse(is_there(first))
        self.assertIn("sonde agent does not answer, or its sampler hangs; it is killed", up.log())
        wait_until(lambda: told('sonde_agent_restarts_total{reason="hung"}') == 1, "the metric")
        self.assertEqual(told('sonde_agent_restarts_total{reason="ended"}'), 0)
        wait_until(lambda: notice not in up.get("/").text, "its answer")

    def freeze_sampler(self, pid):
        """Stops one thread, as a file system that does not answer would; returns what lets it go on."""
        freezer = mounted_hierarchies()["freezer"] / f"sonde-up-{os.getpid()}"
        freezer.mkdir()
        [thread] = [path.name for path in pathlib.Path(f"/proc/{pid}/task").iterdir() if (path / "comm").read_text() == "sampler\n"]
        (freezer / "tasks").write_text(thread)
        (freezer / "freezer.state").write_text("FROZEN")
        self.addCleanup(remove_tree, freezer)

        def thaw():
            (freezer / "freezer.state").write_text("THAWED")
        self.addCleanup(thaw)
        return thaw

    def test_an_agent_whose_sampler_hangs_is_told_and_replaced(self):
        need("root")
        need("cgroup-v1")
        up = self.real()
        [first] = wait_until(up.agents, "an agent")
        up.wait_answers()
        thaw = self.freeze_sampler(first)
        wait_until(lambda: not up.series()["agent_answers"], "no fresh sample")
        self.assertIn("the agent has no fresh sample", up.log())
        self.assertTrue(is_there(first))
        wait_until(lambda: "sonde agent does not answer, or its sampler hangs; it is killed" in up.log(), "its end")
        thaw()
        wait_until(lambda: [pid for pid in up.agents() if pid != first], "another agent")
        up.wait_answers()

    def test_an_agent_whose_socket_was_removed_gets_another(self):
        up = self.real()
        up.wait_answers()
        [first] = up.agents()
        keeper = self.stop_keeper(up)
        (self.directory / "state/agent.sock").unlink()
        up.wait_ticks()
        self.assertFalse(up.series()["agent_answers"])
        os.kill(keeper, signal.SIGCONT)
        wait_until(lambda: [pid for pid in up.agents() if pid != first], "another agent")
        up.wait_answers()
        self.assertTrue((self.directory / "state/agent.sock").exists())

    def test_series_that_could_not_be_written_go_on_when_they_can(self):
        need("root")
        series = self.directory / "state/series.db"
        with Up(f"--state.directory={self.directory}/state", "--slurm.bin-path=/nonexistent", "--no-agent", "--series.interval=1s") as up:
            up.wait_ticks(1)
        owner = series.stat()
        for path in series.parent.glob("series.db*"):
            os.chown(path, 0, 0)
            path.chmod(0o644)
        up = self.real("--no-agent")
        wait_until(lambda: up.series()["failures"], "a failure")
        self.assertFalse(up.series()["is_written"])
        self.assertIn("Numbers over time are not written", up.get("/").text)
        self.assertEqual(up.get("/metrics").samples()["sonde_series_up"], "0")
        self.assertEqual(up.get("/metrics").samples()["sonde_series_retention_paused"], "0")
        for path in series.parent.glob("series.db*"):
            os.chown(path, owner.st_uid, owner.st_gid)
        wait_until(lambda: up.series()["is_written"], "what is written again")
        self.assertNotIn("Numbers over time are not written", up.get("/").text)

    def test_a_signal_ends_all_of_it(self):
        up = self.real()
        wait_until(up.agents, "an agent")
        everybody = children(up.process.pid)
        up.process.send_signal(signal.SIGTERM)
        self.assertEqual(up.process.wait(DEADLINE), 0)
        wait_until(lambda: not any(is_there(pid) for pid in everybody), "the end of all")
        self.assertFalse((self.directory / "state/agent.sock").exists())

    def test_an_agent_that_is_stopped_does_not_keep_it(self):
        up = self.real()
        [agent] = wait_until(up.agents, "an agent")
        os.kill(agent, signal.SIGSTOP)
        up.process.send_signal(signal.SIGTERM)
        self.assertEqual(up.process.wait(DEADLINE), 0)
        wait_until(lambda: not is_there(agent), "its end")

    def test_the_agent_does_not_outlive_it_even_when_it_is_killed(self):
        up = self.real()
        wait_until(up.agents, "an agent")
        everybody = children(up.process.pid)
        up.process.kill()
        up.process.wait(DEADLINE)
        wait_until(lambda: not any(is_there(pid) for pid in everybody), "the end of all")

    def test_what_is_kept_outlives_it(self):
        with Up(f"--state.directory={self.directory}/state", "--source=sim:nodes=8"):
            path = self.directory / "state/sonde.db"
            wait_until(lambda: path.exists() and sqlite3.connect(f"file:{path}?mode=ro", uri=True)
                       .execute("SELECT count(*) FROM job").fetchone()[0], "jobs in the store")
        with Up(f"--state.directory={self.directory}/state", "--source=sim:nodes=8") as again:
            self.assertEqual(again.get("/jobs").status, 200)

    def test_root_is_given_up_and_the_agent_keeps_three_capabilities(self):
        need("root")
        up = self.real()
        up.wait_answers()
        [agent] = up.agents()
        user = pwd.getpwnam(self.user())
        ours, its = status_of(up.process.pid), status_of(agent)
        for status in ours, its:
            self.assertEqual(set(status["Uid"].split()), {str(user.pw_uid)})
            self.assertEqual(set(status["Gid"].split()), {str(user.pw_gid)})
            self.assertEqual(status["NoNewPrivs"], "1")
        self.assertEqual({int(ours[name], 16) for name in CAPABILITIES}, {0})
        self.assertEqual([int(its[name], 16) for name in CAPABILITIES], [AGENTS, AGENTS, AGENTS, 0])
        self.assertEqual((self.directory / "state").stat().st_uid, user.pw_uid)

    def test_threads_of_the_agent_that_answer_or_resolve_have_no_capabilities(self):
        need("root")
        up = self.real()
        up.wait_answers()
        [agent] = up.agents()
        has = {(thread["Name"], int(thread[kind], 16)) for thread in threads_of(agent) for kind in ("CapPrm", "CapEff")}
        self.assertEqual({item for item in has if item[0] in ("http", "http-work", "resolver")}, {("http", 0), ("http-work", 0), ("resolver", 0)})
        self.assertIn(("sampler", AGENTS), has)

    def test_only_threads_that_answer_are_confined(self):
        up = self.real()
        up.wait_answers()
        [agent] = up.agents()
        for pid in up.process.pid, agent:
            before = status_of(pid)["Seccomp_filters"]
            self.assertEqual({thread["Name"] for thread in threads_of(pid) if thread["Seccomp_filters"] != before}, {"http", "http-work"})

    def test_the_agent_does_not_outlive_its_keeper(self):
        up = self.real()
        up.wait_answers()
        [agent] = up.agents()
        os.kill(up.keeper(), signal.SIGKILL)
        wait_until(lambda: not is_there(agent), "the end of the agent")

    def test_a_directory_that_is_somebody_elses_is_not_given_away(self):
        need("root")
        (self.directory / "state").mkdir(mode=0o755)
        done = self.refused(f"--state.directory={self.directory}/state", "--slurm.bin-path=/nonexistent")
        self.assertIn(f"does not belong to user {self.user()}", done.stderr)
        self.assertEqual((self.directory / "state").stat().st_uid, 0)

    def refused(self, *flags, **environment):
        done = subprocess.run([SONDE, "up", "--web.listen-address=127.0.0.1:0", *Up.complete(flags)], capture_output=True, text=True,
                              timeout=DEADLINE, env=dict(os.environ, **environment))
        self.assertEqual(done.returncode, 1, done.stderr)
        return done

    def test_a_second_one_does_not_take_the_firsts_agent(self):
        self.real()
        wait_until(lambda: (self.directory / "state/agent.sock").exists(), "a socket")
        done = self.refused(f"--state.directory={self.directory}/state", "--slurm.bin-path=/nonexistent")
        self.assertIn("another sonde up is there", done.stderr)
        self.assertTrue((self.directory / "state/agent.sock").exists())

    def test_series_that_were_moved_away_begin_anew(self):
        up = self.real()
        series = self.directory / "state/series.db"
        up.wait_ticks(1)
        with stopped(up.process):
            for path in list(series.parent.glob("series.db*")):
                path.rename(self.directory / path.name)
            self.assertFalse(series.exists())
        wait_until(series.exists, "series again")

    def test_a_reload_finds_the_same_place_without_root(self):
        home = {"HOME": str(self.directory), "STATE_DIRECTORY": f"{self.directory}/state"}
        up = self.up("--slurm.bin-path=/nonexistent", "--no-agent", env=home)
        up.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "reloaded" in up.log(), "a reload")
        self.assertIn("configuration reloaded", up.log())

    def test_another_name_for_this_host_gets_no_metrics(self):
        up = self.real("--no-agent")
        self.assertEqual(up.get("/metrics").status, 200)
        self.assertEqual(up.get("/metrics", headers={"Host": "evil.example"}).status, 403)

    @staticmethod
    def user():
        try:
            return pwd.getpwnam("sonde").pw_name
        except KeyError:
            return "nobody"

    def test_a_plain_user_is_told_what_is_not_seen(self):
        need("root")
        self.directory.chmod(0o777)
        for name in ("sonde", "sonde-up", "sonde-agent"):  # they may be where only root can look, in its home say
            shutil.copy(SONDE.with_name(name), self.directory)
        up = self.real(starter=(*AS_NOBODY, "sh", "-c", 'shift; exec "$0" "$@"', self.directory / "sonde"))
        wait_until(up.agents, "an agent")
        page = up.get("/").text
        self.assertIn("was started by user", page)
        self.assertIn("not started by root", up.log())


class Configuration(Case):
    def print(self, *flags, env=None):
        result = subprocess.run([SONDE, "up", "--config.print", *flags], capture_output=True, text=True, timeout=DEADLINE,
                                env=dict(os.environ, **(env or {})))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_every_setting_is_shown_with_where_it_comes_from(self):
        path = self.directory / "sonde.yml"
        path.write_text("slurm:\n  poll-limit: 20s\nprometheus.url: http://me:secret@prometheus:9090\n")
        text = self.print(f"--config.file={path}", "--no-agent", env={"LOGLEVEL": "warn", "SONDE_STORE": ""})
        for line in (f"slurm.poll-limit: 20s  # {path}:2", "agent: false  # flag", 'log.level: "warn"  # environment, LOGLEVEL',
                     'web.listen-address: ["127.0.0.1:8080"]  # default', f'prometheus.url: "http://me:***@prometheus:9090"  # {path}:3'):
            self.assertIn(line + "\n", text)
        self.assertNotIn("secret", text)
        self.assertEqual(list(self.directory.iterdir()), [path])  # nothing was started

    def test_what_is_shown_can_be_used_as_the_file(self):
        path = self.directory / "sonde.yml"
        path.write_text(self.print("--demo", "--web.staff=alice", "--web.staff=bob"))
        again = self.print(f"--config.file={path}")
        self.assertEqual(re.sub("  # .*", "", path.read_text()), re.sub("  # .*", "", again))

    def test_a_mistake_has_no_effects(self):
        state = self.directory / "state"
        done = subprocess.run([SONDE, "up", "--source=slrum", f"--state.directory={state}", "--web.listen-address=127.0.0.1:0"],
                              capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(done.returncode, 2)
        self.assertIn('there is no source "slrum"', done.stderr)
        self.assertNotIn("agent", done.stderr)
        self.assertFalse(state.exists())

    def test_it_does_not_show_everything_to_everybody(self):
        result = subprocess.run([SONDE, "up", *Up.complete(("--demo", "--web.listen-address=:0"))], capture_output=True, text=True,
                                timeout=DEADLINE)
        self.assertEqual(result.returncode, 2)
        self.assertIn("--web.allow-anonymous", result.stderr)
        up = self.up("--demo", "--web.allow-anonymous", listen=":0")
        self.assertEqual(up.get("/").status, 200)

    def test_a_reload_takes_effect_and_a_mistake_changes_nothing(self):
        path = self.directory / "sonde.yml"
        path.write_text("log.level: info\n")
        up = self.up("--demo", f"--config.file={path}")
        path.chmod(0o644)
        path.write_text("log.level: [\n")
        self.assertEqual(up.get("/-/reload", method="POST").status, 500)
        path.write_text("slurm.poll-limit: 1s\nslurm.timeout: 5s\n")
        self.assertEqual(up.get("/-/reload", method="POST").status, 200)
        path.write_text("web.staff: [alice]\n")
        answer = up.get("/-/reload", method="POST")
        self.assertEqual(answer.status, 500)
        self.assertIn("restart sonde", answer.text)
        self.assertEqual(up.get("/").status, 200)


if __name__ == "__main__":
    import tap
    tap.main()
