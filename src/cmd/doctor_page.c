/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints the findings of `sonde admin doctor`. */
#include "cmd/doctor_page.h"

#include "base/buf.h"

#include <stdarg.h>
#include <sys/ioctl.h>

enum {
    USUAL_WIDTH = 80,
    NARROWEST = 60,
    WIDEST = 100,
    NAME_WIDTH = 12,
    MARGIN = 2 + 4 + 2 + NAME_WIDTH + 1,
    LONGEST_TEXT = 4096,
};

static const struct {
    const char *word, *colour;
    const char *one, *many;
} marks[MARKS] = {
    [MARK_OK] = { "ok", "\033[32m", "ok", "ok" },
    [MARK_NOTE] = { "note", "\033[36m", "note", "notes" },
    [MARK_WARN] = { "warn", "\033[33m", "warning", "warnings" },
    [MARK_FAIL] = { "FAIL", "\033[1;31m", "failure", "failures" },
};

static bool wants_colours(void)
{
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

    return !(no_colour && no_colour[0]) && term && strcmp(term, "dumb") != 0;
}

struct page page_for(FILE *to)
{
    struct page page = { .to = to, .width = USUAL_WIDTH };
    struct winsize size;

    if (!isatty(fileno(to)))
        return page;
    page.has_colours = wants_colours();
    if (ioctl(fileno(to), TIOCGWINSZ, &size) == 0 && size.ws_col)
        page.width = size.ws_col < NARROWEST ? NARROWEST
                     : size.ws_col > WIDEST  ? WIDEST
                                             : size.ws_col;
    return page;
}

void page_title(struct page *page, const char *title)
{
    page->title = title;
}

static void print_title(struct page *page)
{
    if (page->title)
        fprintf(page->to, "\n%s%s%s\n", page->has_colours ? "\033[1m" : "", page->title,
                page->has_colours ? "\033[0m" : "");
    page->title = NULL;
}

static bool is_break(char c)
{
    return (unsigned char)c <= ' ' && c != GLUE[0];
}

/* The next word, empty at the end; whether it begins a line of the text. */
static struct str take_word(struct str *rest, bool *ret_is_first)
{
    size_t begin = 0, end;
    struct str word;

    *ret_is_first = false;
    for (; begin < rest->n && is_break(rest->p[begin]); begin++)
        *ret_is_first |= rest->p[begin] == '\n';
    for (end = begin; end < rest->n && !is_break(rest->p[end]);)
        end++;
    word = (struct str){ rest->p + begin, end - begin };
    *rest = str_skip(*rest, end);
    return word;
}

/* Returns how many columns that took. */
static size_t print_word(FILE *to, struct str word)
{
    size_t columns = 0;

    for (; word.n; columns++) {
        size_t n = str_utf8_len(word);

        if (word.p[0] == GLUE[0])
            fputc(' ', to);
        else if (n == 0 || word.p[0] == '\177' ||
                 (n == 2 && word.p[0] == '\302' && word.p[1] < '\240'))
            fputc('?', to);
        else
            fwrite(word.p, 1, n, to);
        word = str_skip(word, n ? n : 1);
    }
    return columns;
}

static size_t count_columns(struct str word)
{
    size_t columns = 0;

    for (; word.n; columns++) {
        size_t n = str_utf8_len(word);

        word = str_skip(word, n ? n : 1);
    }
    return columns;
}

/* Behind the margin, where the cursor is. */
static void fill(const struct page *page, struct str text)
{
    size_t column = MARGIN;
    bool is_first;

    for (struct str word = take_word(&text, &is_first); word.n;
         word = take_word(&text, &is_first)) {
        if (column > MARGIN && (is_first || column + 1 + count_columns(word) > page->width)) {
            fprintf(page->to, "\n%*s", MARGIN, "");
            column = MARGIN;
        }
        if (column > MARGIN) {
            fputc(' ', page->to);
            column++;
        }
        column += print_word(page->to, word);
    }
    fputc('\n', page->to);
    fflush(page->to);
}

static void fill_formatted(const struct page *page, const char *format, va_list arguments)
{
    char text[LONGEST_TEXT];

    vsnprintf(text, sizeof(text), format, arguments);
    fill(page, str_of(text));
}

void page_finding(struct page *page, enum mark mark, const char *name, const char *format, ...)
{
    va_list arguments;

    print_title(page);
    page->counts[mark]++;
    fprintf(page->to, "  %s%-4s%s  %-*s ", page->has_colours ? marks[mark].colour : "",
            marks[mark].word, page->has_colours ? "\033[0m" : "", NAME_WIDTH, name);
    va_start(arguments, format);
    fill_formatted(page, format, arguments);
    va_end(arguments);
}

void page_advice(struct page *page, const char *format, ...)
{
    va_list arguments;

    fprintf(page->to, "%*s", MARGIN, "to do: ");
    va_start(arguments, format);
    fill_formatted(page, format, arguments);
    va_end(arguments);
}

void page_line(FILE *to, const char *text)
{
    struct str rest = str_of(text);
    bool is_first;

    for (struct str word = take_word(&rest, &is_first); word.n;
         word = take_word(&rest, &is_first)) {
        fputc(' ', to);
        print_word(to, word);
    }
    fputc('\n', to);
}

void page_summary(struct page *page, const char *sentence)
{
    size_t all = 0;

    for (int mark = 0; mark < MARKS; mark++)
        all += page->counts[mark];
    fprintf(page->to, "\n%zu finding%s: ", all, all == 1 ? "" : "s");
    for (int mark = 0; mark < MARKS; mark++)
        fprintf(page->to, "%s%zu %s", mark ? ", " : "", page->counts[mark],
                page->counts[mark] == 1 ? marks[mark].one : marks[mark].many);
    fprintf(page->to, ".\n%s\n", sentence);
    fflush(page->to);
}
