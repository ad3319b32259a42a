/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Table of the cgroup files, and their parsers. */
#include "source/cgroup_files.h"

#include "base/arena.h"
#include "base/num.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PER_USEC UINT64_C(1000)
#define PER_TICK UINT64_C(10000000) /* of USER_HZ, which is 100 wherever Slurm runs */

/* v1 says "no limit" by the largest number of pages: a little less than 2^63, by page size. */
#define NO_LIMIT (UINT64_C(1) << 62)

enum {
    NUMBERS_MAX = 16,
    FIRST_DEVICES = 4, /* room: there are many jobs, and most use few */
};

struct device_number {
    uint32_t major, minor;
};

static uint64_t *place_in(void *use, const struct cgroup_number *number)
{
    return (void *)((char *)use + number->offset);
}

static bool get_scaled(struct str text, uint64_t scale, uint64_t *ret)
{
    uint64_t value;

    if (!num_get_u64(text, &value) || __builtin_mul_overflow(value, scale, &value) ||
        value == MODEL_UNKNOWN_U64)
        return false;
    *ret = value;
    return true;
}

/* The row of that key, or the one that ends the table. */
static const struct cgroup_number *find_number(const struct cgroup_file *file, struct str key)
{
    const struct cgroup_number *number = file->numbers;

    while (number->scale && !str_eq(number->key, key))
        number++;
    return number;
}

/* "4096" */
static bool read_number(const struct cgroup_file *file, struct str text, struct cgroup_kept *kept,
                        struct cgroup_use *use)
{
    (void)kept;
    return get_scaled(str_trim(text), file->numbers->scale, place_in(use, file->numbers));
}

/* "1073741824" or "max" */
static bool read_limit(const struct cgroup_file *file, struct str text, struct cgroup_kept *kept,
                       struct cgroup_use *use)
{
    struct str word = str_trim(text);
    uint64_t limit = NO_LIMIT;

    (void)kept;
    if (!str_eq(word, STR("max")) && !num_get_u64(word, &limit))
        return false;
    *place_in(use, file->numbers) = limit < NO_LIMIT ? limit : MODEL_UNKNOWN_U64;
    return true;
}

/* "usage_usec 1234" on each line, in any order, with others between them. */
static bool read_keys(const struct cgroup_file *file, struct str text, struct cgroup_kept *kept,
                      struct cgroup_use *use)
{
    const struct cgroup_number *number;
    uint64_t value[NUMBERS_MAX], sum = 0;
    bool has_any = false;

    (void)kept;
    memset(value, 0xff, sizeof(value));
    for (struct str line, rest = text; rest.p;) {
        line = str_cut(&rest, '\n');
        number = find_number(file, str_cut(&line, ' '));
        if (number->scale && line.p)
            has_any |= get_scaled(line, number->scale, &value[number - file->numbers]);
    }
    for (number = file->numbers; number->scale; number++) {
        uint64_t found = value[number - file->numbers];

        if (found != MODEL_UNKNOWN_U64)
            *place_in(use, number) = number->is_part ? sum += found : found;
    }
    return has_any;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234" */
static bool read_pressure(const struct cgroup_file *file, struct str text, struct cgroup_kept *kept,
                          struct cgroup_use *use)
{
    const struct str total = STR("total=");
    bool has_any = false;

    (void)kept;
    for (struct str line, rest = text; rest.p;) {
        const struct cgroup_number *number;

        line = str_cut(&rest, '\n');
        number = find_number(file, str_cut(&line, ' '));
        for (struct str word; number->scale && line.p;) {
            word = str_cut(&line, ' ');
            if (str_starts(word, total))
                has_any |=
                    get_scaled(str_skip(word, total.n), number->scale, place_in(use, number));
        }
    }
    return has_any;
}

static bool get_core(struct str text, uint64_t *ret)
{
    return num_get_u64(text, ret) && *ret < CGROUP_CORES;
}

int cgroup_core_list(struct str text, uint64_t ret[CGROUP_CORES / 64])
{
    uint64_t set[CGROUP_CORES / 64] = { 0 }, first, last;
    int n = 0;

    for (struct str rest = text; rest.n;) {
        struct str range = str_cut(&rest, ',');
        struct str begin = str_cut(&range, '-');

        if (!get_core(begin, &first) || !get_core(range.p ? range : begin, &last) || last < first)
            return -1;
        for (uint64_t core = first; core <= last; core++)
            set[core / 64] |= UINT64_C(1) << core % 64;
    }
    for (size_t i = 0; i < COUNT(set); i++)
        n += __builtin_popcountll(set[i]);
    memcpy(ret, set, sizeof(set));
    return n;
}

/* An empty list says nothing: the cgroup then has the cores of the one above it. */
static bool read_core_set(const struct cgroup_file *file, struct str text, struct cgroup_kept *kept,
                          struct cgroup_use *use)
{
    uint64_t set[CGROUP_CORES / 64];
    int n = cgroup_core_list(str_trim(text), set);

