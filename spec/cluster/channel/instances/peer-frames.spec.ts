// The frames of a conversation at another node, as they arrive.

import * as assert from 'uvu/assert';
import {
  closedFrame,
  closedIn,
  FrameReader,
  frameOf,
} from '../../../../src/cluster/channel/instances/peer-frames.ts';
import { collectGarbage } from '../../../helpers/garbage.ts';
import { suite } from '../../../helpers/suite.ts';
import { passTurns } from '../../../helpers/time/turns.ts';

const test = suite('frames of other nodes');

test('of long messages are not kept once they are read', async () => {
  const long = frameOf({ kind: 'notification', method: 'x', params: { text: 'x'.repeat(1_000_000) } });
  let frames = 0;
  const readers = Array.from({ length: 20 }, () => new FrameReader(() => (frames += 1)));
  const kept: WeakRef<ArrayBufferLike>[] = [];
  for (const reader of readers) {
    const part = Buffer.from(long);
    kept.push(new WeakRef(part.buffer));
    reader.push(part);
  }
  await passTurns(2);
  collectGarbage();
  assert.is(frames, 20);
  const present = kept.filter((buffer) => buffer.deref() !== undefined);
  assert.ok(present.length <= 1, `${present.length} are kept`); // the last one may be in a register
  for (const { heldBytes } of readers) assert.is(heldBytes, 0);
});

test('of the end of a conversation have the names that nodes of earlier releases know', () => {
  const closed = { reason: 'exited with code 7', exitCode: 7, isExpected: false };
  const frame = closedFrame(closed);
  assert.equal(frame, { kind: 'closed', reason: 'exited with code 7', exitCode: 7, expected: false });
  assert.equal(closedIn(frame), closed);
});

test.run();
