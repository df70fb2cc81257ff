import * as assert from 'uvu/assert';
import { includesLevel, isLogLevel, logRankOf } from '../../src/domain/mcp.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('log levels');

test('are ranked from debug to emergency', () => {
  assert.is(logRankOf('debug'), 0);
  assert.is(logRankOf('emergency'), 7);
  assert.is(logRankOf('toString'), undefined);
  assert.is(logRankOf(undefined), undefined);
});

test('are known by their names', () => {
  assert.equal(['notice', 'loud', 3, null, undefined].map(isLogLevel), [true, false, false, false, false]);
});

test('include those that are more severe, and what is none', () => {
  assert.equal([includesLevel('debug', 'error'), includesLevel('error', 'error')], [true, true]);
  assert.is(includesLevel('error', 'debug'), false);
  assert.equal([includesLevel('emergency', 'loud'), includesLevel('emergency', undefined)], [true, true]);
});

test.run();
