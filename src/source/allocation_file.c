/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "source/allocation_file.h"
