/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reservations from scontrol(1), "scontrol --oneliner show reservations". A name may hold spaces
 * and equals signs, a comment, which comes last, also newlines. */
#include "source/cli.h"
#include "source/pairs.h"

enum {
    NAME,
    START,
    END,
    NODES,
    NODE_COUNT,
    CORE_COUNT,
    PARTITION,
    FLAGS,
    TRES,
    USERS,
    ACCOUNTS,
    STATE,
    COMMENT, /* told last, and only if there is one */
    KEYS
};

static const struct str keys[KEYS] = {
    [NAME] = STR_INIT("ReservationName"),
    [START] = STR_INIT("StartTime"),
    [END] = STR_INIT("EndTime"),
    [NODES] = STR_INIT("Nodes"),
    [NODE_COUNT] = STR_INIT("NodeCnt"),
    [CORE_COUNT] = STR_INIT("CoreCnt"),
    [PARTITION] = STR_INIT("PartitionName"),
    [FLAGS] = STR_INIT("Flags"),
    [TRES] = STR_INIT("TRES"),
    [USERS] = STR_INIT("Users"),
    [ACCOUNTS] = STR_INIT("Accounts"),
    [STATE] = STR_INIT("State"),
    [COMMENT] = STR_INIT("Comment"),
};

struct scontrol_reservations {
    struct lined lined;
    size_t room;      /* of the section's array */
    bool has_comment; /* the reservation read last, which may go on in the next line */
};

/* A comment's second line may look like a reservation; but few would think of every field. */
static bool read_fields(struct str line, struct str *values)
{
    if (!pairs_read(line, keys, KEYS, values) || answer_is_nameless(values[NAME]))
        return false;
    for (size_t i = 0; i < COMMENT; i++)
        if (!values[i].p)
            return false;
    return true;
}

static void read_reservation(void *ctx, struct str line)
{
    struct scontrol_reservations *all = ctx;
    struct answer *answer = &all->lined.answer;
    struct reservations *reservations = &answer->section->reservations;
    struct str values[KEYS];

    if (!line.n || str_starts(line, STR("No reservations in the system")))
        return;
    if (!read_fields(line, values)) {
        if (!all->has_comment || str_starts(line, keys[NAME]))
            answer_leave_out(answer, line);
        return;
    }
    all->has_comment = values[COMMENT].p;
    reservations->reservation =
        section_grow(answer->section, reservations->reservation, reservations->n, &all->room,
                     sizeof(*reservations->reservation));
    reservations->reservation[reservations->n++] = (struct reservation){
        .name = answer_name(answer, values[NAME]),
        .nodes = answer_text(answer, values[NODES]),
        .users = answer_name(answer, values[USERS]),
        .accounts = answer_name(answer, values[ACCOUNTS]),
        .partition = answer_name(answer, values[PARTITION]),
        .flags = answer_text(answer, values[FLAGS]),
        .tres = answer_text(answer, values[TRES]),
        .node_count = answer_u32(values[NODE_COUNT], MODEL_UNKNOWN_U32),
        .core_count = answer_u32(values[CORE_COUNT], MODEL_UNKNOWN_U32),
        .is_active = str_eq(values[STATE], STR("ACTIVE")),
        .start_time = answer_timestamp(values[START]),
        .end_time = answer_timestamp(values[END]),
    };
}

static void begin(struct answer *answer)
{
    lined_begin(answer, read_reservation);
}

static int end(struct answer *answer, struct err *err)
{
    return lined_end(answer, &answer->section->reservations.n, err);
}

static void release(struct answer *answer)
{
    lined_free(answer);
    arena_adopt(&answer->section->arena, answer->section->reservations.reservation);
}

const struct answer_class answer_reservations = {
    .size = sizeof(struct scontrol_reservations),
    .begin = begin,
    .feed = lined_feed,
    .end = end,
    .free = release,
};
