/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks on memory: too little, or far too much. */
#include "report/check_conditions.h"
#include "report/idle.h"
#include "report/words.h"

#include <math.h>

bool check_out_of_memory(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    double kills = facts->total.oom_kills;
    bool has_ended_by_it = facts->row.record.state.base == JOB_OUT_OF_MEMORY;

    (void)threshold;
    if (!has_ended_by_it && !(kills > 0))
        return false;
    buf_text(sentence, "The job ran out of ");
    if (facts->total.memory_bytes > 0) {
        buf_text(sentence, "the ");
        words_bytes(sentence, facts->total.memory_bytes);
        buf_text(sentence, " of memory that it held");
    } else {
        buf_text(sentence, "memory");
    }
    buf_text(sentence, has_ended_by_it ? ", and was ended." : ".");
    if (kills > 0) {
        buf_text(sentence, " The kernel killed ");
        words_number(sentence, kills);
        buf_text(sentence, kills == 1 ? " process." : " processes.");
    }
    buf_text(sentence, " Ask for more with --mem, or let it hold less data at a time.");
    return true;
}

bool check_swap(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    double swap = facts->total.swap_peak_bytes;

    if (!(swap > threshold * 0x1p20))
        return false;
    buf_text(sentence, "The job had ");
    words_bytes(sentence, swap);
    buf_text(sentence, " in swap space, which is far slower than memory. Ask for more memory with "
                       "--mem.");
    return true;
}

/* Page cache fills memory too, and does no harm. Then nobody has to wait for memory. */
static bool is_only_cache(const struct job_facts *facts)
{
    static const double harmless_ratio = 0.01;
    double run = idle_run_seconds(facts);

    return facts->total.memory_waiting_seconds < run * harmless_ratio;
}

bool check_memory_full(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    if (!(facts->memory_ratio >= threshold / 100) || is_only_cache(facts))
        return false;
    buf_text(sentence, "At its peak the job filled ");
    words_percent(sentence, fmin(facts->memory_ratio, 1));
    buf_text(sentence, " of its ");
    words_bytes(sentence, facts->total.memory_bytes);
    buf_text(sentence,
             " of memory, cached files included. Ask for some more, so that it does not run "
             "out.");
    return true;
}

bool check_memory_low(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    static const double least_unused = 0x1p30; /* less is not worth a word */
    double peak = idle_memory_peak(facts), held = facts->total.memory_bytes;

    /* One that runs may still come to need it. */
    if (facts->is_running || !(peak < held * threshold / 100) || held - peak < least_unused)
        return false;
    buf_text(sentence, facts_has_sampled_peak(facts) ? "The job used, at its sampled peak, "
                                                     : "The job used at most ");
    words_bytes(sentence, peak);
    buf_text(sentence, " of the ");
    words_bytes(sentence, held);
    buf_text(sentence, " of memory that it held (");
    words_percent(sentence, peak / held);
    buf_text(sentence, "). Ask for less with --mem: it may start sooner, and others can use the "
                       "rest.");
    return true;
}
