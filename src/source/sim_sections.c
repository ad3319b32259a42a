/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs, nodes, reservations and licences of the simulated cluster as sections. What is allocated on
 * the nodes and what is used of the licences is added up from the very jobs that run. */
#include "source/sim_sections.h"

#include <math.h>

enum { MIB = 1 << 20 };

struct job_filler {
    const struct sim_cluster *cluster;
    struct section *section;
    struct job *jobs;
    size_t n, cap, gpus_cap;
    struct buf text;
    /* Symbols of the words that repeat, 0 until they are met. */
    symbol *users, *accounts, *names;
    symbol qos[SIM_QOSES], reasons[SIM_REASONS], reservations[SIM_RESVS], logins[SIM_LOGINS];
};

static symbol put_once(struct section *section, symbol *known, struct str text)
{
    if (!*known)
        *known = symbols_put(&section->symbols, text);
    return *known;
}

static symbol put_text(struct job_filler *filler)
{
    symbol s = symbols_put(&filler->section->symbols, buf_str(&filler->text));

    buf_reset(&filler->text);
    return s;
}

static void fill_words(struct job_filler *filler, const struct sim_job *from, struct job *job)
{
    const struct sim_cluster *cluster = filler->cluster;
    struct section *section = filler->section;

    job->user = put_once(section, &filler->users[from->user], cluster->users[from->user]);
    job->account =
        put_once(section, &filler->accounts[from->account], cluster->accounts[from->account]);
    job->name = put_once(section, &filler->names[from->name], cluster->names[from->name]);
    job->qos = put_once(section, &filler->qos[from->qos], sim_qos[from->qos]);
    job->alloc_node = put_once(section, &filler->logins[from->login], sim_logins[from->login]);
    if (from->reservation != SIM_NONE)
        job->reservation = put_once(section, &filler->reservations[from->reservation],
                                    sim_reservation_names[from->reservation]);
    if (from->reason == SIM_REASON_NODES) {
        sim_put_reason(&filler->text, cluster, from);
        job->reason = put_text(filler);
    } else if (from->reason != SIM_REASON_NONE) {
        job->reason = put_once(section, &filler->reasons[from->reason], sim_reasons[from->reason]);
    }
}

static void fill_texts(struct job_filler *filler, const struct sim_job *from, struct job *job)
{
    job->features = symbols_put(&filler->section->symbols, sim_job_features(from));
    if (from->license_count) {
        sim_put_licenses(&filler->text, from);
        job->licenses = put_text(filler);
    }
    sim_put_partitions(&filler->text, from);
    job->partition = put_text(filler);
    if (from->nodes) {
        sim_put_nodes(&filler->text, filler->cluster, from->nodes, from->node_count);
        job->nodes = put_text(filler);
    }
    sim_put_tres(&filler->text, from, !from->nodes);
    job->tres = put_text(filler);
}

/* "0-1" on each of its nodes. */
static void fill_job_gpus(struct job_filler *filler, const struct sim_job *from)
{
    uint32_t per_node = from->gpus / from->node_count;
    struct jobs *jobs = &filler->section->jobs;
    symbol gpus;

    buf_u64(&filler->text, from->first_gpu);
    if (per_node > 1)
        buf_printf(&filler->text, "-%u", from->first_gpu + per_node - 1);
    gpus = put_text(filler);
    for (uint32_t i = 0; i < from->node_count; i++) {
        sim_put_node(&filler->text, filler->cluster, from->nodes[i]);
        jobs->gpus = heap_grow(jobs->gpus, jobs->n_gpus, &filler->gpus_cap, sizeof(*jobs->gpus));
        jobs->gpus[jobs->n_gpus++] =
            (struct job_gpus){ .job_id = from->id, .node = put_text(filler), .gpus = gpus };
    }
}

