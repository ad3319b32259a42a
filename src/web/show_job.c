/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job: its life, what it was given and used, what was found, charts, and the report in other
 * forms. */
#include "web/html.h"
#include "web/job_pages.h"
#include "web/job_parts.h"
#include "web/job_rows.h"

enum { RUNS_SHOWN = 20, NAME_BYTES = 600 };

static void put_form(struct site_call *call, const struct job_found *found, const char *path,
                     const char *after, const char *words)
{
    struct str key = job_key(&call->arena, &found->row.key);
    struct html_address link = html_begin_link(&call->out, path);
    char part[64];

    snprintf(part, sizeof(part), "%u%s", (unsigned)found->row.key.job_id, after);
    html_part(&link, str_of(part));
    html_argument(&link, "key", key);
    html_end_link(&link, str_of(words));
    buf_byte(&call->out, ' ');
}

/* The same in other forms; of a job of which nothing is kept there are none. */
static void put_forms(struct site_call *call, const struct job_found *found)
{
    const struct job_record *record = &found->row.record;

    buf_text(&call->out, "<p class=\"pages\">");
    if (found->is_kept) {
        if (site_report_child(call))
            put_form(call, found, "/pdf/", "", "PDF");
        put_form(call, found, "/report/", ".txt", "Text");
        put_form(call, found, "/report/", ".json", "JSON");
    }
    if (record->array_job_id || record->het_job_id) {
        struct buf name;
        struct job_name whole = { found->row.key.cluster,
                                  record->array_job_id ? record->array_job_id : record->het_job_id,
                                  MODEL_UNKNOWN_U32, MODEL_UNKNOWN_U32 };
        struct html_address link = html_begin_link(&call->out, "/array/");

        buf_init(&name, NAME_BYTES);
        job_name_put(&name, &whole);
        html_part(&link, buf_str(&name));
        html_end_link(&link, record->array_job_id ? STR("All tasks of its array")
                                                  : STR("All its components"));
        buf_free(&name);
    }
    buf_text(&call->out, "</p>\n");
}

/* The runs before: Slurm has started the job anew. */
struct runs {
    struct site_call *call;
    const struct job_found *found;
    struct job_table table;
    size_t n;
};

static int put_run(void *ctx, const struct job_row *row)
{
    struct runs *runs = ctx;
    const struct job_row *own = &runs->found->row;

    /* an id that was used before is another job's */
    if (row->key.job_id != own->key.job_id || row->first_submit_time != own->first_submit_time ||
        row->key.submit_time == own->key.submit_time)
        return 0;
    if (!runs->n++) {
        buf_text(&runs->call->out, "<section><h2>Other runs of this job</h2>\n");
        job_table_begin(&runs->table, runs->call, JOB_TABLE_KEPT, "Other runs of this job", STR(""),
                        false, STR(""));
    }
    job_table_row(&runs->table, row);
    return runs->n == RUNS_SHOWN ? -ECANCELED : 0;
}

static int put_runs(struct site_call *call, const struct job_found *found)
{
    struct runs runs = { .call = call, .found = found };
    const struct job_name name = { found->row.key.cluster, found->row.key.job_id, MODEL_UNKNOWN_U32,
                                   MODEL_UNKNOWN_U32 };
    struct gather gather = { .store = call->reader, .now = call->now };
    const struct run_sink sink = { put_run, &runs };
    int code = 0;

    if (found->is_kept)
        code = runs_of_store(&gather, &name, false, &sink, &call->err);
    if (runs.n) {
        job_table_end(&runs.table);
        buf_text(&call->out, "</section>\n");
    }
    return code == -ECANCELED ? 0 : code;
}

/* What changes while it runs is replaced as it is read. */
static void begin_live(struct site_call *call, const struct job_facts *facts, const char *id)
{
    bool is_live = !job_record_has_ended(&facts->row.record);

    buf_printf(&call->out, "<div id=\"%s\"%s>\n", id, is_live ? " data-live" : "");
}

static void put_head(struct site_call *call, const struct job_report *report,
                     const struct outline *outline)
{
    struct buf *out = &call->out;

    begin_live(call, &report->facts, "job-head");
    buf_text(out, "<p>");
    job_put_state(out, report->facts.row.record.state);
    buf_text(out, "</p>\n<p>");
    html_text(out, outline->headline);
    buf_text(out, "</p>\n");
    if (outline->note.n) {
        buf_text(out, "<p class=\"note\">");
        html_text(out, outline->note);
        buf_text(out, "</p>\n");
    }
    job_put_life(call, &report->facts);
    job_put_meters(call, outline);
    job_put_findings(call, report, outline);
    job_put_advice(call, &report->advice, outline->gain);
    buf_text(out, "</div>\n");
}

static int show(struct site_call *call)
{
    struct job_found found;
    struct job_report report;
    struct outline outline;
    int code = job_find(call, call->rest, &found);

    if (code)
        return code;
    if (found.clusters.n > 1)
        return job_show_choice(call, &found.name, &found.clusters, "Several clusters have this job",
                               "/job/");
    if (found.is_many)
        return job_go_to_array(call, &found.name);
    code = job_make_report(call, &found, false, &report);
    if (code)
        return code;
    outline_make(&report, &call->arena, &outline);
    job_put_title(call, outline.title);
    put_forms(call, &found);
    put_head(call, &report, &outline);
    job_put_charts(call, &found, &report.facts);
    begin_live(call, &report.facts, "job-facts");
    job_put_sections(call, &report.facts, &outline);
    buf_text(&call->out, "</div>\n");
    return put_runs(call, &found);
}

const struct site_page show_job = {
    .path = "/job/*",
    .needs = SITE_MAY_STORE,
    .show = show,
};
