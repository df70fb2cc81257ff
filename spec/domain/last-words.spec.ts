import * as assert from 'uvu/assert';
import { lastWords } from '../../src/domain/text.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('last words of a program');

/** What Node writes when its script is not there. */
const NODE = [
  ...['node:internal/modules/cjs/loader:1386', '  throw err;', '  ^'],
  "Error: Cannot find module '/srv/server.js'",
  ...[
    '    at Module._resolveFilename (node:internal/modules/cjs/loader:1383:15)',
    '    at node:internal/main:33:47 {',
  ],
  ...["  code: 'MODULE_NOT_FOUND',", '  requireStack: []', '}', 'Node.js v24.21.0'],
];

test('have the error in them, however long its stack', () => {
  assert.equal(lastWords(NODE, 3), [
    "Error: Cannot find module '/srv/server.js'",
    "  code: 'MODULE_NOT_FOUND',",
    '  requireStack: []',
  ]);
});

test('are the last lines of what has no stack, or of nothing else', () => {
  assert.equal(lastWords(['a', 'b', 'File "x", line 3', 'at last'], 2), ['File "x", line 3', 'at last']);
  assert.equal(lastWords(['    at one', '    at two'], 1), ['    at two']);
  assert.equal(lastWords([], 5), []);
});

test.run();
