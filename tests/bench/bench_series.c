/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a report costs sonde beside what Prometheus does for it: all queries about a run of a day
 * that was scraped every 15 s, and their answers, with plots and without. The server says again
 * what a Prometheus would, at once. The reference is to ask as many queries that have no answer. */
#include "base/buf.h"
#include "base/clock.h"
#include "report/facts_series.h"

#include "bench.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BEGIN = 1700000000,
    DAY = 86400,
    STEP = 87,
    POINTS = 994,
    POINTS_OF_MANY = 700,
    GPUS = 4,
    ROUNDS = 21
};

enum answer { LOOK, NUMBERS, TERMS, NODE_GPUS, NODE_PLOT, GPU_PLOT, NOTHING, ANSWERS };

struct input {
    size_t nodes;
    struct buf answer[ANSWERS];
    uint16_t port;
    struct prometheus *prometheus;
    bool wants_plots;
};

/* Of which query it is, by a word of it; the first that is there counts. */
static const struct {
    const char *word;
    enum answer answer;
} words[] = {
    { "recent_samples", LOOK },         { "memory_seen_bytes", NUMBERS },
    { "lustre_opens", TERMS },          { "gpu_energy_joules", NODE_GPUS },
    { "sonde_job_gpu_info", GPU_PLOT }, { "query_range", NODE_PLOT },
};

static const char *const numbers[] = {
    "cpus",           "memory_bytes",      "gpus",           "cpu_seconds",       "user_seconds",
    "system_seconds", "read_bytes",        "written_bytes",  "read_calls",        "write_calls",
    "files_peak",     "memory_peak_bytes", "processes_peak", "memory_seen_bytes", "swap_peak_bytes",
    "threads_peak",   "oom_kills",         "limit_hits",     "throttled_seconds",
};

static const char *const gpu_numbers[] = {
    "gpu_utilization_ratio_min",   "gpu_utilization_ratio_mean", "gpu_utilization_ratio_max",
    "gpu_memory_used_bytes_min",   "gpu_memory_used_bytes_mean", "gpu_memory_used_bytes_max",
    "gpu_power_watts_min",         "gpu_power_watts_mean",       "gpu_power_watts_max",
    "gpu_temperature_celsius_max", "gpu_memory_bytes",           "gpu_energy_joules",
};

static void begin(struct buf *to, const char *type)
{
    buf_init(to, 64 << 20);
    buf_printf(to, "{\"status\":\"success\",\"data\":{\"resultType\":\"%s\",\"result\":[", type);
}

static void put_sample(struct buf *to, const char *fact, const char *labels, double value)
{
    if (to->p[to->n - 1] != '[')
        buf_byte(to, ',');
    buf_printf(to, "{\"metric\":{\"fact\":\"%s\"%s},\"value\":[%d,\"", fact, labels, BEGIN + DAY);
    buf_double(to, value);
    buf_text(to, "\"]}");
}

static void put_line(struct buf *to, const char *labels, int points)
{
    if (to->p[to->n - 1] != '[')
        buf_byte(to, ',');
    buf_printf(to, "{\"metric\":{%s},\"values\":[", labels);
    for (int i = 0; i < points; i++)
        buf_printf(to, "%s[%d,\"%d.%d\"]", i ? "," : "", BEGIN + i * STEP, 3 + i % 7,
                   1234567 + i * 7919);
    buf_text(to, "]}");
}

/* Of few members each has a line; of many all together have three, of fewer points. */
static void put_lines(struct buf *to, size_t nodes, size_t gpus)
{
    char labels[100];

    begin(to, "matrix");
    if (nodes * gpus > PLOT_LINES_MAX) {
        put_line(to, "\"fact\":\"median\"", POINTS_OF_MANY);
        put_line(to, "\"fact\":\"lowest\"", POINTS_OF_MANY);
        put_line(to, "\"fact\":\"highest\"", POINTS_OF_MANY);
        return;
    }
    for (size_t i = 0; i < nodes * gpus; i++) {
        snprintf(labels, sizeof(labels), "\"node\":\"cn%04zu\",\"gpu\":\"%zu\"", i / gpus,
                 i % gpus);
        put_line(to, labels, POINTS);
    }
}

static void put_node(struct input *input, size_t node)
{
    char labels[100];

    snprintf(labels, sizeof(labels), ",\"node\":\"cn%04zu\"", node);
    for (size_t i = 0; i < COUNT(numbers); i++)
        put_sample(&input->answer[NUMBERS], numbers[i], labels, 1234567.25 + (double)(i * node));
    for (size_t gpu = 0; gpu < GPUS; gpu++) {
        snprintf(labels, sizeof(labels), ",\"node\":\"cn%04zu\",\"gpu\":\"%zu\"", node, gpu);
        put_sample(&input->answer[LOOK], "gpu", labels, 1);
        for (size_t i = 0; i < COUNT(gpu_numbers); i++)
            put_sample(&input->answer[NODE_GPUS], gpu_numbers[i], labels, 0.25 + (double)i);
    }
}

static void put_process(struct buf *to, size_t i)
{
    char labels[60];

    snprintf(labels, sizeof(labels), ",\"process\":\"program%zu\"", i);
    put_sample(to, "process_threads", labels, 12);
    put_sample(to, "process_cpu_seconds", labels, 345.5);
}

