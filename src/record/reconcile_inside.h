/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the comparisons of record/reconcile share. */
#ifndef SONDE_RECORD_RECONCILE_INSIDE_H
#define SONDE_RECORD_RECONCILE_INSIDE_H

#include "base/map.h"
#include "record/reconcile.h"

enum { RECONCILE_STATES_MAX = 64 };

/* Ended runs by state. */
struct state_counts {
    struct {
        struct str state;
        uint64_t count;
    } of[RECONCILE_STATES_MAX];
    size_t n;
};

/* A user in an account. */
struct reconcile_pair {
    struct str account, user;
    uint64_t ours[AUDIT_TRES], theirs[AUDIT_TRES];
    uint64_t idle[AUDIT_TRES];    /* at most so much of theirs is idle time of reservations */
    uint64_t suspended_cpu;       /* CPU-seconds in which its jobs were suspended */
    enum reconcile_reason reason; /* of the first of its runs that differs */
    bool has_difference;          /* … if there is any */
};

struct reconciling {
    const struct reconcile_config *config;
    struct reconcile_result *result;
    struct cluster_row cluster;
    struct audit_settings settings;
    struct map pairs;             /* account NUL user: struct reconcile_pair */
    struct state_counts sacct;    /* ended in the period, of sacct */
    struct state_counts unpolled; /* … of these, explained as missing in the store */
    struct arena *arena;
    struct err *err;
};

struct reconcile_pair *reconcile_pair(struct reconciling *rec, struct str account, struct str user);

void state_count(struct reconciling *rec, struct state_counts *counts, struct str state,
                 uint64_t more);
uint64_t state_get(const struct state_counts *counts, struct str state);

/* Adds to the row of that kind; the example is formatted as printf does. */
void reconcile_note(struct reconciling *rec, enum reconcile_comparison comparison, const char *what,
                    enum reconcile_reason reason, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

int reconcile_runs(struct reconciling *rec);
int reconcile_usage(struct reconciling *rec);
int reconcile_ended(struct reconciling *rec);

#endif
