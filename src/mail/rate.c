/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A line of the file: when, "m" for a mail or "s" for a summary, to whom. */
#include "mail/rate.h"

#include "base/buf.h"
#include "base/num.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#define NAME "sent"

enum {
    HOUR = 3600,
    MOST_FILE = 16 << 20,
    LARGE_FILE = 1 << 20, /* written anew, with what still counts */
};

static void set_time(struct rate *rate, struct rate_who *who, bool is_summary, int64_t time)
{
    if (is_summary) {
        who->summary_time = time;
        return;
    }
    if (!rate->per_hour)
        return;
    if (!who->sent_times)
        who->sent_times = heap_alloc(rate->per_hour * sizeof(*who->sent_times));
    who->sent_times[who->next] = time;
    who->next = (who->next + 1) % rate->per_hour;
}

static void take_line(struct rate *rate, struct str line, int64_t now)
{
    struct str time_text = str_cut(&line, ' '), kind = str_cut(&line, ' ');
    int64_t time;
    size_t who;

    /* A moment that is still to come is of a clock that went wrong. */
    if (!num_get_i64(time_text, &time) || time < now - HOUR || time > now || !line.n)
        return;
    who = rate_who(rate, line);
    set_time(rate, &rate->whos[who], str_eq(kind, STR("s")), time);
}

static void read_file(struct rate *rate, struct buf *text)
{
    int fd = openat(rate->directory, NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat status;
    ssize_t n = 0;
    char *room;

    if (fd < 0)
        return;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        while ((room = buf_room(text, 64 * 1024)) && (n = read(fd, room, 64 * 1024)) > 0)
            text->n += (size_t)n;
    close(fd);
}

static void put_line(struct buf *to, int64_t time, char kind, struct str address)
{
    buf_printf(to, "%" PRId64 " %c %.*s\n", time, kind, STR_ARG(address));
}

static void put_who(const struct rate *rate, const struct rate_who *who, int64_t now,
                    struct buf *to)
{
    if (who->summary_time > now - HOUR)
        put_line(to, who->summary_time, 's', who->address);
    for (size_t i = 0; who->sent_times && i < rate->per_hour; i++) {
        int64_t time = who->sent_times[(who->next + i) % rate->per_hour];

        if (time > now - HOUR)
            put_line(to, time, 'm', who->address);
    }
}

static int write_file(struct rate *rate, int flags, const char *name, struct str text)
{
    int fd = openat(rate->directory, name,
                    O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0640);
    ssize_t n;
    int code;

    if (fd < 0)
        return -errno;
    n = write(fd, text.p, text.n);
    code = n < 0 ? -errno : n < (ssize_t)text.n ? -ENOSPC : 0;
    close(fd);
    return code;
}

static int write_anew(struct rate *rate, int64_t now)
{
    struct buf text;
    int code;

    buf_init(&text, MOST_FILE);
    for (size_t i = 0; i < rate->n; i++)
        put_who(rate, &rate->whos[i], now, &text);
    code = write_file(rate, O_TRUNC, NAME ".new", buf_str(&text));
    if (code == 0 && renameat(rate->directory, NAME ".new", rate->directory, NAME) < 0)
        code = -errno;
    rate->file_bytes = text.n;
    buf_free(&text);
    return code;
}

void rate_open(struct rate *rate, int directory, uint64_t per_hour, int64_t now)
{
    struct buf text;

    *rate = (struct rate){ .directory = directory,
                           .per_hour = per_hour < RATE_MOST_PER_HOUR ? (size_t)per_hour
                                                                     : RATE_MOST_PER_HOUR };
    map_init(&rate->index, &rate->arena);
    buf_init(&text, MOST_FILE);
    read_file(rate, &text);
    for (struct str rest = buf_str(&text); rest.n;)
        take_line(rate, str_cut(&rest, '\n'), now);
    rate->file_bytes = text.n;
    buf_free(&text);
}

void rate_close(struct rate *rate)
{
    for (size_t i = 0; i < rate->n; i++)
        free(rate->whos[i].sent_times);
    free(rate->whos);
    map_free(&rate->index);
    arena_clear(&rate->arena);
}

size_t rate_who(struct rate *rate, struct str address)
{
    size_t place = map_index(&rate->index, address);

    if (place == rate->n) {
        rate->whos = heap_grow(rate->whos, rate->n, &rate->n_room, sizeof(*rate->whos));
        rate->whos[rate->n++] = (struct rate_who){ .address = rate->index.entries[place].key };
    }
    return place;
}

int64_t rate_next(const struct rate *rate, size_t who, int64_t now)
{
    const struct rate_who *one = &rate->whos[who];
    int64_t next = now;

    if (!rate->per_hour)
        return INT64_MAX;
    /* The place that comes next is that of the oldest. */
    if (one->sent_times && one->sent_times[one->next] > now - HOUR &&
        one->sent_times[one->next] <= now && one->sent_times[one->next] + HOUR > next)
        next = one->sent_times[one->next] + HOUR;
    return next;
}

int64_t rate_next_of_all(const struct rate *rate, int64_t now)
{
    return rate->minute == now / 60 && rate->n_in_minute >= RATE_ALL_PER_MINUTE
               ? (rate->minute + 1) * 60
               : now;
}

int rate_note(struct rate *rate, size_t who, bool is_summary, int64_t now, struct err *err)
{
    struct rate_who *one = &rate->whos[who];
    struct buf line;
    int code;

    if (rate->minute != now / 60) {
        rate->minute = now / 60;
        rate->n_in_minute = 0;
    }
    rate->n_in_minute++;
    set_time(rate, one, is_summary, now);
    buf_init(&line, 512);
    put_line(&line, now, is_summary ? 's' : 'm', one->address);
    rate->file_bytes += line.n;
    code = write_file(rate, O_APPEND, NAME, buf_str(&line));
    /* Also if it is somebody else's, who has sent mails by hand. */
    if (code < 0 || rate->file_bytes > LARGE_FILE)
        code = write_anew(rate, now);
    buf_free(&line);
    return code < 0 ? err_set(err, -code, "cannot note in the mail spool that a mail was sent: %s",
                              err_words(-code))
                    : 0;
}
