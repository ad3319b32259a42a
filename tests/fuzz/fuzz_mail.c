/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What may lie in the mail spool, and addresses. What was read can be written as a mail, and no
 * byte of it makes a header, a line or an address that was not meant. */
#include "mail/letter.h"
#include "mail/message.h"
#include "mail/summary.h"

#include "fuzz.h"

static void check_mail(struct str mail)
{
    size_t line = 0;

    for (size_t i = 0; i < mail.n; i++) {
        char c = mail.p[i];

        FUZZ_CHECK((c >= ' ' && c <= '~') || c == '\t' || c == '\r' || c == '\n');
        FUZZ_CHECK(c != '\n' || (i && mail.p[i - 1] == '\r'));
        FUZZ_CHECK(c != '\r' || (i + 1 < mail.n && mail.p[i + 1] == '\n'));
        line = c == '\n' ? 0 : line + 1;
        FUZZ_CHECK(line <= 998);
    }
    mail = str_head(mail, str_find_str(mail, STR("\r\n\r\n")));
    FUZZ_CHECK(str_find_str(mail, STR("\nBcc")) == mail.n);
}

static void check_address(struct str name, struct buf *address)
{
    struct err err;

    if (message_address(address, name, STR("x.org"), &err) < 0) {
        FUZZ_CHECK(err.text[0]);
        buf_reset(address);
        buf_text(address, "a@x.org");
        return;
    }
    FUZZ_CHECK(address->n <= 254);
    for (size_t i = 0; i < address->n; i++)
        FUZZ_CHECK(address->p[i] > ' ' && address->p[i] <= '~' &&
                   !strchr("<>\"()[]\\,;:|`%!", address->p[i]));
}

static void write_mail(struct str to, struct str subject, struct str text)
{
    struct buf address, mail;
    struct err err;

    buf_init(&address, 1000);
    buf_init(&mail, 64 << 20);
    check_address(to, &address);
    FUZZ_CHECK(message_put(&mail,
                           &(struct message){ .from = STR("a@x.org"),
                                              .to = buf_str(&address),
                                              .subject = subject,
                                              .id = subject,
                                              .host = to,
                                              .text = text,
                                              .html = text },
                           &err) == 0);
    check_mail(buf_str(&mail));
    buf_free(&mail);
    buf_free(&address);
}

static void read_entry(struct str document)
{
    struct arena arena = { 0 };
    struct mail_entry entry;
    struct buf subject, text;
    struct err err = { 0 };

    if (mail_entry_read(document, &arena, &entry, &err) == 0) {
        buf_init(&subject, 1 << 20);
        buf_init(&text, 1 << 20);
        letter_put_subject(&subject, &entry);
        letter_put_text(&text, &entry);
        FUZZ_CHECK(!subject.over && !text.over);
        write_mail(entry.to, buf_str(&subject), buf_str(&text));
        buf_free(&subject);
        buf_free(&text);
    } else {
        FUZZ_CHECK(err.text[0]);
    }
    arena_clear(&arena);
}

static void read_summary(struct str document)
{
    struct arena arena = { 0 };
    struct summary summary;
    struct err err = { 0 };

    if (summary_read(document, &arena, &summary, &err) == 0)
        write_mail(summary.to, summary.subject, summary.text);
    else
        FUZZ_CHECK(err.text[0]);
    arena_clear(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str input = { (const char *)data, size };

    read_entry(input);
    read_summary(input);
    write_mail(input, input, input);
    return 0;
}
