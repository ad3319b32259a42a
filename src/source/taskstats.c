/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Receives the kernel's records of threads that end. */
#include "source/taskstats.h"

#include "base/arena.h"

#include <fcntl.h>
#include <linux/genetlink.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>

/* The kernel's structure has the name of ours, and is longer than the one of these headers. */
#define taskstats kernel_taskstats
#include <linux/taskstats.h>
#undef taskstats

enum {
    RECEIVE_BYTES = 4 << 20, /* some 6,500 records, in the kernel's memory while they wait: more
                              * than half a second of a job that does nothing but start processes */
    ANSWER_SECONDS = 5,
    MOST_RECORDS = 16384, /* in one call: a job that does nothing but start and end processes must
                           * not keep the caller from its other work */
    MESSAGE_BYTES = 4096, /* the kernel sends two structures of half a kilobyte at most */
    MASK_BYTES = 1024,
};

struct taskstats {
    int fd;
    unsigned short family;
    uint64_t lost;
    char mask[MASK_BYTES]; /* of processors: "0-63" */
    char message[MESSAGE_BYTES];
};

/* Netlink's attributes are a length, a type and that many bytes, one after the other. */
struct attribute {
    unsigned type;
    struct str payload;
};

static bool cut_attribute(struct str *rest, struct attribute *ret)
{
    struct nlattr head;

    if (rest->n < NLA_HDRLEN)
        return false;
    memcpy(&head, rest->p, sizeof(head));
    if (head.nla_len < NLA_HDRLEN || head.nla_len > rest->n)
        return false;
    *ret = (struct attribute){ head.nla_type & NLA_TYPE_MASK,
                               { rest->p + NLA_HDRLEN, (size_t)head.nla_len - NLA_HDRLEN } };
    *rest = str_skip(*rest, NLA_ALIGN(head.nla_len));
    return true;
}

static bool find_attribute(struct str all, unsigned type, struct str *ret)
{
    struct attribute attribute;

    while (cut_attribute(&all, &attribute))
        if (attribute.type == type) {
            *ret = attribute.payload;
            return true;
        }
    return false;
}

/* The attributes of a message, or false if it is of another type or cut off. */
static bool open_message(struct str message, unsigned short type, struct str *ret)
{
    struct nlmsghdr head;

    if (message.n < NLMSG_HDRLEN + GENL_HDRLEN)
        return false;
    memcpy(&head, message.p, sizeof(head));
    if (head.nlmsg_type != type || head.nlmsg_len > message.n ||
        head.nlmsg_len < NLMSG_HDRLEN + GENL_HDRLEN)
        return false;
    *ret = str_skip(str_head(message, head.nlmsg_len), NLMSG_HDRLEN + GENL_HDRLEN);
    return true;
}

/* Where fields stand in the kernel's structure. New ones are added at its end, but version 15 (6.14
 * and 6.15) put some in between; 16 took that back. */
enum {
    VERSION = 0,
    COMM = 80,
    UID = 120,
    PARENT = 132,
    USER_US = 152,
    SYSTEM_US = 160,
    PEAK_RSS_KB = 200,
    READ_CHARS = 216,
    WRITE_CHARS = 224,
    READS = 232,
    WRITES = 240,
    READ_BYTES = 248,
    WRITE_BYTES = 256,
    PROCESS = 368, /* since version 12 */

    BEFORE_COMM_IN_15 = 48,
    BEFORE_PROCESS_IN_15 = 96,
};

/* 0 if the structure is too short for it. */
static uint64_t get(struct str stats, size_t at, size_t bytes)
{
    uint32_t small = 0;
    uint64_t large = 0;

    if (at + bytes > stats.n)
        return 0;
    memcpy(bytes == sizeof(small) ? (void *)&small : (void *)&large, stats.p + at, bytes);
    return bytes == sizeof(small) ? small : large;
}

static uint64_t get_u64(struct str stats, size_t at)
{
    return get(stats, at, sizeof(uint64_t));
}

static uint32_t get_u32(struct str stats, size_t at)
{
    return (uint32_t)get(stats, at, sizeof(uint32_t));
}

