/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A section of an outline on paper: its facts in two columns, and its table. */
#ifndef SONDE_REPORT_SHEET_SECTION_H
#define SONDE_REPORT_SHEET_SECTION_H

#include "report/outline.h"
#include "report/sheet.h"

void sheet_section(struct sheet *sheet, const struct outline_section *section);

#endif
