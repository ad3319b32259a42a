/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who reads from and writes to Lustre, by account and user and by process name: the families of
 * prometheus-cluster-exporter, and what none of them tells of. */
#include "collector/collector.h"
#include "collector/known.h"
#include "collector/top.h"

#include <math.h>

enum {
    STAGE_SECONDS,
    JOB_READ,
    JOB_WRITE,
    PROC_READ,
    PROC_WRITE,
    JOB_METADATA,
    PROC_METADATA,
    UNATTRIBUTED_IDS,
    UNATTRIBUTED_BYTES,
    UNATTRIBUTED_METADATA,
};

/* Users name their processes as they like. */
enum { MOST_PROCESSES = 1000 };

static const struct family families[] = {
    [STAGE_SECONDS] = { "cluster_exporter_stage_execution_seconds",
                        METRIC_GAUGE,
                        "Seconds that the last look at Lustre spent in one of its stages.",
                        { "name" } },
    [JOB_READ] = { "cluster_job_read_throughput_bytes",
                   METRIC_GAUGE,
                   "Bytes per second that all jobs of an account and user read from Lustre.",
                   { "account", "user" } },
    [JOB_WRITE] = { "cluster_job_write_throughput_bytes",
                    METRIC_GAUGE,
                    "Bytes per second that all jobs of an account and user write to Lustre.",
                    { "account", "user" } },
    [PROC_READ] = { "cluster_proc_read_throughput_bytes",
                    METRIC_GAUGE,
                    "Bytes per second that processes of one name, group and user read from Lustre "
                    "outside of jobs. Past the 1000 largest the rest is called other.",
                    { "proc_name", "group_name", "user_name" } },
    [PROC_WRITE] = { "cluster_proc_write_throughput_bytes",
                     METRIC_GAUGE,
                     "Bytes per second that processes of one name, group and user write to Lustre "
                     "outside of jobs. Past the 1000 largest the rest is called other.",
                     { "proc_name", "group_name", "user_name" } },
    [JOB_METADATA] = { "cluster_job_metadata_operations",
                       METRIC_GAUGE,
                       "Metadata operations per second of all jobs of an account and user on an "
                       "MDT.",
                       { "account", "user", "target" } },
    [PROC_METADATA] = { "cluster_proc_metadata_operations",
                        METRIC_GAUGE,
                        "Metadata operations per second of processes of one name, group and user "
                        "on an MDT, outside of jobs. Past the 1000 largest the rest is called "
                        "other.",
                        { "proc_name", "group_name", "user_name", "target" } },
    [UNATTRIBUTED_IDS] = { "sonde_lustre_unattributed_ids",
                           METRIC_GAUGE,
                           "Lustre's job ids of which something is not known, by reason: "
                           "unknown_job (Slurm does not tell of the job), other_user (the job is "
                           "not that of the user in the id), unreadable (none of the formats fits) "
                           "and too_many (past a ceiling) count for nobody; unknown_user (nobody "
                           "has that number) counts under the number.",
                           { "reason" } },
    [UNATTRIBUTED_BYTES] = { "sonde_lustre_unattributed_throughput_bytes",
                             METRIC_GAUGE,
                             "Bytes per second that move on Lustre under job ids that count for "
                             "nobody, by direction: read or write.",
                             { "direction" } },
    [UNATTRIBUTED_METADATA] = { "sonde_lustre_unattributed_metadata_operations",
                                METRIC_GAUGE,
                                "Metadata operations per second on an MDT under job ids that count "
                                "for nobody.",
                                { "target" } },
};

/* As prometheus-cluster-exporter calls them. */
static const struct str stage_names[] = {
    [LUSTRE_STAGE_JOBS] = STR_INIT("retrieve_running_jobs"),
    [LUSTRE_STAGE_USERS] = STR_INIT("retrieve_user_name_info"),
    [LUSTRE_STAGE_GROUPS] = STR_INIT("retrieve_group_name_info"),
    [LUSTRE_STAGE_METADATA] = STR_INIT("build_metadata_metrics"),
    [LUSTRE_STAGE_READ] = STR_INIT("build_read_throughput_metrics"),
    [LUSTRE_STAGE_WRITE] = STR_INIT("build_write_throughput_metrics"),
};
_Static_assert(COUNT(stage_names) == LUSTRE_STAGES, "each stage has a name");

enum { KEY_MAX = 4, TARGET_OF_PROCESS = 3 };

/* Label values: of jobs account, user, target; of processes name, group, user, target. */
struct key {
    symbol label[KEY_MAX];
};

/* What ids with the same labels do together. */
struct sum {
    struct key key;
    double per_second[2]; /* read, write; or operations. NAN: nobody told any */
};

/* By key, in the order in which the keys were met. */
struct sums {
    struct sum *sum;
    size_t n, room;
    uint32_t *slots; /* index + 1, by hash; 0 is free */
    size_t n_slots;  /* a power of two, or 0 */
};

