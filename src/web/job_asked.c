/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the filters of a page of jobs, and writes them as a form and an address. */
#include "web/job_asked.h"

#include "base/num.h"
#include "base/quote.h"
#include "web/api_call.h"
#include "web/html.h"

enum { OFFSET_MAX = 10000000, ADDRESS_MAX = 16384 };

static const struct api_param params[] = {
    API_FILTER_PARAMS,
    API_PARAM("from", API_PARAM_TIME, filter.from, "That waited, ran or ended after this time."),
    API_PARAM("to", API_PARAM_TIME, filter.to, "That waited, ran or ended before this time."),
    API_PARAM("ended", API_PARAM_FLAG, filter.by_end, "Only those that ended between from and to."),
    API_PARAM("limit", API_PARAM_LIMIT, limit, "Rows of a page: 50 if not told, at most 1000."),
    API_PARAM("after", API_PARAM_RUN, after, "What follows this key."),
};

/* Of these the queue knows nothing. */
static const char *const kept_only[] = {
    "from", "to", "ended", "efficiency_below", "efficiency_above", "after"
};

struct reading {
    struct site_call *call;
    struct job_asked *asked;
    uint64_t seen;
    struct str *reason; /* those of the words, or NULL */
};

static int take_reason(struct reading *reading, struct str value)
{
    struct words *words = &reading->asked->reasons;

    if (!reading->reason)
        reading->reason = ARENA_ARRAY(&reading->call->arena, struct str, API_MOST_WORDS);
    words->word = reading->reason;
    if (words->n == API_MOST_WORDS)
        return err_set(&reading->call->err, EINVAL, "reason has more than %d values",
                       API_MOST_WORDS);
    if (value.n)
        reading->reason[words->n++] = value; /* commas and all: Slurm's own have some */
    return 0;
}

static int take_text(struct reading *reading, struct str value)
{
    reading->asked->text = value;
    return 0;
}

/* It says which page this is; what it says is not looked at. */
static int take_kept(struct reading *reading, struct str value)
{
    reading->asked->is_kept = !str_eq(value, STR("0"));
    return 0;
}

static int take_sort(struct reading *reading, struct str value)
{
    bool is_descending;
    struct str word = html_sort_word(value, &is_descending);

    for (size_t i = 0; i < QUEUE_SORTS; i++)
        if (str_eq(word, str_of(queue_sort_words[i]))) {
            reading->asked->sort = (enum queue_sort)i;
            reading->asked->is_descending = is_descending;
            return 0;
        }
    return err_set(&reading->call->err, EINVAL,
                   "sort: \"%s\" is no column: take the link at the head of one", quote(word).text);
}

static int take_offset(struct reading *reading, struct str value)
{
    uint64_t offset;

    if (!num_get_u64(value, &offset) || offset > OFFSET_MAX)
        return err_set(&reading->call->err, EINVAL, "offset: \"%s\" is not a number of rows",
                       quote(value).text);
    reading->asked->offset = offset;
    return 0;
}

static const struct {
    const char *name;
    int (*take)(struct reading *reading, struct str value);
} own[] = {
    { "reason", take_reason }, { "text", take_text },     { "kept", take_kept },
    { "sort", take_sort },     { "offset", take_offset },
};

static int take_argument(void *ctx, struct str name, struct str value)
{
    struct reading *reading = ctx;

    value = str_trim(value);
    if (!value.n)
        return 0;
    for (size_t i = 0; i < COUNT(kept_only); i++)
        reading->asked->is_kept |= str_eq(name, str_of(kept_only[i]));
    for (size_t i = 0; i < COUNT(own); i++)
        if (str_eq(name, str_of(own[i].name)))
            return own[i].take(reading, value);
    return api_request_take(&reading->asked->request, params, COUNT(params), &reading->seen, name,
                            value, &reading->call->arena, &reading->call->err);
}

