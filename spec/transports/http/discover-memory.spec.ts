// What is remembered of an HTTP backend from one opening to the next. With real servers: http-first-contact.spec.ts.

import * as assert from 'uvu/assert';
import type { Era } from '../../../src/domain/mcp.ts';
import {
  type DiscoverOutcome,
  isDiscoveredFirst,
  noteExit,
  noteFailed,
  noteOpened,
} from '../../../src/transports/http/http-probe.ts';
import type { OpeningMemory } from '../../../src/transports/transport.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('discover memory');
const NOW_MS = 1_000;

test('remembers only what costs time or harms, and forgets it when the server does otherwise', () => {
  for (const [era, outcome, before, after] of [
    ['legacy', 'unanswered', undefined, NOW_MS],
    ['legacy', 'cut', undefined, NOW_MS],
    ['legacy', 'answered', undefined, undefined],
    ['legacy', 'answered', 1, undefined],
    ['modern', 'answered', undefined, undefined],
    ['bare', 'unanswered', undefined, undefined],
    ['legacy', undefined, 1, 1],
    ['modern', undefined, 1, undefined],
    ['bare', undefined, 1, undefined],
  ] as const satisfies readonly (readonly [Era, DiscoverOutcome | undefined, unknown, unknown])[]) {
    const memory: OpeningMemory = { unansweredAtMs: before };
    noteOpened(memory, era, { outcome, nowMs: NOW_MS });
    assert.is(memory.unansweredAtMs, after, `${era} ${outcome} ${before}`);
  }
});

test('learns from a server that fails, and not from one that is not there', () => {
  for (const [hasServer, after] of [
    [true, undefined],
    [false, 1],
  ] as const) {
    const memory: OpeningMemory = { unansweredAtMs: 1 };
    noteFailed(memory, { outcome: undefined, hasServer });
    assert.is(memory.unansweredAtMs, after);
  }
});

test('spares a program the question that ended when it was asked, and asks it again when that is no better', () => {
  for (const hasServer of [true, false]) {
    const memory: OpeningMemory = {};
    noteFailed(memory, { outcome: 'cut', hasServer });
    assert.is(isDiscoveredFirst(memory, NOW_MS), true, 'a server may just have been restarted');
    noteFailed(memory, { outcome: undefined, hasServer: false }); // it is gone, and was tried again
    noteExit(memory, NOW_MS);
    assert.is(isDiscoveredFirst(memory, NOW_MS), false);
    noteExit(memory, NOW_MS);
    assert.is(isDiscoveredFirst(memory, NOW_MS), true);
  }
});

test('takes no other end of a program for the answer to the question', () => {
  const memory: OpeningMemory = {};
  noteFailed(memory, { outcome: 'cut', hasServer: true });
  noteOpened(memory, 'modern', { outcome: 'answered', nowMs: NOW_MS });
  noteExit(memory, NOW_MS);
  assert.is(isDiscoveredFirst(memory, NOW_MS), true);
  noteFailed(memory, { outcome: 'unanswered', hasServer: true });
  noteExit(memory, NOW_MS);
  assert.is(isDiscoveredFirst(memory, NOW_MS), true);
});

test.run();
