/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of mail/message: the MIME format of mails. */
#include "test.h"

#include "base/arena.h"
#include "mail/message.h"

static const struct message plain = {
    .from = STR_INIT("sonde@x.org"),
    .to = STR_INIT("anna@x.org"),
    .reply_to = STR_INIT(""),
    .subject = STR_INIT("Job 4711 began"),
    .date = 1790812800,
    .id = STR_INIT("4711-abc"),
    .host = STR_INIT("x.org"),
    .text = STR_INIT("Hello.\n"),
    .html = STR_INIT(""),
};

/* Lines end with CR LF and nothing else, are short, and hold ASCII only. */
static void assert_well_formed(struct str text)
{
    size_t line = 0;

    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if (c == '\r') {
            assert_true(i + 1 < text.n && text.p[i + 1] == '\n');
        } else if (c == '\n') {
            assert_true(i > 0 && text.p[i - 1] == '\r');
            line = 0;
        } else {
            assert_true((c >= ' ' && c <= '~') || c == '\t');
            assert_true(++line <= 78);
        }
    }
    assert_int_equal(line, 0);
}

static struct buf put(const struct message *message)
{
    struct err err = { 0 };
    struct buf to;

    buf_init(&to, 4 << 20);
    if (message_put(&to, message, &err) < 0)
        fail_msg("%s", err.text);
    assert_well_formed(buf_str(&to));
    return to;
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)); text++)
        n++;
    return n;
}

TEST(a_plain_mail_is_headers_an_empty_line_and_text)
{
    struct buf mail = put(&plain);

    assert_str(buf_str(&mail), "From: sonde@x.org\r\n"
                               "To: anna@x.org\r\n"
                               "Subject: Job 4711 began\r\n"
                               "Date: Thu, 01 Oct 2026 00:00:00 +0000\r\n"
                               "Message-ID: <4711-abc@x.org>\r\n"
                               "Auto-Submitted: auto-generated\r\n"
                               "MIME-Version: 1.0\r\n"
                               "Content-Type: text/plain; charset=UTF-8\r\n"
                               "Content-Transfer-Encoding: quoted-printable\r\n"
                               "\r\n"
                               "Hello.\r\n\r\n");
    buf_free(&mail);
}

TEST(text_html_and_a_file_are_parts_of_parts)
{
    const struct message_file file = { "job-4711.pdf", "application/pdf", STR("%PDF-1.4 …") };
    struct message message = plain;
    struct buf mail;

    message.html = STR("<p>Hello.</p>\n");
    message.file = &file;
    message.n_files = 1;
    mail = put(&message);
    assert_contains(mail.p, "Content-Type: multipart/mixed; boundary=\"=_mixed_parts\"\r\n");
    assert_contains(mail.p, "Content-Type: multipart/alternative; ");
    assert_contains(mail.p, "Content-Type: text/html; charset=UTF-8\r\n");
    assert_contains(mail.p, "filename=\"job-4711.pdf\"");
    assert_contains(mail.p, "\r\n\r\nJVBERi0xLjQg4oCm\r\n--=_mixed_parts--\r\n");
    assert_int_equal(count(mail.p, "--=_alternative_parts"), 3);
    buf_free(&mail);
}

TEST(no_text_ends_a_part)
{
    const struct message_file file = { "x", "y/z", STR("\r\n--=_mixed_parts--\r\n") };
    struct message message = plain;
    struct buf mail;

    message.text = STR("\n--=_mixed_parts\n--=_mixed_parts--\n--=_alternative_parts--\n");
    message.html = message.text;
    message.file = &file;
    message.n_files = 1;
    mail = put(&message);
    assert_int_equal(count(mail.p, "--=_mixed_parts"), 3);
    assert_int_equal(count(mail.p, "--=_alternative_parts"), 3);
    buf_free(&mail);
}

TEST(no_subject_adds_a_header)
{
    struct message message = plain;
    struct buf mail;

    message.subject = STR("x\r\nBcc: evil@x.org\r\n\r\n\nbody");
    mail = put(&message);
    assert_int_equal(count(mail.p, "\nBcc"), 0);
    assert_int_equal(count(mail.p, "\nSubject: x??Bcc: evil@x.org"), 1);
    buf_free(&mail);
}

TEST(neither_id_nor_host_nor_file_name_adds_a_header)
{
    const struct message_file file = { "a\"\r\nX: 1", "b\r\nY: 1", STR("c") };
    struct message message = plain;
    struct buf mail;

    message.id = STR("a\r\nZ: 1>");
    message.host = STR("b\r\nW: 1");
    message.file = &file;
    message.n_files = 1;
    mail = put(&message);
    assert_contains(mail.p, "Message-ID: <a__Z__1_@b__W__1>\r\n");
    assert_contains(mail.p, "filename=\"a___X__1\"\r\n");
    buf_free(&mail);
}

