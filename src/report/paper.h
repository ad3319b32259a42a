/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What needs cairo and pango: charts as PNG, and the report as PDF. Linked by sonde-report only. */
#ifndef SONDE_REPORT_PAPER_H
#define SONDE_REPORT_PAPER_H

#include "report/chart.h"
#include "report/report.h"

/* -ENOMEM, -EFBIG (past the buffer's ceiling) with a sentence. */
int chart_png(struct buf *to, const struct chart *chart, double scale, struct err *err);

/* A4: title, summary with meters and findings, charts, page numbers, where the data is from and of
 * when. */
int report_pdf(struct buf *to, const struct job_report *report, struct err *err);

#endif
