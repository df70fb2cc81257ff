// Small parts of sessions: the buffer of messages, the name of a session in logs, requests about tasks.

import { createHash } from 'node:crypto';
import * as assert from 'uvu/assert';
import { MessageBuffer } from '../../src/actors/message-buffer.ts';
import { sessionFingerprint } from '../../src/actors/session-fingerprint.ts';
import { isAboutTask } from '../../src/actors/stateless/stateless-routing.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('messages and names');
function recordingBuffer() {
  const dropped: number[] = [];
  return { dropped, kept: new MessageBuffer<number>((message) => dropped.push(message)) };
}
const sized = (bytes: number): JsonObject => ({ data: 'x'.repeat(bytes - '{"data":""}'.length) });

test('take no more room than there is', () => {
  const { kept, dropped } = recordingBuffer();
  const quarter = LIMITS.undeliveredBytes / 4;
  for (let n = 0; n < 4; n += 1) kept.put(n, sized(quarter));
  assert.equal(dropped, []);
  kept.put(4, sized(quarter + 1));
  assert.equal(dropped, [0, 1]);
  assert.equal(kept.takeAll(), [2, 3, 4]);
  for (let n = 5; n < 9; n += 1) kept.put(n, sized(quarter));
  assert.equal(dropped, [0, 1], 'there is room again');
});

test('do not make way for one that fits nowhere', () => {
  const { kept, dropped } = recordingBuffer();
  kept.put(0, {});
  kept.put(1, sized(LIMITS.undeliveredBytes + 1));
  assert.equal([kept.takeAll(), dropped], [[0], [1]]);
});

test('are none that are nested too deeply to be written', () => {
  const { kept, dropped } = recordingBuffer();
  let deep: JsonObject = {};
  for (let level = 0; level < 100_000; level += 1) deep = { deep };
  kept.put(0, deep);
  assert.equal([kept.takeAll(), dropped], [[], [0]]);
});

test('can be computed from the id, and contains nothing of it', () => {
  const id = 'hT2Wk0mYbqN7Zf4cR9sLxJ1vD6gPoE8uA3iKQyV5wBM';
  const whole = createHash('sha256').update(id).digest('hex');
  assert.is(sessionFingerprint(id), whole.slice(0, 12));
  assert.not.ok(id.includes(sessionFingerprint(id)));
});

test('are those of their own methods, and calls of tools that are to become one', () => {
  for (const method of ['tasks/get', 'tasks/list', 'tasks/result', 'tasks/cancel'])
    assert.ok(isAboutTask({ method }));
  assert.ok(isAboutTask({ method: 'tools/call', params: { name: 'write', task: { ttl: 1 } } }));
  assert.not.ok(isAboutTask({ method: 'tools/call', params: { name: 'task' } }));
  for (const method of ['tools/call', 'tools/list', 'tasks']) assert.not.ok(isAboutTask({ method }));
});

test.run();