static void sums_free(struct sums *sums)
{
    free(sums->sum);
    free(sums->slots);
}

/* Symbols are small numbers that nobody outside chooses: they need no secret hash. */
static size_t slot_of(const struct sums *sums, const struct key *key)
{
    size_t mask = sums->n_slots - 1, at;
    uint64_t hash = 0;

    for (size_t i = 0; i < KEY_MAX; i++)
        hash = (hash ^ key->label[i]) * UINT64_C(0x9E3779B97F4A7C15);
    for (at = (hash >> 32) & mask; sums->slots[at]; at = (at + 1) & mask)
        if (memcmp(&sums->sum[sums->slots[at] - 1].key, key, sizeof(*key)) == 0)
            break;
    return at;
}

static void grow_slots(struct sums *sums)
{
    free(sums->slots);
    sums->n_slots = sums->n_slots ? 4 * sums->n_slots : 1024;
    sums->slots = heap_alloc(sums->n_slots * sizeof(*sums->slots));
    for (size_t i = 0; i < sums->n; i++)
        sums->slots[slot_of(sums, &sums->sum[i].key)] = (uint32_t)i + 1;
}

/* Valid until the next one is made. */
static struct sum *sum_of(struct sums *sums, struct key key)
{
    size_t slot;

    if (2 * sums->n >= sums->n_slots)
        grow_slots(sums);
    slot = slot_of(sums, &key);
    if (!sums->slots[slot]) {
        sums->sum = heap_grow(sums->sum, sums->n, &sums->room, sizeof(*sums->sum));
        sums->sum[sums->n] = (struct sum){ key, { NAN, NAN } };
        sums->slots[slot] = (uint32_t)++sums->n;
    }
    return &sums->sum[sums->slots[slot] - 1];
}

static void add(double *sum, double value)
{
    if (!isnan(value))
        *sum = isnan(*sum) ? value : *sum + value;
}

static struct key key_of(const struct lustre_id *id, symbol target)
{
    if (id->who == LUSTRE_JOB)
        return (struct key){ { id->account, id->user, target } };
    if (id->who == LUSTRE_NOBODY)
        return (struct key){ { target } };
    return (struct key){ { id->process, id->group, id->user, target } };
}

static void add_throughputs(struct sums *sums, const struct lustre *lustre, enum lustre_who who)
{
    for (size_t i = 0; i < lustre->n; i++) {
        const struct lustre_id *id = &lustre->id[i];
        struct sum *sum;

        if (id->who != who)
            continue;
        sum = sum_of(sums, key_of(id, 0));
        add(&sum->per_second[0], id->per_second[LUSTRE_READ_BYTES]);
        add(&sum->per_second[1], id->per_second[LUSTRE_WRITE_BYTES]);
    }
}

static void add_metadata(struct sums *sums, const struct lustre *lustre, enum lustre_who who)
{
    for (size_t i = 0; i < lustre->n_metadata; i++) {
        const struct lustre_metadata *metadata = &lustre->metadata[i];
        const struct lustre_id *id = &lustre->id[metadata->id];

        if (id->who == who)
            add(&sum_of(sums, key_of(id, metadata->target))->per_second[0], metadata->per_second);
    }
}

/* Those of the sums that a family shows. */
struct told {
    const struct section *section;
    const struct sum **sum;
    size_t n;
    size_t column; /* of per_second */
};

static void told_init(struct told *told, const struct section *section, const struct sums *sums,
                      size_t column)
{
    *told = (struct told){
        .section = section,
        .sum = heap_array(sums->n, sizeof(*told->sum)),
        .column = column,
    };
    for (size_t i = 0; i < sums->n; i++)
        if (!isnan(sums->sum[i].per_second[column]))
            told->sum[told->n++] = &sums->sum[i];
}

static struct str text_of(const struct told *told, const struct sum *sum, size_t label)
{
    return section_text(told->section, sum->key.label[label]);
}

static void write_sum(const struct told *told, const struct sum *sum, struct metric_writer *writer)
{
    struct str values[KEY_MAX];

    for (size_t i = 0; i < KEY_MAX; i++)
        values[i] = text_of(told, sum, i);
    metric_double(writer, values, sum->per_second[told->column]);
}

static int larger_first(const void *ctx, size_t a, size_t b)
{
    const struct told *told = ctx;
    const struct sum *x = told->sum[a], *y = told->sum[b];
    double more = x->per_second[told->column], less = y->per_second[told->column];
    int order = 0;

    if (more != less)
        return more > less ? -1 : 1;
    for (size_t i = 0; i < KEY_MAX && !order; i++)
        order = top_by_name(text_of(told, x, i), text_of(told, y, i));
    return order;
}

