/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What pictures and paper have in common: cairo draws, pango sets texts. One unit is a point. */
#ifndef SONDE_REPORT_DRAW_H
#define SONDE_REPORT_DRAW_H

#include "base/err.h"
#include "report/chart.h"

#include <pango/pangocairo.h>

/* Texts are set with one layout after the other. NULL with a sentence if there is no font at all.
 * To be unreferenced by g_object_unref. */
PangoLayout *draw_layout_new(cairo_t *cairo, struct err *err);

/* Any bytes: what cannot be shown becomes "?", and what is past DRAW_TEXT_MAX is left out. */
enum { DRAW_TEXT_MAX = 8192 };
void draw_set_text(PangoLayout *layout, struct str text);
void draw_set_font(PangoLayout *layout, const char *family, double size, bool is_bold);

void draw_chart(cairo_t *cairo, PangoLayout *layout, const struct chart *chart);

/* For streams: adds to the struct buf that `to` is. */
cairo_status_t draw_write(void *to, const unsigned char *data, unsigned int length);

/* A sentence for what went wrong in cairo, or past the ceiling of `to`; 0 if nothing did. `what`
 * was to be made: "the PDF". */
int draw_outcome(cairo_status_t status, const struct buf *to, const char *what, struct err *err);

extern const char draw_family[], draw_fixed_family[];

#endif
