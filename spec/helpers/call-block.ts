// A block of the audit log that holds these calls.

import { type CallBlock, CallBlockWriter, type CallEntry } from '../../src/domain/call-blocks.ts';

export function blockOf(calls: readonly CallEntry[]): CallBlock {
  const writer = new CallBlockWriter();
  for (const call of calls) writer.add(call);
  return writer.take();
}
