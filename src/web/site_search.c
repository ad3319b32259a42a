/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /search?q=: a job's id and an exact name lead to their page, anything else to a list. */
#include "web/site_inside.h"

#include "model/job_name.h"
#include "web/site_names.h"

enum { WANTED_BYTES = 200, SHOWN_OF_KIND = 30, ADDRESS_BYTES = 2048 };

struct search {
    struct site_call *call;
    struct str wanted;
    const struct site_kind *kind;
    struct str cluster;
    bool is_exact; /* and then the first is what is looked for */
    size_t n;      /* found of this kind, and of all */
    size_t n_all;
};

static bool contains(struct str text, struct str wanted)
{
    for (size_t i = 0; i + wanted.n <= text.n; i++)
        if (str_eq_nocase((struct str){ text.p + i, wanted.n }, wanted))
            return true;
    return false;
}

static void put_found(struct search *search, struct str name)
{
    struct buf *out = &search->call->out;

    if (!search->n)
        buf_printf(out, "<h2>%s</h2>\n<ul class=\"found\">\n", search->kind->several);
    buf_text(out, "<li>");
    site_kind_link(search->kind, name, search->cluster, out);
    if (search->call->board->n_clusters > 1 && search->cluster.n) {
        buf_text(out, " <small>");
        html_text(out, search->cluster);
        buf_text(out, "</small>");
    }
    buf_text(out, "</li>\n");
}

static bool look(void *ctx, struct str name)
{
    struct search *search = ctx;

    if (search->is_exact) {
        search->n += str_eq(name, search->wanted);
        return !search->n;
    }
    if (!name.n || !contains(name, search->wanted))
        return true;
    if (search->n < SHOWN_OF_KIND)
        put_found(search, name);
    search->n++;
    return true;
}

static void look_everywhere(struct search *search)
{
    const struct board *board = search->call->board;

    search->n = 0;
    for (size_t i = 0; i < board->n_clusters; i++) {
        if (!site_shows(search->call, &board->cluster[i]))
            continue;
        search->cluster = board->cluster[i].name;
        if (!search->kind->each(search->call, &board->cluster[i], look, search))
            return;
    }
}

static int go_to_job(struct site_call *call, const struct job_name *name)
{
    struct buf words, address;
    int status;

    buf_init(&words, WANTED_BYTES + 64);
    buf_init(&address, ADDRESS_BYTES);
    job_name_put(&words, name);
    buf_text(&address, "/job/");
    buf_url(&address, buf_str(&words));
    if (call->cluster.n && !name->cluster.n) {
        buf_text(&address, "?cluster=");
        buf_url(&address, call->cluster);
    }
    status = site_go(call, buf_str(&address));
    buf_free(&words);
    buf_free(&address);
    return status;
}

static int go_to_name(struct site_call *call, const struct site_kind *kind, struct str name,
                      struct str cluster)
{
    struct buf address;
    int status;

    buf_init(&address, ADDRESS_BYTES);
    site_kind_address(kind, name, cluster, &address);
    status = site_go(call, buf_str(&address));
    buf_free(&address);
    return status;
}

static int note_run(void *ctx, const struct job_row *row)
{
    (void)row;
    *(bool *)ctx = true;
    return 0;
}

/* Somebody who has no job now, but had one. */
static int look_in_store(struct site_call *call, struct str wanted)
{
    const struct job_order order = { .limit = 1 };
    struct job_filter filter;
    bool is_there = false;
    int code = 0;

    if (!call->reader || !viewer_may_see_user(&call->viewer, wanted))
        return 0;
    job_filter_clear(&filter);
    filter.users = (struct words){ &wanted, 1 };
    code = store_jobs(call->reader, &filter, &order, call->now, note_run, &is_there, &call->err);
    if (code < 0)
        return code;
    return is_there ? go_to_name(call, &site_kinds[0], wanted, STR("")) : 0;
}

/* A status if there is exactly what is looked for. */
static int go(struct site_call *call, struct str wanted)
{
    struct search search = { .call = call, .wanted = wanted, .is_exact = true };
    struct job_name name;

    if (job_name_read(wanted, &name, NULL) == 0)
        return go_to_job(call, &name);
    for (size_t i = 0; i < SITE_KINDS; i++) {
        search.kind = &site_kinds[i];
        look_everywhere(&search);
        if (search.n)
            return go_to_name(call, search.kind, wanted, search.cluster);
    }
    return look_in_store(call, wanted);
}

static void end_kind(struct search *search)
{
    struct buf *out = &search->call->out;

    if (search->n)
        buf_text(out, "</ul>\n");
    if (search->n > SHOWN_OF_KIND)
        buf_printf(out, "<p>… and %zu more: write more of the name.</p>\n",
                   search->n - SHOWN_OF_KIND);
    search->n_all += search->n;
}

static int show(struct site_call *call)
{
    struct search search = { .call = call,
                             .wanted = str_head(site_argument(call, "q"), WANTED_BYTES) };
    int code = search.wanted.n ? go(call, search.wanted) : 0;

    if (code != 0)
        return code;
    call->title = STR("Search");
    buf_text(&call->out, "<h1>Search</h1>\n");
    for (size_t i = 0; search.wanted.n && i < SITE_KINDS; i++) {
        search.kind = &site_kinds[i];
        look_everywhere(&search);
        end_kind(&search);
    }
    if (!search.n_all)
        html_empty(&call->out, search.wanted.n
                                   ? "Nothing has such a name: jobs are found by their id (4711, "
                                     "4711_7, 4711+1), others by any part of their name."
                                   : "Write a job's id, or a part of the name of a user, an "
                                     "account, a node or a partition, above.");
    return 0;
}

const struct site_page site_search = {
    .path = "/search",
    .needs = SITE_BOARD | SITE_MAY_STORE,
    .show = show,
};
