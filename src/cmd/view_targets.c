/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses the view of each cluster. */
#include "cmd/view_targets.h"

#include "base/quote.h"

enum { NAME_ROOM = 1000 };

static const struct view_cluster *find_cluster(const struct view_survey *survey, struct str name)
{
    for (size_t i = 0; i < survey->n_clusters; i++)
        if (str_eq(survey->clusters[i].name, name))
            return &survey->clusters[i];
    return NULL;
}

static const char *why_left_out(const struct view_cluster *cluster)
{
    struct buf scratch;
    bool is_name;

    buf_init(&scratch, NAME_ROOM);
    is_name = mariadb_put_name(&scratch, cluster->name, NULL) == 0;
    buf_free(&scratch);
    if (!is_name)
        return "a view cannot have such a name";
    return cluster->has_tables ? NULL : "slurmdbd has no tables of its jobs";
}

static void add(struct view_targets *targets, const struct view_cluster *cluster)
{
    targets->target[targets->n++] = (struct view_target){
        .cluster = cluster->name,
        .left_out = why_left_out(cluster),
    };
}

static int add_named(const struct view_survey *survey, struct option_list names,
                     struct view_targets *targets, struct err *err)
{
    for (size_t i = 0; i < names.n; i++) {
        const struct view_cluster *cluster = find_cluster(survey, names.items[i]);
        const char *why = cluster ? why_left_out(cluster) : "sacctmgr show cluster has none such";

        if (why)
            return err_set(err, ENOENT, "there can be no view of the cluster \"%s\": %s",
                           quote(names.items[i]).text, why);
        add(targets, cluster);
    }
    return 0;
}

static const struct view_target *first_made(const struct view_targets *targets)
{
    for (size_t i = 0; i < targets->n; i++)
        if (!targets->target[i].left_out)
            return &targets->target[i];
    return NULL;
}

/* The cluster that has user_job_view, or else `next`. */
static struct str first_cluster(const struct view_survey *survey, struct str database,
                                struct str next)
{
    const struct view_found *first = view_survey_find(survey, STR(VIEW_SQL_FIRST));

    for (size_t i = 0; first && i < survey->n_clusters; i++)
        if (view_reads(first, database, survey->clusters[i].name))
            return survey->clusters[i].name;
    return next;
}

static void name_view(struct view_target *target, bool is_first, struct arena *arena)
{
    struct buf name;

    buf_init(&name, NAME_ROOM);
    if (!is_first)
        buf_put(&name, target->cluster);
    buf_text(&name, is_first ? VIEW_SQL_FIRST : VIEW_SQL_SUFFIX);
    target->view = arena_str(arena, buf_str(&name));
    buf_free(&name);
}

static int check_view(const struct view_survey *survey, struct str database,
                      const struct view_target *target, struct err *err)
{
    const struct view_found *found = view_survey_find(survey, target->view);

    if (found && !view_is_ours(found) && !view_reads(found, database, target->cluster))
        return err_set(err, EEXIST,
                       "there is a view %s that sonde has not made and that is not of the jobs of "
                       "\"%s\", or this administrator may not see of what: rename or drop it first",
                       quote(target->view).text, quote(target->cluster).text);
    return 0;
}

int view_targets_choose(const struct view_survey *survey, struct str database,
                        struct option_list names, struct arena *arena, struct view_targets *ret,
                        struct err *err)
{
    const struct view_target *next;
    struct str first;
    int code = 0;

    *ret = (struct view_targets){
        .target = ARENA_ARRAY(arena, struct view_target, survey->n_clusters + names.n + 1),
    };
    if (names.n)
        code = add_named(survey, names, ret, err);
    for (size_t i = 0; !names.n && i < survey->n_clusters; i++)
        add(ret, &survey->clusters[i]);
    if (code < 0)
        return code;
    next = first_made(ret);
    if (!next)
        return err_set(err, ENOENT,
                       "slurmdbd knows no cluster that there could be a view of: start slurmctld "
                       "once, or sacctmgr add cluster NAME");
    first = first_cluster(survey, database, next->cluster);
    for (size_t i = 0; code == 0 && i < ret->n; i++) {
        if (ret->target[i].left_out)
            continue;
        name_view(&ret->target[i], str_eq(first, ret->target[i].cluster), arena);
        code = check_view(survey, database, &ret->target[i], err);
    }
    return code;
}
