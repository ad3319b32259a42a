/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Draws charts of CPU time by core and by user and system time. */
#include "report/core_charts.h"

#include "base/shown.h"
#include "report/plot.h"
#include "report/words.h"

#include <math.h>

enum { NAME_COLUMNS = 20, TEXT_MAX = 2048 };

struct share {
    struct str name;
    double seconds;
};

/* Texts are made in one buffer and kept in the chart's arena. */
static struct str keep(struct chart *chart, struct buf *text)
{
    struct str kept = arena_str(chart->arena, buf_str(text));

    buf_reset(text);
    return kept;
}

static double sum_of(const struct share *share, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += share[i].seconds;
    return sum;
}

/* "user: 85 %, 02:30:05"; the percentage alone where there is less room than that. */
static struct str share_text(struct chart *chart, const struct share *share, double sum,
                             double room)
{
    struct buf text;
    struct str kept;
    size_t n;

    buf_init(&text, TEXT_MAX);
    shown_put_cut(&text, share->name, NAME_COLUMNS);
    buf_text(&text, ": ");
    words_percent(&text, share->seconds / sum);
    n = text.n;
    buf_text(&text, ", ");
    words_duration(&text, share->seconds);
    if (chart_text_width(buf_str(&text), plot_font_size) > room)
        text.n = n;
    kept = keep(chart, &text);
    buf_free(&text);
    return kept;
}

static void put_wedge(struct chart *to, struct point centre, double radius, double from, double end,
                      int ink, struct str text)
{
    /* a slit between neighbours, whatever colour is behind them */
    const double slit = fmin(0.004, (end - from) / 4);
    bool is_whole = end - from > 0.9999;

    chart_add(to, &(struct mark){
                      .kind = MARK_WEDGE,
                      .ink = ink,
                      .at = centre,
                      .size = { radius, radius },
                      .from = is_whole ? from : from + slit / 2,
                      .to = is_whole ? end : end - slit / 2,
                      .text = text,
                  });
}

/* A wedge's percentage, outside of it, where there is room for one. */
static void put_percent(struct chart *to, struct point centre, double radius, double middle,
                        double ratio)
{
    const double least_ratio = 0.03, distance = radius + 5;
    double angle = 2 * M_PI * middle;
    struct point at = { centre.x + distance * sin(angle),
                        centre.y - distance * cos(angle) + plot_font_size / 3 };
    struct buf text;

    if (ratio < least_ratio)
        return;
    buf_init(&text, TEXT_MAX);
    words_percent(&text, ratio);
    plot_text(to, at,
              fabs(sin(angle)) < 0.2 ? ANCHOR_MIDDLE
              : sin(angle) > 0       ? ANCHOR_START
                                     : ANCHOR_END,
              INK_FAINT, buf_str(&text));
    buf_free(&text);
}

static void put_list(struct chart *to, const struct share *share, size_t n, double left)
{
    const double row = 11, box = 7;
    double y = fmax(24, to->height / 2 - row * (double)n / 2 + 10);

    for (size_t i = 0; i < n; i++, y += row) {
        chart_add(to, &(struct mark){
                          .kind = MARK_RECTANGLE,
                          .ink = INK_FIRST + (int)i,
                          .at = { left, y - box + 1 },
                          .size = { box, box },
                      });
        plot_text(to, (struct point){ left + box + 5, y }, ANCHOR_START, INK_TEXT,
                  share_text(to, &share[i], sum_of(share, n), to->width - left - box - 5));
    }
}

static void put_pie(struct chart *to, const struct share *share, size_t n)
{
    const double head = 20, label_width = 26, label_height = 11;
    double sum = sum_of(share, n), turned = 0;
    double radius = fmax(10, fmin((to->height - head) / 2 - label_height, to->width / 6));
    struct point centre = { radius + label_width, head + label_height + radius };

    for (size_t i = 0; i < n; i++) {
        double ratio = share[i].seconds / sum;

        if (!(ratio > 0))
            continue;
        put_wedge(to, centre, radius, turned, turned + ratio, INK_FIRST + (int)i,
                  share_text(to, &share[i], sum, INFINITY));
        put_percent(to, centre, radius, turned + ratio / 2, ratio);
        turned += ratio;
    }
    put_list(to, share, n, centre.x + radius + label_width + 4);
}

/* All shares in one sentence. */
static void set_summary(struct chart *to, const struct share *share, size_t n)
{
    struct buf text;

    buf_init(&text, TEXT_MAX);
    buf_put(&text, to->title);
    for (size_t i = 0; i < n; i++) {
        buf_text(&text, i ? ", " : ": ");
        buf_put(&text, share_text(to, &share[i], sum_of(share, n), INFINITY));
    }
    to->summary = keep(to, &text);
    buf_free(&text);
}

