/* SPDX-License-Identifier: GPL-2.0-or-later */
/* On directories that look like /proc, and on the real one. */
#include "test.h"

#include "files.h"
#include "source/process_tree.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { US = 100, TICK_NS = 10000000, MOST = 4000 };
#define PAGE (uint64_t) sysconf(_SC_PAGESIZE)

static struct process_use left; /* by those that the ancestor has waited for */

static void tell_left(struct process_use *ret)
{
    *ret = left;
}

static struct process_tree begin(void)
{
    left = (struct process_use){ 0 };
    return (struct process_tree){
        .proc = test_dir(), .ancestor = US, .most = MOST, .reaped = tell_left
    };
}

struct fake {
    const char *name; /* NULL: "app" */
    char state;       /* 0: S */
    unsigned ticks, reaped_ticks, threads, pages, start;
    uint64_t read_bytes, write_bytes;
    bool without_io;
};

static void put_file(int pid, const char *name, const char *text)
{
    write_file(test_path("%d/%s", pid, name), text);
}

static void put(int pid, int parent, struct fake fake)
{
    char text[600];

    snprintf(text, sizeof(text),
             "%d (%s) %c %d 100 100 34816 -1 4194304 1 2 3 4 %u 0 %u 0 20 0 %u 0 %u 1000000 %u "
             "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
             pid, fake.name ? fake.name : "app", fake.state ? fake.state : 'S', parent, fake.ticks,
             fake.reaped_ticks, fake.threads ? fake.threads : 1, fake.start ? fake.start : 7,
             fake.pages);
    put_file(pid, "stat", text);
    if (fake.without_io)
        return;
    snprintf(text, sizeof(text),
             "rchar: 999999\nwchar: 888888\nsyscr: 7\nsyscw: 6\nread_bytes: %llu\n"
             "write_bytes: %llu\ncancelled_write_bytes: 5\n",
             (unsigned long long)fake.read_bytes, (unsigned long long)fake.write_bytes);
    put_file(pid, "io", text);
}

/* What a kernel with CONFIG_PROC_CHILDREN has; without it, /proc is searched. */
static void put_children(int pid, int thread, const char *children)
{
    char path[100];

    snprintf(path, sizeof(path), "task/%d/children", thread);
    put_file(pid, path, children);
}

static void take_away(int pid)
{
    remove_all(test_path("%d", pid));
}

static struct process_tree_sample look(struct process_tree *tree)
{
    struct process_tree_sample sample;
    struct err err;

    if (process_tree_read(tree, &sample, &err) < 0)
        fail_msg("%s", err.text);
    return sample;
}

TEST(all_descendants_are_added_up_and_nobody_else)
{
    struct process_tree tree = begin();
    struct process_tree_sample sample;

    put(1, 0, (struct fake){ .ticks = 1000, .pages = 1000 });
    put(US, 1, (struct fake){ .ticks = 1000, .pages = 1000, .read_bytes = 1 << 20 });
    put(300, US, (struct fake){ .ticks = 5, .threads = 3, .pages = 10, .read_bytes = 1 });
    put(250, 300, (struct fake){ .ticks = 7, .reaped_ticks = 2, .pages = 20, .write_bytes = 4 });
    put(9, 250, (struct fake){ .ticks = 11, .pages = 30, .read_bytes = 2 });
    put(400, US, (struct fake){ .ticks = 13, .pages = 40 }); /* an orphan that became ours */
    put(401, 1, (struct fake){ .ticks = 1000, .pages = 1000 });
    put(402, 401, (struct fake){ .ticks = 1000, .pages = 1000 });
    sample = look(&tree);
    assert_int_equal(sample.processes, 4);
    assert_int_equal(sample.threads, 6);
    assert_int_equal(sample.resident_bytes, 100 * PAGE);
    assert_int_equal(sample.used.cpu_ns, (5 + 9 + 11 + 13) * TICK_NS);
    assert_true(sample.has_io);
    assert_int_equal(sample.used.read_bytes, 3);
    assert_int_equal(sample.used.write_bytes, 4);
}

