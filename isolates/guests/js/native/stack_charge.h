/* Making deep recursion end in a RangeError instead of a trap.

   The engine bounds recursion by measuring the C stack, but on wasm most of a frame is on a native
   stack that it cannot see, and whose end is a trap. So recursive functions are charged C stack
   that they do not use, about as much as their native frames take: the measured stack then always
   ends first. The charges are chosen so that 4 MiB of C stack go with 16 MiB of native stack. */
#ifndef BELEM_STACK_CHARGE_H
#define BELEM_STACK_CHARGE_H

#define CHARGE_STACK(bytes)   \
    char stack_charge[bytes]; \
    __asm__ volatile("" : : "r"(stack_charge) : "memory")

/* A call of a function has a size that is known only then; checks in the engine's own recursion
   (JSON, proxies, …) have a constant. */
#define STACK_CHARGE_OF_CHECK(size) __builtin_choose_expr(__builtin_constant_p(size), 256, 192)

#endif
