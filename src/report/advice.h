/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What to write next time: the #SBATCH lines that fit what this job, and earlier ones of its name,
 * really used, with margin, and what that would have given back. */
#ifndef SONDE_REPORT_ADVICE_H
#define SONDE_REPORT_ADVICE_H

#include "report/facts.h"

struct advice_line {
    struct str line; /* "#SBATCH --mem=6G" */
    struct str why;  /* "at most 4.8 GiB of 32 GiB were in use" */
    bool is_guess;   /* what it had was too little, and what it needs is not known */
};

enum { ADVICE_LINES = 6 };

struct advice {
    struct advice_line line[ADVICE_LINES];
    size_t n_lines; /* 0: what was asked for fits */
    size_t n_jobs;  /* that it is based on, this one included */
    double cores_back, memory_bytes_back, gpu_hours_back, core_hours_back; /* 0: none */
};

/* Of a job that ran for less than least_seconds, what it kept busy says nothing. */
void advice_make(const struct job_facts *facts, double least_seconds, struct arena *arena,
                 struct advice *ret);

#endif