TEST(the_children_of_all_threads_are_found)
{
    struct process_tree tree = begin();
    struct process_tree_sample sample;

    put_children(US, US, "300 ");
    put_children(US, 101, "400 299 "); /* 299 has just ended */
    put_children(300, 300, "");
    put_children(300, 301, "250 ");
    put_children(300, 302, "9 ");
    put_children(250, 250, "");
    put(300, US, (struct fake){ .ticks = 5, .read_bytes = 1 });
    put(250, 300, (struct fake){ .ticks = 7 });
    put(9, 300, (struct fake){ .ticks = 11 });
    put(400, US, (struct fake){ .ticks = 13 });
    put(500, US, (struct fake){ .ticks = 1000 }); /* in no list: nobody reads of it */
    sample = look(&tree);
    assert_int_equal(sample.processes, 4);
    assert_int_equal(sample.used.cpu_ns, (5 + 7 + 11 + 13) * TICK_NS);
    assert_int_equal(sample.used.read_bytes, 1);
}

TEST(a_list_of_children_may_be_long_or_rubbish)
{
    static const char *const rubbish[] = {
        "", " ", "   201   ", "201", "201 -1 0 99999999999 x 2x1 ", "201\n"
    };
    struct process_tree tree = begin();
    struct process_tree_sample sample;
    struct err err;
    char *list = NULL;
    size_t size;
    FILE *file = open_memstream(&list, &size);

    for (int i = 0; i < 3000; i++) {
        fprintf(file, "%d ", 100000 + i);
        if (i % 10 == 0)
            put(100000 + i, US, (struct fake){ .ticks = 1 });
    }
    fclose(file);
    put_children(US, US, list);
    free(list);
    assert_int_equal(look(&tree).processes, 300);
    put(201, US, (struct fake){ 0 });
    for (size_t i = 0; i < COUNT(rubbish); i++) {
        put_children(US, US, rubbish[i]);
        assert_in_range(look(&tree).processes, 0, 1);
    }
    put_children(US, US, "201 ");
    put_children(201, 201, "201 "); /* a circle */
    assert_int_equal(process_tree_read(&tree, &sample, &err), -EFBIG);
}

TEST(a_recorded_line_is_read)
{
    struct process_tree tree = begin();
    struct process_tree_sample sample;

    put_file(15522, "stat", /* of Linux 6.18 */
             "15522 (python3) R 100 15520 7042 0 -1 4194304 1387 63 2 0 36 0 9 0 20 0 9 0 1223828 "
             "620118016 2630 18446744073709551615 4321280 7148169 140723782267360 0 0 0 0 16781312 "
             "2 0 0 0 17 1 0 0 0 0 0 9723336 11027064 76500992 140723782269564 140723782269583 "
             "140723782269583 140723782270951 0\n");
    put_file(15522, "io",
             "rchar: 741806\nwchar: 309\nsyscr: 396\nsyscw: 1\nread_bytes: 28672\n"
             "write_bytes: 0\ncancelled_write_bytes: 0\n");
    sample = look(&tree);
    assert_int_equal(sample.processes, 1);
    assert_int_equal(sample.threads, 9);
    assert_int_equal(sample.used.cpu_ns, (36 + 9) * TICK_NS);
    assert_int_equal(sample.resident_bytes, 2630 * PAGE);
    assert_true(sample.has_io);
    assert_int_equal(sample.used.read_bytes, 28672);
    assert_int_equal(sample.used.write_bytes, 0);
}

TEST(a_program_may_be_called_anything)
{
    static const char *const names[] = {
        "a b",         "x) R 1 (y", ") S 1 1 1 1 1 1 1 1 1 1 1", "", "((((", "a\nread_bytes:9",
        "\xff\x1b[2J)"
    };
    struct process_tree tree = begin();
    struct process_tree_sample sample;

    for (size_t i = 0; i < COUNT(names); i++)
        put(200 + (int)i, US, (struct fake){ .name = names[i], .ticks = 1, .threads = 2 });
    sample = look(&tree);
    assert_int_equal(sample.processes, COUNT(names));
    assert_int_equal(sample.threads, 2 * COUNT(names));
    assert_int_equal(sample.used.cpu_ns, COUNT(names) * TICK_NS);
}

TEST(who_vanishes_or_cannot_be_read_is_left_out)
{
    static const char *const stats[] = { "",
                                         "\n",
                                         "205",
                                         "205 (x",
                                         "205 (x)",
                                         "205 (x) ",
                                         "205 (x) S",
                                         "205 (x) S 100",
                                         "205 (x) S 100 1 x 1 1",
                                         "205 (x) SS 100 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1" };
    struct process_tree tree = begin();

    put(204, US, (struct fake){ .ticks = 3 });
    make_dir("206"); /* ended after it was listed */
    put_file(205, "io", "read_bytes: 5\nwrite_bytes: 5\n");
    for (size_t i = 0; i < COUNT(stats); i++) {
        put_file(205, "stat", stats[i]);
        assert_int_equal(look(&tree).processes, 1);
    }
    assert_int_equal(look(&tree).used.cpu_ns, 3 * TICK_NS);
    assert_int_equal(look(&tree).used.read_bytes, 0);
}

