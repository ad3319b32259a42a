/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Detects the format of the output of a site's own commands. */
#include "source/foreign.h"

#include "source/cli.h"

enum { HEAD_MAX = 4096 }; /* of bytes after which a format is known */

enum form { FORM_UNKNOWN, FORM_LINES, FORM_DOCUMENT };

static struct str skip_space(struct str s)
{
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t' || s.p[0] == '\n' || s.p[0] == '\r'))
        s = str_skip(s, 1);
    return s;
}

/* Takes one byte, with the white space before it. */
static bool take(struct str *s, char byte)
{
    *s = skip_space(*s);
    if (!s->n || s->p[0] != byte)
        return false;
    *s = str_skip(*s, 1);
    return true;
}

/* A document of Slurm's is an object whose first member is an object or a list ("meta", "jobs");
 * the objects that stand one in a line hold nothing but texts and numbers. */
static enum form form_of(struct str head)
{
    struct str rest = skip_space(head);

    if (rest.n && rest.p[0] != '{')
        return FORM_LINES;
    take(&rest, '{');
    if (take(&rest, '}'))
        return FORM_DOCUMENT;
    take(&rest, '"');
    rest = str_skip(rest, str_find(rest, '"'));
    take(&rest, '"');
    take(&rest, ':');
    rest = skip_space(rest);
    if (!rest.n)
        return FORM_UNKNOWN;
    return rest.p[0] == '{' || rest.p[0] == '[' ? FORM_DOCUMENT : FORM_LINES;
}

static int choose(struct foreign *foreign, enum form form, struct str first, struct err *err)
{
    foreign->inner = answer_new(form == FORM_DOCUMENT ? foreign->document : foreign->lines,
                                foreign->answer.section, foreign->answer.max_bytes);
    return first.n ? foreign->inner->class->feed(foreign->inner, first, err) : 0;
}

void foreign_begin(struct answer *answer, const struct answer_class *lines,
                   const struct answer_class *document)
{
    struct foreign *foreign = (struct foreign *)answer;

    foreign->lines = lines;
    foreign->document = document;
    buf_init(&foreign->head, HEAD_MAX);
}

int foreign_feed(struct answer *answer, struct str piece, struct err *err)
{
    struct foreign *foreign = (struct foreign *)answer;
    struct str held = str_head(piece, HEAD_MAX - foreign->head.n);
    enum form form;
    int code;

    if (foreign->inner)
        return foreign->inner->class->feed(foreign->inner, piece, err);
    buf_put(&foreign->head, held);
    form = form_of(buf_str(&foreign->head));
    if (form == FORM_UNKNOWN && foreign->head.n < HEAD_MAX)
        return 0;
    code = choose(foreign, form, buf_str(&foreign->head), err);
    piece = str_skip(piece, held.n);
    if (code == 0 && piece.n)
        code = foreign->inner->class->feed(foreign->inner, piece, err);
    return code;
}

int foreign_end(struct answer *answer, struct err *err)
{
    struct foreign *foreign = (struct foreign *)answer;
    int code = 0;

    if (!foreign->inner)
        code = choose(foreign, FORM_LINES, buf_str(&foreign->head), err);
    if (code < 0)
        return code;
    if (foreign->inner->class == foreign->lines)
        lines_end(&((struct lined *)foreign->inner)->lines);
    return foreign->inner->class->end(foreign->inner, err);
}

void foreign_free(struct answer *answer)
{
    struct foreign *foreign = (struct foreign *)answer;

    answer_free(foreign->inner);
    buf_free(&foreign->head);
}
