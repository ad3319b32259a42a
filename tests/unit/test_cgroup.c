/* SPDX-License-Identifier: GPL-2.0-or-later */
/* On made files that look like those of kernels old and new, and on real cgroups of this machine
 * where root may make some. */
#include "test.h"

#include "count_allocations.h"
#include "files.h"

#include "source/cgroup_files.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

static struct quota open_files = { .max = SIZE_MAX };
static const struct cgroup_wish all = { .cores = true, .details = true, .files = &open_files };

/* What the kernel's reads fail with, by what their file's name ends in. */
static struct {
    const char *name;
    int code;
    unsigned n_asked;
} failing;

ssize_t __real_pread64(int fd, void *to, size_t n, off_t offset);
ssize_t __wrap_pread64(int fd, void *to, size_t n, off_t offset);
ssize_t __wrap_pread64(int fd, void *to, size_t n, off_t offset)
{
    char link[64], path[512];
    ssize_t length;

    if (!failing.name)
        return __real_pread64(fd, to, n, offset);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof(path));
    if (length < 0 || !str_ends(str_span(path, path + length), str_of(failing.name)))
        return __real_pread64(fd, to, n, offset);
    failing.n_asked++;
    errno = failing.code;
    return -1;
}

/* A machine made of files. */

static struct cgroup_mounts mounts;
static struct cgroup_use use;

static void look_for_mounts(const char *mountinfo)
{
    struct err err = { 0 };

    write_file("proc/self/mountinfo", mountinfo);
    memset(&mounts, 0xaa, sizeof(mounts));
    if (cgroup_mounts_read(test_path("proc"), test_path("sys"), &mounts, &err) < 0)
        fail_msg("%s", err.text);
}

static void be_v1(void)
{
    look_for_mounts("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
                    "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                    "34 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                    "35 31 0:32 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                    "36 31 0:33 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
                    "37 31 0:34 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n"
                    "38 31 0:35 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n");
}

static void be_v2(void)
{
    look_for_mounts("31 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n");
}

#define V2_JOB "sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/"
static const struct str v2_job = STR_INIT("system.slice/slurmstepd.scope/job_7");
static const struct str v1_job = STR_INIT("slurm/uid_1000/job_7");

#define ACCT   "sys/fs/cgroup/cpu,cpuacct/slurm/uid_1000/job_7/"
#define MEMORY "sys/fs/cgroup/memory/slurm/uid_1000/job_7/"
#define CPUSET "sys/fs/cgroup/cpuset/slurm/uid_1000/job_7/"
#define PIDS   "sys/fs/cgroup/pids/slurm/uid_1000/job_7/"
#define BLKIO  "sys/fs/cgroup/blkio/slurm/uid_1000/job_7/"

/* Opens, reads once into a cleared `use`, closes. */
static void read_once(struct str path, struct cgroup_wish wish)
{
    struct cgroup *cgroup = cgroup_open(&mounts, path, wish);

    cgroup_use_clear(&use);
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_null(cgroup_close(cgroup));
}

#define assert_unknown(number) assert_true((number) == MODEL_UNKNOWN_U64)

static void assert_place(const char *actual, const char *expected)
{
    assert_string_equal(actual, expected[0] ? test_path("%s", expected) : "");
}

TEST(each_controller_is_found_where_it_is_mounted)
{
    be_v1();
    assert_place(mounts.controller[CGROUP_CPU], "sys/fs/cgroup/cpu,cpuacct");
    assert_place(mounts.controller[CGROUP_CPUACCT], "sys/fs/cgroup/cpu,cpuacct");
    assert_place(mounts.controller[CGROUP_MEMORY], "sys/fs/cgroup/memory");
    assert_place(mounts.controller[CGROUP_CPUSET], "sys/fs/cgroup/cpuset");
    assert_place(mounts.controller[CGROUP_FREEZER], "");
    assert_place(mounts.unified, "");
    assert_false(mounts.is_v2);
    assert_true(mounts.has_local_events);
}

