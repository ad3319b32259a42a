/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every answer in JSON that can be read, from Slurm's commands with --json and from slurmrestd
 * alike: data_parser v0.0.37 to v0.0.45. */
#ifndef SONDE_SOURCE_JSON_ANSWERS_H
#define SONDE_SOURCE_JSON_ANSWERS_H

#include "source/answer.h"

extern const struct answer_class answer_json_jobs;         /* KIND_JOBS: /jobs */
extern const struct answer_class answer_json_nodes;        /* KIND_NODES: /nodes */
extern const struct answer_class answer_json_reservations; /* KIND_RESERVATIONS: /reservations */
extern const struct answer_class answer_json_licenses;     /* KIND_LICENSES: /licenses */
extern const struct answer_class answer_json_diag;         /* KIND_DIAG: /diag */
extern const struct answer_class answer_json_shares;       /* KIND_SHARES: /shares */

/* A second question to a section of nodes that has been read: the settings of its partitions, and
 * partitions without nodes. /partitions. */
extern const struct answer_class answer_json_partitions;

/* Limits as slurmdbd has them, without what is used. Two questions to one section of
 * KIND_ASSOCIATIONS, in either order: slurmdbd's /associations, of which those of one cluster must
 * be asked for, and /qos. */
extern const struct answer_class answer_json_associations;
extern const struct answer_class answer_json_qos;

/* KIND_CONFIG: the cluster and its release from the "meta" of any document (/ping, /diag). What is
 * hidden from us, and who we are, is not in it. */
extern const struct answer_class answer_json_config;

/* A second question to its section where that does not tell the cluster: slurmdb's /clusters. */
extern const struct answer_class answer_json_clusters;

#endif
