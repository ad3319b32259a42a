/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Remembers since when no mail could be sent, and when to try again. */
#include "mail/outage.h"

#include "base/num.h"

#include <fcntl.h>
#include <inttypes.h>

#define NAME "outage"

enum { SHORTEST_PAUSE = 15, LONGEST_PAUSE = 15 * 60 }; /* doubled each time */

static int64_t now_of(const struct outage *outage)
{
    return clock_wall(outage->clock) / NS_PER_SEC;
}

static void set_at(struct outage *outage, struct str id)
{
    snprintf(outage->at, sizeof(outage->at), "%.*s", STR_ARG(id));
}

void outage_open(struct outage *outage, int directory, const struct clock *clock)
{
    int fd = openat(directory, NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char text[100];
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));
    struct str id = str_trim((struct str){ text, n > 0 ? (size_t)n : 0 });
    struct str since = str_cut(&id, ' ');

    *outage = (struct outage){ .directory = directory, .clock = clock };
    /* A moment that is still to come is of a clock that went wrong. */
    if (!num_get_i64(since, &outage->since) || outage->since > now_of(outage))
        outage->since = 0;
    else
        set_at(outage, id);
    if (fd >= 0)
        close(fd);
}

/* If it cannot be written, the outage counts from the next start on. */
static void keep(const struct outage *outage)
{
    int fd = openat(outage->directory, NAME,
                    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0640);

    if (fd >= 0) {
        dprintf(fd, "%" PRId64 " %s\n", outage->since, outage->at);
        close(fd);
    }
}

int64_t outage_note(struct outage *outage, struct str id)
{
    if (!outage->since)
        outage->since = now_of(outage);
    set_at(outage, id);
    keep(outage);
    outage->pause = outage->pause ? 2 * outage->pause : SHORTEST_PAUSE;
    if (outage->pause > LONGEST_PAUSE)
        outage->pause = LONGEST_PAUSE;
    outage->paused_until = clock_mono(outage->clock) / NS_PER_SEC + outage->pause;
    return outage->pause;
}

bool outage_end(struct outage *outage)
{
    bool was_one = outage->since;

    if (was_one)
        unlinkat(outage->directory, NAME, 0);
    outage->since = outage->pause = 0;
    outage->at[0] = '\0';
    return was_one;
}

bool outage_is_paused(const struct outage *outage)
{
    return clock_mono(outage->clock) / NS_PER_SEC < outage->paused_until;
}
