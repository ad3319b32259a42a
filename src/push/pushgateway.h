/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pushes an exposition to a Prometheus Pushgateway, on a thread of its own: the Pushgateway's
 * README, "API". The newest text for each group takes the place of one that waits; a failure is
 * tried again with back-off; nobody waits for it. */
#ifndef SONDE_PUSH_PUSHGATEWAY_H
#define SONDE_PUSH_PUSHGATEWAY_H

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"

struct pusher;

enum {
    PUSH_GROUPS = 64,    /* one for each slurmd of the host */
    PUSH_INSTANCE = 255, /* bytes of its name */
};

struct push_config {
    const char *url; /* "http://gateway:9091", with a path prefix if it has one; user:password@ is
                      * taken out of it and sent as basic auth. Whoever lists the processes of this
                      * machine sees a flag: better only user@, and the password in a file */
    const char *job; /* "jobs_exporter": /metrics/job/JOB/instance/INSTANCE */
    const char *password_file;        /* of the URL's user, read for each request; or NULL */
    const char *ca_file;              /* or NULL */
    int64_t timeout_ns;               /* for one request */
    int64_t retry_ns, max_backoff_ns; /* after the first failure, and at most; more than 0 */
    size_t max_text;
    const struct clock *clock;
    struct log *log;
};

/* -EINVAL for a URL or a job that cannot be used; -ENOENT with a sentence that names the package
 * when libcurl is not installed; what open(2) says of the password file. */
int pusher_start(const struct push_config *config, struct pusher **ret, struct err *err);

/* PUT of this text (text format 0.0.4, without times) for this instance, soon; copied. At most two
 * texts of an instance are held: the one that is being sent, and the newest. */
void pusher_put(struct pusher *pusher, const char *instance, struct str text);

/* Deletes what was pushed, each group once, within `within_ns` in all (a request that hangs may
 * take a second more to be ended); then ends. What could not be deleted is logged. Returns NULL.
 *
 * The Pushgateway keeps a group until somebody deletes it, and through its own restarts if it has a
 * file for that: of an agent that was killed, or that could not reach it at the end, the last
 * values stay and look alive. Only push_time_seconds{job,instance} tells their age. When that agent
 * starts again, its first push replaces them. Of a node that does not come back: curl -X DELETE
 * http://gateway:9091/metrics/job/jobs_exporter/instance/NODE A Pushgateway that was restarted
 * without such a file has the groups again at the next push. */
struct pusher *pusher_stop(struct pusher *pusher, int64_t within_ns);

/* Begins with that and returns at once: what is put from now on is dropped. pusher_stop then waits
 * for its end. NULL is allowed. */
void pusher_end(struct pusher *pusher, int64_t within_ns);

struct push_stats {
    uint64_t pushes, failures;    /* requests that were taken; that were not */
    uint64_t replaced;            /* texts that were never taken, a newer one came first */
    uint64_t refused;             /* texts that were never sent: over max_text, or of an instance
                                   * that is one too many or has too long a name */
    bool is_up;                   /* the last request was taken */
    double last_seconds;          /* what it took */
    int64_t last_success_wall_ns; /* 0: never */
};
void pusher_stats(struct pusher *pusher, struct push_stats *ret);

#endif
