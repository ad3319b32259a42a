/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of record/changes: jobs that differ from what was recorded. */
#include "sections.h"

#include "record/changes.h"
#include "record/seen.h"

#include <math.h>

enum { SUBMIT = 1700000000, LOOK = SUBMIT + 1000 };

int64_t sections_now = LOOK;

static symbol put(struct section *section, const char *text)
{
    return symbols_put(&section->symbols, str_of(text));
}

static struct job waiting_job(uint32_t id)
{
    return (struct job){
        .id = id,
        .array_task_id = MODEL_UNKNOWN_U32,
        .tasks = 1,
        .user_id = 1000,
        .state = { JOB_PENDING, 0 },
        .cpus = 4,
        .node_count = 1,
        .memory_bytes = 1 << 30,
        .time_limit_minutes = 60,
        .priority = 4000,
        .submit_time = SUBMIT,
        .eligible_time = SUBMIT,
    };
}

/* n jobs that wait; `seed` makes the symbols come in another order, as they do from look to look.
 */
static struct section *section_of(size_t n, const char *seed)
{
    struct section *section = section_new(KIND_JOBS);

    put(section, seed);
    section->wall_ns = LOOK * NS_PER_SEC;
    section->jobs.n = n;
    section->jobs.job = ARENA_ARRAY(&section->arena, struct job, n);
    for (size_t i = 0; i < n; i++) {
        struct job *job = &section->jobs.job[i];

        *job = waiting_job((uint32_t)(1000 + i));
        job->user = put(section, i % 2 ? "alice" : "bob");
        job->account = put(section, "physics");
        job->partition = put(section, "long");
        job->reason = put(section, "Priority");
        job->tres = put(section, "cpu=4,mem=1G,node=1,billing=4");
    }
    return section;
}

static size_t find(struct changes *changes, struct section *section, bool is_kept)
{
    struct changes_found found;

    changes_find(changes, section, SIZE_MAX, &found);
    assert_true(found.is_all);
    assert_int_equal(found.n + found.unchanged + found.skipped, section->jobs.n);
    if (is_kept)
        changes_keep(changes, section, &found);
    section_unref(section);
    return found.n;
}

TEST(only_what_has_changed_is_found_again)
{
    struct changes *changes = changes_new();
    struct section *third = section_of(1000, "c");

    assert_int_equal(find(changes, section_of(1000, "a"), true), 1000);
    assert_int_equal(find(changes, section_of(1000, "b"), true), 0);
    third->jobs.job[7].state.base = JOB_RUNNING;
    third->jobs.job[8].reason = put(third, "Resources");
    assert_int_equal(find(changes, third, true), 2);
    assert_int_equal(find(changes, section_of(1001, "d"), true), 3);
    changes_free(changes);
}

TEST(what_was_not_kept_is_found_again)
{
    struct changes *changes = changes_new();

    assert_int_equal(find(changes, section_of(10, "a"), false), 10);
    assert_int_equal(find(changes, section_of(10, "a"), true), 10);
    assert_int_equal(find(changes, section_of(10, "a"), true), 0);
    changes_forget(changes);
    assert_int_equal(find(changes, section_of(10, "a"), true), 10);
    changes_free(changes);
}

TEST(many_changes_are_found_a_part_at_a_time)
{
    struct changes *changes = changes_new();
    struct section *section = section_of(250, "a");
    struct changes_found found;
    size_t sizes[] = { 100, 100, 50, 0 };

    for (size_t i = 0; i < COUNT(sizes); i++) {
        changes_find(changes, section, 100, &found);
        assert_int_equal(found.n, sizes[i]);
        assert_int_equal(found.is_all, i >= 2);
        assert_int_equal(found.unchanged, i < 3 ? 100 * i : 250);
        changes_keep(changes, section, &found);
    }
    section_unref(section);
    changes_free(changes);
}

TEST(a_job_without_a_submit_time_is_skipped_and_counted)
{
    struct changes *changes = changes_new();
    struct section *section = section_of(3, "a");
    struct changes_found found;

    section->jobs.job[1].submit_time = 0;
    changes_find(changes, section, SIZE_MAX, &found);
    assert_int_equal(found.n, 2);
    assert_int_equal(found.skipped, 1);
    section_unref(section);
    changes_free(changes);
}

