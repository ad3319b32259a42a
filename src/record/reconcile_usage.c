/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Usage of the store, compared with sreport for the full hours that slurmdbd has rolled up. */
#include "base/num.h"
#include "record/reconcile_inside.h"

#include <inttypes.h>

enum {
    HOUR = 3600,
    HOURS_BACK_MAX = 48, /* that are looked through for one that is rolled up */
    PAIRS_MAX = 1000000,
};

static const char *const differences[AUDIT_TRES] = {
    [AUDIT_CPU] = "CPU-seconds differ",
    [AUDIT_GPU] = "GPU-seconds differ",
    [AUDIT_BILLING] = "billing seconds differ",
};

static int64_t hour_of(int64_t time)
{
    return time / HOUR * HOUR;
}

/* The end of the last hour that is rolled up, at most `to`. */
static int find_end(struct reconciling *rec, int64_t from, int64_t to, int64_t *ret)
{
    bool is_rolled_up = false;
    int r = 0;

    *ret = to;
    for (int i = 0; i<HOURS_BACK_MAX && * ret> from && r == 0; i++) {
        r = audit_is_rolled_up(rec->config->audit, *ret - HOUR, &is_rolled_up, rec->err);
        if (r == 0 && is_rolled_up)
            return 0;
        *ret -= HOUR;
    }
    *ret = from;
    return r;
}

/* What was not polled is not in the store: those hours are not compared. */
static int find_period(struct reconciling *rec)
{
    struct reconcile_result *result = rec->result;
    int64_t polled = rec->cluster.accounted_until, to = hour_of(rec->config->now);
    int r;

    result->usage_from = hour_of(rec->config->from + HOUR - 1);
    if (polled && polled < to)
        to = hour_of(polled);
    r = find_end(rec, result->usage_from, to, &result->usage_to);
    for (int64_t hour = result->usage_to; hour < to && r == 0; hour += HOUR)
        reconcile_note(rec, RECONCILE_USAGE, "hour without usage in sreport",
                       RECONCILE_NOT_ROLLED_UP, "%" PRId64, hour);
    return r;
}

static int take_used(void *ctx, const struct audit_used *used)
{
    struct reconciling *rec = ctx;

    reconcile_pair(rec, used->account, used->user)->theirs[used->tres] += used->seconds;
    return 0;
}

static int read_ours(struct reconciling *rec)
{
    static const enum usage_key keys[] = { USAGE_ACCOUNT, USAGE_USER };
    struct usage_question question = {
        .keys = keys, .n_keys = COUNT(keys), .now = rec->config->now, .most = PAIRS_MAX
    };
    struct usage_row *rows;
    size_t n;
    int r;

    job_filter_clear(&question.filter);
    question.filter.clusters = (struct words){ &rec->config->cluster, 1 };
    question.filter.from = rec->result->usage_from;
    question.filter.to = rec->result->usage_to;
    r = store_usage(rec->config->reader, &question, rec->arena, &rows, &n, rec->err);
    for (size_t i = 0; i < n && r == 0; i++) {
        struct reconcile_pair *pair = reconcile_pair(rec, rows[i].keys[0], rows[i].keys[1]);

        pair->ours[AUDIT_CPU] = rows[i].cpu_seconds;
        pair->ours[AUDIT_GPU] = rows[i].gpu_seconds;
        pair->ours[AUDIT_BILLING] = rows[i].billing_seconds;
    }
    return r;
}

/* Associations by their ids, as texts. */
struct idle_reading {
    struct reconciling *rec;
    struct map associations; /* struct reconcile_pair */
};

static int take_association(void *ctx, const struct audit_association *association)
{
    struct idle_reading *reading = ctx;
    char id[NUM_U64_MAX];

    if (association->user.n)
        *map_put(&reading->associations, (struct str){ id, num_put_u64(id, association->id) }) =
            reconcile_pair(reading->rec, association->account, association->user);
    return 0;
}

/* slurmdbd divides the idle time evenly, hour by hour, and drops the rest. */
static int take_idle(void *ctx, const struct audit_idle *idle)
{
    struct idle_reading *reading = ctx;
    uint64_t n = 0;

    for (struct str rest = idle->associations; rest.p; str_cut(&rest, ','))
        n++;
    for (struct str rest = idle->associations; rest.p;) {
        void **place = map_get(&reading->associations, str_trim(str_cut(&rest, ',')));

        if (place)
            ((struct reconcile_pair *)*place)->idle[idle->tres] += idle->seconds / n;
    }
    return 0;
}

static int read_idle(struct reconciling *rec)
{
    struct idle_reading reading = { .rec = rec };
    int r;

    map_init(&reading.associations, rec->arena);
    r = audit_associations(rec->config->audit, rec->config->cluster, take_association, &reading,
                           rec->err);
    if (r == 0)
        r = audit_idle(rec->config->audit, rec->result->usage_from, rec->result->usage_to,
                       take_idle, &reading, rec->err);
    map_free(&reading.associations);
    return r;
}

static enum reconcile_reason why(const struct reconciling *rec, const struct reconcile_pair *pair,
                                 enum audit_tres tres)
{
    uint64_t ours = pair->ours[tres], theirs = pair->theirs[tres];
    uint64_t gap = ours > theirs ? ours - theirs : theirs - ours;

    if (!keep_has(rec->config->keep, pair->account, pair->user))
        return RECONCILE_LEFT_OUT;
    if (theirs > ours && gap <= pair->idle[tres])
        return RECONCILE_IDLE_RESERVED;
    if (tres == AUDIT_CPU && gap <= pair->suspended_cpu)
        return RECONCILE_SUSPENDED;
    if (pair->has_difference)
        return pair->reason;
    if (theirs > ours && rec->result->usage_from < rec->cluster.pruned_before)
        return RECONCILE_DELETED;
    if (theirs > ours && rec->result->usage_from < rec->cluster.accounted_since)
        return RECONCILE_BEFORE_STORE;
    return RECONCILE_UNEXPLAINED;
}

static void compare_pair(struct reconciling *rec, const struct reconcile_pair *pair)
{
    bool is_used = false;

    for (int i = 0; i < AUDIT_TRES; i++) {
        is_used |= pair->ours[i] || pair->theirs[i];
        if (pair->ours[i] != pair->theirs[i])
            reconcile_note(rec, RECONCILE_USAGE, differences[i], why(rec, pair, (enum audit_tres)i),
                           "%.*s/%.*s: sonde %" PRIu64 ", sreport %" PRIu64, STR_ARG(pair->account),
                           STR_ARG(pair->user), pair->ours[i], pair->theirs[i]);
    }
    rec->result->compared[RECONCILE_USAGE] += is_used;
}

int reconcile_usage(struct reconciling *rec)
{
    struct reconcile_result *result = rec->result;
    int r = find_period(rec);

    if (r < 0 || result->usage_from >= result->usage_to)
        return r;
    r = audit_usage(rec->config->audit, result->usage_from, result->usage_to, take_used, rec,
                    rec->err);
    if (r == 0)
        r = read_ours(rec);
    if (r == 0)
        r = read_idle(rec);
    for (size_t i = 0; i < rec->pairs.n && r == 0; i++)
        compare_pair(rec, rec->pairs.entries[i].value);
    return r;
}
