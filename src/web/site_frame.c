/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What all pages have in common: head, navigation, search, what must be said on each of them, and
 * how old the data is. */
#include "web/site_inside.h"

#include "base/moment.h"
#include "web/html.h"

static void put_asset(struct buf *to, const char *before, enum asset asset)
{
    if (asset_address(asset))
        buf_printf(to, "%s\"%s\"", before, asset_address(asset));
}

static void put_head(const struct site_call *call, struct buf *to)
{
    buf_text(to, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                 "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    html_text(to, call->title);
    buf_text(to, str_eq(call->title, STR("sonde")) ? "</title>\n" : " · sonde</title>\n");
    put_asset(to, "<link rel=\"stylesheet\" href=", ASSET_STYLE);
    put_asset(to, ">\n<link rel=\"icon\" type=\"image/svg+xml\" href=", ASSET_ICON);
    put_asset(to, ">\n<script defer src=", ASSET_SCRIPT);
    put_asset(to, " data-dygraph-script=", ASSET_DYGRAPH_SCRIPT);
    put_asset(to, " data-dygraph-style=", ASSET_DYGRAPH_STYLE);
    buf_text(to, "></script>\n</head>\n<body>\n");
}

static void put_navigation(const struct site_call *call, const struct site_page *page,
                           struct buf *to)
{
    buf_text(to, "<nav aria-label=\"Pages\"><ul>");
    for (size_t i = 0; site_pages[i]; i++) {
        if (!site_pages[i]->nav)
            continue;
        buf_printf(to, "<li><a%s href=\"%s", site_pages[i] == page ? " aria-current=\"page\"" : "",
                   site_pages[i]->path);
        if (call->cluster.n) {
            buf_text(to, "?cluster=");
            buf_url(to, call->cluster);
        }
        buf_text(to, "\">");
        html_textz(to, site_pages[i]->nav);
        buf_text(to, "</a></li>");
    }
    buf_text(to, "</ul></nav>\n");
}

static void put_hidden(struct buf *to, struct str name, struct str value)
{
    buf_text(to, "<input type=\"hidden\" name=\"");
    html_text(to, name);
    buf_text(to, "\" value=\"");
    html_text(to, value);
    buf_text(to, "\">");
}

static void put_search(const struct site_call *call, const struct site_page *page, struct buf *to)
{
    buf_text(to, "<form class=\"search\" role=\"search\" action=\"/search\">"
                 "<input type=\"search\" name=\"q\" list=\"found\" autocomplete=\"off\" "
                 "maxlength=\"200\" aria-label=\"Job, user, account, node or partition\" "
                 "placeholder=\"Job, user, node …\" value=\"");
    if (page == &site_search)
        html_text(to, site_argument(call, "q"));
    buf_text(to, "\"><datalist id=\"found\"></datalist>");
    if (call->cluster.n)
        put_hidden(to, STR("cluster"), call->cluster);
    buf_text(to, "<button>Search</button></form>\n");
}

/* The other arguments stay, but for where a page begins. */
static int put_other_argument(void *ctx, struct str name, struct str value)
{
    if (!str_eq(name, STR("cluster")) && !str_eq(name, STR("offset")) &&
        !str_eq(name, STR("after")) && value.n)
        put_hidden(ctx, name, value);
    return 0;
}

static void put_clusters(const struct site_call *call, struct buf *to)
{
    const struct board *board = call->board;

    if (!board || board->n_clusters < 2)
        return;
    buf_text(to, "<form class=\"cluster\"><label>Cluster <select name=\"cluster\">"
                 "<option value=\"\">all</option>");
    for (size_t i = 0; i < board->n_clusters; i++) {
        buf_text(to,
                 str_eq(call->cluster, board->cluster[i].name) ? "<option selected>" : "<option>");
        html_text(to, board->cluster[i].name);
        buf_text(to, "</option>");
    }
    buf_text(to, "</select></label>");
    http_queries(call->x, put_other_argument, to);
    buf_text(to, "<button>Show</button></form>\n");
}

static void put_viewer(const struct site_call *call, struct buf *to)
{
    if (!call->viewer.user.n)
        return;
    buf_text(to, "<p class=\"viewer\">");
    html_link(to, "/user/", call->viewer.user, call->cluster);
    buf_text(to, call->viewer.is_staff ? " (staff)</p>\n" : "</p>\n");
}

static void put_header(const struct site_call *call, const struct site_page *page, struct buf *to)
{
    buf_text(to, "<a class=\"skip\" href=\"#main\">Skip to the content</a>\n"
                 "<header>\n<a class=\"name\" href=\"/\">sonde</a>\n");
    put_navigation(call, page, to);
    put_search(call, page, to);
    put_clusters(call, to);
    put_viewer(call, to);
    buf_text(to, "</header>\n");
}

static void begin_banner(struct buf *to, const char *class, const char *word,
                         const struct board_cluster *cluster)
{
    buf_printf(to, "<p class=\"banner %s\" role=\"note\"><strong>%s</strong> ", class, word);
    if (cluster->name.n) {
        html_text(to, cluster->name);
        buf_text(to, ": ");
    }
}

/* PrivateData hides without an error: what is not shown is not nothing. */
static void put_hidden_kinds(const struct board_cluster *cluster, struct buf *to)
{
    const struct section *section = cluster->section[KIND_CONFIG];
    const char *between = "Slurm's PrivateData hides from sonde its ";

    if (!section || !section->config.hidden)
        return;
    begin_banner(to, "warning", "Not all is seen.", cluster);
    for (size_t i = 0; i < PRIVATE_DATA; i++)
        if (section->config.hidden & 1u << i) {
            buf_text(to, between);
            html_text(to, private_data_words[i]);
            between = ", ";
        }
    buf_text(to, ". Numbers here are of what the user that it runs as may see; make it an "
                 "operator (sacctmgr modify user … set adminlevel=operator) to see all.</p>\n");
}

static void put_simulated(const struct board_cluster *cluster, bool is_only, struct buf *to)
{
    if (!cluster->is_simulated)
        return;
    buf_text(to, "<p class=\"banner simulated\" role=\"note\"><strong>Simulated cluster.</strong> "
                 "Nothing ");
    if (is_only) {
        buf_text(to, "here");
    } else {
        buf_text(to, "of ");
        html_text(to, cluster->name);
    }
    buf_text(to, " is real.</p>\n");
}

static void put_cluster_banners(const struct board_cluster *cluster, const struct viewer *viewer,
                                struct buf *to)
{
    put_hidden_kinds(cluster, to);
    if (cluster->trouble.n) {
        begin_banner(to, "critical", cluster->is_empty ? "No data yet." : "Stale data.", cluster);
        html_text(to, viewer_trouble(viewer, cluster));
        buf_text(to, "</p>\n");
    }
}

static void put_notice(const struct site_call *call, struct buf *to)
{
    const struct site_config *config = call->config;
    struct arena arena = { 0 };
    struct str notice = config->notice ? config->notice(config->health_ctx, &arena) : STR("");

    if (notice.n) {
        buf_text(to, "<p class=\"banner critical\" role=\"alert\">");
        html_text(to, notice);
        buf_text(to, "</p>\n");
    }
    arena_clear(&arena);
}

static void put_banners(const struct site_call *call, struct buf *to)
{
    buf_text(to, "<section id=\"banners\" aria-label=\"Notices\" data-live>\n");
    if (call->config->motd)
        buf_printf(to, "<div class=\"banner note\">%s</div>\n", call->config->motd);
    put_notice(call, to);
    for (size_t i = 0; call->board && i < call->board->n_clusters; i++)
        if (site_shows(call, &call->board->cluster[i])) {
            put_simulated(&call->board->cluster[i], call->board->n_clusters == 1, to);
            put_cluster_banners(&call->board->cluster[i], &call->viewer, to);
        }
    buf_text(to, "</section>\n");
}

/* When Slurm was asked last: of the clusters that are shown, the one that lags behind. */
static int64_t data_time(const struct site_call *call)
{
    int64_t oldest = 0;

    for (size_t i = 0; call->board && i < call->board->n_clusters; i++) {
        const struct board_cluster *cluster = &call->board->cluster[i];
        const struct section *section = cluster->section[KIND_JOBS] ? cluster->section[KIND_JOBS]
                                                                    : cluster->section[KIND_NODES];
        int64_t time = section ? section->wall_ns / NS_PER_SEC : 0;

        if (time && site_shows(call, cluster) && (!oldest || time < oldest))
            oldest = time;
    }
    return oldest;
}

static void put_footer(const struct site_call *call, struct buf *to)
{
    int64_t time = data_time(call);

    buf_text(to, "<footer>\n<p id=\"age\" data-live>");
    if (time) {
        buf_text(to, "Data of ");
        html_time(to, time);
        buf_text(to, ", ");
        html_span(to, (double)(call->now > time ? call->now - time : 0));
        buf_text(to, " old");
    } else {
        buf_text(to, "No data from Slurm");
    }
    buf_text(to, "</p>\n<p>sonde " SONDE_VERSION " · <a href=\"/health\">health</a> · "
                 "<a href=\"/api/v1/openapi.json\">API</a></p>\n</footer>\n");
}

void site_frame(const struct site_call *call, const struct site_page *page, struct buf *to)
{
    put_head(call, to);
    put_header(call, page, to);
    put_banners(call, to);
    buf_text(to, "<main id=\"main\">\n");
    buf_put(to, buf_str(&call->out));
    buf_text(to, "</main>\n");
    put_footer(call, to);
    buf_text(to, "</body>\n</html>\n");
}
