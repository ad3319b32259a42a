/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What can be asked of the API, a row for each parameter: these rows read the query and make the
 * landing page, and a test holds docs/api.md against them. */
#ifndef SONDE_WEB_API_PARAM_H
#define SONDE_WEB_API_PARAM_H

#include "store/query.h"
#include "web/queue.h"

enum api_param_type {
    API_PARAM_WORDS,       /* struct words: repeatable, or with commas */
    API_PARAM_TEXTS,       /* struct words: repeatable; a comma is part of one */
    API_PARAM_HOSTS,       /* struct words: node names and host lists */
    API_PARAM_JOB_STATES,  /* struct words, as Slurm spells them */
    API_PARAM_NODE_STATES, /* likewise, in lower case */
    API_PARAM_JOBS,        /* struct job_filter: ids, array_task_id, het_offset */
    API_PARAM_GROUPS,      /* keys, n_keys */
    API_PARAM_TIME,        /* int64_t, UTC seconds */
    API_PARAM_FLAG,        /* bool */
    API_PARAM_COUNT,       /* uint64_t */
    API_PARAM_SECONDS,     /* int64_t */
    API_PARAM_RATIO,       /* double, 0 … 1 */
    API_PARAM_LIMIT,       /* size_t, 1 … API_MOST_ROWS */
    API_PARAM_OFFSET,      /* size_t */
    API_PARAM_RUN,         /* struct run_key */
    API_PARAM_NODE,        /* struct api_node_key */
    API_PARAM_SORT,        /* struct api_sort */
    API_PARAM_PHRASE,      /* struct str, of at most API_PHRASE_MAX bytes */
};

struct api_param {
    const char *name;
    enum api_param_type type;
    size_t offset; /* where its value stands in struct api_request */
    const char *help;
};

enum {
    API_USUAL_ROWS = 50,
    API_MOST_ROWS = 1000,
    API_MOST_WORDS = STORE_WORDS_MAX, /* of one parameter */
    API_PHRASE_MAX = 200,
};

struct api_node_key {
    struct str cluster, name;
};

struct api_sort {
    enum queue_sort by;
    bool is_descending;
};

/* All that any resource can be asked; nodes and constants use the words of the filter too. */
struct api_request {
    struct job_filter filter;
    enum usage_key keys[USAGE_KEYS];
    size_t n_keys;
    size_t limit;
    struct run_key after;
    struct api_node_key after_node;
    size_t offset;
    struct words reasons;
    struct str phrase;
    struct api_sort sort;
};

/* Nothing asked: all unset, the usual limit, and the newest first. */
void api_request_clear(struct api_request *request);

/* Lets a filter pass only what they may see; it then refers to the viewer. */
void api_filter_limit(struct job_filter *filter, const struct viewer *viewer);

/* Takes one parameter of a query into the request; its words borrow the value. `seen` has a bit for
 * each row that was given before. -EINVAL with a sentence that says what to write. */
int api_request_take(struct api_request *request, const struct api_param *params, size_t n,
                     uint64_t *seen, struct str name, struct str value, struct arena *arena,
                     struct err *err);

/* How a value is written, for people: "NAME,…", "TIME"; and as JSON Schema. */
const char *api_param_value(const struct api_param *param);
const char *api_param_schema(const struct api_param *param);

#endif
