/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A run as JSON, the same from the API and from sonde jobs. */
#ifndef SONDE_WEB_API_RUN_H
#define SONDE_WEB_API_RUN_H

#include "store/query.h"
#include "web/api_json.h"

extern const struct api_field api_job_fields[], api_moment_fields[], api_final_fields[];
extern const size_t n_api_job_fields, n_api_moment_fields, n_api_final_fields;
extern const struct api_shape api_row_shape, api_whole_shape, api_moment_shape, api_final_shape;

/* Members of an object: every field, and what else Slurm says ("extra") if the row has it. */
void api_put_run(struct buf *out, const struct job_row *row);

/* Likewise "life", and "agents": what they counted. */
int api_put_life(struct buf *out, struct store_reader *reader, const struct run_key *key,
                 struct arena *arena, struct err *err);
int api_put_agents(struct buf *out, struct store_reader *reader, const struct run_key *key,
                   struct arena *arena, struct err *err);

#endif
