/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page that a person sees who opens the address of a program in a browser. */
#ifndef SONDE_HTTP_LANDING_H
#define SONDE_HTTP_LANDING_H

#include "base/buf.h"

struct landing_row {
    const char *collector, *help;
};

struct landing {
    const char *program; /* "sonde exporter" */
    const char *about;   /* stands behind the version: "source auto" */
    const char *what;    /* "What Slurm is doing" */
    const char *metrics_path;
    const char *trace_path; /* NULL: nothing is traced */
    bool is_simulated;
    const struct landing_row *rows; /* the collectors that are on */
    size_t n_rows;
};

void landing_page(struct buf *out, const struct landing *landing);

/* How such a page begins, up to what stands under its headline. */
void landing_heading(struct buf *out, const char *program, const char *about);

#endif
