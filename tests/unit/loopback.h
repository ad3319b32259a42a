/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A socket for tests that play a server themselves. */
#ifndef SONDE_TESTS_LOOPBACK_H
#define SONDE_TESTS_LOOPBACK_H

#include <stdint.h>

/* Listens on a free port of 127.0.0.1. With a backlog below 0 it is only bound: connections are
 * refused. */
int listen_on_loopback(int backlog, uint16_t *ret_port);

#endif
