/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report of one job, and its views. A view shows what facts, checks and advice say; it computes
 * nothing. User text is escaped by the writer of each language. */
#ifndef SONDE_REPORT_REPORT_H
#define SONDE_REPORT_REPORT_H

#include "report/advice.h"
#include "report/checks.h"

struct job_report {
    struct job_facts facts;
    struct finding *finding;
    size_t n_findings;
    int64_t least_seconds; /* what a job used that ran for less was not judged */
    struct advice advice;
    struct str more_url; /* where more is to be seen, "https://portal/job/4711"; or empty */
};

struct text_look {
    bool has_colour;
    bool has_unicode; /* the terminal's encoding is UTF-8 */
    size_t width;     /* characters; 0: 80; at least 40, and of more than 100 not all is used */
};

/* For a terminal, and as the text part of a mail. */
void report_text(struct buf *to, const struct job_report *report, const struct text_look *look);

/* All of it, as one JSON object; docs/report.md has its members. */
void report_json(struct buf *to, const struct job_report *report);

/* A whole page with its charts as SVG, or the HTML part of a mail: without charts, with styles that
 * mail programs understand. */
enum html_kind { HTML_PAGE, HTML_MAIL };
void report_html(struct buf *to, const struct job_report *report, enum html_kind kind);

/* A whole array at once: how many tasks by state, how use is spread (least, quartiles, most), those
 * that stand out, those that failed and where. */
struct array_report {
    const struct job_facts *task;
    size_t n_tasks;
    const struct check_settings *settings;
};
void report_array_text(struct buf *to, const struct array_report *report,
                       const struct text_look *look);
void report_array_json(struct buf *to, const struct array_report *report);

/* As petricore's web app has them: docs/compatibility.md. */
void petricore_mail(struct buf *to, const struct job_report *report); /* ends with WARNING=… */
void petricore_usage(struct buf *to, const struct job_report *report);
struct petricore_user {
    struct str name;
    uint32_t uid; /* MODEL_UNKNOWN_U32: unknown */
    const uint32_t *job;
    size_t n_jobs;
};
void petricore_user(struct buf *to, const struct petricore_user *user);

#endif
