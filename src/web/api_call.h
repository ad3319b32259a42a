/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the API share: the resources, a row for each, and the question at hand. */
#ifndef SONDE_WEB_API_CALL_H
#define SONDE_WEB_API_CALL_H

#include "web/api.h"
#include "web/api_json.h"
#include "web/api_param.h"
#include "web/api_run.h"

enum { API_ANSWER_BYTES = 16 << 20 };

/* One question, on a worker. */
struct api_call {
    const struct api_config *config;
    struct http_exchange *x;
    struct store_reader *reader; /* NULL: only where the resource can do without */
    struct arena arena;
    struct api_request request;
    struct str rest;  /* of the path: what the star of the route stands for */
    int64_t now;      /* UTC seconds */
    struct buf out;   /* the members of the object that is the answer */
    struct buf after; /* the key of the last row, if there is more; else empty */
    struct err err;
};

struct api_resource {
    const char *path;    /* of the route */
    const char *shown;   /* … as people write it: "/api/v1/jobs/KEY" */
    const char *summary; /* one sentence */
    const char *example; /* the query of one, or NULL: the resource needs a key, or nothing */
    const struct api_param *params;
    size_t n_params;
    bool works_without_store;

    /* Writes to call->out. Negative: the store failed, or -EFBIG. Positive: the HTTP status of a
     * refusal, whose sentence is in call->err. */
    int (*answer)(struct api_call *call);
};

extern const struct api_resource api_jobs, api_job, api_clusters, api_nodes, api_usage,
    api_constants;

enum { API_RESOURCES = 6 };
extern const struct api_resource *const api_resources[API_RESOURCES];

/* Fields of answers, for the test that looks for each of them in docs/api.md. */
extern const struct api_field api_run_fields[], api_cluster_fields[], api_node_fields[],
    api_usage_fields[], api_constant_fields[];
extern const size_t n_api_run_fields, n_api_cluster_fields, n_api_node_fields, n_api_usage_fields,
    n_api_constant_fields;

#define API_PARAM(name, type, member, help)                                                        \
    {                                                                                              \
        name, type, offsetof(struct api_request, member), help                                     \
    }

/* Which runs: the same for /jobs and /usage. */
#define API_FILTER_PARAMS                                                                          \
    API_PARAM("cluster", API_PARAM_WORDS, filter.clusters, "Of any of these clusters."),           \
        API_PARAM("user", API_PARAM_WORDS, filter.users, "Of any of these users."),                \
        API_PARAM("account", API_PARAM_WORDS, filter.accounts, "Of any of these accounts."),       \
        API_PARAM("partition", API_PARAM_WORDS, filter.partitions, "In any of these partitions."), \
        API_PARAM("qos", API_PARAM_WORDS, filter.qos, "With any of these QOS."),                   \
        API_PARAM("state", API_PARAM_JOB_STATES, filter.states, "In any of these states."),        \
        API_PARAM("node", API_PARAM_HOSTS, filter.nodes, "That had any of these nodes."),          \
        API_PARAM("gpu_type", API_PARAM_WORDS, filter.gpu_types,                                   \
                  "That had GPUs of any of these types."),                                         \
        API_PARAM("name", API_PARAM_TEXTS, filter.names,                                           \
                  "With this name, commas and all; repeat it for several."),                       \
        API_PARAM("reservation", API_PARAM_WORDS, filter.reservations,                             \
                  "In any of these reservations."),                                                \
        API_PARAM("job", API_PARAM_JOBS, filter,                                                   \
                  "With any of these ids, all tasks of an array and all components of a "          \
                  "heterogeneous job included; or one task, or one component."),                   \
        API_PARAM("efficiency_below", API_PARAM_RATIO, filter.efficiency_below,                    \
                  "That used less of the CPU time they held, from 0 to 1."),                       \
        API_PARAM("efficiency_above", API_PARAM_RATIO, filter.efficiency_above,                    \
                  "That used more of it."),                                                        \
        API_PARAM("min_gpus", API_PARAM_COUNT, filter.min_gpus, "With at least so many GPUs."),    \
        API_PARAM("min_cpus", API_PARAM_COUNT, filter.min_cpus, "With at least so many CPUs."),    \
        API_PARAM("min_seconds", API_PARAM_SECONDS, filter.min_seconds,                            \
                  "That ran for at least so many seconds.")

/* Sets the sentence and returns the status. */
int api_refuse(struct api_call *call, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A page that lists all of it. */
void api_page(struct buf *out);

#endif
