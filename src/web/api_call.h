/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the API share: the resources, a row for each, and the question at hand. */
#ifndef SONDE_WEB_API_CALL_H
#define SONDE_WEB_API_CALL_H

#include "web/api.h"
#include "web/api_json.h"
#include "web/api_param.h"
#include "web/api_run.h"

#include <math.h>

enum { API_ANSWER_BYTES = 16 << 20 };

/* One question, on a worker. */
struct api_call {
    const struct api_config *config;
    struct http_exchange *x;
    struct viewer viewer;
    struct store_reader *reader; /* NULL: only where the resource can do without, as the next */
    const struct board *board;
    struct arena arena;
    struct api_request request;
    struct str rest;  /* of the path: what the star of the route stands for, decoded */
    int64_t now;      /* UTC seconds */
    struct buf out;   /* the members of the object that is the answer */
    struct buf after; /* the key of the last row, if there is more; else empty */
    struct err err;
};

enum api_need {
    API_STORE = 1 << 0,
    API_MAY_STORE = 1 << 1, /* the reader is NULL if it cannot be read */
    API_BOARD = 1 << 2,
    API_MAY_BOARD = 1 << 3, /* likewise */
};

struct api_resource {
    const char *path;    /* of the route */
    const char *shown;   /* … as people write it: "/api/v1/jobs/KEY" */
    const char *summary; /* one sentence */
    const char *example; /* the query of one, or NULL: the resource needs a key, or nothing */
    const struct api_param *params;
    size_t n_params;
    unsigned needs;
    const struct api_shape *shape; /* of the answer */

    /* Writes to call->out. Negative: the store failed, or -EFBIG. Positive: the HTTP status of a
     * refusal, whose sentence is in call->err. */
    int (*answer)(struct api_call *call);
};

extern const struct api_resource api_jobs, api_job, api_clusters, api_nodes, api_usage,
    api_constants, api_overview, api_queue, api_partitions, api_reservations, api_user, api_account,
    api_array, api_search, api_health;

enum { API_RESOURCES = 15 };
extern const struct api_resource *const api_resources[API_RESOURCES];

/* What several answers have. */
extern const struct api_shape api_usage_shape, api_amount_shape, api_held_shape;
#define API_SHAPE(fields, members)                                                                 \
    {                                                                                              \
        fields, COUNT(fields), members, COUNT(members)                                             \
    }
#define API_FIELDS(fields)                                                                         \
    {                                                                                              \
        fields, COUNT(fields), NULL, 0                                                             \
    }
#define API_MEMBERS(members)                                                                       \
    {                                                                                              \
        NULL, 0, members, COUNT(members)                                                           \
    }

#define API_PARAM(name, type, member, help)                                                        \
    {                                                                                              \
        name, type, offsetof(struct api_request, member), help                                     \
    }

/* Which runs: the same for /jobs, /usage and /queue. */
#define API_QUEUE_PARAMS                                                                           \
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
        API_PARAM("min_gpus", API_PARAM_COUNT, filter.min_gpus, "With at least so many GPUs."),    \
        API_PARAM("min_cpus", API_PARAM_COUNT, filter.min_cpus, "With at least so many CPUs."),    \
        API_PARAM("min_seconds", API_PARAM_SECONDS, filter.min_seconds,                            \
                  "That ran for at least so many seconds.")

/* … and of those that have ended. */
#define API_FILTER_PARAMS                                                                          \
    API_QUEUE_PARAMS,                                                                              \
        API_PARAM("efficiency_below", API_PARAM_RATIO, filter.efficiency_below,                    \
                  "That used less of the CPU time they held, from 0 to 1."),                       \
        API_PARAM("efficiency_above", API_PARAM_RATIO, filter.efficiency_above,                    \
                  "That used more of it.")

/* Sets the sentence and returns the status. */
int api_refuse(struct api_call *call, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether this cluster of the board is asked for by ?cluster=. */
bool api_wants(const struct api_call *call, const struct board_cluster *cluster);

/* 0 if any of these has told that kind of thing; else the status of a refusal: that there is none
 * is not known. */
int api_await(struct api_call *call, enum kind kind);

/* … and PrivateData does not keep that kind of thing from who asks. */
bool api_tells(const struct api_call *call, const struct board_cluster *cluster,
               enum private_data what);

/* What a filter cannot tell. */
struct api_choice {
    bool (*has)(void *ctx, const struct job_row *row);
    void *ctx;
};

/* "jobs": the rows of a page that pass the filter, are among the choice, if there is one, and may
 * be seen, with what follows. */
int api_put_jobs(struct api_call *call, const struct job_filter *filter,
                 const struct api_choice *choice);

/* Members of an object: what runs held. */
void api_put_usage(struct buf *out, const struct usage_row *row);

/* A page that lists all of it. */
void api_page(struct buf *out);

#endif
