/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of cgroups: each kind of file is read from any text; what is refused writes nothing, and
 * what stands at the end of it is read whatever stands before. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/num.h"
#include "source/cgroup_files.h"

#include "fuzz.h"

static struct cgroup_mounts mounts = { .sys = "/nonexistent" };

static struct cgroup_use read_into(const struct cgroup_file *file, struct str text,
                                   struct cgroup_kept *kept, bool *ret_gave)
{
    struct cgroup_use use;

    cgroup_use_clear(&use);
    *ret_gave = file->read(file, text, kept, &use);
    return use;
}

static void check_places(const struct cgroup_kept *kept, const struct cgroup_use *use)
{
    FUZZ_CHECK(use->n_devices <= USAGE_DEVICES);
    FUZZ_CHECK(use->n_cores <= CGROUP_CORES);
    FUZZ_CHECK(!use->n_cores || use->core_ns == kept->core_ns);
    FUZZ_CHECK(use->cpus == MODEL_UNKNOWN_U64 || (use->cpus > 0 && use->cpus <= CGROUP_CORES));
    for (size_t i = 0; i < use->n_devices; i++)
        FUZZ_CHECK(memchr(use->devices[i].name, '\0', sizeof(use->devices[i].name)));
}

static void check_file(const struct cgroup_file *file, struct str text)
{
    struct cgroup_kept kept = { .mounts = &mounts }, again = { .mounts = &mounts };
    struct cgroup_use use, unknown;
    bool gave;

    cgroup_use_clear(&unknown);
    use = read_into(file, text, &kept, &gave);
    check_places(&kept, &use);
    if (!gave)
        FUZZ_CHECK(memcmp(&use, &unknown, sizeof(use)) == 0, "%s", file->name);
    /* read again, it says the same */
    FUZZ_CHECK(file->read(file, text, &kept, &use) == gave);
    if (gave && !use.n_cores && !use.n_devices) {
        unknown = read_into(file, text, &again, &gave);
        FUZZ_CHECK(memcmp(&use, &unknown, sizeof(use)) == 0, "%s", file->name);
    }
    cgroup_kept_clear(&kept);
    cgroup_kept_clear(&again);
}

/* A line at the end of any text that has whole lines. */
static void check_last_line(const char *name, struct str text, const char *line, size_t offset,
                            uint64_t expected)
{
    const struct cgroup_file *file = cgroup_files_v2;
    struct cgroup_kept kept = { .mounts = &mounts };
    struct cgroup_use use;
    struct buf longer;
    uint64_t value;
    bool gave;

    while (strcmp(file->name, name) != 0)
        file++;
    buf_init(&longer, text.n + 200);
    buf_put(&longer, text);
    buf_byte(&longer, '\n');
    buf_text(&longer, line);
    use = read_into(file, buf_str(&longer), &kept, &gave);
    memcpy(&value, (char *)&use + offset, sizeof(value));
    FUZZ_CHECK(gave && value == expected, "%s", name);
    buf_free(&longer);
    cgroup_kept_clear(&kept);
}

static void check_number(struct str text)
{
    struct cgroup_kept kept = { .mounts = &mounts };
    const struct cgroup_file *file = cgroup_files_v2;
    struct cgroup_use use;
    uint64_t value = 0;
    bool gave;

    while (strcmp(file->name, "memory.current") != 0)
        file++;
    use = read_into(file, text, &kept, &gave);
    if (gave)
        FUZZ_CHECK(num_get_u64(str_trim(text), &value) && use.memory_bytes == value);
}

static void check_cores(struct str text)
{
    uint64_t set[CGROUP_CORES / 64];
    int n, bits = 0;

    memset(set, 0x5a, sizeof(set));
    n = cgroup_core_list(text, set);
    for (size_t i = 0; i < COUNT(set); i++) {
        FUZZ_CHECK(n >= 0 || set[i] == UINT64_C(0x5a5a5a5a5a5a5a5a));
        bits += __builtin_popcountll(set[i]);
    }
    FUZZ_CHECK(n < 0 || n == bits);
}

static void check_devices(struct str text)
{
    int answer = cgroup_device_list(text, 195, 0);
    struct buf longer;

    buf_init(&longer, text.n + 200);
    buf_put(&longer, text);
    buf_text(&longer, "\nc 195:0 rwm\n");
    FUZZ_CHECK(cgroup_device_list(buf_str(&longer), 195, 0) == (answer < 0 ? -1 : 1));
    buf_free(&longer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };

    for (const struct cgroup_file *file = cgroup_files_v1; file->name; file++)
        check_file(file, text);
    for (const struct cgroup_file *file = cgroup_files_v2; file->name; file++)
        check_file(file, text);
    check_last_line("memory.stat", text, "pgfault 7\n", offsetof(struct cgroup_use, page_faults),
                    7);
    check_last_line("memory.events", text, "oom_kill 7", offsetof(struct cgroup_use, oom_kills), 7);
    check_last_line("io.pressure", text, "full avg10=0.00 total=7\n",
                    offsetof(struct cgroup_use, pressure_ns[PRESSURE_IO_FULL]), 7000);
    check_number(text);
    check_cores(text);
    check_devices(text);
    return 0;
}
