/* SPDX-License-Identifier: MIT */
/*
 * The marking path.  After the constructor it needs the vDSO clock, atomics
 * and futex, nothing else.  include/internal/ring.h draws the protocol.
 */
#include "shim.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "internal/doorbell.h"
#include "internal/name.h"
#include "internal/ring.h"
#include "internal/sys.h"
#include "internal/util.h"

/*
 * The kernel keeps the id of a thread in its CPU clock's id, which the C
 * library tells without a system call.  The function has moved from libpthread
 * to libc in 2.34: the old version is asked for, and may be missing.
 */
#if defined(__x86_64__)
#define FIRST_ARGUMENT "rdi"
__asm__(".symver pthread_getcpuclockid, pthread_getcpuclockid@GLIBC_2.2.5");
#elif defined(__aarch64__)
#define FIRST_ARGUMENT "x0"
__asm__(".symver pthread_getcpuclockid, pthread_getcpuclockid@GLIBC_2.17");
#endif
extern __typeof__(pthread_getcpuclockid) pthread_getcpuclockid __attribute__((weak));

static _Thread_local struct {
	pid_t pid; /* the process in which tid was found */
	pid_t tid;
	uint32_t took_ns;          /* the previous marker */
	volatile bool open;        /* between claiming and publishing */
	volatile uint64_t claimed; /* the position, and 1; 0: not known yet */
	bool met;                  /* the collector has this thread's counters open */
	char *volatile frame;      /* of the marker in progress, or NULL */
	uint64_t since_ns;         /* when that one began */
	uint64_t looked; /* position of the end that looked for the collector last, and 1 */
} self __attribute__((tls_model("initial-exec")));

static pid_t thread_id(pid_t stale)
{
	clockid_t clock;
	pid_t tid;

	if (!pthread_getcpuclockid || pthread_getcpuclockid(pthread_self(), &clock) != 0)
		return sys_gettid();
	tid = (pid_t) ~(clock >> 3);
	/*
	 * A raw clone copies its parent's thread descriptor as it is.  The
	 * parent's thread has marked before, or is the main one.
	 */
	return tid == stale ? sys_gettid() : tid;
}

/* The calling process; finds out where the guard page was wiped by a fork. */
static pid_t identify(void)
{
	pid_t pid = atomic_load_explicit(&shim.guard->pid, memory_order_relaxed);

	if (pid && pid == self.pid)
		return pid;

	self.tid = thread_id(self.pid ? self.tid : pid ? 0 : shim.registered);
	if (!pid) {
		/*
		 * The only thread of a forked child is its main thread.  Load
		 * the ring's page tables now: no page of it is touched while a
		 * claim is open.
		 */
		pid = self.tid;
		atomic_store_explicit(&shim.guard->pid, pid, memory_order_relaxed);
		(void)atomic_load_explicit(&shim.ring->head, memory_order_relaxed);
		self.took_ns = 0;
	}
	self.met = false;
	self.looked = 0;
	self.pid = pid;
	return pid;
}

/* False: a handler has forked inside this marker, and we are the child. */
static bool is_still(pid_t pid)
{
	return atomic_load_explicit(&shim.guard->pid, memory_order_relaxed) == pid;
}

/* The kernel marks the word when the collector dies, however it dies. */
bool collector_is_gone(void)
{
	uint32_t owner = atomic_load_explicit(&shim.page->owner, memory_order_relaxed);

	return owner == 0 || (owner & FUTEX_OWNER_DIED);
}

static bool is_stalled(void)
{
	return atomic_load_explicit(&shim.page->stalled, memory_order_relaxed);
}

/* One marker's patience: short slices first, so that a death is noticed at once. */
struct patience {
	uint64_t until_ns;
	unsigned slice;
};

