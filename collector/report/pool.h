/* SPDX-License-Identifier: MIT */
/* Strings that are kept once each and live as long as the pool. */
#ifndef REPORT_POOL_H
#define REPORT_POOL_H

#include <stddef.h>

struct pool;

int pool_open(struct pool **ret);
/* NULL without memory. */
const char *pool_put(struct pool *p, const char *s);
struct pool *pool_close(struct pool *p);

#endif
