/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pushes what it is told to, for tests: push_probe URL [TIMEOUT_MS]. On its input, lines:
 *     put BYTES INSTANCE     and then so many bytes of text
 *     stats                  answered by "pushes=N failures=N replaced=N refused=N up=0|1
 * seconds=X" stop MS                deletes what was pushed within that time, and ends it */
#include "base/arena.h"
#include "base/num.h"
#include "push/pushgateway.h"

#include <inttypes.h>

static bool put(struct pusher *pusher, struct str rest)
{
    struct str number = str_cut(&rest, ' ');
    uint64_t n;
    char *text, *instance;
    bool ok;

    if (!num_get_u64(number, &n) || !rest.p)
        return false;
    text = heap_array(n, 1);
    instance = heap_str(rest);
    ok = fread(text, 1, n, stdin) == n;
    if (ok)
        pusher_put(pusher, instance, (struct str){ text, n });
    free(text);
    free(instance);
    return ok;
}

static void print_stats(struct pusher *pusher)
{
    struct push_stats stats;

    pusher_stats(pusher, &stats);
    printf("pushes=%" PRIu64 " failures=%" PRIu64 " replaced=%" PRIu64 " refused=%" PRIu64
           " up=%d seconds=%g\n",
           stats.pushes, stats.failures, stats.replaced, stats.refused, stats.is_up,
           stats.last_seconds);
    fflush(stdout);
}

/* False at the last line. */
static bool obey(struct pusher **pusher, struct str line)
{
    struct str word = str_cut(&line, ' ');
    uint64_t ms;

    if (str_eq(word, STR("put")))
        return put(*pusher, line);
    if (str_eq(word, STR("stats"))) {
        print_stats(*pusher);
        return true;
    }
    if (str_eq(word, STR("stop")) && num_get_u64(line, &ms))
        *pusher = pusher_stop(*pusher, (int64_t)ms * NS_PER_MS);
    return false;
}

int main(int argc, char **argv)
{
    uint64_t timeout_ms = 10000;
    struct push_config config = {
        .job = "probe",
        .retry_ns = NS_PER_SEC / 10,
        .max_backoff_ns = NS_PER_SEC / 2,
        .max_text = 16 << 20,
        .clock = &clock_real,
    };
    struct pusher *pusher;
    struct err err;
    char *line = NULL;
    size_t room = 0;
    ssize_t n;

    if (argc < 2 || argc > 3 || (argc == 3 && !num_get_u64(str_of(argv[2]), &timeout_ms)))
        return 2;
    config.url = argv[1];
    config.timeout_ns = (int64_t)timeout_ms * NS_PER_MS;
    config.log = log_new(STDERR_FILENO, LOG_DEBUG, &clock_real);
    if (pusher_start(&config, &pusher, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    while ((n = getline(&line, &room, stdin)) > 0 &&
           obey(&pusher, str_head(str_of(line), (size_t)n - 1)))
        continue;
    free(line);
    pusher_stop(pusher, 0);
    log_free(config.log);
    return 0;
}