/* How long to sleep next, in nanoseconds.  0: no more waiting. */
static uint64_t next_slice(struct patience *p)
{
	static const uint8_t slice_ms[] = { 1, 1, 2, 4, 10 };
	uint64_t slice_ns = slice_ms[p->slice] * NSEC_PER_MSEC;
	/* The first slice is short, and most often the only one: no look at the clock. */
	uint64_t left = p->slice ? saturating_sub(p->until_ns, now_ns()) : slice_ns;

	if (collector_is_gone() || is_stalled())
		return 0;
	if (!left)
		atomic_store_explicit(&shim.page->stalled, 1, memory_order_relaxed);
	if (p->slice < ARRAY_SIZE(slice_ms) - 1)
		p->slice++;
	return MIN(left, slice_ns);
}

/* Rings, and waits until the collector has read the counters for this record. */
static void wait_acknowledged(struct jphase_record *rec, uint64_t position, struct patience *p)
{
	uint32_t waiting = ring_futex_value(ring_state(RING_WAITING, 0, position));
	uint64_t slice_ns = next_slice(p);

	ring_wait_begin(rec, position);
	doorbell_ring_and_wait(shim.page, ring_futex(rec), waiting, slice_ns);
	while (!ring_is_acknowledged(rec, position) && (slice_ns = next_slice(p)))
		sys_futex_wait(ring_futex(rec), waiting, slice_ns);
}

/* Waits for the slot that is in the way.  False: no more waiting. */
static bool wait_for_space(uint64_t position, struct patience *p)
{
	struct jphase_record *rec = ring_slot(shim.ring, shim.records, position);
	uint64_t before = position - shim.records;
	uint64_t state, slice_ns;

	doorbell_ring(shim.page);
	ring_wait_begin(rec, before);
	state = atomic_load_explicit(&rec->state, memory_order_acquire);
	/* It has room by now, unless somebody writes what he likes. */
	if (ring_distance(ring_position_of(state), position) >= 0)
		return now_ns() < p->until_ns;
	slice_ns = next_slice(p);
	if (slice_ns)
		sys_futex_wait(ring_futex(rec), ring_futex_value(state), slice_ns);
	return slice_ns;
}

static bool lose(_Atomic uint64_t *counter)
{
	self.open = false;
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
	return false;
}

static bool claim(pid_t pid, bool may_wait, struct patience *p, uint64_t *ret_position)
{
	self.claimed = 0;
	self.open = true;
	while (!ring_claim_as(&shim.guard->pid, shim.ring, shim.records, pid, ret_position)) {
		if (!is_still(pid))
			return lose(&shim.ring->revoked);
		if (!may_wait || !wait_for_space(*ret_position, p))
			return lose(&shim.ring->dropped);
	}
	self.claimed = *ret_position + 1;
	return true;
}

/*
 * siglongjmp has left a marker of this thread, perhaps inside its claim, which
 * would hold up everybody behind it.  Should that marker be only interrupted
 * after all, by a handler on a stack of its own, it finds its claim revoked.
 */
static void retire_left_claim(pid_t pid)
{
	uint64_t position = self.claimed - 1;

	if (self.open && self.claimed)
		ring_retire(ring_slot(shim.ring, shim.records, position), pid, position);
	self.open = false;
}

/*
 * Is the claim of the interrupted marker in the collector's way?  It may be the
 * parent's, which a handler has forked.
 */
static bool is_blocking(void)
{
	uint64_t position = self.claimed - 1, state;

	if (!self.open || !self.claimed)
		return self.open;
	state = atomic_load_explicit(
		&ring_slot(shim.ring, shim.records, position)->state, memory_order_relaxed);
	return ring_kind_of(state) == RING_CLAIMED && ring_position_of(state) == position;
}

static void copy_payload(struct jphase_record *to, const struct jphase_record *from)
{
	const size_t state = offsetof(struct jphase_record, clock_ns);

	memcpy((char *)to + state, (const char *)from + state, sizeof(*to) - state);
}

static bool is_region(enum jphase_kind kind)
{
	return kind == JPHASE_BEGIN || kind == JPHASE_END;
}

#if defined(__clang__)
#define NOT_TWICE __attribute__((noinline))
#else
#define NOT_TWICE __attribute__((noinline, noclone))
#endif

/*
 * Nothing but the trap: a longer instruction would be replaced by a call that
 * forked children cannot make.  Compilers may put one of their own before it,
 * hence names of its own: one for us, one for who looks from outside.
 */
