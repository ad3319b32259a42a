/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the HTML page of /trace. */
#include "http/trace_page.h"

#include "base/clock.h"

#include <math.h>

enum {
    HOSTS_SHOWN = 3,
    NAME_SHOWN = 64,      /* bytes of a user's name */
    ROWS_BYTES = 4 << 20, /* past it, no more rows: long names take the place of many */
};

static const char head[] =
    "<!DOCTYPE html>\n"
    "<html lang=\"en\">\n"
    "<head>\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<title>Traced jobs - sonde exporter</title>\n"
    "<style>\n"
    "body { font: 1rem/1.5 system-ui, sans-serif; max-width: 80rem; margin: 3rem auto; "
    "padding: 0 1rem; }\n"
    "h1 { margin-bottom: 0; }\n"
    "h1 + p { margin-top: 0; opacity: .75; }\n"
    ".wide { overflow-x: auto; }\n"
    "table { border-collapse: collapse; width: 100%; }\n"
    "th, td { text-align: left; padding: .3rem .6rem .3rem 0; vertical-align: top; "
    "border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); }\n"
    ".number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }\n"
    "tbody th { font-weight: normal; }\n"
    ".simulated { border: 2px solid #b58900; border-radius: .4rem; padding: .5rem 1rem; }\n"
    "</style>\n"
    "</head>\n"
    "<body>\n"
    "<h1>Traced jobs</h1>\n";

static void put_time(struct buf *out, int64_t wall_ns)
{
    time_t seconds = wall_ns / NS_PER_SEC;
    struct tm tm;
    char text[40];

    gmtime_r(&seconds, &tm);
    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
    buf_printf(out, "<time datetime=\"%sZ\">%s UTC</time>", text, text);
}

static void put_count(struct buf *out, double value)
{
    if (isnan(value))
        buf_text(out, "–");
    else
        buf_printf(out, "%.0f", value);
}

static void put_cpus(struct buf *out, double percent)
{
    if (isnan(percent))
        buf_text(out, "–");
    else
        buf_printf(out, "%.2f", percent / 100);
}

static void put_bytes(struct buf *out, double bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
    size_t unit = 0;

    if (isnan(bytes)) {
        buf_text(out, "–");
        return;
    }
    while (bytes >= 1024 && unit + 1 < COUNT(units)) {
        bytes /= 1024;
        unit++;
    }
    buf_printf(out, "%.*f %s", unit ? 1 : 0, bytes, units[unit]);
}

static void put_job(struct buf *out, const struct section *traces, const struct traced_job *job)
{
    (void)traces;
    buf_u64(out, job->id);
}

/* Set apart, because letters that are written from right to left turn what stands beside them. */
static void put_name(struct buf *out, struct str name)
{
    buf_text(out, "<bdi>");
    buf_html(out, name);
    buf_text(out, "</bdi>");
}

static void put_user(struct buf *out, const struct section *traces, const struct traced_job *job)
{
    put_name(out, str_head(section_text(traces, job->user), NAME_SHOWN));
}

static void put_hosts(struct buf *out, const struct section *traces, const struct traced_job *job)
{
    const struct traced_host *host = traces->traces.host + job->first_host;

    for (uint32_t i = 0; i < job->n_hosts && i < HOSTS_SHOWN; i++) {
        if (i)
            buf_text(out, ", ");
        put_name(out, section_text(traces, host[i].name));
        buf_printf(out, " (pid %lld)", (long long)host[i].pid);
    }
    if (job->n_hosts > HOSTS_SHOWN)
        buf_printf(out, " and %u more", job->n_hosts - HOSTS_SHOWN);
}

static void put_cpus_used(struct buf *out, const struct section *traces,
                          const struct traced_job *job)
{
    (void)traces;
    put_cpus(out, job->cpu_percent);
}

static void put_cpus_allocated(struct buf *out, const struct section *traces,
                               const struct traced_job *job)
{
    (void)traces;
    put_count(out, job->allocated_cpus == MODEL_UNKNOWN_U32 ? NAN : job->allocated_cpus);
}