/* Whose names are asked for is not to be tried out. */
static int check_names(struct site_call *call, const struct job_filter *filter)
{
    for (size_t i = 0; i < filter->accounts.n; i++)
        if (viewer_may_see_account(&call->viewer, filter->accounts.word[i]))
            return 0;
    for (size_t i = 0; i < filter->users.n; i++)
        if (!viewer_may_see_user(&call->viewer, filter->users.word[i]))
            return site_refuse(call, 403,
                               "these are another's jobs: you can see your own, and those of "
                               "accounts that you coordinate");
    return 0;
}

int job_asked_read(struct site_call *call, struct job_asked *ret)
{
    struct reading reading = { .call = call, .asked = ret };
    const struct job_filter *filter = &ret->request.filter;

    *ret = (struct job_asked){ .sort = QUEUE_BY_SUBMIT, .is_descending = true };
    api_request_clear(&ret->request);
    if (http_queries(call->x, take_argument, &reading) < 0)
        return 400;
    if (filter->from && filter->to && filter->from >= filter->to)
        return site_refuse(call, 400, "from must lie before to");
    if (filter->by_end && !filter->from && !filter->to)
        return site_refuse(call, 400, "ended needs a time: add from, to, or both");
    if (ret->is_kept && (ret->text.n || ret->reasons.n))
        return site_refuse(call, 400,
                           "text and reason are of the queue only: leave them out, or leave out "
                           "what asks for jobs that are kept");
    return check_names(call, filter);
}

/* What is written into the address again. */
struct keeping {
    struct buf to;
    const char *const *without;
};

static int keep_argument(void *ctx, struct str name, struct str value)
{
    struct keeping *keeping = ctx;
    struct buf *to = &keeping->to;

    for (size_t i = 0; keeping->without[i]; i++)
        if (str_eq(name, str_of(keeping->without[i])))
            return 0;
    if (!value.n)
        return 0;
    buf_byte(to, str_find(buf_str(to), '?') < to->n ? '&' : '?');
    buf_url(to, name);
    buf_byte(to, '=');
    buf_url(to, value);
    return 0;
}

struct str job_asked_address(struct site_call *call, const char *const *without)
{
    struct keeping keeping = { .without = without };
    struct str address;

    buf_init(&keeping.to, ADDRESS_MAX);
    buf_put(&keeping.to, STR("/jobs"));
    http_queries(call->x, keep_argument, &keeping);
    address = keeping.to.over ? STR("/jobs") : arena_str(&call->arena, buf_str(&keeping.to));
    buf_free(&keeping.to);
    return address;
}

/* The fields of the form. */
static const struct field {
    const char *name, *label, *type;
    bool has_states;
    bool is_of_kept;
} fields[] = {
    { "text", "Text", "search", false, false },
    { "user", "User", "text", false, false },
    { "account", "Account", "text", false, false },
    { "partition", "Partition", "text", false, false },
    { "qos", "QOS", "text", false, false },
    { "state", "State", "text", true, false },
    { "reason", "Reason", "text", false, false },
    { "node", "Node", "text", false, false },
    { "gpu_type", "GPU type", "text", false, false },
    { "name", "Name", "text", false, false },
    { "reservation", "Reservation", "text", false, false },
    { "job", "Job", "text", false, false },
    { "min_cpus", "CPUs, at least", "number", false, false },
    { "min_gpus", "GPUs, at least", "number", false, false },
    { "min_seconds", "Seconds, at least", "number", false, false },
    { "from", "From (a day, UTC)", "text", false, true },
    { "to", "Until", "text", false, true },
    { "ended", "Ended in that time", "checkbox", false, true },
    { "efficiency_below", "CPU use below (0 to 1)", "text", false, true },
    { "efficiency_above", "CPU use above", "text", false, true },
};

/* Those of the queue have no text, those that are kept no reason to be asked by. */
static bool is_field_of(const struct field *field, bool is_kept)
{
    if (is_kept)
        return strcmp(field->name, "text") != 0 && strcmp(field->name, "reason") != 0;
    return !field->is_of_kept;
}

