/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shortens long lists, and links to the full ones. */
#include "web/show_more.h"

#include "report/words.h"
#include "web/html.h"

static bool is_full(const struct site_call *call, const struct show_list *list)
{
    return str_eq(site_argument(call, "full"), str_of(list->word));
}

size_t show_most(const struct site_call *call, const struct show_list *list)
{
    return is_full(call, list) ? SHOW_FULL : list->few;
}

/* Of several clusters each has such a list, and an id is there once. */
const char *show_list_id(const struct site_call *call, const struct show_list *list)
{
    bool is_only = call->cluster.n || !call->board || call->board->n_clusters < 2;

    return is_only && is_full(call, list) ? " id=\"full\"" : "";
}

void show_rest(struct site_call *call, const struct show_list *list, size_t n, struct str cluster)
{
    bool is_cut = is_full(call, list);
    struct html_address link;
    struct buf words;

    if (n <= show_most(call, list))
        return;
    buf_init(&words, 200);
    if (is_cut)
        buf_printf(&words, "The first %d of ", SHOW_FULL);
    else
        buf_text(&words, "All ");
    words_number(&words, (double)n);
    buf_printf(&words, " %s", list->things);
    buf_text(&call->out, "<p class=\"note\">");
    if (is_cut) {
        html_text(&call->out, buf_str(&words));
    } else {
        link = html_begin_link(&call->out, site_address(call, "full", str_of(list->word)).p);
        if (!call->cluster.n)
            html_argument(&link, "cluster", cluster);
        html_fragment(&link, "full");
        html_end_link(&link, buf_str(&words));
    }
    buf_text(&call->out, "</p>\n");
    buf_free(&words);
}
