/* SPDX-License-Identifier: MIT */
/*
 * Regions nest on each thread, while the phases belong to the whole process.
 *
 *	jphase run -o threads.msgpack -- build/examples/threads && jphase report threads.msgpack
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#include <jphase/jphase.h>

#define THREADS 3
#define ROUNDS  4

static uint64_t mix(unsigned steps)
{
	uint64_t x = 88172645463325252u;

	for (unsigned i = 0; i < steps; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	return x;
}

static void *work(void *result)
{
	uint64_t *sum = result;

	joule_begin("work");
	for (int round = 0; round < ROUNDS; round++) {
		joule_begin("mix");
		*sum += mix(2000000);
		joule_end("mix");

		joule_begin("reduce");
		*sum ^= mix(500000);
		joule_end("reduce");
	}
	joule_end("work");
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];
	uint64_t sum[THREADS] = { 0 }, all = 0;

	joule_phase("parallel");
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, &sum[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);

	joule_phase("serial");
	for (int i = 0; i < THREADS; i++)
		all ^= sum[i];
	printf("%016llx\n", (unsigned long long)all);
	return 0;
}
