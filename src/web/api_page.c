/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page that a person sees who opens /api in a browser. */
#include "http/landing.h"
#include "web/api_call.h"

static void put_link(struct buf *out, const char *path, const char *query)
{
    buf_text(out, "<a href=\"");
    buf_html(out, str_of(path));
    buf_html(out, str_of(query));
    buf_text(out, "\">");
    buf_html(out, str_of(path));
    buf_html(out, str_of(query));
    buf_text(out, "</a>");
}

static void put_params(struct buf *out, const struct api_resource *resource)
{
    if (!resource->n_params)
        return;
    buf_text(out, "<table>\n<tr><th scope=\"col\">Parameter</th>"
                  "<th scope=\"col\">What it asks for</th></tr>\n");
    for (size_t i = 0; i < resource->n_params; i++) {
        buf_text(out, "<tr><td><code>");
        buf_html(out, str_of(resource->params[i].name));
        buf_byte(out, '=');
        buf_html(out, str_of(api_param_value(&resource->params[i])));
        buf_text(out, "</code></td><td>");
        buf_html(out, str_of(resource->params[i].help));
        buf_text(out, "</td></tr>\n");
    }
    buf_text(out, "</table>\n");
}

static void put_resource(struct buf *out, const struct api_resource *resource)
{
    buf_text(out, "<h2><code>");
    buf_html(out, str_of(resource->shown));
    buf_text(out, "</code></h2>\n<p>");
    buf_html(out, str_of(resource->summary));
    if (resource->example) {
        buf_text(out, " Try ");
        put_link(out, resource->path, resource->example);
    }
    buf_text(out, "</p>\n");
    put_params(out, resource);
}

void api_page(struct buf *out)
{
    landing_heading(out, "sonde web", "what its pages show, as JSON");
    buf_text(out,
             "<p>Answers are JSON: times in UTC seconds, durations in seconds, sizes in bytes; "
             "what is unknown is left out. In a query, a TIME is <code>2026-10-01</code> (a day "
             "in UTC), <code>2026-10-01T12:30:00Z</code> or UTC seconds.</p>\n");
    for (size_t i = 0; i < API_RESOURCES; i++)
        put_resource(out, api_resources[i]);
    buf_text(out, "<p>All of it for programs: ");
    put_link(out, "/api/v1/openapi.json", "");
    buf_text(out, " · Health: ");
    put_link(out, "/-/healthy", "");
    buf_text(out, " · ");
    put_link(out, "/-/ready", "");
    buf_text(out, "</p>\n</body>\n</html>\n");
}
