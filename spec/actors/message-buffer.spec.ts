// What is kept for a client that does not listen, and what is dropped.

import * as assert from 'uvu/assert';
import { MessageBuffer } from '../../src/actors/message-buffer.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('kept messages');

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

test.run();