static bool is_amount(double seconds)
{
    return seconds > 0 && isfinite(seconds) && !words_are_none(seconds);
}

static bool pie(struct chart *to, struct str title, const struct share *share, size_t n)
{
    if (!is_amount(sum_of(share, n)))
        return false;
    to->title = title;
    plot_title(to);
    set_summary(to, share, n);
    put_pie(to, share, n);
    return true;
}

bool time_pie_has_data(const struct job_facts *facts)
{
    return is_amount(facts->total.user_seconds + facts->total.system_seconds);
}

bool time_pie(struct chart *to, const struct job_facts *facts)
{
    const struct share shares[] = {
        { STR("user"), facts->total.user_seconds },
        { STR("system"), facts->total.system_seconds },
    };

    return pie(to, STR("CPU time: user and system"), shares, COUNT(shares));
}

struct core {
    const struct node_facts *node;
    uint32_t number;
    double seconds;
};

/* Of all nodes, in their order; *ret is the caller's to free. */
static size_t take_cores(const struct job_facts *facts, struct core **ret)
{
    struct core *cores = NULL;
    size_t n = 0, n_room = 0;

    for (size_t i = 0; i < facts->n_nodes; i++) {
        for (size_t k = 0; k < facts->node[i].n_cores; k++) {
            const struct core_facts *core = &facts->node[i].core[k];

            if (!(core->seconds >= 0) || !isfinite(core->seconds))
                continue;
            cores = heap_grow(cores, n, &n_room, sizeof(*cores));
            cores[n++] = (struct core){ &facts->node[i], core->core, core->seconds };
        }
    }
    *ret = cores;
    return n;
}

static bool is_one_node(const struct core *cores, size_t n)
{
    return cores[0].node == cores[n - 1].node;
}

/* "core 3", or of several nodes "n1 core 3". */
static struct str core_text(struct chart *to, const struct core *core, bool has_node)
{
    struct buf text;
    struct str kept;

    buf_init(&text, TEXT_MAX);
    if (has_node) {
        shown_put_cut(&text, core->node->name, NAME_COLUMNS);
        buf_byte(&text, ' ');
    }
    buf_printf(&text, "core %u", core->number);
    kept = keep(to, &text);
    buf_free(&text);
    return kept;
}

static bool core_pie(struct chart *to, const struct core *cores, size_t n)
{
    struct share shares[CORE_WEDGES];

    for (size_t i = 0; i < n; i++)
        shares[i] =
            (struct share){ core_text(to, &cores[i], !is_one_node(cores, n)), cores[i].seconds };
    return pie(to, STR("CPU time by core"), shares, n);
}

static int busiest_first(const void *a, const void *b)
{
    const struct core *left = a, *right = b;

    return (left->seconds < right->seconds) - (left->seconds > right->seconds);
}

/* So many that bars would be too thin: n_bars groups of them, each with its mean. Returns how many
 * bars there are. */
static size_t group(struct core *cores, size_t n, size_t n_bars)
{
    if (n <= n_bars)
        return n;
    qsort(cores, n, sizeof(*cores), busiest_first);
    for (size_t i = 0; i < n_bars; i++) {
        size_t begin = i * n / n_bars, end = (i + 1) * n / n_bars;
        double sum = 0;

        for (size_t k = begin; k < end; k++)
            sum += cores[k].seconds;
        /* begin is not below i: what is still needed is not written over */
        cores[i] = (struct core){ .seconds = sum / (double)(end - begin) };
    }
    return n_bars;
}

/* Under the bars: the numbers of the cores of one node, the names of several. */
static void put_core_numbers(const struct plot *plot, const struct core *cores, size_t n)
{
    const double least_gap = 22;
    double bar = (plot->right - plot->left) / (double)n;
    size_t every = 1;
    struct buf text;

    while (bar * (double)every < least_gap)
        every *= 2;
    buf_init(&text, TEXT_MAX);
    for (size_t i = 0; i < n; i += every) {
        buf_reset(&text);
        buf_u64(&text, cores[i].number);
        plot_text(plot->chart,
                  (struct point){ plot->left + bar * ((double)i + 0.5), plot_row(plot, 0) },
                  ANCHOR_MIDDLE, INK_FAINT, buf_str(&text));
    }
    buf_free(&text);
}

