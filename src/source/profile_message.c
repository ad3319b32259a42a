/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses the datagrams of the profile plugin. */
#include "source/profile_message.h"

#include "base/num.h"

#include <math.h>

static bool is_control(char byte)
{
    return (unsigned char)byte < ' ' || byte == 0x7f;
}

/* Not empty, without control characters, and it fits. */
static bool is_text(struct str text, size_t room)
{
    for (size_t i = 0; i < text.n; i++)
        if (is_control(text.p[i]))
            return false;
    return text.n > 0 && text.n < room;
}

static bool copy_text(struct str text, char *to, size_t room)
{
    if (!is_text(text, room))
        return false;
    memcpy(to, text.p, text.n);
    to[text.n] = '\0';
    return true;
}

static bool copy_word(struct str text, char *to, size_t room)
{
    return str_find(text, ' ') == text.n && copy_text(text, to, room);
}

static bool read_number(struct str text, uint64_t least, uint64_t most, uint64_t *ret)
{
    return num_get_u64(text, ret) && *ret >= least && *ret <= most;
}

static int read_magic(struct str line, struct err *err)
{
    struct str word = str_cut(&line, ' ');
    uint64_t version;

    if (!str_eq(word, STR("sonde-profile")) || !num_get_u64(line, &version))
        return err_set(err, EINVAL, "not a message of the profile plugin");
    if (version != 1)
        return err_set(err, EPROTO, "of a plugin that is newer than this agent");
    return 0;
}

static int read_step(struct str line, struct profile_id *ret, struct err *err)
{
    struct str word = str_cut(&line, ' ');
    struct str job = str_cut(&line, ' '), step = str_cut(&line, ' ');
    uint64_t job_id;

    if (!str_eq(word, STR("step")) || !read_number(job, 1, UINT32_MAX, &job_id) ||
        !copy_word(step, ret->step, sizeof(ret->step)) ||
        !copy_word(line, ret->node, sizeof(ret->node)))
        return err_set(err, EINVAL, "the line of the step has no job, step and node");
    ret->job_id = (uint32_t)job_id;
    return 0;
}

static const struct {
    struct str name;
    size_t offset, room;
} labels[] = {
#define LABEL(member)                                                                              \
    {                                                                                              \
        STR_INIT(#member), offsetof(struct profile_labels, member),                                \
            sizeof(((struct profile_labels *)NULL)->member)                                        \
    }
    LABEL(user),
    LABEL(account),
    LABEL(partition),
    LABEL(cluster),
#undef LABEL
};

static int read_label(struct str rest, struct profile_labels *to, struct err *err)
{
    struct str name = str_cut(&rest, ' ');

    for (size_t i = 0; i < COUNT(labels); i++)
        if (str_eq(name, labels[i].name) &&
            !copy_text(rest, (char *)to + labels[i].offset, labels[i].room))
            return err_set(err, EINVAL, "the label %.*s cannot be one", STR_ARG(name));
    return 0;
}

static int read_every(struct str rest, unsigned *ret, struct err *err)
{
    uint64_t seconds;

    if (!read_number(rest, 1, PROFILE_EVERY_MOST, &seconds))
        return err_set(err, EINVAL, "the seconds to the next message are not from 1 to %d",
                       PROFILE_EVERY_MOST);
    *ret = (unsigned)seconds;
    return 0;
}

/* The lines before the first dataset, which is left. */
static int read_head(struct profile_message *message, struct err *err)
{
    int code = 0;

    while (message->at.rest.p && code == 0 && !message->is_end) {
        struct str behind = message->at.rest;
        struct str line = str_cut(&behind, '\n');
        struct str word = str_cut(&line, ' ');

        if (str_eq(word, STR("dataset")))
            break;
        message->at.rest = behind;
        if (str_eq(word, STR("label")))
            code = read_label(line, &message->labels, err);
        else if (str_eq(word, STR("every")))
            code = read_every(line, &message->every_seconds, err);
        message->is_end = str_eq(word, STR("end")) && !line.n;
    }
    return code;
}

int profile_message_read(struct str text, struct profile_message *ret, struct err *err)
{
    int code;

    *ret = (struct profile_message){ .every_seconds = PROFILE_EVERY_SECONDS, .at.rest = text };
    if (text.n > PROFILE_MESSAGE_BYTES)
        return err_set(err, EINVAL, "longer than %d bytes", PROFILE_MESSAGE_BYTES);
    code = read_magic(str_cut(&ret->at.rest, '\n'), err);
    if (code == 0)
        code = read_step(str_cut(&ret->at.rest, '\n'), &ret->id, err);
    if (code == 0)
        code = read_head(ret, err);
    return code;
}

static const struct str kinds[PROFILE_KINDS] = {
    [PROFILE_OF_TASK] = STR_INIT("task"),
    [PROFILE_OF_ENERGY] = STR_INIT("energy"),
    [PROFILE_OF_NETWORK] = STR_INIT("network"),
    [PROFILE_OF_FILESYSTEM] = STR_INIT("filesystem"),
};

/* "task 3", "energy"; what is neither hides the numbers below it. */
static void enter_dataset(struct profile_message *message, struct str rest)
{
    struct str name = str_cut(&rest, ' ');
    uint64_t task = 0;

    message->at.has_dataset = false;
    for (unsigned kind = 0; kind < PROFILE_KINDS; kind++) {
        if (!str_eq(name, kinds[kind]))
            continue;
        message->at.kind = kind;
        message->at.has_dataset =
            kind == PROFILE_OF_TASK ? read_number(rest, 0, UINT32_MAX, &task) : !rest.n;
    }
    message->at.task = (uint32_t)task;
}

/* "slurm_profile_task_cpu_seconds_total 1.5", "Power 250 CPU" */
static bool read_sample(const struct profile_message *message, struct str line,
                        struct profile_sample *ret)
{
    struct str name = str_cut(&line, ' '), number = str_cut(&line, ' ');

    *ret = (struct profile_sample){ .kind = message->at.kind, .task = message->at.task };
    ret->metric = profile_metric_find(name);
    if (!ret->metric || ret->metric->kind != ret->kind || !num_get_double(number, &ret->value) ||
        !isfinite(ret->value))
        return false;
    if (line.n && (!ret->metric->has_sensor || !is_text(line, PROFILE_SENSOR)))
        return false;
    ret->sensor = line;
    return true;
}

bool profile_message_next(struct profile_message *message, struct profile_sample *ret)
{
    while (message->at.rest.p && !message->is_end) {
        struct str line = str_cut(&message->at.rest, '\n');
        struct str behind = line;

        if (str_eq(str_cut(&behind, ' '), STR("dataset")))
            enter_dataset(message, behind);
        else if (message->at.has_dataset && read_sample(message, line, ret))
            return true;
    }
    return false;
}
