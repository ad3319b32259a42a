/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Renders editions and publishes the newest snapshot. */
#include "snapshot/publish.h"

#include "base/clock.h"
#include "metric/convert.h"

/* Takes the text over. */
static void keep_text(const struct collector *collector, struct str prefix, struct buf *text,
                      bool is_split, enum metric_format format, struct edition_collector *to)
{
    if (is_split)
        to->splits[format] =
            split_new(collector->families, collector->n_families, prefix, buf_str(text));
    else
        to->segments[format] = segment_new(text);
    buf_free(text);
}

static void render(const struct publish_config *config, const struct collector *collector,
                   struct str prefix, family_set excluded, const struct section *section,
                   enum metric_format format, struct edition_collector *to)
{
    int64_t began = clock_mono(config->clock);
    struct metric_writer writer;
    struct buf text;

    buf_init(&text, config->max_segment);
    metric_writer_init(&writer, &text, format, config->const_labels, collector->families,
                       collector->n_families);
    writer.prefix = prefix;
    writer.excluded = excluded;
    collector->collect(section, &writer);
    to->is_over = text.over;
    to->samples = text.over ? 0 : writer.samples;
    to->duplicates = writer.duplicates;
    to->folded = writer.folded;
    if (text.over)
        buf_reset(&text);
    keep_text(collector, prefix, &text, config->is_split, format, to);
    metric_writer_free(&writer);
    to->seconds = (double)(clock_mono(config->clock) - began) / NS_PER_SEC;
}

static struct str prefix_of(const struct edition *edition, const struct collector *collector)
{
    return collector->is_prefixed ? str_of(edition->prefix) : STR("");
}

struct edition *edition_new(const struct publish_config *config, struct section *section,
                            unsigned formats)
{
    struct edition *edition = heap_alloc(sizeof(*edition));

    atomic_init(&edition->refs, 1);
    edition->formats = formats;
    memcpy(edition->prefix, config->prefix, sizeof(edition->prefix));
    if (config->keeps_facts)
        edition->section = section_ref(section);
    for (size_t i = 0; collectors[i]; i++) {
        if (collectors[i]->kind != section->kind || !(config->collectors & (collector_set)1 << i))
            continue;
        for (unsigned format = 0; format < METRIC_FORMATS; format++)
            if (formats & FORMAT_BIT(format))
                render(config, collectors[i], prefix_of(edition, collectors[i]),
                       config->excluded[i], section, format, &edition->collectors[i]);
    }
    return edition;
}

/* Makes a format that is not there from the first that is. */
static void convert(const struct collector *collector, struct str prefix, enum metric_format to,
                    struct edition_collector *of)
{
    unsigned from = 0;
    struct buf joined, text;
    struct str source;

    while (!of->segments[from] && !of->splits[from])
        from++;
    buf_init(&joined, SIZE_MAX / 4);
    if (of->splits[from])
        split_join(of->splits[from], &joined);
    source = of->splits[from] ? buf_str(&joined) : buf_str(&of->segments[from]->text);
    /* A bound grows by two bytes, a header by less than its own length. */
    buf_init(&text, 2 * source.n + 64);
    metric_convert(collector->families, collector->n_families, prefix, source, from, to, &text);
    keep_text(collector, prefix, &text, of->splits[from] != NULL, to, of);
    buf_free(&joined);
}

static void take_refs(struct edition_collector *of)
{
    for (unsigned format = 0; format < METRIC_FORMATS; format++) {
        if (of->segments[format])
            segment_ref(of->segments[format]);
        if (of->splits[format])
            split_ref(of->splits[format]);
    }
}

bool edition_has(const struct edition *edition, size_t collector, enum metric_format format)
{
    const struct edition_collector *of = &edition->collectors[collector];

    return of->segments[format] || of->splits[format];
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
        if (!edition_has(old, i, METRIC_TEXT) && !edition_has(old, i, METRIC_OPENMETRICS))
            continue;
        take_refs(&edition->collectors[i]);
        for (unsigned format = 0; format < METRIC_FORMATS; format++)
            if (formats & FORMAT_BIT(format) && !edition_has(edition, i, format))
                convert(collectors[i], prefix_of(edition, collectors[i]), format,
                        &edition->collectors[i]);
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
        for (size_t i = 0; i < COLLECTORS_MAX; i++) {
            for (unsigned format = 0; format < METRIC_FORMATS; format++) {
                segment_unref(edition->collectors[i].segments[format]);
                split_unref(edition->collectors[i].splits[format]);
            }
        }
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