/* Somebody's process may itself be called so. */
static bool is_other(const struct told *told, const struct sum *sum)
{
    return str_eq(text_of(told, sum, 0), STR("other")) && !text_of(told, sum, 1).n &&
           !text_of(told, sum, 2).n;
}

/* What is not shown is added up by target, of which there are few. */
static void fold(const struct told *told, const struct sum *sum, struct sums *others)
{
    struct key key = { { [TARGET_OF_PROCESS] = sum->key.label[TARGET_OF_PROCESS] } };

    add(&sum_of(others, key)->per_second[told->column], sum->per_second[told->column]);
}

static void write_largest(const struct told *told, struct metric_writer *writer)
{
    bool *is_top = heap_array(told->n, sizeof(*is_top));
    struct sums others = { 0 };

    top_pick(told->n, MOST_PROCESSES, larger_first, told, is_top);
    for (size_t i = 0; i < told->n; i++) {
        if (is_top[i] && !is_other(told, told->sum[i])) {
            write_sum(told, told->sum[i], writer);
            continue;
        }
        fold(told, told->sum[i], &others);
        writer->folded += !is_other(told, told->sum[i]);
    }
    for (size_t i = 0; i < others.n; i++)
        metric_double(writer,
                      METRIC_VALUES(STR("other"), STR(""), STR(""),
                                    text_of(told, &others.sum[i], TARGET_OF_PROCESS)),
                      others.sum[i].per_second[told->column]);
    sums_free(&others);
    free(is_top);
}

static void write_sums(const struct section *section, const struct sums *sums, size_t column,
                       bool is_bounded, struct metric_writer *writer)
{
    struct told told;

    told_init(&told, section, sums, column);
    if (is_bounded && told.n > MOST_PROCESSES)
        write_largest(&told, writer);
    else
        for (size_t i = 0; i < told.n; i++)
            write_sum(&told, told.sum[i], writer);
    free(told.sum);
}

static void write_stages(const struct lustre *lustre, struct metric_writer *writer)
{
    metric_begin(writer, STAGE_SECONDS);
    for (size_t i = 0; i < LUSTRE_STAGES; i++)
        metric_double(writer, &stage_names[i], lustre->stage_seconds[i]);
}

/* Sums of ids of one kind, each column of which is a family. */
static const struct {
    void (*add)(struct sums *sums, const struct lustre *lustre, enum lustre_who who);
    enum lustre_who who;
    size_t families[2], n_families;
} plans[] = {
    { add_throughputs, LUSTRE_JOB, { JOB_READ, JOB_WRITE }, 2 },
    { add_throughputs, LUSTRE_PROCESS, { PROC_READ, PROC_WRITE }, 2 },
    { add_metadata, LUSTRE_JOB, { JOB_METADATA }, 1 },
    { add_metadata, LUSTRE_PROCESS, { PROC_METADATA }, 1 },
    { add_metadata, LUSTRE_NOBODY, { UNATTRIBUTED_METADATA }, 1 },
};

static void write_users(const struct section *section, struct metric_writer *writer)
{
    for (size_t i = 0; i < COUNT(plans); i++) {
        struct sums sums = { 0 };

        plans[i].add(&sums, &section->lustre, plans[i].who);
        for (size_t column = 0; column < plans[i].n_families; column++) {
            metric_begin(writer, plans[i].families[column]);
            write_sums(section, &sums, column, plans[i].who == LUSTRE_PROCESS, writer);
        }
        sums_free(&sums);
    }
}

static void write_unattributed(const struct lustre *lustre, struct metric_writer *writer)
{
    double read = 0, write = 0;

    for (size_t i = 0; i < lustre->n; i++) {
        if (lustre->id[i].who != LUSTRE_NOBODY)
            continue;
        add(&read, lustre->id[i].per_second[LUSTRE_READ_BYTES]);
        add(&write, lustre->id[i].per_second[LUSTRE_WRITE_BYTES]);
    }
    metric_begin(writer, UNATTRIBUTED_IDS);
    metric_u64(writer, METRIC_VALUES(STR("unknown_job")), lustre->unknown_jobs);
    metric_u64(writer, METRIC_VALUES(STR("unknown_user")), lustre->unknown_users);
    metric_u64(writer, METRIC_VALUES(STR("unreadable")), lustre->unreadable);
    metric_u64(writer, METRIC_VALUES(STR("other_user")), lustre->forged);
    metric_u64(writer, METRIC_VALUES(STR("too_many")), lustre->left_out);
    metric_begin(writer, UNATTRIBUTED_BYTES);
    metric_double(writer, METRIC_VALUES(STR("read")), read);
    metric_double(writer, METRIC_VALUES(STR("write")), write);
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    write_stages(&section->lustre, writer);
    write_users(section, writer);
    write_unattributed(&section->lustre, writer);
}

const struct collector collector_lustre = {
    .name = "lustre",
    .help = "who reads from and writes to Lustre, by account and user, and by process name",
    .kind = KIND_LUSTRE,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
