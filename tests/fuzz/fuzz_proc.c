/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of /proc/PID. Any text may be a process's name, stand before the line of a cgroup or
 * among an environment, and what is looked for is still found; an environment says the same in
 * pieces of any size. */
#include "base/arena.h"
#include "source/proc_text.h"

#include "fuzz.h"

enum { MOST_BYTES = 64 * 1024 };

static const struct proc_units units = { .tick_ns = 10000000, .page_bytes = 4096 };

static void check_stat(struct str text)
{
    struct proc_stat stat;
    struct buf line;

    proc_stat_parse(text, &units, &stat);
    buf_init(&line, text.n + 200);
    buf_text(&line, "7 (");
    buf_put(&line, text);
    buf_text(&line, ") S 3 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 2 0 77 1000 9 1 1\n");
    FUZZ_CHECK(proc_stat_parse(buf_str(&line), &units, &stat));
    FUZZ_CHECK(stat.parent == 3 && stat.threads == 2 && stat.start_ticks == 77);
    FUZZ_CHECK(stat.cpu_ns == 11 * units.tick_ns && stat.resident_bytes == 9 * 4096);
    FUZZ_CHECK(memcmp(stat.comm, text.p, text.n < USAGE_COMM ? text.n : USAGE_COMM - 1) == 0);
    buf_free(&line);
}

static void check_cgroup(struct str text)
{
    struct buf lines;
    struct str path;

    buf_init(&lines, text.n + 100);
    buf_put(&lines, text);
    buf_text(&lines, "\n1:sonde,cpu:/x:y\n");
    FUZZ_CHECK(proc_cgroup_parse(buf_str(&lines), STR("sonde"), &path));
    FUZZ_CHECK(path.p >= lines.p && path.p + path.n <= lines.p + lines.n);
    FUZZ_CHECK(str_find(path, '\n') == path.n);
    proc_cgroup_parse(text, STR(""), &path);
    buf_free(&lines);
}

struct values {
    char account[12], path[40];
    bool is_wanted;
};

static struct values scan(struct str text, uint64_t seed)
{
    struct values values = { 0 };
    struct proc_variable variables[] = {
        { "ACCOUNT", values.account, sizeof(values.account) },
        { "PATH", values.path, sizeof(values.path) },
    };
    struct environ_scan scan;
    struct values clean = { 0 };

    environ_begin(&scan, variables, COUNT(variables));
    while (text.n) {
        struct str piece = str_head(text, seed ? 1 + fuzz_random(&seed) % 20 : text.n);

        environ_feed(&scan, piece);
        text = str_skip(text, piece.n);
    }
    snprintf(clean.account, sizeof(clean.account), "%s", values.account);
    snprintf(clean.path, sizeof(clean.path), "%s", values.path);
    clean.is_wanted = scan.wanted;
    return clean;
}

static void check_environ(struct str text)
{
    uint64_t seed = fuzz_seed((const uint8_t *)text.p, text.n) | 1;
    struct values whole, pieces;
    struct buf all;

    buf_init(&all, text.n + 100);
    buf_put(&all, text);
    buf_put(&all, STR("\0ACCOUNT=physics\0PATH=/bin\0"));
    whole = scan(buf_str(&all), 0);
    pieces = scan(buf_str(&all), seed);
    FUZZ_CHECK(memcmp(&whole, &pieces, sizeof(whole)) == 0);
    FUZZ_CHECK(!whole.is_wanted);
    if (str_find_str(text, STR("ACCOUNT=")) == text.n)
        FUZZ_CHECK(strcmp(whole.account, "physics") == 0);
    buf_free(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    struct proc_uids uids;
    struct io_use io;

    if (size > MOST_BYTES)
        return 0;
    check_stat(text);
    check_cgroup(text);
    check_environ(text);
    proc_io_parse(text, &io);
    proc_uids_parse(text, &uids);
    return 0;
}
