/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options of each cluster, as flags or as keys of its file. */
#include "cmd/cluster_options.h"

#include "base/quote.h"
#include "source/keep.h"

#define SETTING(member) offsetof(struct cluster_options, member)

static const struct option rows_of_cluster[] = {
    { "cluster.name", OPTION_STRING, SETTING(name), "NAME", NULL, NULL, NULL, "Cluster",
      "What the cluster is called in the store and, where there are several, in the label cluster. "
      "Without it, as Slurm calls it; in a file of --cluster.file, as the file is called." },
    { "jobs.accounts", OPTION_LIST, SETTING(accounts), "PATTERN", NULL, NULL, NULL, "Cluster",
      "Of somebody else's cluster: keep the jobs of accounts whose whole name matches, and drop "
      "all others." },
    { "jobs.users", OPTION_LIST, SETTING(users), "PATTERN", NULL, NULL, NULL, "Cluster",
      "Likewise those of users; with both, jobs that match either." },
    { "store.retention", OPTION_DURATION, SETTING(retention_ns), "DURATION", NULL, NULL, NULL,
      "Cluster", "Delete jobs from the store that ended longer ago; 0: none." },
    { "store.max-size", OPTION_BYTES, SETTING(max_bytes), "BYTES", NULL, NULL, NULL, "Cluster",
      "Delete the oldest jobs of the cluster from the store while they take more; 0: none." },
};
_Static_assert(COUNT(rows_of_cluster) == CLUSTER_OPTIONS, "as many rows as the header says");

void cluster_options_rows(size_t offset, struct option rows[CLUSTER_OPTIONS])
{
    for (size_t i = 0; i < CLUSTER_OPTIONS; i++) {
        rows[i] = rows_of_cluster[i];
        rows[i].offset += offset;
    }
}

static int check_patterns(const struct cluster_options *options, struct err *err)
{
    struct keep *keep;
    int code = keep_new(options->accounts.items, options->accounts.n, options->users.items,
                        options->users.n, &keep, err);

    if (code < 0)
        return err_prefix(err, "--jobs.accounts or --jobs.users");
    keep_free(keep);
    return 0;
}

/* It becomes part of files, labels and addresses. */
static bool is_name(struct str name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

    for (size_t i = 0; i < name.n; i++)
        if (!memchr(letters, name.p[i], sizeof(letters) - 1))
            return false;
    return name.n <= CLUSTER_NAME_MAX;
}

int cluster_options_check(const struct cluster_options *options, struct err *err)
{
    int code = source_options_check(&options->source, err);

    if (code < 0)
        return code;
    if (!is_name(options->name))
        return err_set(err, EINVAL,
                       "--cluster.name has letters, digits, \"_\", \"-\" and \".\", at most %d: "
                       "\"%s\" has not",
                       CLUSTER_NAME_MAX, quote(options->name).text);
    if (options->retention_ns < 0)
        return err_set(err, EINVAL, "--store.retention must not be negative");
    return check_patterns(options, err);
}

static struct str name_of_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct str name = str_of(slash ? slash + 1 : path);

    return str_head(name, str_find(name, '.'));
}

int cluster_options_read(const char *path, const struct option *flags, struct arena *arena,
                         struct cluster_options *ret, struct err *err)
{
    struct option rows[SOURCE_OPTIONS + CLUSTER_OPTIONS + 1] = { 0 };
    const struct option_command command = {
        .name = "sonde exporter",
        .elsewhere = flags,
        .elsewhere_is = "it holds for all clusters, as a flag of sonde exporter or in its "
                        "--config.file",
        .options = rows,
    };
    char *no_variables[] = { NULL };
    char file[] = "--config.file";
    char *argv[] = { file, file, (char *)path, NULL };
    char **rest;
    int code;

    source_options_rows(SETTING(source), rows);
    cluster_options_rows(0, rows + SOURCE_OPTIONS);
    code = option_parse(&command, 3, argv, no_variables, arena, ret, &rest, err);
    if (code == 0 && !ret->name.n)
        ret->name = name_of_file(path);
    if (code == 0) {
        code = ret->name.n ? cluster_options_check(ret, err)
                           : err_set(err, EINVAL, "say in cluster.name what the cluster is called");
        if (code < 0)
            err_prefix(err, "%s", path);
    }
    return code;
}

bool cluster_options_equal(const struct cluster_options *a, const struct cluster_options *b)
{
    return source_options_equal(&a->source, &b->source) && str_eq(a->name, b->name) &&
           option_list_equal(a->accounts, b->accounts) && option_list_equal(a->users, b->users);
}

int cluster_options_keep(const struct cluster_options *options, struct keep **ret, struct err *err)
{
    return keep_new(options->accounts.items, options->accounts.n, options->users.items,
                    options->users.n, ret, err);
}
