/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What Lustre's client makes of a format is in lustre/obdclass/jobid.c, jobid_interpret_string. */
#include "source/lustre_ids.h"

#include "base/arena.h"
#include "base/quote.h"

enum {
    LONGEST_FORMAT = 256,
    LONGEST_ID = 256, /* Lustre's own limit is 32 to 64 */
};

enum piece_kind { TEXT, NUMBER, NAME };

struct code {
    char letter;
    enum piece_kind kind;
    bool names_host; /* letters, digits, '-', '_'; in full also dots */
    bool tells;      /* whose the id is */
};

static const struct code codes[] = {
    { .letter = 'e', .kind = NAME, .tells = true },
    { .letter = 'g', .kind = NUMBER },
    { .letter = 'h', .kind = NAME, .names_host = true },
    { .letter = 'H', .kind = NAME, .names_host = true },
    { .letter = 'j', .kind = NUMBER, .tells = true },
    { .letter = 'p', .kind = NUMBER },
    { .letter = 'u', .kind = NUMBER, .tells = true },
};

/* Text, or a code with nothing in `text`. */
struct piece {
    enum piece_kind kind;
    const struct code *code;
    struct str text;
};

struct lustre_format {
    char bytes[LONGEST_FORMAT]; /* of all texts */
    struct piece pieces[2 * COUNT(codes) + 1];
    size_t n;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_in_host(char c, const struct code *code)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || (c == '.' && code->letter == 'h');
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static const struct code *find_code(char letter)
{
    for (size_t i = 0; i < COUNT(codes); i++)
        if (codes[i].letter == letter)
            return &codes[i];
    return NULL;
}

static struct str unquoted(struct str text)
{
    bool is_quoted =
        text.n >= 2 && (text.p[0] == '"' || text.p[0] == '\'') && text.p[text.n - 1] == text.p[0];