static int add_job(void *ctx, const struct sim_job *from)
{
    struct job_filler *filler = ctx;
    struct job *job;

    if (filler->n == filler->cap) {
        filler->cap = filler->cap * 3 / 2 + 64;
        filler->jobs = heap_resize(filler->jobs, filler->cap, sizeof(*filler->jobs));
    }
    job = &filler->jobs[filler->n++];
    *job = (struct job){
        .id = from->id,
        .array_job_id = from->array_id,
        .array_task_id = from->task,
        .tasks = from->tasks,
        .het_job_id = from->het_id,
        .het_offset = from->het_offset,
        .user_id = SIM_UID_FIRST + from->user,
        .restarts = from->restarts,
        .state = from->state,
        .cpus = from->cpus,
        .node_count = from->node_count,
        .memory_bytes = from->memory_mib * MIB,
        .time_limit_minutes = from->limit_minutes,
        .priority = from->priority,
        .submit_time = from->submit,
        .eligible_time = from->eligible,
        .start_time = from->start,
        .end_time = from->end,
    };
    fill_words(filler, from, job);
    fill_texts(filler, from, job);
    if (from->gpus && (from->state.base == JOB_RUNNING || from->state.base == JOB_SUSPENDED))
        fill_job_gpus(filler, from);
    return 0;
}

void sim_fill_jobs(const struct sim_cluster *cluster, int64_t time, struct section *section)
{
    struct job_filler filler = {
        .cluster = cluster,
        .section = section,
        .cap = cluster->sim.jobs + cluster->sim.jobs / 8 + 64,
        .users = heap_alloc(cluster->n_users * sizeof(symbol)),
        .accounts = heap_alloc(cluster->n_accounts * sizeof(symbol)),
        .names = heap_alloc(cluster->n_names * sizeof(symbol)),
    };

    filler.jobs = heap_array(filler.cap, sizeof(*filler.jobs));
    buf_init(&filler.text, (size_t)cluster->n_nodes * 16 + 4096);
    sim_each_job(cluster, time, false, add_job, &filler);
    section->jobs.n = filler.n;
    section->jobs.job = filler.jobs;
    arena_adopt(&section->arena, filler.jobs);
    arena_adopt(&section->arena, section->jobs.gpus);
    buf_free(&filler.text);
    free(filler.users);
    free(filler.accounts);
    free(filler.names);
}

struct node_use {
    uint64_t memory_mib;
    uint32_t cpus;
    uint8_t gpus; /* a bit each */
    bool is_completing, is_planned;
};

static int use_nodes(void *ctx, const struct sim_job *job)
{
    struct node_use *use = ctx;

    if (job->state.base == JOB_PENDING && job->width > 1 && job->reason == SIM_REASON_RESOURCES)
        for (uint32_t i = 0; i < job->width; i++)
            use[job->first_node + i].is_planned = true;
    if (!job_holds_resources(job->state))
        return 0;
    for (uint32_t i = 0; i < job->node_count; i++) {
        struct node_use *node = &use[job->nodes[i]];

        node->cpus += job->cpus / job->node_count;
        node->memory_mib += job->memory_mib / job->node_count;
        node->gpus |= (uint8_t)(((1u << job->gpus / job->node_count) - 1) << job->first_gpu);
        node->is_completing |= (job->state.flags & JOB_COMPLETING) != 0;
    }
    return 0;
}

static void add_outage(struct node_state *state, const struct sim_outage *outage, int64_t time)
{
    bool in_use = state->base != NODE_IDLE;

    switch (outage->kind) {
    case SIM_OUTAGE_DRAIN:
        state->flags |= NODE_DRAIN;
        break;
    case SIM_OUTAGE_DOWN:
        if (time >= outage->begin + SIM_SLURMD_TIMEOUT)
            state->base = NODE_DOWN;
        state->flags |= time < outage->begin + SIM_UNNOTICED ? NODE_NOT_RESPONDING : NODE_DRAIN;
        break;
    case SIM_OUTAGE_REBOOT:
        if (!in_use && time >= outage->end - SIM_REBOOT_TAKES)
            *state = (struct node_state){ NODE_DOWN, NODE_REBOOT_ISSUED };
        else
            state->flags |= NODE_DRAIN | NODE_REBOOT_REQUESTED;
        break;
    case SIM_OUTAGE_POWER:
        if (!in_use)
            state->flags |= time < outage->begin + 120 ? NODE_POWERING_DOWN
                            : time < outage->end - 300 ? NODE_POWERED_DOWN
                                                       : NODE_POWERING_UP;
        break;
    case SIM_OUTAGE_MAINT:
        state->flags |= NODE_RESERVED | NODE_MAINTENANCE;
        break;
    }
}

