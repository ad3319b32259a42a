/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses the files of /proc/PID. */
#include "source/proc_text.h"

#include "base/num.h"

/* The number at the start of *rest, and the space after it. A negative one counts as 0: none of
 * those that are asked for can be. */
static bool cut_number(struct str *rest, uint64_t *ret)
{
    const char *p = rest->p, *end = p + rest->n, *digits;
    bool is_negative = p < end && *p == '-';
    uint64_t value = 0;

    digits = p += is_negative;
    while (p < end && *p >= '0' && *p <= '9')
        value = value * 10 + (uint64_t)(*p++ - '0');
    if (p == digits || p - digits >= NUM_U64_MAX || (p < end && *p != ' ' && *p != '\n'))
        return false;
    *ret = is_negative ? 0 : value;
    *rest = str_skip(*rest, (size_t)(p - rest->p) + 1);
    return true;
}

/* The second field is the program's name in parentheses, which may hold anything, parentheses and
 * newlines included: it ends at the last one. */
static bool cut_name(struct str *rest, struct str *ret)
{
    const char *begin = rest->n ? memchr(rest->p, '(', rest->n) : NULL;
    const char *end = rest->n ? memrchr(rest->p, ')', rest->n) : NULL;

    if (!begin || !end || end < begin)
        return false;
    *ret = str_span(begin + 1, end);
    *rest = str_skip(*rest, (size_t)(end - rest->p) + 2);
    return true;
}

bool proc_stat_parse(struct str text, const struct proc_units *units, struct proc_stat *ret)
{
    enum {
        PARENT = 4,
        FLAGS = 9,
        UTIME = 14,
        STIME = 15,
        CUTIME = 16, /* of the children that it has waited for */
        CSTIME = 17,
        THREADS = 20,
        START = 22,
        RSS = 24,
    };
    const uint64_t exiting = 0x4; /* PF_EXITING, of the kernel's linux/sched.h */
    uint64_t fields[RSS + 1];
    struct str name;
    char state;

    if (!cut_name(&text, &name) || text.n < 2 || text.p[1] != ' ')
        return false;
    state = text.p[0];
    text = str_skip(text, 2);
    for (int i = PARENT; i <= RSS; i++)
        if (!cut_number(&text, &fields[i]))
            return false;
    *ret = (struct proc_stat){
        .parent = (pid_t)fields[PARENT],
        .state = state,
        .is_exiting = fields[FLAGS] & exiting,
        /* The main thread stays as a zombie while others of the process live. */
        .threads = fields[THREADS] - (fields[THREADS] && (state == 'Z' || state == 'X')),
        .cpu_ns = (fields[UTIME] + fields[STIME]) * units->tick_ns,
        .user_ns = fields[UTIME] * units->tick_ns,
        .reaped_cpu_ns = (fields[CUTIME] + fields[CSTIME]) * units->tick_ns,
        .reaped_user_ns = fields[CUTIME] * units->tick_ns,
        .resident_bytes = fields[RSS] * units->page_bytes,
        .start_ticks = fields[START],
    };
    memcpy(ret->comm, name.p, name.n < USAGE_COMM ? name.n : USAGE_COMM - 1);
    return true;
}

bool proc_io_parse(struct str text, struct io_use *ret)
{
    static const struct {
        struct str key;
        size_t offset;
    } lines[] = {
        { STR_INIT("rchar: "), offsetof(struct io_use, read_chars) },
        { STR_INIT("wchar: "), offsetof(struct io_use, write_chars) },
        { STR_INIT("syscr: "), offsetof(struct io_use, reads) },
        { STR_INIT("syscw: "), offsetof(struct io_use, writes) },
        { STR_INIT("read_bytes: "), offsetof(struct io_use, read_bytes) },
        { STR_INIT("write_bytes: "), offsetof(struct io_use, write_bytes) },
    };
    struct io_use use;

    /* The kernel writes all of them, in this order since it has the file. */
    for (size_t i = 0; i < COUNT(lines); i++) {
        if (!str_starts(text, lines[i].key))
            return false;
        text = str_skip(text, lines[i].key.n);
        if (!cut_number(&text, (uint64_t *)((char *)&use + lines[i].offset)))
            return false;
    }
    *ret = use;
    return true;
}

