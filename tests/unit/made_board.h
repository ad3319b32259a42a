/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Boards of one cluster with sections made from text. */
#ifndef SONDE_TESTS_MADE_BOARD_H
#define SONDE_TESTS_MADE_BOARD_H

#include "sections.h"

#include "web/board.h"

enum { MADE_NOW = 1700000000 };

/* Takes the sections over; either may be NULL. */
static inline struct board *made_board(struct section *nodes, struct section *jobs)
{
    struct board *board = board_new(1, MADE_NOW);

    board->cluster[0].name = STR("north");
    board->cluster[0].section[KIND_NODES] = nodes;
    board->cluster[0].section[KIND_JOBS] = jobs;
    board_sum(board);
    return board;
}

#endif
