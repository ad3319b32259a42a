/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Licences from scontrol(1), "scontrol --oneliner show licenses". */
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
    size_t room; /* of the section's array */
};

static void read_license(void *ctx, struct str line)
{
    struct scontrol_licenses *all = ctx;
    struct answer *answer = &all->lined.answer;
    struct licenses *licenses = &answer->section->licenses;
    struct str values[KEYS];

    if (!line.n || str_starts(line, STR("No licenses configured")))
        return;
    if (!pairs_read(line, keys, KEYS, values) || answer_is_nameless(values[NAME])) {
        answer_leave_out(answer, line);
        return;
    }
    licenses->license =
        heap_grow(licenses->license, licenses->n, &all->room, sizeof(*licenses->license));
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

static void begin(struct answer *answer)
{
    lined_begin(answer, read_license);
}

static void release(struct answer *answer)
{
    lined_free(answer);
    arena_adopt(&answer->section->arena, answer->section->licenses.license);
}

const struct answer_class answer_licenses = {
    .size = sizeof(struct scontrol_licenses),
    .begin = begin,
    .feed = lined_feed,
    .end = lined_end,
    .free = release,
};