static void make_answers(struct input *input)
{
    for (size_t i = 0; i < ANSWERS; i++)
        if (i != NODE_PLOT && i != GPU_PLOT)
            begin(&input->answer[i], "vector");
    put_sample(&input->answer[LOOK], "nodes", "", (double)input->nodes);
    put_sample(&input->answer[LOOK], "samples", "", 5760);
    for (size_t i = 0; i < input->nodes; i++)
        put_node(input, i);
    for (size_t i = 0; i < 20; i++)
        put_process(&input->answer[TERMS], i);
    put_lines(&input->answer[NODE_PLOT], input->nodes, 1);
    put_lines(&input->answer[GPU_PLOT], input->nodes, GPUS);
    for (size_t i = 0; i < ANSWERS; i++)
        buf_text(&input->answer[i], "]}}");
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

static const struct buf *choose(const struct input *input, const char *request)
{
    for (size_t i = 0; i < COUNT(words); i++)
        if (strstr(request, words[i].word))
            return &input->answer[words[i].answer];
    return &input->answer[NOTHING];
}

/* One request after the other over one connection. */
static void serve_connection(const struct input *input, int fd)
{
    static char request[256 << 10];
    size_t n = 0;
    ssize_t got;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));

    while ((got = read(fd, request + n, sizeof(request) - 1 - n)) > 0) {
        const struct buf *answer;
        char head[200];

        n += (size_t)got;
        request[n] = '\0';
        if (!strstr(request, "\r\n\r\n"))
            continue;
        answer = choose(input, request);
        snprintf(head, sizeof(head),
                 "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                 answer->n);
        send_all(fd, str_of(head));
        send_all(fd, buf_str(answer));
        n = 0;
    }
    close(fd);
}

/* In a process of its own. */
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
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            serve_connection(input, accept(fd, NULL, NULL));
    }
    close(fd);
}

static void take(struct input *input)
{
    struct job_row row = { .gpus = MODEL_UNKNOWN_U64 };
    const struct series_question question = {
        .prometheus = input->prometheus,
        .matcher = STR("cluster=\"a\""),
        .wants_plots = input->wants_plots,
        .deadline_ns = clock_mono(&clock_real) + 60 * NS_PER_SEC,
    };
    struct arena arena = { 0 };
    struct job_facts facts;
    struct err err;

    job_record_clear(&row.record);
    row.record.id = 4711;
    row.record.start_time = BEGIN;
    row.record.end_time = BEGIN + DAY;
    row.record.state.base = JOB_COMPLETED;
    job_facts_clear(&facts);
    facts_take_row(&facts, &arena, &row, BEGIN + 2 * DAY);
    if (facts_take_series(&facts, &arena, &question, &err) < 0)
        bench_give_up("%s", err.text);
    if (facts.n_nodes != input->nodes || facts.n_gpus != input->nodes * GPUS ||
        (input->wants_plots && !facts.plot[PLOT_GPU_POWER].n_lines))
        bench_give_up("%zu nodes and %zu GPUs were read", facts.n_nodes, facts.n_gpus);
    arena_clear(&arena);
}

static void ask_nothing(struct input *input)
{
    struct prometheus_query query = { .text = "up", .timeout_ms = 60000 };
    struct prometheus_result result;
    struct err err;

    for (size_t i = 0; i < (input->wants_plots ? 11 : 4); i++)
        if (prometheus_query(input->prometheus, &query, &result, &err) < 0)
            bench_give_up("%s", err.text);
}

/* The shortest of many, of what is waited for. */
static double measure(struct input *input, void (*run)(struct input *input))
{
    double best = 0;

    for (size_t i = 0; i < ROUNDS; i++) {
        double began = bench_wall_seconds(), seconds;

        run(input);
        seconds = bench_wall_seconds() - began;
        if (!i || seconds < best)
            best = seconds;
    }
    return best * 1000;
}

static void print_row(struct input *input, bool wants_plots)
{
    char name[100];

    input->wants_plots = wants_plots;
    snprintf(name, sizeof(name), "series: a day of %zu node%s, %s", input->nodes,
             input->nodes > 1 ? "s" : "", wants_plots ? "with plots" : "numbers only");
    bench_row(&(struct bench_row){ .name = name,
                                   .unit = "ms",
                                   .measured = measure(input, take),
                                   .reference = measure(input, ask_nothing),
                                   .goal = BENCH_AT_MOST,
                                   .limit = wants_plots ? 100 : 20 });
}

static void bench(size_t nodes)
{
    struct input input = { .nodes = nodes };
    struct prometheus_settings settings = { .max_answer = 64 << 20 };
    struct err err;
    char url[60];

    make_answers(&input);
    start_server(&input);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", input.port);
    settings.url = str_of(url);
    if (prometheus_open(&settings, &input.prometheus, &err) < 0)
        bench_give_up("%s", err.text);
    print_row(&input, false);
    print_row(&input, true);
    prometheus_close(input.prometheus);
    for (size_t i = 0; i < ANSWERS; i++)
        buf_free(&input.answer[i]);
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    bench(1);
    bench(64);
    return 0;
}