static void put_input(struct site_call *call, const struct field *field, struct str value,
                      bool has_id)
{
    struct buf *out = &call->out;

    buf_printf(out, "<input name=\"%s\" type=\"%s\"", field->name, field->type);
    if (has_id)
        buf_printf(out, " id=\"filter-%s\"", field->name);
    else
        buf_printf(out, " aria-label=\"%s\"", field->label);
    if (field->has_states)
        buf_text(out, " list=\"states\"");
    if (strcmp(field->type, "number") == 0)
        buf_text(out, " min=\"0\"");
    if (strcmp(field->type, "checkbox") == 0) {
        buf_text(out, value.n ? " value=\"true\" checked>" : " value=\"true\">");
        return;
    }
    buf_text(out, " value=\"");
    html_text(out, value);
    buf_text(out, "\">");
}

/* One that was given several times has as many places. */
static void put_field(struct site_call *call, const struct field *field)
{
    struct str value = http_query(call->x, field->name, 0);

    buf_printf(&call->out, "<p><label for=\"filter-%s\">%s</label> ", field->name, field->label);
    put_input(call, field, value.p ? value : STR(""), true);
    for (size_t i = 1; value.p && i < API_MOST_WORDS; i++) {
        value = http_query(call->x, field->name, i);
        if (value.n)
            put_input(call, field, value, false);
    }
    buf_text(&call->out, "</p>\n");
}

static void put_clusters(struct site_call *call)
{
    struct buf *out = &call->out;

    if (!call->board || call->board->n_clusters < 2)
        return;
    buf_text(out, "<p><label for=\"filter-cluster\">Cluster</label> "
                  "<select name=\"cluster\" id=\"filter-cluster\"><option value=\"\">all</option>");
    for (size_t i = 0; i < call->board->n_clusters; i++) {
        struct str name = call->board->cluster[i].name;

        buf_text(out,
                 str_eq(name, call->cluster) ? "<option selected value=\"" : "<option value=\"");
        html_text(out, name);
        buf_text(out, "\">");
        html_text(out, name);
        buf_text(out, "</option>");
    }
    buf_text(out, "</select></p>\n");
}

static void put_states(struct buf *out)
{
    buf_text(out, "<datalist id=\"states\">");
    for (size_t i = 0; i < n_job_state_words; i++) {
        buf_text(out, "<option value=\"");
        html_text(out, job_state_words[i]);
        buf_text(out, "\"></option>");
    }
    buf_text(out, "</datalist>\n");
}

/* What is not a filter stays as it is. */
static void put_hidden(struct site_call *call, const char *name)
{
    struct str value = site_argument(call, name);

    if (!value.n)
        return;
    buf_printf(&call->out, "<input type=\"hidden\" name=\"%s\" value=\"", name);
    html_text(&call->out, value);
    buf_text(&call->out, "\">");
}

static bool is_filtered(struct site_call *call, bool is_kept)
{
    for (size_t i = 0; i < COUNT(fields); i++)
        if (is_field_of(&fields[i], is_kept) && site_argument(call, fields[i].name).n)
            return true;
    return false;
}

void job_asked_form(struct site_call *call, const struct job_asked *asked)
{
    struct buf *out = &call->out;

    buf_text(out, is_filtered(call, asked->is_kept) ? "<details class=\"filters\" open>"
                                                    : "<details class=\"filters\">");
    buf_text(out, "<summary>Filters</summary>\n<form class=\"filters\" action=\"/jobs\" "
                  "method=\"get\">\n");
    if (asked->is_kept)
        buf_text(out, "<input type=\"hidden\" name=\"kept\" value=\"1\">");
    put_hidden(call, "sort");
    put_hidden(call, "limit");
    put_clusters(call);
    for (size_t i = 0; i < COUNT(fields); i++)
        if (is_field_of(&fields[i], asked->is_kept))
            put_field(call, &fields[i]);
    put_states(out);
    buf_text(out, "<p><button type=\"submit\">Show</button> <a href=\"/jobs");
    buf_text(out, asked->is_kept ? "?kept=1" : "");
    buf_text(out, "\">without filters</a></p></form></details>\n");
}
