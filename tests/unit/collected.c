/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a collector writes about a section that a test has made. */
#include "collected.h"

struct collected collected;
static struct buf samples; /* those that were last asked for */

struct collected collect_as(enum metric_format format, const struct collector *collector,
                            const struct section *section)
{
    struct metric_writer writer;
    struct collected result;

    assert_int_equal(collector->kind, section->kind);
    buf_init(&result.text, 64 << 20);
    metric_writer_init(&writer, &result.text, format, STR(""), collector->families,
                       collector->n_families);
    collector->collect(section, &writer);
    assert_false(result.text.over);
    result.samples = writer.samples;
    result.duplicates = writer.duplicates;
    result.folded = writer.folded;
    metric_writer_free(&writer);
    return result;
}

/* ends: what may follow the prefix; NULL if anything may. */
static const char *find_samples(const char *collector, const struct section *section,
                                const char *prefix, const char *ends)
{
    buf_free(&collected.text);
    collected = collect_as(METRIC_TEXT, collectors[collector_find(str_of(collector))], section);
    buf_free(&samples);
    buf_init(&samples, 64 << 20);
    for (struct str rest = buf_str(&collected.text); rest.n;) {
        struct str line = str_cut(&rest, '\n');

        if (line.p[0] == '#' || !str_starts(line, str_of(prefix)) ||
            (ends && !strchr(ends, line.p[strlen(prefix)])))
            continue;
        buf_put(&samples, line);
        buf_byte(&samples, '\n');
    }
    return buf_str(&samples).p;
}

const char *collect(const char *collector, const struct section *section, const char *prefix)
{
    return find_samples(collector, section, prefix, NULL);
}

size_t count_samples(const char *collector, const struct section *section, const char *prefix)
{
    size_t n = 0;

    for (struct str rest = str_of(collect(collector, section, prefix)); rest.n; n++)
        str_cut(&rest, '\n');
    return n;
}

void check_family(const char *collector, const struct section *section, const char *family,
                  const char *expected)
{
    const char *found = find_samples(collector, section, family, "{ ");

    if (strcmp(found, expected) != 0)
        fail_msg("%s writes of %s:\n%sand not:\n%s", collector, family, found, expected);
}
