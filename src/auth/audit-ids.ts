// Ids that sort by time as texts and that no two nodes share: UUID version 7 (RFC 9562).

import { randomBytes } from 'node:crypto';
import { idAt } from '../domain/audit.ts';

const SEQUENCES = 4_096;

/** Ids of one process rise strictly, also within a millisecond and when the clock steps back. `now`: ms since 1970. */
export function timeOrderedIds(now: () => number): () => string {
  // 62 random bits per process; within one, time and sequence make the difference.
  const node = randomBytes(8);
  node.writeUInt8((node.readUInt8(0) & 0x3f) | 0x80, 0);
  const tail = `${node.toString('hex', 0, 2)}-${node.toString('hex', 2)}`;
  let lastMs = 0;
  let head = idAt(lastMs);
  let sequence = 0;
  return () => {
    const nowMs = Math.floor(now());
    sequence = nowMs > lastMs ? 0 : (sequence + 1) % SEQUENCES;
    if (nowMs > lastMs || sequence === 0) {
      lastMs = Math.max(lastMs + 1, nowMs);
      head = idAt(lastMs);
    }
    return `${head}-7${sequence.toString(16).padStart(3, '0')}-${tail}`;
  };
}