    (void)file;
    if (n <= 0)
        return false;
    use->cpus = (uint64_t)n;
    if (kept->n_cores) {
        size_t words = (kept->n_cores + 63) / 64;

        if (!kept->core_set)
            kept->core_set = heap_array(words, sizeof(*kept->core_set));
        memcpy(kept->core_set, set, words * sizeof(*kept->core_set));
    }
    return true;
}

/* The first core from that one on that the machine may have; CGROUP_CORES: there is none. */
static size_t next_core(const struct cgroup_kept *kept, size_t core)
{
    const uint64_t *cores = kept->mounts->cores;

    while (core < CGROUP_CORES && !(cores[core / 64] >> core % 64 & 1))
        core++;
    return core;
}

static bool tells_cores(const struct cgroup_mounts *mounts)
{
    for (size_t i = 0; i < COUNT(mounts->cores); i++)
        if (mounts->cores[i])
            return true;
    return false;
}

/* One number for each core that the machine may have, "1234 0 99 ". Returns up to which core; 0 if
 * that is not what it is. `ret` may be NULL. */
static size_t core_times(struct str text, const struct cgroup_kept *kept, uint64_t *ret)
{
    bool has_gaps = tells_cores(kept->mounts);
    size_t n = 0;
    uint64_t time_ns;

    for (struct str rest = str_trim(text); rest.p;) {
        size_t core = has_gaps ? next_core(kept, n) : n;

        if (core >= CGROUP_CORES || !get_scaled(str_cut(&rest, ' '), 1, &time_ns))
            return 0;
        if (ret)
            ret[core] = time_ns;
        n = core + 1;
    }
    return n;
}

static bool read_cores(const struct cgroup_file *file, struct str text, struct cgroup_kept *kept,
                       struct cgroup_use *use)
{
    size_t n = core_times(text, kept, NULL);

    (void)file;
    if (n == 0 || (kept->n_cores && n != kept->n_cores))
        return false;
    if (!kept->core_ns)
        kept->core_ns = heap_alloc(n * sizeof(*kept->core_ns));
    kept->n_cores = n;
    core_times(text, kept, kept->core_ns);
    use->core_ns = kept->core_ns;
    use->n_cores = n;
    return true;
}

static bool get_u32(struct str text, uint32_t *ret)
{
    uint64_t value;

    if (!num_get_u64(text, &value) || value > UINT32_MAX)
        return false;
    *ret = (uint32_t)value;
    return true;
}

/* "8:0" */
static bool get_device(struct str text, struct device_number *ret)
{
    struct str major = str_cut(&text, ':');

    return get_u32(major, &ret->major) && text.p && get_u32(text, &ret->minor);
}

/* sysfs has a link named by the number, to a directory named as the device is. */
static void name_device(const struct cgroup_mounts *mounts, struct device_number number,
                        char name[32])
{
    char path[300], target[512];
    const char *slash;
    ssize_t n;

    snprintf(name, 32, "%u:%u", number.major, number.minor);
    snprintf(path, sizeof(path), "%s/dev/block/%s", mounts->sys, name);
    n = readlink(path, target, sizeof(target) - 1);
    if (n <= 0 || n == sizeof(target) - 1)
        return;
    target[n] = '\0';
    slash = strrchr(target, '/');
    if (slash && slash[1] && strlen(slash + 1) < 32)
        snprintf(name, 32, "%s", slash + 1);
}

static struct device_use *add_device(struct cgroup_kept *kept, struct device_number number)
{
    struct device_use *device;