TEST(a_requeued_job_is_another_run)
{
    struct changes *changes = changes_new();
    struct section *again = section_of(3, "a");

    assert_int_equal(find(changes, section_of(3, "a"), true), 3);
    again->jobs.job[1].submit_time++;
    again->jobs.job[1].restarts++;
    assert_int_equal(find(changes, again, true), 1);
    changes_free(changes);
}

TEST(a_run_that_stands_twice_in_a_section_is_not_found_at_every_look)
{
    struct changes *changes = changes_new();
    struct changes_found found;

    for (int look = 0; look < 3; look++) {
        struct section *section = section_of(2, "a");

        section->jobs.job[1].id = section->jobs.job[0].id;
        changes_find(changes, section, SIZE_MAX, &found);
        assert_int_equal(found.n, look == 0);
        changes_keep(changes, section, &found);
        section_unref(section);
    }
    changes_free(changes);
}

/* As squeue --array tells it: a line for each task that waits, in any order. */
static struct section *section_of_array(const uint32_t *tasks, size_t n)
{
    struct section *section = section_of(n, "a");

    for (size_t i = 0; i < n; i++) {
        struct job *job = &section->jobs.job[i];

        job->id = job->array_job_id = 77;
        job->array_task_id = tasks[i];
        job->user = put(section, "alice");
        if (tasks[i] != 1)
            job->reason = put(section, "JobArrayTaskLimit");
    }
    return section;
}

TEST(tasks_that_wait_together_are_one_run_in_whatever_order_they_are_told)
{
    static const uint32_t orders[][4] = { { 3, 1, 5, 7 }, { 1, 3, 7, 5 }, { 7, 5, 3, 1 } };
    struct changes *changes = changes_new();
    struct changes_found found;

    for (size_t look = 0; look < COUNT(orders); look++) {
        struct section *section = section_of_array(orders[look], 4);
        struct job job;

        changes_find(changes, section, SIZE_MAX, &found);
        assert_int_equal(found.n, look == 0);
        assert_int_equal(found.unchanged, look > 0);
        if (found.n) {
            job = changes_job(section, &found.job[0]);
            assert_int_equal(job.id, 77);
            assert_int_equal(job.tasks, 4);
            assert_int_equal(job.array_task_id, MODEL_UNKNOWN_U32);
            assert_str(section_text(section, job.reason), "Priority");
        }
        changes_keep(changes, section, &found);
        section_unref(section);
    }
    changes_free(changes);
}

TEST(the_last_task_that_waits_has_its_own_number)
{
    static const uint32_t all[] = { 1, 3, 5 }, last[] = { 5, 5 };
    struct changes *changes = changes_new();
    struct section *section = section_of_array(last, 2);
    struct changes_found found;
    struct job job;

    changes_find(changes, section, SIZE_MAX, &found);
    assert_int_equal(found.n, 1);
    job = changes_job(section, &found.job[0]);
    assert_int_equal(job.tasks, 1);
    assert_int_equal(job.array_task_id, 5);
    changes_keep(changes, section, &found);
    section_unref(section);
    section = section_of_array(all, 3);
    changes_find(changes, section, SIZE_MAX, &found);
    assert_int_equal(found.n, 1);
    section_unref(section);
    changes_free(changes);
}

static struct section *section_from(uint32_t first_id, size_t n)
{
    struct section *section = section_of(n, "a");

    for (size_t i = 0; i < n; i++)
        section->jobs.job[i].id = (uint32_t)(first_id + i);
    return section;
}

TEST(what_is_seen_is_told_by_id_and_what_has_vanished_is_not)
{
    struct changes *changes = changes_new();

    /* Ids move on, as they do on a cluster: a window of 500 over 50,000. */
    for (uint32_t first = 1; first < 50000; first += 100) {
        assert_int_equal(find(changes, section_from(first, 500), true), first == 1 ? 500 : 100);
        assert_true(changes_sees(changes, first));
        assert_true(changes_sees(changes, first + 499));
        assert_false(changes_sees(changes, first + 500));
        assert_false(first > 1 && changes_sees(changes, first - 1));
    }
    changes_free(changes);
}

