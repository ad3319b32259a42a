/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reservations from scontrol show reservations --json (from Slurm 23.02 on) and slurmrestd's
 * /reservations: the RESERVATION_INFO parser of Slurm's data_parser plugins, and _dump_res() of its
 * older openapi plugins. */
#include "base/clock.h"
#include "source/json_answers.h"
#include "source/json_table.h"

enum { FLAGS_ROOM = 1024, DAY = 86400, HOUR = 3600, MINUTE = 60 };

/* In the order in which scontrol prints them; JSON has them in several. */
static const struct str flag_words[] = {
    STR_INIT("MAINT"),        STR_INIT("NO_MAINT"),     STR_INIT("FLEX"),
    STR_INIT("OVERLAP"),      STR_INIT("IGNORE_JOBS"),  STR_INIT("HOURLY"),
    STR_INIT("NO_HOURLY"),    STR_INIT("DAILY"),        STR_INIT("NO_DAILY"),
    STR_INIT("WEEKDAY"),      STR_INIT("WEEKEND"),      STR_INIT("WEEKLY"),
    STR_INIT("NO_WEEKLY"),    STR_INIT("SPEC_NODES"),   STR_INIT("ALL_NODES"),
    STR_INIT("ANY_NODES"),    STR_INIT("NO_ANY_NODES"), STR_INIT("STATIC"),
    STR_INIT("NO_STATIC"),    STR_INIT("PART_NODES"),   STR_INIT("NO_PART_NODES"),
    STR_INIT("FIRST_CORES"),  STR_INIT("TIME_FLOAT"),   STR_INIT("REPLACE"),
    STR_INIT("REPLACE_DOWN"), STR_INIT("PURGE_COMP"),   STR_INIT("NO_HOLD_JOBS_AFTER_END"),
    STR_INIT("MAGNETIC"),     STR_INIT("NO_MAGNETIC"),
};

struct reservation_draft {
    struct reservation reservation;
    uint32_t purge_seconds;
    bool has_flag[COUNT(flag_words)];
    struct buf others; /* flags that a newer Slurm has thought of */
};

struct json_reservations {
    struct json_answer json;
    size_t room; /* of the section's array */
    int64_t now;
    struct reservation_draft draft; /* the one being read */
    struct buf flags;
};

#define RESERVATION(key, shape, field)                                                             \
    MEMBER(struct reservation_draft, key, shape, reservation.field)

static const struct json_member reservation_members[] = {
    RESERVATION("name", SHAPE_NAME, name),
    RESERVATION("node_list", SHAPE_TEXT, nodes),
    RESERVATION("users", SHAPE_NAME, users),
    RESERVATION("accounts", SHAPE_NAME, accounts),
    RESERVATION("partition", SHAPE_NAME, partition),
    RESERVATION("tres", SHAPE_TEXT, tres),
    RESERVATION("node_count", SHAPE_U32, node_count),
    RESERVATION("core_count", SHAPE_U32, core_count),
    RESERVATION("start_time", SHAPE_TIME, start_time),
    RESERVATION("end_time", SHAPE_TIME, end_time),
    MEMBER(struct reservation_draft, "purge_completed/time", SHAPE_U32, purge_seconds),
    MEMBER_WORDS("flags"),
};

static void *begin_reservation(struct answer *answer)
{
    struct reservation_draft *draft = &((struct json_reservations *)answer)->draft;
    struct buf others = draft->others;

    *draft = (struct reservation_draft){
        .reservation = { .node_count = MODEL_UNKNOWN_U32, .core_count = MODEL_UNKNOWN_U32 },
        .purge_seconds = MODEL_UNKNOWN_U32,
        .others = others,
    };
    buf_reset(&draft->others);
    return draft;
}

static void add_flag(struct answer *answer, void *record, const struct json_member *member,
                     struct str word)
{
    struct reservation_draft *draft = record;

    (void)answer;
    (void)member;
    for (size_t i = 0; i < COUNT(flag_words); i++)
        if (str_eq(word, flag_words[i])) {
            draft->has_flag[i] = true;
            return;
        }
    if (draft->others.n)
        buf_byte(&draft->others, ',');
    buf_put(&draft->others, word);
}

/* "MAINT,SPEC_NODES,PURGE_COMP=00:05:00": the flag that has a value, in scontrol's form of it. */
static void put_flag(struct buf *to, struct str word, uint32_t seconds)
{
    buf_printf(to, "%s%.*s", to->n ? "," : "", STR_ARG(word));
    if (!str_eq(word, STR("PURGE_COMP")) || seconds == MODEL_UNKNOWN_U32)
        return;
    buf_byte(to, '=');
    if (seconds >= DAY)
        buf_printf(to, "%u-", seconds / DAY);
    buf_printf(to, "%02u:%02u:%02u", seconds % DAY / HOUR, seconds % HOUR / MINUTE,
               seconds % MINUTE);
}

static symbol read_flags(struct json_reservations *all, const struct reservation_draft *draft)
{
    buf_reset(&all->flags);
    for (size_t i = 0; i < COUNT(flag_words); i++)
        if (draft->has_flag[i])
            put_flag(&all->flags, flag_words[i], draft->purge_seconds);
    if (draft->others.n)
        put_flag(&all->flags, buf_str(&draft->others), 0);
    return answer_text(&all->json.answer, buf_str(&all->flags));
}

static void end_reservation(struct answer *answer, void *record)
{
    struct json_reservations *all = (struct json_reservations *)answer;
    struct reservations *reservations = &answer->section->reservations;
    struct reservation_draft *draft = record;
    struct reservation *reservation = &draft->reservation;

    if (!reservation->name) {
        answer_leave_out(answer, STR("a reservation without a name"));
        return;
    }
    reservation->flags = read_flags(all, draft);
    reservation->is_active =
        reservation->start_time <= all->now && all->now <= reservation->end_time;
    reservations->reservation =
        section_grow(answer->section, reservations->reservation, reservations->n, &all->room,
                     sizeof(*reservations->reservation));
    reservations->reservation[reservations->n++] = *reservation;
}

static const struct json_table reservation_table = {
    .members = reservation_members,
    .n = COUNT(reservation_members),
    .begin = begin_reservation,
    .word = add_flag,
    .end = end_reservation,
};

static const struct json_member document_members[] = {
    MEMBER_LIST("reservations", &reservation_table),
    MEMBER_ERRORS,
};

static const struct json_table document = {
    .members = document_members,
    .n = COUNT(document_members),
};

/* Whether a reservation is in effect is not told: as scontrol, we look at the clock. */
static void begin(struct answer *answer)
{
    struct json_reservations *all = (struct json_reservations *)answer;

    json_answer_begin(answer, &document);
    buf_init(&all->draft.others, FLAGS_ROOM);
    buf_init(&all->flags, 2 * FLAGS_ROOM);
    all->now = clock_wall(&clock_real) / NS_PER_SEC;
}

static void release(struct answer *answer)
{
    struct json_reservations *all = (struct json_reservations *)answer;

    json_answer_free(answer);
    buf_free(&all->draft.others);
    buf_free(&all->flags);
    arena_adopt(&answer->section->arena, answer->section->reservations.reservation);
}

const struct answer_class answer_json_reservations = {
    .size = sizeof(struct json_reservations),
    .begin = begin,
    .feed = json_answer_feed,
    .end = json_answer_end,
    .free = release,
};