    if (kept->n_devices == kept->n_device_room) {
        size_t room = kept->n_device_room ? 2 * kept->n_device_room : FIRST_DEVICES;

        kept->numbers = heap_resize(kept->numbers, room, sizeof(*kept->numbers));
        kept->devices = heap_resize(kept->devices, room, sizeof(*kept->devices));
        kept->n_device_room = room;
    }
    kept->numbers[kept->n_devices] = number;
    device = &kept->devices[kept->n_devices++];
    *device = (struct device_use){ "", MODEL_UNKNOWN_U64, MODEL_UNKNOWN_U64, MODEL_UNKNOWN_U64,
                                   MODEL_UNKNOWN_U64 };
    name_device(kept->mounts, number, device->name);
    return device;
}

/* NULL: there are too many. */
static struct device_use *find_device(struct cgroup_kept *kept, struct device_number number)
{
    for (size_t i = 0; i < kept->n_devices; i++)
        if (kept->numbers[i].major == number.major && kept->numbers[i].minor == number.minor)
            return &kept->devices[i];
    return kept->n_devices < USAGE_DEVICES ? add_device(kept, number) : NULL;
}

/* False if nothing was to be kept of it. */
static bool put_device(const struct cgroup_file *file, struct cgroup_kept *kept,
                       struct device_number device, struct str key, struct str text)
{
    const struct cgroup_number *number = find_number(file, key);
    struct device_use *use;
    uint64_t value;

    if (!number->scale || !get_scaled(text, number->scale, &value))
        return false;
    use = find_device(kept, device);
    if (use)
        *place_in(use, number) = value;
    return use;
}

static bool show_devices(const struct cgroup_kept *kept, struct cgroup_use *use, bool has_any)
{
    if (has_any) {
        use->devices = kept->devices;
        use->n_devices = kept->n_devices;
    }
    return has_any;
}

/* "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0". Some kernels end no line after a device
 * without numbers: "8:16 8:0 rbytes=…". */
static bool read_io_stat(const struct cgroup_file *file, struct str text, struct cgroup_kept *kept,
                         struct cgroup_use *use)
{
    bool has_any = false;

    for (struct str line, rest = text; rest.p;) {
        struct device_number device = { 0 };
        bool has_device = false;

        line = str_cut(&rest, '\n');
        for (struct str word; line.p;) {
            word = str_cut(&line, ' ');
            if (str_find(word, '=') == word.n)
                has_device = word.n ? get_device(word, &device) : has_device;
            else if (has_device)
                has_any |= put_device(file, kept, device, str_cut(&word, '='), word);
        }
    }
    return show_devices(kept, use, has_any);
}

/* "8:0 Read 4096" on each line, and "Total 4096" at the end. */
static bool read_blkio(const struct cgroup_file *file, struct str text, struct cgroup_kept *kept,
                       struct cgroup_use *use)
{
    bool has_any = false;

    for (struct str line, rest = text; rest.p;) {
        struct device_number device;

        line = str_cut(&rest, '\n');
        if (get_device(str_cut(&line, ' '), &device) && line.p) {
            struct str key = str_cut(&line, ' ');

            has_any |= put_device(file, kept, device, key, line);
        }
    }
    return show_devices(kept, use, has_any);
}

static bool names_number(struct str text, unsigned number)
{
    uint64_t value;

    return str_eq(text, STR("*")) || (num_get_u64(text, &value) && value == number);
}

/* "a *:* rwm" alone where nothing is forbidden, or one line for each that is allowed, such as
 * "c 195:* rw". */
int cgroup_device_list(struct str text, unsigned major, unsigned minor)
{
    int answer = 0;

    for (struct str line, rest = text; rest.p;) {
        struct str type, of_major, of_minor;

        line = str_cut(&rest, '\n');
        type = str_cut(&line, ' ');
        of_minor = str_cut(&line, ' ');
        of_major = str_cut(&of_minor, ':');
        if (str_eq(type, STR("a")))
            return -1;
        if (str_eq(type, STR("c")) && of_minor.p && names_number(of_major, major) &&
            names_number(of_minor, minor) &&
            (str_find(line, 'r') < line.n || str_find(line, 'w') < line.n))
            answer = 1;
    }
    return answer;
}

void cgroup_kept_clear(struct cgroup_kept *kept)
{
    free(kept->core_ns);
    free(kept->core_set);
    free(kept->devices);
    free(kept->numbers);
    *kept = (struct cgroup_kept){ .mounts = kept->mounts };
}

#define NUMBERS(...)                                                                               \
    .numbers = (const struct cgroup_number[])                                                      \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            .scale = 0                                                                             \
        }                                                                                          \
    }
