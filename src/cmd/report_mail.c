/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends reports by mail: one at once, or those in the spool. */
#include "cmd/report_mail.h"

#include "mail/drain.h"
#include "report/outline.h"
#include "report/paper.h"

#include <limits.h>
#include <signal.h>
#include <unistd.h>

enum {
    TEXT_MAX = 1 << 20,
    PDF_MAX = 8 << 20,
    MESSAGE_MAX = 16 << 20,
    SUBJECT_MAX = 1024,
    TEXT_WIDTH = 76, /* lines that a mail program does not fold */
    SEND_TIMEOUT_MS = 60 * 1000,
};

static const int64_t wait_for_accounting_ns = 120 * NS_PER_SEC;
static const int64_t give_up_ns = 86400 * NS_PER_SEC;

static struct post_settings post_of(const struct report_settings *settings)
{
    return (struct post_settings){
        .url = settings->mail.url,
        .is_tls_off = !settings->mail.has_tls,
        .user = settings->mail.user,
        .password_file = settings->mail.password_file,
        .ca_file = settings->mail.ca_file,
        .hello = STR(""),
    };
}

static struct str kept(struct arena *arena, struct buf *bytes)
{
    struct str copy = bytes->over ? STR("") : arena_str(arena, buf_str(bytes));

    buf_free(bytes);
    return copy;
}

/* An address that a mail can be from, of this host if nothing else is said. */
static int find_sender(const struct report_settings *settings, struct arena *arena, struct str *ret,
                       struct err *err)
{
    char host[HOST_NAME_MAX + 1] = "localhost";
    struct str domain = settings->mail.domain;
    struct buf from;
    int code;

    if (!domain.n && gethostname(host, sizeof(host) - 1) == 0)
        domain = str_of(host);
    buf_init(&from, 2 * MAIL_ADDRESS_MAX);
    code = message_address(&from, settings->mail.from, domain, err);
    *ret = kept(arena, &from);
    return code < 0 ? err_prefix(err, "--mail.from") : 0;
}

static const char *const ends[JOB_BASES] = {
    [JOB_COMPLETED] = "completed",
    [JOB_FAILED] = "failed",
    [JOB_CANCELLED] = "was cancelled",
    [JOB_TIMEOUT] = "reached its time limit",
    [JOB_OUT_OF_MEMORY] = "ran out of memory",
    [JOB_NODE_FAIL] = "lost a node",
};

/* "Job 4711 on beluga: train.sh completed" */
static struct str subject_of(const struct job_report *report, struct arena *arena)
{
    const struct job_record *record = &report->facts.row.record;
    const char *end = ends[record->state.base];
    struct outline outline;
    struct buf subject;

    outline_make(report, arena, &outline);
    buf_init(&subject, SUBJECT_MAX);
    buf_put(&subject, outline.title);
    if (end && job_record_has_ended(record))
        buf_printf(&subject, ", %s", end);
    return kept(arena, &subject);
}

static void make_mail(const struct job_report *report, struct arena *arena,
                      struct drain_report *ret)
{
    const struct text_look look = { .has_unicode = true, .width = TEXT_WIDTH };
    struct buf text, html, pdf;
    struct err err;

    buf_init(&text, TEXT_MAX);
    buf_init(&html, TEXT_MAX);
    buf_init(&pdf, PDF_MAX);
    report_text(&text, report, &look);
    report_html(&html, report, HTML_MAIL);
    /* A mail without its attachment is better than none. */
    if (report_pdf(&pdf, report, &err) < 0)
        buf_reset(&pdf);
    *ret = (struct drain_report){
        .text = kept(arena, &text),
        .html = kept(arena, &html),
        .pdf = kept(arena, &pdf),
        .subject = subject_of(report, arena),
    };
}

static int put_message(const struct drain_report *mail, struct str from, struct str to,
                       struct buf *bytes, struct err *err)
{
    const struct message_file file = { "report.pdf", "application/pdf", mail->pdf };
    char id[MAIL_ENTRY_ID + 1];
    struct str host = from;
    struct message message = {
        .from = from,
        .to = to,
        .reply_to = STR(""),
        .subject = mail->subject,
        .date = clock_wall(&clock_real) / NS_PER_SEC,
        .text = mail->text,
        .html = mail->html,
        .file = &file,
        .n_files = mail->pdf.n > 0,
    };

    mail_entry_new_id(id);
    str_cut(&host, '@');
    message.id = str_of(id);
    message.host = host.p ? host : STR("");
    return message_put(bytes, &message, err);
}

int report_mail_send(struct report_maker *maker, const struct job_report *report,
                     struct arena *arena, struct err *err)
{
    const struct report_settings *settings = maker->settings;
    const struct post_settings post = post_of(settings);
    struct str name = settings->mail.to.n ? settings->mail.to : report->facts.row.record.user;
    struct drain_report mail;
    struct buf to, bytes;
    struct str from;
    int code = post_settings_check(&post, err);

    if (code == 0)
        code = find_sender(settings, arena, &from, err);
    if (code < 0)
        return code;
    buf_init(&to, 2 * MAIL_ADDRESS_MAX);
    buf_init(&bytes, MESSAGE_MAX);
    code = message_address(&to, name, settings->mail.domain, err);
    if (code == 0) {
        make_mail(report, arena, &mail);
        code = put_message(&mail, from, buf_str(&to), &bytes, err);
    }
    if (code == 0)
        code = post_send(&post, from, buf_str(&to), buf_str(&bytes), SEND_TIMEOUT_MS,
                         maker->cancelled, err);
    buf_free(&to);
    buf_free(&bytes);
    return code;
}

