/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A user, or an account: what their jobs hold now, what they held of the last days and how well it
 * was used, and their fair share. */
#include "web/api_call.h"

#include "base/quote.h"
#include "web/recent_usage.h"

static const struct api_param params[] = {
    API_PARAM("cluster", API_PARAM_WORDS, filter.clusters, "On any of these clusters."),
};

/* Whose summary it is. */
struct subject {
    const char *kind; /* "user" */
    bool (*may_see)(const struct viewer *viewer, struct str name);
    size_t words; /* where the filter has such */
    bool is_user;
};

static const struct subject of_user = { "user", viewer_may_see_user,
                                        offsetof(struct job_filter, users), true },
                            of_account = { "account", viewer_may_see_account,
                                           offsetof(struct job_filter, accounts), false };

struct told_share {
    struct str cluster, account, user, partition;
    struct share share;
};

#define SHARE(name, type, member)                                                                  \
    {                                                                                              \
        name, type, offsetof(struct told_share, member)                                            \
    }

static const struct api_field share_fields[] = {
    SHARE("cluster", API_TEXT, cluster),
    SHARE("account", API_TEXT, account),
    SHARE("user", API_TEXT, user),
    SHARE("partition", API_TEXT, partition),
    SHARE("raw_shares", API_U64, share.raw_shares),
    SHARE("normalised_shares", API_NUMBER, share.normalised_shares),
    SHARE("raw_usage", API_NUMBER, share.raw_usage),
    SHARE("normalised_usage", API_NUMBER, share.normalised_usage),
    SHARE("effective_usage", API_NUMBER, share.effective_usage),
    SHARE("factor", API_NUMBER, share.factor),
    SHARE("level", API_NUMBER, share.level),
};
static const struct api_shape share_shape = API_FIELDS(share_fields);

static const struct api_member now_members[] = {
    { "cluster", API_MEMBER_TEXT, true, "Where.", NULL },
    { "holding", API_MEMBER_OBJECT, false, "What their jobs hold.", &api_held_shape },
    { "pending", API_MEMBER_OBJECT, false, "What those that wait ask for.", &api_held_shape },
};
static const struct api_shape now_shape = API_MEMBERS(now_members);

static const struct api_member period_members[] = {
    { "days", API_MEMBER_COUNT, false, "1, 7 or 30.", NULL },
    { "from", API_MEMBER_TIME, false, "Begin of the time.", NULL },
    { "to", API_MEMBER_TIME, false, "Its end: now.", NULL },
    { "used", API_MEMBER_OBJECT, false, "As a row of /api/v1/usage.", &api_usage_shape },
};
static const struct api_shape period_shape = API_MEMBERS(period_members);

#define SUMMARY_MEMBERS(kind)                                                                      \
    {                                                                                              \
        { kind, API_MEMBER_TEXT, false, "Whose it is.", NULL },                                    \
            { "now", API_MEMBER_LIST, true, "Of each cluster where they have jobs.", &now_shape }, \
            { "periods", API_MEMBER_LIST, true, "The last 1, 7 and 30 days.", &period_shape },     \
            { "fairshare", API_MEMBER_LIST, true, "As sshare(1) has it.", &share_shape },          \
    }
static const struct api_member user_members[] = SUMMARY_MEMBERS("user"),
                               account_members[] = SUMMARY_MEMBERS("account");
static const struct api_shape user_shape = API_MEMBERS(user_members),
                              account_shape = API_MEMBERS(account_members);

/* A summary under way. */
struct summary {
    struct api_call *call;
    const struct subject *subject;
    struct str name;
    bool is_known; /* somebody has told of such a one */
};

static void put_cluster(struct summary *summary, const struct board_cluster *cluster)
{
    const struct cluster_sums *sums = &cluster->sums;
    bool is_user = summary->subject->is_user;
    const struct sums_group *group = is_user ? sums->user : sums->account;
    size_t n = is_user ? sums->n_users : sums->n_accounts;
    struct buf *out = &summary->call->out;

    for (size_t i = 0; i < n; i++) {
        if (!str_eq(group[i].name, summary->name))
            continue;
        summary->is_known = true;
        api_json_begin(out, NULL, '{');
        api_json_text(out, "cluster", cluster->name);
        api_json_put(out, "holding", api_held_shape.fields, api_held_shape.n_fields,
                     &group[i].holding);
        api_json_put(out, "pending", api_held_shape.fields, api_held_shape.n_fields,
                     &group[i].pending);
        buf_byte(out, '}');
    }
}

