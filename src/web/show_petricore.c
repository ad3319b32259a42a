/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job's report in other forms than a page, and the rest of the paths of petricore's web app:
 * docs/compatibility.md. */
#include "base/quote.h"
#include "web/job_asked.h"
#include "web/job_image.h"
#include "web/job_pages.h"

enum { USER_JOBS = 10000 };

#define TEXT_TYPE "text/plain; charset=utf-8"
#define JSON_TYPE "application/json"

static int make_report(struct site_call *call, struct str job, bool wants_plots,
                       struct job_report *ret)
{
    struct job_found found;
    int code = job_find_one(call, job, &found);

    return code ? code : job_make_report(call, &found, wants_plots, ret);
}

static int make_mail(struct site_call *call, const char **ret_type)
{
    struct job_report report;
    int code = make_report(call, call->rest, false, &report);

    if (code)
        return code;
    petricore_mail(&call->out, &report);
    *ret_type = TEXT_TYPE;
    return 0;
}

static int make_usage(struct site_call *call, const char **ret_type)
{
    struct job_report report;
    int code = make_report(call, call->rest, false, &report);

    if (code)
        return code;
    petricore_usage(&call->out, &report);
    *ret_type = JSON_TYPE;
    return 0;
}

static int make_pdf(struct site_call *call, const char **ret_type)
{
    struct str rest = call->rest;
    struct job_found found;
    int code = job_find_one(call, str_cut(&rest, '/'), &found);

    if (code)
        return code;
    *ret_type = "application/pdf";
    return job_image_by_child(call, &found, "--pdf=-", NULL);
}

static void put_text(struct buf *out, const struct job_report *report)
{
    report_text(out, report, &(struct text_look){ .has_unicode = true, .width = 100 });
}

static const struct {
    struct str suffix;
    const char *type;
    bool wants_plots;
    void (*put)(struct buf *out, const struct job_report *report);
} forms[] = {
    { STR_INIT(".txt"), TEXT_TYPE, false, put_text },
    { STR_INIT(".json"), JSON_TYPE, true, report_json },
};

/* /report/4711.txt, /report/4711.json */
static int make_form(struct site_call *call, const char **ret_type)
{
    for (size_t i = 0; i < COUNT(forms); i++) {
        struct job_report report;
        int code;

        if (!str_ends(call->rest, forms[i].suffix))
            continue;
        code = make_report(call, str_head(call->rest, call->rest.n - forms[i].suffix.n),
                           forms[i].wants_plots, &report);
        if (code)
            return code;
        forms[i].put(&call->out, &report);
        *ret_type = forms[i].type;
        return 0;
    }
    return site_refuse(call, 404,
                       "there is no such form: write /report/4711.txt, /report/4711.json "
                       "or /pdf/4711");
}

/* The jobs of a user, the newest first. */
struct user_jobs {
    uint32_t *id;
    size_t n;
    uint32_t uid;
};

static int add_job(void *ctx, const struct job_row *row)
{
    struct user_jobs *jobs = ctx;

    if (jobs->uid == MODEL_UNKNOWN_U32)
        jobs->uid = row->record.user_id;
    jobs->id[jobs->n++] = row->record.id;
    return jobs->n == USER_JOBS ? -ECANCELED : 0;
}

static int find_jobs(struct site_call *call, struct user_jobs *jobs)
{
    const struct job_order order = { .limit = USER_JOBS };
    struct job_filter filter;
    int code;

    job_filter_clear(&filter);
    filter.users = (struct words){ &call->rest, 1 };
    if (call->cluster.n)
        filter.clusters = (struct words){ &call->cluster, 1 };
    api_filter_limit(&filter, &call->viewer);
    code = store_jobs(call->reader, &filter, &order, call->now, add_job, jobs, &call->err);
    return code == -ECANCELED ? 0 : code;
}

static int make_user(struct site_call *call, const char **ret_type)
{
    struct user_jobs jobs = { .uid = MODEL_UNKNOWN_U32 };
    int code;

    if (!viewer_may_see_user(&call->viewer, call->rest))
        return site_refuse(call, 403, "this is another user: you can see your own jobs");
    jobs.id = ARENA_ARRAY(&call->arena, uint32_t, USER_JOBS);
    code = find_jobs(call, &jobs);
    if (code < 0)
        return code;
    if (!jobs.n)
        return site_refuse(call, 404, "User %s does not exist", quote(call->rest).text);
    petricore_user(&call->out, &(struct petricore_user){ call->rest, jobs.uid, jobs.id, jobs.n });
    *ret_type = JSON_TYPE;
    return 0;
}

const struct site_page show_mail = {
    .path = "/mail/*",
    .needs = SITE_MAY_STORE,
    .make = make_mail,
};

const struct site_page show_usage = {
    .path = "/api/v1/jobs/*/usage",
    .needs = SITE_MAY_STORE,
    .make = make_usage,
};

const struct site_page show_pdf = {
    .path = "/pdf/*",
    .needs = SITE_MAY_STORE,
    .make = make_pdf,
};

const struct site_page show_report = {
    .path = "/report/*",
    .needs = SITE_MAY_STORE,
    .make = make_form,
};

const struct site_page show_petricore_user = {
    .path = "/api/v1/users/*",
    .needs = SITE_STORE,
    .make = make_user,
};