static bool cut_uid(struct str *rest, uint32_t *ret)
{
    uint64_t uid;

    if (!rest->p || !num_get_u64(str_cut(rest, '\t'), &uid) || uid >= UINT32_MAX)
        return false;
    *ret = (uint32_t)uid;
    return true;
}

/* The name, in the first line, has its newlines escaped. */
bool proc_uids_parse(struct str status, struct proc_uids *ret)
{
    const struct str key = STR("Uid:\t");
    struct proc_uids uids;

    while (status.p) {
        struct str line = str_cut(&status, '\n');

        if (!str_starts(line, key))
            continue;
        line = str_skip(line, key.n);
        if (!cut_uid(&line, &uids.real) || !cut_uid(&line, &uids.effective) ||
            !cut_uid(&line, &uids.saved))
            return false;
        *ret = uids;
        return true;
    }
    return false;
}

static bool has_word(struct str list, struct str word)
{
    while (list.p)
        if (str_eq(str_cut(&list, ','), word))
            return true;
    return false;
}

/* "4:cpu,cpuacct:/slurm/uid_1000/job_7", "0::/system.slice". No cgroup's name has a newline, which
 * the kernel refuses so that this file can be read; colons may be in paths. A last line that is not
 * ended may have been cut off. */
bool proc_cgroup_parse(struct str text, struct str controller, struct str *ret)
{
    for (size_t end; (end = str_find(text, '\n')) < text.n; text = str_skip(text, end + 1)) {
        struct str path = str_head(text, end), number = str_cut(&path, ':'), list;

        if (!path.p)
            continue;
        list = str_cut(&path, ':');
        if (!path.p || !path.n || path.p[0] != '/')
            continue;
        if (controller.n ? has_word(list, controller) : str_eq(number, STR("0")) && !list.n) {
            *ret = str_skip(path, 1);
            return true;
        }
    }
    return false;
}

static void begin_variable(struct environ_scan *scan)
{
    scan->candidates = scan->wanted;
    scan->position = 0;
    scan->found = NULL;
}

void environ_begin(struct environ_scan *scan, struct proc_variable *variables, size_t n)
{
    *scan = (struct environ_scan){ .variables = variables, .n = n };
    for (size_t i = 0; i < n; i++) {
        scan->wanted |= UINT64_C(1) << i;
        if (variables[i].size)
            variables[i].value[0] = '\0';
    }
    begin_variable(scan);
}

/* The next byte of a name, or the equals sign after it. */
static void match_byte(struct environ_scan *scan, char byte)
{
    for (size_t i = 0; i < scan->n; i++) {
        char expected;

        if (!(scan->candidates >> i & 1))
            continue;
        expected = scan->variables[i].name[scan->position];
        if (!expected && byte == '=') {
            scan->found = &scan->variables[i];
            scan->n_value = 0;
            scan->wanted &= ~(UINT64_C(1) << i);
        }
        if (!expected || expected != byte)
            scan->candidates &= ~(UINT64_C(1) << i);
    }
    scan->position++;
}

static void copy_value(struct environ_scan *scan, struct str part)
{
    struct proc_variable *to = scan->found;
    size_t room = to->size ? to->size - 1 - scan->n_value : 0;

    part = str_head(part, room);
    if (!to->size)
        return;
    if (part.n)
        memcpy(to->value + scan->n_value, part.p, part.n);
    scan->n_value += part.n;
    to->value[scan->n_value] = '\0';
}

/* Of a variable given twice, the first holds, as with getenv(3). */
bool environ_feed(struct environ_scan *scan, struct str piece)
{
    while (piece.n && (scan->wanted || scan->found)) {
        size_t n = 1;

        if (scan->found || !scan->candidates) {
            n = str_find(piece, '\0');
            if (scan->found)
                copy_value(scan, str_head(piece, n));
            if (n < piece.n)
                begin_variable(scan);
            n++;
        } else if (!piece.p[0]) {
            begin_variable(scan);
        } else {
            match_byte(scan, piece.p[0]);
        }
        piece = str_skip(piece, n);
    }
    return scan->wanted || scan->found;
}