struct node_filler {
    const struct sim_cluster *cluster;
    struct section *section;
    int64_t time;
    struct buf text;
    uint32_t partition_index[SIM_PARTS];
    symbol gres[SIM_KINDS], features[SIM_KINDS], version, old_version;
};

static symbol put_node_text(struct node_filler *filler)
{
    symbol s = symbols_put(&filler->section->symbols, buf_str(&filler->text));

    buf_reset(&filler->text);
    return s;
}

/* "0-1,3" of the bits that are set. */
static void put_indexes(struct buf *buf, unsigned bits)
{
    const char *comma = "";

    for (unsigned i = 0; i < 8; i++) {
        unsigned begin = i;

        if (!(bits >> i & 1))
            continue;
        while (bits >> (i + 1) & 1)
            i++;
        buf_text(buf, comma);
        buf_u64(buf, begin);
        if (i > begin) {
            buf_byte(buf, '-');
            buf_u64(buf, i);
        }
        comma = ",";
    }
}

static void fill_gres(struct node_filler *filler, unsigned kind, unsigned gpus, struct node *node)
{
    if (!sim_kinds[kind].gpus)
        return;
    node->gres = filler->gres[kind];
    buf_printf(&filler->text, "gpu:%s:%d(IDX:", sim_kinds[kind].gpu.p, __builtin_popcount(gpus));
    if (gpus)
        put_indexes(&filler->text, gpus);
    else
        buf_text(&filler->text, "N/A");
    buf_byte(&filler->text, ')');
    node->gres_used = put_node_text(filler);
}

static void fill_state(struct node_filler *filler, uint32_t index, const struct node_use *use,
                       struct node *node)
{
    struct sim_outage outage;
    uint32_t reservation = sim_reserved_at(filler->cluster, index, filler->time);

    node->state.base = !use->cpus               ? NODE_IDLE
                       : use->cpus < node->cpus ? NODE_MIXED
                                                : NODE_ALLOCATED;
    if (use->is_completing)
        node->state.flags |= NODE_COMPLETING;
    if (reservation != SIM_NONE) {
        node->state.flags |= NODE_RESERVED;
        node->reservation =
            symbols_put(&filler->section->symbols, sim_reservation_names[reservation]);
    }
    if (!sim_outage_at(filler->cluster, index, filler->time, &outage)) {
        if (use->is_planned && node->state.base == NODE_IDLE)
            node->state.flags |= NODE_PLANNED;
        return;
    }
    add_outage(&node->state, &outage, filler->time);
    if (outage.kind == SIM_OUTAGE_MAINT)
        node->reservation =
            symbols_put(&filler->section->symbols, sim_reservation_names[SIM_RESV_MAINT]);
    node->reason = symbols_put(&filler->section->symbols, sim_outage_reason(&outage, filler->time));
    if (node->reason) {
        node->reason_user =
            symbols_put(&filler->section->symbols, sim_outage_admin(&outage, filler->time));
        node->reason_time = outage.begin;
        if (outage.kind == SIM_OUTAGE_DOWN)
            node->reason_time +=
                filler->time < outage.begin + SIM_UNNOTICED ? SIM_SLURMD_TIMEOUT : SIM_UNNOTICED;
    }
}

/* What slurmd measures, if it speaks. */
static void fill_load(const struct node_filler *filler, uint32_t index, const struct node_use *use,
                      struct node *node)
{
    const uint32_t silent = NODE_NOT_RESPONDING | NODE_POWERED_DOWN | NODE_POWERING_UP;
    /* slurmd tells about once in five minutes. */
    uint64_t key = sim_hash(filler->cluster->key ^ SIM_SALT_LOAD,
                            (uint64_t)index << 32 | (uint64_t)(filler->time / 300 & 0xffffffff));
    double busy = 0.8 + (double)(key % 1000) / 4500;

    if (node->state.base == NODE_DOWN || node->state.flags & silent) {
        node->cpu_load = NAN;
        node->memory_free_bytes = MODEL_UNKNOWN_U64;
        return;
    }
    node->cpu_load = round((use->cpus * busy + (double)(key / 1000 % 30) / 100) * 100) / 100;
    node->memory_free_bytes = node->memory_bytes / 100 * 96 -
                              (node->memory_alloc_bytes >> 20) * (30 + key % 60) / 100 * MIB;
}

