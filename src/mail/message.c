/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RFC 5322 (headers), RFC 2045 to 2047 (MIME), RFC 3834 (Auto-Submitted). */
#include "mail/message.h"

#include "base/base64.h"
#include "base/quote.h"
#include "base/shown.h"

enum {
    LINE = 76,          /* bytes, without the line end */
    WORD = 54,          /* of an encoded word, without what frames it */
    MOST_SUBJECT = 400, /* bytes */
    MOST_WORD = 200,
    MOST_LOCAL_PART = 64,
    MOST_LABEL = 63,
    MOST_ADDRESS = 254, /* RFC 5321 */
};

/* Where quoted-printable has a "=", two digits or the end of the line follow, and base64 has no
 * "_": these cannot occur in what they separate. */
#define MIXED       "=_mixed_parts"
#define ALTERNATIVE "=_alternative_parts"

/* --- addresses --- */

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Of what RFC 5322 allows, without the characters that have meant routes, pipes and commands. */
static bool is_local_part(struct str text)
{
    bool after_dot = true;

    if (!text.n || text.n > MOST_LOCAL_PART || !(is_letter_or_digit(text.p[0]) || text.p[0] == '_'))
        return false;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if (c == '.' ? after_dot : !(is_letter_or_digit(c) || (c && strchr("#$&'*+-/=?^_{}~", c))))
            return false;
        after_dot = c == '.';
    }
    return !after_dot;
}

static bool is_label(struct str text)
{
    if (!text.n || text.n > MOST_LABEL || text.p[0] == '-' || text.p[text.n - 1] == '-')
        return false;
    for (size_t i = 0; i < text.n; i++)
        if (!is_letter_or_digit(text.p[i]) && text.p[i] != '-')
            return false;
    return true;
}

static bool is_domain(struct str text)
{
    bool ok = text.n;

    for (struct str rest = text; ok && rest.p;)
        ok = is_label(str_cut(&rest, '.'));
    return ok;
}

int message_address(struct buf *to, struct str name, struct str domain, struct err *err)
{
    struct str rest = name, local = str_cut(&rest, '@');

    if (!rest.p)
        rest = domain;
    else if (!rest.n)
        local = STR("");
    if (!is_local_part(local) || (rest.n && !is_domain(rest)) ||
        local.n + 1 + rest.n > MOST_ADDRESS)
        return err_set(err, EINVAL, "\"%s\" is no mail address; one looks like name@host.domain",
                       quote(name).text);
    buf_put(to, local);
    if (rest.n) {
        buf_byte(to, '@');
        buf_put(to, rest);
    }
    return to->over ? err_set(err, EFBIG, "an address is too long") : 0;
}

/* --- headers --- */

static int put_address(struct buf *to, const char *header, struct str address, struct err *err)
{
    int code;

    buf_printf(to, "%s: ", header);
    code = message_address(to, address, STR(""), err);
    buf_text(to, "\r\n");
    return code;
}

