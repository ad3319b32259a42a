/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a report says, in its words and its order, before it is text, HTML or paper. What is unknown
 * is left out, and so is a section without anything. Of many nodes, GPUs, cores and names only
 * those that stand out are in it, so that its size has a ceiling. User text is cut, and without
 * control characters; the writer of each language escapes the rest. */
#ifndef SONDE_REPORT_OUTLINE_H
#define SONDE_REPORT_OUTLINE_H

#include "report/report.h"

struct outline_meter {
    const char *title;
    double ratio;           /* of 1; may be more */
    struct str words;       /* "3.2 of 32 CPUs, on average" */
    enum severity severity; /* of the gravest finding about it; SEVERITY_OFF: none */
};

struct outline_fact {
    const char *label;
    struct str value;
    bool is_link; /* a site's; what a user wrote never is */
};

struct outline_table {
    const char *const *title; /* of columns; the first is a text, all others are numbers */
    size_t n_columns;
    bool is_text;     /* the others are texts too */
    struct str *cell; /* row by row; empty: unknown */
    size_t n_rows;
    size_t n_left_out; /* rows */
    const char *which; /* which were taken: "the least used"; if some were left out */
    const char *note;  /* what stands in its cells; or NULL */
};

enum { OUTLINE_METERS = 5, OUTLINE_SECTIONS = 10, OUTLINE_FACTS = 20 };

struct outline_section {
    const char *title;
    struct outline_fact *fact;
    size_t n_facts;
    struct outline_table table;
};

/* What every view says of a cluster that does not exist. */
#define OUTLINE_SIMULATED "Simulated cluster: this job never was, and its numbers are made up."
#define OUTLINE_SIMULATED_ARRAY                                                                    \
    "Simulated cluster: these jobs never were, and their numbers are made up."

struct outline {
    struct str title;     /* "Job 4711 on beluga: train.sh"; a simulated one is marked here too, for
                           * subjects of mails */
    struct str simulated; /* that the cluster does not exist; or empty */
    struct str headline;  /* one sentence */
    struct str note;      /* why it waits, or that nothing was measured, and why; or empty */
    struct outline_meter meter[OUTLINE_METERS];
    size_t n_meters;
    struct str verdict; /* where no check found anything: that, or that it was not judged; empty:
                         * nothing was measured */
    struct str gain;    /* what the advice is based on, and what it gives back; or empty */
    struct outline_section section[OUTLINE_SECTIONS];
    size_t n_sections;
};

void outline_make(const struct job_report *report, struct arena *arena, struct outline *ret);

/* What is to be said below a table; nothing if nothing is. */
void outline_put_notes(struct buf *to, const struct outline_table *table);

/* "Slurm's accounting (sacct)": who says what is known of the job, and who was asked. */
const char *outline_teller(const struct job_facts *facts);

/* "4711", "4711_7", "4711+1" */
void outline_put_id(struct buf *to, const struct job_record *record);

#endif
