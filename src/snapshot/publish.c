/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "snapshot/publish.h"

#include "base/clock.h"
#include "metric/convert.h"

static void render(const struct publish_config *config, const struct collector *collector,
                   uint64_t excluded, const struct section *section, enum metric_format format,
                   struct edition_collector *to)
{
    int64_t began = clock_mono(config->clock);
    struct metric_writer writer;
    struct buf text;

    buf_init(&text, config->max_segment);
    metric_writer_init(&writer, &text, format, config->const_labels, collector->families,
                       collector->n_families);
    writer.excluded = excluded;
    collector->collect(section, &writer);
    to->is_over = text.over;
    to->samples = text.over ? 0 : writer.samples;
    to->duplicates = writer.duplicates;
    to->folded = writer.folded;
    if (text.over)
        buf_reset(&text);
    to->segments[format] = segment_new(&text);
    buf_free(&text);
    metric_writer_free(&writer);
    to->seconds = (double)(clock_mono(config->clock) - began) / NS_PER_SEC;
}

struct edition *edition_new(const struct publish_config *config, struct section *section,
                            unsigned formats)
{
    struct edition *edition = heap_alloc(sizeof(*edition));

    atomic_init(&edition->refs, 1);
    edition->formats = formats;
    if (config->keeps_facts)
        edition->section = section_ref(section);
    for (size_t i = 0; collectors[i]; i++) {
        if (collectors[i]->kind != section->kind || !(config->collectors & (collector_set)1 << i))
            continue;
        for (unsigned format = 0; format < METRIC_FORMATS; format++)
            if (formats & FORMAT_BIT(format))
                render(config, collectors[i], config->excluded[i], section, format,
                       &edition->collectors[i]);
    }
    return edition;
}

/* From the first format that there is. */
static struct segment *convert(const struct collector *collector,
                               struct segment *const segments[METRIC_FORMATS],
                               enum metric_format to)
{
    struct segment *segment;
    unsigned from = 0;
    struct buf text;

    while (!segments[from])
        from++;
    /* A bound grows by two bytes, a header by less than its own length. */
    buf_init(&text, 2 * segments[from]->text.n + 64);
    metric_convert(collector->families, collector->n_families, buf_str(&segments[from]->text), from,
                   to, &text);
    segment = segment_new(&text);
    buf_free(&text);
    return segment;
}

struct edition *edition_convert(const struct edition *old, unsigned formats)
{
    struct edition *edition = heap_alloc(sizeof(*edition));

    *edition = *old;
    atomic_init(&edition->refs, 1);
    edition->formats |= formats;
    if (old->section)
        section_ref(old->section);
    for (size_t i = 0; collectors[i]; i++) {
        struct edition_collector *to = &edition->collectors[i];

        if (!to->segments[METRIC_TEXT] && !to->segments[METRIC_OPENMETRICS])
            continue;
        for (unsigned format = 0; format < METRIC_FORMATS; format++) {
            if (to->segments[format])
                segment_ref(to->segments[format]);
            else if (formats & FORMAT_BIT(format))
                to->segments[format] = convert(collectors[i], old->collectors[i].segments, format);
        }
    }
    return edition;
}

struct edition *edition_ref(struct edition *edition)
{
    atomic_fetch_add_explicit(&edition->refs, 1, memory_order_relaxed);
    return edition;
}

struct edition *edition_unref(struct edition *edition)
{
    if (edition && atomic_fetch_sub_explicit(&edition->refs, 1, memory_order_acq_rel) == 1) {
        for (size_t i = 0; i < COLLECTORS_MAX; i++)
            for (unsigned format = 0; format < METRIC_FORMATS; format++)
                segment_unref(edition->collectors[i].segments[format]);
        section_unref(edition->section);
        free(edition);
    }
    return NULL;
}

struct snapshot *snapshot_new(void)
{
    struct snapshot *snapshot = heap_alloc(sizeof(*snapshot));

    atomic_init(&snapshot->refs, 1);
    return snapshot;
}

struct snapshot *snapshot_with(const struct snapshot *old, enum kind kind, struct edition *edition)
{
    struct snapshot *snapshot = snapshot_new();

    snapshot->serial = old->serial + 1;
    for (int i = 0; i < KINDS; i++)
        if (i != (int)kind && old->editions[i])
            snapshot->editions[i] = edition_ref(old->editions[i]);
    snapshot->editions[kind] = edition;
    return snapshot;
}

struct snapshot *snapshot_ref(struct snapshot *snapshot)
{
    atomic_fetch_add_explicit(&snapshot->refs, 1, memory_order_relaxed);
    return snapshot;
}

struct snapshot *snapshot_unref(struct snapshot *snapshot)
{
    if (snapshot && atomic_fetch_sub_explicit(&snapshot->refs, 1, memory_order_acq_rel) == 1) {
        for (int i = 0; i < KINDS; i++)
            edition_unref(snapshot->editions[i]);
        free(snapshot);
    }
    return NULL;
}