static void put_memory_used(struct buf *out, const struct section *traces,
                            const struct traced_job *job)
{
    (void)traces;
    put_bytes(out, job->memory_bytes);
}

static void put_memory_allocated(struct buf *out, const struct section *traces,
                                 const struct traced_job *job)
{
    uint64_t bytes = job->allocated_memory_bytes;

    (void)traces;
    put_bytes(out, bytes == MODEL_UNKNOWN_U64 ? NAN : (double)bytes);
}

static void put_read(struct buf *out, const struct section *traces, const struct traced_job *job)
{
    (void)traces;
    put_bytes(out, job->read_bytes);
}

static void put_written(struct buf *out, const struct section *traces, const struct traced_job *job)
{
    (void)traces;
    put_bytes(out, job->write_bytes);
}

static void put_threads(struct buf *out, const struct section *traces, const struct traced_job *job)
{
    (void)traces;
    put_count(out, job->threads);
}

/* Head and cells come from the same row. */
static const struct column {
    const char *head;
    bool is_number;
    void (*put)(struct buf *out, const struct section *traces, const struct traced_job *job);
} columns[] = {
    { "Job", false, put_job },
    { "User", false, put_user },
    { "Hosts", false, put_hosts },
    { "CPUs used", true, put_cpus_used },
    { "CPUs allocated", true, put_cpus_allocated },
    { "Memory used", true, put_memory_used },
    { "Memory allocated", true, put_memory_allocated },
    { "Read", true, put_read },
    { "Written", true, put_written },
    { "Threads", true, put_threads },
};

static const char *class_of(const struct column *column)
{
    return column->is_number ? " class=\"number\"" : "";
}

static void put_heads(struct buf *out)
{
    buf_text(out, "<thead><tr>");
    for (size_t i = 0; i < COUNT(columns); i++)
        buf_printf(out, "<th scope=\"col\"%s>%s</th>", class_of(&columns[i]), columns[i].head);
    buf_text(out, "</tr></thead>\n");
}

static void put_row(struct buf *out, const struct section *traces, const struct traced_job *job)
{
    buf_text(out, "<tr>");
    for (size_t i = 0; i < COUNT(columns); i++) {
        buf_printf(out, i ? "<td%s>" : "<th scope=\"row\"%s>", class_of(&columns[i]));
        columns[i].put(out, traces, job);
        buf_text(out, i ? "</td>" : "</th>");
    }
    buf_text(out, "</tr>\n");
}

static void put_table(struct buf *out, const struct section *traces)
{
    size_t n = traces->traces.n, shown = 0;

    buf_text(out, "<div class=\"wide\">\n<table>\n");
    put_heads(out);
    buf_text(out, "<tbody>\n");
    for (; shown < n && shown < TRACE_PAGE_ROWS && out->n < ROWS_BYTES; shown++)
        put_row(out, traces, &traces->traces.job[shown]);
    buf_text(out, "</tbody>\n</table>\n</div>\n");
    if (shown < n)
        buf_printf(out,
                   "<p>These are the first %zu of %zu traced jobs, in the order of their ids; the "
                   "metrics have them all.</p>\n",
                   shown, n);
}

void trace_page(struct buf *out, const struct section *traces, const struct section *jobs,
                bool is_simulated)
{
    buf_text(out, head);
    buf_text(out, "<p>As told by their processes until ");
    put_time(out, traces->wall_ns);
    if (jobs) {
        buf_text(out, "; the queue is that of ");
        put_time(out, jobs->wall_ns);
    }
    buf_text(out, "</p>\n");
    if (is_simulated)
        buf_text(out, "<p class=\"simulated\" role=\"note\"><strong>Simulated cluster.</strong> "
                      "The queue is not real, whatever is posted.</p>\n");
    if (traces->traces.n)
        put_table(out, traces);
    else if (jobs)
        buf_text(out, "<p>No job of the queue is traced.</p>\n");
    else
        buf_text(out, "<p>The queue is not known now, so no job can be shown.</p>\n");
    buf_text(out, "</body>\n</html>\n");
}
