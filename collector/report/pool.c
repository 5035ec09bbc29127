/* SPDX-License-Identifier: MIT */
#include "report/pool.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BUCKETS 256

struct pool_string {
	struct pool_string *next;
	uint32_t hash;
	char text[];
};

struct pool {
	struct pool_string **bucket;
	size_t buckets; /* a power of two */
	size_t count;
};

/* FNV-1a */
static uint32_t hash_of(const char *s)
{
	uint32_t hash = 2166136261u;

	for (; *s; s++)
		hash = (hash ^ (unsigned char)*s) * 16777619u;
	return hash;
}

int pool_open(struct pool **ret)
{
	struct pool *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->buckets = FIRST_BUCKETS;
	p->bucket = calloc(p->buckets, sizeof(struct pool_string *));
	if (!p->bucket) {
		pool_close(p);
		return -ENOMEM;
	}
	*ret = p;
	return 0;
}

/* Without memory the pool stays as it is: slower, but right. */
static void pool_grow(struct pool *p)
{
	size_t buckets = 2 * p->buckets;
	struct pool_string **grown = calloc(buckets, sizeof(struct pool_string *));

	if (!grown)
		return;
	for (size_t i = 0; i < p->buckets; i++) {
		struct pool_string *s = p->bucket[i];

		while (s) {
			struct pool_string *next = s->next;

			s->next = grown[s->hash & (buckets - 1)];
			grown[s->hash & (buckets - 1)] = s;
			s = next;
		}
	}
	free(p->bucket);
	p->bucket = grown;
	p->buckets = buckets;
}

const char *pool_put(struct pool *p, const char *s)
{
	uint32_t hash = hash_of(s);
	struct pool_string *entry = p->bucket[hash & (p->buckets - 1)];
	size_t size = strlen(s) + 1;

	for (; entry; entry = entry->next)
		if (entry->hash == hash && strcmp(entry->text, s) == 0)
			return entry->text;
	entry = malloc(sizeof(*entry) + size);
	if (!entry)
		return NULL;
	if (++p->count > p->buckets)
		pool_grow(p);
	entry->hash = hash;
	memcpy(entry->text, s, size);
	entry->next = p->bucket[hash & (p->buckets - 1)];
	p->bucket[hash & (p->buckets - 1)] = entry;
	return entry->text;
}

struct pool *pool_close(struct pool *p)
{
	if (!p)
		return NULL;
	for (size_t i = 0; p->bucket && i < p->buckets; i++) {
		while (p->bucket[i]) {
			struct pool_string *next = p->bucket[i]->next;

			free(p->bucket[i]);
			p->bucket[i] = next;
		}
	}
	free(p->bucket);
	free(p);
	return NULL;
}
