// SPDX-License-Identifier: GPL-2.0-only
#include "table.h"

const int lamp_delays[LEVELS] = { 1, 2, 4 };
