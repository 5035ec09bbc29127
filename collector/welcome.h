/* SPDX-License-Identifier: MIT */
/* What the collector answers to those who ask over its socket. */
#ifndef COLLECTOR_WELCOME_H
#define COLLECTOR_WELCOME_H

#include <stdbool.h>

#include "session.h"

/* Sends the welcome with the three descriptors. */
int welcome_send(struct session *s, int socket, bool first);

/* Sends the group, with its folder as a descriptor, to `jphase run`. */
int welcome_offer_group(const struct session *s, int socket);

/* Sends a refusal and its sentence. */
void welcome_refuse(int socket, int status, const char *message);

#endif
