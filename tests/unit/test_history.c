/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is remembered from one look to the next: starts of jobs, counters of the scheduler, names.
 */
#include "sections.h"

#include "snapshot/bookings.h"
#include "snapshot/counters.h"
#include "snapshot/inventory.h"
#include "snapshot/starts.h"

static struct section *look(struct starts *starts, const char *jobs)
{
    struct section *section = jobs_from("%s", jobs);

    starts_note(starts, section);
    return section;
}

/* A job that runs; it could have run when it was submitted. */
#define STARTED(submit, start) "RUNNING submit=" submit " eligible=" submit " start=" start "\n"

static uint64_t count_waits(const struct section *section)
{
    uint64_t count = 0;

    for (size_t i = 0; i < section->jobs.n_waits; i++)
        for (size_t k = 0; k <= WAIT_BOUNDS; k++)
            count += section->jobs.wait[i].buckets[k];
    return count;
}

static uint64_t look_and_count(struct starts *starts, const char *jobs)
{
    struct section *section = look(starts, jobs);
    uint64_t count = count_waits(section);

    section_unref(section);
    return count;
}

TEST(what_ran_before_the_first_look_is_not_counted)
{
    struct starts *starts = starts_new();

    assert_int_equal(look_and_count(starts, STARTED("-50s", "-40s")), 0);
    assert_int_equal(look_and_count(starts, STARTED("-50s", "-40s")), 0);
    starts_free(starts);
}

TEST(a_start_is_counted_once_in_its_bucket)
{
    static const char jobs[] = STARTED("-50s", "-40s") STARTED("-5000s", "-10s");
    struct starts *starts = starts_new();
    struct section *section;

    look_and_count(starts, STARTED("-50s", "-40s"));
    look_and_count(starts, jobs);
    section = look(starts, jobs);
    assert_int_equal(section->jobs.n_waits, 1);
    assert_str(section_text(section, section->jobs.wait[0].partition), "cpu");
    assert_int_equal(count_waits(section), 1);
    for (size_t k = 0; k <= WAIT_BOUNDS; k++)
        assert_int_equal(section->jobs.wait[0].buckets[k],
                         k < WAIT_BOUNDS && wait_bounds[k] == 14400 ? 1 : 0);
    assert_true(section->jobs.wait[0].sum == 4990);
    section_unref(section);
    starts_free(starts);
}

TEST(a_wait_is_counted_from_when_the_job_could_have_run)
{
    struct starts *starts = starts_new();
    struct section *section;

    look_and_count(starts, "");
    section = look(starts, "RUNNING submit=-5000s eligible=-20s start=+0s\n");
    assert_true(section->jobs.wait[0].sum == 20);
    section_unref(section);
    starts_free(starts);
}

TEST(a_start_that_is_told_of_late_is_still_counted)
{
    static const char first[] = STARTED("-50s", "+0s");
    static const char both[] = STARTED("-50s", "+0s") STARTED("-200s", "-100s");
    struct starts *starts = starts_new();

    look_and_count(starts, "");
    assert_int_equal(look_and_count(starts, first), 1);
    assert_int_equal(look_and_count(starts, both), 2);
    assert_int_equal(look_and_count(starts, both), 2);
    starts_free(starts);
}

TEST(a_requeued_job_starts_again)
{
    struct starts *starts = starts_new();

    look_and_count(starts, "");
    assert_int_equal(look_and_count(starts, STARTED("-50s", "-30s")), 1);
    assert_int_equal(look_and_count(starts, STARTED("-50s", "-10s")), 2);
    starts_free(starts);
}

TEST(what_waits_or_never_started_is_not_counted)
{
    struct starts *starts = starts_new();

    look_and_count(starts, "");
    /* one has a start that Slurm expects; the other was canceled while pending, it has no nodes */
    assert_int_equal(look_and_count(starts, "* submit=-50s eligible=-50s start=+0s\n"
                                            "PENDING\n"
                                            "CANCELLED\n"),
                     0);
    starts_free(starts);
}

#define BOOTING " submit=-100s eligible=-100s start=-60s\n"

/* On a cluster that saves power: its start time is set again when its nodes are up. */
TEST(a_job_whose_nodes_boot_has_not_started)
{
    struct starts *starts = starts_new();

    look_and_count(starts, "");
    assert_int_equal(look_and_count(starts, "RUNNING+CONFIGURING" BOOTING), 0);
    assert_int_equal(look_and_count(starts, "CONFIGURING" BOOTING), 0);
    assert_int_equal(look_and_count(starts, STARTED("-100s", "+0s")), 1);
    starts_free(starts);
}

