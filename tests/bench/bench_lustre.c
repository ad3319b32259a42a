/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a look at Lustre costs sonde: the jobs as squeue tells them, Prometheus's three answers
 * about as many ids, the join, and the segments. prometheus-cluster-exporter takes 52.3 s of CPU
 * for 100,000 jobs, 0.37 s for 10,000. The floor is to find the ends of the same bytes' lines. */
#include "snapshot/publish.h"
#include "source/lustre.h"

#include "bench.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 7, ROOM = 64 << 20, ACCOUNTS = 500, USERS = 2000 };

static const double peer_seconds = 52.263; /* 100,000 jobs, on the machine of the reference */

struct input {
    size_t jobs;
    char file[64]; /* what squeue would print */
    struct buf squeue, answers[3];
    pid_t server;
    uint16_t port;
    struct source *slurm, *lustre;
    struct users *users;
    struct edition *edition; /* of the last look */
    struct bench_run look, floor;
};

static const char *const words[] = { "lustre_job_stats_total", "lustre_job_read_bytes_total",
                                     "lustre_job_write_bytes_total" };

static void make_answer(struct input *input, size_t which)
{
    struct buf *to = &input->answers[which];

    buf_init(to, ROOM);
    buf_put(to, STR("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["));
    for (size_t i = 0; i < input->jobs; i++)
        buf_printf(to,
                   "%s{\"metric\":{\"jobid\":\"%zu\"%s},\"value\":[1763294400.123,\"%zu.%03zu\"]}",
                   i ? "," : "", 1000000 + i, which ? "" : ",\"target\":\"scratch-MDT0000\"",
                   1000 + i * 7919 % 100000, i % 1000);
    buf_put(to, STR("]}}"));
}

static void make_squeue(struct input *input)
{
    FILE *file;

    buf_init(&input->squeue, ROOM);
    for (size_t i = 0; i < input->jobs; i++)
        buf_printf(&input->squeue, "%zu account%zu user%zu\n", 1000000 + i, i % ACCOUNTS,
                   i % USERS);
    snprintf(input->file, sizeof(input->file), "/tmp/sonde-bench-lustre.XXXXXX");
    file = fdopen(mkstemp(input->file), "w");
    if (!file || fwrite(input->squeue.p, input->squeue.n, 1, file) != 1 || fclose(file) != 0)
        bench_give_up("cannot write %s", input->file);
}

static void send_all(int fd, struct str text)
{
    while (text.n) {
        ssize_t n = write(fd, text.p, text.n);

        if (n <= 0)
            return;
        text = str_skip(text, (size_t)n);
    }
}

/* One request after the other over one connection. */
static void serve_connection(const struct input *input, int fd)
{
    char request[8192];
    size_t n = 0;
    ssize_t got;

    while ((got = read(fd, request + n, sizeof(request) - 1 - n)) > 0) {
        char head[200];

        n += (size_t)got;
        request[n] = '\0';
        if (!strstr(request, "\r\n\r\n"))
            continue;
        for (size_t i = 0; i < COUNT(words); i++) {
            if (!strstr(request, words[i]))
                continue;
            snprintf(head, sizeof(head),
                     "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
                     "%zu\r\n\r\n",
                     input->answers[i].n);
            send_all(fd, str_of(head));
            send_all(fd, buf_str(&input->answers[i]));
        }
        n = 0;
    }
    close(fd);
}

/* In a process of its own, whose time is not ours. */
static void start_server(struct input *input)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 8) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) < 0)
        bench_give_up("cannot listen");
    input->port = ntohs(address.sin_port);
    input->server = fork();
    if (input->server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            serve_connection(input, accept(fd, NULL, NULL));
    }
    close(fd);
}

static struct section *read_jobs(void *ctx, int64_t deadline_ns, const atomic_bool *cancelled,
                                 struct err *err)
{
    struct input *input = ctx;
    char warning[SOURCE_WARNING];
    struct section *section;

    (void)cancelled;
    input->slurm->depth = SOURCE_OWNERS;
    if (input->slurm->class->read(input->slurm, KIND_JOBS, deadline_ns, &section, warning, err) < 0)
        return NULL;
    section->mono_ns = clock_mono(&clock_real);
    return section;
}

