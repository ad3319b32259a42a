/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is kept of a job in the embedded series, a row for each number: which sample of the agent it
 * comes from, and where it goes in the facts. The series is called job/CLUSTER/ID/NODE/WORD, that
 * of a GPU job/CLUSTER/ID/NODE/gpu/GPU/WORD. */
#ifndef SONDE_REPORT_KEPT_WORDS_H
#define SONDE_REPORT_KEPT_WORDS_H

#include "metric/reader.h"
#include "report/facts.h"

enum kept_meaning {
    KEPT_COUNTER, /* begins with the job: its highest value is the amount; a plot shows its rate */
    KEPT_GAUGE,   /* its highest value is the amount; a plot shows it */
    KEPT_SPREAD,  /* of a GPU: lowest, mean and highest; a plot shows it */
    KEPT_GROWTH,  /* a counter that was there before the job: what was added is the amount */
};

/* Where several rows have the same place or plot, the first counts of which there are samples. */
struct kept_word {
    const char *word;     /* "cpu_seconds" */
    const char *family;   /* of the agent: "sonde_job_cpu_seconds_total" */
    const char *resource; /* what its label of that name says; NULL: it has none */
    enum kept_meaning meaning;
    bool is_of_gpu;
    size_t offset; /* of a double in use_facts, or, of a GPU, of a double or spread in gpu_facts */
    int plot;      /* enum facts_plot_kind, or -1 */
};

extern const struct kept_word kept_words[];
extern const size_t n_kept_words;

const struct kept_word *kept_word_of_sample(const struct metric_sample *sample); /* or NULL */
const struct kept_word *kept_word_of(struct str word, bool is_of_gpu);           /* or NULL */

#endif
