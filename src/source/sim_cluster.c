/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What stays the same of the simulated cluster while time goes on: its nodes, how they are cut into
 * units, and how often each unit is used. */
#include "source/sim_cluster.h"

#include "base/num.h"

#include <math.h>

enum {
    HOUR = 3600,
    DAY = 24 * HOUR,
    SHORTEST_LEAD = 30, /* seconds */
    LONGEST_LEAD = 20 * DAY,
    /* Ids start again past this one: Slurm's default MaxJobId. */
    LAST_ID = 0x03ff0000,
    FEW = 8,            /* records, below which there is nothing to vary */
    BIG_QUEUE = 500000, /* from here on no job stays for long, or ids would be used up */
};

/* Ids count from here on. */
static const int64_t id_epoch = 1735689600; /* 2025-01-01 */

uint64_t sim_hash(uint64_t a, uint64_t b)
{
    uint64_t x = a ^ (b * 0x9e3779b97f4a7c15 + 0x632be59bd9b4e019);

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

const struct sim_kind sim_kinds[SIM_KINDS] = {
    [SIM_INTEL] = { STR_INIT("cn"), STR_INIT(""), STR_INIT("intel,icelake,ib"), 64, 2, 256000, 0,
                    10, 8 },
    [SIM_AMD] = { STR_INIT("cn"), STR_INIT(""), STR_INIT("amd,rome,ib"), 128, 2, 512000, 0, 20,
                  12 },
    [SIM_A100] = { STR_INIT("gpu"), STR_INIT("a100"), STR_INIT("amd,milan,a100,ib"), 64, 2, 512000,
                   4, 50, 4 },
    [SIM_H100] = { STR_INIT("gpu"), STR_INIT("h100"), STR_INIT("intel,sapphirerapids,h100,ib"), 128,
                   2, 1024000, 8, 60, 8 },
    [SIM_BIGMEM] = { STR_INIT("mem"), STR_INIT(""), STR_INIT("intel,icelake,bigmem"), 64, 2,
                     2048000, 0, 100, 6 },
};

const struct sim_partition sim_partitions[SIM_PARTS] = {
    [SIM_PART_CPU] = { STR_INIT("cpu"), true, true, 4 * 1440 },
    [SIM_PART_LONG] = { STR_INIT("long"), false, true, 14 * 1440 },
    [SIM_PART_GPU] = { STR_INIT("gpu"), false, true, 4 * 1440 },
    [SIM_PART_BIGMEM] = { STR_INIT("bigmem"), false, true, 4 * 1440 },
    [SIM_PART_DEBUG] = { STR_INIT("debug"), false, true, 30 },
    [SIM_PART_PREEMPT] = { STR_INIT("preempt"), false, true, SIM_NONE },
    [SIM_PART_LEGACY] = { STR_INIT("legacy"), false, false, 1440 },
};

static uint32_t digits_of(uint32_t number)
{
    char text[NUM_U64_MAX];
    size_t digits = num_put_u64(text, number);

    return digits < 2 ? 2 : (uint32_t)digits;
}

static void name_region(struct sim_region *regions, unsigned first_kind, unsigned last_kind)
{
    uint32_t number = 1;

    for (unsigned kind = first_kind; kind <= last_kind; kind++) {
        regions[kind].first_number = number;
        number += regions[kind].count;
    }
    for (unsigned kind = first_kind; kind <= last_kind; kind++)
        regions[kind].digits = digits_of(number - 1);
}

static void cut_regions(struct sim_cluster *cluster)
{
    struct sim_region *regions = cluster->regions;
    uint32_t n = cluster->n_nodes, first = 0;
    uint32_t gpu = n >= 4 ? sim_at_least_one(n / 8) : 0;
    uint32_t bigmem = n >= 16 ? sim_at_least_one(n / 32) : 0;
    uint32_t cpu = n - gpu - bigmem;

    regions[SIM_AMD].count = cpu >= 8 ? cpu * 2 / 5 : 0;
    regions[SIM_INTEL].count = cpu - regions[SIM_AMD].count;
    regions[SIM_H100].count = gpu >= 4 ? gpu / 3 : 0;
    regions[SIM_A100].count = gpu - regions[SIM_H100].count;
    regions[SIM_BIGMEM].count = bigmem;
    for (unsigned kind = 0; kind < SIM_KINDS; kind++) {
        regions[kind].first = first;
        first += regions[kind].count;
    }
    name_region(regions, SIM_INTEL, SIM_AMD);
    name_region(regions, SIM_A100, SIM_H100);
    name_region(regions, SIM_BIGMEM, SIM_BIGMEM);
}

static void place_partitions(struct sim_cluster *cluster)
{
    const struct sim_region *intel = &cluster->regions[SIM_INTEL];
    uint32_t n = cluster->n_nodes;

    cluster->debug_nodes = n >= 64 ? 2 : n >= 8;
    cluster->debug_gpu_nodes = n >= 64;
    cluster->long_count = intel->count / 3;
    cluster->long_first = intel->first + intel->count - cluster->long_count;
    cluster->legacy_count = n >= 32 ? sim_at_least_one(n / 50) : 0;
    cluster->legacy_first = intel->first + intel->count - cluster->legacy_count;
}

unsigned sim_kind_of(const struct sim_cluster *cluster, uint32_t node)
{
    unsigned kind = 0;

    while (node - cluster->regions[kind].first >= cluster->regions[kind].count)
        kind++;
    return kind;
}

static bool is_debug_node(const struct sim_cluster *cluster, uint32_t node)
{
    return node < cluster->debug_nodes ||
           node - cluster->regions[SIM_A100].first < cluster->debug_gpu_nodes;
}

unsigned sim_partitions_of(const struct sim_cluster *cluster, uint32_t node)
{
    static const unsigned by_kind[SIM_KINDS] = {
        [SIM_INTEL] = 1u << SIM_PART_CPU,     [SIM_AMD] = 1u << SIM_PART_CPU,
        [SIM_A100] = 1u << SIM_PART_GPU,      [SIM_H100] = 1u << SIM_PART_GPU,
        [SIM_BIGMEM] = 1u << SIM_PART_BIGMEM,
    };
    unsigned set = by_kind[sim_kind_of(cluster, node)] | 1u << SIM_PART_PREEMPT;

    if (is_debug_node(cluster, node))
        set |= 1u << SIM_PART_DEBUG;
    if (node - cluster->long_first < cluster->long_count)
        set |= 1u << SIM_PART_LONG;
    if (node - cluster->legacy_first < cluster->legacy_count)
        set |= 1u << SIM_PART_LEGACY;
    return set;
}

static void put_number(struct buf *buf, const struct sim_region *region, uint32_t node)
{
    char text[NUM_U64_MAX];
    size_t n = num_put_u64(text, node - region->first + region->first_number);

    for (size_t i = n; i < region->digits; i++)
        buf_byte(buf, '0');
    buf_put(buf, (struct str){ text, n });
}

void sim_put_node(struct buf *buf, const struct sim_cluster *cluster, uint32_t node)
{
    unsigned kind = sim_kind_of(cluster, node);

    buf_put(buf, sim_kinds[kind].prefix);
    put_number(buf, &cluster->regions[kind], node);
}

void sim_put_nodes(struct buf *buf, const struct sim_cluster *cluster, const uint32_t *nodes,
                   size_t n)
{
    size_t begin = 0;

    if (n == 1) {
        sim_put_node(buf, cluster, nodes[0]);
        return;
    }
    buf_put(buf, sim_kinds[sim_kind_of(cluster, nodes[0])].prefix);
    buf_byte(buf, '[');
    for (size_t i = 1; i <= n; i++) {
        if (i < n && nodes[i] == nodes[i - 1] + 1)
            continue;
        put_number(buf, &cluster->regions[sim_kind_of(cluster, nodes[begin])], nodes[begin]);
        if (i - begin > 1) {
            buf_byte(buf, '-');
            put_number(buf, &cluster->regions[sim_kind_of(cluster, nodes[i - 1])], nodes[i - 1]);
        }
        buf_byte(buf, i < n ? ',' : ']');
        begin = i;
    }
}

/* How long the jobs of a class are on average, how long they wait compared with others, and how
 * common the class is among units that are parts of a node and groups of nodes. */
static const struct {
    uint32_t period_minutes;
    double wait;
    uint8_t part_weight, group_weight;
} class_rows[SIM_CLASSES] = {
    [SIM_DEBUG] = { 12, 0.05, 0, 0 },       [SIM_SHORT] = { 40, 0.4, 12, 4 },
    [SIM_HOURS] = { 120, 0.7, 28, 18 },     [SIM_HALF_DAY] = { 360, 1.0, 30, 33 },
    [SIM_DAY] = { 1080, 1.8, 18, 28 },      [SIM_DAYS] = { 2880, 2.5, 9, 14 },
    [SIM_LONG] = { 7200, 4.0, 3, 3 },       [SIM_HET] = { 300, 1.5, 0, 0 },
    [SIM_ARRAY_SHORT] = { 240, 1.0, 0, 0 }, [SIM_ARRAY_LONG] = { 1200, 1.5, 0, 0 },
};

static double wait_of(const struct sim_cluster *cluster, unsigned id)
{
    return cluster->sim.jobs < BIG_QUEUE ? class_rows[id].wait : 1;
}

static bool is_array(unsigned class)
{
    return class == SIM_ARRAY_SHORT || class == SIM_ARRAY_LONG;
}

static unsigned draw_class(const struct sim_cluster *cluster, const struct sim_unit *unit,
                           uint64_t key)
{
    uint64_t drawn = sim_pick(key, SIM_SALT_CLASS, 100);
    uint32_t last = unit->node + unit->width - 1;
    unsigned id = SIM_SHORT;

    if (unit->lanes)
        return drawn < 50 ? SIM_ARRAY_SHORT : SIM_ARRAY_LONG;
    if (is_debug_node(cluster, unit->node) && is_debug_node(cluster, last))
        return SIM_DEBUG;
    for (;; id++) {
        uint64_t weight =
            unit->width > 1 ? class_rows[id].group_weight : class_rows[id].part_weight;

        if (drawn < weight)
            break;
        drawn -= weight;
    }
    if (id == SIM_LONG && (cluster->sim.jobs >= BIG_QUEUE ||
                           unit->node - cluster->long_first >= cluster->long_count ||
                           last - cluster->long_first >= cluster->long_count))
        id = SIM_DAYS;
    return id;
}

struct layout {
    struct sim_cluster *cluster;
    struct sim_unit *units;
    uint32_t n, cap;
};

static void add_unit(struct layout *layout, struct sim_unit unit, uint64_t key)
{
    struct sim_cluster *cluster = layout->cluster;

    if (unit.class == SIM_CLASSES)
        unit.class = (uint8_t)draw_class(cluster, &unit, key);
    if (!sim_kinds[unit.kind].gpus && sim_pick(key, SIM_SALT_LICENSE, 100) < 6) {
        unit.license = (uint8_t)(key % SIM_LICENSES);
        unit.license_count = (uint8_t)(1 + key / SIM_LICENSES % 4);
        cluster->license_total[unit.license] += unit.license_count * sim_at_least_one(unit.lanes);
    }
    if (layout->n == layout->cap) {
        layout->cap = layout->cap ? layout->cap * 2 : 64;
        layout->units = heap_resize(layout->units, layout->cap, sizeof(*layout->units));
    }
    layout->units[layout->n++] = unit;
}

/* Cuts `grains` into parts by halving, now the largest, now any. */
static void halve(uint32_t *parts, uint32_t n_parts, uint32_t grains, uint64_t key)
{
    parts[0] = grains;
    for (uint32_t n = 1; n < n_parts; n++) {
        uint32_t chosen = (uint32_t)sim_pick(key, n, n);

        if (parts[chosen] < 2 || sim_pick(key, n + 100, 100) < 70)
            for (uint32_t i = 0; i < n; i++)
                if (parts[i] > parts[chosen])
                    chosen = i;
        parts[n] = parts[chosen] / 2;
        parts[chosen] -= parts[n];
    }
}

/* A grain is a GPU with its share of the cores, or a core where there are none. */
static uint32_t add_lanes(struct layout *layout, struct sim_unit unit, uint32_t parts,
                          uint32_t grains, uint32_t cpus_per_grain, uint64_t key)
{
    uint32_t lanes = 2 + (uint32_t)sim_pick(key, SIM_SALT_TASKS, parts - 2 < 3 ? parts - 2 : 3);
    uint32_t grain = sim_at_least_one(grains / 4 / parts);

    unit.lanes = (uint8_t)lanes;
    unit.cpus = (uint16_t)(grain * cpus_per_grain);
    unit.gpus = sim_kinds[unit.kind].gpus ? (uint8_t)grain : 0;
    add_unit(layout, unit, key);
    return lanes;
}

static uint32_t add_parts(struct layout *layout, unsigned kind, uint32_t node, uint32_t parts,
                          uint64_t key)
{
    enum { MOST = 16 };
    const struct sim_kind *row = &sim_kinds[kind];
    uint32_t grains = row->gpus ? row->gpus : row->cpus, used = 0, lanes = 0;
    uint32_t cpus_per_grain = row->cpus / grains;
    struct sim_unit unit = {
        .node = node, .width = 1, .kind = (uint8_t)kind, .class = SIM_CLASSES
    };
    uint32_t sizes[MOST];

    if (parts >= 4 && !is_debug_node(layout->cluster, node) &&
        sim_pick(key, SIM_SALT_ARRAY, 100) < 30) {
        lanes = add_lanes(layout, unit, parts, grains, cpus_per_grain, key);
        used = lanes * sim_at_least_one(grains / 4 / parts);
    }
    if (lanes == parts)
        return parts;
    halve(sizes, parts - lanes, grains - used, key);
    for (uint32_t i = 0; i < parts - lanes; i++) {
        unit.first_cpu = (uint16_t)(used * cpus_per_grain);
        unit.cpus = (uint16_t)(sizes[i] * cpus_per_grain);
        if (row->gpus) {
            unit.first_gpu = (uint8_t)used;
            unit.gpus = (uint8_t)sizes[i];
        }
        add_unit(layout, unit, sim_hash(key, i));
        used += sizes[i];
    }
    return parts;
}

/* Returns how many records of the queue it stands for. */
static uint32_t add_group(struct layout *layout, unsigned kind, uint32_t node, uint32_t width,
                          uint32_t left, uint64_t key)
{
    const struct sim_kind *row = &sim_kinds[kind];
    bool is_het = width == 2 && left > 2 && sim_pick(key, SIM_SALT_CLASS, 100) < 45;
    struct sim_unit unit = { .node = node,
                             .width = width,
                             .kind = (uint8_t)kind,
                             .cpus = (uint16_t)row->cpus,
                             .gpus = (uint8_t)row->gpus,
                             .class = is_het ? SIM_HET : SIM_CLASSES };

    add_unit(layout, unit, key);
    return is_het ? 2 : 1;
}

/* How many nodes the next unit takes, where `left` records are to be had from `nodes` nodes. */
static uint32_t draw_width(const struct sim_kind *kind, uint32_t nodes, uint32_t left, uint64_t key)
{
    static const uint8_t widths[] = { 2, 2, 2, 3, 4, 4, 8, 16 };
    uint32_t width;

    if (left < nodes) {
        if (left >= FEW && sim_pick(key, SIM_SALT_WIDTH, 100) < 35)
            return 1;
        width = 1 + (uint32_t)sim_below(key, 2 * (nodes / left) - 1);
        return width < nodes ? width : nodes;
    }
    if (sim_pick(key, SIM_SALT_WIDTH, 100) >= 22)
        return 1;
    width = widths[key % sizeof(widths)];
    while (width >= 16 && width < nodes / 64 && sim_pick(key, width, 2))
        width *= 2;
    if (width > nodes / 2 || left - 1 > (uint64_t)(nodes - width) * kind->most_parts * 9 / 10)
        return 1;
    return width;
}

static uint32_t draw_parts(const struct sim_kind *kind, uint32_t nodes, uint32_t left, uint64_t key)
{
    uint32_t parts = left / nodes + (sim_below(key, nodes) < left % nodes);

    /* Where groups of nodes make up most units, a few nodes are still shared. */
    if (left < nodes && left >= FEW)
        parts = 4;
    if (parts >= 3)
        parts += (uint32_t)(key % 3) - 1;
    if (parts > kind->most_parts)
        parts = kind->most_parts;
    return parts < left ? sim_at_least_one(parts) : left;
}

static void fill_region(struct layout *layout, unsigned kind, uint32_t budget)
{
    const struct sim_cluster *cluster = layout->cluster;
    const struct sim_region *region = &cluster->regions[kind];
    uint64_t key = sim_hash(cluster->key, SIM_SALT_LAYOUT);
    uint32_t left = budget;

    for (uint32_t at = 0; at < region->count && left;) {
        uint32_t node = region->first + at, nodes = region->count - at;
        uint64_t node_key = sim_hash(key, node);
        uint32_t width = draw_width(&sim_kinds[kind], nodes, left, node_key);

        if (width > 1)
            left -= add_group(layout, kind, node, width, left, node_key);
        else
            left -= add_parts(layout, kind, node,
                              draw_parts(&sim_kinds[kind], nodes, left, node_key), node_key);
        at += width;
    }
}

/* Not quite half of the records run, as far as the nodes can be cut up. */
static void fill_regions(struct layout *layout)
{
    const struct sim_cluster *cluster = layout->cluster;
    uint64_t most = 0, given = 0, seen = 0, budget = (cluster->sim.jobs * 9 + 10) / 20;

    for (unsigned kind = 0; kind < SIM_KINDS; kind++)
        most += (uint64_t)cluster->regions[kind].count * sim_kinds[kind].most_parts;
    if (budget > most * 7 / 10)
        budget = most * 7 / 10;
    for (unsigned kind = 0; kind < SIM_KINDS; kind++) {
        uint64_t upto;

        seen += (uint64_t)cluster->regions[kind].count * sim_kinds[kind].most_parts;
        upto = (seen * sim_at_least_one((uint32_t)budget) + most - 1) / most;
        fill_region(layout, kind, (uint32_t)(upto - given));
        given = upto;
    }
}

static void sort_units(struct sim_cluster *cluster, const struct layout *layout)
{
    uint32_t at[SIM_CLASSES] = { 0 }, first = 0;

    cluster->n_units = layout->n;
    cluster->units = ARENA_ARRAY(&cluster->arena, struct sim_unit, layout->n);
    for (uint32_t i = 0; i < layout->n; i++)
        cluster->classes[layout->units[i].class].n_units++;
    for (unsigned id = 0; id < SIM_CLASSES; id++) {
        at[id] = first;
        cluster->classes[id].units = &cluster->units[first];
        first += cluster->classes[id].n_units;
    }
    for (uint32_t i = 0; i < layout->n; i++)
        cluster->units[at[layout->units[i].class]++] = layout->units[i];
}

static void lay_out(struct sim_cluster *cluster)
{
    struct layout layout = { .cluster = cluster };

    fill_regions(&layout);
    sort_units(cluster, &layout);
    free(layout.units);
    for (unsigned i = 0; i < SIM_LICENSES; i++)
        cluster->license_total[i] += cluster->license_total[i] / 8 + 2;
}

/* Records that a class shows besides those that wait for its lead: running, between two turns, and
 * finished a short while ago. The shares are what the timelines come to, measured. */
static double steady_records(const struct sim_class *class, unsigned id)
{
    const double busy = 0.87, between = 0.25, lane_busy = 0.73;
    double tail = (double)SIM_MIN_JOB_AGE / (class_rows[id].period_minutes * 60.0);
    double sum = 0;

    if (!is_array(id))
        return class->n_units * (busy + between + tail) * (id == SIM_HET ? 2 : 1);
    for (uint32_t i = 0; i < class->n_units; i++) {
        double lanes = class->units[i].lanes, tasks = (4 * lanes + class->ids) / 2;

        sum += lanes * lane_busy + busy + between + tasks * tail;
    }
    return sum;
}

/* The wait, in seconds, that makes the queue as long as it was asked to be, if all jobs run. */
static double solve_lead(const struct sim_cluster *cluster)
{
    double steady = 0, per_second = 0;

    for (unsigned id = 0; id < SIM_CLASSES; id++) {
        const struct sim_class *class = &cluster->classes[id];

        steady += steady_records(class, id);
        per_second += class->n_units * wait_of(cluster, id) * (id == SIM_HET ? 2 : 1) /
                      (class_rows[id].period_minutes * 60.0);
    }
    return per_second > 0 ? ((double)cluster->sim.jobs - steady) / per_second : 0;
}

/* Starts follow submissions where the queue is short; a long one evens them out, and grows by day
 * and shrinks by night, by at most a small part. */
static double evenness_of(const struct sim_cluster *cluster, double lead)
{
    const double most = 0.1;
    double deviation = 0;

    for (unsigned hour = 0; hour < SIM_WEEK_HOURS; hour++) {
        double even = (double)hour * HOUR * SIM_WORK_PER_SECOND;
        double by = (double)cluster->submits.work[hour] - even;

        if (by < 0)
            by = -by;
        if (by > deviation)
            deviation = by;
    }
    return lead * most < deviation ? lead * most / deviation : 1;
}

static void time_class(struct sim_cluster *cluster, unsigned id, double lead_seconds,
                       uint32_t surplus)
{
    struct sim_class *class = &cluster->classes[id];
    double seconds = lead_seconds * wait_of(cluster, id);
    uint64_t period = (uint64_t)class_rows[id].period_minutes * 60 * SIM_WORK_PER_SECOND;

    if (!class->n_units)
        return;
    if (seconds < SHORTEST_LEAD)
        seconds = SHORTEST_LEAD;
    class->key = sim_hash(cluster->key, 1000 + id);
    class->surplus = surplus;
    class->spacing = period / class->n_units / surplus;
    class->turn = class->spacing * surplus;
    class->period = class->turn * class->n_units;
    class->lead = (uint64_t)(seconds * SIM_WORK_PER_SECOND);
    class->jitter = class->spacing < class->lead / 10 * 9 ? class->spacing : class->lead / 10 * 9;
    sim_rhythm_init(&class->starts, evenness_of(cluster, (double)class->lead));
}

/* With arrays of at most that many tasks. */
static void time_classes(struct sim_cluster *cluster, uint32_t array_ids)
{
    uint32_t surplus = 1;
    double lead_seconds;

    for (unsigned id = 0; id < SIM_CLASSES; id++)
        cluster->classes[id].ids = id == SIM_HET ? 2 : is_array(id) ? array_ids : 1;
    lead_seconds = solve_lead(cluster);
    /* More than the nodes can do in weeks is not waited for: most of it is withdrawn in the end. */
    if (lead_seconds > LONGEST_LEAD) {
        surplus = (uint32_t)ceil(lead_seconds / LONGEST_LEAD);
        lead_seconds /= surplus;
    }
    for (unsigned id = 0; id < SIM_CLASSES; id++)
        time_class(cluster, id, lead_seconds, surplus);
}

/* Ids that are given out while the job that stays longest can be seen. */
static double ids_in_sight(const struct sim_cluster *cluster)
{
    double longest = 0, ids_per_work = 0;

    for (unsigned id = 0; id < SIM_CLASSES; id++) {
        const struct sim_class *class = &cluster->classes[id];
        double stay = (double)class->lead + 1.5 * (double)class->period;

        if (!class->n_units)
            continue;
        ids_per_work += class->ids / (double)class->spacing;
        if (stay > longest)
            longest = stay;
    }
    return longest * ids_per_work;
}

/* Arrays are as large as they can be without an id being given out again too early. */
static void number_jobs(struct sim_cluster *cluster)
{
    enum { LARGEST_ARRAY = 256, SMALLEST_ARRAY = 32 };
    uint64_t work;

    sim_rhythm_init(&cluster->submits, 0);
    for (uint32_t ids = LARGEST_ARRAY; ids >= SMALLEST_ARRAY; ids /= 2) {
        time_classes(cluster, ids);
        if (ids_in_sight(cluster) < LAST_ID * 0.8)
            break;
    }
    work = sim_work_at(&cluster->submits, id_epoch);
    for (unsigned id = 0; id < SIM_CLASSES; id++)
        cluster->id_offset += cluster->classes[id].ids * sim_submitted(&cluster->classes[id], work);
}

void sim_set_defaults(struct sim *sim)
{
    if (!sim->nodes)
        sim->nodes = 128;
    if (!sim->jobs)
        sim->jobs = sim->nodes * 8;
    if (!sim->users)
        sim->users = 10 + (uint64_t)(6 * sqrt((double)sim->nodes));
}

void sim_cluster_init(struct sim_cluster *cluster, const struct sim *sim)
{
    *cluster = (struct sim_cluster){ .sim = *sim };
    sim_set_defaults(&cluster->sim);
    cluster->key = sim_hash(sim->seed, 0);
    cluster->n_nodes = (uint32_t)cluster->sim.nodes;
    cluster->n_users = (uint32_t)cluster->sim.users;
    cut_regions(cluster);
    place_partitions(cluster);
    lay_out(cluster);
    number_jobs(cluster);
    sim_words_init(cluster);
}

void sim_cluster_free(struct sim_cluster *cluster)
{
    arena_clear(&cluster->arena);
}

uint64_t sim_submit_work(const struct sim_class *class, uint64_t n)
{
    return n * class->spacing + sim_below(sim_hash(class->key ^ SIM_SALT_JITTER, n), class->jitter);
}

/* Up to half a period late, so that jobs on one unit differ in length. */
uint64_t sim_start_work(const struct sim_class *class, uint64_t turn)
{
    return turn * class->turn + class->lead +
           sim_below(sim_hash(class->key ^ SIM_SALT_WOBBLE, turn), class->period / 2);
}

uint64_t sim_submitted(const struct sim_class *class, uint64_t work)
{
    uint64_t n = class->spacing ? work / class->spacing : 0;

    return n + (class->spacing && sim_submit_work(class, n) < work);
}

/* One more than all ids taken by what was submitted before, in whatever class. */
uint32_t sim_job_id(const struct sim_cluster *cluster, unsigned class, uint64_t n)
{
    uint64_t work = sim_submit_work(&cluster->classes[class], n);
    uint64_t taken = 0;

    for (unsigned id = 0; id < SIM_CLASSES; id++) {
        const struct sim_class *other = &cluster->classes[id];

        /* At the same moment the lower class comes first. */
        taken += other->ids * (id == class ? n : sim_submitted(other, work + (id < class)));
    }
    return 1 + (uint32_t)((taken % LAST_ID + LAST_ID - cluster->id_offset % LAST_ID) % LAST_ID);
}

const struct sim_unit *sim_unit_of(const struct sim_class *class, uint64_t turn)
{
    /* A prime larger than any number of units scatters neighbours over the cluster. */
    return &class->units[turn % class->n_units * 2654435761 % class->n_units];
}
