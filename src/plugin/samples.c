/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stores a step's samples so that writer and reader never wait for each other. */
#include "plugin/samples.h"

#include <math.h>
#include <stdatomic.h>

enum {
    CHUNK = 64, /* datasets whose pointers are allocated together; they never move */
    TRIES = 1000,
};

/* What is to be done with one field of a sample. */
struct slot {
    struct profile_field field;
    size_t at; /* its place in the data */
    bool is_double;
};

/* The fields of a dataset: those of all tasks are the same, and kept once. */
struct layout {
    struct layout *next;
    enum profile_kind kind;
    uint64_t identity; /* a hash of the names and types */
    size_t n;
    struct slot slots[];
};

/* NaN: not known. Stored with release and loaded with acquire, so that who sees a value of a later
 * version also sees that the version has changed. */
struct cell {
    _Atomic double original, value;
};

struct reading {
    double original, value;
};

struct dataset {
    const struct layout *layout;
    uint32_t task;
    uint32_t hidden;          /* bit i: slot i is told by another dataset */
    _Atomic uint64_t version; /* samples so far; cells of version v are copies[v % 2] */
    struct cell cells[];      /* two copies of layout->n */
};

struct samples {
    atomic_uint refs;
    struct profile_quirks quirks;
    struct layout *layouts;
    struct dataset **chunks[SAMPLES_DATASETS / CHUNK];
    _Atomic size_t n; /* those below it do not change any more */
    _Atomic uint64_t serial;
};

_Static_assert(SAMPLES_FIELDS <= 32, "`hidden` has one bit for each");

struct samples *samples_new(const struct profile_quirks *quirks)
{
    struct samples *samples = calloc(1, sizeof(*samples));

    if (samples) {
        atomic_init(&samples->refs, 1);
        samples->quirks = *quirks;
    }
    return samples;
}

struct samples *samples_ref(struct samples *samples)
{
    atomic_fetch_add(&samples->refs, 1);
    return samples;
}

static struct dataset *dataset_at(const struct samples *samples, size_t i)
{
    return samples->chunks[i / CHUNK][i % CHUNK];
}

struct samples *samples_free(struct samples *samples)
{
    if (!samples || atomic_fetch_sub(&samples->refs, 1) > 1)
        return NULL;
    for (size_t i = 0; i < samples_count(samples); i++)
        free(dataset_at(samples, i));
    for (size_t i = 0; i < COUNT(samples->chunks); i++)
        free(samples->chunks[i]);
    for (struct layout *next, *layout = samples->layouts; layout; layout = next) {
        next = layout->next;
        free(layout);
    }
    free(samples);
    return NULL;
}

/* FNV-1a */
static uint64_t hash(uint64_t so_far, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < n; i++)
        so_far = (so_far ^ p[i]) * UINT64_C(0x100000001b3);
    return so_far;
}

static uint64_t identify(const struct samples_field *fields, size_t n_fields)
{
    uint64_t identity = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < n_fields; i++) {
        identity = hash(identity, fields[i].name, strlen(fields[i].name) + 1);
        identity = hash(identity, fields[i].is_double ? "d" : "u", 1);
    }
    return identity;
}

static bool is_same_series(const struct profile_field *a, const struct profile_field *b)
{
    return a->metric == b->metric && str_eq(str_of(a->sensor), str_of(b->sensor));
}

static bool has_series(const struct layout *layout, const struct profile_field *field)
{
    for (size_t i = 0; i < layout->n; i++)
        if (is_same_series(&layout->slots[i].field, field))
            return true;
    return false;
}

static void fill_layout(struct layout *layout, const struct profile_quirks *quirks,
                        const struct samples_field *fields, size_t n_fields)
{
    for (size_t i = 0; i < n_fields && layout->n < SAMPLES_FIELDS; i++) {
        struct slot slot = { .at = i, .is_double = fields[i].is_double };

        if (profile_field_of(layout->kind, fields[i].name, quirks, &slot.field) &&
            !has_series(layout, &slot.field))
            layout->slots[layout->n++] = slot;
    }
}

static const struct layout *find_layout(const struct samples *samples, enum profile_kind kind,
                                        uint64_t identity)
{
    const struct layout *layout = samples->layouts;

    while (layout && (layout->kind != kind || layout->identity != identity))
        layout = layout->next;
    return layout;
}

/* NULL: no memory, or there is nothing in it. */
static const struct layout *make_layout(struct samples *samples, enum profile_kind kind,
                                        uint64_t identity, const struct samples_field *fields,
                                        size_t n_fields)
{
    size_t most = n_fields < SAMPLES_FIELDS ? n_fields : SAMPLES_FIELDS;
    struct layout *layout = calloc(1, sizeof(*layout) + most * sizeof(layout->slots[0]));

    if (!layout)
        return NULL;
    layout->kind = kind;
    layout->identity = identity;
    fill_layout(layout, &samples->quirks, fields, n_fields);
    if (!layout->n) {
        free(layout);
        return NULL;
    }
    layout->next = samples->layouts;
    samples->layouts = layout;
    return layout;
}

