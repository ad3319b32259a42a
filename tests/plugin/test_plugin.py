# SPDX-License-Identifier: GPL-2.0-or-later
"""The profile plugin under calls as Slurm makes them, in right and in wrong order, with and without sanitizers."""
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parent.parent)]
import tap  # noqa: E402
from harness import Harness  # noqa: E402

TASK, NETWORK, ALL = 4, 16, 2 + 4 + 8 + 16
NOBODYS = 0x7fffffff
VERSION = os.environ["SLURM_VERSION"]
DEADLINE = 300  # seconds; it only bounds a hang
NEW_FIELDS = tuple(map(int, VERSION.split("."))) >= (23, 2)

# All that the plugin may take from outside itself, beside libc.
FROM_SLURM = {"assoc_mgr_find_tres_pos", "slurm_conf", "slurm_error", "slurm_get_log_level", "slurm_list_append",
              "slurm_log_var", "slurm_s_p_get_string", "slurm_transfer_s_p_options", "slurm_xcalloc", "slurm_xfree",
              "slurm_xstrdup"}
FOR_SLURM = {"sonde_profile_keys", "init", "fini", "plugin_name", "plugin_type", "plugin_version"} | {
    f"acct_gather_profile_p_{name}" for name in (
        "add_sample_data", "child_forked", "conf_options", "conf_set", "conf_values", "create_dataset", "create_group",
        "get", "is_active", "node_step_end", "node_step_start", "task_end", "task_start")}
# The compiler's, which may be absent.
WEAK = {"_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__gmon_start__", "__cxa_finalize"}


def harness(*before, is_plain=False, **settings):
    prefix = "" if is_plain else "CHECKED_"
    return Harness(os.environ[f"{prefix}HARNESS"], os.environ[f"{prefix}PLUGIN"], *before, **settings)


class Agent:
    """A socket as the agent has it, and what comes in."""

    def __init__(self, test):
        directory = tempfile.TemporaryDirectory()
        test.addCleanup(directory.cleanup)
        self.path = f"{directory.name}/profile.sock"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        test.addCleanup(self.socket.close)
        self.socket.bind(self.path)
        self.socket.settimeout(DEADLINE)

    def messages_until_the_end(self):
        messages = []
        while not messages or not messages[-1].endswith("end\n"):
            messages.append(self.socket.recv(65536).decode())
        return messages


class Symbols(unittest.TestCase):
    def symbols(self, flag):
        listed = subprocess.run(["nm", "-D", flag, os.environ["PLUGIN"]], check=True, text=True, capture_output=True)
        return {line.split()[-1] for line in listed.stdout.splitlines()}

    def test_nothing_but_what_slurm_looks_for_is_exported(self):
        self.assertEqual(self.symbols("--defined-only"), FOR_SLURM)

    def test_nothing_but_a_short_list_is_taken_from_slurm(self):
        others = {name for name in self.symbols("--undefined-only") if "@GLIBC" not in name}
        self.assertEqual(others - WEAK, FROM_SLURM)

    def test_nothing_but_libc_is_linked_and_it_is_never_unloaded(self):
        said = subprocess.run(["readelf", "-d", os.environ["PLUGIN"]], check=True, text=True, capture_output=True).stdout
        needed = [line.split("[")[1].rstrip("]") for line in said.splitlines() if "(NEEDED)" in line]
        self.assertEqual([name for name in needed if name not in ("libc.so.6", "libm.so.6")], [])
        self.assertIn("NODELETE", said)


