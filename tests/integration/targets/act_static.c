/* SPDX-License-Identifier: MIT */
/* act as a static program, into which nothing can be preloaded. */
#include "act.c"