/* The slots of a new dataset that others of the same kind and task have. */
static uint32_t find_hidden(const struct samples *samples, const struct layout *layout,
                            uint32_t task)
{
    size_t n = samples_count(samples);
    uint32_t hidden = 0;

    for (size_t i = 0; i < n; i++) {
        const struct dataset *other = dataset_at(samples, i);

        if (other->layout->kind != layout->kind || other->task != task)
            continue;
        for (size_t k = 0; k < layout->n; k++)
            if (has_series(other->layout, &layout->slots[k].field))
                hidden |= UINT32_C(1) << k;
    }
    return hidden;
}

static struct dataset *make_dataset(const struct layout *layout, uint32_t task, uint32_t hidden)
{
    size_t n_cells = 2 * layout->n;
    struct dataset *dataset = calloc(1, sizeof(*dataset) + n_cells * sizeof(dataset->cells[0]));

    if (!dataset)
        return NULL;
    dataset->layout = layout;
    dataset->task = task;
    dataset->hidden = hidden;
    for (size_t i = 0; i < n_cells; i++) {
        atomic_init(&dataset->cells[i].original, NAN);
        atomic_init(&dataset->cells[i].value, NAN);
    }
    return dataset;
}

static int add_dataset(struct samples *samples, const struct layout *layout, uint32_t task)
{
    size_t n = samples_count(samples);
    uint32_t hidden = find_hidden(samples, layout, task);
    uint32_t all = UINT32_MAX >> (32 - layout->n);
    struct dataset ***chunk;

    if (n == SAMPLES_DATASETS || hidden == all)
        return -1;
    chunk = &samples->chunks[n / CHUNK];
    if (!*chunk)
        *chunk = calloc(CHUNK, sizeof(**chunk));
    if (!*chunk)
        return -1;
    (*chunk)[n % CHUNK] = make_dataset(layout, task, hidden);
    if (!(*chunk)[n % CHUNK])
        return -1;
    atomic_store_explicit(&samples->n, n + 1, memory_order_release);
    return (int)n;
}

int samples_dataset(struct samples *samples, enum profile_kind kind, uint32_t task,
                    const struct samples_field *fields, size_t n_fields)
{
    uint64_t identity = identify(fields, n_fields);
    const struct layout *layout = find_layout(samples, kind, identity);
    size_t n = samples_count(samples);

    if (kind != PROFILE_OF_TASK)
        task = 0;
    if (!layout)
        layout = make_layout(samples, kind, identity, fields, n_fields);
    if (!layout)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (dataset_at(samples, i)->layout == layout && dataset_at(samples, i)->task == task)
            return (int)i;
    return add_dataset(samples, layout, task);
}

static double number_at(const struct slot *slot, const void *data)
{
    const char *at = (const char *)data + 8 * slot->at;
    uint64_t whole;
    double number;

    if (!slot->is_double) {
        memcpy(&whole, at, sizeof(whole));
        return (double)whole;
    }
    memcpy(&number, at, sizeof(number));
    return number;
}

/* Slurm takes a last sample of a task when it has been reaped: there is no memory left. */
static bool is_over(const struct layout *layout, const void *data)
{
    bool has_memory = false;

    for (size_t i = 0; i < layout->n; i++) {
        if (!layout->slots[i].field.is_memory)
            continue;
        if (number_at(&layout->slots[i], data) != 0)
            return false;
        has_memory = true;
    }
    return has_memory;
}

static double convert(enum profile_conversion conversion, double number)
{
    static const double factors[] = {
        [PROFILE_AS_IS] = 1,         [PROFILE_SUM] = 1,
        [PROFILE_SUM_MIB] = 1048576, [PROFILE_SUM_PACKETS] = 65536,
        [PROFILE_MIB] = 1048576,     [PROFILE_KIB] = 1024,
        [PROFILE_GROWTH] = 1,        [PROFILE_GROWTH_MIB] = 1048576,
    };

    if (conversion == PROFILE_PERCENT)
        return number / 100; /* times 0.01 would not be the nearest double */
    if (conversion == PROFILE_FREQUENCY && number == 0)
        return NAN; /* Slurm does not know it */
    if (conversion == PROFILE_FREQUENCY)
        return number * (number < 100000 ? 1e6 : 1e3);
    return number * factors[conversion];
}

/* Since the sample before. The first two are 0 and all that there ever was. */
static double growth(double before, double number)
{
    return before > 0 && number > before ? number - before : 0;
}

