/* SPDX-License-Identifier: MIT */
/* From the ring to the recording: markers, their processes, their snapshot. */
#ifndef COLLECTOR_INTAKE_H
#define COLLECTOR_INTAKE_H

#include "session.h"

/* Takes one batch.  Returns the number of records taken. */
size_t intake_batch(struct session *s);

/* Takes what was there when it was called: what a dead process has published. */
void intake_drain_present(struct session *s);

/* Takes until the ring is empty or has been emptied a few times over. */
void intake_drain(struct session *s);

/*
 * Takes markers that did not come through the ring: the first records of
 * session.batch, of these processes, no more than a snapshot can cover.
 */
void intake_marks(struct session *s, struct process *const *processes, size_t count);

#endif
