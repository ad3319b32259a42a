/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes log lines in logfmt, escaped, bounded and rate limited. */
#include "base/log.h"

#include "base/arena.h"
#include "base/buf.h"

#include <poll.h>

enum {
    MOST_MESSAGES = 64, /* distinct literals that are counted; more share the last place */
    MOST_A_MINUTE = 10,
    LONGEST_VALUE = 500,
    LONGEST_LINE = 4096, /* PIPE_BUF: what a pipe that can be written to takes whole */
    LONGEST_END = 96,    /* of a line, after its fields */
};

struct repeat {
    const char *msg;
    int64_t minute;
    unsigned written, left_out;
};

struct log {
    pthread_mutex_t lock;
    int fd;
    enum log_level least;
    const struct clock *clock;
    struct buf line;
    unsigned lost; /* lines that could not be written since the last one that could */
    struct repeat repeats[MOST_MESSAGES];
};

static const char *const level_names[] = { "debug", "info", "warn", "error" };

struct log *log_new(int fd, enum log_level least, const struct clock *clock)
{
    struct log *log = heap_alloc(sizeof(*log));

    pthread_mutex_init(&log->lock, NULL);
    log->fd = fd;
    log->least = least;
    log->clock = clock;
    buf_init(&log->line, LONGEST_LINE);
    return log;
}

struct log *log_free(struct log *log)
{
    if (log) {
        buf_free(&log->line);
        pthread_mutex_destroy(&log->lock);
        free(log);
    }
    return NULL;
}

void log_set_level(struct log *log, enum log_level least)
{
    pthread_mutex_lock(&log->lock);
    log->least = least;
    pthread_mutex_unlock(&log->lock);
}

bool log_level_parse(struct str name, enum log_level *ret)
{
    for (int i = LOG_DEBUG; i <= LOG_ERROR; i++) {
        if (str_eq_nocase(name, str_of(level_names[i]))) {
            *ret = (enum log_level)i;
            return true;
        }
    }
    if (str_eq_nocase(name, STR("warning"))) {
        *ret = LOG_WARN;
        return true;
    }
    return false;
}

/* True if the line may be written; *ret_left_out is what was held back before it. */
static bool allow(struct log *log, const char *msg, int64_t minute, unsigned *ret_left_out)
{
    struct repeat *repeat = log->repeats, *last = log->repeats + MOST_MESSAGES - 1;

    while (repeat < last && repeat->msg && repeat->msg != msg)
        repeat++;
    *ret_left_out = 0;
    if ((repeat->msg != msg && repeat != last) || repeat->minute != minute) {
        *ret_left_out = repeat->left_out;
        *repeat = (struct repeat){ .msg = msg, .minute = minute };
    }
    if (repeat->written == MOST_A_MINUTE) {
        repeat->left_out++;
        return false;
    }
    repeat->written++;
    return true;
}

static void put_time(struct buf *line, int64_t wall_ns)
{
    time_t seconds = wall_ns / NS_PER_SEC;
    struct tm tm;

    gmtime_r(&seconds, &tm);
    buf_printf(line, "ts=%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1,
               tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
               (int)(wall_ns % NS_PER_SEC / NS_PER_MS));
}

static bool is_plain(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] > '~' || s.p[i] == '"' || s.p[i] == '=' || s.p[i] == '\\')
            return false;
    return s.n > 0;
}

static void put_value(struct buf *line, struct str s)
{
    s = str_head(s, LONGEST_VALUE);
    if (is_plain(s))
        buf_put(line, s);
    else
        buf_json(line, s);
}

static void put_field(struct buf *line, const struct log_field *field)
{
    if (field->kind == LOG_FIELD_STR && !field->text.p)
        return;
    buf_printf(line, " %s=", field->key);
    switch (field->kind) {
    case LOG_FIELD_STR:
        put_value(line, field->text);
        break;
    case LOG_FIELD_INT:
        buf_i64(line, field->integer);
        break;
    case LOG_FIELD_DOUBLE:
        buf_double(line, field->real);
        break;
    }
}

/* As many as the line has room for: a value cut in its middle could be read as something else. */
static void put_fields(struct buf *line, const struct log_field *fields, size_t n_fields)
{
    for (size_t i = 0; i < n_fields; i++) {
        size_t before = line->n;

        put_field(line, &fields[i]);
        if (line->over || line->n > LONGEST_LINE - LONGEST_END) {
            line->n = before;
            line->over = false;
            buf_text(line, " cut=true");
            return;
        }
    }
}

void log_write(struct log *log, enum log_level level, const char *msg,
               const struct log_field *fields, size_t n_fields)
{
    int64_t now = clock_wall(log->clock);
    unsigned left_out;
    struct str line;

    pthread_mutex_lock(&log->lock);
    if (level < log->least || !allow(log, msg, now / (60 * NS_PER_SEC), &left_out)) {
        pthread_mutex_unlock(&log->lock);
        return;
    }
    buf_reset(&log->line);
    put_time(&log->line, now);
    buf_printf(&log->line, " level=%s msg=", level_names[level]);
    put_value(&log->line, str_of(msg));
    put_fields(&log->line, fields, n_fields);
    if (left_out)
        buf_printf(&log->line, " left_out=%u", left_out);
    if (log->lost)
        buf_printf(&log->line, " lost=%u", log->lost);
    buf_byte(&log->line, '\n');
    line = buf_str(&log->line);
    /* A reader that has stopped reading must not stop us. */
    if (poll(&(struct pollfd){ .fd = log->fd, .events = POLLOUT }, 1, 0) == 1 &&
        write(log->fd, line.p, line.n) > 0)
        log->lost = 0;
    else
        log->lost++;
    pthread_mutex_unlock(&log->lock);
}
