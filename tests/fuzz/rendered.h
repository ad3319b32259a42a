/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What collectors write of a section, for fuzz targets. Without an edition, which also compresses
 * each piece: most of the time went there, into code that is zlib's. */
#ifndef SONDE_TESTS_FUZZ_RENDERED_H
#define SONDE_TESTS_FUZZ_RENDERED_H

#include "collector/collector.h"

#include "fuzz.h"

struct rendered {
    uint64_t digest; /* of the first format */
    size_t duplicates;
    bool is_over;
};

/* Writes all collectors of the section's kind in the first n formats. */
static inline struct rendered render(const struct section *section, int n_formats)
{
    static struct buf text; /* stays: growing it again for each input costs more than writing */
    struct rendered rendered = { 0 };

    if (!text.max)
        buf_init(&text, 16 << 20);
    for (size_t i = 0; collectors[i]; i++) {
        if (collectors[i]->kind != section->kind)
            continue;
        for (int format = 0; format < n_formats; format++) {
            struct metric_writer writer;

            buf_reset(&text);
            metric_writer_init(&writer, &text, format, STR(""), collectors[i]->families,
                               collectors[i]->n_families);
            collectors[i]->collect(section, &writer);
            rendered.duplicates += writer.duplicates;
            rendered.is_over |= text.over;
            metric_writer_free(&writer);
            if (format == 0)
                rendered.digest = rendered.digest * 31 + fuzz_seed((const uint8_t *)text.p, text.n);
        }
    }
    return rendered;
}

#endif
