// What is remembered of a program from one opening to the next. With real programs: stdio-handshake.spec.ts.

import * as assert from 'uvu/assert';
import type { Era } from '../../src/domain/mcp.ts';
import {
  isProbedNext,
  noteProbeFailure,
  noteSuccess,
  type ProbeOutcome,
} from '../../src/transports/stdio/stdio-handshake.ts';
import type { OpeningMemory } from '../../src/transports/transport.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('probe memory');

const ENDED = { wasStarted: true, hasEnded: true } as const;
const SILENT = { wasStarted: true, hasEnded: false } as const;
const NEVER = { wasStarted: false, hasEnded: true } as const;

test('probes a new program, and one that is modern', () => {
  assert.equal(
    [{}, { era: 'modern' }, { era: 'legacy' }].map((memory) => isProbedNext(memory as OpeningMemory)),
    [true, true, false],
  );
});

test('knows the era of a program that had the choice', () => {
  for (const [era, outcome, learned] of [
    ['legacy', 'answered', 'legacy'],
    ['legacy', 'unanswered', 'legacy'],
    ['legacy', 'late', undefined],
    ['legacy', undefined, undefined],
    ['modern', 'answered', 'modern'],
    ['modern', undefined, 'modern'],
    ['bare', 'answered', undefined],
  ] as const satisfies readonly (readonly [Era, ProbeOutcome | undefined, unknown])[]) {
    const memory: OpeningMemory = {};
    noteSuccess(memory, era, outcome);
    assert.is(memory.era, learned, `${era} ${outcome}`);
  }
});

test('starts a new program again that ended at the probe, and knows it when that helped', () => {
  const memory: OpeningMemory = {};
  assert.is(noteProbeFailure(memory, { outcome: 'unanswered', ...ENDED }), true);
  assert.is(isProbedNext(memory), false);
  noteSuccess(memory, 'legacy', undefined);
  assert.equal([memory.era, memory.failure], ['legacy', undefined]);
});

test('does not probe a program again that stayed silent, until that has failed, too', () => {
  const memory: OpeningMemory = {};
  assert.is(noteProbeFailure(memory, { outcome: 'unanswered', ...SILENT }), false);
  assert.is(isProbedNext(memory), false);
  noteProbeFailure(memory, { outcome: undefined, ...SILENT });
  assert.is(isProbedNext(memory), true);
});

test('starts a broken program once each time, with the probe and without it in turn', () => {
  const memory: OpeningMemory = {};
  assert.is(noteProbeFailure(memory, { outcome: 'unanswered', ...ENDED }), true);
  const probed: boolean[] = [];
  for (let opening = 0; opening < 5; opening += 1) {
    const outcome = isProbedNext(memory) ? 'unanswered' : undefined;
    probed.push(outcome !== undefined);
    assert.is(noteProbeFailure(memory, { outcome, ...ENDED }), false);
  }
  assert.equal(probed, [false, true, false, true, false]);
  noteSuccess(memory, 'legacy', 'unanswered');
  assert.is(memory.era, 'legacy');
});

test('learns nothing from a program that there is not, or that refuses the handshake', () => {
  for (const failed of [
    { outcome: 'unanswered', ...NEVER },
    { outcome: 'answered', ...SILENT },
  ] as const) {
    const memory: OpeningMemory = {};
    assert.equal([noteProbeFailure(memory, failed), memory], [false, {}]);
  }
});

test('keeps a legacy program for one, and lets a modern one that failed be another', () => {
  const legacy: OpeningMemory = { era: 'legacy' };
  assert.equal(
    [noteProbeFailure(legacy, { outcome: undefined, ...ENDED }), legacy],
    [false, { era: 'legacy' }],
  );
  const modern: OpeningMemory = { era: 'modern' };
  assert.is(noteProbeFailure(modern, { outcome: 'unanswered', ...ENDED }), false);
  assert.is(modern.era, undefined);
});

test.run();
