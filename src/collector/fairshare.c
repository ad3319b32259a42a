/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fair share of each account and of each user in an account, in the words of sshare(1). */
#include "collector/collector.h"
#include "collector/known.h"
#include "collector/once.h"

#include <math.h>

enum {
    RAW_SHARES,
    NORM_SHARES,
    USES_PARENT,
    RAW_USAGE,
    NORM_USAGE,
    EFFECTIVE_USAGE,
    FACTOR,
    LEVEL,
    FAMILIES,
};

enum { OF_ACCOUNT, OF_USER = FAMILIES };

enum { MOST_USERS = 20000 };

static const struct family families[] = {
    [OF_ACCOUNT + RAW_SHARES] = { "slurm_account_fairshare_raw_shares",
                                  METRIC_GAUGE,
                                  "Shares that an account was given; absent where they are its "
                                  "parent's.",
                                  { "account" } },
    [OF_ACCOUNT + NORM_SHARES] = { "slurm_account_fairshare_norm_shares",
                                   METRIC_GAUGE,
                                   "An account's part of the shares, 0 to 1: among its siblings "
                                   "with Fair Tree, else in the cluster.",
                                   { "account" } },
    [OF_ACCOUNT + USES_PARENT] = { "slurm_account_fairshare_uses_parent",
                                   METRIC_GAUGE,
                                   "1 for an account that has no shares of its own but those of "
                                   "its parent.",
                                   { "account" } },
    [OF_ACCOUNT + RAW_USAGE] = { "slurm_account_fairshare_raw_usage",
                                 METRIC_GAUGE,
                                 "What an account has used in CPU seconds, or in seconds of what "
                                 "the site charges for; old usage decays.",
                                 { "account" } },
    [OF_ACCOUNT + NORM_USAGE] = { "slurm_account_fairshare_norm_usage",
                                  METRIC_GAUGE,
                                  "An account's part of all usage, 0 to 1.",
                                  { "account" } },
    [OF_ACCOUNT + EFFECTIVE_USAGE] = { "slurm_account_fairshare_effective_usage",
                                       METRIC_GAUGE,
                                       "An account's part of the usage that it is measured "
                                       "against, 0 to 1.",
                                       { "account" } },
    [OF_ACCOUNT + FACTOR] = { "slurm_account_fairshare_factor",
                              METRIC_GAUGE,
                              "Fair-share factor of an account, 0 to 1; more is better. Some "
                              "algorithms give it to users only.",
                              { "account" } },
    [OF_ACCOUNT + LEVEL] = { "slurm_account_fairshare_level",
                             METRIC_GAUGE,
                             "Shares of an account over its usage, among its siblings: over 1 is "
                             "under-served, +Inf has used nothing.",
                             { "account" } },
    [OF_USER + RAW_SHARES] = { "slurm_user_fairshare_raw_shares",
                               METRIC_GAUGE,
                               "Shares that a user was given in an account; absent where they are "
                               "the account's.",
                               { "account", "user", "partition" } },
    [OF_USER + NORM_SHARES] = { "slurm_user_fairshare_norm_shares",
                                METRIC_GAUGE,
                                "A user's part of the shares, 0 to 1: within the account with Fair "
                                "Tree, else in the cluster.",
                                { "account", "user", "partition" } },
    [OF_USER + USES_PARENT] = { "slurm_user_fairshare_uses_parent",
                                METRIC_GAUGE,
                                "1 for a user who has no shares of his own but those of the "
                                "account.",
                                { "account", "user", "partition" } },
    [OF_USER + RAW_USAGE] = { "slurm_user_fairshare_raw_usage",
                              METRIC_GAUGE,
                              "What a user has used in an account, in CPU seconds or in seconds of "
                              "what the site charges for; old usage decays.",
                              { "account", "user", "partition" } },
    [OF_USER + NORM_USAGE] = { "slurm_user_fairshare_norm_usage",
                               METRIC_GAUGE,
                               "A user's part of all usage, 0 to 1.",
                               { "account", "user", "partition" } },
    [OF_USER + EFFECTIVE_USAGE] = { "slurm_user_fairshare_effective_usage",
                                    METRIC_GAUGE,
                                    "A user's part of the usage that he is measured against, 0 to "
                                    "1.",
                                    { "account", "user", "partition" } },
    [OF_USER + FACTOR] = { "slurm_user_fairshare_factor",
                           METRIC_GAUGE,
                           "Fair-share factor of a user in an account, 0 to 1; more is better.",
                           { "account", "user", "partition" } },
    [OF_USER + LEVEL] = { "slurm_user_fairshare_level",
                          METRIC_GAUGE,
                          "Shares of a user over his usage, within the account: over 1 is "
                          "under-served, +Inf has used nothing.",
                          { "account", "user", "partition" } },
};

