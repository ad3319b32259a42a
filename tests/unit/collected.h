/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a collector gives of a section that a test has made by hand. */
#ifndef SONDE_TESTS_COLLECTED_H
#define SONDE_TESTS_COLLECTED_H

#include "test.h"

#include "collector/collector.h"

struct collected {
    struct buf text;
    size_t samples, duplicates, folded;
};

static inline struct collected collect_from(const char *name, const struct section *section)
{
    const struct collector *collector = collectors[collector_find(str_of(name))];
    struct collected collected;
    struct metric_writer writer;

    buf_init(&collected.text, 64 << 20);
    metric_writer_init(&writer, &collected.text, METRIC_TEXT, STR(""), collector->families,
                       collector->n_families);
    collector->collect(section, &writer);
    assert_int_equal(collector->kind, section->kind);
    assert_false(collected.text.over);
    collected.samples = writer.samples;
    collected.duplicates = writer.duplicates;
    collected.folded = writer.folded;
    metric_writer_free(&writer);
    return collected;
}

/* The samples of one family, without its HELP and TYPE. */
static inline void put_family(struct buf *to, struct str text, struct str family)
{
    while (text.n) {
        struct str line = str_cut(&text, '\n');
        struct str name = str_head(line, str_find(line, ' '));

        if (str_eq(str_head(name, str_find(name, '{')), family)) {
            buf_put(to, line);
            buf_byte(to, '\n');
        }
    }
}

static inline void check_family(const char *collector, const struct section *section,
                                const char *family, const char *expected)
{
    struct collected collected = collect_from(collector, section);
    struct buf found;

    buf_init(&found, 64 << 20);
    put_family(&found, buf_str(&collected.text), str_of(family));
    if (!str_eq(buf_str(&found), str_of(expected)))
        fail_msg("%s gives of %s:\n%.*sand not:\n%s", collector, family, STR_ARG(buf_str(&found)),
                 expected);
    buf_free(&found);
    buf_free(&collected.text);
}

#endif
