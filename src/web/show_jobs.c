/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs: the queue now, or everything that is kept, filtered by whatever stands in the address. */
#include "report/words.h"
#include "web/job_asked.h"
#include "web/job_find.h"
#include "web/job_pages.h"
#include "web/job_rows.h"

static const char *const of_page[] = { "offset", "after", NULL };

/* "offset=100" behind the rest of the address. */
static void put_page_link(struct site_call *call, const char *name, struct str value,
                          const char *words)
{
    const char *const without[] = { "offset", "after", "kept", NULL };
    bool is_kept = strcmp(name, "after") == 0;
    struct str address = job_asked_address(call, is_kept ? without : of_page);
    struct html_address link = html_begin_link(&call->out, address.p);

    if (is_kept)
        html_argument(&link, "kept", STR("1"));
    html_argument(&link, name, value);
    html_end_link(&link, str_of(words));
    buf_byte(&call->out, ' ');
}

static void put_offset_link(struct site_call *call, size_t offset, const char *words)
{
    char text[32];

    snprintf(text, sizeof(text), "%zu", offset);
    put_page_link(call, "offset", offset ? str_of(text) : STR(""), words);
}

static void put_views(struct site_call *call, bool is_kept)
{
    const char *const without[] = {
        "offset",           "after", "sort", "kept", "from", "to", "ended", "efficiency_below",
        "efficiency_above", NULL
    };
    const char *const without_queue[] = {
        "offset", "after", "sort", "kept", "text", "reason", NULL
    };
    struct html_address link;

    buf_text(&call->out, "<nav class=\"views\" aria-label=\"Which jobs\">");
    if (is_kept) {
        link = html_begin_link(&call->out, job_asked_address(call, without).p);
        html_end_link(&link, STR("In the queue now"));
        buf_text(&call->out, " <b aria-current=\"page\">All that are kept</b>");
    } else {
        buf_text(&call->out, "<b aria-current=\"page\">In the queue now</b> ");
        link = html_begin_link(&call->out, job_asked_address(call, without_queue).p);
        html_argument(&link, "kept", STR("1"));
        html_end_link(&link, STR("All that are kept"));
    }
    buf_text(&call->out, "</nav>\n");
}

/* "1,234 jobs, 201 to 250 of 345 rows are shown." */
static void put_counts(struct site_call *call, const struct job_asked *asked,
                       const struct queue_page *page)
{
    struct buf *out = &call->out;

    buf_text(out, "<p class=\"counts\">");
    words_number(out, (double)page->jobs);
    buf_text(out, page->jobs == 1 ? " job" : " jobs");
    if (page->n && page->matches > page->n) {
        buf_text(out, "; rows ");
        words_number(out, (double)(asked->offset + 1));
        buf_text(out, " to ");
        words_number(out, (double)(asked->offset + page->n));
        buf_text(out, " of ");
        words_number(out, (double)page->matches);
    }
    buf_text(out, ".</p>\n");
}

static void put_offsets(struct site_call *call, const struct job_asked *asked,
                        const struct queue_page *page)
{
    size_t limit = asked->request.limit, offset = asked->offset;

    if (!offset && page->matches <= page->n)
        return;
    buf_text(&call->out, "<nav class=\"pages\" aria-label=\"Rows\">");
    if (offset)
        put_offset_link(call, 0, "First");
    if (offset > limit)
        put_offset_link(call, offset - limit, "Previous");
    if (offset + page->n < page->matches)
        put_offset_link(call, offset + limit, "Next");
    buf_text(&call->out, "</nav>\n");
}

static void put_no_queue_rows(struct site_call *call, const struct job_asked *asked,
                              const struct queue_page *page)
{
    if (page->matches && asked->offset) {
        html_empty(&call->out, "There are fewer jobs than that: this is past the last page.");
        buf_text(&call->out, "<p>");
        put_offset_link(call, 0, "Back to the first page");
        buf_text(&call->out, "</p>\n");
        return;
    }
    html_empty(&call->out,
               call->viewer.is_staff
                   ? "No job in the queue is like this. Leave out a filter, or look among all that "
                     "are kept."
                   : "None of your jobs in the queue is like this. Leave out a filter, or look "
                     "among all that are kept.");
}

static void put_queue_rows(struct site_call *call, const struct job_asked *asked,
                           const struct queue_page *page)
{
    const char *const without[] = { "sort", "offset", "after", NULL };
    struct job_table table;
    struct job_row row;

    job_table_begin(&table, call, JOB_TABLE_QUEUE, "Jobs in the queue",
                    str_of(queue_sort_words[asked->sort]), asked->is_descending,
                    job_asked_address(call, without));
    for (size_t i = 0; i < page->n; i++) {
        job_row_of_board(page->row[i].cluster, page->row[i].job, call->now, &call->arena, &row);
        row.elapsed_seconds = page->row[i].elapsed_seconds;
        job_table_row(&table, &row);
    }
    job_table_end(&table);
}

static void put_queue(struct site_call *call, const struct job_asked *asked,
                      const struct queue_page *page)
{
    put_counts(call, asked, page);
    if (page->n)
        put_queue_rows(call, asked, page);
    else
        put_no_queue_rows(call, asked, page);
    put_offsets(call, asked, page);
}

