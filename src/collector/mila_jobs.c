/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs by state, by partition and by the host that they were submitted from, under the names of
 * slurm_monitoring_and_reporting. It has a prefix before these: mila_slurm_job_states. */
#include "collector/collector.h"
#include "collector/groups.h"
#include "collector/top.h"

enum { JOB_STATES, PARTITIONS, LOGIN_NODES };

enum { MOST_LOGIN_NODES = 200, WORD_BYTES = 32 };

static const struct family families[] = {
    [JOB_STATES] = { "slurm_job_states",
                     METRIC_GAUGE,
                     "Jobs in the queue by state, in small letters; every task of a job array "
                     "counts.",
                     { "name" } },
    [PARTITIONS] = { "slurm_partitions",
                     METRIC_GAUGE,
                     "Jobs in the queue by partition; every task of a job array counts, and a job "
                     "that may start in several partitions in each of them.",
                     { "name" } },
    [LOGIN_NODES] = { "slurm_login_nodes",
                      METRIC_GAUGE,
                      "Jobs in the queue by the host that they were submitted from; every task of "
                      "a job array counts. Past the 200 most frequent ones the rest is called "
                      "other. Absent where Slurm does not tell it: in JSON up to 22.05.",
                      { "name" } },
};

static struct str put_small_letters(char text[WORD_BYTES], struct str word)
{
    word = str_head(word, WORD_BYTES);
    for (size_t i = 0; i < word.n; i++) {
        bool is_capital = word.p[i] >= 'A' && word.p[i] <= 'Z';

        text[i] = (char)(is_capital ? word.p[i] - 'A' + 'a' : word.p[i]);
    }
    return (struct str){ text, word.n };
}

static void collect_states(const struct jobs *jobs, struct metric_writer *writer)
{
    uint64_t *counts = heap_alloc(n_job_state_words * sizeof(*counts));
    char text[WORD_BYTES];

    for (size_t i = 0; i < jobs->n; i++)
        counts[job_state_index(jobs->job[i].state)] += jobs->job[i].tasks;
    metric_begin(writer, JOB_STATES);
    for (size_t i = 0; i < n_job_state_words; i++)
        metric_u64(writer, METRIC_VALUES(put_small_letters(text, job_state_words[i])), counts[i]);
    free(counts);
}

/* Jobs by name, in the order in which the names are met. */
struct counts {
    struct groups groups;
    struct top_row *rows; /* by group */
    size_t n, room;
};

static void counts_init(struct counts *counts, const struct section *section, groups_cut *cut)
{
    *counts = (struct counts){ .n = 0 };
    groups_init(&counts->groups, section, cut);
}

static void counts_free(struct counts *counts)
{
    groups_free(&counts->groups);
    free(counts->rows);
}

static void add(struct counts *counts, symbol text, uint64_t amount)
{
    struct group_list list = groups_of(&counts->groups, text);

    for (; counts->n < counts->groups.names.n; counts->n++) {
        counts->rows = heap_grow(counts->rows, counts->n, &counts->room, sizeof(*counts->rows));
        counts->rows[counts->n] = (struct top_row){ groups_name(&counts->groups, counts->n), 0 };
    }
    for (size_t i = 0; i < list.n; i++)
        counts->rows[list.group[i]].amount += amount;
}

/* Zero is said of those without jobs. */
static void collect_partitions(const struct section *section, struct metric_writer *writer)
{
    const struct jobs *jobs = &section->jobs;
    struct counts counts;

    counts_init(&counts, section, groups_cut_at_commas);
    for (size_t i = 0; i < jobs->n_known_partitions; i++)
        add(&counts, jobs->known_partition[i], 0);
    for (size_t i = 0; i < jobs->n; i++)
        if (jobs->job[i].partition)
            add(&counts, jobs->job[i].partition, jobs->job[i].tasks);
    metric_begin(writer, PARTITIONS);
    top_write(writer, counts.rows, counts.n, counts.n);
    counts_free(&counts);
}

/* A user's program tells Slurm where it runs: it may be anything. */
static void collect_login_nodes(const struct section *section, struct metric_writer *writer)
{
    const struct jobs *jobs = &section->jobs;
    struct counts counts;

    counts_init(&counts, section, NULL);
    for (size_t i = 0; i < jobs->n; i++)
        if (jobs->job[i].alloc_node)
            add(&counts, jobs->job[i].alloc_node, jobs->job[i].tasks);
    metric_begin(writer, LOGIN_NODES);
    top_write(writer, counts.rows, counts.n, MOST_LOGIN_NODES);
    counts_free(&counts);
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    collect_states(&section->jobs, writer);
    collect_partitions(section, writer);
    collect_login_nodes(section, writer);
}

const struct collector collector_mila_jobs = {
    .name = "mila_jobs",
    .help = "jobs by state, by partition and by the host that they were submitted from",
    .kind = KIND_JOBS,
    .profile = "mila",
    .is_prefixed = true,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
