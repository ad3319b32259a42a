/* SPDX-License-Identifier: GPL-2.0-or-later */
/* On made trees that look like /proc and /sys of hosts that run Slurm. */
#include "test.h"

#include "files.h"
#include "source/cgroup_layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char v2_mount[] =
    "31 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
static const char v1_mounts[] =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 master:2 - cgroup cgroup rw,memory\n"
    "37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n";
static const char unified_mount[] =
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

static struct cgroup_layout layout;

static void put_mounts(const char *first, const char *second)
{
    char text[1000];

    snprintf(text, sizeof(text), "23 1 254:0 / / rw - ext4 /dev/vda rw\n%s%s", first, second);
    write_file("proc/self/mountinfo", text);
}

static void look(void)
{
    struct err err = { 0 };

    if (cgroup_layout_read(test_dir(), &layout, &err) < 0)
        fail_msg("%s", err.text);
}

TEST(v1_of_one_slurmd_is_found_below_its_users)
{
    put_mounts(v1_mounts, "");
    make_dir("sys/fs/cgroup/memory/slurm/uid_1000/job_17/step_batch/task_0");
    make_dir("sys/fs/cgroup/memory/slurm/uid_1000/job_18");
    make_dir("sys/fs/cgroup/memory/slurm/system");
    make_dir("sys/fs/cgroup/memory/user.slice/slurm");
    make_dir("sys/fs/cgroup/freezer/slurm/uid_1000/job_17");
    look();
    assert_int_equal(layout.version, CGROUP_V1);
    assert_string_equal(layout.mount, "/sys/fs/cgroup/memory");
    assert_int_equal(layout.n, 1);
    assert_string_equal(layout.scope[0].path, "/sys/fs/cgroup/memory/slurm");
    assert_string_equal(layout.scope[0].node, "");
    assert_false(layout.scope[0].is_v2);
    assert_int_equal(layout.scope[0].jobs_by_id, 2);
    assert_int_equal(layout.scope[0].jobs_by_sluid, 0);
    assert_contains(layout.scope[0].job, "/sys/fs/cgroup/memory/slurm/uid_1000/job_1");
}

TEST(without_memory_another_controller_tells)
{
    put_mounts(v1_mounts, "");
    make_dir("sys/fs/cgroup/memory");
    make_dir("sys/fs/cgroup/freezer/slurm/uid_1000/job_17/step_0");
    look();
    assert_int_equal(layout.n, 1);
    assert_string_equal(layout.scope[0].path, "/sys/fs/cgroup/freezer/slurm");
    assert_int_equal(layout.scope[0].jobs_by_id, 1);
}

TEST(several_slurmd_of_v1_are_told_apart)
{
    put_mounts(v1_mounts, "");
    make_dir("sys/fs/cgroup/memory/slurm_c2/uid_1000/job_18");
    make_dir("sys/fs/cgroup/memory/slurm_c1/uid_1000/job_17");
    make_dir("sys/fs/cgroup/memory/slurm_");
    make_dir("sys/fs/cgroup/memory/slurmdbd");
    look();
    assert_int_equal(layout.n, 2);
    assert_string_equal(layout.scope[0].node, "c1");
    assert_string_equal(layout.scope[1].node, "c2");
    assert_string_equal(layout.scope[1].job, "/sys/fs/cgroup/memory/slurm_c2/uid_1000/job_18");
}

TEST(hybrid_is_v1_for_the_jobs)
{
    put_mounts(v1_mounts, unified_mount);
    make_dir("sys/fs/cgroup/unified/system.slice/ssh.service");
    make_dir("sys/fs/cgroup/memory/slurm/uid_1000/job_17");
    look();
    assert_int_equal(layout.version, CGROUP_HYBRID);
    assert_string_equal(layout.mount, "/sys/fs/cgroup/memory");
    assert_int_equal(layout.n, 1);
    assert_false(layout.scope[0].is_v2);
}

