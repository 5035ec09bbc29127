/* SPDX-License-Identifier: MIT */
#include "report/stored.h"

#include <errno.h>
#include <stdlib.h>

#include "report/model.h"

#define FIRST_ROOM 64 /* a power of two */

struct qualities {
	struct value *list; /* with numbers of 0 */
	size_t count;
	size_t room;     /* a power of two */
	uint32_t *slots; /* index + 1, or 0; twice as many as there is room */
};

static uint64_t mixed(uint64_t hash, uint64_t with)
{
	return (hash ^ with) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t bits_of(double number)
{
	uint64_t bits;

	memcpy(&bits, &number, sizeof(bits));
	return bits;
}

static size_t hash_of(const struct value *v)
{
	uint64_t hash = mixed(0, (uintptr_t)v->note);

	hash = mixed(hash, bits_of(v->coverage));
	hash = mixed(hash, v->error);
	hash = mixed(hash, (uint64_t)v->step_us << 32 | v->delay_us);
	hash = mixed(hash, (uint64_t)v->without << 32 | v->includes);
	hash = mixed(hash, (uint64_t)v->state << 32 | v->flags);
	return hash >> 32;
}

static bool same_quality(const struct value *a, const struct value *b)
{
	return a->note == b->note && bits_of(a->coverage) == bits_of(b->coverage) &&
	       a->error == b->error && a->step_us == b->step_us && a->delay_us == b->delay_us &&
	       a->without == b->without && a->includes == b->includes && a->state == b->state &&
	       a->flags == b->flags;
}

/* Of that quality, or a free one. */
static uint32_t *find_slot(const struct qualities *q, const struct value *v)
{
	size_t mask = 2 * q->room - 1;
	size_t at = hash_of(v) & mask;

	while (q->slots[at] && !same_quality(&q->list[q->slots[at] - 1], v))
		at = (at + 1) & mask;
	return &q->slots[at];
}

static int make_room(struct qualities *q, size_t room)
{
	struct value *list = reallocarray(q->list, room, sizeof(*list));
	uint32_t *slots = calloc(2 * room, sizeof(*slots));

	q->list = list ? list : q->list;
	if (!list || !slots) {
		free(slots);
		return -ENOMEM;
	}
	free(q->slots);
	q->slots = slots;
	q->room = room;
	for (size_t i = 0; i < q->count; i++)
		*find_slot(q, &q->list[i]) = (uint32_t)i + 1;
	return 0;
}

int stored_put(struct qualities *q, const struct value *v, struct stored *ret)
{
	uint32_t *slot = find_slot(q, v);
	int err = 0;

	if (!*slot && q->count == q->room) {
		err = make_room(q, 2 * q->room);
		slot = find_slot(q, v);
	}
	if (err < 0)
		return err;
	if (!*slot) {
		q->list[q->count] = *v;
		q->list[q->count].number = 0;
		*slot = (uint32_t)++q->count;
	}
	*ret = (struct stored){ .number = v->number, .quality = *slot - 1 };
	return 0;
}

struct value stored_get(const struct qualities *q, const struct stored *s)
{
	struct value v = q->list[s->quality];

	v.number = s->number;
	return v;
}

int qualities_open(struct qualities **ret)
{
	const struct value none = { .state = VALUE_MISSING };
	struct qualities *q = calloc(1, sizeof(*q));
	struct stored first;
	int err = q ? make_room(q, FIRST_ROOM) : -ENOMEM;

	if (err == 0)
		err = stored_put(q, &none, &first);
	if (err < 0) {
		qualities_close(q);
		return err;
	}
	*ret = q;
	return 0;
}

struct qualities *qualities_close(struct qualities *q)
{
	if (!q)
		return NULL;
	free(q->list);
	free(q->slots);
	free(q);
	return NULL;
}