TEST(a_start_in_a_far_future_hides_no_other)
{
    static const char two[] = STARTED("+0s", "+1000000s") STARTED("-50s", "+0s");
    static const char three[] =
        STARTED("+0s", "+1000000s") STARTED("-50s", "+0s") STARTED("-50s", "+1s");
    struct starts *starts = starts_new();

    look_and_count(starts, "");
    look_and_count(starts, two);
    assert_int_equal(look_and_count(starts, three), 3);
    starts_free(starts);
}

static const struct diag *note(struct counters *counters, const struct diag *diag,
                               struct section **ret)
{
    struct section *section = section_new(KIND_DIAG);

    section->diag = *diag;
    for (size_t i = 0; i < diag->n_rpc_by_user; i++)
        section->diag.rpc_by_user[i].name =
            symbols_put(&section->symbols, diag->rpc_by_user[i].id ? STR("nobody") : STR("root"));
    counters_note(counters, section);
    *ret = section;
    return section->diag.running;
}

TEST(a_counter_goes_on_over_midnight)
{
    static const struct {
        int64_t reset_time;
        uint64_t told, expected;
    } looks[] = {
        { 1000, 40, 0 },    /* what was done before sonde came is not its to count */
        { 1000, 50, 10 },   /* ten more */
        { 2000, 3, 13 },    /* after midnight */
        { 2000, 4, 14 },    /**/
        { 3000, 400, 414 }, /* a busy night: more than before, all of it new */
        { 3000, 0, 414 },   /* reset without a word */
        { 3000, 5, 419 },
    };
    struct counters *counters = counters_new();

    for (size_t i = 0; i < COUNT(looks); i++) {
        struct diag diag = { .reset_time = looks[i].reset_time, .jobs_started = looks[i].told };
        struct section *section;

        assert_int_equal(note(counters, &diag, &section)->jobs_started, looks[i].expected);
        assert_int_equal(section->diag.jobs_started, looks[i].told);
        section_unref(section);
    }
    counters_free(counters);
}

TEST(what_midnight_does_not_reset_is_not_counted_twice)
{
    struct counters *counters = counters_new();
    struct diag diag = { .reset_time = 1000, .backfilled_jobs = 70 };
    struct section *section;

    note(counters, &diag, &section);
    section_unref(section);
    diag.reset_time = 2000;
    diag.backfilled_jobs = 75;
    assert_int_equal(note(counters, &diag, &section)->backfilled_jobs, 75);
    section_unref(section);
    counters_free(counters);
}

TEST(what_is_not_told_for_once_is_not_lost)
{
    struct counters *counters = counters_new();
    struct diag diag = { .reset_time = 1000, .jobs_failed = MODEL_UNKNOWN_U64 };
    struct section *section;

    assert_true(note(counters, &diag, &section)->jobs_failed == MODEL_UNKNOWN_U64);
    section_unref(section);
    for (diag.jobs_failed = 3; diag.jobs_failed < 11; diag.jobs_failed += 7) {
        note(counters, &diag, &section);
        section_unref(section);
    }
    diag.jobs_failed = MODEL_UNKNOWN_U64;
    assert_int_equal(note(counters, &diag, &section)->jobs_failed, 7);
    section_unref(section);
    counters_free(counters);
}

TEST(rpcs_go_on_over_midnight_and_who_is_gone_keeps_his_count)
{
    struct counters *counters = counters_new();
    struct rpc rpcs[] = { { .id = 0, .count = 10, .total_usec = 100, .dropped = MODEL_UNKNOWN_U64 },
                          { .id = 7, .count = 1, .total_usec = 5, .dropped = MODEL_UNKNOWN_U64 },
                          { .id = 8, .count = 2, .total_usec = 6, .dropped = MODEL_UNKNOWN_U64 } };
    struct diag diag = { .reset_time = 1000, .rpc_by_user = rpcs, .n_rpc_by_user = 3 };
    const struct diag *running;
    struct section *section;

    note(counters, &diag, &section);
    section_unref(section);
    diag.reset_time = 2000; /* midnight resets the jobs, not the RPCs */
    rpcs[0].count = 12;
    running = note(counters, &diag, &section);
    assert_int_equal(running->rpc_by_user[0].count, 12);
    assert_int_equal(running->rpc_by_user[1].count, 1);
    section_unref(section);
    diag.n_rpc_by_user = 1; /* slurmctld has started again */
    rpcs[0].count = 4;
    running = note(counters, &diag, &section);
    assert_int_equal(running->n_rpc_by_user, 3);
    assert_int_equal(running->rpc_by_user[0].count, 16);
    assert_true(running->rpc_by_user[0].dropped == MODEL_UNKNOWN_U64);
    assert_str(section_text(section, running->rpc_by_user[1].name), "nobody");
    assert_int_equal(running->rpc_by_user[1].count, 1);
    assert_int_equal(running->rpc_by_user[2].count, 2);
    section_unref(section);
    diag.n_rpc_by_user = 3; /* both nobodies are back, and have begun anew */
    rpcs[1].count = 0;
    rpcs[2].total_usec = 5;
    running = note(counters, &diag, &section);
    assert_int_equal(running->rpc_by_user[1].count, 1);
    assert_int_equal(running->rpc_by_user[2].total_usec, 11);
    section_unref(section);
    counters_free(counters);
}