/* The value of the new metric after `number`, given what was before. */
static double next_value(const struct profile_field *field, struct reading last, double number)
{
    bool is_growth = field->conversion == PROFILE_GROWTH || field->conversion == PROFILE_GROWTH_MIB;
    double before = last.value;
    double value = convert(field->conversion, is_growth ? growth(last.original, number) : number) /
                   (double)field->times;

    if (!(value >= 0 && value <= field->most))
        return before;
    if (profile_is_sum(field->conversion))
        return isnan(before) ? value : before + value;
    return field->is_gauge || isnan(before) || value > before ? value : before;
}

/* What a cell is after a sample that counts for it. */
static struct reading next_reading(const struct slot *slot, struct reading before, const void *data)
{
    double number = number_at(slot, data);

    return (struct reading){
        .original = isfinite(number) ? number : before.original,
        .value = next_value(&slot->field, before, number),
    };
}

static size_t copy_of(const struct dataset *dataset, uint64_t version)
{
    return version % 2 * dataset->layout->n;
}

static struct reading load(const struct cell *cell)
{
    return (struct reading){
        .original = atomic_load_explicit(&cell->original, memory_order_acquire),
        .value = atomic_load_explicit(&cell->value, memory_order_acquire),
    };
}

static void store(struct cell *cell, struct reading reading)
{
    atomic_store_explicit(&cell->original, reading.original, memory_order_release);
    atomic_store_explicit(&cell->value, reading.value, memory_order_release);
}

static void write_version(struct dataset *dataset, uint64_t version, const void *data)
{
    const struct layout *layout = dataset->layout;
    const struct cell *before = dataset->cells + copy_of(dataset, version - 1);
    struct cell *after = dataset->cells + copy_of(dataset, version);
    bool is_last = is_over(layout, data);

    for (size_t i = 0; i < layout->n; i++) {
        const struct slot *slot = &layout->slots[i];
        bool is_unset = slot->field.is_late && version == 1;
        bool is_stale = is_last && !profile_is_sum(slot->field.conversion);
        struct reading reading = load(&before[i]);

        if (!is_unset && !is_stale)
            reading = next_reading(slot, reading, data);
        store(&after[i], reading);
    }
}

void samples_add(struct samples *samples, int64_t number, const void *data)
{
    struct dataset *dataset;
    uint64_t version;

    if (number < 0 || (uint64_t)number >= samples_count(samples))
        return;
    dataset = dataset_at(samples, (size_t)number);
    version = atomic_load_explicit(&dataset->version, memory_order_relaxed) + 1;
    write_version(dataset, version, data);
    atomic_store_explicit(&dataset->version, version, memory_order_release);
    atomic_fetch_add_explicit(&samples->serial, 1, memory_order_release);
}

size_t samples_count(const struct samples *samples)
{
    return atomic_load_explicit(&samples->n, memory_order_acquire);
}

/* The copy of a version is written again only after the version has changed. */
static bool read_version(const struct dataset *dataset, struct reading ret[SAMPLES_FIELDS])
{
    for (unsigned try = 0; try < TRIES; try++) {
        uint64_t version = atomic_load_explicit(&dataset->version, memory_order_acquire);
        const struct cell *cells = dataset->cells + copy_of(dataset, version);

        if (!version)
            return false;
        for (size_t i = 0; i < dataset->layout->n; i++)
            ret[i] = load(&cells[i]);
        if (atomic_load_explicit(&dataset->version, memory_order_relaxed) == version)
            return true;
    }
    return false;
}

static void add_value(struct samples_view *view, const struct profile_metric *metric,
                      const char *sensor, double value)
{
    if (metric && !isnan(value))
        view->values[view->n++] = (struct samples_value){ metric, sensor, value };
}

bool samples_read(const struct samples *samples, size_t number, enum profile_names names,
                  struct samples_view *ret)
{
    struct reading readings[SAMPLES_FIELDS];
    const struct dataset *dataset;

    if (number >= samples_count(samples))
        return false;
    dataset = dataset_at(samples, number);
    if (!read_version(dataset, readings))
        return false;
    ret->kind = dataset->layout->kind;
    ret->task = dataset->task;
    ret->n = 0;
    for (size_t i = 0; i < dataset->layout->n; i++) {
        const struct profile_field *field = &dataset->layout->slots[i].field;

        if (dataset->hidden >> i & 1)
            continue;
        if (names & PROFILE_NAMES_NEW)
            add_value(ret, field->metric, field->sensor, readings[i].value);
        if (names & PROFILE_NAMES_ORIGINAL)
            add_value(ret, field->original, "", readings[i].original);
    }
    return true;
}

uint64_t samples_serial(const struct samples *samples)
{
    return atomic_load_explicit(&samples->serial, memory_order_acquire);
}
