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

test('that are not of their form are refused, and those of an unknown kind are read', () => {
  const read = (json: string, kind = 0): unknown[] => {
    const frames: unknown[] = [];
    const head = Buffer.alloc(5);
    head[0] = kind;
    head.writeUInt32BE(json.length, 1);
    new FrameReader((frame) => frames.push(frame)).push(Buffer.concat([head, Buffer.from(json)]));
    return frames;
  };
  const peer = {
    era: 'legacy',
    protocolVersion: '2025-11-25',
    serverInfo: {},
    capabilities: {},
    greeting: {},
  };
  const good = [
    { kind: 'opened', conversation: 'c', peer },
    { kind: 'none' },
    { kind: 'notification', method: 'm', params: {} },
    { kind: 'question', question: 1, method: 'm', params: {} },
    { kind: 'interrupted' },
    { kind: 'interrupted', retryMs: 1 },
    { kind: 'error', error: { code: 1, message: 'm' } },
    { kind: 'error', error: { code: 1, message: 'm' }, refusal: { status: 503 } },
    { kind: 'cut', cut: 'c' },
    { kind: 'failed', failure: {} },
    { kind: 'closed', reason: 'r', expected: false },
    { kind: 'duty', isDraining: false },
    { kind: 'load', otherCalls: 1 },
    { kind: 'of a later release' },
  ];
  for (const frame of good) assert.equal(read(JSON.stringify(frame)), [frame]);
  const bad = [
    '{"kind":"notification","method":"m","par`ms":{}}',
    '{"kind":"notification","method":1,"params":{}}',
    '{"kind":"question","question":"1","method":"m","params":{}}',
    '{"kind":"question","question":1,"method":"m","params":[]}',
    '{"kind":"opened","conversation":"c"}',
    '{"kind":"opened","peer":{}}',
    JSON.stringify({ kind: 'opened', conversation: 'c', peer: { ...peer, capabilities: undefined } }),
    '{"kind":"interrupted","retryMs":"1"}',
    '{"kind":"error","error":{"code":"1","message":"m"}}',
    '{"kind":"error"}',
    '{"kind":"error","error":{"code":1,"message":"m"},"refusal":1}',
    '{"kind":"cut"}',
    '{"kind":"failed"}',
    '{"kind":"closed","expected":true}',
    '{"kind":"closed","reason":"r"}',
    '{"kind":"duty"}',
    '{"kind":"load","otherCalls":null}',
    '{"kind":1}',
    '{}',
    '[]',
    '{"kind":"none"',
  ];
  for (const json of bad) assert.throws(() => read(json), /is not of its form/, json);
  assert.throws(() => read('{"kind":"none"}', 3), /is not of its form/);
});

test.run();
