/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Refuses headers that a proxy in front of us may read differently (RFC 9112, sections 5 and 11.2):
 * names that are not tokens, folded lines, control characters, lines that do not end with CR LF,
 * and a second Authorization, of which a proxy may have checked the other (RFC 9110, section 5.3).
 */
#include "http/internal.h"

bool http_is_token(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!is_letter && (!c || !strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return text.n > 0;
}

static bool has_control(struct str value)
{
    for (size_t i = 0; i < value.n; i++) {
        unsigned char c = (unsigned char)value.p[i];

        if ((c < ' ' && c != '\t') || c == 0x7f)
            return true;
    }
    return false;
}

/* libmicrohttpd before 1.0 accepts folded lines and appends them to the name of the header, ends
 * the header at a line that begins with a colon, and cuts a value at a NUL. It leaves the lines
 * where they were received, so that anything between two of them but CR LF shows as a gap. */
static bool is_lenient(void)
{
    return MHD_get_version()[0] == '0';
}

struct lines {
    const char *next; /* where the next one must begin */
    bool has_authorization;
    bool is_wrong;
};

static enum MHD_Result check_line(void *arg, enum MHD_ValueKind kind, const char *key,
                                  size_t key_size, const char *value, size_t value_size)
{
    struct lines *lines = arg;
    bool is_authorization =
        str_eq_nocase((struct str){ key, key_size }, STR(MHD_HTTP_HEADER_AUTHORIZATION));

    (void)kind;
    if (is_authorization && lines->has_authorization)
        lines->is_wrong = true;
    lines->has_authorization |= is_authorization;
    if (!http_is_token((struct str){ key, key_size }) ||
        has_control((struct str){ value, value_size }) || (is_lenient() && key != lines->next))
        lines->is_wrong = true;
    lines->next = value + value_size + strlen("\r\n");
    return lines->is_wrong ? MHD_NO : MHD_YES;
}

bool header_is_wrong(const struct http_exchange *x, const char *method, const char *version)
{
    struct MHD_Connection *mhd = x->conn->mhd;
    size_t size =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)->header_size;
    struct lines lines = { .next = version + strlen(version) + strlen("\r\n") };

    MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, check_line, &lines);
    return lines.is_wrong || (is_lenient() && lines.next + strlen("\r\n") != method + size);
}
