/* What a Cortex-M needs to start: its vector table, and main. */
#include <stdint.h>
#include <stdlib.h>

extern uint32_t data_from, data_start, data_end, bss_start, bss_end, stack_top;
int main(int count, char **arguments);
void initialise_monitor_handles(void);
unsigned long c5_ticks(void);
void start(void);
void fault(void);

void start(void)
{
    const uint32_t *from = &data_from;
    for (uint32_t *to = &data_start; to < &data_end;)
        *to++ = *from++;
    for (uint32_t *to = &bss_start; to < &bss_end;)
        *to++ = 0;
    *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* CPACR: the floating-point unit on */
    *(volatile uint32_t *)0x40000004 = 0xFFFFFFFF;  /* a timer of the board counts down, at 25 MHz */
    *(volatile uint32_t *)0x40000000 = 1;
    initialise_monitor_handles();                   /* semihosting: printf goes to the debugger, or to QEMU */
    char *none[] = {0};
    exit(main(0, none));
}

unsigned long c5_ticks(void) /* under QEMU's -icount shift=0, one tick is 40 instructions */
{
    return 0xFFFFFFFF - *(volatile uint32_t *)0x40000004;
}

void fault(void)
{
    exit(2);
}

typedef union {
    uint32_t *stack;
    void (*run)(void);
} vector;

__attribute__((section(".vectors"), used)) static const vector vectors[16] = {
    {.stack = &stack_top}, {.run = start}, {.run = fault}, {.run = fault}, {.run = fault}, {.run = fault}, {.run = fault}};