static void put_date(struct buf *to, int64_t date)
{
    static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
    static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    time_t seconds = date > 0 && date < INT32_MAX * INT64_C(100) ? (time_t)date : 0;
    struct tm tm;

    gmtime_r(&seconds, &tm);
    buf_printf(to, "Date: %s, %02d %s %04d %02d:%02d:%02d +0000\r\n", days[tm.tm_wday], tm.tm_mday,
               months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

/* A part of a header that is one word whatever it holds. */
static void put_word(struct buf *to, struct str text)
{
    text = str_head(text, MOST_WORD);
    for (size_t i = 0; i < text.n; i++)
        buf_byte(to, is_letter_or_digit(text.p[i]) || (text.p[i] && strchr("+-._/", text.p[i]))
                         ? text.p[i]
                         : '_');
}

static bool is_plain(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < ' ' || text.p[i] > '~')
            return false;
    return text.n + strlen("Subject: ") <= LINE && text.p[0] != ' ' && text.p[text.n - 1] != ' ' &&
           str_find_str(text, STR("=?")) == text.n;
}

static void put_encoded_words(struct buf *to, struct str text)
{
    size_t n_word = 0;

    buf_text(to, "=?UTF-8?Q?");
    while (text.n) {
        struct str c = shown_take(&text);
        bool is_literal = c.n == 1 && (is_letter_or_digit(c.p[0]) || strchr("!*+-/", c.p[0]));
        size_t n = is_literal || c.p[0] == ' ' ? 1 : 3 * c.n;

        if (n_word + n > WORD) {
            buf_text(to, "?=\r\n =?UTF-8?Q?");
            n_word = 0;
        }
        n_word += n;
        if (is_literal)
            buf_put(to, c);
        else if (c.p[0] == ' ')
            buf_byte(to, '_');
        else
            for (size_t i = 0; i < c.n; i++)
                buf_printf(to, "=%02X", (unsigned char)c.p[i]);
    }
    buf_text(to, "?=");
}

static void put_subject(struct buf *to, struct str subject)
{
    struct buf shown;
    struct str text;

    buf_init(&shown, MOST_SUBJECT * 4);
    shown_put(&shown, str_head(subject, MOST_SUBJECT));
    text = buf_str(&shown);
    buf_text(to, "Subject: ");
    if (text.n && is_plain(text))
        buf_put(to, text);
    else if (text.n)
        put_encoded_words(to, text);
    buf_text(to, "\r\n");
    buf_free(&shown);
}

static int put_headers(struct buf *to, const struct message *message, struct err *err)
{
    int code = put_address(to, "From", message->from, err);

    if (code == 0)
        code = put_address(to, "To", message->to, err);
    if (code == 0 && message->reply_to.n)
        code = put_address(to, "Reply-To", message->reply_to, err);
    if (code < 0)
        return code;
    put_subject(to, message->subject);
    put_date(to, message->date);
    buf_text(to, "Message-ID: <");
    put_word(to, message->id);
    buf_byte(to, '@');
    put_word(to, message->host.n ? message->host : STR("localhost"));
    buf_text(to, ">\r\nAuto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n");
    return 0;
}

/* --- bodies --- */

/* What may stand as itself: not a space before the end of a line, which some cut off, nor at its
 * beginning a dot, which SMTP takes for the end, or "From ", which mail boxes take for one. */
static bool is_itself(struct str rest, bool is_first)
{
    char c = rest.p[0];

    if (c == ' ' || c == '\t')
        return rest.n > 1 && rest.p[1] != '\n' && rest.p[1] != '\r';
    if (is_first && (c == '.' || str_starts(rest, STR("From "))))
        return false;
    return c > ' ' && c <= '~' && c != '=';
}

static size_t line_end_length(struct str rest)
{
    return rest.p[0] == '\n' ? 1 : str_starts(rest, STR("\r\n")) ? 2 : 0;
}

/* Returns the column that follows. */
static size_t put_quoted_character(struct buf *to, struct str rest, size_t n, size_t column)
{
    char bytes[4 * 3 + 1];
    size_t n_bytes = 0;

    if (column + (n > 1 ? 3 * n : 3) >= LINE) {
        buf_text(to, "=\r\n");
        column = 0;
    }
    if (n == 1 && is_itself(rest, column == 0))
        bytes[n_bytes++] = rest.p[0];
    else
        for (size_t i = 0; i < n; i++)
            n_bytes += (size_t)snprintf(bytes + n_bytes, sizeof(bytes) - n_bytes, "=%02X",
                                        (unsigned char)rest.p[i]);
    buf_put(to, (struct str){ bytes, n_bytes });
    return column + n_bytes;
}

/* What cannot be shown becomes a question mark. */
static void put_quoted_printable(struct buf *to, struct str text)
{
    size_t column = 0;

    while (text.n) {
        size_t n = line_end_length(text);

        if (n) {
            buf_text(to, "\r\n");
            column = 0;
        } else if ((n = text.p[0] == '\t' ? 1 : str_printable_len(text))) {
            column = put_quoted_character(to, text, n, column);
        } else {
            n = str_utf8_len(text);
            n += n == 0;
            column = put_quoted_character(to, STR("?"), 1, column);
        }
        text = str_skip(text, n);
    }
    buf_text(to, "\r\n");
}

static void put_text(struct buf *to, const char *type, struct str text)
{
    buf_printf(to,
               "Content-Type: text/%s; charset=UTF-8\r\n"
               "Content-Transfer-Encoding: quoted-printable\r\n\r\n",
               type);
    put_quoted_printable(to, text);
}

static void begin_parts(struct buf *to, const char *type, const char *boundary)
{
    buf_printf(to, "Content-Type: multipart/%s; boundary=\"%s\"\r\n\r\n", type, boundary);
}

static void put_texts(struct buf *to, const struct message *message)
{
    if (!message->html.n) {
        put_text(to, "plain", message->text);
        return;
    }
    begin_parts(to, "alternative", ALTERNATIVE);
    buf_text(to, "--" ALTERNATIVE "\r\n");
    put_text(to, "plain", message->text);
    buf_text(to, "--" ALTERNATIVE "\r\n");
    put_text(to, "html", message->html);
    buf_text(to, "--" ALTERNATIVE "--\r\n");
}

static void put_file(struct buf *to, const struct message_file *file)
{
    buf_text(to, "Content-Type: ");
    put_word(to, str_of(file->type));
    buf_text(to, "\r\nContent-Transfer-Encoding: base64\r\n"
                 "Content-Disposition: attachment; filename=\"");
    put_word(to, str_of(file->name));
    buf_text(to, "\"\r\n\r\n");
    base64_put_lines(to, file->bytes);
}

int message_put(struct buf *to, const struct message *message, struct err *err)
{
    int code = put_headers(to, message, err);

    if (code < 0)
        return code;
    if (message->n_files) {
        begin_parts(to, "mixed", MIXED);
        buf_text(to, "--" MIXED "\r\n");
    }
    put_texts(to, message);
    for (size_t i = 0; i < message->n_files; i++) {
        buf_text(to, "--" MIXED "\r\n");
        put_file(to, &message->file[i]);
    }
    if (message->n_files)
        buf_text(to, "--" MIXED "--\r\n");
    return to->over ? err_set(err, EFBIG, "a mail has more than %zu bytes", to->max) : 0;
}
