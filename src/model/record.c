/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clears job records, and sums up the GPU types of a TRES string. */
#include "model/record.h"

#include "base/num.h"
#include "model/tres.h"

#include <math.h>

void job_record_clear(struct job_record *record)
{
    *record = (struct job_record){
        .array_task_id = MODEL_UNKNOWN_U32,
        .tasks = 1,
        .user_id = MODEL_UNKNOWN_U32,
        .restarts = MODEL_UNKNOWN_U32,
        .state = JOB_STATE_NONE,
        .cpus = MODEL_UNKNOWN_U32,
        .node_count = MODEL_UNKNOWN_U32,
        .memory_bytes = MODEL_UNKNOWN_U64,
        .time_limit_minutes = MODEL_UNKNOWN_U32,
        .priority = MODEL_UNKNOWN_U64,
        .suspended_seconds = MODEL_UNKNOWN_U64,
        .exit_code = MODEL_UNKNOWN_U32,
        .exit_signal = MODEL_UNKNOWN_U32,
        .cpu_seconds = NAN,
        .user_seconds = NAN,
        .system_seconds = NAN,
        .memory_peak_bytes = MODEL_UNKNOWN_U64,
        .read_bytes = MODEL_UNKNOWN_U64,
        .write_bytes = MODEL_UNKNOWN_U64,
        .energy_joules = MODEL_UNKNOWN_U64,
    };
}

bool job_record_has_ended(const struct job_record *record)
{
    const uint32_t comes_again = JOB_REQUEUED | JOB_REQUEUE_FED | JOB_REQUEUE_HOLD;
    /* slurmdbd's only words for a run that was requeued, or went on with another size */
    const uint32_t ended_by = JOB_REQUEUED | JOB_RESIZING;
    struct job_state state = record->state;

    if (state.base == JOB_BASE_UNKNOWN)
        return record->origin == RECORD_ACCOUNTED && record->end_time && state.flags & ended_by;
    return state.base >= JOB_COMPLETED &&
           (record->origin == RECORD_ACCOUNTED || !(state.flags & comes_again));
}

bool job_record_never_ran(const struct job_record *record)
{
    bool has_start = record->start_time && record->start_time != record->end_time;

    return job_record_has_ended(record) && !has_start && !record->nodes.n;
}

enum { GPU_TYPES = 32 }; /* of one job */

struct gpu_type {
    struct str name;
    uint64_t count;
};

static int compare_names(struct str a, struct str b)
{
    int order = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

    return order ? order : (a.n > b.n) - (a.n < b.n);
}

/* Keeps the order of names; false if there is no room. */
static bool add_type(struct gpu_type *types, size_t *n, const struct gres_item *item)
{
    size_t at = 0;

    while (at < *n && compare_names(types[at].name, item->type) < 0)
        at++;
    if (at < *n && str_eq(types[at].name, item->type))
        return !__builtin_add_overflow(types[at].count, item->count, &types[at].count);
    if (*n == GPU_TYPES)
        return false;
    memmove(types + at + 1, types + at, (*n - at) * sizeof(*types));
    types[at] = (struct gpu_type){ item->type, item->count };
    (*n)++;
    return true;
}

static size_t put_types(const struct gpu_type *types, size_t n_types, char *to, size_t room)
{
    size_t n = 0;

    for (size_t i = 0; i < n_types; i++) {
        struct str name = types[i].name;

        if (name.n + NUM_U64_MAX + 2 > room - n)
            return 0;
        if (i)
            to[n++] = ',';
        memcpy(to + n, name.p, name.n);
        n += name.n;
        if (n_types == 1)
            break;
        to[n++] = '=';
        n += num_put_u64(to + n, types[i].count);
    }
    return n;
}

size_t tres_gpu_types(struct str tres, char *to, size_t room)
{
    struct gpu_type types[GPU_TYPES];
    struct gres_item item;
    size_t n = 0;

    for (struct str rest = tres; gres_next(&rest, &item, NULL);)
        if (str_eq(item.name, STR("gpu")) && item.type.n && item.count &&
            !add_type(types, &n, &item))
            return 0;
    return put_types(types, n, to, room);
}
