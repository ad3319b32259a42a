/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options and start-up that all commands which serve HTTP share. */
#include "cmd/serve.h"

#include <pthread.h>
#include <sys/resource.h>

#define SETTING(member) offsetof(struct serve_options, member)

static const struct option serve_rows[] = {
    { "web.listen-address", OPTION_LIST, SETTING(listen), "ADDRESS", NULL, NULL, NULL, "Web",
      "Where to listen: host:port, :port for every interface, or unix:/path. With "
      "sockets passed by systemd, those are used instead." },
    { "web.telemetry-path", OPTION_STRING, SETTING(telemetry_path), "PATH", "/metrics", NULL, NULL,
      "Web", "Path under which the metrics are served." },
    { "web.config.file", OPTION_STRING, SETTING(web_config), "FILE", NULL, NULL, NULL, "Web",
      "TLS, client certificates and passwords, in the format of Prometheus's exporter-toolkit. "
      "Read again when it changes." },
    { "web.max-connections", OPTION_UINT, SETTING(max_connections), "N", NULL, NULL, NULL, "Web",
      "Connections held open at once. Beyond it, sonde closes one that makes no progress, first "
      "of an address that has more than a quarter of them." },
    { "metrics.exclude", OPTION_STRING, SETTING(exclude), "REGEX", NULL, NULL, NULL, "Metrics",
      "Metrics to leave out: every one whose name has a match for this." },
    { "log.level", OPTION_CHOICE, SETTING(log_level), "LEVEL", "info", "LOGLEVEL",
      "debug info warn warning error", "Log",
      "Least level of the lines written to standard error." },
};

_Static_assert(COUNT(serve_rows) == SERVE_OPTIONS, "the header says how many rows there are");

void serve_options_rows(size_t offset, const char *address, const char *max_connections,
                        struct option rows[SERVE_OPTIONS])
{
    for (size_t i = 0; i < SERVE_OPTIONS; i++) {
        rows[i] = serve_rows[i];
        if (rows[i].offset == SETTING(listen))
            rows[i].initial = address;
        if (rows[i].offset == SETTING(max_connections))
            rows[i].initial = max_connections;
        rows[i].offset += offset;
    }
}

int serve_options_check(const struct serve_options *options, struct err *err)
{
    if (!str_starts(options->telemetry_path, STR("/")))
        return err_set(err, EINVAL, "--web.telemetry-path must begin with /");
    if (options->max_connections < 1 || options->max_connections > 100000)
        return err_set(err, EINVAL, "--web.max-connections must be from 1 to 100000");
    return 0;
}

const char *serve_options_changed(const struct serve_options *old, const struct serve_options *new)
{
    if (!option_list_equal(old->listen, new->listen))
        return "web.listen-address";
    if (!str_eq(old->web_config, new->web_config))
        return "web.config.file";
    if (!str_eq(old->telemetry_path, new->telemetry_path))
        return "web.telemetry-path";
    if (old->max_connections != new->max_connections)
        return "web.max-connections";
    return NULL;
}

int serve_exclude(const struct serve_options *options, struct pattern **ret, struct err *err)
{
    if (!options->exclude.n) {
        *ret = NULL;
        return 0;
    }
    if (pattern_new(options->exclude, ret, err) < 0)
        return err_prefix(err, "--metrics.exclude");
    return 0;
}

family_set serve_excluded(const struct pattern *exclude, const struct family *families, size_t n)
{
    family_set excluded = 0;

    for (size_t i = 0; i < n && exclude; i++)
        if (pattern_finds(exclude, str_of(families[i].name)))
            excluded |= FAMILY_BIT(i);
    return excluded;
}

struct option serve_collector_row(const char *name, const char *help, bool is_on, size_t offset,
                                  struct serve_collector_texts *texts)
{
    snprintf(texts->name, sizeof(texts->name), "collector.%s", name);
    snprintf(texts->help, sizeof(texts->help), "Give %s.", help);
    return (struct option){
        .name = texts->name,
        .type = OPTION_BOOL,
        .offset = offset,
        .initial = is_on ? "true" : "false",
        .group = "Collectors",
        .help = texts->help,
    };
}

struct http_config serve_http_config(const struct serve_options *options, const struct clock *clock,
                                     struct log *log)
{
    return (struct http_config){
        .listen = options->listen.items,
        .n_listen = options->listen.n,
        .web_config = options->web_config.n ? options->web_config.p : NULL,
        .max_connections = (unsigned)options->max_connections,
        .workers = 2,
        /* Who waits there keeps a connection: there must be some left for scrapes. */
        .queue = (unsigned)options->max_connections / 4 + 1,
        .request_ns = 10 * NS_PER_SEC,
        .response_ns = 60 * NS_PER_SEC,
        .max_header = 16 * 1024,
        .clock = clock,
        .log = log,
    };
}

void serve_use_log_level(struct log *log, const struct serve_options *options)
{
    enum log_level level = LOG_INFO;

    log_level_parse(options->log_level, &level);
    log_set_level(log, level);
}

void serve_say_where(const char *command, const struct http_server *server, struct str path)
{
    const struct str unix_socket = STR("unix:");
    const char *address;

    for (size_t i = 0; (address = http_address(server, i)); i++)
        printf("%s: %s%s%.*s\n", command, address,
               str_starts(str_of(address), unix_socket) ? " " : "", STR_ARG(path));
    fflush(stdout);
}

/* Every connection is a descriptor: ask for as many as the system gives. */
static void raise_fd_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

void serve_prepare(sigset_t *ret_signals)
{
    sigemptyset(ret_signals);
    sigaddset(ret_signals, SIGINT);
    sigaddset(ret_signals, SIGTERM);
    sigaddset(ret_signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, ret_signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    raise_fd_limit();
}

int serve_exit_status(int code)
{
    return code == 0 ? 0 : code == -EINVAL ? 2 : 1;
}
