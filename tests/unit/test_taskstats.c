/* SPDX-License-Identifier: GPL-2.0-or-later */
/* On messages made as the kernel makes them, and on the kernel's own. */
#include "test.h"

#include "base/arena.h"
#include "source/taskstats.h"

#include <linux/genetlink.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define taskstats kernel_taskstats
#include <linux/taskstats.h>
#undef taskstats

enum { FAMILY = 21, SIZE_13 = 416, SIZE_16 = 560 };

/* Numbers that differ from each other in every field that is read. */
static struct kernel_taskstats example(unsigned short version)
{
    struct kernel_taskstats stats = {
        .version = version,
        .ac_comm = "a)\n name of 15+",
        .ac_uid = 1000,
        .ac_gid = 1001,
        .ac_pid = 701,
        .ac_ppid = 600,
        .ac_utime = 2000000,
        .ac_stime = 300000,
        .hiwater_rss = 512,
        .read_char = 1 << 10,
        .write_char = 2 << 10,
        .read_syscalls = 3 << 10,
        .write_syscalls = 4 << 10,
        .read_bytes = 5 << 10,
        .write_bytes = 6 << 10,
    };

    return stats;
}

struct message {
    _Alignas(8) char bytes[4096];
    size_t n;
};

static void put(struct message *message, const void *bytes, size_t n)
{
    memcpy(message->bytes + message->n, bytes, n);
    message->n += NLA_ALIGN(n);
}

static void put_attribute(struct message *message, unsigned short type, const void *bytes, size_t n)
{
    struct nlattr head = { .nla_type = type, .nla_len = (unsigned short)(NLA_HDRLEN + n) };

    put(message, &head, sizeof(head));
    put(message, bytes, n);
}

/* Of a thread (AGGR_PID) or of a process (AGGR_TGID). */
static void put_aggregate(struct message *message, unsigned short type, uint32_t id,
                          const void *stats, size_t size)
{
    struct message inside = { 0 };

    put_attribute(&inside,
                  type == TASKSTATS_TYPE_AGGR_PID ? TASKSTATS_TYPE_PID : TASKSTATS_TYPE_TGID, &id,
                  sizeof(id));
    put_attribute(&inside, TASKSTATS_TYPE_STATS, stats, size);
    put_attribute(message, type, inside.bytes, inside.n);
}

static struct message begin_message(void)
{
    struct message message = { 0 };
    struct nlmsghdr head = { .nlmsg_type = FAMILY };
    struct genlmsghdr command = { .cmd = TASKSTATS_CMD_NEW, .version = 1 };

    put(&message, &head, sizeof(head));
    put(&message, &command, sizeof(command));
    return message;
}

static void end_message(struct message *message)
{
    ((struct nlmsghdr *)message->bytes)->nlmsg_len = (unsigned)message->n;
}

struct records {
    struct exit_record last;
    size_t n;
};

static void keep(void *ctx, const struct exit_record *record)
{
    struct records *records = ctx;

    records->last = *record;
    records->n++;
}

static struct records parse(const struct message *message)
{
    struct records records = { 0 };

    taskstats_parse((struct str){ message->bytes, message->n }, FAMILY, keep, &records);
    return records;
}

static void assert_example(const struct exit_record *record)
{
    assert_int_equal(record->thread, 701);
    assert_int_equal(record->parent, 600);
    assert_int_equal(record->uid, 1000);
    assert_string_equal(record->comm, "a)\n name of 15+");
    assert_int_equal(record->cpu_ns, 2300 * NS_PER_MS);
    assert_int_equal(record->peak_resident_bytes, 512 << 10);
    assert_int_equal(record->io.read_chars, 1 << 10);
    assert_int_equal(record->io.write_chars, 2 << 10);
    assert_int_equal(record->io.reads, 3 << 10);
    assert_int_equal(record->io.writes, 4 << 10);
    assert_int_equal(record->io.read_bytes, 5 << 10);
    assert_int_equal(record->io.write_bytes, 6 << 10);
}