#define KEY(name, field, unit)                                                                     \
    {                                                                                              \
        STR_INIT(name), offsetof(struct cgroup_use, field), unit, false                            \
    }
#define PART(name, field, unit)                                                                    \
    {                                                                                              \
        STR_INIT(name), offsetof(struct cgroup_use, field), unit, true                             \
    }
#define OF_DEVICE(name, field)                                                                     \
    {                                                                                              \
        STR_INIT(name), offsetof(struct device_use, field), 1, false                               \
    }
#define ALONE(field, unit) NUMBERS(KEY("", field, unit))
#define PRESSURE(some, full)                                                                       \
    .read = read_pressure,                                                                         \
    NUMBERS(KEY("some", pressure_ns[some], PER_USEC), KEY("full", pressure_ns[full], PER_USEC))

enum {
    BASIC = CGROUP_WANT_BASIC | CGROUP_WANT_DETAILS,
    DETAIL = CGROUP_WANT_DETAILS,
    EVENT = CGROUP_WANT_EVENTS | CGROUP_WANT_BASIC | CGROUP_WANT_DETAILS,
    CORES = CGROUP_WANT_CORES,
    CPU = CGROUP_WANT_CORES | CGROUP_WANT_DETAILS,
};

/* The I/O files without "_recursive" leave out what lies below: for a job, all. */
const struct cgroup_file cgroup_files_v1[] = {
    { "cpuacct.usage", CGROUP_CPUACCT, BASIC, .read = read_number, ALONE(cpu_ns, 1) },
    { "cpuacct.usage_user", CGROUP_CPUACCT, CPU, .read = read_number, ALONE(cpu_user_ns, 1) },
    { "cpuacct.usage_sys", CGROUP_CPUACCT, CPU, .read = read_number, ALONE(cpu_system_ns, 1) },
    { "cpuacct.stat", CGROUP_CPUACCT, CPU, .is_instead = true, .read = read_keys,
      NUMBERS(KEY("user", cpu_user_ns, PER_TICK), KEY("system", cpu_system_ns, PER_TICK)) },
    { "cpuacct.usage_percpu", CGROUP_CPUACCT, CORES, .read = read_cores },
    { "cpu.stat", CGROUP_CPU, DETAIL, .read = read_keys,
      NUMBERS(KEY("nr_periods", periods, 1), KEY("nr_throttled", throttled_periods, 1),
              KEY("throttled_time", throttled_ns, 1)) },
    { "memory.usage_in_bytes", CGROUP_MEMORY, BASIC, .read = read_number, ALONE(memory_bytes, 1) },
    { "memory.max_usage_in_bytes", CGROUP_MEMORY, BASIC, .read = read_number,
      ALONE(memory_peak_bytes, 1) },
    { "memory.stat", CGROUP_MEMORY, DETAIL, .read = read_keys,
      NUMBERS(KEY("total_cache", file_bytes, 1),
              KEY("total_rss", anon_bytes, 1), /* transparent huge pages included */
              KEY("total_shmem", shmem_bytes, 1), KEY("total_mapped_file", mapped_bytes, 1),
              KEY("total_swap", swap_bytes, 1), KEY("total_pgfault", page_faults, 1),
              KEY("total_pgmajfault", major_page_faults, 1)) },
    { "memory.kmem.usage_in_bytes", CGROUP_MEMORY, DETAIL, .read = read_number,
      ALONE(kernel_bytes, 1) },
    { "memory.failcnt", CGROUP_MEMORY, EVENT, .read = read_number, ALONE(limit_hits, 1) },
    { "memory.oom_control", CGROUP_MEMORY, EVENT, .read = read_keys,
      NUMBERS(KEY("oom_kill", oom_kills, 1)) }, /* from 4.13 on */
    { "memory.limit_in_bytes", CGROUP_MEMORY, DETAIL, .is_setting = true, .read = read_limit,
      ALONE(memory_limit_bytes, 1) },
    { "cpuset.cpus", CGROUP_CPUSET, CPU, .is_setting = true, .read = read_core_set },
    { "pids.current", CGROUP_PIDS, DETAIL, .read = read_number, ALONE(pids, 1) },
    { "pids.peak", CGROUP_PIDS, DETAIL, .read = read_number, ALONE(pids_peak, 1) },
    { "blkio.throttle.io_service_bytes_recursive", CGROUP_BLKIO, DETAIL, .read = read_blkio,
      NUMBERS(OF_DEVICE("Read", read_bytes), OF_DEVICE("Write", write_bytes)) },
    { "blkio.throttle.io_serviced_recursive", CGROUP_BLKIO, DETAIL, .read = read_blkio,
      NUMBERS(OF_DEVICE("Read", reads), OF_DEVICE("Write", writes)) },
    { .name = NULL },
};

