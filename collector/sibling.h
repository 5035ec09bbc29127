/* SPDX-License-Identifier: MIT */
/* Other collectors, which may have been killed before they could clean up. */
#ifndef COLLECTOR_SIBLING_H
#define COLLECTOR_SIBLING_H

#include <stdbool.h>
#include <sys/types.h>

/* Is that process a collector that lives, as far as one can see from here? */
bool sibling_lives(pid_t pid);

#endif