TEST(records_of_all_versions_are_read)
{
    static const struct {
        unsigned short version;
        size_t size;
        pid_t process;
    } versions[] = {
        { 8, 328, 0 },    { 9, 344, 0 },        { 10, 352, 0 },
        { 11, 368, 0 },   { 12, 400, 700 },     { 13, SIZE_13, 700 },
        { 14, 432, 700 }, { 16, SIZE_16, 700 }, { 99, 1000, 700 },
    };

    for (size_t i = 0; i < COUNT(versions); i++) {
        struct kernel_taskstats stats = example(versions[i].version);
        struct message message = begin_message();
        char bytes[1000] = { 0 };
        uint32_t process = 700;
        struct records records;

        memcpy(bytes, &stats, 368);
        memcpy(bytes + 368, &process, sizeof(process));
        put_aggregate(&message, TASKSTATS_TYPE_AGGR_PID, 701, bytes, versions[i].size);
        end_message(&message);
        records = parse(&message);
        assert_int_equal(records.n, 1);
        assert_example(&records.last);
        assert_int_equal(records.last.process, versions[i].process);
    }
}

/* 6.14 and 6.15 have the longest and shortest delay after each total. */
TEST(the_version_with_fields_in_between_is_read)
{
    struct kernel_taskstats stats = example(15);
    struct message message = begin_message();
    const char *from = (const char *)&stats;
    char bytes[SIZE_16] = { 0 };
    uint32_t process = 700;
    struct records records;

    memcpy(bytes, from, 80);
    memcpy(bytes + 80 + 48, from + 80, 312 - 80);
    memcpy(bytes + 368 + 96, &process, sizeof(process));
    put_aggregate(&message, TASKSTATS_TYPE_AGGR_PID, 701, bytes, sizeof(bytes));
    end_message(&message);
    records = parse(&message);
    assert_int_equal(records.n, 1);
    assert_example(&records.last);
    assert_int_equal(records.last.process, 700);
}

TEST(the_record_of_a_whole_process_does_not_count_again)
{
    struct kernel_taskstats stats = example(11);
    struct message message = begin_message();
    struct records records;

    put_aggregate(&message, TASKSTATS_TYPE_AGGR_PID, 701, &stats, 368);
    put_aggregate(&message, TASKSTATS_TYPE_AGGR_TGID, 700, &stats, 368);
    end_message(&message);
    records = parse(&message);
    assert_int_equal(records.n, 1);
    assert_example(&records.last);
    assert_int_equal(records.last.process, 700); /* which the structure does not tell */
}

TEST(a_message_that_is_cut_off_or_of_others_is_passed_over)
{
    struct kernel_taskstats stats = example(13);
    struct message message = begin_message();
    struct records records = { 0 };

    put_aggregate(&message, TASKSTATS_TYPE_AGGR_PID, 701, &stats, SIZE_13);
    end_message(&message);
    for (size_t n = 0; n < message.n; n++) {
        char *copy = heap_array(n, 1); /* so that the sanitizer sees who reads too far */

        memcpy(copy, message.bytes, n);
        taskstats_parse((struct str){ copy, n }, FAMILY, keep, &records);
        free(copy);
    }
    taskstats_parse((struct str){ message.bytes, message.n }, FAMILY + 1, keep, &records);
    assert_int_equal(records.n, 0);
    message = begin_message();
    put_aggregate(&message, TASKSTATS_TYPE_AGGR_PID, 701, &stats, 256);
    end_message(&message);
    assert_int_equal(parse(&message).n, 0);
    message = begin_message();
    put_aggregate(&message, TASKSTATS_TYPE_AGGR_PID, 0, &stats, SIZE_13);
    end_message(&message);
    assert_int_equal(parse(&message).n, 0);
}

static struct taskstats *open_taskstats(void)
{
    struct taskstats *taskstats;
    struct err err;

    need("taskstats");
    if (taskstats_open(&taskstats, &err) < 0)
        fail_msg("%s", err.text);
    return taskstats;
}

enum { PART = 5 << 20 };

