/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Associations (an account, or a user in an account) and QOS with their limits and what of each is
 * in use now, as scontrol show assoc_mgr tells it. Only limits that are set have a row.
 * Units are base units: bytes, seconds, TRES seconds. */
#ifndef SONDE_MODEL_ASSOCIATION_H
#define SONDE_MODEL_ASSOCIATION_H

#include "model/job.h"

/* What a limit is on; sacctmgr(1) has the names in parentheses. */
enum limit_kind {
    LIMIT_JOBS,             /* jobs that run at once (GrpJobs) */
    LIMIT_SUBMITTED,        /* jobs that run or wait (GrpSubmitJobs) */
    LIMIT_WALL_SECONDS,     /* wall time used, decayed (GrpWall) */
    LIMIT_TRES,             /* TRES allocated at once (GrpTRES) */
    LIMIT_TRES_SECONDS,     /* TRES time used, decayed (GrpTRESMins) */
    LIMIT_TRES_RUN_SECONDS, /* TRES time that running jobs may still use (GrpTRESRunMins) */
    LIMIT_USER_JOBS,        /* of one user: an association's MaxJobs, a QOS's MaxJobsPU */
    LIMIT_USER_SUBMITTED,   /* MaxSubmitJobs, MaxSubmitJobsPU */
    LIMIT_USER_TRES,        /* of a QOS only: MaxTRESPU */
    LIMITS,
};

/* What is used under the limits of one user: of a user's association his own, of an account's
 * unknown, as it only hands the limit down; of a QOS what the one who uses most of it has. A QOS
 * does not tell these limits until somebody has used it. */
struct limit {
    uint8_t kind;         /* enum limit_kind */
    symbol tres;          /* "cpu", "mem", "gres/gpu:a100" of the four on TRES, else 0 */
    uint64_t limit, used; /* used: MODEL_UNKNOWN_U64 when it is not told */
};

struct association {
    symbol account, user, partition; /* user 0: the account itself; partition 0: any */
    uint32_t first_limit, n_limits;  /* a run of associations.limit */
};

struct qos {
    symbol name;
    uint32_t first_limit, n_limits;
};

struct associations {
    struct association *association;
    size_t n;
    struct qos *qos;
    size_t n_qos;
    struct limit *limit;
    size_t n_limits;
};

#endif
