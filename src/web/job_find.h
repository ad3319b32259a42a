/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which job an address means, and whether who looks may see it: the one place for all its forms,
 * page, chart, text, JSON and PDF. */
#ifndef SONDE_WEB_JOB_FIND_H
#define SONDE_WEB_JOB_FIND_H

#include "model/job_name.h"
#include "report/gather_runs.h"
#include "report/report.h"
#include "web/site.h"

struct job_found {
    struct job_name name; /* with its cluster, where one is known */
    struct job_row row;   /* of the newest run of it, or of that of ?key=; texts in the arena */
    bool is_kept;         /* the store has it; otherwise it is the board's */
    bool is_many;         /* the name is that of several tasks, or several components */
    struct run_clusters clusters; /* that have a job of this name: more than one, and it is not
                                   * known which is meant, nor looked who may see it */
    struct run_clusters seen;     /* those of them of whose newest run it may be seen */
};

/* `name` is what stands in the path; ?key= goes before it, ?cluster= with it. 0 if it is there and
 * may be seen, or if several clusters have one. Otherwise as site_page's show: 404 for one that is
 * not there, 403 for another's. */
int job_find(struct site_call *call, struct str name, struct job_found *ret);

/* Likewise, for what is no page: several clusters or tasks are 404 with a sentence. */
int job_find_one(struct site_call *call, struct str name, struct job_found *ret);

/* Several clusters have one: links to choose by, in a page with this title. `path` is that of the
 * page that is meant. */
int job_show_choice(struct site_call *call, const struct job_name *name,
                    const struct run_clusters *clusters, const char *title, const char *path);

/* Sends the reader to the page of all tasks. */
int job_go_to_array(struct site_call *call, const struct job_name *name);

/* Whether its name alone means this run: one of before is found by its key only. */
int job_is_newest(struct site_call *call, const struct job_found *found, bool *ret);

/* 0, or 403 with a sentence. Every form of a job asks this, once its owner is known. */
int job_allow(struct site_call *call, struct str user, struct str account);

/* What is known of it, and what is judged of that. */
int job_make_report(struct site_call *call, const struct job_found *found, bool wants_plots,
                    struct job_report *ret);

/* A row as the store would have it, of one of the board's jobs. */
void job_row_of_board(const struct board_cluster *cluster, const struct job *job, int64_t now,
                      struct arena *arena, struct job_row *ret);

/* A refusal whose sentence is in call->err already. */
int job_refused(struct site_call *call, int status);

/* The headline, which is the title too. */
void job_put_title(struct site_call *call, struct str title);

/* Calls `see` for the jobs of the board that have this name, cluster by cluster. */
void job_each_on_board(const struct site_call *call, const struct job_name *name,
                       void (*see)(void *ctx, const struct board_cluster *cluster,
                                   const struct job *job),
                       void *ctx);

/* What part of the call's time questions to others may take, so that a page is left to be written.
 */
int64_t job_deadline(const struct site_call *call);

/* <a href="/job/…">; with_key: of this run, not of the newest that has its id. */
void job_put_link(struct buf *to, const struct site_call *call, const struct job_row *row,
                  bool with_key);

/* The text of a key, in the arena; empty for one without submit time. */
struct str job_key(struct arena *arena, const struct run_key *key);

#endif
