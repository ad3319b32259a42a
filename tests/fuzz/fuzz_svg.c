/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Charts with any texts, and marks at any place: each 0x1e begins another mark, of which the first
 * byte is kind and look, the next 16 are two coordinates, and the rest is its text. expat takes
 * what was written, alone and in a page, and the texts in it are those that were given. */
#include "report/chart.h"

#include <expat.h>
#include <math.h>

#include "shown_text.h"

enum { MOST_BYTES = 4096, MOST_MARKS = 64, HEAD = 17 };

struct seen {
    struct buf texts; /* of all elements, each ended by a NUL, which XML cannot have */
    size_t n, n_elements;
    bool is_in_text;
};

static bool has_text(const XML_Char *name)
{
    return strcmp(name, "title") == 0 || strcmp(name, "desc") == 0 || strcmp(name, "text") == 0;
}

static void see_element(void *ctx, const XML_Char *name, const XML_Char **attributes)
{
    static const char *const names[] = { "svg",  "g",    "style", "title",  "desc",
                                         "path", "rect", "text",  "circle", "doc" };
    struct seen *seen = ctx;
    size_t i = 0;

    while (i < COUNT(names) && strcmp(name, names[i]) != 0)
        i++;
    FUZZ_CHECK(i < COUNT(names), "<%s>", name);
    for (; attributes[0]; attributes += 2)
        FUZZ_CHECK(strncmp(attributes[0], "on", 2) != 0 && !strstr(attributes[0], "href"), "%s",
                   attributes[0]);
    seen->is_in_text = has_text(name);
    seen->n_elements++;
}

static void see_end(void *ctx, const XML_Char *name)
{
    struct seen *seen = ctx;

    if (has_text(name)) {
        buf_byte(&seen->texts, '\0');
        seen->n++;
    }
    seen->is_in_text = false;
}

static void see_text(void *ctx, const XML_Char *text, int n)
{
    struct seen *seen = ctx;

    if (seen->is_in_text)
        buf_put(&seen->texts, (struct str){ text, (size_t)n });
}

static void check_markup(struct str markup, const struct chart *chart)
{
    struct seen seen = { 0 };
    XML_Parser parser = XML_ParserCreate("UTF-8");
    struct str rest;

    buf_init(&seen.texts, 1 << 20);
    XML_SetUserData(parser, &seen);
    XML_SetElementHandler(parser, see_element, see_end);
    XML_SetCharacterDataHandler(parser, see_text);
    FUZZ_CHECK(XML_Parse(parser, markup.p, (int)markup.n, 1) == XML_STATUS_OK, "%s\n%.*s",
               XML_ErrorString(XML_GetErrorCode(parser)), STR_ARG(markup));
    XML_ParserFree(parser);
    rest = buf_str(&seen.texts);
    FUZZ_CHECK(is_shown_as(chart->title, str_cut(&rest, '\0'), false));
    FUZZ_CHECK(is_shown_as(chart->summary, str_cut(&rest, '\0'), false));
    for (size_t i = 0; i < chart->n_marks; i++) {
        const struct mark *mark = &chart->mark[i];

        if (mark->text.n || mark->kind == MARK_TEXT)
            FUZZ_CHECK(is_shown_as(mark->text, str_cut(&rest, '\0'), false), "mark %zu of %.*s", i,
                       STR_ARG(markup));
    }
    FUZZ_CHECK(rest.n == 0, "%s", rest.p);
    buf_free(&seen.texts);
}

static void add_mark(struct chart *chart, struct str bytes)
{
    struct point points[3];
    struct mark mark = { .point = points, .n_points = COUNT(points) };
    uint8_t look;

    if (bytes.n < HEAD)
        return;
    look = (uint8_t)bytes.p[0];
    memcpy(&mark.at, bytes.p + 1, sizeof(mark.at));
    mark.kind = look % (MARK_TEXT + 1);
    mark.ink = look % (INK_FIRST + 2 * INK_SERIES);
    mark.dash = look % DASHES;
    mark.anchor = look % (ANCHOR_END + 1);
    mark.is_bold = look & 128;
    mark.size = mark.at;
    mark.from = mark.at.x;
    mark.to = mark.at.y;
    mark.width = mark.font_size = mark.at.y;
    points[0] = mark.at;
    points[1] = (struct point){ 1, look & 64 ? (double)NAN : 2 };
    points[2] = (struct point){ mark.at.y, mark.at.x };
    mark.text = str_skip(bytes, HEAD);
    chart_add(chart, &mark);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = { (const char *)data, size };
    struct arena arena = { 0 };
    struct chart chart;
    struct buf markup;

    if (size == 0 || size > MOST_BYTES)
        return 0;
    chart_init(&chart, &arena, 300, 200);
    chart.title = str_cut(&rest, '\x1e');
    chart.summary = rest.p ? str_cut(&rest, '\x1e') : STR("");
    while (rest.p && chart.n_marks < MOST_MARKS)
        add_mark(&chart, str_cut(&rest, '\x1e'));
    buf_init(&markup, 1 << 20);
    buf_text(&markup, "<doc>");
    chart_svg(&markup, &chart, "c1-");
    buf_text(&markup, "</doc>");
    FUZZ_CHECK(!markup.over);
    check_markup(buf_str(&markup), &chart);
    buf_reset(&markup);
    chart_svg_image(&markup, &chart);
    FUZZ_CHECK(!markup.over);
    check_markup(buf_str(&markup), &chart);
    buf_free(&markup);
    arena_clear(&arena);
    return 0;
}
