/* SPDX-License-Identifier: MIT */
#include "crew.c"
