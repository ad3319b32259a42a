/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What there is in slurmdbd's database before views are made or dropped: clusters, views, and what
 * a user may do. */
#ifndef SONDE_CMD_VIEW_SURVEY_H
#define SONDE_CMD_VIEW_SURVEY_H

#include "base/arena.h"
#include "cmd/view_sql.h"
#include "source/mariadb.h"

enum { VIEW_SURVEY_MAX = 10000 }; /* rows of each kind */

struct view_cluster {
    struct str name;
    bool has_tables; /* whose jobs and associations there can be a view of */
};

struct view_found {
    struct str name;
    struct str place;      /* `database`.`view`, quoted */
    struct str definition; /* as the server tells it; empty: we may not see it */
};

/* A row of SHOW GRANTS. */
enum view_right_kind {
    VIEW_RIGHT_NONE,  /* to log in */
    VIEW_RIGHT_READ,  /* one of these views, in whatever database */
    VIEW_RIGHT_OTHER, /* anything else */
};
struct view_right {
    enum view_right_kind kind;
    struct str place; /* of VIEW_RIGHT_READ: `database`.`view`, quoted */
    bool is_here;     /* it is in the database that was looked at */
};

struct view_survey {
    struct arena arena;
    struct str database;           /* quoted */
    struct view_cluster *clusters; /* that are not deleted, the oldest first */
    size_t n_clusters, clusters_room;
    struct view_found *views; /* whose name is one of these views' */
    size_t n_views, views_room;
    bool is_user_there;
    struct view_right *rights; /* that the user has */
    size_t n_rights, rights_room;
};

/* *ret is for view_survey_clear also on failure. -ENOENT with a sentence if slurmdbd has no tables
 * in that database. */
int view_survey_read(struct mariadb *mariadb, struct str database,
                     const struct view_account *account, struct view_survey *ret, struct err *err);
void view_survey_clear(struct view_survey *survey);

/* Whether the view was made by us; whether it reads the jobs of that cluster, whoever made it. */
bool view_is_ours(const struct view_found *view);
bool view_reads(const struct view_found *view, struct str database, struct str cluster);

const struct view_found *view_survey_find(const struct view_survey *survey, struct str name);
bool view_survey_has_other_rights(const struct view_survey *survey);

/* `grant` as SHOW GRANTS tells it; the place points into it. `database` is quoted. */
struct view_right view_right_of(struct str grant, struct str database);

#endif
