/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of a job, from submit to end. */
#include "report/words.h"
#include "web/html.h"
#include "web/job_parts.h"
#include "web/job_rows.h"

#include <math.h>

enum { MOMENTS_SHOWN = 50 };

static double between(int64_t from, int64_t to)
{
    return from && to > from ? (double)(to - from) : NAN;
}

/* Held back, waited, suspended, ran; and of one that runs, what its limit leaves. */
static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void put_bar(struct site_call *call, const struct job_facts *facts)
{
    const struct job_record *record = &facts->row.record;
    bool is_open = !job_record_has_ended(record);
    int64_t begun = record->start_time ? record->start_time
                    : is_open          ? facts->now
                                       : record->end_time;
    double ran = job_known_span(facts->row.elapsed_seconds);
    double limit = job_known_u32(record->time_limit_minutes) * 60;
    const struct html_part_of parts[] = {
        { "held back", "asleep",
          between(record->submit_time, earlier(record->eligible_time, begun)), NULL },
        { "waited", "pending",
          between(record->eligible_time ? record->eligible_time : record->submit_time, begun),
          NULL },
        { "suspended", "suspended",
          record->start_time ? job_known_u64(record->suspended_seconds) : NAN, NULL },
        { is_open ? "runs" : "ran", "running", ran, NULL },
        { "left of its limit", "free", facts->is_running ? limit - ran : NAN, NULL },
    };

    html_bar(&call->out, &(struct html_bar){ "From submit to end", NAN, NULL, words_duration },
             parts, COUNT(parts));
}

static void put_moment(struct buf *out, int64_t time, struct str state, struct str reason)
{
    if (!time)
        return;
    buf_text(out, "<li>");
    html_time(out, time);
    buf_byte(out, ' ');
    html_text(out, state);
    if (reason.n) {
        buf_text(out, " <small>");
        html_text(out, reason);
        buf_text(out, "</small>");
    }
    buf_text(out, "</li>\n");
}

/* What the record itself says, where no looks at the queue are kept. */
static void put_known_moments(struct buf *out, const struct job_record *record)
{
    bool has_ended = job_record_has_ended(record);

    put_moment(out, record->submit_time, STR("submitted"), STR(""));
    if (record->eligible_time > record->submit_time)
        put_moment(out, record->eligible_time, STR("could start from here on"), STR(""));
    put_moment(out, record->start_time, STR("started"), STR(""));
    if (has_ended)
        put_moment(out, record->end_time, job_state_word(record->state), record->reason);
}

static void put_seen_moments(struct buf *out, const struct job_facts *facts)
{
    size_t left_out = facts->n_life > MOMENTS_SHOWN ? facts->n_life - MOMENTS_SHOWN : 0;

    put_moment(out, facts->row.record.submit_time, STR("submitted"), STR(""));
    if (left_out) {
        buf_text(out, "<li>… ");
        words_number(out, (double)left_out);
        buf_text(out, " more</li>\n");
    }
    for (size_t i = left_out; i < facts->n_life; i++)
        put_moment(out, facts->life[i].time, facts->life[i].state, facts->life[i].reason);
}

void job_put_life(struct site_call *call, const struct job_facts *facts)
{
    struct buf *out = &call->out;

    buf_text(out, "<section><h2>Life</h2>\n");
    put_bar(call, facts);
    buf_text(out, "<ol class=\"life\">\n");
    if (facts->n_life)
        put_seen_moments(out, facts);
    else
        put_known_moments(out, &facts->row.record);
    buf_text(out, "</ol></section>\n");
}
