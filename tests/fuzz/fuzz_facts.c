/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What agents count of a job, and what was kept of one. Whatever comes, no fact is negative or
 * infinite, what is refused changes nothing, and what is written of facts is read as the same. */
#include "report/facts_json.h"
#include "report/use_members.h"

#include "base/buf.h"

#include "fuzz.h"

#include <math.h>

static void check_amount(double value)
{
    FUZZ_CHECK(isnan(value) || (isfinite(value) && value >= 0), "%g", value);
}

static void check_use(const struct use_facts *use)
{
    for (size_t i = 0; i < USE_MEMBERS; i++)
        check_amount(use_value(use, &use_members[i]));
}

static void check_facts(const struct job_facts *facts)
{
    for (size_t i = 0; i < facts->n_nodes; i++) {
        check_use(&facts->node[i].use);
        for (size_t k = 0; k < facts->node[i].n_cores; k++)
            check_amount(facts->node[i].core[k].seconds);
    }
    for (size_t i = 0; i < facts->n_gpus; i++) {
        check_amount(facts->gpu[i].memory_used_bytes.max);
        check_amount(facts->gpu[i].utilization_ratio.mean);
        check_amount(facts->gpu[i].energy_joules);
    }
    for (size_t i = 0; i < facts->n_processes; i++)
        check_amount(facts->process[i].threads_peak);
}

/* A second reading says the same: what has no room is left out the first time. */
static void check_again(const struct job_facts *facts)
{
    struct arena arena = { 0 };
    struct buf first, second;
    struct job_facts kept;
    struct err err;

    buf_init(&first, SUMMARY_MAX);
    buf_init(&second, SUMMARY_MAX);
    facts_put_summary(&first, facts);
    FUZZ_CHECK(!first.over, "more than the ceiling");
    job_facts_clear(&kept);
    FUZZ_CHECK(facts_take_summary(&kept, &arena, buf_str(&first), &err) == 0, "%s\n%s", err.text,
               first.p);
    kept.row = facts->row;
    facts_put_summary(&second, &kept);
    FUZZ_CHECK(!second.over, "more than the ceiling");
    buf_free(&first);
    buf_free(&second);
    arena_clear(&arena);
}

static void check_all(struct job_facts *facts)
{
    facts_finish(facts);
    check_use(&facts->total);
    check_amount(facts->cpu_ratio);
    check_amount(facts->memory_ratio);
    check_amount(facts->gpu_ratio);
    check_amount(facts->gpu_memory_ratio);
    check_amount(facts->cores_used);
    check_facts(facts);
    check_again(facts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct str text = { (const char *)data, size };
    const struct final_record final = { 4711, STR_INIT("n1"), 1, 2, text };
    struct arena arena = { 0 };
    struct job_facts facts;
    struct err err = { 0 };
    int code;

    job_facts_clear(&facts);
    code = facts_take_final(&facts, &arena, &final, &err);
    FUZZ_CHECK(code == 0 || code == -EBADMSG, "code %d", code);
    FUZZ_CHECK(code == 0 ? facts.n_nodes == 1 : !facts.n_nodes && !facts.n_gpus && err.text[0],
               "half a document");
    check_all(&facts);

    job_facts_clear(&facts);
    code = facts_take_summary(&facts, &arena, text, &err);
    FUZZ_CHECK(code == 0 || code == -EBADMSG, "code %d", code);
    FUZZ_CHECK(facts.origin.has_summary == (code == 0), "half a summary");
    check_all(&facts);
    arena_clear(&arena);
    return 0;
}
