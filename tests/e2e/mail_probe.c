/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends what is in a mail spool, for tests, with a report that is always the same:
 *     mail_probe SPOOL URL [NAME=VALUE…]
 * prints "sent=N summarised=N given_up=N left=N", or says why not and exits with 1. Names: follow,
 * per-hour, user, password-file, ca-file, hello, tls, unknown (how often accounting does not know),
 * at (the wall clock stands at that second of Unix time), pdf (bytes).
 *     mail_probe add SPOOL N TO EVENT
 * adds N entries. */
#include "base/num.h"
#include "mail/drain.h"

#include <inttypes.h>
#include <signal.h>

enum { DAY = 86400, FIRST_JOB = 1000 };

static atomic_bool stopped;
static uint64_t n_unknown, n_pdf_bytes;
static int64_t stands_ns; /* 0: it does not stand */

static void on_signal(int number)
{
    (void)number;
    atomic_store(&stopped, true);
}

static int64_t wall_ns(const struct clock *clock)
{
    (void)clock;
    return stands_ns ? stands_ns : clock_wall(&clock_real);
}

static int report(void *ctx, const struct mail_entry *entry, bool is_last, struct arena *arena,
                  struct drain_report *ret, struct err *err)
{
    struct buf text;

    (void)ctx;
    if (n_unknown && !is_last) {
        n_unknown--;
        return err_set(err, EAGAIN, "accounting does not know job %" PRIu32 " yet", entry->job_id);
    }
    buf_init(&text, 1000);
    buf_printf(&text, "The report of job %" PRIu32 ": Käse …\n", entry->job_id);
    ret->text = arena_str(arena, buf_str(&text));
    buf_free(&text);
    ret->html = STR("<!DOCTYPE html>\n<p>Käse = cheese.</p>\n");
    ret->pdf = (struct str){ arena_alloc(arena, n_pdf_bytes), n_pdf_bytes };
    ret->subject = STR("Job done: Käse");
    return 0;
}

static int add(char **argv)
{
    struct mail_entry entry;
    struct err err;
    uint64_t n = 0;

    num_get_u64(str_of(argv[3]), &n);
    for (uint32_t i = 0; i < n; i++) {
        mail_entry_of_environment((char *[]){ NULL }, "Slurm", argv[4],
                                  clock_wall(&clock_real) / NS_PER_SEC, &entry);
        entry.event = str_of(argv[5]);
        entry.state = i % 10 ? STR("COMPLETED") : STR("FAILED");
        entry.name = STR("task");
        entry.cluster = STR("beluga");
        entry.job_id = FIRST_JOB + i;
        entry.array_job_id = FIRST_JOB;
        entry.array_task_id = i;
        if (mail_spool_add(argv[2], &entry, &err) < 0) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
    }
    return 0;
}

static bool take(struct str setting, struct drain_config *config, struct post_settings *post,
                 bool *follow)
{
    struct str name = str_cut(&setting, '=');
    uint64_t number = 0;

    num_get_u64(setting, &number);
    if (str_eq(name, STR("follow")))
        *follow = true;
    else if (str_eq(name, STR("per-hour")))
        config->mails_per_hour = number;
    else if (str_eq(name, STR("user")))
        post->user = setting;
    else if (str_eq(name, STR("password-file")))
        post->password_file = setting;
    else if (str_eq(name, STR("ca-file")))
        post->ca_file = setting;
    else if (str_eq(name, STR("hello")))
        post->hello = setting;
    else if (str_eq(name, STR("tls")))
        post->is_tls_off = str_eq(setting, STR("off"));
    else if (str_eq(name, STR("unknown")))
        n_unknown = number;
    else if (str_eq(name, STR("at")))
        stands_ns = (int64_t)number * NS_PER_SEC;
    else if (str_eq(name, STR("pdf")))
        n_pdf_bytes = number;
    else
        return false;
    return true;
}

static int run(int argc, char **argv)
{
    struct clock clock = clock_real;
    struct post_settings post = { .url = str_of(argv[2]) };
    struct drain_config config = {
        .directory = argv[1],
        .post = &post,
        .from = STR("sonde@cluster.org"),
        .domain = STR("users.org"),
        .wait_ns = 120 * NS_PER_SEC,
        .give_up_ns = DAY * NS_PER_SEC,
        .mails_per_hour = 20,
        .clock = &clock,
        .stopped = &stopped,
        .report = report,
    };
    struct drain_result result;
    bool follow = false;
    struct err err;
    int code;

    clock.wall_ns = wall_ns;
    for (int i = 3; i < argc; i++)
        if (!take(str_of(argv[i]), &config, &post, &follow)) {
            fprintf(stderr, "what is %s?\n", argv[i]);
            return 2;
        }
    config.log = log_new(STDERR_FILENO, LOG_INFO, &clock_real);
    code = drain_run(&config, follow, &result, &err);
    log_free(config.log);
    if (code < 0)
        fprintf(stderr, "%s: %s\n", err_reason(-code), err.text);
    else
        printf("sent=%" PRIu64 " summarised=%" PRIu64 " given_up=%" PRIu64 " left=%" PRIu64 "\n",
               result.sent, result.summarised, result.given_up, result.left);
    return code < 0;
}

int main(int argc, char **argv)
{
    const struct sigaction action = { .sa_handler = on_signal };

    sigaction(SIGTERM, &action, NULL);
    if (argc == 6 && strcmp(argv[1], "add") == 0)
        return add(argv);
    if (argc >= 3)
        return run(argc, argv);
    fprintf(stderr, "use: mail_probe SPOOL URL [NAME=VALUE…] | add SPOOL N TO EVENT\n");
    return 2;
}