static void fill_node(struct node_filler *filler, uint32_t index, const struct node_use *use,
                      struct node *node)
{
    unsigned kind = sim_kind_of(filler->cluster, index);
    const struct sim_kind *row = &sim_kinds[kind];

    sim_put_node(&filler->text, filler->cluster, index);
    node->name = put_node_text(filler);
    node->cpus = row->cpus;
    node->cpus_alloc = use->cpus;
    node->memory_bytes = (uint64_t)row->memory_mib * MIB;
    node->memory_alloc_bytes = use->memory_mib * MIB;
    node->features = filler->features[kind];
    node->weight = row->weight;
    node->version =
        sim_pick(filler->cluster->key, index, 100) < 3 ? filler->old_version : filler->version;
    fill_gres(filler, kind, use->gpus, node);
    fill_state(filler, index, use, node);
    if (node->state.base == NODE_DOWN || node->state.flags & NODE_DRAIN)
        node->cpus_other = row->cpus - use->cpus;
    else
        node->cpus_idle = row->cpus - use->cpus;
    fill_load(filler, index, use, node);
}

static void fill_partitions(struct node_filler *filler)
{
    struct section *section = filler->section;
    struct nodes *nodes = &section->nodes;
    unsigned present = 0;

    for (uint32_t i = 0; i < filler->cluster->n_nodes; i++)
        present |= sim_partitions_of(filler->cluster, i);
    nodes->partition = ARENA_ARRAY(&section->arena, struct partition, SIM_PARTS);
    for (unsigned i = 0; i < SIM_PARTS; i++) {
        if (!(present >> i & 1))
            continue;
        filler->partition_index[i] = (uint32_t)nodes->n_partitions;
        nodes->partition[nodes->n_partitions++] = (struct partition){
            .name = symbols_put(&section->symbols, sim_partitions[i].name),
            .is_default = sim_partitions[i].is_default,
            .is_up = sim_partitions[i].is_up,
            .time_limit_minutes = sim_partitions[i].limit_minutes,
        };
    }
}

static void fill_membership(struct node_filler *filler, uint32_t index, struct node *node)
{
    struct nodes *nodes = &filler->section->nodes;
    unsigned set = sim_partitions_of(filler->cluster, index);

    node->first_partition = (uint32_t)nodes->n_membership;
    for (unsigned i = 0; i < SIM_PARTS; i++)
        if (set >> i & 1)
            nodes->membership[nodes->n_membership++] = filler->partition_index[i];
    node->n_partitions = (uint32_t)nodes->n_membership - node->first_partition;
}

static void fill_constants(struct node_filler *filler)
{
    struct symbols *symbols = &filler->section->symbols;

    filler->version = symbols_put(symbols, STR(SIM_VERSION));
    filler->old_version = symbols_put(symbols, STR("24.11.4"));
    for (unsigned kind = 0; kind < SIM_KINDS; kind++) {
        filler->features[kind] = symbols_put(symbols, sim_kinds[kind].features);
        if (sim_kinds[kind].gpus) {
            buf_printf(&filler->text, "gpu:%s:%u(S:0-1)", sim_kinds[kind].gpu.p,
                       sim_kinds[kind].gpus);
            filler->gres[kind] = put_node_text(filler);
        }
    }
}

void sim_fill_nodes(const struct sim_cluster *cluster, int64_t time, struct section *section)
{
    struct node_filler filler = { .cluster = cluster, .section = section, .time = time };
    struct node_use *use = heap_alloc(cluster->n_nodes * sizeof(*use));
    struct nodes *nodes = &section->nodes;

    buf_init(&filler.text, 4096);
    sim_each_job(cluster, time, true, use_nodes, use);
    fill_constants(&filler);
    fill_partitions(&filler);
    nodes->n = cluster->n_nodes;
    nodes->node = ARENA_ARRAY(&section->arena, struct node, nodes->n);
    nodes->membership = ARENA_ARRAY(&section->arena, uint32_t, nodes->n * nodes->n_partitions);
    for (uint32_t i = 0; i < cluster->n_nodes; i++) {
        fill_node(&filler, i, &use[i], &nodes->node[i]);
        fill_membership(&filler, i, &nodes->node[i]);
    }
    buf_free(&filler.text);
    free(use);
}