/* What follows is the drain's. */
struct drainer {
    struct report_maker *maker;
    struct log *log;
    int told; /* the errno of the store's trouble that was logged last */
};

static struct job_name name_of(const struct mail_entry *entry)
{
    struct job_name name = { entry->cluster, entry->job_id, MODEL_UNKNOWN_U32, MODEL_UNKNOWN_U32 };

    if (entry->array_job_id != MODEL_UNKNOWN_U32 && entry->array_task_id != MODEL_UNKNOWN_U32) {
        name.id = entry->array_job_id;
        name.task = entry->array_task_id;
    } else if (entry->het_job_id != MODEL_UNKNOWN_U32 && entry->het_offset != MODEL_UNKNOWN_U32) {
        name.id = entry->het_job_id;
        name.offset = entry->het_offset;
    } else if (entry->is_array && entry->array_job_id != MODEL_UNKNOWN_U32) {
        name.id = entry->array_job_id;
    }
    return name;
}

static int not_yet(struct err *err)
{
    return err_set(err, EAGAIN, "accounting does not know of its end yet");
}

static int report_array(struct drainer *drainer, const struct job_name *name, bool is_last,
                        struct arena *arena, struct drain_report *ret, struct err *err)
{
    const struct text_look look = { .has_unicode = true, .width = TEXT_WIDTH };
    struct array_report report;
    struct buf text;
    int code = report_make_array(drainer->maker, name, arena, &report, err);

    if (code < 0)
        return code;
    for (size_t i = 0; i < report.n_tasks && !is_last; i++)
        if (!report.task[i].origin.has_accounting)
            return not_yet(err);
    buf_init(&text, TEXT_MAX);
    report_array_text(&text, &report, &look);
    *ret = (struct drain_report){ .text = kept(arena, &text) };
    return 0;
}

static int report_job(struct drainer *drainer, const struct job_name *name, bool is_last,
                      struct arena *arena, struct drain_report *ret, struct err *err)
{
    struct job_report report = { 0 };
    int code = report_make(drainer->maker, name, true, arena, &report, err);

    if (code < 0)
        return code;
    if (!is_last && !report.facts.origin.has_accounting)
        return not_yet(err);
    make_mail(&report, arena, ret);
    return 0;
}

static void look_for_store(struct drainer *drainer)
{
    const struct err *trouble = &drainer->maker->store_trouble;

    report_maker_look_for_store(drainer->maker);
    if (trouble->code && trouble->code != drainer->told)
        LOG(drainer->log, trouble->code == ENOENT ? LOG_INFO : LOG_WARN,
            "reports are made without the store", LOG_STR("error", trouble->text));
    drainer->told = trouble->code;
}

static int report_entry(void *ctx, const struct mail_entry *entry, bool is_last,
                        struct arena *arena, struct drain_report *ret, struct err *err)
{
    struct drainer *drainer = ctx;
    const struct job_name name = name_of(entry);

    look_for_store(drainer);
    return (entry->is_array ? report_array : report_job)(drainer, &name, is_last, arena, ret, err);
}

static atomic_bool *stopped_by_signal;

static void stop(int signal)
{
    (void)signal;
    atomic_store(stopped_by_signal, true);
}

static void catch_signals(atomic_bool *stopped)
{
    const struct sigaction ending = { .sa_handler = stop };

    stopped_by_signal = stopped;
    sigaction(SIGTERM, &ending, NULL);
    sigaction(SIGINT, &ending, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static struct log *open_log(const struct report_settings *settings)
{
    enum log_level level = LOG_INFO;

    log_level_parse(settings->log_level, &level);
    return log_new(STDERR_FILENO, level, &clock_real);
}

int report_mail_drain(struct report_maker *maker, atomic_bool *stopped, struct err *err)
{
    const struct report_settings *settings = maker->settings;
    const struct post_settings post = post_of(settings);
    struct drainer drainer = { .maker = maker, .log = open_log(settings) };
    struct arena arena = { 0 };
    struct drain_config config = {
        .directory = settings->mail.spool.p,
        .post = &post,
        .domain = settings->mail.domain,
        .wait_ns = wait_for_accounting_ns,
        .give_up_ns = give_up_ns,
        .mails_per_hour = settings->mail.per_hour,
        .clock = &clock_real,
        .log = drainer.log,
        .stopped = stopped,
        .report = report_entry,
        .ctx = &drainer,
    };
    struct drain_result result;
    int code = find_sender(settings, &arena, &config.from, err);

    catch_signals(stopped);
    if (code == 0)
        code = drain_run(&config, settings->follows, &result, err);
    if (code == 0 && (result.sent || result.summarised || result.given_up || result.left))
        LOG(drainer.log, LOG_INFO, "the spool of mails was looked through",
            LOG_INT("sent", result.sent), LOG_INT("summarised", result.summarised),
            LOG_INT("given_up", result.given_up), LOG_INT("left", result.left));
    log_free(drainer.log);
    arena_clear(&arena);
    return code;
}