TEST(a_hybrid_machine_is_v1_only_if_slurm_has_a_controller_there)
{
    look_for_mounts("34 31 0:31 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
                    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    assert_false(mounts.is_v2);
    assert_place(mounts.unified, "sys/fs/cgroup/unified");
    look_for_mounts("34 31 0:31 / /sys/fs/cgroup/net_cls rw - cgroup cgroup rw,net_cls\n"
                    "35 31 0:32 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
                    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    assert_true(mounts.is_v2);
    assert_false(mounts.has_local_events);
}

TEST(a_named_hierarchy_is_no_controller)
{
    look_for_mounts("40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
                    "41 31 0:39 / /sys/fs/cgroup/odd rw - cgroup cgroup rw,name=memory\n"
                    "42 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    assert_true(mounts.is_v2);
    assert_place(mounts.controller[CGROUP_MEMORY], "");
}

TEST(of_several_mounts_the_first_whole_one_holds)
{
    look_for_mounts("50 31 0:30 /box /run/box/cpuacct rw - cgroup cgroup rw,cpuacct\n"
                    "51 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n"
                    "52 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpuacct\n"
                    "53 31 0:31 /box /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    assert_place(mounts.controller[CGROUP_CPUACCT], "sys/fs/cgroup/cpuacct");
    assert_place(mounts.controller[CGROUP_MEMORY], "sys/fs/cgroup/memory");
}

TEST(a_mount_point_is_unescaped_and_only_that_of_sys_is_moved)
{
    look_for_mounts("53 31 0:31 / /the\\040cgroups\\134m rw - cgroup cgroup rw,memory\n"
                    "54 31 0:32 / /sys/a\\040b rw - cgroup cgroup rw,cpuset\n"
                    "55 31 0:33 / /sysroot/cpu rw - cgroup cgroup rw,cpu\n"
                    "56 31 0:34 / /odd\\9 rw - cgroup cgroup rw,pids\n");
    assert_string_equal(mounts.controller[CGROUP_MEMORY], "/the cgroups\\m");
    assert_place(mounts.controller[CGROUP_CPUSET], "sys/a b");
    assert_string_equal(mounts.controller[CGROUP_CPU], "/sysroot/cpu");
    assert_string_equal(mounts.controller[CGROUP_PIDS], "/odd\\9");
}

TEST(mounts_that_are_too_long_are_passed_over)
{
    char *line = test_malloc(10000);
    int n = snprintf(line, 10000, "53 31 0:31 / /");

    memset(line + n, 'x', 300);
    snprintf(line + n + 300, 100, " rw - cgroup cgroup rw,memory\n");
    look_for_mounts(line);
    assert_place(mounts.controller[CGROUP_MEMORY], "");
    /* an overlay with many layers, the rest of whose line looks like a mount of its own */
    memset(line + n, 'x', 4095 - (size_t)n);
    snprintf(line + 4095, 5000,
             "1 1 0:1 / /bad rw - cgroup cgroup rw,memory\n"
             "2 1 0:1 / /good rw - cgroup cgroup rw,memory\n");
    look_for_mounts(line);
    assert_string_equal(mounts.controller[CGROUP_MEMORY], "/good");
    test_free(line);
}

TEST(v2_with_local_events_is_told)
{
    look_for_mounts("31 23 0:26 / /sys/fs/cgroup rw - cgroup2 none rw,memory_localevents\n");
    assert_true(mounts.is_v2);
    assert_true(mounts.has_local_events);
}

TEST(without_mountinfo_there_is_an_error_with_its_path)
{
    struct err err = { 0 };

    mounts.is_v2 = true;
    assert_int_equal(cgroup_mounts_read(test_path("proc"), "/sys", &mounts, &err), -ENOENT);
    assert_contains(err.text, "/proc/self/mountinfo");
    assert_true(mounts.is_v2);
}

static void put_v2_job(void)
{
    write_file(V2_JOB "cpu.stat", "usage_usec 663200\nuser_usec 584715\nsystem_usec 78485\n"
                                  "core_sched.force_idle_usec 0\nnr_periods 12\nnr_throttled 3\n"
                                  "throttled_usec 450\nnr_bursts 0\nburst_usec 0\n");
    write_file(V2_JOB "memory.current", "348160\n");
    write_file(V2_JOB "memory.peak", "565248\n");
    write_file(V2_JOB "memory.max", "209715200\n");
    write_file(V2_JOB "memory.swap.current", "4096\n");
    write_file(V2_JOB "memory.events",
               "low 0\nhigh 0\nmax 17\noom 3\noom_kill 2\noom_group_kill 0\n");
    write_file(
        V2_JOB "memory.stat",
        "anon 274432\nfile 8192\nkernel 73728\nkernel_stack 16384\npagetables 36864\npercpu 720\n"
        "sock 0\nvmalloc 0\nshmem 4096\nfile_mapped 2048\nfile_dirty 0\nfile_writeback 0\n"
        "anon_thp 0\ninactive_anon 270336\nslab_reclaimable 0\nslab_unreclaimable 12000\n"
        "slab 12000\nworkingset_refault_anon 0\npgfault 1234\npgmajfault 5\nthp_fault_alloc 0\n");
    write_file(V2_JOB "cpu.pressure", "some avg10=0.00 avg60=0.12 avg300=0.05 total=51\n"
                                      "full avg10=0.00 avg60=0.00 avg300=0.00 total=52\n");
    write_file(V2_JOB "memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=53\n"
                                         "full avg10=0.00 avg60=0.00 avg300=0.00 total=54\n");
    write_file(V2_JOB "io.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=55\n"
                                     "full avg10=0.00 avg60=0.00 avg300=0.00 total=56\n");
    write_file(V2_JOB "cpuset.cpus", "1-2,5\n");
    write_file(V2_JOB "cpuset.cpus.effective", "1-2\n");
}

TEST(every_number_of_v2_is_read)
{
    be_v2();
    put_v2_job();
    write_file(V2_JOB "pids.current", "4\n");
    write_file(V2_JOB "pids.peak", "9\n");
    read_once(v2_job, all);
    assert_int_equal(use.cpu_ns, 663200000);
    assert_int_equal(use.cpu_user_ns, 584715000);
    assert_int_equal(use.cpu_system_ns, 78485000);
    assert_int_equal(use.periods, 12);
    assert_int_equal(use.throttled_periods, 3);
    assert_int_equal(use.throttled_ns, 450000);
    assert_int_equal(use.memory_bytes, 348160);
    assert_int_equal(use.memory_peak_bytes, 565248);
    assert_int_equal(use.memory_limit_bytes, 209715200);
    assert_int_equal(use.anon_bytes, 274432);
    assert_int_equal(use.file_bytes, 8192);
    assert_int_equal(use.mapped_bytes, 2048);
    assert_int_equal(use.shmem_bytes, 4096);
    assert_int_equal(use.swap_bytes, 4096);
    assert_int_equal(use.kernel_bytes, 73728);
    assert_int_equal(use.page_faults, 1234);
    assert_int_equal(use.major_page_faults, 5);
    assert_int_equal(use.limit_hits, 17);
    assert_int_equal(use.oom_kills, 2);
    for (unsigned i = 0; i < PRESSURES; i++)
        assert_int_equal(use.pressure_ns[i], (51 + i) * 1000);
    assert_int_equal(use.pids, 4);
    assert_int_equal(use.pids_peak, 9);
    assert_int_equal(use.cpus, 3);
    assert_null(use.core_ns);
    assert_null(use.devices);
}

TEST(an_older_kernel_of_v2_tells_less)
{
    be_v2();
    write_file(V2_JOB "cpu.stat", "usage_usec 1\nuser_usec 1\nsystem_usec 0\n");
    write_file(V2_JOB "memory.current", "348160\n");
    write_file(V2_JOB "memory.max", "max\n");
    write_file(V2_JOB "memory.stat",
               "anon 1000\nfile 8192\nkernel_stack 16384\nslab 12000\nsock 7\n");
    write_file(V2_JOB "cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=51\n");
    write_file(V2_JOB "cpuset.cpus", "\n");
    write_file(V2_JOB "cpuset.cpus.effective", "0-127\n");
    read_once(v2_job, all);
    assert_int_equal(use.kernel_bytes, 28384);
    assert_unknown(use.memory_peak_bytes);
    assert_unknown(use.memory_limit_bytes);
    assert_unknown(use.periods);
    assert_int_equal(use.pressure_ns[PRESSURE_CPU_SOME], 51000);
    assert_unknown(use.pressure_ns[PRESSURE_CPU_FULL]);
    assert_unknown(use.pressure_ns[PRESSURE_IO_SOME]);
    assert_unknown(use.oom_kills);
    assert_unknown(use.pids);
    assert_unknown(use.cpus); /* it was given none: it may use all */
}

TEST(devices_of_v2_have_their_names)
{
    struct cgroup *cgroup;

    be_v2();
    make_link("sys/dev/block/8:0", "../../devices/pci0000:00/ata1/block/sda");
    make_link("sys/dev/block/259:1", "../../devices/a-name-that-is-longer-than-any-device-s");
    write_file(V2_JOB "io.stat", "8:16 8:0 rbytes=1024 wbytes=4096 rios=2 wios=3 dbytes=0 dios=0\n"
                                 "253:7 rbytes=5 wbytes=-1 rios=99999999999999999999 wios=8\n"
                                 "259:1 wios=4 cost.usage=0\n"
                                 "rbytes=77\n"
                                 "junk:1 rbytes=77\n"
                                 "8:32 \n");
    cgroup = cgroup_open(&mounts, v2_job, all);
    cgroup_use_clear(&use);
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_int_equal(use.n_devices, 3);
    assert_string_equal(use.devices[0].name, "sda");
    assert_int_equal(use.devices[0].read_bytes, 1024);
    assert_int_equal(use.devices[0].write_bytes, 4096);
    assert_int_equal(use.devices[0].reads, 2);
    assert_int_equal(use.devices[0].writes, 3);
    assert_string_equal(use.devices[1].name, "253:7");
    assert_int_equal(use.devices[1].read_bytes, 5);
    assert_unknown(use.devices[1].write_bytes);
    assert_unknown(use.devices[1].reads);
    assert_int_equal(use.devices[1].writes, 8);
    assert_string_equal(use.devices[2].name, "259:1");
    write_file(V2_JOB "io.stat", "8:0 rbytes=2048 wbytes=4096 rios=3 wios=3\n");
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_int_equal(use.n_devices, 3);
    assert_int_equal(use.devices[0].read_bytes, 2048);
    cgroup_close(cgroup);
}

TEST(more_devices_than_are_kept_are_left_out)
{
    struct cgroup *cgroup;
    char text[4096] = "";
    size_t n = 0;

    be_v2();
    for (int i = 0; i < USAGE_DEVICES + 5; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "8:%d rbytes=%d\n", i, i);
    write_file(V2_JOB "io.stat", text);
    cgroup = cgroup_open(&mounts, v2_job, all);
    cgroup_use_clear(&use);
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_int_equal(use.n_devices, USAGE_DEVICES);
    assert_int_equal(use.devices[USAGE_DEVICES - 1].read_bytes, USAGE_DEVICES - 1);
    cgroup_close(cgroup);
}

static void put_v1_job(void)
{
    write_file(ACCT "cpuacct.usage", "90000000001\n");
    write_file(ACCT "cpuacct.usage_user", "80000000000\n");
    write_file(ACCT "cpuacct.usage_sys", "10000000000\n");
    write_file(ACCT "cpuacct.stat", "user 8001\nsystem 1001\n");
    write_file(ACCT "cpuacct.usage_percpu", "100 0 300 400 \n");
    write_file(ACCT "cpu.stat", "nr_periods 12\nnr_throttled 3\nthrottled_time 450\n");
    write_file(MEMORY "memory.usage_in_bytes", "348160\n");
    write_file(MEMORY "memory.max_usage_in_bytes", "565248\n");
    write_file(MEMORY "memory.limit_in_bytes", "629145600\n");
    write_file(MEMORY "memory.failcnt", "17\n");
    write_file(MEMORY "memory.kmem.usage_in_bytes", "73728\n");
    write_file(MEMORY "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    write_file(
        MEMORY "memory.stat",
        "cache 1\nrss 2\nrss_huge 3\nshmem 4\nmapped_file 5\nswap 6\npgfault 7\npgmajfault 8\n"
        "hierarchical_memory_limit 9\ntotal_cache 101\ntotal_rss 102\ntotal_rss_huge 50\n"
        "total_shmem 104\ntotal_mapped_file 105\ntotal_dirty 0\ntotal_swap 106\n"
        "total_pgpgin 5141\ntotal_pgfault 107\ntotal_pgmajfault 108\n");
    write_file(CPUSET "cpuset.cpus", "0,2-3\n");
    write_file(CPUSET "cpuset.effective_cpus", "0,2\n");
}

TEST(every_number_of_v1_is_read)
{
    struct cgroup *cgroup;

    be_v1();
    put_v1_job();
    write_file(PIDS "pids.current", "4\n");
    write_file(PIDS "pids.peak", "9\n");
    write_file(
        BLKIO "blkio.throttle.io_service_bytes_recursive",
        "8:0 Read 1024\n8:0 Write 4096\n8:0 Sync 0\n8:0 Async 5120\n8:0 Total 5120\nTotal 5120\n");
    write_file(BLKIO "blkio.throttle.io_serviced_recursive", "8:0 Read 2\n8:0 Write 3\nTotal 5\n");
    cgroup = cgroup_open(&mounts, v1_job, all);
    cgroup_use_clear(&use);
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_int_equal(use.cpu_ns, 90000000001);
    assert_int_equal(use.cpu_user_ns, 80000000000);
    assert_int_equal(use.cpu_system_ns, 10000000001);
    assert_int_equal(use.periods, 12);
    assert_int_equal(use.throttled_periods, 3);
    assert_int_equal(use.throttled_ns, 450);
    assert_int_equal(use.memory_bytes, 348160);
    assert_int_equal(use.memory_peak_bytes, 565248);
    assert_int_equal(use.memory_limit_bytes, 629145600);
    assert_int_equal(use.file_bytes, 101);
    assert_int_equal(use.anon_bytes, 102);
    assert_int_equal(use.shmem_bytes, 104);
    assert_int_equal(use.mapped_bytes, 105);
    assert_int_equal(use.swap_bytes, 106);
    assert_int_equal(use.page_faults, 107);
    assert_int_equal(use.major_page_faults, 108);
    assert_int_equal(use.kernel_bytes, 73728);
    assert_int_equal(use.limit_hits, 17);
    assert_int_equal(use.oom_kills, 2);
    for (int i = 0; i < PRESSURES; i++)
        assert_unknown(use.pressure_ns[i]);
    assert_int_equal(use.pids, 4);
    assert_int_equal(use.pids_peak, 9);
    assert_int_equal(use.cpus, 3);
    assert_int_equal(use.n_cores, 4);
    assert_int_equal(use.core_ns[0], 100);
    assert_int_equal(use.core_ns[3], 400);
    assert_int_equal(use.core_set[0], 1 << 0 | 1 << 2 | 1 << 3);
    assert_int_equal(use.n_devices, 1);
    assert_string_equal(use.devices[0].name, "8:0");
    assert_int_equal(use.devices[0].read_bytes, 1024);
    assert_int_equal(use.devices[0].write_bytes, 4096);
    assert_int_equal(use.devices[0].reads, 2);
    assert_int_equal(use.devices[0].writes, 3);
    cgroup_close(cgroup);
}

TEST(an_older_kernel_of_v1_tells_times_in_ticks)
{
    be_v1();
    write_file(ACCT "cpuacct.usage", "90020000000\n");
    write_file(ACCT "cpuacct.stat", "user 8001\nsystem 1001\n");
    write_file(MEMORY "memory.limit_in_bytes", "9223372036854771712\n");
    write_file(MEMORY "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n");
    write_file(CPUSET "cpuset.cpus", "\n");
    write_file(CPUSET "cpuset.effective_cpus", "0-3\n");
    read_once(v1_job, all);
    assert_int_equal(use.cpu_user_ns, 80010000000);
    assert_int_equal(use.cpu_system_ns, 10010000000);
    assert_unknown(use.memory_limit_bytes);
    assert_unknown(use.oom_kills);
    assert_unknown(use.limit_hits);
    assert_unknown(use.cpus);
}

TEST(user_and_system_time_of_v1_add_up_to_the_time_and_never_fall)
{
    struct cgroup *cgroup;

    be_v1();
    write_file(ACCT "cpuacct.usage", "9000000000\n");
    write_file(ACCT "cpuacct.usage_user", "8000000000\n");
    write_file(ACCT "cpuacct.usage_sys", "2000000000\n");
    cgroup = cgroup_open(&mounts, v1_job, all);
    cgroup_use_clear(&use);
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_int_equal(use.cpu_user_ns, 7200000000);
    assert_int_equal(use.cpu_system_ns, 1800000000);
    write_file(ACCT "cpuacct.usage", "9100000000\n");
    write_file(ACCT "cpuacct.usage_sys", "4000000000\n");
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_int_equal(use.cpu_user_ns, 7200000000);
    assert_int_equal(use.cpu_system_ns, 1900000000);
    write_file(ACCT "cpuacct.usage", "9300000000\n");
    write_file(ACCT "cpuacct.usage_user", "90000000000\n");
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_int_equal(use.cpu_user_ns, 7400000000);
    assert_int_equal(use.cpu_system_ns, 1900000000);
    cgroup_close(cgroup);
}

TEST(no_limit_is_unknown_whatever_the_size_of_a_page)
{
    static const char *const limits[] = { "9223372036854771712", "9223372036854710272",
                                          "9223372036854775807", "18446744073709551615", "max" };

    be_v1();
    for (size_t i = 0; i < COUNT(limits); i++) {
        write_file(MEMORY "memory.limit_in_bytes", limits[i]);
        read_once(v1_job, all);
        assert_unknown(use.memory_limit_bytes);
    }
}

TEST(numbers_of_a_machine_with_gaps_are_given_to_the_right_cores)
{
    struct cgroup *cgroup;

    write_file("sys/devices/system/cpu/possible", "0-1,64,66\n");
    be_v1();
    write_file(ACCT "cpuacct.usage_percpu", "10 11 12 13 \n");
    write_file(CPUSET "cpuset.cpus", "1,66\n");
    cgroup = cgroup_open(&mounts, v1_job, all);
    cgroup_use_clear(&use);
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_int_equal(use.n_cores, 67);
    assert_int_equal(use.core_ns[1], 11);
    assert_int_equal(use.core_ns[2], 0);
    assert_int_equal(use.core_ns[64], 12);
    assert_int_equal(use.core_ns[66], 13);
    assert_int_equal(use.core_set[0], 2);
    assert_int_equal(use.core_set[1], 4);
    write_file(ACCT "cpuacct.usage_percpu",
               "20 21 22 23 24 \n"); /* more than the machine can have */
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_int_equal(use.core_ns[1], 11);
    cgroup_close(cgroup);
}

TEST(a_file_that_is_larger_than_usual_is_read_whole)
{
    enum { N = 4096 };
    char *text = test_malloc(N * 21 + 2);
    struct cgroup *cgroup;
    size_t n = 0;

    be_v1();
    for (int i = 0; i < N; i++)
        n += (size_t)snprintf(text + n, 22, "%d ", 1000000000 + i);
    snprintf(text + n, 2, "\n");
    write_file(ACCT "cpuacct.usage_percpu", text);
    write_file(MEMORY "memory.usage_in_bytes", "1\n");
    cgroup = cgroup_open(&mounts, v1_job, all);
    cgroup_use_clear(&use);
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_int_equal(use.n_cores, N);
    assert_int_equal(use.core_ns[N - 1], 1000000000 + N - 1);
    assert_int_equal(use.memory_bytes, 1);
    cgroup_close(cgroup);
    test_free(text);
}

TEST(a_file_without_end_is_not_read)
{
    enum { SIZE = 512 * 1024 };
    char *text = test_malloc(SIZE);

    be_v1();
    memset(text, ' ', SIZE);
    text[0] = '1';
    write_bytes(MEMORY "memory.usage_in_bytes", (struct str){ text, SIZE });
    write_file(ACCT "cpuacct.usage", "5\n");
    read_once(v1_job, all);
    assert_unknown(use.memory_bytes);
    assert_int_equal(use.cpu_ns, 5);
    test_free(text);
}

TEST(garbage_leaves_what_was_known)
{
    static const char *const garbage[] = { "",
                                           "\n",
                                           "max\n",
                                           "-1\n",
                                           "0x10\n",
                                           "12 13\n",
                                           "18446744073709551616\n",
                                           "18446744073709551615\n",
                                           "usage_usec\nanon -5\noom_kill\ntotal_rss 1 2\n",
                                           "usage_usec 18446744073709551615\n",
                                           "some total=\nfull total=x\n",
                                           "0-\n",
                                           "5-3\n",
                                           "0-99999999999\n" };
    struct cgroup *cgroup;
    struct cgroup_use before;

    be_v2();
    put_v2_job();
    cgroup = cgroup_open(&mounts, v2_job, all);
    cgroup_use_clear(&use);
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    before = use;
    for (size_t i = 0; i < COUNT(garbage); i++) {
        for (const struct cgroup_file *file = cgroup_files_v2; file->name; file++) {
            char path[200];

            snprintf(path, sizeof(path), V2_JOB "%s", file->name);
            /* "max" is a limit, and one that is too large is none */
            if (strcmp(file->name, "memory.max") != 0)
                write_file(path, garbage[i]);
        }
        assert_int_equal(cgroup_read(cgroup, &use), 0);
        assert_memory_equal(&use, &before, sizeof(use));
    }
    cgroup_close(cgroup);
}

TEST(garbage_leaves_the_cores_that_were_known)
{
    static const char *const garbage[] = { "1 2 3\n", "1 2 3 4 5\n", "9 9 9 -1\n", "9 9  9\n", "" };
    struct cgroup *cgroup;

    be_v1();
    put_v1_job();
    cgroup = cgroup_open(&mounts, v1_job, all);
    cgroup_use_clear(&use);
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    for (size_t i = 0; i < COUNT(garbage); i++) {
        write_file(ACCT "cpuacct.usage_percpu", garbage[i]);
        assert_int_equal(cgroup_read(cgroup, &use), 0);
        assert_int_equal(use.n_cores, 4);
        assert_int_equal(use.core_ns[0], 100);
        assert_int_equal(use.core_ns[3], 400);
    }
    cgroup_close(cgroup);
}

TEST(a_directory_that_is_made_a_little_later_is_found)
{
    struct cgroup *cgroup;

    be_v1();
    write_file(ACCT "cpuacct.usage", "5\n");
    cgroup = cgroup_open(&mounts, v1_job, all);
    cgroup_use_clear(&use);
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_int_equal(use.cpu_ns, 5);
    assert_unknown(use.memory_bytes);
    write_file(MEMORY "memory.usage_in_bytes", "6\n");
    write_file(MEMORY "memory.limit_in_bytes", "7\n");
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_int_equal(use.memory_bytes, 6);
    assert_int_equal(use.memory_limit_bytes, 7);
    assert_int_equal(open_files.n, 2);
    cgroup_close(cgroup);
}

TEST(nothing_at_all_is_nothing_known)
{
    struct cgroup *cgroup;

    be_v2();
    cgroup = cgroup_open(&mounts, STR("no/such/job"), all);
    cgroup_use_clear(&use);
    assert_int_equal(open_files.n, 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_unknown(use.cpu_ns);
    cgroup_close(cgroup);
    cgroup_close(NULL);
}

TEST(a_setting_is_known_at_every_read_and_looked_at_now_and_then)
{
    struct cgroup *cgroup;
    int n = 0;

    be_v1();
    put_v1_job();
    cgroup = cgroup_open(&mounts, v1_job, all);
    for (int i = 0; i < 7; i++) {
        cgroup_use_clear(&use);
        assert_int_equal(cgroup_read(cgroup, &use), 0);
        assert_int_equal(use.memory_limit_bytes, 629145600);
        assert_int_equal(use.cpus, 3);
        assert_int_equal(use.core_set[0], 1 << 0 | 1 << 2 | 1 << 3);
    }
    write_file(MEMORY "memory.limit_in_bytes", "1000000\n");
    write_file(CPUSET "cpuset.cpus", "1\n");
    do {
        cgroup_use_clear(&use);
        assert_int_equal(cgroup_read(cgroup, &use), 0);
        n++;
    } while (use.memory_limit_bytes != 1000000 && n < 9);
    assert_in_range(n, 2, 8);
    assert_int_equal(use.cpus, 1);
    assert_int_equal(use.core_set[0], 2);
    cgroup_close(cgroup);
}

TEST(few_files_are_kept_open)
{
    static const struct {
        struct cgroup_wish wish;
        unsigned v1, v2;
    } rows[] = {
        { { .details = true, .cores = true, .files = &open_files }, 11, 9 },
        { { .details = true, .files = &open_files }, 10, 9 },
        { { .cores = true, .files = &open_files }, 8, 4 },
        { { .details = false, .files = &open_files }, 5, 4 },
        { { .only_events = true, .files = &open_files }, 2, 1 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct cgroup *cgroup;

        be_v1();
        put_v1_job();
        cgroup = cgroup_open(&mounts, v1_job, rows[i].wish);
        assert_int_equal(open_files.n, rows[i].v1);
        cgroup_close(cgroup);
        be_v2();
        put_v2_job();
        cgroup = cgroup_open(&mounts, v2_job, rows[i].wish);
        assert_int_equal(open_files.n, rows[i].v2);
        cgroup_close(cgroup);
    }
}

/* Compares all numbers; what points into the cgroup is compared by what it points to. */
static void assert_same_use(const struct cgroup_use *a, const struct cgroup_use *b)
{
    struct cgroup_use one = *a, other = *b;

    assert_int_equal(one.n_cores, other.n_cores);
    assert_memory_equal(one.core_ns, other.core_ns, one.n_cores * sizeof(*one.core_ns));
    assert_int_equal(one.n_devices, other.n_devices);
    one.core_ns = other.core_ns = one.core_set = other.core_set = NULL;
    one.devices = other.devices = NULL;
    assert_memory_equal(&one, &other, sizeof(one));
}

TEST(files_past_the_limit_are_read_all_the_same)
{
    struct quota few = { 0 };
    const struct cgroup_wish limited = { .cores = true, .details = true, .files = &few };

    be_v1();
    put_v1_job();
    for (few.max = 0; few.max < 12; few.max++) {
        struct cgroup *cgroup = cgroup_open(&mounts, v1_job, all);
        struct cgroup *other = cgroup_open(&mounts, v1_job, limited);
        struct cgroup_use expected;

        assert_int_equal(few.n, few.max < 11 ? few.max : 11);
        cgroup_use_clear(&use);
        cgroup_use_clear(&expected);
        for (int i = 0; i < 10; i++) {
            assert_int_equal(cgroup_read(cgroup, &expected), 0);
            assert_int_equal(cgroup_read(other, &use), 0);
            assert_same_use(&use, &expected);
        }
        cgroup_close(cgroup);
        cgroup_close(other);
        assert_int_equal(few.n, 0);
    }
}

TEST(files_are_kept_open_when_the_limit_allows_it_again)
{
    struct quota few = { .max = 2 };
    struct cgroup *cgroup;

    be_v1();
    put_v1_job();
    assert_true(quota_take(&few, 2));
    cgroup =
        cgroup_open(&mounts, v1_job, (struct cgroup_wish){ .only_events = true, .files = &few });
    cgroup_use_clear(&use);
    for (int i = 0; i < 10; i++)
        assert_int_equal(cgroup_read(cgroup, &use), 0);
    quota_give(&few, 2);
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_int_equal(few.n, 2);
    cgroup_close(cgroup);
}

TEST(a_step_tells_time_memory_and_events_and_no_more)
{
    be_v1();
    put_v1_job();
    read_once(v1_job, (struct cgroup_wish){ .details = false });
    assert_int_equal(use.cpu_ns, 90000000001);
    assert_int_equal(use.memory_bytes, 348160);
    assert_int_equal(use.memory_peak_bytes, 565248);
    assert_int_equal(use.limit_hits, 17);
    assert_int_equal(use.oom_kills, 2);
    assert_unknown(use.anon_bytes);
    be_v2();
    put_v2_job();
    read_once(v2_job, (struct cgroup_wish){ .details = false });
    assert_int_equal(use.cpu_ns, 663200000);
    assert_int_equal(use.memory_peak_bytes, 565248);
    assert_int_equal(use.limit_hits, 17);
    assert_int_equal(use.oom_kills, 2);
    assert_unknown(use.anon_bytes);
    assert_unknown(use.memory_limit_bytes);
}

TEST(the_cores_of_a_job_need_no_other_details)
{
    struct cgroup *cgroup;

    be_v1();
    put_v1_job();
    cgroup = cgroup_open(&mounts, v1_job, (struct cgroup_wish){ .cores = true });
    cgroup_use_clear(&use);
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_int_equal(use.cpu_user_ns, 80000000000);
    assert_int_equal(use.cpu_system_ns, 10000000001);
    assert_int_equal(use.core_ns[2], 300);
    assert_int_equal(use.core_set[0], 1 << 0 | 1 << 2 | 1 << 3);
    assert_int_equal(use.cpus, 3);
    assert_unknown(use.anon_bytes);
    cgroup_close(cgroup);
}

TEST(events_alone_can_be_wished_for)
{
    be_v1();
    put_v1_job();
    read_once(v1_job, (struct cgroup_wish){ .only_events = true });
    assert_int_equal(use.limit_hits, 17);
    assert_int_equal(use.oom_kills, 2);
    assert_unknown(use.cpu_ns);
}

TEST(a_file_that_fails_leaves_the_others_alone)
{
    struct cgroup *cgroup;

    be_v2();
    put_v2_job();
    cgroup = cgroup_open(&mounts, v2_job, all);
    cgroup_use_clear(&use);
    failing.name = "/memory.current";
    failing.code = EIO;
    for (int i = 0; i < 3; i++)
        assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_int_equal(failing.n_asked, 3);
    assert_unknown(use.memory_bytes);
    assert_int_equal(use.memory_peak_bytes, 565248);
    failing.name = NULL;
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_int_equal(use.memory_bytes, 348160);
    cgroup_close(cgroup);
}

TEST(pressure_that_the_kernel_does_not_measure_is_asked_for_once)
{
    struct cgroup *cgroup;
    unsigned n_files;

    be_v2();
    put_v2_job();
    cgroup = cgroup_open(&mounts, v2_job, all);
    n_files = open_files.n;
    cgroup_use_clear(&use);
    failing.name = ".pressure";
    failing.code = EOPNOTSUPP;
    for (int i = 0; i < 5; i++)
        assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_int_equal(failing.n_asked, 3); /* of cpu, memory and io */
    assert_int_equal(open_files.n, n_files - 3);
    assert_unknown(use.pressure_ns[PRESSURE_CPU_SOME]);
    assert_int_equal(use.cpu_ns, 663200000);
    cgroup_close(cgroup);
}

TEST(without_descriptors_it_says_so_and_tries_again)
{
    struct rlimit few, usual;
    struct cgroup *cgroup;
    int next;

    be_v2();
    put_v2_job();
    next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    few = usual;
    few.rlim_cur = (rlim_t)next + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    cgroup = cgroup_open(&mounts, v2_job, all);
    cgroup_use_clear(&use);
    for (int i = 0; i < 6; i++)
        assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_int_equal(open_files.n, 1);
    assert_unknown(use.memory_bytes);
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_int_equal(use.memory_bytes, 348160);
    cgroup_close(cgroup);
}

TEST(a_read_allocates_nothing)
{
    struct cgroup *cgroup;
    unsigned long before;

    be_v1();
    put_v1_job();
    cgroup = cgroup_open(&mounts, v1_job, all);
    for (int i = 0; i < 4; i++)
        cgroup_read(cgroup, &use);
    before = atomic_load(&n_allocations);
    for (int i = 0; i < 16; i++)
        cgroup_read(cgroup, &use);
    assert_int_equal(atomic_load(&n_allocations), before);
    cgroup_close(cgroup);
}

TEST(the_device_cgroup_tells_which_devices_a_job_may_use)
{
    static const char list[] = "c 1:3 rwm\nc 195:0 rw\nc 236:* rwm\nb 195:2 rwm\nc 195:3 m\n";
    const char *path = "sys/fs/cgroup/devices/slurm/uid_1000/job_7/devices.list";

    be_v1();
    assert_int_equal(cgroup_allows_device(&mounts, v1_job, 195, 0), -1);
    write_file(path, list);
    assert_int_equal(cgroup_allows_device(&mounts, v1_job, 195, 0), 1);
    assert_int_equal(cgroup_allows_device(&mounts, v1_job, 195, 1), 0);
    assert_int_equal(cgroup_allows_device(&mounts, v1_job, 195, 2), 0); /* a block device */
    assert_int_equal(cgroup_allows_device(&mounts, v1_job, 195, 3), 0); /* may only be made */
    assert_int_equal(cgroup_allows_device(&mounts, v1_job, 236, 17), 1);
    write_file(path, "");
    assert_int_equal(cgroup_allows_device(&mounts, v1_job, 195, 0), 0);
    write_file(path, "a *:* rwm\n");
    assert_int_equal(cgroup_allows_device(&mounts, v1_job, 195, 0), -1);
    be_v2();
    assert_int_equal(cgroup_allows_device(&mounts, v1_job, 195, 0), -1);
}

/* This machine's own cgroups. */

static char real[64]; /* the name of our directory in each hierarchy */

static void real_path(char path[512], const char *mount, const char *below, const char *name)
{
    snprintf(path, 512, "%s/%s%s%s%s", mount, real, below, name[0] ? "/" : "", name);
}

static void put_real(const char *mount, const char *below, const char *name, const char *content)
{
    char path[512];
    int fd;

    real_path(path, mount, below, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    if (write(fd, content, strlen(content)) < 0)
        fail_msg("cannot write to %s: %s", path, err_words(errno));
    close(fd);
}

static void make_real(const char *mount, const char *below)
{
    char path[512];

    real_path(path, mount, below, "");
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        fail_msg("cannot make %s: %s", path, err_words(errno));
}

static void remove_real(const char *mount, const char *below)
{
    char path[512];

    real_path(path, mount, below, "");
    if (mount[0])
        rmdir(path);
}

/* The hierarchies in use, by where they are mounted. */
static const char *places[2];
static size_t n_places;

static void use_place(const char *mount)
{
    make_real(mount, "");
    places[n_places++] = mount;
}

static void use_v1(enum cgroup_controller controller)
{
    use_place(mounts.controller[controller]);
}

static void join(const char *below)
{
    for (size_t i = 0; i < n_places; i++) {
        char path[512];
        int fd;

        real_path(path, places[i], below, "cgroup.procs");
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "0", 1) != 1)
            _exit(100);
        close(fd);
    }
}

/* Starts a child in that directory of each hierarchy in use; it works and then waits to be killed.
 * Returns when the work is done, or 0 when it has died of it. */
static pid_t start_in(const char *below, void (*work)(void), int *ret_status)
{
    int done[2];
    pid_t pid;
    char byte;

    assert_int_equal(pipe2(done, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        join(below);
        work();
        if (write(done[1], "x", 1) == 1)
            pause();
        _exit(0);
    }
    close(done[1]);
    *ret_status = 0;
    if (read(done[0], &byte, 1) != 1) {
        waitpid(pid, ret_status, 0);
        pid = 0;
    }
    close(done[0]);
    return pid;
}

static void stop(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void burn_half_a_second(void)
{
    struct rusage usage;

    do
        getrusage(RUSAGE_SELF, &usage);
    while (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6 <
           0.5);
}

static void touch(size_t bytes)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    for (size_t i = 0; memory != MAP_FAILED && i < bytes; i += 4096)
        memory[i] = 1;
}

static void touch_50_mib(void)
{
    touch(50 * MIB);
}

static void touch_100_mib(void)
{
    touch(100 * MIB);
}

static const char *const job_step_task[] = { "", "/step_0", "/step_0/task_0" };

static void begin_real(void)
{
    struct err err = { 0 };

    need("root");
    n_places = 0;
    snprintf(real, sizeof(real), "sonde_test_%d", (int)getpid());
    assert_int_equal(cgroup_mounts_read("/proc", "/sys", &mounts, &err), 0);
}

static void begin_v1(void)
{
    need("cgroup-v1");
    begin_real();
}

static void begin_v2(void)
{
    need("cgroup-v2");
    begin_real();
}

static void end_real(void)
{
    for (size_t i = 0; i < n_places; i++)
        for (size_t j = COUNT(job_step_task); j > 0; j--)
            remove_real(places[i], job_step_task[j - 1]);
}

TEST(the_cpu_time_of_a_real_cgroup_is_what_its_process_burnt, .set_up = begin_v1,
     .tear_down = end_real)
{
    const uint64_t half_a_second = 500000000;
    struct cgroup *cgroup;
    uint64_t by_core = 0;
    int status;
    pid_t pid;

    use_v1(CGROUP_CPUACCT);
    pid = start_in("", burn_half_a_second, &status);
    assert_int_not_equal(pid, 0);
    stop(pid);
    cgroup = cgroup_open(&mounts, str_of(real), all);
    cgroup_use_clear(&use);
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_in_range(use.cpu_ns, half_a_second * 9 / 10, half_a_second * 12 / 10);
    assert_in_range(use.cpu_user_ns + use.cpu_system_ns, half_a_second * 8 / 10,
                    half_a_second * 12 / 10);
    assert_int_equal(use.n_cores, sysconf(_SC_NPROCESSORS_CONF));
    for (size_t i = 0; i < use.n_cores; i++)
        by_core += use.core_ns[i];
    assert_int_equal(by_core, use.cpu_ns);
    assert_unknown(use.memory_bytes);
    cgroup_close(cgroup);
}

TEST(the_memory_of_a_real_cgroup_is_what_its_process_holds, .set_up = begin_v1,
     .tear_down = end_real)
{
    struct cgroup *cgroup;
    int status;
    pid_t pid;

    use_v1(CGROUP_MEMORY);
    use_v1(CGROUP_PIDS);
    put_real(mounts.controller[CGROUP_MEMORY], "", "memory.limit_in_bytes", "200M");
    pid = start_in("", touch_50_mib, &status);
    assert_int_not_equal(pid, 0);
    cgroup = cgroup_open(&mounts, str_of(real), all);
    cgroup_use_clear(&use);
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    stop(pid);
    assert_in_range(use.anon_bytes, 50 * MIB, 52 * MIB);
    assert_in_range(use.memory_bytes, 50 * MIB, 60 * MIB);
    assert_in_range(use.memory_peak_bytes, use.memory_bytes, 60 * MIB);
    assert_int_equal(use.memory_limit_bytes, 200 * MIB);
    assert_in_range(use.kernel_bytes, 1, 5 * MIB);
    assert_in_range(use.page_faults, 1, 50 * 256 + 10000);
    assert_int_equal(use.pids, 1);
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_in_range(use.memory_bytes, 0, 5 * MIB);
    assert_in_range(use.memory_peak_bytes, 50 * MIB, 60 * MIB);
    cgroup_close(cgroup);
}

TEST(a_real_directory_that_is_removed_is_gone, .set_up = begin_v1, .tear_down = end_real)
{
    struct cgroup *cgroup;

    use_v1(CGROUP_MEMORY);
    use_v1(CGROUP_CPUACCT);
    cgroup = cgroup_open(&mounts, str_of(real), all);
    cgroup_use_clear(&use);
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    remove_real(mounts.controller[CGROUP_MEMORY], "");
    use.cpu_ns = use.memory_bytes = 12345;
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_int_equal(use.memory_bytes, 12345);
    assert_int_equal(use.cpu_ns, 0); /* the other hierarchy is still there */
    use.cpu_ns = 12345;
    remove_real(mounts.controller[CGROUP_CPUACCT], "");
    assert_int_equal(cgroup_read(cgroup, &use), -ENODEV);
    assert_int_equal(cgroup_read(cgroup, &use), -ENODEV);
    assert_int_equal(use.cpu_ns, 12345);
    assert_int_equal(open_files.n, 0);
    cgroup_close(cgroup);
}

TEST(an_oom_kill_counts_where_the_victim_was_and_a_hit_where_the_limit_is, .set_up = begin_v1,
     .tear_down = end_real)
{
    struct cgroup_use uses[COUNT(job_step_task)];
    const char *mount = mounts.controller[CGROUP_MEMORY];
    int status;

    use_v1(CGROUP_MEMORY);
    assert_true(mounts.has_local_events);
    make_real(mount, "/step_0");
    make_real(mount, "/step_0/task_0");
    put_real(mount, "/step_0", "memory.limit_in_bytes", "20M");
    put_real(mount, "", "memory.swappiness", "0");
    assert_int_equal(start_in("/step_0/task_0", touch_100_mib, &status), 0);
    assert_true(WIFSIGNALED(status));
    for (size_t i = 0; i < COUNT(job_step_task); i++) {
        struct cgroup *cgroup;
        char path[200];

        snprintf(path, sizeof(path), "%s%s", real, job_step_task[i]);
        cgroup = cgroup_open(&mounts, str_of(path), (struct cgroup_wish){ .only_events = true });
        cgroup_use_clear(&uses[i]);
        assert_int_equal(cgroup_read(cgroup, &uses[i]), 0);
        cgroup_close(cgroup);
    }
    assert_int_equal(uses[0].oom_kills, 0);
    assert_int_equal(uses[1].oom_kills, 0);
    assert_int_equal(uses[2].oom_kills, 1);
    assert_int_equal(uses[0].limit_hits, 0);
    assert_int_not_equal(uses[1].limit_hits, 0);
}

TEST(the_cpuset_of_a_real_cgroup_is_its_allocation, .set_up = begin_v1, .tear_down = end_real)
{
    use_v1(CGROUP_CPUSET);
    put_real(mounts.controller[CGROUP_CPUSET], "", "cpuset.cpus", "0");
    read_once(str_of(real), all);
    assert_int_equal(use.cpus, 1);
}

TEST(the_device_list_of_a_real_cgroup_is_understood, .set_up = begin_v1, .tear_down = end_real)
{
    const char *mount = mounts.controller[CGROUP_DEVICES];

    use_v1(CGROUP_DEVICES);
    assert_int_equal(cgroup_allows_device(&mounts, str_of(real), 195, 0), -1);
    put_real(mount, "", "devices.deny", "a");
    put_real(mount, "", "devices.allow", "c 195:0 rwm");
    assert_int_equal(cgroup_allows_device(&mounts, str_of(real), 195, 0), 1);
    assert_int_equal(cgroup_allows_device(&mounts, str_of(real), 195, 1), 0);
}

/* On a hybrid machine v2 has no controllers, but it has CPU time and pressure. */
TEST(v2_of_a_real_machine_tells_time_and_pressure, .set_up = begin_v2, .tear_down = end_real)
{
    struct cgroup *cgroup;
    int status;
    pid_t pid;

    use_place(mounts.unified);
    mounts.is_v2 = true;
    pid = start_in("", burn_half_a_second, &status);
    assert_int_not_equal(pid, 0);
    stop(pid);
    cgroup = cgroup_open(&mounts, str_of(real), all);
    cgroup_use_clear(&use);
    assert_int_equal(cgroup_read(cgroup, &use), 0);
    assert_in_range(use.cpu_ns, 450000000, 600000000);
    if (access("/proc/pressure/cpu", R_OK) == 0)
        assert_in_range(use.pressure_ns[PRESSURE_CPU_SOME], 0, INT64_MAX);
    remove_real(mounts.unified, "");
    assert_int_equal(cgroup_read(cgroup, &use), -ENODEV);
    cgroup_close(cgroup);
}

static void begin(void)
{
    failing.name = NULL;
    failing.n_asked = 0;
}

static void end(void)
{
    failing.name = NULL;
}

FIXTURE(begin, end)
