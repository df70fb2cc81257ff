// Which messages are dropped while their client does not listen.

import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { MAX_UNDELIVERED_BYTES, MessageBuffer } from '../../../src/domain/memory/message-buffer.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('message buffer');
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

test.run();
