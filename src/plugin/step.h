/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The step whose samples are told, and how it is configured that they are. Plain values: whatever
 * comes from Slurm's own structs was copied. */
#ifndef SONDE_PLUGIN_STEP_H
#define SONDE_PLUGIN_STEP_H

#include "model/profile.h"

enum profile_label {
    PROFILE_LABEL_USER = 1,
    PROFILE_LABEL_ACCOUNT = 2,
    PROFILE_LABEL_PARTITION = 4,
    PROFILE_LABEL_STEP = 8,
    PROFILE_LABEL_CLUSTER = 16,
};

struct profile_step {
    uint32_t job_id;
    char step[24]; /* "batch", "extern", "interactive", or its number */
    char node[256];
    char user[64], account[128], partition[64], cluster[64]; /* "": not known. Account and partition
                                                              * are the environment's: a claim */
};

struct profile_settings {
    char url[512];    /* of the Pushgateway; "": it is not pushed to. user:password@ may be in it */
    char socket[108]; /* of the agent; "": it is not told. If both are set, the agent alone is */
    unsigned labels;  /* enum profile_label: those that new metrics get beside their own */
    enum profile_names names;
    unsigned frequency_seconds; /* between two messages; 10 */
    unsigned timeout_ms;        /* of one request; 2000 */
};

#endif
