/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replaces many mails to one recipient by a summary. */
#include "mail/summary.h"

#include "base/json.h"
#include "base/shown.h"
#include "mail/letter.h"

#include <inttypes.h>

enum {
    MOST_TEXT = 512 * 1024, /* below the ceiling on a token of JSON */
    MOST_NAMES = 15 << 20,
    MOST_JOB = 32,
    MOST_STATES = 20, /* that are counted apart */
    SUBJECT_STATES = 4,
};

enum { JOB_WIDTH = 14, NAME_WIDTH = 24, STATE_WIDTH = 14, TIME_WIDTH = 11 };

void summary_begin(struct summary_maker *maker)
{
    *maker = (struct summary_maker){ 0 };
    map_init(&maker->states, &maker->arena);
    buf_init(&maker->rows, MOST_TEXT);
    buf_init(&maker->names, MOST_NAMES);
}

/* What became of it, where that is known, else what happened. */
static struct str state_of(const struct mail_entry *entry)
{
    bool has_ended = str_eq(entry->event, STR("Ended")) || str_eq(entry->event, STR("Failed"));

    if (has_ended && entry->state.n)
        return entry->state;
    return entry->event.n ? entry->event : STR("unknown");
}

static void count_state(struct summary_maker *maker, struct str state)
{
    void **place = map_get(&maker->states, state);

    if (!place)
        place =
            map_put(&maker->states, maker->states.n < MOST_STATES ? state : STR("something else"));
    *place = (void *)((uintptr_t)*place + 1);
}

static void put_cell(struct buf *to, struct str text, size_t width)
{
    size_t n = shown_put_cut(to, text, width);

    while (n++ < width + 2)
        buf_byte(to, ' ');
}

static void put_row(struct buf *to, struct str job, struct str name, struct str state,
                    struct str elapsed, struct str exit_code)
{
    put_cell(to, job, JOB_WIDTH);
    put_cell(to, name, NAME_WIDTH);
    put_cell(to, state, STATE_WIDTH);
    if (exit_code.n)
        put_cell(to, elapsed, TIME_WIDTH);
    shown_put_cut(to, exit_code.n ? exit_code : elapsed, TIME_WIDTH);
    buf_byte(to, '\n');
}

static void note_cluster(struct summary_maker *maker, struct str cluster)
{
    if (maker->n == 0)
        maker->cluster = arena_str(&maker->arena, cluster);
    else if (!str_eq(maker->cluster, cluster))
        maker->has_clusters = true;
}

void summary_add(struct summary_maker *maker, const char *file, const struct mail_entry *entry)
{
    struct buf job;

    note_cluster(maker, entry->cluster);
    count_state(maker, state_of(entry));
    if (maker->n < SUMMARY_ROWS) {
        buf_init(&job, MOST_JOB);
        letter_put_job(&job, entry);
        put_row(&maker->rows, buf_str(&job), entry->name, state_of(entry), entry->run_time,
                entry->exit_code);
        buf_free(&job);
    }
    buf_text(&maker->names, maker->n ? "," : "");
    buf_json(&maker->names, str_of(file));
    maker->n++;
}

static uintptr_t count_of(const struct summary_maker *maker, size_t i)
{
    return (uintptr_t)maker->states.entries[i].value;
}

static void put_subject(struct buf *to, const struct summary_maker *maker)
{
    uintptr_t n_shown = 0;

    buf_printf(to, "%zu mail%s about jobs", maker->n, maker->n == 1 ? "" : "s");
    if (maker->cluster.n && !maker->has_clusters) {
        buf_text(to, " on ");
        shown_put(to, maker->cluster);
    }
    for (size_t i = 0; i < maker->states.n && i < SUBJECT_STATES; i++) {
        buf_printf(to, "%s%" PRIuPTR " ", i ? ", " : ": ", count_of(maker, i));
        shown_put(to, maker->states.entries[i].key);
        n_shown += count_of(maker, i);
    }
    if (n_shown < maker->n)
        buf_printf(to, ", %zu other", maker->n - (size_t)n_shown);
}