TEST(what_the_ended_ones_used_stays_and_counts_once)
{
    struct process_tree tree = begin();
    struct process_tree_sample sample;

    put(200, US, (struct fake){ .ticks = 10, .read_bytes = 100, .write_bytes = 10 });
    put(201, 200, (struct fake){ .ticks = 20, .read_bytes = 200, .write_bytes = 20 });
    assert_int_equal(look(&tree).used.cpu_ns, 30 * TICK_NS);

    /* 201 used 5 more and ended, and so did one that was never seen; 200 has waited for both. */
    take_away(201);
    put(200, US,
        (struct fake){ .ticks = 11, .reaped_ticks = 29, .read_bytes = 340, .write_bytes = 30 });
    sample = look(&tree);
    assert_int_equal(sample.used.cpu_ns, 40 * TICK_NS);
    assert_int_equal(sample.used.read_bytes, 340);
    assert_int_equal(sample.used.write_bytes, 30);

    /* Now 200 has ended, and we have waited for it. */
    take_away(200);
    left = (struct process_use){ 41 * (uint64_t)TICK_NS, 350, 31 };
    sample = look(&tree);
    assert_int_equal(sample.processes, 0);
    assert_int_equal(sample.threads, 0);
    assert_int_equal(sample.resident_bytes, 0);
    assert_int_equal(sample.used.cpu_ns, 41 * TICK_NS);
    assert_true(sample.has_io);
    assert_int_equal(sample.used.read_bytes, 350);
    assert_int_equal(sample.used.write_bytes, 31);
}

TEST(who_ends_unawaited_makes_no_sum_fall)
{
    struct process_tree tree = begin();
    struct process_tree_sample sample;

    put(200, US, (struct fake){ .ticks = 10, .read_bytes = 100 });
    put(201, 200, (struct fake){ .ticks = 20, .read_bytes = 200 });
    look(&tree);
    take_away(201);
    sample = look(&tree);
    assert_int_equal(sample.used.cpu_ns, 30 * TICK_NS);
    assert_int_equal(sample.used.read_bytes, 300);
    put(200, US, (struct fake){ .ticks = 14, .read_bytes = 101 });
    sample = look(&tree);
    assert_int_equal(sample.used.cpu_ns, 34 * TICK_NS);
    assert_int_equal(sample.used.read_bytes, 301);
}

/* As if 201 had ended just before its line was to be read: it is missing, and its parent's line
 * was read too early. The second look at the ancestor finds it. */
static int n_looks;

static void tell_left_late(struct process_use *ret)
{
    *ret = (struct process_use){ .cpu_ns = n_looks++ < 2 ? 0 : 21 * TICK_NS };
}

TEST(who_ends_during_the_look_is_looked_for_again)
{
    struct process_tree tree = begin();

    tree.reaped = tell_left_late;
    n_looks = 0;
    put(201, US, (struct fake){ .ticks = 20 });
    assert_int_equal(look(&tree).used.cpu_ns, 20 * TICK_NS);
    take_away(201);
    assert_int_equal(look(&tree).used.cpu_ns, 21 * TICK_NS);
    assert_int_equal(n_looks, 3);
}

TEST(bytes_that_are_not_told_are_unknown_and_not_zero)
{
    struct process_tree tree = begin();
    struct process_tree_sample sample;

    put(200, US, (struct fake){ .without_io = true, .threads = 2 });
    put(201, 200, (struct fake){ .without_io = true });
    put_file(201, "io", "rchar: 1\nread_bytes: many\nwrite_bytes: 3\n");
    sample = look(&tree);
    assert_int_equal(sample.threads, 3);
    assert_false(sample.has_io);
}

TEST(a_zombie_is_no_thread_but_its_time_counts)
{
    struct process_tree tree = begin();
    struct process_tree_sample sample;

    put(200, US, (struct fake){ .state = 'Z', .ticks = 9 });
    put(201, US, (struct fake){ .state = 'Z', .threads = 4 }); /* its main thread alone has ended */
    sample = look(&tree);
    assert_int_equal(sample.threads, 3);
    assert_int_equal(sample.used.cpu_ns, 9 * TICK_NS);
}