static NOT_TWICE void pass_site(uint64_t position)
{
	register uint64_t first __asm__(FIRST_ARGUMENT) = position;

	__asm__ volatile(".globl jphase_probe_site, jphase_marker\n"
			 ".hidden jphase_probe_site\n"
			 ".type jphase_marker, %%function\n"
			 "jphase_probe_site:\n"
			 "jphase_marker:\n"
			 "nop"
			 :
			 : "r"(first)
			 : "memory");
}

/* The collector takes it back where its probe turns out not to be at the site. */
static bool is_sampled(enum jphase_kind kind)
{
	const volatile uint32_t *flags = &shim.page->flags;

	return is_region(kind) && *flags & JPHASE_SESSION_SAMPLES;
}

/*
 * A handler that forks in here leaves the claim to the parent.  The child,
 * whose memory is the same, keeps its hands off the slot from where it next
 * looks who it is, and counts the marker as lost: it was the parent's.
 */
static bool publish(
	struct jphase_record *prepared, bool may_wait, struct patience *p, uint64_t *ret_position)
{
	pid_t pid = (pid_t)prepared->pid;
	struct jphase_record *rec;

	if (!claim(pid, may_wait, p, ret_position))
		return false;
	rec = ring_slot(shim.ring, shim.records, *ret_position);
	if (!is_still(pid))
		return lose(&shim.ring->revoked);
	copy_payload(rec, prepared);
	/* Before publishing: who sees the record finds the sample. */
	if (is_sampled((enum jphase_kind)prepared->kind))
		pass_site(*ret_position);
	if (!is_still(pid))
		return lose(&shim.ring->revoked);
	/* A claim that ended without being retired was published by a child just then. */
	if (!ring_publish(rec, pid, *ret_position) && ring_return_retired(rec, shim.records, pid))
		return lose(&shim.ring->revoked);
	self.open = false;
	return true;
}

/* What needs no counters can lie in the ring until somebody looks, or a quarter is full. */
static bool is_urgent(const struct jphase_record *rec, uint64_t position)
{
	enum jphase_kind kind = (enum jphase_kind)rec->kind;

	return kind == JPHASE_PHASE || (is_region(kind) && shim.regions && !is_sampled(kind)) ||
	       (position & (shim.records / 4 - 1)) == 0;
}

/*
 * Would further samples outrun the collector, and with it the kernel's buffer?
 * At an end, since what comes after its sample is in none of its region's
 * counts; and by a record of our own, whose page is there without a fault.
 */
static bool outruns(const struct jphase_record *rec, uint64_t position)
{
	int64_t step = MIN(shim.records / 4, (uint32_t)JPHASE_SAMPLES_AHEAD * 3 / 4);
	uint64_t looked = self.looked - 1;
	bool pending;

	if (rec->kind != JPHASE_END || !is_sampled(JPHASE_END) ||
		(self.looked && ring_distance(position, looked) < step))
		return false;
	pending =
		self.looked && ring_is_pending(ring_slot(shim.ring, shim.records, looked), looked);
	self.looked = position + 1;
	return pending;
}

/* Longer than a marker lasts, and a handler that interrupts it. */
#define LEFT_NS (2 * MARKER_WAIT_NS)

/*
 * Did the marker in that frame only get interrupted by the one in frame `here`,
 * or has siglongjmp left it?  Stacks grow down, so one that is not above ours
 * was left.  One above ours may have been left as well, and its memory need not
 * be there any more: its age tells.  Nothing breaks where that errs.
 */
static bool is_interrupted(const char *outer, const char *here, uint64_t now)
{
	return outer && here < outer && saturating_sub(now, self.since_ns) < LEFT_NS;
}

/* A handler of ours, wherever its stack lies; who waited for that claim would wait in vain. */
static bool is_handler_inside(const char *outer, const struct jphase_record *prepared)
{
	return outer && self.open && prepared->flags & JPHASE_FLAG_SIGNAL;
}

/*
 * wait_ns 0: do not wait.  A marker that interrupts another one of its thread
 * never waits for space; while that one holds an open claim it waits for
 * nothing, since the collector cannot pass the claim.
 */
