// Small parts of sessions: the buffer of messages, the fingerprint of a session in logs, requests about tasks.

import { createHash } from 'node:crypto';
import * as assert from 'uvu/assert';
import { MAX_UNDELIVERED_BYTES, MessageBuffer } from '../../../src/actors/calls/message-buffer.ts';
import { isAboutTask } from '../../../src/actors/instances/process-sharing.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { sessionFingerprint } from '../../../src/domain/sessions/session-fingerprint.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('messages, fingerprints and tasks');
function recordingBuffer() {
  const dropped: number[] = [];
  return { dropped, kept: new MessageBuffer<number>((message) => dropped.push(message)) };
}
const sized = (bytes: number): JsonObject => ({ data: 'x'.repeat(bytes - '{"data":""}'.length) });

test('the buffer drops the oldest messages when it is full', () => {
  const { kept, dropped } = recordingBuffer();
  const quarter = MAX_UNDELIVERED_BYTES / 4;
  for (let n = 0; n < 4; n += 1) kept.put(n, sized(quarter));
  assert.equal(dropped, []);
  kept.put(4, sized(quarter + 1));
  assert.equal(dropped, [0, 1]);
  assert.equal(kept.takeAll(), [2, 3, 4]);
  for (let n = 5; n < 9; n += 1) kept.put(n, sized(quarter));
  assert.equal(dropped, [0, 1], 'there is room again');
});

test('the buffer drops a message that is too large, and keeps the others', () => {
  const { kept, dropped } = recordingBuffer();
  kept.put(0, {});
  kept.put(1, sized(MAX_UNDELIVERED_BYTES + 1));
  assert.equal([kept.takeAll(), dropped], [[0], [1]]);
});

test('the buffer counts the memory of values, not only the bytes of their JSON', () => {
  const { kept, dropped } = recordingBuffer();
  const values = MAX_UNDELIVERED_BYTES / 80;
  kept.put(0, { list: Array(Math.floor(values / 2)).fill({}) });
  kept.put(1, { list: Array(Math.floor(values)).fill({}) });
  kept.put(2, { list: Array(Math.floor(values / 2)).fill({}) });
  assert.equal([kept.takeAll(), dropped], [[2], [1, 0]]);
});

test('the buffer drops a message that is nested too deeply to be written', () => {
  const { kept, dropped } = recordingBuffer();
  let deep: JsonObject = {};
  for (let level = 0; level < 100_000; level += 1) deep = { deep };
  kept.put(0, deep);
  assert.equal([kept.takeAll(), dropped], [[], [0]]);
});

test('the fingerprint of a session is a hash of its id', () => {
  const id = 'hT2Wk0mYbqN7Zf4cR9sLxJ1vD6gPoE8uA3iKQyV5wBM';
  const whole = createHash('sha256').update(id).digest('hex');
  assert.is(sessionFingerprint(id), whole.slice(0, 12));
  assert.not.ok(id.includes(sessionFingerprint(id)));
});

test('requests about tasks are the tasks/ methods, and tool calls with a task', () => {
  for (const method of ['tasks/get', 'tasks/list', 'tasks/result', 'tasks/cancel'])
    assert.ok(isAboutTask({ method }));
  assert.ok(isAboutTask({ method: 'tools/call', params: { name: 'write', task: { ttl: 1 } } }));
  assert.not.ok(isAboutTask({ method: 'tools/call', params: { name: 'task' } }));
  for (const method of ['tools/call', 'tools/list', 'tasks']) assert.not.ok(isAboutTask({ method }));
});

test.run();
