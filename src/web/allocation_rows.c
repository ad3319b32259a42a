/* SPDX-License-Identifier: GPL-2.0-or-later */
/* record/kept.c counts the same for the board, where there is one who keeps counting. */
#include "web/allocation_rows.h"

#include "source/allocation_file.h"
#include "web/job_find.h"

#include <math.h>

enum { LATE_SECONDS = 7 * 86400, MOST_ACCOUNTS = 1 << 20 };

static void take_section(struct site_call *call, const struct section *section,
                         struct allocation_rows *ret)
{
    const struct allocations *from = &section->allocations;

    ret->row = ARENA_ARRAY(&call->arena, struct allocation_row, from->n);
    for (size_t i = 0; i < from->n; i++)
        ret->row[ret->n++] =
            (struct allocation_row){ section_text(section, from->row[i].account), from->row[i] };
    ret->now = from->now;
    ret->is_known = true;
}

/* What each account used since a time: usage_row, by account. */
struct counted {
    int64_t since;
    struct map accounts;
};

struct counting {
    struct site_call *call;
    struct str cluster;
    int64_t reach; /* since when the store knows all; 0: it does not know the cluster */
    struct counted late, since;
};

static int count_since(struct counting *counting, int64_t since, struct counted *ret)
{
    static const enum usage_key by_account = USAGE_ACCOUNT;
    struct site_call *call = counting->call;
    struct usage_question question = {
        .keys = &by_account, .n_keys = 1, .now = call->now, .most = MOST_ACCOUNTS
    };
    struct usage_row *row;
    size_t n;
    int code;

    if (ret->since == since)
        return 0;
    job_filter_clear(&question.filter);
    question.filter.clusters = (struct words){ &counting->cluster, 1 };
    question.filter.from = since;
    question.filter.to = call->now;
    code = store_usage(call->reader, &question, &call->arena, &row, &n, &call->err);
    if (code < 0)
        return code;
    map_free(&ret->accounts);
    map_init(&ret->accounts, &call->arena);
    for (size_t i = 0; i < n; i++)
        *map_put(&ret->accounts, row[i].keys[0]) = &row[i];
    ret->since = since;
    return 0;
}

static double used_by(const struct counted *counted, struct str account, enum allocation_of what)
{
    void **value = map_get(&counted->accounts, account);
    const struct usage_row *row = value ? *value : NULL;

    if (!row)
        return 0;
    return (double)(what == ALLOCATION_CPUS ? row->cpu_seconds : row->gpu_seconds);
}

static double used_of(const struct counted *counted, const struct allocation_entry *entry,
                      enum allocation_of what)
{
    double sum = used_by(counted, entry->account, what);

    for (size_t i = 0; i < entry->n_includes; i++)
        sum += used_by(counted, entry->includes[i], what);
    return sum;
}

/* What was used before the store knows of jobs is not known, and nothing else then is. */
static int count(struct counting *counting, const struct allocation_entry *entry,
                 struct allocation *allocation)
{
    int64_t now = counting->call->now, late = now - LATE_SECONDS;
    int code;

    if (!entry->from || !counting->reach || counting->reach > entry->from || now <= entry->from)
        return 0;
    code = count_since(counting, entry->from, &counting->since);
    if (code == 0 && entry->from < late)
        code = count_since(counting, late, &counting->late);
    for (enum allocation_of i = 0; i < ALLOCATION_KINDS && code == 0; i++) {
        allocation->used[i] = used_of(&counting->since, entry, i);
        allocation->rate[i] = entry->from < late
                                  ? used_of(&counting->late, entry, i) / LATE_SECONDS
                                  : allocation->used[i] / (double)(now - entry->from);
    }
    return code;
}

static int find_reach(struct counting *counting)
{
    struct site_call *call = counting->call;
    struct cluster_row *row;
    size_t n;
    int code = store_clusters(call->reader, &call->arena, &row, &n, &call->err);

    for (size_t i = 0; code == 0 && i < n; i++) {
        int64_t since = row[i].accounted_since ? row[i].accounted_since : row[i].first_submit_time;

        if (str_eq(row[i].name, counting->cluster))
            counting->reach = since && since < row[i].pruned_end ? row[i].pruned_end : since;
    }
    return code;
}

static int by_from(const void *a, const void *b)
{
    int64_t x = ((const struct allocation_entry *)a)->from;
    int64_t y = ((const struct allocation_entry *)b)->from;

    return (x > y) - (x < y);
}

/* Most begin on the same day: in the order of these, each day is counted once. */
static void take_list(struct counting *counting, const struct allocation_list *list,
                      struct allocation_rows *ret)
{
    struct site_call *call = counting->call;
    int code = call->reader ? find_reach(counting) : -ENOENT;

    ret->row = ARENA_ARRAY(&call->arena, struct allocation_row, list->n);
    qsort(list->entry, list->n, sizeof(list->entry[0]), by_from);
    for (size_t i = 0; i < list->n; i++) {
        const struct allocation_entry *entry = &list->entry[i];
        struct allocation_row *row = &ret->row[ret->n];

        if (!str_eq(entry->cluster, counting->cluster) || !allocation_entry_holds(entry, call->now))
            continue;
        *row = (struct allocation_row){ entry->account, allocation_entry_promise(entry) };
        ret->n++;
        if (code == 0)
            code = count(counting, entry, &row->allocation);
    }
    if (code == -ENOENT)
        ret->lack = "What is used is not known: no store is kept here.";
    else if (code < 0)
        ret->lack = "What is used of some of them could not be counted: it took too long, or the "
                    "store cannot be read.";
}

static void take_file(struct site_call *call, const struct board_cluster *cluster,
                      struct allocation_rows *ret)
{
    struct counting counting = { .call = call, .cluster = cluster->name };
    struct allocation_list list;

    ret->now = call->now;
    if (allocation_file_read(call->config->allocations_file, &call->arena, &list, &call->err) < 0) {
        LOG(call->config->log, LOG_ERROR, "the file of allocations cannot be read",
            LOG_STR("error", call->err.text));
        ret->lack = "The file of allocations cannot be read: sonde's log says why.";
        return;
    }
    ret->is_known = true;
    map_init(&counting.late.accounts, &call->arena);
    map_init(&counting.since.accounts, &call->arena);
    if (call->reader)
        store_reader_deadline(call->reader, job_deadline(call));
    take_list(&counting, &list, ret);
    map_free(&counting.late.accounts);
    map_free(&counting.since.accounts);
}

void allocation_rows_find(struct site_call *call, const struct board_cluster *cluster,
                          struct allocation_rows *ret)
{
    *ret = (struct allocation_rows){ 0 };
    if (cluster->section[KIND_ALLOCATIONS])
        take_section(call, cluster->section[KIND_ALLOCATIONS], ret);
    else if (call->config->allocations_file)
        take_file(call, cluster, ret);
    else
        ret->lack = "Nobody has said what was promised to whom: --allocations.file names a file "
                    "that does.";
}

double allocation_rows_steady(const struct allocation_rows *rows, enum allocation_of what)
{
    double sum = NAN;

    for (size_t i = 0; i < rows->n; i++) {
        double steady = allocation_steady(&rows->row[i].allocation, what);

        if (!isnan(steady))
            sum = isnan(sum) ? steady : sum + steady;
    }
    return sum;
}
