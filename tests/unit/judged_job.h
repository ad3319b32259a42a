/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job that a test makes worse, and what is found of it then. */
#ifndef SONDE_TESTS_JUDGED_JOB_H
#define SONDE_TESTS_JUDGED_JOB_H

#include "test.h"

#include "made_job.h"

#include "base/buf.h"
#include "report/checks.h"

#include <math.h>

static struct arena arena;
static struct check_settings settings;
static struct job_facts job;
static struct node_facts *node;
static struct finding *finding;
static size_t n_findings;

static inline void set_up(void)
{
    check_settings_default(&arena, &settings);
    made_job(&job, &arena);
    node = &job.node[0];
}

static inline void tear_down(void)
{
    arena_clear(&arena);
}

FIXTURE(set_up, tear_down)

static inline size_t place_of(const char *name)
{
    for (size_t i = 0; i < n_checks; i++)
        if (strcmp(checks[i].name, name) == 0)
            return i;
    fail_msg("there is no check %s", name);
    return 0;
}

/* Totals never get smaller, so they are made anew. */
static inline void judge(void)
{
    struct use_facts total = use_facts_unknown;

    total.cpus = job.total.cpus;
    total.memory_bytes = job.total.memory_bytes;
    total.gpus = job.total.gpus;
    job.total = total;
    job.gpu_ratio = job.cores_used = NAN;
    facts_finish(&job);
    checks_run(&settings, &job, &arena, &finding, &n_findings);
}

/* Names of what was found, in order, separated by spaces. */
static inline void assert_found(const char *names)
{
    struct buf found;

    judge();
    buf_init(&found, 2000);
    for (size_t i = 0; i < n_findings; i++) {
        buf_text(&found, i ? " " : "");
        buf_text(&found, finding[i].check->name);
        for (const char *bad = "\n\r\x1b"; *bad; bad++)
            assert_null(memchr(finding[i].sentence.p, *bad, finding[i].sentence.n));
        assert_int_equal(str_find_str(finding[i].sentence, STR("nan")), finding[i].sentence.n);
        assert_int_equal(str_find_str(finding[i].sentence, STR("inf")), finding[i].sentence.n);
    }
    assert_str(buf_str(&found), names);
    buf_free(&found);
}

static inline void assert_says(const char *part)
{
    assert_int_equal(n_findings, 1);
    assert_contains(finding[0].sentence.p, part);
}

/* A number is good, then too much or too little, then unknown. */
static inline void assert_edge(double *number, double good, double bad, const char *names)
{
    *number = good;
    assert_found("");
    *number = bad;
    assert_found(names);
    *number = NAN;
    assert_found("");
    set_up();
}

static inline void end_in(enum job_base base)
{
    job.row.record.state.base = (uint8_t)base;
}

#endif