static void note_and_free(struct inventory *inventory, struct section *section)
{
    inventory_note(inventory, section);
    section_unref(section);
}

TEST(partitions_are_known_from_the_nodes_and_forgotten_with_them)
{
    struct inventory *inventory = inventory_new();
    struct section *jobs = jobs_from("PENDING qos=\n");

    note_and_free(inventory, nodes_from("partition cpu\npartition gpu\n"));
    inventory_note(inventory, jobs);
    assert_int_equal(jobs->jobs.n_known_partitions, 2);
    assert_str(section_text(jobs, jobs->jobs.known_partition[1]), "gpu");
    assert_int_equal(jobs->jobs.n_known_qos, 0);
    section_unref(jobs);
    note_and_free(inventory, nodes_from("partition cpu\n"));
    jobs = jobs_from("PENDING qos=\n");
    inventory_note(inventory, jobs);
    assert_int_equal(jobs->jobs.n_known_partitions, 1);
    section_unref(jobs);
    inventory_free(inventory);
}

TEST(qos_are_known_from_the_jobs_until_slurm_lists_them)
{
    struct inventory *inventory = inventory_new();
    struct section *jobs = jobs_from("PENDING qos=normal\n");

    note_and_free(inventory, jobs_from("PENDING qos=long\n"));
    inventory_note(inventory, jobs);
    assert_int_equal(jobs->jobs.n_known_qos, 2);
    section_unref(jobs);
    note_and_free(inventory, associations_from("qos high\n"));
    jobs = jobs_from("PENDING qos=normal\n");
    inventory_note(inventory, jobs);
    assert_int_equal(jobs->jobs.n_known_qos, 1);
    assert_str(section_text(jobs, jobs->jobs.known_qos[0]), "high");
    section_unref(jobs);
    inventory_free(inventory);
}

TEST(a_known_partition_has_a_histogram_before_its_first_start)
{
    struct inventory *inventory = inventory_new();
    struct starts *starts = starts_new();
    struct section *jobs = jobs_from("PENDING qos=\n");

    note_and_free(inventory, nodes_from("partition idle\n"));
    inventory_note(inventory, jobs);
    starts_note(starts, jobs);
    assert_int_equal(jobs->jobs.n_waits, 1);
    assert_str(section_text(jobs, jobs->jobs.wait[0].partition), "idle");
    assert_int_equal(count_waits(jobs), 0);
    section_unref(jobs);
    starts_free(starts);
    inventory_free(inventory);
}

static void assert_booked(const struct section *nodes, size_t i, const char *name)
{
    assert_str(section_text(nodes, nodes->nodes.node[i].reservation), name);
}

TEST(a_node_is_in_the_reservation_that_names_it_where_slurm_does_not_tell)
{
    struct bookings *bookings = bookings_new();
    struct section *active = reservations_from("maint nodes=n[1-4] active=yes\n");
    struct section *over = reservations_from("later nodes=n[1-4] active=no\n");
    struct section *first = nodes_from("n1 idle+reserved\n"
                                       "n2 idle+reserved\n"
                                       "n3 idle+reserved reservation=told\n"
                                       "n4 idle\n"),
                   *again;

    assert_false(bookings_note(bookings, first));
    assert_booked(first, 0, "");
    assert_true(bookings_note(bookings, active));
    assert_false(bookings_note(bookings, active));
    again = section_again(first);
    bookings_note(bookings, again);
    assert_booked(again, 0, "maint");
    assert_booked(again, 1, "maint");
    assert_booked(again, 2, "told");
    assert_booked(again, 3, "");
    assert_booked(first, 0, ""); /* somebody is reading it */
    section_unref(again);
    assert_true(bookings_note(bookings, over));
    again = section_again(first);
    bookings_note(bookings, again);
    assert_booked(again, 0, "");
    section_unref(again);
    section_unref(first);
    section_unref(active);
    section_unref(over);
    bookings_free(bookings);
}
