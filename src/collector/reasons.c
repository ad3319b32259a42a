/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words are those of job_state_reason_string() in Slurm's job_state_reason.c; what is said of
 * ReqNodeNotAvail comes from select_nodes() in node_scheduler.c. */
#include "collector/reasons.h"

/* A list of nodes follows the first, and may follow the others. */
static const struct str unavailable[] = {
    STR_INIT("ReqNodeNotAvail, UnavailableNodes"), /* REASON_UNAVAILABLE_NODES */
    STR_INIT("ReqNodeNotAvail, Reserved for maintenance"),
    STR_INIT("ReqNodeNotAvail, May be reserved for other job"),
};

static bool is_letter(char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static void cut(struct groups *groups, struct str text)
{
    const struct str any = STR("ReqNodeNotAvail");

    if (str_starts(text, STR("(")) && str_ends(text, STR(")")))
        text = str_head(str_skip(text, 1), text.n - 2);
    for (size_t i = 0; i < COUNT(unavailable); i++) {
        if (str_starts(text, unavailable[i])) {
            groups_put(groups, unavailable[i]);
            return;
        }
    }
    if (str_starts(text, any) && (text.n == any.n || !is_letter(text.p[any.n])))
        text = any;
    groups_put(groups, text.n ? text : STR("None"));
}

void reasons_init(struct reasons *reasons, const struct section *section)
{
    *reasons = (struct reasons){ .n = 0 };
    groups_init(&reasons->groups, section, cut);
}

void reasons_free(struct reasons *reasons)
{
    groups_free(&reasons->groups);
    free(reasons->rows);
}

void reasons_add(struct reasons *reasons, const struct job *job)
{
    size_t group;

    if (!reasons_is_pending(job))
        return;
    group = groups_first(&reasons->groups, job->reason);
    if (group == reasons->n) {
        reasons->rows =
            heap_grow(reasons->rows, reasons->n, &reasons->room, sizeof(*reasons->rows));
        reasons->rows[reasons->n++] = (struct top_row){ groups_name(&reasons->groups, group), 0 };
    }
    reasons->rows[group].amount += job->tasks;
}

/* How the reasons begin that lie with the job or its account, and not with the cluster. */
static const struct str own[] = {
    STR_INIT("JobHeld"),                    /* JobHeldUser, JobHeldAdmin */
    STR_INIT("JobHoldMaxRequeue"),          /* it failed to start too often */
    STR_INIT("job requeued in held state"), /* scontrol requeuehold */
    STR_INIT("Dependency"),                 /* and DependencyNeverSatisfied */
    STR_INIT("BeginTime"),
    STR_INIT("JobArrayTaskLimit"),
    STR_INIT("Assoc"),            /* AssocGrpCpuLimit, AssociationJobLimit, … */
    STR_INIT("AccountingPolicy"), /* one of the limits, not told which */
    STR_INIT("AccountNotAllowed"),
    STR_INIT("InvalidAccount"),
    STR_INIT("InvalidQOS"),
    STR_INIT("QOS"), /* QOSMaxJobsPerUserLimit, QOSNotAllowed, … */
    STR_INIT("PartitionTimeLimit"),
    STR_INIT("PartitionNodeLimit"),
    STR_INIT("PartitionConfig"),
    STR_INIT("MaxMemPerLimit"),
    STR_INIT("BadConstraints"),
};

bool reason_is_the_cluster(struct str reason)
{
    for (size_t i = 0; i < COUNT(own); i++)
        if (str_starts(reason, own[i]))
            return false;
    /* limits of a QOS on accounts: MaxCpuPerAccount, MaxJobsPerAccount, … */
    return !(str_starts(reason, STR("Max")) && str_ends(reason, STR("PerAccount")));
}