class Options(unittest.TestCase):
    def test_all_options_are_told_as_text(self):
        with harness() as slurm:
            self.assertEqual(slurm.do("conf_options"), [
                f"ProfilePrometheus{name} 1" for name in (
                    "Host", "Default", "Frequency", "Timeout", "Agent", "ExtraLabels", "Names")])

    def test_it_says_for_which_slurm_it_was_built(self):
        number = "".join(f"{int(part):02x}" for part in VERSION.split("."))
        with harness() as slurm:
            self.assertEqual(slurm.do("version")[1:], ["acct_gather_profile/prometheus", f"{number} {number}"])

    def test_good_options_are_taken_in_silence_and_shown_without_the_password(self):
        with harness(ProfilePrometheusHost="http://u:secret@gateway:9091/", ProfilePrometheusDefault="task,energy") as slurm:
            slurm.read_options()
            self.assertEqual(slurm.do("conf_values"), [
                "ProfilePrometheusHost = http://u:***@gateway:9091", "ProfilePrometheusDefault = energy,task",
                "ProfilePrometheusFrequency = 10", "ProfilePrometheusTimeout = 2", "ProfilePrometheusNames = both"])
            self.assertEqual(slurm.do("log"), [])

    def test_a_bad_option_is_one_line_of_error_and_no_profiling(self):
        with harness(ProfilePrometheusHost="h", ProfilePrometheusTimeout="soon", profile=TASK) as slurm:
            slurm.read_options()
            slurm.do("conf_set")
            self.assertEqual(slurm.do("log"), [
                'error: acct_gather_profile/prometheus: ProfilePrometheusTimeout is "soon": give whole seconds, from 1 '
                'to 60. Nothing is profiled.'])
            self.assertEqual(slurm.one("node_step_start"), "0")
            self.assertEqual(slurm.one("get"), "running 1 default 1 directory - active 0")
            slurm.do("task_start", 0)
            self.assertEqual(slurm.one("threads"), "1")
            self.assertEqual(slurm.one("dataset", 0, 0), str(NOBODYS))
            self.assertEqual(slurm.one("sample", NOBODYS, "CPUTime=1"), "0")
            self.assertEqual(slurm.one("conf_values"), 'ProfilePrometheusError = ProfilePrometheusTimeout is "soon": '
                             'give whole seconds, from 1 to 60')
            slurm.end_step()

    def test_a_bad_url_is_not_repeated(self):
        with harness(ProfilePrometheusHost="http://u:secret@") as slurm:
            slurm.read_options()
            said = slurm.do("log") + slurm.do("conf_values")
            self.assertEqual(len(said), 2)
            self.assertNotIn("secret", "".join(said))

    def test_without_a_file_nothing_is_profiled(self):
        with harness() as slurm:
            slurm.do("init")
            slurm.do("conf_set", "none")
            self.assertIn("neither", slurm.one("log"))
            slurm.do("node_step_start")
            self.assertIn("running 1 ", slurm.one("get"))
            slurm.do("fini")

    def test_options_read_twice_are_the_same_options(self):
        with harness(ProfilePrometheusHost="h", ProfilePrometheusDefault="network") as slurm:
            slurm.read_options()
            slurm.do("conf_options")
            slurm.do("conf_set")
            self.assertEqual(slurm.one("get"), "running 0 default 16 directory - active 0")
            self.assertEqual(slurm.do("log"), [])


class Daemons(unittest.TestCase):
    """slurmctld and slurmd: options alone."""

    def test_no_thread_no_descriptor_and_no_libcurl_before_a_step_starts(self):
        with harness(ProfilePrometheusHost="http://127.0.0.1:1") as slurm:
            before = slurm.do("descriptors")
            slurm.read_options()
            slurm.do("conf_values")
            self.assertEqual(slurm.one("threads"), "1")
            self.assertEqual(slurm.do("descriptors"), before)
            self.assertEqual(slurm.do("libraries", "libcurl"), [])
            slurm.do("fini")

    def test_loaded_again_it_starts_anew(self):
        with harness(ProfilePrometheusHost="h") as slurm:
            for _ in range(3):
                slurm.read_options()
                slurm.do("fini")
            self.assertEqual(slurm.one("get"), f"running 0 default {ALL} directory - active 0")


class Profiling(unittest.TestCase):
    def bits(self, **settings):
        with harness(ProfilePrometheusAgent="/nowhere/at/all", **settings) as slurm:
            slurm.read_options()
            slurm.do("node_step_start")
            bits = slurm.one("get").split()
            threads = slurm.one("threads")
            slurm.do("task_start", 0)
            self.assertEqual((threads, slurm.one("threads")), ("1", "2" if bits[1] != "1" else "1"))
            slurm.do("node_step_end")
            slurm.do("fini")
            return int(bits[1]), int(bits[-1])

    def test_a_job_without_profile_gets_what_is_the_default(self):
        self.assertEqual(self.bits(), (ALL, 1))
        self.assertEqual(self.bits(ProfilePrometheusDefault="task"), (TASK, 1))
        self.assertEqual(self.bits(ProfilePrometheusDefault="none"), (1, 0))

    def test_a_job_with_profile_gets_what_it_asked_for(self):
        self.assertEqual(self.bits(ProfilePrometheusDefault="none", profile=TASK | NETWORK), (TASK | NETWORK, 1))
        self.assertEqual(self.bits(profile=1), (1, 0))
        self.assertEqual(self.bits(profile=0xffffffff), (0xffffffff, 1))

    def test_nothing_is_loaded_or_started_for_a_job_that_is_not_profiled(self):
        with harness(ProfilePrometheusHost="http://127.0.0.1:1", profile=1) as slurm:
            slurm.start_step()
            self.assertEqual(slurm.one("threads"), "1")
            self.assertEqual(slurm.do("libraries", "libcurl"), [])
            slurm.end_step()

    def test_libcurl_is_for_pushing_alone(self):
        for key, value, expected in (("Host", "http://127.0.0.1:1", True), ("Agent", "/nowhere/at/all", False)):
            with self.subTest(key), harness(**{f"ProfilePrometheus{key}": value}) as slurm:
                slurm.start_step()
                self.assertEqual(bool(slurm.do("libraries", "libcurl")), expected)
                slurm.end_step()


