/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the code refers to while it runs. Every other symbol stays unresolved,
 * that is 0, so that reaching one crashes instead of passing.
 */
	.text

/* Nothing to do. */
	.globl	__x86_return_thunk, __fentry__, __dynamic_pr_debug, jiffies_to_msecs
__x86_return_thunk:
__fentry__:
__dynamic_pr_debug:
jiffies_to_msecs:
	ret

/* A report that only one of two gives is a difference. */
	.globl	_printk
_printk:
	jmp	khost_say

/* Time goes on where the code lets others run, and nowhere else. */
	.globl	__SCT__cond_resched, __cond_resched
__SCT__cond_resched:
__cond_resched:
	incq	jiffies(%rip)
	ret

/* A failed check must not go unseen. */
	.globl	__stack_chk_fail, dump_stack
__stack_chk_fail:
dump_stack:
	ud2

/* The name depends on the kernel; the first two arguments do not. */
	.globl	init_pageblock_migratetype, set_pageblock_migratetype
init_pageblock_migratetype:
set_pageblock_migratetype:
	jmp	khost_pageblock

	.irp	reg, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
	.globl	__x86_indirect_thunk_\reg
__x86_indirect_thunk_\reg:
	jmp	*%\reg
	.endr

	.data
	.balign	64
	.globl	jiffies, __preempt_count, __ref_stack_chk_guard
	.globl	boot_cpu_data
jiffies:
	.quad	4294937296
__preempt_count:
	.quad	0
__ref_stack_chk_guard:
	.quad	0x1234567812345600
	.balign	64
boot_cpu_data:
	.skip	1024

	.section .note.GNU-stack, "", @progbits