static void *write_part(void *ctx)
{
    static char bytes[1 << 16];
    int fd = memfd_create("part", MFD_CLOEXEC);

    (void)ctx;
    for (size_t n = 0; n < PART; n += sizeof(bytes))
        if (write(fd, bytes, sizeof(bytes)) != sizeof(bytes))
            _exit(1);
    return NULL;
}

static pid_t start_writer(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        pthread_t threads[2];

        for (size_t i = 0; i < COUNT(threads); i++)
            pthread_create(&threads[i], NULL, write_part, NULL);
        for (size_t i = 0; i < COUNT(threads); i++)
            pthread_join(threads[i], NULL);
        _exit(0);
    }
    return pid;
}

struct sum {
    pid_t process;
    size_t threads;
    struct io_use io;
};

static void add(void *ctx, const struct exit_record *record)
{
    struct sum *sum = ctx;

    if (record->parent != getpid() || (record->process && record->process != sum->process))
        return;
    assert_int_equal(record->uid, getuid());
    assert_string_equal(record->comm, "test_taskstats");
    sum->threads++;
    sum->io.write_chars += record->io.write_chars;
}

TEST(what_threads_wrote_before_they_ended_is_told)
{
    struct taskstats *taskstats = open_taskstats();
    struct sum sum = { .process = start_writer() };

    waitpid(sum.process, NULL, 0);
    taskstats_read(taskstats, add, &sum);
    assert_int_equal(sum.threads, 3);
    /* The kernel rounds down to a multiple of 1024, for each thread. */
    assert_in_range(sum.io.write_chars, 2 * PART - 3 * 1024, 2 * PART + 4096);
    assert_int_equal(taskstats_lost(taskstats), 0);
    taskstats_close(taskstats);
}

static void end_many(int n)
{
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(0);
        waitpid(pid, NULL, 0);
    }
}

static void count(void *ctx, const struct exit_record *record)
{
    *(size_t *)ctx += record->parent == getpid();
}

static void set_room(const struct taskstats *taskstats, int bytes)
{
    int code = setsockopt(taskstats_fd(taskstats), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));

    assert_int_equal(code, 0);
}

TEST(records_that_found_no_room_are_noticed_and_more_are_read)
{
    struct taskstats *taskstats = open_taskstats();
    size_t n = 0;

    set_room(taskstats, 32768); /* a record takes about 1,300 bytes, and the room is twice that */
    end_many(200);
    taskstats_read(taskstats, count, &n);
    assert_in_range(n, 1, 199);
    assert_true(taskstats_lost(taskstats) > 0);
    set_room(taskstats, 1 << 20);
    taskstats_read(taskstats, count, &n);
    n = 0;
    end_many(3);
    taskstats_read(taskstats, count, &n);
    assert_int_equal(n, 3);
    taskstats_close(taskstats);
}

static void assert_refused(int code, const char *why)
{
    struct taskstats *taskstats;
    struct err err;

    assert_int_equal(taskstats_open(&taskstats, &err), -code);
    assert_contains(err.text, why);
}

TEST(without_the_capability_to_listen_it_is_named)
{
    lower_capabilities();
    assert_refused(EPERM, "CAP_NET_ADMIN");
}

/* 0 if what a child of a new namespace is told has these words. */
static int try_in_another_namespace(int kind, int code, const char *why)
{
    struct taskstats *taskstats;
    struct err err;
    pid_t pid;
    int status;

    if (unshare(kind) < 0)
        return 1;
    pid = fork();
    if (pid == 0)
        _exit(taskstats_open(&taskstats, &err) != -code ? 2 : strstr(err.text, why) ? 0 : 3);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

static void check_another_namespace(int kind, int code, const char *why)
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(try_in_another_namespace(kind, code, why));
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

TEST(in_another_pid_namespace_it_is_named)
{
    need("root");
    need("namespaces");
    check_another_namespace(CLONE_NEWPID, EINVAL, "pid namespace");
}

TEST(in_another_network_namespace_it_is_named)
{
    need("taskstats");
    need("namespaces");
    check_another_namespace(CLONE_NEWNET, ENODATA, "network namespace");
}
