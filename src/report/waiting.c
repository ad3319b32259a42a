/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reasons are those of squeue(1), "JOB REASON CODES", and job_reason_string() of Slurm, which
 * has far more: of limits, the beginning of the word says whose, and the rest of what. */
#include "report/waiting.h"

#include "base/shown.h"
#include "report/outline.h"

#include <ctype.h>

enum { REASON_COLUMNS = 100 };

struct row {
    const char *begin; /* of the reason */
    const char *part;  /* that it has somewhere behind it; or NULL */
    bool is_prefix;    /* other letters may follow */
    const char *sentence;
    const char *command, *effect; /* ": scontrol release 4711 lets it start"; or NULL */
};

#define WORD(word, sentence)                                                                       \
    {                                                                                              \
        word, NULL, false, sentence, NULL, NULL                                                    \
    }
#define LIMIT(begin, part, sentence)                                                               \
    {                                                                                              \
        begin, part, true, sentence, NULL, NULL                                                    \
    }
#define RELEASE "scontrol release", "lets it start"
#define CANCEL  "scancel", "removes it"

/* The first that matches speaks: of two that begin alike, the longer stands first. */
static const struct row rows[] = {
    WORD("None", "Slurm has not looked at it yet"),
    WORD("Priority", "Jobs with a higher priority go first"),
    WORD("Resources", "It waits until as much as it asked for is free"),
    WORD("Dependency", "It was told to wait for other jobs (--dependency), and does"),
    { "DependencyNeverSatisfied", NULL, false,
      "It can never start: a job that it was to follow did not end as it was told to", CANCEL },
    { "JobHeldUser", NULL, false, "Its user has held it", RELEASE },
    WORD("JobHeldAdmin", "An administrator has held it, and only they can release it: ask them"),
    { "JobHoldMaxRequeue", NULL, false,
      "Slurm has held it, because it was started anew too often; if you know why", RELEASE },
    { "launch failed requeued held", NULL, false,
      "Slurm has held it, because it could not be started on its node; if you know why", RELEASE },
    { "launch_failed_requeued_held", NULL, false,
      "Slurm has held it, because it could not be started on its node; if you know why", RELEASE },
    { "job requeued in held state", NULL, false, "It was put back into the queue and held",
      RELEASE },
    WORD("BeginTime", "It may not start before a set time (--begin, or a pause before it is "
                      "started anew)"),
    WORD("JobArrayTaskLimit", "As many tasks of its array run as may at once (--array=…%N, or "
                              "ArrayTaskThrottle)"),
    WORD("Licenses", "It waits for a licence that others have in use"),
    WORD("BurstBufferResources", "It waits for room in the burst buffer"),
    WORD("BurstBufferStageIn", "Its files are being brought into the burst buffer"),
    WORD("Cleaning", "It was started before, and what is left of that is being cleaned up"),
    WORD("Prolog", "Its nodes are being prepared"),
    WORD("Reservation", "It waits for the time of its reservation"),
    { "ReservationDeleted", NULL, false,
      "It can never start: the reservation that it names was deleted", CANCEL },
    WORD("ReqNodeNotAvail", "A node that it needs is down, drained, or kept for others, such as "
                            "for a maintenance that would begin before its time limit ends"),
    WORD("NodeDown", "A node that it needs is down"),
    LIMIT("Nodes required for job are DOWN", NULL,
          "The nodes that it could have are down, drained, or kept for jobs of other partitions"),
    LIMIT("Nodes_required_for_job_are_DOWN", NULL,
          "The nodes that it could have are down, drained, or kept for jobs of other partitions"),
    WORD("BadConstraints", "No node has what it asks for (--constraint, --mem, --gres): ask for "
                           "something else"),
    WORD("FrontEndDown", "The host from which it would be started is down"),
    WORD("PartitionDown", "Its partition starts no jobs at present"),
    WORD("PartitionInactive", "Its partition takes no jobs at present"),
    WORD("PartitionNodeLimit", "It asks for more or fewer nodes than its partition allows: it "
                               "cannot start like that"),
    WORD("PartitionTimeLimit", "Its time limit is longer than its partition allows: it cannot "
                               "start before it is made shorter"),
    WORD("PartitionConfig", "It asks for what its partition does not allow, and cannot start like "
                            "that"),
    WORD("AccountNotAllowed", "Its account may not use its partition: it cannot start like that"),
    WORD("QOSNotAllowed", "Its QOS may not be used in its partition or account: it cannot start "
                          "like that"),
    WORD("InvalidAccount", "Its account is not a valid one: it cannot start like that"),
    WORD("InvalidQOS", "Its QOS is not a valid one: it cannot start like that"),
    WORD("DeadLine", "It can no longer end before its deadline"),
    WORD("QOSUsageThreshold", "Its QOS has used more than it may: it waits until that has decayed"),
    LIMIT("QOSMin", NULL, "It asks for less than a job of its QOS must: it cannot start like that"),
    LIMIT("QOSMax", "PerJob",
          "It asks for more than a job of its QOS may have: it cannot start like that"),
    LIMIT("QOSMax", "PerUser",
          "Its user has as much as one may have in this QOS: it waits for their other jobs"),
    LIMIT("QOSMax", "PerAccount",
          "Its account has as much as one may have in this QOS: it waits for its other jobs"),
    LIMIT("QOSMax", NULL, "It has reached a limit of its QOS"),
    LIMIT("QOSGrp", "RunMin",
          "The jobs of its QOS that run may still use as much time as all may: it waits for them"),
    LIMIT("QOSGrp", "Wall", "Its QOS has used up the time that was given to it"),
    LIMIT("QOSGrp", "Min", "Its QOS has used up the time that was given to it"),
    LIMIT("QOSGrp", NULL, "The jobs of its QOS have as much as all of them may: it waits for them"),
    LIMIT("QOS", "Limit", "It has reached a limit of its QOS"),
    LIMIT("MaxCpuPerAccount", NULL,
          "Its account has as much as one may have in this QOS: it waits for its other jobs"),
    LIMIT("AssocGrp", "RunMin",
          "The jobs of its account that run may still use as much time as all may: it waits for "
          "them"),
    LIMIT("AssocGrp", "Wall", "Its account has used up the time that was given to it"),
    LIMIT("AssocGrp", "Min", "Its account has used up the time that was given to it"),
    LIMIT("AssocGrp", NULL,
          "The jobs of its account have as much as all of them may: it waits for them"),
    LIMIT("AssocMax", "PerJob",
          "It asks for more than a job of its account may have: it cannot start like that"),
    LIMIT("AssocMax", NULL,
          "Its user has as much as one may have in this account: it waits for their other jobs"),
    LIMIT("Assoc", "Limit", "It has reached a limit of its account"),
};

bool waiting_is(const struct job_record *record)
{
    return record->state.base == JOB_PENDING && !job_record_has_ended(record);
}

static bool matches(const struct row *row, struct str reason)
{
    struct str begin = str_of(row->begin), rest;

    if (!str_starts(reason, begin))
        return false;
    rest = str_skip(reason, begin.n);
    if (!row->is_prefix && rest.n && isalnum((unsigned char)rest.p[0]))
        return false;
    return !row->part || str_find_str(rest, str_of(row->part)) < rest.n;
}

void waiting_put(struct buf *to, const struct job_record *record)
{
    if (!waiting_is(record) || !record->reason.n)
        return;
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (!matches(&rows[i], record->reason))
            continue;
        buf_text(to, rows[i].sentence);
        if (rows[i].command) {
            buf_printf(to, ": %s ", rows[i].command);
            outline_put_id(to, record);
            buf_printf(to, " %s", rows[i].effect);
        }
        buf_byte(to, '.');
        return;
    }
    buf_text(to, "Slurm's reason why it waits is ");
    shown_put_cut(to, record->reason, REASON_COLUMNS);
    buf_byte(to, '.');
}