static void put_shares(struct summary *summary, const struct board_cluster *cluster)
{
    const struct section *section = cluster->section[KIND_SHARES];

    for (size_t i = 0; section && i < section->shares.n; i++) {
        const struct share *share = &section->shares.share[i];
        const struct told_share told = {
            .cluster = cluster->name,
            .account = section_text(section, share->account),
            .user = section_text(section, share->user),
            .partition = section_text(section, share->partition),
            .share = *share,
        };

        if (!str_eq(summary->subject->is_user ? told.user : told.account, summary->name) ||
            (!summary->subject->is_user && told.user.n))
            continue;
        summary->is_known = true;
        api_json_put(&summary->call->out, NULL, share_fields, COUNT(share_fields), &told);
    }
}

static void put_of_clusters(struct summary *summary, const char *name,
                            void (*put)(struct summary *summary,
                                        const struct board_cluster *cluster))
{
    struct api_call *call = summary->call;

    if (!call->board)
        return;
    api_json_begin(&call->out, name, '[');
    for (size_t i = 0; i < call->board->n_clusters; i++)
        if (api_wants(call, &call->board->cluster[i]))
            put(summary, &call->board->cluster[i]);
    buf_byte(&call->out, ']');
}

static int note_run(void *ctx, const struct job_row *row)
{
    struct summary *summary = ctx;

    (void)row;
    summary->is_known = true;
    return -ECANCELED;
}

static void put_period(struct api_call *call, int days, const struct usage_row *used)
{
    struct buf *out = &call->out;

    api_json_begin(out, NULL, '{');
    api_json_count(out, "days", (uint64_t)days);
    api_json_count(out, "from", (uint64_t)recent_from(call->now, days));
    api_json_count(out, "to", (uint64_t)call->now);
    api_json_begin(out, "used", '{');
    api_put_usage(out, used);
    buf_text(out, "}}");
}

static int put_periods(struct summary *summary)
{
    struct api_call *call = summary->call;
    struct job_filter filter = call->request.filter;
    struct recent_usage usage;
    int code;

    if (!call->reader)
        return 0;
    *(struct words *)(void *)((char *)&filter + summary->subject->words) =
        (struct words){ &summary->name, 1 };
    code = store_jobs(call->reader, &filter, &(struct job_order){ .limit = 1 }, call->now, note_run,
                      summary, &call->err);
    if (code < 0 && code != -ECANCELED)
        return code;
    code = recent_usage_ask(call->reader, &filter, call->now, NULL, 0, &call->arena, &usage,
                            &call->err);
    if (code < 0)
        return code;
    api_json_begin(&call->out, "periods", '[');
    for (size_t i = 0; i < RECENT_PERIODS; i++)
        put_period(call, recent_days[i], &usage.total[i]);
    buf_byte(&call->out, ']');
    return 0;
}

static int answer_summary(struct api_call *call, const struct subject *subject)
{
    struct summary summary = { call, subject, call->rest, false };
    int code;

    if (!subject->may_see(&call->viewer, call->rest))
        return api_refuse(call, 403,
                          "this is another %s: you can see yourself, and accounts that "
                          "you coordinate",
                          subject->kind);
    if (!call->rest.n)
        return api_refuse(call, 404, "nobody has no name: write /api/v1/%ss/NAME/summary",
                          subject->kind);
    if (!call->board && !call->reader)
        return api_refuse(call, 503,
                          "neither the store nor the clusters can be read at the moment: "
                          "try again");
    api_json_text(&call->out, subject->kind, call->rest);
    put_of_clusters(&summary, "now", put_cluster);
    code = put_periods(&summary);
    if (code < 0)
        return code;
    put_of_clusters(&summary, "fairshare", put_shares);
    if (!summary.is_known)
        return api_refuse(call, 404, "nobody has told of the %s \"%s\"", subject->kind,
                          quote(call->rest).text);
    return 0;
}

static int answer_user(struct api_call *call)
{
    return answer_summary(call, &of_user);
}

static int answer_account(struct api_call *call)
{
    return answer_summary(call, &of_account);
}

const struct api_resource api_user = {
    .path = "/api/v1/users/*/summary",
    .shown = "/api/v1/users/NAME/summary",
    .summary = "A user: jobs now, what was used over 1, 7 and 30 days, fair share.",
    .params = params,
    .n_params = COUNT(params),
    .needs = API_MAY_STORE | API_MAY_BOARD,
    .shape = &user_shape,
    .answer = answer_user,
};

const struct api_resource api_account = {
    .path = "/api/v1/accounts/*/summary",
    .shown = "/api/v1/accounts/NAME/summary",
    .summary = "An account: jobs now, what was used over 1, 7 and 30 days, fair share.",
    .params = params,
    .n_params = COUNT(params),
    .needs = API_MAY_STORE | API_MAY_BOARD,
    .shape = &account_shape,
    .answer = answer_account,
};