static void open_sources(struct input *input)
{
    struct source_settings slurm = { .spec = STR("cli"), .max_answer = ROOM };
    struct lustre_settings lustre = { .time_range = STR("1m"),
                                      .query_timeout_ns = 60 * NS_PER_SEC,
                                      .jobs = read_jobs,
                                      .ctx = input };
    char command[100], url[60];
    struct err err;

    snprintf(command, sizeof(command), "cat %s", input->file);
    slurm.commands[KIND_JOBS] = str_of(command);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", input->port);
    lustre.prometheus = (struct prometheus_settings){ .url = str_of(url), .max_answer = ROOM };
    input->users = lustre.users = users_new(&users_system, &clock_real);
    if (source_open(&slurm, &clock_real, &input->slurm, &err) < 0 ||
        source_open_lustre(&lustre, &clock_real, &input->lustre, &err) < 0)
        bench_give_up("%s", err.text);
    input->lustre->depth = SOURCE_PLAIN;
}

static void look(void *ctx)
{
    static const struct publish_config config = {
        .collectors = (collector_set)-1,
        .max_segment = 64 << 20,
        .clock = &clock_real,
    };
    struct input *input = ctx;
    char warning[SOURCE_WARNING];
    struct section *section;
    struct err err;

    if (input->lustre->class->read(input->lustre, KIND_LUSTRE,
                                   clock_mono(&clock_real) + 300 * NS_PER_SEC, &section, warning,
                                   &err) < 0)
        bench_give_up("%s", err.text);
    if (section->lustre.n != input->jobs || section->lustre.unknown_jobs)
        bench_give_up("%zu ids were read instead of %zu", section->lustre.n, input->jobs);
    edition_unref(input->edition);
    input->edition = edition_new(&config, section, FORMAT_BIT(METRIC_TEXT));
    section_unref(section);
}

static size_t count(struct str text, char what)
{
    size_t n = 0;

    for (const char *at = text.p; (at = memchr(at, what, text.n - (size_t)(at - text.p))); at++)
        n++;
    return n;
}

static void floor_of(void *ctx)
{
    const struct input *input = ctx;
    size_t n = count(buf_str(&input->squeue), '\n');

    for (size_t i = 0; i < COUNT(words); i++)
        n += count(buf_str(&input->answers[i]), '}');
    if (n < 4 * input->jobs)
        bench_give_up("the answers are too short");
}

static void measure(struct input *input)
{
    struct bench_run runs[] = { { .run = look, .ctx = input }, { .run = floor_of, .ctx = input } };

    make_squeue(input);
    for (size_t i = 0; i < COUNT(words); i++)
        make_answer(input, i);
    start_server(input);
    open_sources(input);
    bench_measure(runs, COUNT(runs), ROUNDS);
    input->look = runs[0];
    input->floor = runs[1];
    edition_unref(input->edition);
    source_close(input->lustre);
    source_close(input->slurm);
    users_free(input->users);
    kill(input->server, SIGKILL);
    waitpid(input->server, NULL, 0);
    unlink(input->file);
    for (size_t i = 0; i < COUNT(words); i++)
        buf_free(&input->answers[i]);
    buf_free(&input->squeue);
}

int main(int argc, char **argv)
{
    static struct input small = { .jobs = 10000 }, large = { .jobs = 100000 };

    bench_begin(argc, argv);
    measure(&small);
    measure(&large);
    bench_row(&(struct bench_row){ "lustre: 10,000 jobs, to finding the lines", "ms",
                                   small.look.median_seconds * 1e3,
                                   small.floor.median_seconds * 1e3, BENCH_NO_GOAL, 0 });
    bench_row(&(struct bench_row){ "lustre: 100,000 jobs, to the peer elsewhere", "ms",
                                   large.look.median_seconds * 1e3, peer_seconds * 1e3,
                                   BENCH_RATIO_AT_MOST, 1 / 500.0 });
    bench_row(&(struct bench_row){ "lustre: 100,000 jobs, to 10 times 10,000", "ms",
                                   large.look.best_seconds * 1e3, small.look.best_seconds * 1e4,
                                   BENCH_RATIO_AT_MOST, 1.5 });
    return 0;
}
