/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All nodes, as a grid of cells or as a table. A cell is short, so that 10,000 of them are less
 * than a megabyte. */
#include "base/num.h"
#include "report/words.h"
#include "web/job_rows.h"
#include "web/cluster_pages.h"
#include "web/node_rows.h"

#include <math.h>

enum { ROWS_OF_PAGE = 200 };

static const struct {
    const char *name, *label;
} fields[NODE_FIELDS] = {
    [NODE_OF_STATE] = { "state", "State" },
    [NODE_OF_PARTITION] = { "partition", "Partition" },
    [NODE_OF_GPU] = { "gpu", "GPU type" },
    [NODE_OF_FEATURE] = { "feature", "Feature" },
    [NODE_OF_RESERVATION] = { "reservation", "Reservation" },
    [NODE_OF_NAME] = { "name", "Nodes" },
    [NODE_OF_TEXT] = { "text", "Name or reason" },
};

struct page {
    struct site_call *call;
    struct buf *out;
    struct str wanted[NODE_FIELDS];
    struct node_rows rows;
};

/* ---- the form ---- */

static void put_field(const struct page *page, enum node_field field)
{
    buf_printf(page->out, "<label>%s <input name=\"%s\" value=\"", fields[field].label,
               fields[field].name);
    html_text(page->out, page->wanted[field]);
    buf_text(page->out, "\"></label>\n");
}

static void put_choice(struct buf *out, struct str value, struct str words, bool is_chosen)
{
    buf_text(out, "<option value=\"");
    html_text(out, value);
    buf_text(out, is_chosen ? "\" selected>" : "\">");
    html_text(out, words);
    buf_text(out, "</option>");
}

/* A flag or a base state that an address asks for is no word of the list: it is added. */
static void put_states(const struct page *page)
{
    struct str wanted = page->wanted[NODE_OF_STATE];
    bool is_listed = !wanted.n || node_rows_is_state_word(wanted);

    buf_text(page->out, "<label>State <select name=\"state\">");
    put_choice(page->out, STR(""), STR("any"), !wanted.n);
    for (size_t i = 0; i < NODE_CHOICES; i++) {
        bool is_wanted = str_eq(wanted, node_choices[i].word);

        put_choice(page->out, node_choices[i].word, node_choices[i].phrase, is_wanted);
        is_listed |= is_wanted;
    }
    if (!is_listed)
        put_choice(page->out, wanted, wanted, true);
    for (size_t i = 0; i < n_node_state_words; i++)
        put_choice(page->out, node_state_words[i], node_state_words[i],
                   str_eq_nocase(wanted, node_state_words[i]));
    buf_text(page->out, "</select></label>\n");
}

/* What is chosen elsewhere on the page stays. */
static void put_hidden(const struct page *page, const char *name)
{
    struct str value = site_argument(page->call, name);

    if (!value.n)
        return;
    buf_printf(page->out, "<input type=\"hidden\" name=\"%s\" value=\"", name);
    html_text(page->out, value);
    buf_text(page->out, "\">\n");
}

static void put_form(const struct page *page)
{
    buf_text(page->out, "<h1>Nodes</h1>\n");
    buf_text(page->out, "<form class=\"filter\" action=\"/nodes\">\n");
    put_states(page);
    for (enum node_field i = NODE_OF_PARTITION; i < NODE_FIELDS; i++)
        put_field(page, i);
    put_hidden(page, "cluster");
    put_hidden(page, "view");
    put_hidden(page, "colour");
    buf_text(page->out, "<button>Show</button> <a href=\"/nodes\">all</a>\n</form>\n<p>");
    html_number(page->out, (double)page->rows.n);
    buf_text(page->out, " of ");
    html_number(page->out, (double)page->rows.n_nodes);
    buf_text(page->out, page->rows.n_nodes == 1 ? " node</p>\n" : " nodes</p>\n");
}

/* ---- the grid ---- */

static double load_ratio(const struct node_entry *entry)
{
    return entry->node->cpu_load / job_known_u32(entry->node->cpus);
}

static double gpu_ratio(const struct node_entry *entry)
{
    return entry->gpus > 0 ? entry->gpus_allocated / entry->gpus : NAN;
}

static double memory_ratio(const struct node_entry *entry)
{
    return job_known_u64(entry->node->memory_alloc_bytes) /
           job_known_u64(entry->node->memory_bytes);
}

/* How cells are coloured. */
static const struct colour {
    struct str word;
    const char *words;
    double (*ratio)(const struct node_entry *entry); /* NULL: by state */
    const char *unknown;                             /* what a node without a ratio is */
} colours[] = {
    { STR_INIT("state"), "state", NULL, NULL },
    { STR_INIT("load"), "load of each CPU", load_ratio, "not told" },
    { STR_INIT("gpu"), "GPUs allocated", gpu_ratio, "no GPUs" },
    { STR_INIT("memory"), "memory allocated", memory_ratio, "not told" },
};

static const struct colour *find_colour(struct str word)
{
    for (size_t i = 0; i < COUNT(colours); i++)
        if (str_eq(colours[i].word, word))
            return &colours[i];
    return &colours[0];
}

