/* What the engine would ask of an operating system, answered here.
   Included before quickjs.c, so that not one WASI import survives in the module. */
#ifndef BELEM_FREESTANDING_H
#define BELEM_FREESTANDING_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

/* Set by the host at each step and still during it: code cannot time itself (docs/rfd/0002).
   It is 0 while an image is built, so Date.now() is 0 at a module's top level, as on Workers. */
static uint64_t clock_us;

static int guest_gettimeofday(struct timeval *tv, void *zone)
{
    (void)zone;
    tv->tv_sec = (time_t)(clock_us / 1000000);
    tv->tv_usec = (suseconds_t)(clock_us % 1000000);
    return 0;
}

static int guest_clock_gettime(clockid_t id, struct timespec *ts)
{
    (void)id;
    ts->tv_sec = (time_t)(clock_us / 1000000);
    ts->tv_nsec = (long)(clock_us % 1000000) * 1000;
    return 0;
}

/* The time zone is UTC. The engine reads only the offset. */
static struct tm *guest_localtime_r(const time_t *when, struct tm *out)
{
    (void)when;
    memset(out, 0, sizeof *out);
    return out;
}

#define gettimeofday(tv, zone) guest_gettimeofday(tv, zone)
#define clock_gettime(id, ts) guest_clock_gettime(id, ts)
#define localtime_r(when, out) guest_localtime_r(when, out)

/* The engine's debug dumps have nowhere to go. */
#define printf(...) ((void)0)
#define fprintf(...) ((void)0)
#define putchar(c) ((void)0)
#define puts(s) ((void)0)
#define fputs(s, f) ((void)0)
#define fputc(c, f) ((void)0)
#define putc(c, f) ((void)0)
#define fwrite(p, size, n, f) (0)

/* A wasm trap is the only way to die: the host drops the isolate. */
_Noreturn void abort(void)
{
    __builtin_trap();
}
_Noreturn void _Exit(int code)
{
    (void)code;
    __builtin_trap();
}
_Noreturn void __assert_fail(const char *text, const char *file, int line, const char *function)
{
    (void)text, (void)file, (void)line, (void)function;
    __builtin_trap();
}

#endif
