/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a collector writes about a section that a test has made. */
#ifndef SONDE_TESTS_COLLECTED_H
#define SONDE_TESTS_COLLECTED_H

#include "sections.h"

#include "collector/collector.h"

struct collected {
    struct buf text;
    size_t samples, duplicates, folded;
};

/* The caller frees the text. */
struct collected collect_as(enum metric_format format, const struct collector *collector,
                            const struct section *section);

/* What the last call of collect() or check_family() has collected. */
extern struct collected collected;

/* The samples whose lines begin with `prefix`; "" for all. Valid until the next call. */
const char *collect(const char *collector, const struct section *section, const char *prefix);

size_t count_samples(const char *collector, const struct section *section, const char *prefix);

/* Fails if the samples of one family are not as expected. */
void check_family(const char *collector, const struct section *section, const char *family,
                  const char *expected);

#endif