static bool read_stats(struct str stats, struct exit_record *ret)
{
    uint16_t version;
    size_t shift;

    if (stats.n < WRITE_BYTES + sizeof(uint64_t))
        return false;
    memcpy(&version, stats.p + VERSION, sizeof(version));
    shift = version == 15 ? BEFORE_COMM_IN_15 : 0;
    ret->process = (pid_t)get_u32(stats, PROCESS + (shift ? BEFORE_PROCESS_IN_15 : 0));
    stats = str_skip(stats, shift);
    if (stats.n < WRITE_BYTES + sizeof(uint64_t))
        return false;
    ret->parent = (pid_t)get_u32(stats, PARENT);
    ret->uid = get_u32(stats, UID);
    memcpy(ret->comm, stats.p + COMM, USAGE_COMM - 1);
    ret->cpu_ns = (get_u64(stats, USER_US) + get_u64(stats, SYSTEM_US)) * 1000;
    ret->peak_resident_bytes = get_u64(stats, PEAK_RSS_KB) * 1024;
    ret->io = (struct io_use){
        .read_bytes = get_u64(stats, READ_BYTES),
        .write_bytes = get_u64(stats, WRITE_BYTES),
        .read_chars = get_u64(stats, READ_CHARS),
        .write_chars = get_u64(stats, WRITE_CHARS),
        .reads = get_u64(stats, READS),
        .writes = get_u64(stats, WRITES),
    };
    return true;
}

/* The number in an attribute that holds a structure as well. */
static pid_t get_id(struct str aggregate, unsigned type)
{
    struct str id;

    return find_attribute(aggregate, type, &id) ? (pid_t)get_u32(id, 0) : 0;
}

/* The last thread of several brings a second structure, for the whole process, without any I/O: of
 * that, only whose it is counts. */
void taskstats_parse(struct str message, unsigned short family,
                     void (*exited)(void *ctx, const struct exit_record *record), void *ctx)
{
    struct exit_record record = { 0 };
    struct str attributes, thread, process, stats;

    if (!open_message(message, family, &attributes) ||
        !find_attribute(attributes, TASKSTATS_TYPE_AGGR_PID, &thread) ||
        !find_attribute(thread, TASKSTATS_TYPE_STATS, &stats) || !read_stats(stats, &record))
        return;
    record.thread = get_id(thread, TASKSTATS_TYPE_PID);
    if (!record.process && find_attribute(attributes, TASKSTATS_TYPE_AGGR_TGID, &process))
        record.process = get_id(process, TASKSTATS_TYPE_TGID);
    if (record.thread > 0 && record.process >= 0 && record.parent >= 0)
        exited(ctx, &record);
}

/* A message of generic netlink with one attribute, a text. */
static int send_text(const struct taskstats *taskstats, unsigned short type, unsigned char command,
                     unsigned short attribute, const char *text)
{
    struct {
        struct nlmsghdr head;
        struct genlmsghdr command;
        struct nlattr attribute;
        char text[MASK_BYTES];
    } message = { 0 };
    size_t n = strlen(text) + 1;

    message.attribute.nla_type = attribute;
    message.attribute.nla_len = (unsigned short)(NLA_HDRLEN + n);
    message.command.cmd = command;
    message.command.version = 1;
    message.head.nlmsg_type = type;
    message.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
    message.head.nlmsg_len =
        (unsigned)(NLMSG_HDRLEN + GENL_HDRLEN) + NLA_ALIGN(message.attribute.nla_len);
    memcpy(message.text, text, n);
    return send(taskstats->fd, &message, message.head.nlmsg_len, 0) < 0 ? -errno : 0;
}

/* The next message, or -errno. Only the kernel's count: whoever has CAP_NET_ADMIN could send some.
 */
static int receive(struct taskstats *taskstats, struct str *ret)
{
    struct sockaddr_nl from;
    socklen_t n_from = sizeof(from);
    ssize_t n = recvfrom(taskstats->fd, taskstats->message, sizeof(taskstats->message), 0,
                         (struct sockaddr *)&from, &n_from);

    if (n < 0)
        return -errno;
    *ret = (struct str){ taskstats->message, from.nl_pid == 0 ? (size_t)n : 0 };
    return 0;
}

/* Waits for the kernel's verdict on what was sent; what comes before it and has that type stays in
 * *ret. */
static int receive_answer(struct taskstats *taskstats, unsigned short type, struct str *ret)
{
    struct str message = { 0 };
    struct nlmsghdr head;
    int code;

    for (int i = 0; i < MOST_RECORDS; i++) {
        code = receive(taskstats, &message);
        if (code == -EINTR || code == -ENOBUFS)
            continue;
        if (code < 0)
            return code == -EAGAIN ? -ETIMEDOUT : code;
        if (message.n < NLMSG_HDRLEN)
            continue;
        memcpy(&head, message.p, sizeof(head));
        if (type && open_message(message, type, ret))
            return 0;
        if (head.nlmsg_type == NLMSG_ERROR && message.n >= NLMSG_HDRLEN + sizeof(int)) {
            memcpy(&code, message.p + NLMSG_HDRLEN, sizeof(code));
            return code;
        }
    }
    return -ETIMEDOUT;
}