static void put_node_names(const struct plot *plot, const struct core *cores, size_t n)
{
    double bar = (plot->right - plot->left) / (double)n, taken = 0;

    for (size_t begin = 0, end; begin < n; begin = end) {
        struct str name = cores[begin].node->name;
        double width = chart_text_width(str_head(name, TEXT_MAX), plot_font_size);
        double middle;

        for (end = begin; end < n && cores[end].node == cores[begin].node; end++)
            ;
        middle = plot->left + bar * (double)(begin + end) / 2;
        if (begin)
            plot_line(plot->chart, (struct point){ plot->left + bar * (double)begin, plot->bottom },
                      (struct point){ plot->left + bar * (double)begin, plot->bottom + 4 },
                      INK_FAINT, 0.7);
        if (middle - width / 2 < taken || middle + width / 2 > plot->chart->width)
            continue;
        plot_text(plot->chart, (struct point){ middle, plot_row(plot, 0) }, ANCHOR_MIDDLE,
                  INK_FAINT, name);
        taken = middle + width / 2 + 6;
    }
}

static void put_bars(const struct plot *plot, const struct core *cores, size_t n, bool has_node)
{
    double bar = (plot->right - plot->left) / (double)n;

    for (size_t i = 0; i < n; i++) {
        double top = plot_height_of(plot, cores[i].seconds);
        struct share share = { .seconds = cores[i].seconds };
        struct buf text;

        buf_init(&text, TEXT_MAX);
        if (cores[i].node) {
            share.name = core_text(plot->chart, &cores[i], has_node);
            buf_put(&text, share.name);
            buf_text(&text, ": ");
        }
        words_duration(&text, share.seconds);
        chart_add(plot->chart, &(struct mark){
                                   .kind = MARK_RECTANGLE,
                                   .ink = INK_FIRST,
                                   .at = { plot->left + bar * ((double)i + 0.1), top },
                                   .size = { bar * 0.8, plot->bottom - top },
                                   .text = buf_str(&text),
                               });
        buf_free(&text);
    }
}

/* "CPU time by core: between 00:10:00 and 01:00:00, 00:45:00 on average" */
static void set_bars_summary(struct chart *to, const struct core *cores, size_t n, double mean)
{
    double least = cores[0].seconds, most = least;
    struct buf text;

    for (size_t i = 1; i < n; i++) {
        least = fmin(least, cores[i].seconds);
        most = fmax(most, cores[i].seconds);
    }
    buf_init(&text, TEXT_MAX);
    buf_put(&text, to->title);
    buf_text(&text, ": between ");
    words_duration(&text, least);
    buf_text(&text, " and ");
    words_duration(&text, most);
    buf_text(&text, ", ");
    words_duration(&text, mean);
    buf_text(&text, " on average");
    to->summary = keep(to, &text);
    buf_free(&text);
}

static struct str mean_text(struct chart *to, double mean, size_t n)
{
    struct buf text;
    struct str kept;

    buf_init(&text, TEXT_MAX);
    buf_text(&text, "mean of ");
    words_number(&text, (double)n);
    buf_text(&text, " cores: ");
    words_duration(&text, mean);
    kept = keep(to, &text);
    buf_free(&text);
    return kept;
}

static bool core_bars(struct chart *to, struct core *cores, size_t n)
{
    const double least_bar = 1.5, axis_width = 50;
    size_t n_bars = (size_t)fmax(1, (to->width - axis_width) / least_bar);
    bool has_node = !is_one_node(cores, n), is_grouped = n > n_bars;
    double sum = 0, most = 0;
    struct legend legend;
    struct plot plot;

    for (size_t i = 0; i < n; i++)
        sum += cores[i].seconds;
    to->title = is_grouped ? STR("CPU time by core, the busiest first") : STR("CPU time by core");
    set_bars_summary(to, cores, n, sum / (double)n);
    legend = (struct legend){
        { { SAMPLE_LINE, INK_LIMIT, DASH_LIMIT, mean_text(to, sum / (double)n, n) } }, 1
    };
    n_bars = group(cores, n, n_bars);
    for (size_t i = 0; i < n_bars; i++)
        most = fmax(most, cores[i].seconds);

    plot_title(to);
    plot_init(&plot, to, AXIS_SECONDS, most, !is_grouped, &legend);
    put_bars(&plot, cores, n_bars, has_node);
    if (!is_grouped && has_node)
        put_node_names(&plot, cores, n);
    else if (!is_grouped)
        put_core_numbers(&plot, cores, n);
    plot_limit(&plot, sum / (double)n, legend.entry[0].text);
    return true;
}

bool core_chart_has_data(const struct job_facts *facts)
{
    struct core *cores;
    size_t n = take_cores(facts, &cores);
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += cores[i].seconds;
    free(cores);
    return is_amount(sum);
}

bool core_chart(struct chart *to, const struct job_facts *facts)
{
    struct core *cores;
    size_t n;
    bool is_drawn;

    if (!core_chart_has_data(facts))
        return false;
    n = take_cores(facts, &cores);
    is_drawn = n <= CORE_WEDGES ? core_pie(to, cores, n) : core_bars(to, cores, n);

    free(cores);
    return is_drawn;
}
