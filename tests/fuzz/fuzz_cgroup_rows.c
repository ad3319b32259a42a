/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of the configuration and paths of cgroups: the first line is a row, each other one a path.
 * Whatever they are, a way to a directory leads through those above it, and below a job nothing is
 * of another. */
#include "base/num.h"
#include "source/cgroup_rows.h"

#include "fuzz.h"

enum { LONGEST = 4000 };

static bool ends_within(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

static void check_values(const struct cgroup_match *match)
{
    uint64_t id;

    FUZZ_CHECK(ends_within(match->job, USAGE_ID) && ends_within(match->sluid, USAGE_ID) &&
               ends_within(match->step, USAGE_ID) && ends_within(match->task, USAGE_ID) &&
               ends_within(match->node, USAGE_NODE));
    if (match->level < CGROUP_JOB) {
        FUZZ_CHECK(!match->job[0] && !match->sluid[0] && !match->step[0] && !match->task[0]);
        return;
    }
    FUZZ_CHECK(!match->job[0] != !match->sluid[0]);
    FUZZ_CHECK(match->level != CGROUP_STEP || match->step[0]);
    FUZZ_CHECK(match->level != CGROUP_TASK || match->task[0]);
    FUZZ_CHECK(match->level != CGROUP_STEPD || match->row->stepd);
    if (match->row->has_stepd && match->job[0])
        FUZZ_CHECK(num_get_u64(str_of(match->job), &id) && id > 0 && id <= UINT32_MAX &&
                   match->job[0] != '0');
}

static bool is_same_job(const struct cgroup_match *a, const struct cgroup_match *b)
{
    return a->row == b->row && a->uid == b->uid && strcmp(a->job, b->job) == 0 &&
           strcmp(a->sluid, b->sluid) == 0 && strcmp(a->node, b->node) == 0;
}

static void check_above(const struct cgroup_rows *rows, bool is_v2, struct str path,
                        const struct cgroup_match *match)
{
    struct cgroup_match above;
    size_t n = path.n;

    while (n && path.p[n - 1] != '/')
        n--;
    FUZZ_CHECK(cgroup_rows_match(rows, is_v2, str_head(path, n ? n - 1 : 0), &above));
    FUZZ_CHECK(above.level < CGROUP_JOB || is_same_job(&above, match));
    FUZZ_CHECK(above.level < CGROUP_JOB || match->level > CGROUP_JOB);
}

static void check_below(const struct cgroup_rows *rows, bool is_v2, struct str path,
                        const struct cgroup_match *match)
{
    static const char *const names[] = {
        "job_99",
        "step_0",
        "user",
        "slurm",
        "task_0",
        "slurmstepd.scope/job_99",
        "slurm/uid_0/job_99",
        "sEKNKTV3WPV500",
        "n_slurmstepd.scope/job_99/step_0/user/task_0",
    };

    for (size_t i = 0; i < COUNT(names); i++) {
        char text[LONGEST + 100];
        struct cgroup_match below;

        snprintf(text, sizeof(text), "%.*s/%s", STR_ARG(path), names[i]);
        FUZZ_CHECK(cgroup_rows_match(rows, is_v2, str_of(text), &below));
        FUZZ_CHECK(is_same_job(&below, match), "%s is of %s", text, below.job);
    }
}

static void check_path(const struct cgroup_rows *rows, bool is_v2, struct str path)
{
    struct cgroup_match match;

    if (!cgroup_rows_match(rows, is_v2, path, &match))
        return;
    FUZZ_CHECK(match.row->is_v2 == is_v2);
    check_values(&match);
    if (path.n)
        check_above(rows, is_v2, path, &match);
    if (match.level >= CGROUP_JOB && path.n < LONGEST)
        check_below(rows, is_v2, path, &match);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = { (const char *)data, size }, row = str_cut(&rest, '\n');
    struct cgroup_rows *rows = cgroup_rows_new();
    struct err err = { 0 };

    if (cgroup_rows_add(rows, row, &err) < 0)
        FUZZ_CHECK(err.text[0] && err.code == EINVAL);
    while (rest.p) {
        struct str path = str_cut(&rest, '\n');

        check_path(rows, false, path);
        check_path(rows, true, path);
    }
    cgroup_rows_free(rows);
    return 0;
}
