/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The program that is behind `sonde exporter`, `sonde lustre` and `sonde up`. */
#ifndef SONDE_CMD_EXPORTING_H
#define SONDE_CMD_EXPORTING_H

#include "cmd/exporter_settings.h"

/* Serves until a signal ends it; what to exit with. */
int exporter_main(const struct exporter_shape *shape, int argc, char **argv);

#endif