TEST(what_has_gone_is_told_until_that_is_kept)
{
    struct changes *changes = changes_new();
    struct section *section;
    struct changes_found found;

    find(changes, section_from(1, 200), true);
    changes_add(changes, (struct run_name){ 5000, SUBMIT }); /* of another process */
    changes_add(changes, (struct run_name){ 150, SUBMIT });
    section = section_from(101, 1000); /* more than there is room for */
    changes_find(changes, section, SIZE_MAX, &found);
    assert_int_equal(found.n_gone, 101);
    changes_find(changes, section, 60, &found);
    assert_int_equal(found.n_gone, 60);
    changes_keep(changes, section, &found);
    changes_find(changes, section, 60, &found);
    assert_int_equal(found.n_gone, 41);
    changes_keep(changes, section, &found);
    changes_find(changes, section, SIZE_MAX, &found);
    assert_int_equal(found.n_gone, 0);
    changes_keep(changes, section, &found);
    section_unref(section);
    assert_int_equal(find(changes, section_from(99, 1002), true), 2); /* two are back */
    changes_free(changes);
}

struct field {
    const char *name;
    size_t offset, size;
};

#define FIELD(name)                                                                                \
    {                                                                                              \
#name, offsetof(struct job, name), sizeof((struct job){ 0 }.name)                          \
    }

TEST(a_change_of_any_field_is_noticed)
{
    static const struct field fields[] = {
        FIELD(array_job_id),
        FIELD(array_task_id),
        FIELD(tasks),
        FIELD(het_job_id),
        FIELD(het_offset),
        FIELD(user_id),
        FIELD(restarts),
        FIELD(state.base),
        FIELD(state.flags),
        FIELD(user),
        FIELD(account),
        FIELD(qos),
        FIELD(name),
        FIELD(reservation),
        FIELD(licenses),
        FIELD(features),
        FIELD(partition),
        FIELD(reason),
        FIELD(nodes),
        FIELD(alloc_node),
        FIELD(tres),
        FIELD(cpus),
        FIELD(node_count),
        FIELD(memory_bytes),
        FIELD(submit_time),
        FIELD(eligible_time),
        FIELD(start_time),
        FIELD(end_time),
        FIELD(time_limit_minutes),
    };

    for (size_t i = 0; i < COUNT(fields); i++) {
        struct changes *changes = changes_new();
        struct section *before = section_of(1, "a"), *after = section_of(1, "a");

        before->jobs.job[0].nodes = put(before, "n1");
        after->jobs.job[0].nodes = put(after, "n1");
        put(before, "n2");
        put(after, "n2");
        before->jobs.job[0].state.base = after->jobs.job[0].state.base = JOB_COMPLETED;
        ((char *)&after->jobs.job[0])[fields[i].offset] ^= 1; /* also of a symbol: another one */
        assert_int_equal(find(changes, before, true), 1);
        if (find(changes, after, true) != 1)
            fail_msg("a change of %s was missed", fields[i].name);
        changes_free(changes);
    }
}

TEST(what_slurm_only_expects_is_neither_a_change_nor_recorded)
{
    struct changes *changes = changes_new();
    struct section *later = section_of(2, "a");
    struct seen_job seen;

    assert_int_equal(find(changes, section_of(2, "a"), true), 2);
    later->jobs.job[0].start_time = LOOK + 500;
    later->jobs.job[0].end_time = LOOK + 600;
    later->jobs.job[0].priority++;
    seen_job(later, &later->jobs.job[0], LOOK, &seen);
    assert_int_equal(seen.record.start_time, 0);
    assert_int_equal(seen.record.end_time, 0);
    assert_int_equal(seen.record.priority, 4001);
    assert_int_equal(find(changes, later, true), 0);
    changes_free(changes);
}