/* Of a ratio: the first that it is below. */
static const struct {
    const char *class, *words;
    double below;
} steps[] = {
    { "r0", "none", 0.005 },      { "r1", "up to 25 %", 0.25 },  { "r2", "up to 50 %", 0.5 },
    { "r3", "up to 75 %", 0.75 }, { "r4", "up to 105 %", 1.05 }, { "r5", "more", INFINITY },
};

static const char *class_of(const struct node_entry *entry, const struct colour *colour)
{
    double ratio;

    if (!colour->ratio)
        return show_node_class(entry->node->state);
    ratio = colour->ratio(entry);
    for (size_t i = 0; i < COUNT(steps); i++)
        if (ratio < steps[i].below)
            return steps[i].class;
    return "unknown";
}

static void put_cell(const struct page *page, const struct node_entry *entry,
                     const struct colour *colour)
{
    struct str name = node_entry_text(entry, entry->node->name);
    struct str cluster = show_word(page->call, entry->cluster);
    struct buf *out = page->out;

    buf_text(out, "<a class=\"");
    buf_text(out, class_of(entry, colour));
    buf_text(out, "\" href=\"/node/");
    buf_url(out, name);
    if (cluster.n) {
        buf_text(out, "?cluster=");
        buf_url(out, cluster);
    }
    buf_text(out, "\" title=\"");
    html_text(out, node_state_word(entry->node->state));
    if (colour->ratio && isfinite(colour->ratio(entry))) {
        buf_byte(out, ' ');
        words_percent(out, colour->ratio(entry));
    }
    buf_text(out, "\">");
    html_text(out, name);
    buf_text(out, "</a>\n");
}

static void put_legend(const struct page *page, const struct colour *colour)
{
    buf_text(page->out, "<ul class=\"legend\">");
    for (size_t i = 0; i < COUNT(steps) && colour->ratio; i++)
        buf_printf(page->out, "<li><i class=\"%s\"></i>%s</li>", steps[i].class, steps[i].words);
    if (colour->ratio)
        buf_printf(page->out, "<li><i class=\"unknown\"></i>%s</li>", colour->unknown);
    for (size_t i = 0; show_node_classes[i] && !colour->ratio; i++)
        buf_printf(page->out, "<li><i class=\"%s\"></i>%s</li>", show_node_classes[i],
                   show_node_classes[i]);
    buf_text(page->out, "</ul>\n");
}

static void put_view(const struct page *page, struct str view, const char *words)
{
    show_link(page->out, site_address(page->call, "view", view).p, str_of(words));
}

static void put_colours(const struct page *page, const struct colour *chosen)
{
    buf_text(page->out, "<nav class=\"views\" aria-label=\"Colours and views\">Coloured by ");
    for (size_t i = 0; i < COUNT(colours); i++) {
        if (&colours[i] == chosen)
            buf_printf(page->out, "<b aria-current=\"page\">%s</b>", colours[i].words);
        else
            show_link(page->out, site_address(page->call, "colour", colours[i].word).p,
                      str_of(colours[i].words));
        buf_byte(page->out, '\n');
    }
    put_view(page, STR("table"), "as a table");
    buf_text(page->out, "</nav>\n");
}

static int put_grid(const struct page *page)
{
    const struct colour *colour = find_colour(site_argument(page->call, "colour"));

    put_colours(page, colour);
    put_legend(page, colour);
    buf_text(page->out, "<div class=\"grid\" id=\"nodes\" data-live>\n");
    for (size_t i = 0; i < page->rows.n; i++)
        put_cell(page, &page->rows.entry[i], colour);
    buf_text(page->out, "</div>\n");
    return 0;
}

/* ---- the table ---- */

static const struct html_column columns[NODE_SORTS] = {
    [NODE_BY_NAME] = { "node", "node", false },
    [NODE_BY_STATE] = { "state", "state", false },
    [NODE_BY_CPUS] = { "CPUs", "cpus", true },
    [NODE_BY_LOAD] = { "load", "load", true },
    [NODE_BY_GPUS] = { "GPUs", "gpus", true },
    [NODE_BY_MEMORY] = { "memory", "memory", true },
    [NODE_BY_REASON] = { "reason", "reason", false },
    [NODE_BY_SINCE] = { "since", "since", true },
};

static enum node_sort find_sort(struct str word)
{
    for (enum node_sort i = 0; i < NODE_SORTS; i++)
        if (str_eq(word, str_of(columns[i].sort)))
            return i;
    return NODE_BY_NAME;
}

/* "32 of 64" */
static void put_of(struct buf *out, double part, double all, void (*put)(struct buf *, double))
{
    if (isnan(all))
        return;
    put(out, part);
    buf_text(out, " of ");
    put(out, all);
}

