/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Boards for pages, made of what the refreshers of `sonde up` have seen. */
#ifndef SONDE_CMD_UP_BOARD_H
#define SONDE_CMD_UP_BOARD_H

#include "cmd/up_health.h"
#include "http/metrics.h"
#include "web/board.h"

struct up_board;

/* What it sees of the refreshers' work is noted in `health`, which may be NULL. */
struct up_board *up_board_new(const struct clock *clock, struct up_health *health);
struct up_board *up_board_free(struct up_board *boards); /* returns NULL */

/* From now on of these refreshers; when it returns, nobody asks those before any more. NULL: there
 * are none left. Their tuning must keep facts. */
void up_board_use(struct up_board *boards, struct engine *engine);

/* For people, who are shown what there is if news takes longer than a moment; and for who wants
 * news, and waits for them until the deadline. */
struct board_source up_board_source(struct up_board *boards);
struct board_source up_board_patient(struct up_board *boards);

#endif
