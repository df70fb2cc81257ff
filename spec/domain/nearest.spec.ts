// Which misspelt words are taken for a known one.

import * as assert from 'uvu/assert';
import { didYouMean, nearName } from '../../src/domain/nearest.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('near misses');
const LONG = 'search_tools_of_'.repeat(6);

test('one slip in two to five letters and two in more, but never another word of one letter, nor the word itself', () => {
  for (const [written, known, isNear] of [
    ['a', 'b', false],
    ['a', 'ab', false],
    ['bd', 'db', true],
    ['fs', 'gs', true],
    ['fx', 'ab', false],
    ['fsx', 'fs', true],
    ['fiels', 'files', true],
    ['fielz', 'files', false],
    ['serahc', 'search', true],
    ['saerhc', 'search', true],
    ['sraxxc', 'search', false],
    ['search', 'search', false],
    [`${LONG}ba`, `${LONG}ab`, true],
    [`xy${LONG}`, LONG, true],
    [LONG, `xy${LONG}`, true],
    [`${LONG}xyz`, LONG, false],
    [`x${LONG}`, `${LONG}yz`, false],
  ] as const)
    assert.is(didYouMean(written, [known]), isNear ? `did you mean "${known}"?` : undefined, written);
});

test('is looked for among a thousand long names that are all alike within a few ms', () => {
  const names = Array.from({ length: 1_000 }, (_, at) => 'a'.repeat(96) + String(at).padStart(4, '0'));
  const beganMs = performance.now();
  for (let times = 0; times < 50; times += 1) assert.is(nearName('a'.repeat(100), names), undefined);
  const tookMs = performance.now() - beganMs;
  assert.ok(tookMs < 1_000, `${tookMs} ms`); // 2.5 s where whole rows are made
});

test.run();