/* Nothing is said of what nobody has told. */
static void put_untold(struct site_call *call, const struct queue_question *question)
{
    struct buf *out = &call->out;

    for (size_t i = 0; i < call->board->n_clusters; i++) {
        const struct board_cluster *cluster = &call->board->cluster[i];

        if (cluster->section[KIND_JOBS] || !board_asks(&question->filter->clusters, cluster->name))
            continue;
        buf_text(out, "<p class=\"empty\">What is in the queue");
        buf_text(out, cluster->name.n ? " of " : "");
        html_text(out, cluster->name);
        buf_text(out, " is not known: Slurm has not told it.</p>\n");
    }
}

static int show_queue(struct site_call *call, const struct job_asked *asked)
{
    const struct queue_question question = {
        .filter = &asked->request.filter,
        .text = asked->text,
        .reasons = asked->reasons,
        .sort = asked->sort,
        .is_descending = asked->is_descending,
        .offset = asked->offset,
        .limit = asked->request.limit,
        .viewer = &call->viewer,
        .now = call->now,
    };
    struct queue_page page;
    int code;

    if (!call->board)
        return site_refuse(call, 503, "nobody tells what is in the queue at the moment: %s",
                           arena_str(&call->arena, str_of(call->err.text)).p);
    code = queue_find(call->board, &question, &call->arena, &page, &call->err);
    if (code < 0)
        return code == -E2BIG ? job_refused(call, 400) : code;
    buf_text(&call->out, "<div id=\"jobs\" data-live>\n");
    put_untold(call, &question);
    if (board_has_told(call->board, &question.filter->clusters, KIND_JOBS))
        put_queue(call, asked, &page);
    buf_text(&call->out, "</div>\n");
    return 0;
}

/* A page of what the store has. */
struct kept_page {
    struct job_table table;
    size_t n, limit;
    bool has_more;
    struct str last;
};

static int put_kept_row(void *ctx, const struct job_row *row)
{
    struct kept_page *page = ctx;

    if (page->n == page->limit) {
        page->has_more = true;
        return -ECANCELED;
    }
    page->n++;
    page->last = job_key(&page->table.call->arena, &row->key);
    job_table_row(&page->table, row);
    return 0;
}

static void put_no_kept_rows(struct site_call *call, const struct job_asked *asked)
{
    if (!asked->request.after.submit_time) {
        html_empty(&call->out, "No job that is kept is like this. Leave out a filter, or take a "
                               "longer time.");
        return;
    }
    html_empty(&call->out, "There is nothing older: this is past the last page.");
    buf_text(&call->out, "<p>");
    put_page_link(call, "after", STR(""), "Back to the first page");
    buf_text(&call->out, "</p>\n");
}

static void put_kept_pages(struct site_call *call, const struct job_asked *asked,
                           const struct kept_page *page)
{
    if (!page->has_more && !asked->request.after.submit_time)
        return;
    buf_text(&call->out, "<nav class=\"pages\" aria-label=\"Rows\">");
    if (asked->request.after.submit_time)
        put_page_link(call, "after", STR(""), "First");
    if (page->has_more)
        put_page_link(call, "after", page->last, "Next");
    buf_text(&call->out, "</nav>\n");
}

static int show_kept(struct site_call *call, struct job_asked *asked)
{
    const struct job_order order = { .after = asked->request.after,
                                     .limit = asked->request.limit + 1 };
    struct kept_page page = { .limit = asked->request.limit };
    size_t begin = call->out.n;
    int code;

    if (!call->reader)
        return site_refuse(call, 503, "what was kept cannot be read: %.*s",
                           STR_ARG(call->why_no_store));
    api_filter_limit(&asked->request.filter, &call->viewer);
    job_table_begin(&page.table, call, JOB_TABLE_KEPT, "Jobs that are kept, the newest first",
                    STR(""), false, STR(""));
    code = store_jobs(call->reader, &asked->request.filter, &order, call->now, put_kept_row, &page,
                      &call->err);
    if (code < 0 && code != -ECANCELED)
        return code == -E2BIG ? job_refused(call, 400) : code;
    if (page.n) {
        job_table_end(&page.table);
    } else {
        call->out.n = begin; /* no table without rows */
        buf_end(&call->out);
        put_no_kept_rows(call, asked);
    }
    put_kept_pages(call, asked, &page);
    return 0;
}

static int show(struct site_call *call)
{
    struct job_asked asked;
    int code = job_asked_read(call, &asked);

    if (code)
        return code;
    job_put_title(call, STR("Jobs"));
    put_views(call, asked.is_kept);
    if (!call->viewer.is_staff)
        buf_text(&call->out, "<p class=\"note\">These are your own jobs, and those of accounts "
                             "that you coordinate.</p>\n");
    job_asked_form(call, &asked);
    return asked.is_kept ? show_kept(call, &asked) : show_queue(call, &asked);
}

const struct site_page show_jobs = {
    .path = "/jobs",
    .nav = "Jobs",
    .needs = SITE_MAY_STORE,
    .show = show,
};
