/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where sonde's other programs are: in the directory of this one. */
#ifndef SONDE_CMD_BESIDE_H
#define SONDE_CMD_BESIDE_H

/* The path of "sonde-report" and the like, from the heap. */
char *program_beside_us(const char *name);

#endif
