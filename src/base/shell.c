/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Quotes words for the command line of any shell. */
#include "base/shell.h"

/* What does not mean itself between single quotes: for nobody the quote, for fish the backslash,
 * for csh the mark of its history. Outside of them a backslash makes it mean itself, for all. */
static bool stands_outside(char c)
{
    return c == '\'' || c == '\\' || c == '!';
}

void shell_word(struct buf *to, struct str word)
{
    buf_byte(to, '\'');
    for (size_t i = 0; i < word.n; i++) {
        if (stands_outside(word.p[i]))
            buf_text(to, "'\\");
        buf_byte(to, word.p[i]);
        if (stands_outside(word.p[i]))
            buf_byte(to, '\'');
    }
    buf_byte(to, '\'');
}
