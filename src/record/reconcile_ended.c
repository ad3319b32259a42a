/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of ended jobs: those of the store, compared with the runs that it has, with sacct if the
 * period is as long as the store's, and with what the exporter exposes. */
#include "record/reconcile_inside.h"

#include <inttypes.h>

static int read_counters(struct reconciling *rec, struct state_counts *ret)
{
    struct ended_row *rows;
    size_t n;
    int r = store_ended(rec->config->reader, rec->config->cluster, rec->arena, &rows, &n, rec->err);

    for (size_t i = 0; i < n && r == 0; i++)
        state_count(rec, ret, rows[i].state, rows[i].count);
    return r;
}

static int read_runs(struct reconciling *rec, struct state_counts *ret)
{
    struct ended_row *rows;
    size_t n;
    int r = store_ended_runs(rec->config->reader, rec->config->cluster, rec->arena, &rows, &n,
                             rec->err);

    for (size_t i = 0; i < n && r == 0; i++) {
        struct job_state state;

        job_state_parse(rows[i].state, &state);
        state_count(rec, ret,
                    state.base == JOB_BASE_UNKNOWN ? job_state_word(state)
                                                   : job_state_words[state.base],
                    rows[i].count);
    }
    return r;
}

/* Two counts of the same thing, and which difference between them has a reason. */
struct pairing {
    const char *what, *name; /* name: of the second */
    const struct state_counts *counters, *others, *explained;
    enum reconcile_reason reason;
    bool is_any_explained; /* any surplus of the counters is */
};

static enum reconcile_reason why(const struct pairing *pairing, struct str state)
{
    uint64_t ours = state_get(pairing->counters, state), theirs = state_get(pairing->others, state);

    if (pairing->is_any_explained && ours > theirs)
        return pairing->reason;
    if (pairing->explained && theirs > ours &&
        theirs - ours <= state_get(pairing->explained, state))
        return pairing->reason;
    return RECONCILE_UNEXPLAINED;
}

static void compare_state(struct reconciling *rec, const struct pairing *pairing, struct str state)
{
    uint64_t ours = state_get(pairing->counters, state), theirs = state_get(pairing->others, state);

    rec->result->compared[RECONCILE_ENDED]++;
    if (ours != theirs)
        reconcile_note(rec, RECONCILE_ENDED, pairing->what, why(pairing, state),
                       "%.*s: counter %" PRIu64 ", %s %" PRIu64, STR_ARG(state), ours,
                       pairing->name, theirs);
}

static void compare(struct reconciling *rec, const struct pairing *pairing)
{
    for (size_t i = 0; i < pairing->counters->n; i++)
        compare_state(rec, pairing, pairing->counters->of[i].state);
    for (size_t i = 0; i < pairing->others->n; i++) {
        struct str state = pairing->others->of[i].state;
        size_t k = 0;

        while (k < pairing->counters->n && !str_eq(pairing->counters->of[k].state, state))
            k++;
        if (k == pairing->counters->n)
            compare_state(rec, pairing, state);
    }
}

int reconcile_ended(struct reconciling *rec)
{
    const struct cluster_row *cluster = &rec->cluster;
    struct state_counts counters = { 0 }, runs = { 0 }, exported = { 0 };
    bool is_deleted = cluster->pruned_end || cluster->pruned_before || cluster->pruned_submit;
    int r = read_counters(rec, &counters);

    if (r == 0)
        r = read_runs(rec, &runs);
    if (r < 0)
        return r;
    compare(rec, &(struct pairing){ "counter differs from the store's runs", "runs", &counters,
                                    &runs, NULL, RECONCILE_DELETED, is_deleted });
    if (rec->config->from <= cluster->accounted_since ||
        rec->config->from <= cluster->first_submit_time)
        compare(rec, &(struct pairing){ "counter differs from sacct", "sacct", &counters,
                                        &rec->sacct, &rec->unpolled, RECONCILE_NOT_POLLED, false });
    for (size_t i = 0; i < rec->config->n_exported; i++)
        state_count(rec, &exported, rec->config->exported[i].state, rec->config->exported[i].count);
    if (rec->config->exported)
        compare(rec, &(struct pairing){ "counter differs from the exporter's", "exporter",
                                        &counters, &exported, NULL, RECONCILE_UNEXPLAINED, false });
    return 0;
}
