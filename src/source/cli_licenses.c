/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Licences from scontrol(1), "scontrol --oneliner show licenses". Without --oneliner, as a site may
 * ask, what follows a licence's name stands in lines of its own, which are indented. */
#include "source/cli.h"
#include "source/pairs.h"

enum { NAME, TOTAL, USED, FREE, RESERVED, REMOTE, LAST_CONSUMED, LAST_DEFICIT, KEYS };

static const struct str keys[KEYS] = {
    [NAME] = STR_INIT("LicenseName"),
    [TOTAL] = STR_INIT("Total"),
    [USED] = STR_INIT("Used"),
    [FREE] = STR_INIT("Free"),
    [RESERVED] = STR_INIT("Reserved"),
    [REMOTE] = STR_INIT("Remote"),
    [LAST_CONSUMED] = STR_INIT("LastConsumed"),
    [LAST_DEFICIT] = STR_INIT("LastDeficit"),
};

struct scontrol_licenses {
    struct lined lined;
    struct buf record; /* the lines of the current licence, as one */
    size_t room;       /* of the section's array */
};

static void read_license(struct scontrol_licenses *all, struct str record)
{
    struct answer *answer = &all->lined.answer;
    struct licenses *licenses = &answer->section->licenses;
    struct str values[KEYS];

    if (!pairs_read(record, keys, KEYS, values) || answer_is_nameless(values[NAME])) {
        answer_leave_out(answer, record);
        return;
    }
    licenses->license = section_grow(answer->section, licenses->license, licenses->n, &all->room,
                                     sizeof(*licenses->license));
    licenses->license[licenses->n++] = (struct license){
        .name = answer_name(answer, values[NAME]),
        .is_remote = str_eq(values[REMOTE], STR("yes")),
        .total = answer_u64(values[TOTAL]),
        .used = answer_u64(values[USED]),
        .free = answer_u64(values[FREE]),
        .reserved = answer_u64(values[RESERVED]),
        .last_consumed = answer_u64(values[LAST_CONSUMED]),
        .last_deficit = answer_u64(values[LAST_DEFICIT]),
    };
}

static void finish_record(struct scontrol_licenses *all)
{
    if (all->record.over)
        answer_leave_out(&all->lined.answer, buf_str(&all->record));
    else if (all->record.n)
        read_license(all, buf_str(&all->record));
    buf_reset(&all->record);
}

static void read_line(void *ctx, struct str line)
{
    struct scontrol_licenses *all = ctx;
    bool is_indented = str_starts(line, STR(" "));

    line = str_trim(line);
    if (!is_indented || !all->record.n)
        finish_record(all);
    else
        buf_byte(&all->record, ' ');
    if (!str_starts(line, STR("No licenses configured")))
        buf_put(&all->record, line);
}

static void begin(struct answer *answer)
{
    lined_begin(answer, read_line);
    buf_init(&((struct scontrol_licenses *)answer)->record, LINES_MAX);
}

static int end(struct answer *answer, struct err *err)
{
    finish_record((struct scontrol_licenses *)answer);
    return lined_end(answer, &answer->section->licenses.n, err);
}

static void release(struct answer *answer)
{
    lined_free(answer);
    buf_free(&((struct scontrol_licenses *)answer)->record);
    arena_adopt(&answer->section->arena, answer->section->licenses.license);
}

const struct answer_class answer_licenses = {
    .size = sizeof(struct scontrol_licenses),
    .begin = begin,
    .feed = lined_feed,
    .end = end,
    .free = release,
};
