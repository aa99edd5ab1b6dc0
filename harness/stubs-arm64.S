/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the zone-device code refers to while it runs. Every other symbol stays
 * unresolved, that is 0, so that reaching one crashes instead of passing.
 */
	.text

	.globl	_mcount, __dynamic_pr_debug, jiffies_to_msecs
	.globl	__cond_resched, dynamic_cond_resched
_mcount:
__dynamic_pr_debug:
jiffies_to_msecs:
__cond_resched:
dynamic_cond_resched:
	ret

/* A failed check must not go unseen. */
	.globl	__stack_chk_fail, dump_stack
__stack_chk_fail:
dump_stack:
	udf	#0

	.globl	_printk
_printk:
	b	khost_say

/* The name depends on the kernel; the first two arguments do not. */
	.globl	init_pageblock_migratetype, set_pageblock_migratetype
init_pageblock_migratetype:
set_pageblock_migratetype:
	b	khost_pageblock

	.data
	.balign	64
	.globl	jiffies
jiffies:
	.quad	0

	.section .note.GNU-stack, "", %progbits
