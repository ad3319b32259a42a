/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the short mail about a job event. */
#include "mail/letter.h"

#include "base/moment.h"
#include "base/shown.h"
#include "model/job.h"

#include <inttypes.h>

enum { NAME_WIDTH = 60 };

/* As slurmctld says them in SLURM_JOB_MAIL_TYPE; what is not listed stands as it is. */
static const struct {
    const char *event, *words; /* that follow the job */
} events[] = {
    { "Began", "began" },
    { "Ended", "ended" },
    { "Failed", "failed" },
    { "Requeued", "was requeued" },
    { "Invalid dependency", "waits for something that can no longer happen" },
    { "StageOut/Teardown", "has its burst buffer written out" },
    { "Reached time limit", "reached its time limit" },
    { "Reached 90% of time limit", "reached 90% of its time limit" },
    { "Reached 80% of time limit", "reached 80% of its time limit" },
    { "Reached 50% of time limit", "reached 50% of its time limit" },
};

void letter_put_job(struct buf *to, const struct mail_entry *entry)
{
    if (entry->is_array && entry->array_job_id != MODEL_UNKNOWN_U32)
        buf_u64(to, entry->array_job_id);
    else if (entry->array_task_id != MODEL_UNKNOWN_U32 && entry->array_job_id != MODEL_UNKNOWN_U32)
        buf_printf(to, "%" PRIu32 "_%" PRIu32, entry->array_job_id, entry->array_task_id);
    else if (entry->het_job_id != MODEL_UNKNOWN_U32 && entry->het_offset != MODEL_UNKNOWN_U32)
        buf_printf(to, "%" PRIu32 "+%" PRIu32, entry->het_job_id, entry->het_offset);
    else if (entry->job_id != MODEL_UNKNOWN_U32)
        buf_u64(to, entry->job_id);
}

static struct str words_of(struct str event)
{
    for (size_t i = 0; i < COUNT(events); i++)
        if (str_eq(event, str_of(events[i].event)))
            return str_of(events[i].words);
    return event;
}

void letter_put_subject(struct buf *to, const struct mail_entry *entry)
{
    if (entry->job_id == MODEL_UNKNOWN_U32 || !entry->event.n) {
        shown_put(to, entry->subject);
        return;
    }
    buf_text(to, entry->is_array ? "Array " : "Job ");
    letter_put_job(to, entry);
    if (entry->name.n) {
        buf_text(to, " (");
        shown_put_cut(to, entry->name, NAME_WIDTH);
        buf_byte(to, ')');
    }
    if (entry->cluster.n) {
        buf_text(to, " on ");
        shown_put(to, entry->cluster);
    }
    buf_byte(to, ' ');
    shown_put(to, words_of(entry->event));
}

static void put_line(struct buf *to, const char *title, struct str value)
{
    if (!value.n)
        return;
    buf_printf(to, "  %-11s ", title);
    shown_put(to, value);
    buf_byte(to, '\n');
}

void letter_put_text(struct buf *to, const struct mail_entry *entry)
{
    const struct {
        const char *title;
        struct str value;
    } lines[] = {
        { "Name", entry->name },           { "Cluster", entry->cluster },
        { "User", entry->user },           { "Account", entry->account },
        { "Partition", entry->partition }, { "Nodes", entry->nodes },
        { "State", entry->state },         { "Exit code", entry->exit_code },
        { "Waited", entry->queued_time },  { "Run time", entry->run_time },
    };

    letter_put_subject(to, entry);
    buf_text(to, "\n\n");
    for (size_t i = 0; i < COUNT(lines); i++)
        put_line(to, lines[i].title, lines[i].value);
    buf_printf(to, "  %-11s ", "Told");
    moment_put_zoned(to, entry->written_time);
    buf_byte(to, '\n');
}