static void put_row(const struct page *page, struct html_table *table,
                    const struct node_entry *entry)
{
    const struct node *node = entry->node;
    struct buf *out = page->out;

    html_begin_row(table);
    html_begin_cell(table, NODE_BY_NAME);
    html_link(out, "/node/", node_entry_text(entry, node->name),
              show_word(page->call, entry->cluster));
    html_begin_cell(table, NODE_BY_STATE);
    show_node_state(out, node->state);
    html_begin_cell(table, NODE_BY_CPUS);
    put_of(out, job_known_u32(node->cpus_alloc), job_known_u32(node->cpus), html_number);
    html_begin_cell(table, NODE_BY_LOAD);
    html_number(out, node->cpu_load);
    html_begin_cell(table, NODE_BY_GPUS);
    put_of(out, entry->gpus_allocated, entry->gpus, html_number);
    html_begin_cell(table, NODE_BY_MEMORY);
    put_of(out, job_known_u64(node->memory_alloc_bytes), job_known_u64(node->memory_bytes),
           html_bytes);
    html_begin_cell(table, NODE_BY_REASON);
    html_text(out, node_entry_text(entry, node->reason));
    html_begin_cell(table, NODE_BY_SINCE);
    if (node->reason_time)
        html_time(out, node->reason_time);
    html_end_row(table);
}

static void put_step(const struct page *page, size_t offset, const char *words)
{
    char text[NUM_U64_MAX];
    struct str value = { text, num_put_u64(text, offset) };

    show_link(page->out, site_address(page->call, "offset", offset ? value : STR("")).p,
              str_of(words));
    buf_byte(page->out, '\n');
}

static void put_steps(const struct page *page, size_t offset)
{
    if (page->rows.n <= ROWS_OF_PAGE)
        return;
    buf_text(page->out, "<nav class=\"pages\" aria-label=\"Rows\">");
    if (offset)
        put_step(page, offset > ROWS_OF_PAGE ? offset - ROWS_OF_PAGE : 0, "Previous");
    if (page->rows.n - offset > ROWS_OF_PAGE)
        put_step(page, offset + ROWS_OF_PAGE, "Next");
    buf_text(page->out, "</nav>\n");
}

static int find_offset(const struct page *page, size_t *ret)
{
    struct str text = site_argument(page->call, "offset");
    uint64_t offset = 0;

    if (text.n && !num_get_u64(text, &offset))
        return site_refuse(page->call, 400, "offset is a number: how many nodes to pass over");
    if (offset && offset >= page->rows.n)
        return site_refuse(page->call, 404, "there are only %zu such nodes", page->rows.n);
    *ret = (size_t)offset;
    return 0;
}

static int put_table(struct page *page)
{
    bool is_descending;
    struct str word = html_sort_word(site_argument(page->call, "sort"), &is_descending);
    enum node_sort sort = find_sort(word);
    struct html_table table;
    size_t offset = 0;
    int code = find_offset(page, &offset);

    if (code)
        return code;
    node_rows_sort(&page->rows, sort, is_descending);
    buf_text(page->out, "<nav class=\"views\" aria-label=\"Views\">");
    put_view(page, STR(""), "as a grid");
    buf_text(page->out, "</nav>\n<div id=\"nodes\" data-live>\n");
    html_begin_table(&table, page->out, "Nodes", columns, COUNT(columns),
                     str_of(columns[sort].sort), is_descending,
                     site_address(page->call, "sort", STR("")));
    for (size_t i = offset; i < page->rows.n && i < offset + ROWS_OF_PAGE; i++)
        put_row(page, &table, &page->rows.entry[i]);
    html_end_table(&table);
    put_steps(page, offset);
    buf_text(page->out, "</div>\n");
    return 0;
}

/* What there is to say where no node is shown; NULL: some are. */
static const char *why_none(const struct page *page)
{
    const struct board *board = page->call->board;

    if (page->rows.n)
        return NULL;
    if (page->rows.n_nodes)
        return "No node is like this: leave out some of what is asked for.";
    for (size_t i = 0; i < board->n_clusters; i++)
        if (site_shows(page->call, &board->cluster[i]) &&
            show_is_private(page->call, &board->cluster[i], PRIVATE_NODES))
            return board->cluster[i].section[KIND_CONFIG]
                       ? "Nodes are private: PrivateData of slurm.conf says so."
                       : "Nodes are not shown until Slurm has told whether they are private.";
    return "Nothing is known of the nodes at present.";
}

static int show(struct site_call *call)
{
    struct page page = { .call = call, .out = &call->out };
    const char *why;

    call->title = STR("Nodes");
    for (enum node_field i = 0; i < NODE_FIELDS; i++)
        page.wanted[i] = str_trim(site_argument(call, fields[i].name));
    if (node_rows_find(call, page.wanted, &page.rows) < 0)
        return site_refuse(call, 400, "name is a list of nodes such as n[1-8],login1: %s",
                           arena_str(&call->arena, str_of(call->err.text)).p);
    put_form(&page);
    why = why_none(&page);
    if (why)
        html_empty(&call->out, why);
    if (why)
        return 0;
    return str_eq(site_argument(call, "view"), STR("table")) ? put_table(&page) : put_grid(&page);
}

const struct site_page show_nodes = {
    .path = "/nodes",
    .nav = "Nodes",
    .needs = SITE_BOARD,
    .show = show,
};
