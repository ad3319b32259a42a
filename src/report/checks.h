/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is judged of a job: a table of checks, each with a condition, a threshold, a severity, a
 * sentence and a link. What was not measured is not judged. */
#ifndef SONDE_REPORT_CHECKS_H
#define SONDE_REPORT_CHECKS_H

#include "report/facts.h"

enum severity {
    SEVERITY_OFF,
    SEVERITY_NOTE,     /* worth knowing */
    SEVERITY_WARNING,  /* something was wasted */
    SEVERITY_CRITICAL, /* most of it was, or the job failed by it */
    SEVERITIES,
};
extern const char *const severity_words[SEVERITIES]; /* "off", "note", "warning", "critical" */

/* What a check is about. Of one subject only the first check that applies speaks: in the table the
 * more specific stands first, so that nothing is said twice of one job. */
enum check_subject {
    SUBJECT_MEMORY,
    SUBJECT_TIME,
    SUBJECT_GPU,
    SUBJECT_CPU,
    SUBJECT_THREADS,
    SUBJECT_QUOTA,
    SUBJECT_SHARE, /* of a node, beside its GPUs */
    SUBJECT_PLACE,
    SUBJECT_FILES,
    SUBJECT_NODES,
    SUBJECTS,
};

struct check {
    const char *name;  /* "cpu_low": as in the file of settings */
    const char *about; /* when it applies, for documentation: what is compared with the threshold */
    double threshold;  /* NAN: it has none */
    const char *unit;  /* "%", "files", "cores": of the threshold; or NULL */
    enum severity severity;
    enum check_subject subject;
    bool is_of_end; /* how the job ended, however short it was; others judge what it used */

    /* Whether it applies; writes the sentence, which says what was measured. */
    bool (*is_met)(const struct job_facts *facts, double threshold, struct buf *sentence);
};
extern const struct check checks[];
extern const size_t n_checks;

/* What a site has set, in the order of the table. */
struct check_setting {
    double threshold;
    enum severity severity;
    struct str link; /* URL, or empty */
};
struct check_settings {
    struct check_setting *check; /* n_checks of them */
    int64_t least_seconds;       /* a job that ran for less is not judged by what it used */
};

/* As the table has it. */
void check_settings_default(struct arena *arena, struct check_settings *ret);

/* A YAML file: least_runtime, and under checks by their names: threshold, severity, link. -EINVAL
 * with a sentence that names file, line and the nearest name. */
int check_settings_read(const char *path, struct arena *arena, struct check_settings *ret,
                        struct err *err);

struct finding {
    const struct check *check;
    enum severity severity;
    struct str sentence, link;
};

/* The gravest first, then in the order of the table. */
void checks_run(const struct check_settings *settings, const struct job_facts *facts,
                struct arena *arena, struct finding **ret, size_t *ret_n);

#endif