static void put_text(struct buf *to, const struct summary_maker *maker)
{
    buf_printf(to,
               "There were more mails for you about jobs than are sent one by one. %s %zu of "
               "them:\n\n",
               maker->n == 1 ? "This is" : "These are", maker->n);
    for (size_t i = 0; i < maker->states.n; i++) {
        buf_printf(to, "%8" PRIuPTR "  ", count_of(maker, i));
        shown_put(to, maker->states.entries[i].key);
        buf_byte(to, '\n');
    }
    buf_byte(to, '\n');
    put_row(to, STR("JOB"), STR("NAME"), STR("STATE"), STR("RUN TIME"), STR("EXIT CODE"));
    buf_put(to, buf_str(&maker->rows));
    if (maker->n > SUMMARY_ROWS)
        buf_printf(to, "and %zu more\n", maker->n - SUMMARY_ROWS);
    buf_text(to, "\nsonde report JOB tells more of each.\n");
}

void summary_end(struct summary_maker *maker, struct str to, int64_t now, struct buf *document)
{
    struct buf text;

    buf_init(&text, MOST_TEXT);
    buf_printf(document, "{\"written\":%" PRId64 ",\"to\":", now);
    buf_json(document, to);
    buf_text(document, ",\"subject\":");
    put_subject(&text, maker);
    buf_json(document, buf_str(&text));
    buf_reset(&text);
    buf_text(document, ",\"text\":");
    put_text(&text, maker);
    buf_json(document, buf_str(&text));
    buf_text(document, ",\"files\":[");
    buf_put(document, buf_str(&maker->names));
    buf_text(document, "]}\n");
    buf_free(&text);
    buf_free(&maker->rows);
    buf_free(&maker->names);
    map_free(&maker->states);
    arena_clear(&maker->arena);
}

/* --- reading --- */

static int refuse(struct err *err)
{
    return err_set(err, EBADMSG, "it is no summary");
}

static int take_files(struct json *json, struct arena *arena, struct summary *summary,
                      struct err *err)
{
    enum json_event event = json_next(json);
    struct str *files = NULL;
    size_t n = 0, n_room = 0;

    if (event != JSON_ARRAY || summary->files)
        return refuse(err);
    while ((event = json_next(json)) == JSON_STRING) {
        files = heap_grow(files, n, &n_room, sizeof(*files));
        files[n++] = arena_str(arena, json_text(json));
    }
    if (files)
        arena_adopt(arena, files);
    summary->files = files;
    summary->n_files = n;
    return event == JSON_ARRAY_END ? 0 : refuse(err);
}

static int take_member(struct json *json, struct arena *arena, struct summary *summary,
                       struct err *err)
{
    const struct {
        struct str key, *place;
    } texts[] = { { STR("to"), &summary->to },
                  { STR("subject"), &summary->subject },
                  { STR("text"), &summary->text } };
    struct str key = json_text(json);

    for (size_t i = 0; i < COUNT(texts); i++)
        if (str_eq(key, texts[i].key)) {
            if (json_next(json) != JSON_STRING)
                return refuse(err);
            *texts[i].place = arena_str(arena, json_text(json));
            return 0;
        }
    if (str_eq(key, STR("files")))
        return take_files(json, arena, summary, err);
    if (str_eq(key, STR("written")))
        return json_next(json) == JSON_NUMBER && json_i64(json, &summary->written_time)
                   ? 0
                   : refuse(err);
    json_skip(json);
    return 0;
}

int summary_read(struct str document, struct arena *arena, struct summary *ret, struct err *err)
{
    struct json *json = json_new();
    enum json_event event;
    int code;

    *ret = (struct summary){ .to = STR(""), .subject = STR(""), .text = STR("") };
    json_feed(json, document);
    json_finish(json);
    code = json_next(json) == JSON_OBJECT ? 0 : refuse(err);
    while (code == 0 && (event = json_next(json)) == JSON_KEY)
        code = take_member(json, arena, ret, err);
    if (code == 0 && (event != JSON_OBJECT_END || json_next(json) != JSON_END || !ret->to.n))
        code = refuse(err);
    json_free(json);
    return code;
}