static void emit_record(struct jphase_record *prepared, uint64_t wait_ns)
{
	struct patience patience = { .until_ns = prepared->clock_ns + wait_ns };
	char *here = __builtin_frame_address(0), *outer = self.frame;
	bool nested = is_interrupted(outer, here, prepared->clock_ns) ||
		      is_handler_inside(outer, prepared);
	bool inside_claim = nested && self.open;
	uint64_t claimed = self.claimed;
	bool may_wait = !(nested && is_blocking()) && !is_stalled(), waits = wait_ns && may_wait;
	bool for_space = waits && !nested && !(prepared->flags & JPHASE_FLAG_SIGNAL);
	uint64_t position, took;

	if (outer && !nested && !(prepared->flags & JPHASE_FLAG_SIGNAL))
		retire_left_claim((pid_t)prepared->pid);
	self.frame = here;
	if (!nested)
		self.since_ns = prepared->clock_ns;
	prepared->took_ns = self.took_ns;
	if (nested)
		prepared->flags |= JPHASE_FLAG_NESTED;
	if (wait_ns && !waits)
		prepared->flags |= JPHASE_FLAG_UNWAITED;
	if (publish(prepared, for_space, &patience, &position)) {
		if (!waits && may_wait && outruns(prepared, position)) {
			patience.until_ns = prepared->clock_ns + MARKER_WAIT_NS;
			waits = true;
		}
		if (waits)
			wait_acknowledged(
				ring_slot(shim.ring, shim.records, position), position, &patience);
		else if (shim.rings && is_urgent(prepared, position))
			doorbell_ring(shim.page);
		self.met |= waits && is_region((enum jphase_kind)prepared->kind) &&
			    is_still((pid_t)prepared->pid);
	}
	took = is_still((pid_t)prepared->pid) ? now_ns() - prepared->clock_ns : 0;
	self.took_ns = (uint32_t)MIN(took, (uint64_t)UINT32_MAX);
	self.frame = nested ? outer : NULL;
	self.claimed = claimed;
	self.open = inside_claim;
}

static void prepare(struct jphase_record *rec, const struct marker *marker)
{
	/* As long as any: compilers warn of looking past the end of shorter ones. */
	static const char unnamed[JPHASE_NAME_ROOM] = "(unnamed)", innermost[JPHASE_NAME_ROOM];
	const char *name = marker->name;

	rec->clock_ns = now_ns();
	rec->id = marker->id;
	rec->value = marker->value;
	rec->pid = (uint32_t)identify();
	rec->tid = (uint32_t)self.tid;
	rec->kind = (uint8_t)marker->kind;
	rec->flags = marker->flags;
	rec->reserved = 0;
	if (!name || !name[0])
		name = marker->kind == JPHASE_END ? innermost : unnamed;
	name_copy(rec->name, name);
}

/* How long a marker of that kind waits for its counters. */
static uint64_t wait_of(enum jphase_kind kind)
{
	if (kind == JPHASE_PHASE)
		return shim.waits ? MARKER_WAIT_NS : 0;
	if (is_region(kind) && shim.regions)
		return self.met && is_sampled(kind) ? 0 : MARKER_WAIT_NS;
	return 0;
}

/* Any thread, any signal context.  No locks, no allocation, no descriptors. */
void emit(const struct marker *marker)
{
	struct jphase_record rec;
	int saved_errno = errno;

	if (!shim.ring || collector_is_gone())
		return;
	prepare(&rec, marker);
	if (!atomic_load_explicit(&shim.marked, memory_order_relaxed))
		atomic_store_explicit(&shim.marked, true, memory_order_relaxed);
	emit_record(&rec, wait_of(marker->kind));
	errno = saved_errno;
}

/* Destructor only. */
void emit_exit(bool first)
{
	struct jphase_record rec;

	if (collector_is_gone())
		return;
	prepare(&rec, &(struct marker){ .kind = JPHASE_EXIT, .name = "exit" });
	emit_record(&rec, first ? EXIT_WAIT_NS : shim.waits ? MARKER_WAIT_NS : 0);
}
