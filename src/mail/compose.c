/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes a complete mail from a spool entry. */
#include "mail/compose.h"

#include "mail/letter.h"
#include "model/job.h"

enum { MOST_LETTER = 16 * 1024, MOST_FILE_NAME = 64 };

/* At the end there is something to report on. When Slurm does not say which job it was, as 20.11
 * does not, there is not. */
static bool wants_report(const struct mail_entry *entry)
{
    return entry->job_id != MODEL_UNKNOWN_U32 &&
           (str_eq(entry->event, STR("Ended")) || str_eq(entry->event, STR("Failed")));
}

static struct message begin(const struct compose *compose)
{
    struct str host = compose->config->from;

    str_cut(&host, '@');
    return (struct message){
        .from = compose->config->from,
        .to = compose->address,
        .reply_to = STR(""),
        .date = compose->now,
        .id = compose->id,
        .host = host.p ? host : STR(""),
        .html = STR(""),
    };
}

static struct str kept(struct arena *arena, struct buf *text)
{
    struct str copy = arena_str(arena, buf_str(text));

    buf_free(text);
    return copy;
}

static void fill_letter(struct arena *arena, const struct mail_entry *entry,
                        struct message *message)
{
    struct buf subject, text;

    buf_init(&subject, MOST_LETTER);
    buf_init(&text, MOST_LETTER);
    letter_put_subject(&subject, entry);
    letter_put_text(&text, entry);
    message->subject = kept(arena, &subject);
    message->text = kept(arena, &text);
}

static struct str file_name(struct arena *arena, const struct mail_entry *entry)
{
    struct buf name;

    buf_init(&name, MOST_FILE_NAME);
    buf_text(&name, "job-");
    letter_put_job(&name, entry);
    buf_text(&name, ".pdf");
    return kept(arena, &name);
}

static int put_report(const struct mail_entry *entry, const struct drain_report *report,
                      struct message *message, struct arena *arena, struct buf *to, struct err *err)
{
    struct message_file file = { .name = file_name(arena, entry).p,
                                 .type = "application/pdf",
                                 .bytes = report->pdf };
    int code;

    if (report->subject.n)
        message->subject = report->subject;
    message->text = report->text;
    message->html = report->html;
    message->file = &file;
    message->n_files = report->pdf.n > 0;
    code = message_put(to, message, err);
    if (code == -EFBIG && message->n_files) {
        message->n_files = 0;
        buf_reset(to);
        code = message_put(to, message, err);
    }
    return code;
}

/* -EAGAIN: later; any other: there is none, and never will be. */
static int ask(const struct compose *compose, const struct mail_entry *entry,
               struct drain_report *ret, struct err *err)
{
    const struct drain_config *config = compose->config;
    /* One that is still to come is of a clock that was wrong, and must not wait for it. */
    int64_t age = llabs(compose->now - entry->written_time);
    bool is_last = age >= config->wait_ns / NS_PER_SEC;
    int code;

    *ret = (struct drain_report){ .text = STR("") };
    code = config->report(config->ctx, entry, is_last, compose->arena, ret, err);
    if (code == 0)
        return ret->text.n ? 0 : -ENODATA;
    return is_last ? -ENODATA : -EAGAIN;
}

int compose_entry(const struct compose *compose, const struct mail_entry *entry, struct buf *to,
                  struct err *err)
{
    struct message message = begin(compose);
    struct drain_report report;
    int code = wants_report(entry) ? ask(compose, entry, &report, err) : -ENODATA;

    if (code == -EAGAIN)
        return code;
    fill_letter(compose->arena, entry, &message);
    if (code == 0 && put_report(entry, &report, &message, compose->arena, to, err) == 0)
        return 0;
    if (code == 0 || wants_report(entry))
        LOG(compose->config->log, LOG_WARN, "a mail goes without a report",
            LOG_VIEW("to", compose->address), LOG_INT("job", entry->job_id),
            LOG_STR("err", err->text));
    buf_reset(to);
    message = begin(compose);
    fill_letter(compose->arena, entry, &message);
    return message_put(to, &message, err);
}

int compose_summary(const struct compose *compose, const struct summary *summary, struct buf *to,
                    struct err *err)
{
    struct message message = begin(compose);

    message.subject = summary->subject;
    message.text = summary->text;
    return message_put(to, &message, err);
}
