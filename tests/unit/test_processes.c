/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of agent/processes: the table of processes. */
#include "agent/processes.h"
#include "test.h"

TEST(what_was_added_is_found_and_what_was_removed_is_not)
{
    struct processes *processes = processes_new(100000);

    for (pid_t pid = 1; pid <= 5000; pid++)
        processes_add(processes, pid)->cpu_ns = (uint64_t)pid;
    for (pid_t pid = 2; pid <= 5000; pid += 2)
        processes_remove(processes, processes_find(processes, pid));
    assert_int_equal(processes_count(processes), 2500);
    for (pid_t pid = 1; pid <= 5000; pid++) {
        const struct process *process = processes_find(processes, pid);

        assert_int_equal(process != NULL, pid % 2);
        if (process)
            assert_int_equal(process->cpu_ns, pid);
    }
    processes_free(processes);
}

TEST(another_process_of_the_same_number_begins_anew)
{
    struct processes *processes = processes_new(10);

    processes_add(processes, 7)->cpu_ns = 5;
    assert_int_equal(processes_add(processes, 7)->cpu_ns, 0);
    assert_int_equal(processes_count(processes), 1);
    processes_free(processes);
}

TEST(past_the_ceiling_none_is_added)
{
    struct processes *processes = processes_new(3);

    for (pid_t pid = 1; pid <= 3; pid++)
        assert_non_null(processes_add(processes, pid));
    assert_null(processes_add(processes, 4));
    processes_remove(processes, processes_find(processes, 2));
    assert_non_null(processes_add(processes, 4));
    processes_free(processes);
}

static void remove_odd(void *ctx, struct process *process)
{
    if (process->pid % 2)
        processes_remove(ctx, process);
}

TEST(one_can_be_removed_while_all_are_visited_and_memory_is_given_back)
{
    struct processes *processes = processes_new(100000);

    for (pid_t pid = 1; pid <= 4000; pid++)
        processes_add(processes, pid)->start_ticks = (uint64_t)pid;
    processes_each(processes, remove_odd, processes);
    assert_int_equal(processes_count(processes), 2000);
    for (pid_t pid = 100; pid <= 4000; pid += 2)
        processes_remove(processes, processes_find(processes, pid));
    processes_trim(processes);
    assert_int_equal(processes_count(processes), 49);
    for (pid_t pid = 2; pid < 100; pid += 2)
        assert_int_equal(processes_find(processes, pid)->start_ticks, pid);
    processes_free(processes);
}
