/* SPDX-License-Identifier: MIT */
#include "report/processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "report/phases.h"

struct process *process_at(const struct processes *all, uint64_t index)
{
	return index < all->room ? all->at[index] : NULL;
}

static size_t bucket_of(pid_t pid)
{
	return (uint32_t)pid % PROCESS_BUCKETS;
}

struct process *process_living(const struct processes *all, pid_t pid)
{
	struct process *youngest = NULL;

	for (struct process *p = all->bucket[bucket_of(pid)]; p; p = p->next_in_bucket)
		if (p->pid == pid && (!youngest || p->index > youngest->index))
			youngest = p;
	return youngest;
}

static int make_room(struct processes *all, uint64_t index)
{
	struct process **grown;
	size_t room = MAX(2 * all->room, (size_t)index + 1);

	if (index < all->room)
		return 0;
	grown = reallocarray(all->at, room, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + all->room, 0, (room - all->room) * sizeof(*grown));
	all->at = grown;
	all->room = room;
	return 0;
}

static void link_living(struct processes *all, struct process *p)
{
	struct process **bucket = &all->bucket[bucket_of(p->pid)];

	p->next_in_bucket = *bucket;
	*bucket = p;
	p->next_living = all->living;
	p->before_living = NULL;
	if (all->living)
		all->living->before_living = p;
	all->living = p;
}

static void unlink_living(struct processes *all, struct process *p)
{
	struct process **in_bucket = &all->bucket[bucket_of(p->pid)];

	while (*in_bucket != p)
		in_bucket = &(*in_bucket)->next_in_bucket;
	*in_bucket = p->next_in_bucket;
	if (p->next_living)
		p->next_living->before_living = p->before_living;
	if (p->before_living)
		p->before_living->next_living = p->next_living;
	else
		all->living = p->next_living;
}

int processes_add(struct processes *all, struct process *p)
{
	int err = make_room(all, p->index);

	if (err < 0)
		return err;
	all->at[p->index] = p;
	link_living(all, p);
	return 0;
}

void process_dies(struct processes *all, struct process *p)
{
	if (!p->gone)
		unlink_living(all, p);
	p->gone = true;
}

void process_revives(struct processes *all, struct process *p)
{
	if (p->gone)
		link_living(all, p);
	p->gone = false;
}
