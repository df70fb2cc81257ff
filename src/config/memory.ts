// The memory that this process may use.

import { totalmem } from 'node:os';

/** The memory that this process may use, in bytes: the limit of the control group, or the memory of the machine. */
export function availableMemoryBytes(): number {
  // 0 without a limit; some systems then report a number beyond all memory.
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}