TEST(v2_is_found_in_its_scope)
{
    put_mounts(v2_mount, "");
    make_dir("sys/fs/cgroup/system.slice/slurmstepd.scope/job_17/step_0/user/task_0");
    make_dir("sys/fs/cgroup/system.slice/slurmstepd.scope/job_18/step_extern/slurm");
    make_dir("sys/fs/cgroup/system.slice/slurmstepd.scope/system");
    make_dir("sys/fs/cgroup/system.slice/slurmd.service");
    look();
    assert_int_equal(layout.version, CGROUP_V2);
    assert_string_equal(layout.mount, "/sys/fs/cgroup");
    assert_int_equal(layout.n, 1);
    assert_string_equal(layout.scope[0].path, "/sys/fs/cgroup/system.slice/slurmstepd.scope");
    assert_true(layout.scope[0].is_v2);
    assert_int_equal(layout.scope[0].jobs_by_id, 2);
}

TEST(the_sluids_of_26_05_are_jobs)
{
    put_mounts(v2_mount, "");
    make_dir("sys/fs/cgroup/system.slice/slurmstepd.scope/sEKNKTV3WPV500/step_0");
    make_dir("sys/fs/cgroup/system.slice/slurmstepd.scope/sF0NM7G8GT4500/step_0");
    make_dir("sys/fs/cgroup/system.slice/slurmstepd.scope/sF0NM7G8GT450I"); /* no I in it */
    make_dir("sys/fs/cgroup/system.slice/slurmstepd.scope/slurmd");
    make_dir("sys/fs/cgroup/system.slice/slurmstepd.scope/job_");
    make_dir("sys/fs/cgroup/system.slice/slurmstepd.scope/job_1x");
    look();
    assert_int_equal(layout.n, 1);
    assert_int_equal(layout.scope[0].jobs_by_sluid, 2);
    assert_int_equal(layout.scope[0].jobs_by_id, 0);
}

TEST(several_slurmd_of_v2_and_other_slices_are_found)
{
    put_mounts(v2_mount, "");
    make_dir("sys/fs/cgroup/hpc.slice/hpc-slurm.slice/n1_slurmstepd.scope/job_1");
    make_dir("sys/fs/cgroup/system.slice/n2_slurmstepd.scope/job_2");
    look();
    assert_int_equal(layout.n, 2);
    assert_string_equal(layout.scope[0].node, "n1");
    assert_string_equal(layout.scope[1].node, "n2");
    assert_string_equal(layout.scope[0].path,
                        "/sys/fs/cgroup/hpc.slice/hpc-slurm.slice/n1_slurmstepd.scope");
}

TEST(a_scope_that_a_user_could_have_made_is_none)
{
    need("root");
    put_mounts(v2_mount, "");
    make_dir("sys/fs/cgroup/user.slice/user@1000.service/slurmstepd.scope/job_17");
    assert_int_equal(chown(test_path("sys/fs/cgroup/user.slice/user@1000.service"), 1000, 1000), 0);
    look();
    assert_int_equal(layout.n, 0);
}

TEST(a_mount_with_a_space_in_its_name_is_found)
{
    put_mounts("31 23 0:26 / /the\\040cgroups rw - cgroup2 cgroup2 rw\n", "");
    make_dir("the cgroups/system.slice/slurmstepd.scope/job_17");
    look();
    assert_int_equal(layout.n, 1);
    assert_string_equal(layout.mount, "/the cgroups");
}

TEST(more_slurmd_than_we_keep_are_not_all_told)
{
    char path[100];

    put_mounts(v1_mounts, "");
    for (int i = 0; i < CGROUP_SCOPES + 3; i++) {
        snprintf(path, sizeof(path), "sys/fs/cgroup/memory/slurm_c%d/uid_1/job_1", i);
        make_dir(path);
    }
    look();
    assert_int_equal(layout.n, CGROUP_SCOPES);
    assert_true(layout.is_partial);
}

TEST(paths_without_end_are_not_followed)
{
    char path[1000] = "sys/fs/cgroup";

    put_mounts(v2_mount, "");
    for (int i = 0; i < 60; i++)
        snprintf(path + strlen(path), sizeof(path) - strlen(path), "/a-slice-of-it");
    make_dir(path);
    look();
    assert_int_equal(layout.n, 0);
}

TEST(a_host_without_cgroups_is_told_as_such)
{
    put_mounts("", "");
    look();
    assert_int_equal(layout.version, CGROUP_NONE);
    assert_int_equal(layout.n, 0);
}

TEST(a_host_without_mountinfo_is_an_error_with_its_path)
{
    struct err err = { 0 };

    assert_int_equal(cgroup_layout_read(test_dir(), &layout, &err), -ENOENT);
    assert_contains(err.text, "/proc/self/mountinfo");
}
