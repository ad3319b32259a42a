/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Posts to /trace, from the bytes to the page and the metrics. Each line is a post: its first byte
 * says who sends it, its second how long after the one before. Whatever is posted, the sums are
 * numbers, only jobs of the queue are shown, by their owners, and nothing on the page is markup
 * that we did not write. */
#include "source/trace.h"

#include "http/trace_page.h"

#include "rendered.h"

#include <math.h>

enum { SENDERS = 8, COLUMNS = 10 };

static int64_t now_ns;

static int64_t give_time(const struct clock *clock)
{
    (void)clock;
    return now_ns;
}

static const struct clock fuzz_clock = { .wall_ns = give_time, .mono_ns = give_time };

static const struct trace_config config = {
    .life_ns = 10 * NS_PER_SEC,
    .max_senders = SENDERS,
    .max_senders_per_user = 5,
    .max_senders_per_job = 4,
    .max_posts_per_second = 20,
    .max_posts_per_second_per_user = 10,
    .clock = &fuzz_clock,
};

static const struct trace_identity identities[] = {
    { .proof = TRACE_ANYBODY },
    { .proof = TRACE_UID, .uid = 0 },
    { .proof = TRACE_UID, .uid = 1 },
    { .proof = TRACE_UID, .uid = 2 },
    { .proof = TRACE_NAME, .name = STR_INIT("<1>") },
    { .proof = TRACE_NAME, .name = STR_INIT("2") },
};

/* Jobs 1 to 4; the odd ones are user 1's, whose name is "<1>". */
static struct section *make_jobs(void)
{
    struct section *section = section_new(KIND_JOBS);

    section->jobs.job = ARENA_ARRAY(&section->arena, struct job, 4);
    for (uint32_t id = 1; id <= 4; id++)
        section->jobs.job[section->jobs.n++] = (struct job){
            .id = id,
            .user_id = id % 2 ? 1 : 2,
            .user = symbols_put(&section->symbols, id % 2 ? STR("<1>") : STR("2")),
            .cpus = id,
            .memory_bytes = MODEL_UNKNOWN_U64,
        };
    return section;
}

static bool is_amount(double value)
{
    return isnan(value) || (isfinite(value) && value >= 0);
}

static void check_job(const struct section *section, const struct traced_job *job)
{
    const struct traces *traces = &section->traces;

    FUZZ_CHECK(job->id >= 1 && job->id <= 4 && job->allocated_cpus == job->id);
    FUZZ_CHECK(str_eq(section_text(section, job->user), job->id % 2 ? STR("<1>") : STR("2")));
    FUZZ_CHECK(is_amount(job->cpu_percent) && is_amount(job->memory_bytes));
    FUZZ_CHECK(is_amount(job->read_bytes) && is_amount(job->write_bytes));
    FUZZ_CHECK(is_amount(job->threads));
    FUZZ_CHECK(job->first_host + job->n_hosts <= traces->n_hosts);
    for (uint32_t i = 0; i < job->n_hosts; i++) {
        const struct traced_host *host = &traces->host[job->first_host + i];
        struct str name = section_text(section, host->name);

        FUZZ_CHECK(host->pid >= 1 && name.n <= 255);
        for (; name.n; name = str_skip(name, str_utf8_len(name)))
            FUZZ_CHECK(str_utf8_len(name) && (unsigned char)name.p[0] >= ' ');
        FUZZ_CHECK(i == 0 || host->name != host[-1].name);
    }
}

static size_t count(struct str text, struct str part)
{
    size_t n = 0;

    while (str_find_str(text, part) < text.n) {
        text = str_skip(text, str_find_str(text, part) + part.n);
        n++;
    }
    return n;
}

static void check_page(const struct section *section, const struct section *jobs)
{
    struct buf page;

    buf_init(&page, TRACE_PAGE_BYTES);
    trace_page(&page, section, jobs, false);
    FUZZ_CHECK(!page.over);
    FUZZ_CHECK(count(buf_str(&page), STR("<td")) == (COLUMNS - 1) * section->traces.n);
    FUZZ_CHECK(count(buf_str(&page), STR("</td>")) == (COLUMNS - 1) * section->traces.n);
    FUZZ_CHECK(count(buf_str(&page), STR("<script")) == 0);
    buf_free(&page);
}

static void check_metrics(const struct section *section)
{
    struct rendered rendered = render(section, METRIC_FORMATS);

    FUZZ_CHECK(rendered.duplicates == 0 && !rendered.is_over);
}

static void check_shown(struct trace *trace, const struct section *jobs)
{
    struct section *section = trace_section(trace, jobs);

    for (size_t i = 0; i < section->traces.n; i++) {
        FUZZ_CHECK(i == 0 || section->traces.job[i - 1].id < section->traces.job[i].id);
        check_job(section, &section->traces.job[i]);
    }
    check_page(section, jobs);
    check_metrics(section);
    section_unref(section);
}

static void post(struct trace *trace, struct str line, const struct section *jobs)
{
    const struct trace_identity *who = &identities[(uint8_t)line.p[0] % COUNT(identities)];
    struct trace_stats stats;
    struct err err = { 0 };
    int code;

    now_ns += (line.p[1] & 15) * NS_PER_SEC;
    code = trace_post(trace, str_skip(line, 2), who, jobs, &err);
    FUZZ_CHECK(code >= 0 || (err.code == -code && err.text[0]));
    FUZZ_CHECK(!strchr(err.text, '\n') && !strchr(err.text, '\x1b'));
    trace_stats(trace, &stats);
    FUZZ_CHECK(stats.senders <= SENDERS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = { (const char *)data, size };
    struct section *jobs;
    struct trace *trace;

    if (size == 0 || size > 64 * 1024)
        return 0;
    now_ns = 0;
    jobs = make_jobs();
    trace = trace_new(&config);
    while (rest.p) {
        struct str line = str_cut(&rest, '\n');

        if (line.n >= 2)
            post(trace, line, jobs);
    }
    check_shown(trace, jobs);
    now_ns += 8 * NS_PER_SEC;
    check_shown(trace, jobs);
    trace_free(trace);
    section_unref(jobs);
    return 0;
}