TEST(a_deep_tree_and_a_circle_have_an_end)
{
    struct process_tree tree = begin();

    put(US, 1000, (struct fake){ 0 }); /* our parent is our grandchild: a number that was reused */
    put(1000, US, (struct fake){ .ticks = 1 });
    for (int i = 0; i < 500; i++)
        put(1001 + i, 1000 + i, (struct fake){ .ticks = 1 });
    put(5000, 5001, (struct fake){ .ticks = 1 });
    put(5001, 5000, (struct fake){ .ticks = 1 });
    put(5002, 5002, (struct fake){ .ticks = 1 });
    assert_int_equal(look(&tree).processes, 501);
    assert_int_equal(look(&tree).used.cpu_ns, 501 * (uint64_t)TICK_NS);
}

TEST(more_processes_than_the_ceiling_are_refused)
{
    struct process_tree tree = begin();
    struct process_tree_sample sample;
    struct err err;

    for (int i = 1; i <= MOST + 1; i++)
        assert_int_equal(mkdir(test_path("%d", i), 0755), 0);
    assert_int_equal(process_tree_read(&tree, &sample, &err), -EFBIG);
    assert_contains(err.text, "more than 4000 ");
    take_away(MOST + 1);
    assert_int_equal(process_tree_read(&tree, &sample, &err), 0);
}

TEST(a_missing_proc_is_an_error)
{
    struct process_tree tree = begin();
    struct process_tree_sample sample;
    struct err err;

    tree.proc = "/nonexistent";
    assert_int_equal(process_tree_read(&tree, &sample, &err), -ENOENT);
    assert_contains(err.text, "/nonexistent");
}

/* Waits for the other side to close the pipe. */
static void wait_for_end(const int *ends)
{
    char byte;

    close(ends[1]);
    while (read(ends[0], &byte, 1) > 0)
        continue;
}

enum { BURNED_NS = 200 * NS_PER_MS };

static void burn_and_write(const char *path)
{
    struct timespec used = { 0 };
    char bytes[4096] = { 0 };
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    for (int i = 0; i < 256; i++)
        if (write(fd, bytes, sizeof(bytes)) < 0)
            _exit(1);
    while (used.tv_nsec < BURNED_NS && used.tv_sec == 0)
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    _exit(0);
}

/* A child of ours whose own child has ended and was waited for. */
static pid_t start_family(const int *end, const int *ready)
{
    const char *written = test_path("written");
    pid_t child = fork();

    if (child == 0) {
        pid_t grandchild = fork();

        if (grandchild == 0)
            burn_and_write(written);
        waitpid(grandchild, NULL, 0);
        close(ready[0]);
        close(ready[1]);
        wait_for_end(end);
        _exit(0);
    }
    return child;
}

TEST(the_kernel_passes_on_what_the_ended_ones_used)
{
    struct process_tree tree = { .proc = "/proc", .ancestor = getpid(), .reaped = process_reaped };
    const uint64_t rounding_ns = 4 * (uint64_t)TICK_NS; /* of two times of two processes */
    struct process_tree_sample before, during, after;
    struct rusage usage;
    uint64_t family_ns;
    int end[2], ready[2];
    pid_t child;

    assert_int_equal(pipe2(end, O_CLOEXEC), 0);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    before = look(&tree);
    child = start_family(end, ready);
    wait_for_end(ready);
    during = look(&tree);
    assert_int_equal(during.processes, 1);
    assert_true(during.resident_bytes > 0);
    assert_true(during.has_io);
    close(end[0]);
    close(end[1]);
    assert_int_equal(wait4(child, NULL, 0, &usage), child);
    after = look(&tree);
    close(ready[0]);
    assert_int_equal(after.processes, 0);
    /* Once, and not twice: as much as the kernel says that the child and its own child used. */
    family_ns = (uint64_t)((usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_SEC +
                           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000);
    assert_true(family_ns >= BURNED_NS);
    assert_in_range(during.used.cpu_ns - before.used.cpu_ns, BURNED_NS - rounding_ns,
                    family_ns + rounding_ns);
    assert_in_range(after.used.cpu_ns - before.used.cpu_ns, family_ns - rounding_ns,
                    family_ns + rounding_ns);
    /* Nothing if /tmp is in memory. */
    assert_true(during.used.write_bytes - before.used.write_bytes < 2 << 20);
    assert_true(after.used.write_bytes - during.used.write_bytes < 1 << 20);
}