class Samples(unittest.TestCase):
    def told(self, *lines, **settings):
        """What the agent hears of a step with these commands in it."""
        agent = Agent(self)
        with harness(ProfilePrometheusAgent=agent.path, **settings) as slurm:
            slurm.start_step()
            for line in lines:
                slurm.do(*line.split())
            slurm.end_step()
            self.log = slurm.do("log")
        return agent.messages_until_the_end()

    def test_all_four_kinds_are_told_with_the_fields_of_this_version(self):
        text = "".join(self.told(
            "group Tasks", "dataset 0 0", "dataset 1 0", "dataset Energy -1", "dataset Network -1",
            "dataset Filesystem -1", "sample 0 CPUTime=1.5 CPUUtilization=150 RSS=2048 VMSize=4096 ReadMB=1",
            "sample 0 CPUTime=0.5 RSS=1024 VMSize=4096", "sample 1 CPUTime=4 RSS=1 VMSize=1", "sample 2 Power=250",
            "sample 3 PacketsIn=3 InMB=2", "sample 4 Reads=7 ReadMB=1", job=77, step=3, node="n1"))
        self.assertIn("step 77 3 n1\n", text)
        for line in ("dataset task 0\n", "dataset task 1\n", "dataset energy\n", "dataset network\n",
                     "dataset filesystem\n", "slurm_profile_task_cpu_seconds_total 2\n",
                     "slurm_profile_task_resident_memory_bytes 1048576\n", "slurm_profile_task_cpu_seconds_total 4\n"):
            self.assertIn(line, text)
        self.assertEqual(self.log, [])

    def test_every_step_has_the_name_that_slurm_gives_it(self):
        for settings, name in (({"step": "batch"}, "batch"), ({"step": "extern"}, "extern"),
                               ({"step": "interactive"}, "interactive"), ({"step": 12}, "12"),
                               ({"step": 12, "component": 3}, "12+3")):
            with self.subTest(name):
                text = "".join(self.told("dataset 0 0", "sample 0 RSS=1", **settings))
                self.assertIn(f"step 1 {name} node\n", text)

    def test_labels_come_from_the_step_also_for_a_batch_step_that_gets_its_environment_late(self):
        for step in ("batch", "0"):
            text = "".join(self.told(
                "dataset 0 0", "sample 0 RSS=1", step=step, user="ann", account="phys", partition="long", cluster="big",
                ProfilePrometheusExtraLabels="user,account,partition,cluster"))
            for label in ("user ann", "account phys", "partition long", "cluster big"):
                self.assertIn(f"label {label}\n", text)

    def test_gpu_fields_are_believed_only_with_their_tres(self):
        if not NEW_FIELDS:
            self.skipTest(f"Slurm {VERSION} has none")
        lines = ("dataset 0 0", "sample 0 RSS=1 GPUMemMB=3 GPUUtilization=50", "sample 0 RSS=1 GPUMemMB=4 GPUUtilization=50")
        self.assertNotIn("gpu", "".join(self.told(*lines)))
        self.assertNotIn("gpu", "".join(self.told(*lines, tres="gres/gpu,gres/gpumem")))
        self.assertIn("gpu", "".join(self.told(*lines, tres="gres/gpu,gres/gpumem,gres/gpuutil")))

    def test_what_sysfs_swaps_is_put_right_and_nothing_else(self):
        lines = ("dataset Network -1", "sample 0 PacketsIn=1048576 InMB=0.5")
        swapped = "".join(self.told(*lines, interconnect="acct_gather_interconnect/sysfs"))
        as_is = "".join(self.told(*lines, interconnect="acct_gather_interconnect/ofed"))
        self.assertIn("slurm_profile_node_network_receive_bytes_total 1048576\n", swapped)
        self.assertIn("slurm_profile_node_network_receive_packets_total 32768\n", swapped)
        self.assertIn("slurm_profile_node_network_receive_bytes_total 524288\n", as_is)
        self.assertIn("slurm_profile_node_network_receive_packets_total 1048576\n", as_is)

    def test_unknown_datasets_and_numbers_are_taken_and_dropped(self):
        agent = Agent(self)
        with harness(ProfilePrometheusAgent=agent.path) as slurm:
            slurm.start_step()
            for words in (("Weather", -1, "Rain:u64"), ("one", 0), ("-1", 0), ("4294967296", 0), ("7", 0, "Rain:double"),
                          ("Energy", -1, *(f"S{i}Rain:u64" for i in range(40)))):
                self.assertEqual(slurm.one("dataset", *words), str(NOBODYS), words)
            for stray in (0, 1, NOBODYS, 0xffffffff, 0x80000000):
                self.assertEqual(slurm.one("stray_sample", stray), "0")
            slurm.end_step()
            self.assertEqual(slurm.do("log"), [])

    def test_samples_after_the_end_of_the_step_do_no_harm(self):
        agent = Agent(self)
        with harness(ProfilePrometheusAgent=agent.path) as slurm:
            slurm.start_step()
            slurm.do("dataset", 0, 0)
            slurm.do("node_step_end")
            self.assertEqual(slurm.one("sample", 0, "RSS=5"), "0")
            self.assertEqual(slurm.one("dataset", 1, 0), "1")
            slurm.do("fini")
            self.assertEqual(slurm.one("sample", 0, "RSS=5"), "0")


