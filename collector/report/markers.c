/* SPDX-License-Identifier: MIT */
#include "report/markers.h"

void marker_took(struct fold *f, struct thread *thread, const struct record_marker *m)
{
	if (thread->inside_phase != MODEL_NONE)
		f->model->rows[thread->inside_phase].inside_ns += m->took_ns;
	if (thread->inside_region != MODEL_NONE)
		f->model->regions[thread->inside_region].inside_ns += m->took_ns;
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