static symbol put_node_range(const struct sim_cluster *cluster, struct section *section,
                             const struct sim_reservation *from)
{
    uint32_t *nodes = heap_array(from->count, sizeof(*nodes));
    struct buf text;
    symbol s;

    buf_init(&text, (size_t)from->count * 16 + 256);
    for (uint32_t begin = 0, i = 0; begin < from->count; begin = i) {
        struct str prefix = sim_kinds[sim_kind_of(cluster, from->first + begin)].prefix;

        for (; i < from->count; i++) {
            if (!str_eq(prefix, sim_kinds[sim_kind_of(cluster, from->first + i)].prefix))
                break;
            nodes[i] = from->first + i;
        }
        if (begin)
            buf_byte(&text, ',');
        sim_put_nodes(&text, cluster, nodes + begin, i - begin);
    }
    s = symbols_put(&section->symbols, buf_str(&text));
    buf_free(&text);
    free(nodes);
    return s;
}

static const struct {
    struct str users, accounts, flags;
    int64_t announced; /* seconds before its beginning */
} reservation_rows[SIM_RESVS] = {
    [SIM_RESV_MAINT] = { STR_INIT("root"), STR_INIT(""),
                         STR_INIT("MAINT,IGNORE_JOBS,WEEKLY,SPEC_NODES"), 5 * 86400 },
    [SIM_RESV_COURSE] = { STR_INIT(""), STR_INIT("ml-course"),
                          STR_INIT("IGNORE_JOBS,WEEKDAY,SPEC_NODES"), 7 * 86400 },
    [SIM_RESV_CAMPAIGN] = { STR_INIT("alice,bob"), STR_INIT("astro"),
                            STR_INIT("IGNORE_JOBS,FLEX,SPEC_NODES"), 2 * 86400 },
};

static void fill_reservation(const struct sim_cluster *cluster, struct section *section,
                             const struct sim_reservation *from, unsigned which, int64_t time,
                             struct reservation *to)
{
    struct symbols *symbols = &section->symbols;
    char tres[40];

    to->name = symbols_put(symbols, from->name);
    to->nodes = put_node_range(cluster, section, from);
    to->users = symbols_put(symbols, reservation_rows[which].users);
    to->accounts = symbols_put(symbols, reservation_rows[which].accounts);
    to->flags = symbols_put(symbols, reservation_rows[which].flags);
    to->node_count = from->count;
    for (uint32_t i = 0; i < from->count; i++)
        to->core_count += sim_kinds[sim_kind_of(cluster, from->first + i)].cpus;
    snprintf(tres, sizeof(tres), "cpu=%u", to->core_count);
    to->tres = symbols_put(symbols, str_of(tres));
    to->start_time = from->begin;
    to->end_time = from->end;
    to->is_active = from->begin <= time;
}

void sim_fill_reservations(const struct sim_cluster *cluster, int64_t time, struct section *section)
{
    struct reservations *list = &section->reservations;

    list->reservation = ARENA_ARRAY(&section->arena, struct reservation, SIM_RESVS);
    for (unsigned which = 0; which < SIM_RESVS; which++) {
        struct sim_reservation from;

        sim_reservation_at(cluster, which, time, &from);
        if (from.count && time >= from.begin - reservation_rows[which].announced)
            fill_reservation(cluster, section, &from, which, time, &list->reservation[list->n++]);
    }
}

static int use_licenses(void *ctx, const struct sim_job *job)
{
    uint64_t *used = ctx;

    if (job->state.base == JOB_RUNNING)
        used[job->license] += job->license_count;
    return 0;
}

void sim_fill_licenses(const struct sim_cluster *cluster, int64_t time, struct section *section)
{
    struct licenses *list = &section->licenses;
    uint64_t used[SIM_LICENSES] = { 0 };

    sim_each_job(cluster, time, true, use_licenses, used);
    list->n = SIM_LICENSES;
    list->license = ARENA_ARRAY(&section->arena, struct license, list->n);
    for (unsigned i = 0; i < SIM_LICENSES; i++) {
        bool is_remote = str_find(sim_license_names[i], '@') < sim_license_names[i].n;

        list->license[i] = (struct license){
            .name = symbols_put(&section->symbols, sim_license_names[i]),
            .is_remote = is_remote,
            .total = cluster->license_total[i],
            .used = used[i],
            .free = cluster->license_total[i] - used[i],
            .last_consumed = is_remote ? used[i] : 0,
        };
    }
}