static double raw_shares(const struct share *share)
{
    return share->raw_shares == MODEL_UNKNOWN_U64 ? NAN : (double)share->raw_shares;
}

static double norm_shares(const struct share *share)
{
    return share->normalised_shares;
}

static double uses_parent(const struct share *share)
{
    return share->is_parent ? 1 : NAN;
}

static double raw_usage(const struct share *share)
{
    return share->raw_usage;
}

static double norm_usage(const struct share *share)
{
    return share->normalised_usage;
}

static double effective_usage(const struct share *share)
{
    return share->effective_usage;
}

static double factor(const struct share *share)
{
    return share->factor;
}

static double level(const struct share *share)
{
    return share->level;
}

static double (*const values[FAMILIES])(const struct share *share) = {
    [RAW_SHARES] = raw_shares,   [NORM_SHARES] = norm_shares,
    [USES_PARENT] = uses_parent, [RAW_USAGE] = raw_usage,
    [NORM_USAGE] = norm_usage,   [EFFECTIVE_USAGE] = effective_usage,
    [FACTOR] = factor,           [LEVEL] = level,
};

/* Accounts first, then users, each once: an account has a row for each partition that it is named
 * with. */
struct rows {
    const struct share **account, **user;
    size_t n_accounts, n_users;
};

static size_t count_series(const struct share *share)
{
    size_t n = 0;

    for (size_t k = 0; k < FAMILIES; k++)
        n += !isnan(values[k](share));
    return n;
}

static void pick(const struct shares *shares, struct rows *rows, struct metric_writer *writer)
{
    struct once once;

    once_init(&once);
    for (size_t i = 0; i < shares->n; i++) {
        const struct share *share = &shares->share[i];

        if (!once_numbers(&once, share->account, share->user, share->user ? share->partition : 0))
            continue;
        if (!share->user)
            rows->account[rows->n_accounts++] = share;
        else if (rows->n_users < MOST_USERS)
            rows->user[rows->n_users++] = share;
        else
            writer->folded += count_series(share);
    }
    once_free(&once);
}

static void write_rows(const struct section *section, const struct share **rows, size_t n,
                       size_t first_family, struct metric_writer *writer)
{
    for (size_t k = 0; k < FAMILIES; k++) {
        metric_begin(writer, first_family + k);
        for (size_t i = 0; i < n; i++) {
            const struct str labels[] = { section_text(section, rows[i]->account),
                                          section_text(section, rows[i]->user),
                                          section_text(section, rows[i]->partition) };

            known_write_double(writer, labels, values[k](rows[i]));
        }
    }
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    const struct shares *shares = &section->shares;
    struct rows rows = {
        .account = heap_array(shares->n + 1, sizeof(*rows.account)),
        .user = heap_array(shares->n + 1, sizeof(*rows.user)),
    };

    pick(shares, &rows, writer);
    write_rows(section, rows.account, rows.n_accounts, OF_ACCOUNT, writer);
    write_rows(section, rows.user, rows.n_users, OF_USER, writer);
    free(rows.account);
    free(rows.user);
}

const struct collector collector_fairshare = {
    .name = "fairshare",
    .help = "fair share of each account and user: shares, usage, factor and level",
    .kind = KIND_SHARES,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