class Ends(unittest.TestCase):
    def test_fini_is_enough(self):
        agent = Agent(self)
        with harness(ProfilePrometheusAgent=agent.path) as slurm:
            slurm.start_step()
            slurm.do("dataset", 0, 0)
            slurm.do("sample", 0, "RSS=1")
            slurm.do("fini")
            deadline = time.monotonic() + DEADLINE
            while slurm.one("threads") != "1":  # a thread that was joined may be listed for a moment
                self.assertLess(time.monotonic(), deadline)
        self.assertIn("end\n", agent.messages_until_the_end()[-1])

    def test_a_step_that_could_not_be_launched_ends_by_fini_alone(self):
        with harness(ProfilePrometheusAgent="/nowhere/at/all") as slurm:
            slurm.read_options()
            slurm.do("node_step_start")
            slurm.do("fini")
            self.assertEqual(slurm.do("log"), [])

    def test_the_end_of_a_task_ends_nothing(self):
        agent = Agent(self)
        with harness(ProfilePrometheusAgent=agent.path) as slurm:
            slurm.start_step(tasks=2)
            slurm.do("dataset", 0, 0)
            slurm.do("dataset", 1, 0)
            slurm.do("task_end")
            self.assertEqual(slurm.one("threads"), "2")
            slurm.do("sample", 1, "RSS=1")
            slurm.do("task_end")
            slurm.do("node_step_end")
            slurm.do("fini")
        self.assertIn("dataset task 1\n", "".join(agent.messages_until_the_end()))

    def test_a_second_end_does_nothing(self):
        with harness(ProfilePrometheusAgent="/nowhere/at/all") as slurm:
            slurm.start_step()
            for call in ("node_step_end", "node_step_end", "fini", "fini", "node_step_end"):
                self.assertEqual(slurm.one(call), "0")

    def test_a_child_inherits_no_descriptor_and_touches_nothing(self):
        for key in ("Agent", "Host"):
            agent = Agent(self)
            with self.subTest(key), socket.create_server(("127.0.0.1", 0)) as server:
                target = agent.path if key == "Agent" else f"http://127.0.0.1:{server.getsockname()[1]}"
                with harness(**{f"ProfilePrometheus{key}": target, "ProfilePrometheusFrequency": 1}) as slurm:
                    slurm.start_step()
                    slurm.do("dataset", 0, 0)
                    slurm.do("sample", 0, "RSS=1")
                    if key == "Agent":
                        agent.socket.recv(65536)
                    else:
                        server.settimeout(DEADLINE)
                        server.accept()[0].close()
                    self.assertTrue(slurm.do("descriptors"))
                    self.assertEqual(slurm.do("fork"), ["status 0"])
                    self.assertEqual(slurm.one("threads"), "2")
                    server.close()  # one that refuses delays the end least
                    slurm.end_step()

    def test_a_server_that_hangs_delays_nothing(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            with harness(is_plain=True, ProfilePrometheusHost=f"http://127.0.0.1:{server.getsockname()[1]}",
                         ProfilePrometheusFrequency=1, ProfilePrometheusTimeout=60) as slurm:
                slurm.start_step()
                slurm.do("dataset", 0, 0)
                slurm.do("sample", 0, "RSS=1")
                server.settimeout(DEADLINE)
                peer = server.accept()[0]
                self.assertTrue(peer.recv(1))
                slurm.do("node_step_end")
                slurm.do("fini")
                # The request was cut short: that its minute has passed would be in the log.
                log = " ".join(slurm.do("log"))
                self.assertRegex(log, "(may stay|stays) there until it is found to be over")
                self.assertNotIn("the next line about it will say that it works", log)
                peer.close()


if __name__ == "__main__":
    tap.main()
