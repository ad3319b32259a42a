#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""sonde admin plugin-check on real shared libraries, with scripts in the place of Slurm's commands."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from admin import Page, run_admin
from sonde import BUILD, DEADLINE, SONDE, FakeCommands, wait_until
from capabilities import need

STANDINS = pathlib.Path(BUILD, "tests/plugin_file")
NAME = "acct_gather_profile_prometheus.so"
TYPE = "acct_gather_profile/prometheus"


def version(number="22.05.8", package="slurm-wlm"):
    return f"case \"$1\" in --version|-V) echo '{package} {number}'; exit ;; esac\n"


def config(plugin_dir, profile_type="acct_gather_profile/none", number="22.05.8"):
    return (version(number) + f"answer 'Configuration data as of now\\nAcctGatherProfileType   = {profile_type}\\n"
            f"PluginDir               = {plugin_dir}\\nSLURM_VERSION           = {number}\\n'")


@unittest.skipIf(shutil.which("scontrol") or shutil.which("slurmd"), "there is a Slurm here, and it would be asked")
class PluginCheck(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.root.chmod(0o755)
        for name in ("built", "plugins", "conf"):
            (self.root / name).mkdir(mode=0o755)
        self.plugins, self.conf = self.root / "plugins", self.root / "conf"

    def built(self, standin="right", name=NAME):
        path = self.root / "built" / name
        shutil.copyfile(STANDINS / f"plugin_{standin}.so", path)
        return path

    def install(self, standin="right", mode=0o644):
        path = self.plugins / NAME
        shutil.copyfile(STANDINS / f"plugin_{standin}.so", path)
        path.chmod(mode)
        return path

    def check(self, path, *flags, slurm="22.05.8", commands=None):
        given = [f"--plugin-dir={self.plugins}"] if self.plugins else []
        given += [f"--slurm-version={slurm}"] if slurm else []
        done = run_admin("plugin-check", f"--conf-dir={self.conf}", *given, *flags, str(path),
                         path=commands.path if commands else None)
        page = Page(done)
        self.assertEqual(page.errors, "")
        self.assertRegex(page.text, r"\A[\n -~]*\Z")
        self.assertEqual(page.status, 1 if page.counts()["FAIL"] else 0, page.text)
        return page

    def commands(self, *missing, **scripts):
        commands = self.enterContext(FakeCommands(**scripts))
        for name in ("squeue", "sdiag", "sshare", *missing):
            commands.remove(name)
        return commands

    def test_a_plugin_that_fits_will_load(self):
        need("root")  # others' plugins are warned of
        path = self.built()
        page = self.check(path)
        self.assertEqual(page.one("plugin")[1], f"{TYPE} (a stand-in for tests)")
        self.assertEqual(page.one("built for")[1], "Slurm 22.05.8")
        self.assertEqual(page.one("functions")[1], "all 13; init and fini too")
        self.assertEqual(page.one("Slurm")[1], "22.05.8 (--slurm-version)")
        self.assertEqual(page.one("installed")[:2], ("note", "nothing of that name yet"))
        self.assertIn("Slurm here will load it.\n", page.text)

    def test_the_commands_that_it_gives_install_it_by_rename(self):
        path, old = self.built(name="the new one;touch x.so"), self.install("original")
        before = old.open("rb")
        self.addCleanup(before.close)
        page = self.check(path)
        script = page.text.split("never over a file that is loaded:\n")[1].split("\n\n")[0]
        subprocess.run(["sh", "-ec", script], check=True, cwd=self.root)
        self.assertEqual(old.read_bytes(), path.read_bytes())
        self.assertEqual(before.read(), (STANDINS / "plugin_original.so").read_bytes(), "what is loaded stays")
        self.assertEqual(os.listdir(self.plugins), [NAME])
        self.assertEqual(os.listdir(self.root / "built"), [path.name])

    def test_the_orders_of_roll_out_and_roll_back_are_given(self):
        text = self.check(self.built()).text
        out, back = text.split("Roll-out\n")[1].split("Roll-back\n")
        self.assertLess(out.index("the new .so"), out.index("restart"))
        self.assertLess(out.index("restart"), out.index("new keys"))
        self.assertLess(out.index("new keys"), out.index("reconfigure"))
        self.assertLess(back.index("keys"), back.index("the old .so"))
        self.assertNotIn("Roll-out", self.check(self.built("jobcomp", "jobcomp_other.so")).text)

    def test_another_micro_version_is_refused_with_what_would_happen(self):
        page = self.check(self.built(), slurm="22.05.11")
        mark, text, advice = page.one("Slurm")
        self.assertEqual(mark, "FAIL")
        self.assertIn("22.05.11 (--slurm-version) refuses a plugin for 22.05.8", text)
        self.assertIn(f'"fatal: can not open the {TYPE} plugin"', text)
        self.assertIn("-Dslurm_source=", advice)
        self.assertNotIn("Roll-out", page.text)

    def test_a_spank_plugin_fits_its_whole_release(self):
        path = self.built("spank", "spank.so")
        self.assertEqual(self.check(path, slurm="22.05.11").status, 0)
        self.assertEqual(self.check(path, slurm="23.02.8").status, 1)

    def test_slurm_is_asked_for_its_version(self):
        for package in ("slurm-wlm", "slurm"):
            commands = self.commands(scontrol=version("24.11.5", package), sinfo=version("24.11.5", package))
            page = self.check(self.built("newer"), slurm=None, commands=commands)
            self.assertEqual(page.one("Slurm")[:2], ("ok", "24.11.5 (scontrol, sinfo)"))

    def test_each_version_that_is_installed_is_told(self):
        commands = self.commands(scontrol=version(), sinfo=version())
        commands.set("slurmd", version("22.05.9", "slurm"))
        page = self.check(self.built(), slurm=None, commands=commands)
        self.assertEqual([(mark, text.split(" refuses")[0]) for mark, text, _ in page.of("Slurm")],
                         [("FAIL", "22.05.9 (slurmd)"), ("ok", "22.05.8 (scontrol, sinfo)")])

    def test_a_slurm_that_tells_no_version_is_not_trusted(self):
        commands = self.commands(scontrol="printf '\\033[2Jnonsense'", sinfo="exit 1")
        page = self.check(self.built(), slurm=None, commands=commands)
        self.assertEqual([mark for mark, _, _ in page.of("Slurm")], ["warn", "warn", "FAIL"])
        self.assertIn("--slurm-version", page.of("Slurm")[2][2])

    def test_a_running_slurmctld_of_another_version_is_warned_of(self):
        commands = self.commands(scontrol=config(self.plugins, number="22.05.7"))
        page = self.check(self.built(), commands=commands)
        mark, text, _ = page.one("slurmctld")
        self.assertEqual((mark, page.status), ("warn", 0))
        self.assertIn("22.05.7", text)

    def test_slurmctld_tells_the_directory_and_what_is_in_use(self):
        directories = f"/nonexistent:{self.plugins}"
        self.install()
        path, self.plugins = self.built(), None
        page = self.check(path, commands=self.commands(scontrol=config(directories, TYPE)))
        self.assertEqual(page.of("PluginDir")[0][1], f"{directories} (slurmctld)")
        self.assertEqual(page.of("PluginDir")[1][0], "warn", "one of them is missing")
        self.assertRegex(page.one("installed")[1], f"/plugins/{NAME} is the same")
        self.assertEqual(page.one("in use")[:2], ("ok", f"AcctGatherProfileType={TYPE} (slurmctld)"))

    def test_slurm_conf_tells_it_where_slurmctld_does_not_answer(self):
        (self.conf / "slurm.conf").write_text(f"PluginDir={self.plugins} # here\nAcctGatherProfileType={TYPE}\n")
        path, self.plugins = self.built(), None
        commands = self.commands(scontrol=version() + "echo 'Unable to contact slurm controller' >&2; exit 1")
        page = self.check(path, commands=commands)
        self.assertIn("Unable to contact", page.one("slurmctld")[1])
        self.assertRegex(page.one("PluginDir")[1], r"\(slurm.conf\)$")
        self.assertEqual(page.one("in use")[0], "ok")

    def test_a_plugin_not_in_use_yet_is_told(self):
        for found, told in (("acct_gather_profile/none", "acct_gather_profile/none"), ("(null)", "not set")):
            page = self.check(self.built(), commands=self.commands(scontrol=config(self.plugins, found)))
            self.assertEqual(page.one("in use")[:2], ("note", f"not yet: AcctGatherProfileType is {told} (slurmctld)"))

    def test_another_copy_that_is_installed_is_told(self):
        self.install("newer")
        mark, text, _ = self.check(self.built()).one("installed")
        self.assertEqual(mark, "note")
        self.assertRegex(text, r"is another, for Slurm 24.11.5$")
        self.install("original")
        self.assertRegex(self.check(self.built()).one("installed")[1], r"for Slurm 22.05.8, not sonde's$")

    def test_the_installed_file_itself_can_be_checked(self):
        page = self.check(self.install())
        self.assertEqual(page.one("installed")[:2], ("ok", "it is this very file"))
        self.assertEqual(page.of("mode"), [])

    def test_what_others_can_write_is_warned_of(self):
        path = self.install(mode=0o666)
        page = self.check(path)
        mark, text, advice = page.one("mode")
        self.assertEqual((mark, advice, page.status), ("warn", f"chmod go-w {path}", 0))
        self.assertIn("can be written by everybody", text)
        path.chmod(0o644)
        self.plugins.chmod(0o775)
        self.assertIn("can be written by its group", self.check(path).one("mode")[1])

    def test_an_owner_other_than_root_is_warned_of(self):
        need("root")
        path = self.install()
        os.chown(path, 65534, 65534)
        mark, text, advice = self.check(path).one("owner")
        self.assertEqual((mark, advice), ("warn", f"chown root: {path}"))
        self.assertIn("user 65534", text)

    def test_what_slurmctld_cannot_read_will_not_load(self):
        mark, text, advice = self.check(self.install(mode=0o600)).one("mode")
        self.assertEqual(mark, "FAIL")
        self.assertIn("SlurmUser", text)
        self.assertIn("chmod o+rX", advice)

    def test_what_lacks_a_function_is_refused(self):
        mark, text, _ = self.check(self.built("partial")).one("functions")
        self.assertEqual(mark, "FAIL")
        self.assertIn("2 of 13 are missing (acct_gather_profile_p_create_dataset, "
                      "acct_gather_profile_p_add_sample_data)", text)

    def test_what_is_no_plugin_is_refused(self):
        path = self.built("nameless")
        self.assertIn("no plugin_type", self.check(path).one("plugin")[1])
        path.write_bytes(path.read_bytes()[:5000])
        self.assertIn("cut off or damaged", self.check(path).one("file")[1])
        path.write_bytes(b"#!/bin/sh\n")
        self.assertIn("no shared library", self.check(path).one("file")[1])
        path.unlink()
        self.assertIn("cannot be read: No such file", self.check(path).one("file")[1])
        self.assertIn("no regular file", self.check("/dev/null").one("file")[1])

    def test_a_hostile_type_moves_no_cursor_and_names_no_file(self):
        path = self.built()
        path.write_bytes(path.read_bytes().replace(TYPE.encode(), b"../../\033[2J;rm -rf x".ljust(len(TYPE), b"!")))
        mark, text, _ = self.check(path).one("plugin")
        self.assertEqual(mark, "FAIL")
        self.assertIn("none of Slurm's", text)

    def test_another_file_name_is_noted(self):
        mark, text, _ = self.check(self.built(name="acct_gather_profile_prometheus-22.05.8.so")).one("file name")
        self.assertEqual(mark, "note")
        self.assertIn(f"Slurm looks for {NAME}", text)

    def test_keys_that_the_plugin_knows_are_fine(self):
        (self.conf / "acct_gather.conf").write_text(
            "#ProfilePrometheusFoo=1\nprofileprometheushost=http://localhost:9091\nProfilePrometheusAgent=/run/x\n"
            "SysfsInterfaces=lo\nInclude more.conf\n")
        page = self.check(self.built())
        self.assertEqual(page.one("keys")[0], "ok")
        self.assertIn(("note", "more.conf (line 5) is not looked into", ""), page.of("conf"))

    def test_keys_that_it_does_not_know_are_fatal(self):
        (self.conf / "acct_gather.conf").write_text("ProfilePrometheusHost=x\nProfilePrometheusNew=1\n"
                                                    "ProfileInfluxDBHost=y\n")
        mark, text, advice = self.check(self.built()).one("keys")
        self.assertEqual(mark, "FAIL")
        self.assertIn("ProfilePrometheusNew (line 2), ProfileInfluxDBHost (line 3)", text)
        self.assertIn("fatal: Could not open/read/parse acct_gather.conf", text)
        self.assertIn("reconfigure", advice)

    def test_of_the_original_two_keys_are_known(self):
        (self.conf / "acct_gather.conf").write_text("ProfilePrometheusHost=x\nProfilePrometheusDefault=all\n")
        page = self.check(self.built("original"))
        self.assertEqual(page.one("keys")[0], "ok")
        self.assertIn("not sonde's", page.of("plugin")[1][1])
        (self.conf / "acct_gather.conf").write_text("ProfilePrometheusAgent=x\n")
        self.assertEqual(self.check(self.built("original")).one("keys")[0], "FAIL")

    def test_new_keys_before_the_new_plugin_are_warned_of(self):
        (self.conf / "acct_gather.conf").write_text("ProfilePrometheusAgent=/run/x\n")
        self.install("original")
        page = self.check(self.built())
        self.assertEqual([mark for mark, _, _ in page.of("keys")], ["ok", "warn"])
        self.assertIn("unknown to the installed plugin: ProfilePrometheusAgent (line 1)", page.of("keys")[1][1])
        self.assertEqual(page.status, 0)

    def test_a_file_that_slurm_does_not_read_is_told(self):
        (self.conf / "acct_gather_profile.conf").write_text("ProfilePrometheusHost=x\n")
        mark, text, advice = self.check(self.built()).of("conf")[0]
        self.assertEqual(mark, "warn")
        self.assertIn("acct_gather_profile.conf is a file that Slurm does not read", text)
        self.assertIn("acct_gather.conf", advice)

    def test_wrong_use_has_a_status_of_its_own(self):
        for flags in ([], ["a.so", "b.so"], ["--slurm-version=22.05", "a.so"], ["--slurm-versoin=22.05.8", "a.so"]):
            done = run_admin("plugin-check", *flags)
            self.assertEqual((done.returncode, done.stdout), (2, ""), flags)
            self.assertIn("sonde admin plugin-check: ", done.stderr)

    def test_a_signal_ends_it_and_the_command_that_it_waits_for(self):
        commands = self.commands(scontrol=version() + "echo $$ >\"$(dirname \"$0\")/pid\"; exec sleep 1000")
        pid = pathlib.Path(commands.path, "pid")
        process = subprocess.Popen([SONDE, "admin", "plugin-check", str(self.built())], stdout=subprocess.PIPE,
                                   env=dict(os.environ, PATH=f"{commands.path}:{os.environ['PATH']}"))
        wait_until(lambda: pid.exists() and pid.read_text(), "it waits for scontrol")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(DEADLINE), 128 + signal.SIGTERM)
        process.stdout.close()
        wait_until(lambda: not os.path.exists(f"/proc/{pid.read_text().strip()}"), "scontrol has ended")


if __name__ == "__main__":
    import tap
    tap.main()
