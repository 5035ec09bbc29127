/* SPDX-License-Identifier: MIT */
#include "report/markers.h"

/*
 * Of the thread's last marker what is in the region that it began or ended: in
 * exact mode the kernel samples in the middle of it, in async its entry counts.
 */
static uint64_t within_marked(const struct fold *f, const struct thread *thread, uint64_t took_ns)
{
	const struct region *r;
	uint64_t within;

	if (thread->marked_region == MODEL_NONE)
		return 0;
	r = &f->model->regions[thread->marked_region];
	within = r->end_ns ? saturating_sub(r->end_ns, thread->marked_ns)
			   : saturating_sub(thread->marked_ns + took_ns, r->begin_ns);
	return MIN(within, took_ns);
}

void marker_took(struct fold *f, struct thread *thread, const struct record_marker *m)
{
	struct region *around;

	if (thread->inside_phase != MODEL_NONE)
		f->model->rows[thread->inside_phase].inside_ns += m->took_ns;
	if (thread->inside_region != MODEL_NONE) {
		around = &f->model->regions[thread->inside_region];
		around->inside_ns += m->took_ns;
		around->around_own_ns += m->took_ns - within_marked(f, thread, m->took_ns);
	}
	if (thread->marked_region != MODEL_NONE)
		f->model->regions[thread->marked_region].marker_ns += m->took_ns;
	thread->inside_phase = thread->inside_region = thread->marked_region = MODEL_NONE;
}

/* A phase's own marker stands between phases; a region's around it. */
void marker_counts(struct fold *f, const struct process *p, struct thread *thread,
	const struct record_marker *m)
{
	const struct open_region *around = thread->open;
	bool is_boundary = m->kind == JPHASE_BEGIN || m->kind == JPHASE_END;

	thread->marked_ns = m->time_ns;
	if (m->kind == JPHASE_PHASE || m->kind == JPHASE_EXIT)
		return;
	if (around && m->kind == JPHASE_BEGIN)
		around = around->outer;
	if (p->current != MODEL_NONE) {
		thread->inside_phase = p->current;
		f->model->rows[p->current].inside++;
		f->model->rows[p->current].around += is_boundary;
	}
	if (around) {
		thread->inside_region = around->region;
		f->model->regions[around->region].inside++;
		f->model->regions[around->region].around += is_boundary;
	}
}
