// Which misspelt words are taken for a known one.

import * as assert from 'uvu/assert';
import { didYouMean } from '../../src/domain/nearest.ts';
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

test.run();