TEST(a_job_that_runs_has_a_start_and_one_that_has_ended_an_end)
{
    static const struct {
        struct job_state state;
        bool has_nodes, has_start, has_end;
    } rows[] = {
        { { JOB_PENDING, 0 }, false, false, false },
        { { JOB_PENDING, JOB_REQUEUED }, true, false, false },
        { { JOB_RUNNING, 0 }, true, true, false },
        { { JOB_RUNNING, JOB_CONFIGURING }, true, false, false },
        { { JOB_SUSPENDED, 0 }, true, true, false },
        { { JOB_BASE_UNKNOWN, JOB_COMPLETING }, true, true, false },
        { { JOB_BASE_UNKNOWN, JOB_REQUEUE_HOLD }, false, false, false },
        { { JOB_COMPLETED, JOB_COMPLETING }, true, true, true },
        { { JOB_OUT_OF_MEMORY, 0 }, true, true, true },
        { { JOB_CANCELLED, 0 }, false, false, true },
    };
    struct section *section = section_of(1, "a");
    struct job *job = &section->jobs.job[0];
    symbol nodes = put(section, "n[1-2]");

    job->start_time = SUBMIT + 10;
    job->end_time = SUBMIT + 20;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct seen_job seen;

        job->state = rows[i].state;
        job->nodes = rows[i].has_nodes ? nodes : 0;
        seen_job(section, job, LOOK, &seen);
        assert_int_equal(seen.record.start_time, rows[i].has_start ? SUBMIT + 10 : 0);
        assert_int_equal(seen.record.end_time, rows[i].has_end ? SUBMIT + 20 : 0);
    }
    section_unref(section);
}

TEST(a_job_of_a_section_is_a_record_with_its_texts)
{
    struct section *section = section_of(1, "a");
    struct job *job = &section->jobs.job[0];
    struct seen_job seen;

    job->tasks = 40;
    job->array_job_id = 1000;
    job->features = put(section, "a100&nvlink");
    job->alloc_node = put(section, "login1");
    seen_job(section, job, LOOK, &seen);
    assert_int_equal(seen.record.origin, RECORD_SEEN);
    assert_int_equal(seen.record.as_of, LOOK);
    assert_int_equal(seen.record.id, 1000);
    assert_int_equal(seen.record.submit_time, SUBMIT);
    assert_int_equal(seen.record.tasks, 40);
    assert_str(seen.record.user, "bob");
    assert_str(seen.record.account, "physics");
    assert_str(seen.record.partition, "long");
    assert_str(seen.record.reason, "Priority");
    assert_str(seen.record.nodes, "");
    assert_str(seen.record.tres, "cpu=4,mem=1G,node=1,billing=4");
    assert_int_equal(seen.record.exit_code, MODEL_UNKNOWN_U32);
    assert_true(isnan(seen.record.cpu_seconds));
    assert_int_equal(seen.record.n_extra, 2);
    assert_str(seen.record.extra[0].name, "Constraints");
    assert_str(seen.record.extra[0].value, "a100&nvlink");
    assert_str(seen.record.extra[1].name, "AllocNode");
    assert_str(seen.record.extra[1].value, "login1");
    section_unref(section);
}

TEST(a_node_is_a_record_with_its_partitions_and_its_whole_state)
{
    struct section *section = nodes_from(
        "n1 idle+drain cpus=8 cpu_load=0.5 reason=fan reason_time=-1000s partitions=long,gpu\n"
        "n2 unknown partitions=gpu\n");
    struct arena arena = { 0 };
    struct node_record *records;

    records = seen_nodes(section, &arena);
    assert_str(records[0].name, "n1");
    assert_str(records[0].state, "idle+drain");
    assert_str(records[0].partitions, "long,gpu");
    assert_str(records[0].reason, "fan");
    assert_int_equal(records[0].reason_time, SUBMIT);
    assert_int_equal(records[0].cpus, 8);
    assert_true(records[0].cpu_load == 0.5);
    assert_str(records[1].partitions, "gpu");
    assert_str(records[1].state, "unknown");
    assert_true(isnan(records[1].cpu_load));
    arena_clear(&arena);
    section_unref(section);
}
