/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the landing page of a program. */
#include "http/landing.h"

static const char before_title[] =
    "<!DOCTYPE html>\n"
    "<html lang=\"en\">\n"
    "<head>\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<title>";

static const char after_title[] =
    "</title>\n"
    "<style>\n"
    "body { font: 1rem/1.5 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto; "
    "padding: 0 1rem; }\n"
    "h1 { margin-bottom: 0; }\n"
    "h1 + p { margin-top: 0; opacity: .75; }\n"
    "table { border-collapse: collapse; width: 100%; }\n"
    "th, td { text-align: left; padding: .3rem .6rem .3rem 0; "
    "border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); }\n"
    ".simulated { border: 2px solid #b58900; border-radius: .4rem; padding: .5rem 1rem; }\n"
    "</style>\n"
    "</head>\n"
    "<body>\n";

static void put_link(struct buf *out, const char *path, const char *query, struct str words)
{
    buf_text(out, "<a href=\"");
    buf_html(out, str_of(path));
    buf_html(out, str_of(query));
    buf_text(out, "\">");
    buf_html(out, words);
    buf_text(out, "</a>");
}

static void put_collectors(struct buf *out, const struct landing *landing)
{
    buf_text(out, "<table>\n<tr><th scope=\"col\">Collector</th>"
                  "<th scope=\"col\">What it gives</th></tr>\n");
    for (size_t i = 0; i < landing->n_rows; i++) {
        char query[100];

        snprintf(query, sizeof(query), "?collect[]=%s", landing->rows[i].collector);
        buf_text(out, "<tr><td>");
        put_link(out, landing->metrics_path, query, str_of(landing->rows[i].collector));
        buf_text(out, "</td><td>");
        buf_html(out, str_of(landing->rows[i].help));
        buf_text(out, "</td></tr>\n");
    }
    buf_text(out, "</table>\n");
}

void landing_heading(struct buf *out, const char *program, const char *about)
{
    buf_text(out, before_title);
    buf_text(out, program);
    buf_text(out, after_title);
    buf_printf(out, "<h1>%s</h1>\n<p>version " SONDE_VERSION ", ", program);
    buf_html(out, str_of(about));
    buf_text(out, "</p>\n");
}

void landing_page(struct buf *out, const struct landing *landing)
{
    landing_heading(out, landing->program, landing->about);
    if (landing->is_simulated)
        buf_text(out, "<p class=\"simulated\" role=\"note\"><strong>Simulated cluster.</strong> "
                      "Nothing here is real; every metric carries "
                      "<code>simulated=\"true\"</code>.</p>\n");
    buf_printf(out, "<p>%s, for Prometheus: ", landing->what);
    put_link(out, landing->metrics_path, "", str_of(landing->metrics_path));
    buf_text(out, "</p>\n");
    put_collectors(out, landing);
    if (landing->trace_path) {
        buf_text(out, "<p>What jobs say of their own processes: ");
        put_link(out, landing->trace_path, "", str_of(landing->trace_path));
        buf_text(out, "</p>\n");
    }
    buf_text(out, "<p>Health: ");
    put_link(out, "/-/healthy", "", STR("/-/healthy"));
    buf_text(out, " · ");
    put_link(out, "/-/ready", "", STR("/-/ready"));
    buf_text(out, "</p>\n</body>\n</html>\n");
}
