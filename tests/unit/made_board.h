/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sections and boards of a few nodes and jobs. */
#ifndef SONDE_TESTS_MADE_BOARD_H
#define SONDE_TESTS_MADE_BOARD_H

#include "test.h"

#include "web/board.h"

#include <math.h>

enum { MADE_MAX = 16, MADE_NOW = 1700000000 };

#define GIB (UINT64_C(1) << 30)

static inline symbol made_text(struct section *section, const char *text)
{
    return symbols_put(&section->symbols, str_of(text));
}

static inline struct section *made_jobs(void)
{
    struct section *section = section_new(KIND_JOBS);

    section->jobs.job = ARENA_ARRAY(&section->arena, struct job, MADE_MAX);
    return section;
}

/* Of user and account, in partition "main", with 4 CPUs and 8 GiB; one that runs has begun an hour
 * before MADE_NOW. */
static inline struct job *made_job(struct section *section, uint32_t id, const char *state,
                                   const char *user, const char *account)
{
    struct job *job = &section->jobs.job[section->jobs.n++];

    assert_true(section->jobs.n <= MADE_MAX);
    *job = (struct job){
        .id = id,
        .array_task_id = MODEL_UNKNOWN_U32,
        .tasks = 1,
        .user_id = 1000,
        .user = made_text(section, user),
        .account = made_text(section, account),
        .partition = made_text(section, "main"),
        .tres = made_text(section, "cpu=4,mem=8G,node=1,billing=4"),
        .cpus = 4,
        .node_count = 1,
        .memory_bytes = 8 * GIB,
        .time_limit_minutes = 60,
        .priority = 100,
        .submit_time = MADE_NOW - 10000 + id,
    };
    assert_true(job_state_parse(str_of(state), &job->state));
    if (job_holds_resources(job->state)) {
        job->nodes = made_text(section, "n1");
        job->start_time = MADE_NOW - 3600;
    }
    return job;
}

static inline struct section *made_nodes(void)
{
    struct section *section = section_new(KIND_NODES);

    section->nodes.node = ARENA_ARRAY(&section->arena, struct node, MADE_MAX);
    section->nodes.partition = ARENA_ARRAY(&section->arena, struct partition, MADE_MAX);
    section->nodes.membership = ARENA_ARRAY(&section->arena, uint32_t, MADE_MAX);
    return section;
}

static inline void made_partition(struct section *section, const char *name)
{
    section->nodes.partition[section->nodes.n_partitions++] = (struct partition){
        .name = made_text(section, name),
        .is_up = true,
        .time_limit_minutes = MODEL_UNKNOWN_U32,
    };
}

/* With so many CPUs, some of them allocated, and 64 GiB, of which half is; in one partition. */
static inline struct node *made_node(struct section *section, const char *name, const char *state,
                                     uint32_t cpus, uint32_t allocated, uint32_t partition)
{
    struct node *node = &section->nodes.node[section->nodes.n++];

    assert_true(section->nodes.n <= MADE_MAX);
    *node = (struct node){
        .name = made_text(section, name),
        .cpus = cpus,
        .cpus_alloc = allocated,
        .cpus_idle = MODEL_UNKNOWN_U32,
        .cpus_other = MODEL_UNKNOWN_U32,
        .cpu_load = NAN,
        .memory_bytes = 64 * GIB,
        .memory_alloc_bytes = 32 * GIB,
        .memory_free_bytes = MODEL_UNKNOWN_U64,
        .first_partition = (uint32_t)section->nodes.n_membership,
        .n_partitions = 1,
    };
    section->nodes.membership[section->nodes.n_membership++] = partition;
    assert_true(node_state_parse(str_of(state), &node->state));
    return node;
}

/* Takes the sections over; either may be NULL. */
static inline struct board *made_board(struct section *nodes, struct section *jobs)
{
    struct board *board = board_new(1, MADE_NOW);

    board->cluster[0].name = STR("north");
    board->cluster[0].section[KIND_NODES] = nodes;
    board->cluster[0].section[KIND_JOBS] = jobs;
    board_sum(board);
    return board;
}

#endif
