/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who reads from and writes to Lustre now, per second: what a Prometheus has of Lustre's job ids,
 * joined with Slurm's jobs and with the names of users and groups. */
#ifndef SONDE_MODEL_LUSTRE_H
#define SONDE_MODEL_LUSTRE_H

#include "model/symbols.h"

/* Whom an id stands for. */
enum lustre_who {
    LUSTRE_JOB,     /* a job of Slurm */
    LUSTRE_PROCESS, /* a program that a user runs outside of jobs */
    LUSTRE_NOBODY,  /* a job that Slurm does not know, or an id that cannot be read */
};

/* Rates of one id. NAN: none was told, as a moment without any. */
enum lustre_rate {
    LUSTRE_READ_BYTES,
    LUSTRE_WRITE_BYTES,
    LUSTRE_READS, /* this and what follows: only where details are wanted */
    LUSTRE_WRITES,
    LUSTRE_SMALL_READS, /* of at most 32 KiB: counted where Lustre counts sizes, else estimated: all
                         * of a target's, if their mean is */
    LUSTRE_SMALL_WRITES,
    LUSTRE_OPERATIONS, /* of metadata and the like */
    LUSTRE_OPENS,
    LUSTRE_CLOSES,
    LUSTRE_RATES,
};

struct lustre_id {
    enum lustre_who who;
    uint32_t job_id;       /* of LUSTRE_JOB */
    symbol account;        /* likewise */
    symbol process, group; /* of LUSTRE_PROCESS */
    symbol user;           /* of both: its name, or its number while that is unknown */
    double per_second[LUSTRE_RATES];
};

/* Operations on metadata, by target. */
struct lustre_metadata {
    uint32_t id; /* an index of lustre.id */
    symbol target;
    double per_second;
};

/* What the look was spent on, in the order in which it is done. */
enum lustre_stage {
    LUSTRE_STAGE_JOBS,
    LUSTRE_STAGE_USERS,
    LUSTRE_STAGE_GROUPS,
    LUSTRE_STAGE_METADATA,
    LUSTRE_STAGE_READ,
    LUSTRE_STAGE_WRITE,
    LUSTRE_STAGES,
};

struct lustre {
    struct lustre_id *id; /* those of one job are one */
    size_t n;
    struct lustre_metadata *metadata;
    size_t n_metadata;
    double stage_seconds[LUSTRE_STAGES];
    uint64_t unknown_jobs;  /* ids of jobs that Slurm did not tell of */
    uint64_t unknown_users; /* ids of users without a name */
    uint64_t unreadable;    /* ids in none of the formats */
    uint64_t forged;        /* ids that name a job and a user whose job it is not */
    uint64_t left_out;      /* past the ceiling on ids; they are one, of LUSTRE_NOBODY */
    bool has_details;
};

#endif
