// The pages for people: the generated parts are fresh.

import * as assert from 'uvu/assert';
import { generatedPages } from '../tools/docs/pages.ts';
import { suite } from './helpers/suite.ts';

const test = suite('the documents');

test('hold what `npm run docs` would write', () => {
  const stale = generatedPages().filter(({ before, after }) => before !== after);
  assert.equal(
    stale.map(({ file }) => file),
    [],
    'run npm run docs',
  );
});

test.run();