static int find_family(struct taskstats *taskstats)
{
    struct str attributes, id;
    int code = send_text(taskstats, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME,
                         TASKSTATS_GENL_NAME);

    if (code == 0)
        code = receive_answer(taskstats, GENL_ID_CTRL, &attributes);
    if (code < 0)
        return code;
    if (!find_attribute(attributes, CTRL_ATTR_FAMILY_ID, &id) || id.n < sizeof(taskstats->family))
        return -EBADMSG;
    memcpy(&taskstats->family, id.p, sizeof(taskstats->family));
    return receive_answer(taskstats, 0, &attributes);
}

static int read_mask(struct taskstats *taskstats)
{
    int fd = open("/sys/devices/system/cpu/possible", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, taskstats->mask, sizeof(taskstats->mask) - 1);
    int code = n < 0 ? -errno : 0;

    if (fd >= 0)
        close(fd);
    taskstats->mask[n > 0 ? str_trim((struct str){ taskstats->mask, (size_t)n }).n : 0] = '\0';
    return code;
}

static int subscribe(struct taskstats *taskstats)
{
    struct str none;
    int code = read_mask(taskstats);

    if (code == 0)
        code = send_text(taskstats, taskstats->family, TASKSTATS_CMD_GET,
                         TASKSTATS_CMD_ATTR_REGISTER_CPUMASK, taskstats->mask);
    return code < 0 ? code : receive_answer(taskstats, 0, &none);
}

static void *end_at_once(void *ctx)
{
    *(pid_t *)ctx = gettid();
    return NULL;
}

struct proof {
    pid_t thread;
    bool was_told;
};

static void look_for_thread(void *ctx, const struct exit_record *record)
{
    struct proof *proof = ctx;

    proof->was_told = proof->was_told || record->thread == proof->thread;
}

/* In another network namespace the kernel takes the subscription, and sends the records to whoever
 * has that address in the first one. It sends a thread's before it lets others know of the end. */
static int prove(struct taskstats *taskstats)
{
    struct proof proof = { 0 };
    pthread_t thread;

    if (pthread_create(&thread, NULL, end_at_once, &proof.thread) != 0)
        return 0;
    pthread_join(thread, NULL);
    taskstats_read(taskstats, look_for_thread, &proof);
    return proof.was_told || taskstats->lost ? 0 : -ENODATA;
}

static void set_up_socket(int fd)
{
    struct timeval wait = { .tv_sec = ANSWER_SECONDS };
    int bytes = RECEIVE_BYTES;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

static int begin(struct taskstats *taskstats)
{
    int code = find_family(taskstats);

    if (code == 0)
        code = subscribe(taskstats);
    if (code < 0)
        return code;
    fcntl(taskstats->fd, F_SETFL, O_NONBLOCK);
    return prove(taskstats);
}

static const char *advice(int code)
{
    static const struct {
        int code;
        const char *words;
    } words[] = {
        { EPERM, "it needs the capability CAP_NET_ADMIN" },
        { ENOENT, "this kernel is built without CONFIG_TASKSTATS" },
        { EPROTONOSUPPORT, "this kernel has no generic netlink" },
        { EINVAL, "the kernel tells only processes in its first pid namespace" },
        { ENODATA, "the kernel tells only processes in its first network namespace" },
    };

    for (size_t i = 0; i < COUNT(words); i++)
        if (words[i].code == code)
            return words[i].words;
    return err_words(code);
}

int taskstats_open(struct taskstats **ret, struct err *err)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC), code;
    struct taskstats *taskstats;

    if (fd < 0)
        return err_set(err, errno, "no records of threads that end: %s", advice(errno));
    taskstats = heap_alloc(sizeof(*taskstats));
    taskstats->fd = fd;
    set_up_socket(fd);
    code = begin(taskstats);
    if (code < 0) {
        taskstats_close(taskstats);
        return err_set(err, -code, "no records of threads that end: %s", advice(-code));
    }
    *ret = taskstats;
    return 0;
}

struct taskstats *taskstats_close(struct taskstats *taskstats)
{
    if (taskstats) {
        if (taskstats->mask[0])
            send_text(taskstats, taskstats->family, TASKSTATS_CMD_GET,
                      TASKSTATS_CMD_ATTR_DEREGISTER_CPUMASK, taskstats->mask);
        close(taskstats->fd);
        free(taskstats);
    }
    return NULL;
}

int taskstats_fd(const struct taskstats *taskstats)
{
    return taskstats->fd;
}

void taskstats_read(struct taskstats *taskstats,
                    void (*exited)(void *ctx, const struct exit_record *record), void *ctx)
{
    struct str message;
    int code = 0;

    for (int i = 0; i < MOST_RECORDS && (code == 0 || code == -ENOBUFS || code == -EINTR); i++) {
        code = receive(taskstats, &message);
        if (code == 0)
            taskstats_parse(message, taskstats->family, exited, ctx);
        taskstats->lost += code == -ENOBUFS;
    }
}

uint64_t taskstats_lost(const struct taskstats *taskstats)
{
    return taskstats->lost;
}
