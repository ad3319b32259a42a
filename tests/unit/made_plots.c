/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes plots for tests of charts. */
#include "made_plots.h"

#include "base/buf.h"

#include <math.h>

struct curve {
    enum facts_plot_kind kind;
    double height;
    double steepness; /* how fast it comes near that height */
};

static const struct curve curves[] = {
    { PLOT_CPU, 30, 40 },
    { PLOT_MEMORY, 50 * 0x1p30, 4 },
    { PLOT_READ, 300 * 0x1p20, 100 },
    { PLOT_WRITTEN, 90 * 0x1p20, 100 },
    { PLOT_GPU, 0.9, 20 },
    { PLOT_GPU_MEMORY, 36 * 0x1p30, 20 },
    { PLOT_GPU_POWER, 380, 20 },
};

static double random_share(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return (double)(*state >> 8) / 0x1p24;
}

static struct str line_name(struct arena *arena, const struct made_plots *wanted,
                            enum facts_plot_kind kind, size_t i)
{
    static const struct str ranges[] = { STR_INIT("median"), STR_INIT("lowest"),
                                         STR_INIT("highest") };
    struct buf name;
    struct str kept;

    if (wanted->n_members > wanted->n_lines)
        return ranges[i % COUNT(ranges)];
    buf_init(&name, 64);
    buf_printf(&name, kind >= PLOT_GPU ? "node%02zu gpu%zu" : "node%02zu",
               kind >= PLOT_GPU ? i / 4 + 1 : i + 1, i % 4);
    kept = arena_str(arena, buf_str(&name));
    buf_free(&name);
    return kept;
}

static void fill(struct plot_line *line, const struct curve *curve, const struct made_plots *wanted,
                 size_t i)
{
    double share = wanted->n_members > wanted->n_lines
                       ? (double[]){ 0.7, 0.2, 1 }[i % 3]
                       : 1 - 0.6 * (double)i / (double)wanted->n_lines;
    uint32_t state = (uint32_t)(curve->kind * 100 + i + 1);

    for (size_t k = 0; k < wanted->n_points; k++) {
        double way = (double)k / (double)wanted->n_points;
        double value = curve->height * share * (1 - exp(-curve->steepness * way));

        value *= 1 - wanted->noise * random_share(&state);
        line->value[k] = way > 0.1 && way < 0.14 ? NAN : value;
    }
}

void make_plots(struct job_facts *facts, struct arena *arena, const struct made_plots *wanted)
{
    for (size_t c = 0; c < COUNT(curves); c++) {
        struct facts_plot *plot = &facts->plot[curves[c].kind];

        if (curves[c].kind >= PLOT_GPU && !facts->n_gpus)
            break;
        *plot = (struct facts_plot){
            .begin = wanted->begin,
            .step_seconds = wanted->step_seconds,
            .n_points = wanted->n_points,
            .line = ARENA_ARRAY(arena, struct plot_line, wanted->n_lines),
            .n_lines = wanted->n_lines,
            .n_members = wanted->n_members ? wanted->n_members : wanted->n_lines,
        };
        for (size_t i = 0; i < wanted->n_lines; i++) {
            plot->line[i].name = line_name(arena, wanted, curves[c].kind, i);
            plot->line[i].value = ARENA_ARRAY(arena, double, wanted->n_points);
            fill(&plot->line[i], &curves[c], wanted, i);
        }
    }
}
