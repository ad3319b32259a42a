/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks on time, on files, and on how a job ended. */
#include "report/check_conditions.h"
#include "report/idle.h"
#include "report/words.h"

#include <math.h>

static double limit_seconds(const struct job_facts *facts)
{
    uint32_t minutes = facts->row.record.time_limit_minutes;

    return minutes && minutes != MODEL_UNKNOWN_U32 ? 60.0 * minutes : NAN;
}

bool check_timeout(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    double limit = limit_seconds(facts);

    (void)threshold;
    if (facts->row.record.state.base != JOB_TIMEOUT)
        return false;
    buf_text(sentence, "The job reached its time limit");
    if (isfinite(limit)) {
        buf_text(sentence, " of ");
        words_duration(sentence, limit);
    }
    buf_text(sentence, " and was ended. Ask for more with --time, or let it save its state now and "
                       "then, and go on from there.");
    return true;
}

bool check_time_limit_far(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    static const double least_seconds = 900; /* as jobstats: 30 samples */
    double run = idle_run_seconds(facts), limit = limit_seconds(facts);

    if (facts->row.record.state.base != JOB_COMPLETED || !(run >= least_seconds) ||
        !(run < limit * threshold / 100))
        return false;
    buf_text(sentence, "The job needed ");
    words_duration(sentence, run);
    buf_text(sentence, " of its time limit of ");
    words_duration(sentence, limit);
    buf_text(sentence, " (");
    words_percent(sentence, run / limit);
    buf_text(sentence, "). With a shorter --time it may start sooner, in a gap between others.");
    return true;
}

bool check_node_failed(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    uint8_t base = facts->row.record.state.base;

    (void)threshold;
    if (base != JOB_NODE_FAIL && base != JOB_BOOT_FAIL)
        return false;
    buf_text(sentence, base == JOB_NODE_FAIL ? "A node failed while the job ran on it"
                                             : "A node did not start for the job");
    buf_text(sentence, "; that is not the job's doing. Submit it again: with --requeue, Slurm does "
                       "so by itself.");
    return true;
}

/* Many, and little in each. */
static bool put_small(struct buf *sentence, double files, double bytes, double most,
                      const char *did, const char *how)
{
    static const double least_files = 1000;

    if (!(files >= least_files) || !(bytes < files * most))
        return false;
    buf_printf(sentence, "The job %s ", did);
    words_number(sentence, files);
    buf_printf(sentence, " files %s and moved ", how);
    words_bytes(sentence, bytes / files);
    buf_text(sentence, " to or from each. Many small files are slow: pack them into a few large "
                       "ones, or work on the node's own disk.");
    return true;
}

bool check_files_small(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    const struct use_facts *total = &facts->total;
    const struct lustre_facts *lustre = &facts->lustre;
    double most = threshold * 0x1p20;

    return put_small(sentence, total->files_peak, total->read_bytes + total->written_bytes, most,
                     "had", "open at once") ||
           put_small(sentence, lustre->opens, lustre->read_bytes + lustre->written_bytes, most,
                     "opened", "on Lustre");
}

bool check_io_waiting(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    double run = idle_run_seconds(facts);
    double ratio = run > 0 ? facts->total.io_waiting_seconds / run : NAN;

    if (!(ratio > threshold / 100))
        return false;
    buf_text(sentence, "Some part of the job waited for storage during ");
    words_percent(sentence, fmin(ratio, 1));
    buf_text(sentence, " of its time. Larger reads and writes, fewer files, or the node's own disk "
                       "may help.");
    return true;
}

bool check_scratch_unused(const struct job_facts *facts, double threshold, struct buf *sentence)
{
    double bytes = facts->total.read_bytes + facts->total.written_bytes;

    if (facts->is_running || facts->total.uses_scratch != 0 || !(bytes >= threshold * 0x1p30))
        return false;
    buf_text(sentence, "The job read and wrote ");
    words_bytes(sentence, bytes);
    buf_text(sentence, " and had no file on scratch. Scratch is faster, and made for files that a "
                       "job needs while it runs.");
    return true;
}
