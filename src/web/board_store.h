/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Boards from a store, for who does not ask Slurm: as new as what the exporter that writes it has
 * seen. What was not written for a while is withdrawn. */
#ifndef SONDE_WEB_BOARD_STORE_H
#define SONDE_WEB_BOARD_STORE_H

#include "base/clock.h"
#include "web/board.h"

struct board_store;

/* The store need not be there yet: -EINVAL for a URL that names none. The clock tells the age of
 * what is in it; both must live as long. */
int board_store_open(const char *url, const struct clock *clock, struct board_store **ret,
                     struct err *err);
struct board_store *board_store_close(struct board_store *boards); /* returns NULL */

struct board_source board_store_source(struct board_store *boards);

#endif