    return is_quoted ? (struct str){ text.p + 1, text.n - 2 } : text;
}

static int add_code(struct lustre_format *format, char letter, struct err *err)
{
    const struct code *code = find_code(letter);

    if (!code)
        return err_set(err, EINVAL,
                       "%%%s is no code of Lustre's: there are %%e %%g %%h %%H %%j %%p %%u",
                       quote((struct str){ &letter, 1 }).text);
    for (size_t i = 0; i < format->n; i++) {
        const struct code *other = format->pieces[i].code;

        if (other == code)
            return err_set(err, EINVAL, "%%%c is there twice", letter);
        if (other && other->names_host && code->names_host)
            return err_set(err, EINVAL, "%%h and %%H both name the host");
    }
    if (format->n && format->pieces[format->n - 1].code)
        return err_set(err, EINVAL,
                       "nothing stands between %%%c and %%%c: they could not be told apart",
                       format->pieces[format->n - 1].code->letter, letter);
    format->pieces[format->n++] = (struct piece){ .kind = code->kind, .code = code };
    return 0;
}

static void add_byte(struct lustre_format *format, char *at)
{
    struct piece *last = format->n ? &format->pieces[format->n - 1] : NULL;

    if (last && last->kind == TEXT)
        last->text.n++;
    else
        format->pieces[format->n++] = (struct piece){ .kind = TEXT, .text = { at, 1 } };
}

static int add_pieces(struct lustre_format *format, struct str text, struct err *err)
{
    char *to = format->bytes;
    int code = 0;

    for (size_t i = 0; i < text.n && code == 0; i++) {
        if (is_space(text.p[i])) /* Lustre passes over it */
            continue;
        if (text.p[i] == '%') {
            i++;
            code = i < text.n ? add_code(format, text.p[i], err)
                              : err_set(err, EINVAL, "it ends with a %%");
            continue;
        }
        *to = text.p[i];
        add_byte(format, to++);
    }
    return code;
}

/* A number ends where its digits do. */
static int check_digits(const struct lustre_format *format, struct err *err)
{
    for (size_t i = 0; i < format->n; i++) {
        const struct piece *piece = &format->pieces[i];
        bool is_behind_digit =
            i && piece[-1].kind == TEXT && is_digit(piece[-1].text.p[piece[-1].text.n - 1]);
        bool is_before_digit =
            i + 1 < format->n && piece[1].kind == TEXT && is_digit(piece[1].text.p[0]);

        if (piece->kind == NUMBER && (is_behind_digit || is_before_digit))
            return err_set(err, EINVAL, "a digit stands beside %%%c, which is a number itself",
                           piece->code->letter);
    }
    return 0;
}

static int check(const struct lustre_format *format, struct err *err)
{
    for (size_t i = 0; i < format->n; i++)
        if (format->pieces[i].code && format->pieces[i].code->tells)
            return check_digits(format, err);
    return err_set(err, EINVAL, "it has none of %%j, %%e and %%u, which tell whose an id is");
}

int lustre_format_new(struct str text, struct lustre_format **ret, struct err *err)
{
    struct lustre_format *format;
    int code;

    text = unquoted(text);
    if (text.n > LONGEST_FORMAT)
        return err_set(err, EINVAL, "a format of Lustre's job ids has %d bytes at most",
                       LONGEST_FORMAT);
    format = heap_alloc(sizeof(*format));
    code = add_pieces(format, text, err);
    if (code == 0)
        code = check(format, err);
    if (code < 0) {
        free(format);
        return err_prefix(err, "\"%s\" is no format of Lustre's job ids", quote(text).text);
    }
    *ret = format;
    return 0;
}

struct lustre_format *lustre_format_free(struct lustre_format *format)
{
    free(format);
    return NULL;
}

static bool get_number(struct str digits, uint32_t *ret)
{
    uint64_t value = 0;

    for (size_t i = 0; i < digits.n; i++) {
        value = value * 10 + (uint64_t)(digits.p[i] - '0');
        if (value > UINT32_MAX)
            return false;
    }
    *ret = (uint32_t)value;
    return digits.n > 0;
}

static size_t count_digits(struct str text)
{
    size_t n = 0;

    while (n < text.n && is_digit(text.p[n]))
        n++;
    return n;
}

static bool read_number(const struct code *code, struct str digits, struct lustre_parts *parts)
{
    uint32_t number = 0;
    bool is_number = get_number(digits, &number);

    if (code->letter == 'j') {
        parts->has_job = number != 0;
        parts->job_id = number;
        return parts->has_job || !digits.n; /* of a process that is in no job */
    }
    if (code->letter == 'u') {
        parts->has_user = is_number;
        parts->user_id = number;
    }
    return is_number;
}

static size_t longest_name(const struct code *code, struct str rest)
{
    size_t n = 0;

    if (!code->names_host)
        return rest.n;
    while (n < rest.n && is_in_host(rest.p[n], code))
        n++;
    return n;
}

/* Behind a name: a byte says as much of most places as all of what follows. */
static bool may_follow(const struct piece *piece, const struct piece *end, struct str rest)
{
    return piece == end ? !rest.n : rest.n && rest.p[0] == piece->text.p[0];
}

/* A name is followed by text, so that each of its lengths costs a comparison, and by one more name
 * at most. The name of a process has at least `least` bytes. */
static bool read_pieces(const struct piece *piece, const struct piece *end, struct str rest,
                        size_t least, struct lustre_parts *parts)
{
    bool is_process;

    for (; piece < end && piece->kind != NAME; piece++) {
        size_t n = piece->kind == TEXT ? piece->text.n : count_digits(rest);

        if (piece->kind == TEXT ? !str_starts(rest, piece->text)
                                : !read_number(piece->code, str_head(rest, n), parts))
            return false;
        rest = str_skip(rest, n);
    }
    if (piece == end)
        return rest.n == 0;
    is_process = piece->code->letter == 'e';
    for (size_t n = longest_name(piece->code, rest) + 1; n-- > (is_process ? least : 0);) {
        if (!may_follow(piece + 1, end, str_skip(rest, n)) ||
            !read_pieces(piece + 1, end, str_skip(rest, n), least, parts))
            continue;
        if (is_process)
            parts->process = str_head(rest, n);
        return true;
    }
    return false;
}

static bool read_id(const struct lustre_format *format, struct str id, size_t least,
                    struct lustre_parts *ret)
{
    *ret = (struct lustre_parts){ .process = STR("") };
    return read_pieces(format->pieces, format->pieces + format->n, id, least, ret) &&
           (ret->has_job || ret->has_user || ret->process.n);
}

/* Read by %h.%e, "node1.bash." is process "bash." of node1, not a process without a name of
 * node1.bash. A process without a name is the last resort. */
bool lustre_format_read(const struct lustre_format *format, struct str id, struct lustre_parts *ret)
{
    return id.n <= LONGEST_ID && (read_id(format, id, 1, ret) || read_id(format, id, 0, ret));
}

bool lustre_id_read(struct str id, struct lustre_parts *ret)
{
    size_t begin = id.n;
    uint32_t number;

    *ret = (struct lustre_parts){ .process = STR("") };
    while (begin && is_digit(id.p[begin - 1]))
        begin--;
    if (!get_number(str_skip(id, begin), &number))
        return false;
    if (!begin) {
        ret->has_job = number != 0;
        ret->job_id = number;
        return ret->has_job;
    }
    ret->process = str_head(id, begin - 1);
    ret->has_user = id.p[begin - 1] == '.';
    ret->user_id = number;
    return ret->has_user;
}