TEST(a_subject_that_is_not_ascii_or_long_is_encoded)
{
    struct message message = plain;
    struct buf mail;
    char words[300];

    message.subject = STR("Auftrag 4711 (Käse_=?) …");
    mail = put(&message);
    assert_contains(mail.p, "Subject: =?UTF-8?Q?Auftrag_4711_=28K=C3=A4se=5F=3D=3F=29_=E2=80=A6?="
                            "\r\n");
    buf_free(&mail);
    message.subject = STR("=?UTF-8?Q?=0D=0ABcc?=");
    mail = put(&message);
    assert_contains(mail.p, "Subject: =?UTF-8?Q?=3D=3FUTF-8=3FQ=3F=3D0D=3D0ABcc=3F=3D?=\r\n");
    buf_free(&mail);
    memset(words, 'w', sizeof(words));
    message.subject = (struct str){ words, sizeof(words) };
    mail = put(&message);
    assert_true(count(mail.p, "?=\r\n =?UTF-8?Q?") >= 5);
    buf_free(&mail);
}

TEST(lines_are_kept_and_long_ones_are_folded)
{
    struct message message = plain;
    char line[1000];
    struct buf mail;

    message.text = STR("a = b \n.\nFrom here\r\ntab\t\n\ttab é\n \r\x1b[31m\xff.");
    mail = put(&message);
    assert_contains(mail.p, "\r\n\r\na =3D b=20\r\n=2E\r\n=46rom here\r\ntab=09\r\n\ttab =C3=A9\r\n"
                            "=20??[31m?.\r\n");
    buf_free(&mail);
    memset(line, '.', sizeof(line));
    message.text = (struct str){ line, sizeof(line) };
    mail = put(&message);
    assert_true(count(mail.p, "=\r\n=2E") >= 12);
    buf_free(&mail);
}

TEST(any_bytes_make_a_well_formed_mail)
{
    char bytes[4096];
    uint32_t seed = 1;
    struct message message = plain;

    for (int round = 0; round < 50; round++) {
        struct buf mail;

        for (size_t i = 0; i < sizeof(bytes); i++) {
            seed = seed * 1664525 + 1013904223;
            bytes[i] = (char)(seed >> 24);
        }
        message.text = message.html = message.subject = (struct str){ bytes, sizeof(bytes) };
        mail = put(&message);
        buf_free(&mail);
    }
}

TEST(a_mail_past_its_ceiling_is_refused)
{
    struct err err;
    struct buf to;

    buf_init(&to, 200);
    assert_int_equal(message_put(&to, &plain, &err), -EFBIG);
    buf_free(&to);
}

TEST(a_date_that_is_none_is_still_a_date)
{
    static const int64_t dates[] = { INT64_MIN, -1, 0, INT64_MAX };

    for (size_t i = 0; i < COUNT(dates); i++) {
        struct message message = plain;
        struct buf mail;

        message.date = dates[i];
        mail = put(&message);
        assert_contains(mail.p, "Date: Thu, 01 Jan 1970 00:00:00 +0000\r\n");
        buf_free(&mail);
    }
}

static void assert_address(const char *name, const char *domain, const char *expected)
{
    struct err err = { 0 };
    struct buf to;
    int code;

    buf_init(&to, 600);
    code = message_address(&to, str_of(name), str_of(domain), &err);
    if (!expected) {
        if (code != -EINVAL)
            fail_msg("taken: %s as %s", name, to.p);
        assert_contains(err.text, "is no mail address");
    } else {
        assert_str(buf_str(&to), expected);
    }
    buf_free(&to);
}

TEST(a_name_gets_the_domain_and_an_address_stays)
{
    assert_address("anna", "x.org", "anna@x.org");
    assert_address("anna", "", "anna");
    assert_address("anna@y.org", "x.org", "anna@y.org");
    assert_address("a.b+c_d-e=f'g@sub-1.x.org", "", "a.b+c_d-e=f'g@sub-1.x.org");
    assert_address("a@localhost", "", "a@localhost");
}

TEST(what_is_no_address_is_refused)
{
    static const char *const wrong[] = {
        "",
        "@",
        "@x.org",
        "a@",
        "a@@b",
        "a@b@c",
        "a b@x.org",
        "a@x org",
        "a@x.org\n",
        "a\r\nBcc: b",
        "<a@x.org>",
        "\"a\"@x.org",
        "a,b@x.org",
        "a@x.org,b@x.org",
        "a;b",
        "-f@x.org",
        "--help",
        "|sh",
        "/etc/x",
        "a`id`@x",
        "a|b@x.org",
        "a%b@x.org",
        "a!b@x.org",
        "a\\b",
        "a@[1.2.3.4]",
        ".a@x.org",
        "a.@x.org",
        "a..b@x.org",
        "a@.org",
        "a@x.",
        "a@-x.org",
        "a@x_y.org",
        "é@x.org",
        "a@é.org",
        "a@x..org",
        "a:b",
    };
    char much[400];

    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_address(wrong[i], "x.org", NULL);
    assert_address("anna", "x org", NULL);
    memset(much, 'a', sizeof(much));
    much[65] = '\0';
    assert_address(much, "x.org", NULL);
    much[64] = '\0';
    assert_address(much, "", much);
}

TEST(an_address_that_is_none_stops_the_mail)
{
    struct message message = plain;
    struct err err;
    struct buf to;

    buf_init(&to, 10000);
    message.to = STR("a\r\nBcc: b@x.org");
    assert_int_equal(message_put(&to, &message, &err), -EINVAL);
    message = plain;
    message.reply_to = STR("<b>");
    assert_int_equal(message_put(&to, &message, &err), -EINVAL);
    buf_free(&to);
}
