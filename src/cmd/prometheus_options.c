/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options that name a Prometheus and how to sign in to it. */
#include "cmd/prometheus_options.h"

#include "base/clock.h"

#define SETTING(member) offsetof(struct prometheus_options, member)

static const struct option prometheus_rows[] = {
    { "prometheus.url", OPTION_STRING, SETTING(url), "URL", NULL, NULL, NULL, "Prometheus",
      "The Prometheus to ask, or what answers as one (Thanos, Mimir, VictoriaMetrics): "
      "http://HOST:9090, also with a path behind it." },
    { "prometheus.user", OPTION_STRING, SETTING(user), "NAME", NULL, NULL, NULL, "Prometheus",
      "The user to ask as, where it wants one." },
    { "prometheus.password-file", OPTION_STRING, SETTING(password_file), "FILE", NULL, NULL, NULL,
      "Prometheus", "A file with the user's password. Read again at each question." },
    { "prometheus.bearer-file", OPTION_STRING, SETTING(bearer_file), "FILE", NULL, NULL, NULL,
      "Prometheus", "A file with a bearer token, in place of a user. Likewise." },
    { "prometheus.ca-file", OPTION_STRING, SETTING(ca_file), "FILE", NULL, NULL, NULL, "Prometheus",
      "Certificates to trust for https, if not the system's." },
    { "prometheus.timeout", OPTION_DURATION, SETTING(timeout_ns), "DURATION", "15s", NULL, NULL,
      "Prometheus", "It has this long to answer one question." },
    { "prometheus.max-answer", OPTION_BYTES, SETTING(max_answer), "BYTES", "256M", NULL, NULL,
      "Prometheus", "An answer that is longer is not read to its end." },
};
_Static_assert(COUNT(prometheus_rows) == PROMETHEUS_OPTIONS, "as many rows as the header says");

static const int64_t most_timeout_ns = 3600 * NS_PER_SEC;

void prometheus_options_rows(size_t offset, struct option rows[PROMETHEUS_OPTIONS])
{
    for (size_t i = 0; i < PROMETHEUS_OPTIONS; i++) {
        rows[i] = prometheus_rows[i];
        rows[i].offset += offset;
    }
}

struct option prometheus_matcher_row(size_t offset)
{
    return (struct option){
        .name = "prometheus.match",
        .type = OPTION_LIST,
        .offset = offset,
        .value = "MATCHER",
        .group = "Prometheus",
        .help =
            "PromQL matchers that every question about a job has, as cluster=\"beluga\"; of one "
            "cluster of several, with its name in front: beluga=cluster=\"beluga\".",
    };
}

int prometheus_matchers_read(const struct option_list *list, struct arena *arena,
                             struct series_matcher **ret, struct err *err)
{
    int code = 0;

    *ret = ARENA_ARRAY(arena, struct series_matcher, list->n);
    for (size_t i = 0; i < list->n && code == 0; i++)
        code = series_matcher_read(list->items[i], &(*ret)[i], err);
    return code < 0 ? err_prefix(err, "--prometheus.match") : 0;
}

int prometheus_options_check(const struct prometheus_options *options, struct err *err)
{
    if (options->timeout_ns <= 0 || options->timeout_ns > most_timeout_ns)
        return err_set(err, EINVAL, "--prometheus.timeout must be more than 0 and at most 1h");
    return 0;
}

struct prometheus_settings prometheus_options_settings(const struct prometheus_options *options)
{
    return (struct prometheus_settings){
        .url = options->url,
        .user = options->user,
        .password_file = options->password_file,
        .bearer_file = options->bearer_file,
        .ca_file = options->ca_file,
        .max_answer = options->max_answer,
        .timeout_ms = (options->timeout_ns + NS_PER_MS - 1) / NS_PER_MS,
    };
}

bool prometheus_options_equal(const struct prometheus_options *a,
                              const struct prometheus_options *b)
{
    return str_eq(a->url, b->url) && str_eq(a->user, b->user) &&
           str_eq(a->password_file, b->password_file) && str_eq(a->bearer_file, b->bearer_file) &&
           str_eq(a->ca_file, b->ca_file) && a->timeout_ns == b->timeout_ns &&
           a->max_answer == b->max_answer;
}