const struct cgroup_file cgroup_files_v2[] = {
    { "cpu.stat", .wanted = BASIC, .read = read_keys,
      NUMBERS(KEY("usage_usec", cpu_ns, PER_USEC), KEY("user_usec", cpu_user_ns, PER_USEC),
              KEY("system_usec", cpu_system_ns, PER_USEC), KEY("nr_periods", periods, 1),
              KEY("nr_throttled", throttled_periods, 1),
              KEY("throttled_usec", throttled_ns, PER_USEC)) },
    { "memory.current", .wanted = BASIC, .read = read_number, ALONE(memory_bytes, 1) },
    { "memory.peak", .wanted = BASIC, .read = read_number, ALONE(memory_peak_bytes, 1) },
    { "memory.stat", .wanted = DETAIL, .read = read_keys,
      NUMBERS(KEY("anon", anon_bytes, 1), KEY("file", file_bytes, 1),
              PART("kernel_stack", kernel_bytes, 1), PART("pagetables", kernel_bytes, 1),
              PART("percpu", kernel_bytes, 1), PART("vmalloc", kernel_bytes, 1),
              PART("slab", kernel_bytes, 1), KEY("kernel", kernel_bytes, 1), /* from 5.18 on */
              KEY("shmem", shmem_bytes, 1), KEY("file_mapped", mapped_bytes, 1),
              KEY("pgfault", page_faults, 1), KEY("pgmajfault", major_page_faults, 1)) },
    { "memory.swap.current", .wanted = DETAIL, .read = read_number, ALONE(swap_bytes, 1) },
    { "memory.events", .wanted = EVENT, .read = read_keys,
      NUMBERS(KEY("max", limit_hits, 1), KEY("oom_kill", oom_kills, 1)) },
    { "cpu.pressure", .wanted = DETAIL, PRESSURE(PRESSURE_CPU_SOME, PRESSURE_CPU_FULL) },
    { "memory.pressure", .wanted = DETAIL, PRESSURE(PRESSURE_MEMORY_SOME, PRESSURE_MEMORY_FULL) },
    { "io.pressure", .wanted = DETAIL, PRESSURE(PRESSURE_IO_SOME, PRESSURE_IO_FULL) },
    { "io.stat", .wanted = DETAIL, .read = read_io_stat,
      NUMBERS(OF_DEVICE("rbytes", read_bytes), OF_DEVICE("wbytes", write_bytes),
              OF_DEVICE("rios", reads), OF_DEVICE("wios", writes)) },
    { "memory.max", .wanted = DETAIL, .is_setting = true, .read = read_limit,
      ALONE(memory_limit_bytes, 1) },
    { "cpuset.cpus", .wanted = CPU, .is_setting = true, .read = read_core_set },
    { "pids.current", .wanted = DETAIL, .read = read_number, ALONE(pids, 1) },
    { "pids.peak", .wanted = DETAIL, .read = read_number, ALONE(pids_peak, 1) },
    { .name = NULL },
};
