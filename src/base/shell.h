/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Words for a shell's command line: POSIX.1-2017 XCU 2.2, csh(1) and fish(1), where they agree. */
#ifndef SONDE_BASE_SHELL_H
#define SONDE_BASE_SHELL_H

#include "base/buf.h"

/* One word that means exactly these bytes to sh, bash, dash, ksh, zsh, csh and fish. A newline is
 * right for all but csh, which has no way to say it that the others understand. */
void shell_word(struct buf *to, struct str word);

#endif
