/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adds up the GRES of a job that its TRES do not name. */
#include "model/job_gres.h"

#include "base/buf.h"
#include "model/tres.h"

enum { TEXT_MAX = 16 << 10 };

void job_gres_begin(struct job_gres *gres, struct section *section)
{
    gres->section = section;
    gres->n = 0;
    gres->is_bad = false;
}

static void add_item(struct job_gres *gres, const struct gres_item *item)
{
    symbol name = symbols_put(&gres->section->symbols, item->name);
    symbol type = symbols_put(&gres->section->symbols, item->type);
    size_t i = 0;

    while (i < gres->n && (gres->item[i].name != name || gres->item[i].type != type))
        i++;
    if (i == JOB_GRES_MAX) {
        gres->is_bad = true;
        return;
    }
    if (i == gres->n) {
        gres->item[i].name = name;
        gres->item[i].type = type;
        gres->item[gres->n++].count = 0;
    }
    gres->is_bad |= __builtin_add_overflow(gres->item[i].count, item->count, &gres->item[i].count);
}

void job_gres_add(struct job_gres *gres, struct str text)
{
    struct gres_item item;

    for (struct str rest = text; gres_next(&rest, &item, &gres->is_bad);)
        if (item.count && item.count < GRES_NO_CONSUME)
            add_item(gres, &item);
}

static bool names(struct str tres, struct str name)
{
    struct gres_item item;

    for (struct str rest = tres; gres_next(&rest, &item, NULL);)
        if (str_eq(item.name, name))
            return true;
    return false;
}

static void put_rest(const struct job_gres *gres, struct str tres, struct buf *to)
{
    for (size_t i = 0; i < gres->n; i++) {
        struct str name = section_text(gres->section, gres->item[i].name);
        struct str type = section_text(gres->section, gres->item[i].type);

        if (names(tres, name))
            continue;
        buf_text(to, to->n ? "," : "");
        buf_put(to, name);
        buf_text(to, type.n ? ":" : "");
        buf_put(to, type);
        buf_byte(to, ':');
        buf_u64(to, gres->item[i].count);
    }
}

symbol job_gres_end(struct job_gres *gres, const struct job *job)
{
    struct buf text;
    symbol s = 0;

    /* Of a completing job Slurm lists nothing, or what it had of its other nodes. */
    if (!gres->n || gres->is_bad || !job_holds_resources(job->state) ||
        job->state.flags & JOB_COMPLETING)
        return 0;
    buf_init(&text, TEXT_MAX);
    put_rest(gres, section_text(gres->section, job->tres), &text);
    if (text.n && !text.over)
        s = symbols_put(&gres->section->symbols, buf_str(&text));
    buf_free(&text);
    return s;
}
