// The report of an MCP request: it ends once, and then holds no arguments.

import * as assert from 'uvu/assert';
import { HttpCallReport } from '../../src/http/call-report.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('report of a request');

test('ends once, with the arguments of its call, and keeps none of them', () => {
  const ends: unknown[] = [];
  const request = { method: 'tools/call', params: { name: 'echo', arguments: { message: 'a secret' } } };
  const report = new HttpCallReport(request, ({ outcome, arguments: sent }) => ends.push([outcome, sent]));
  report.ended({ kind: 'cancelled' });
  report.ended({ kind: 'failed', code: 'INTERNAL_ERROR' });
  assert.equal(ends, [['cancelled', { message: 'a secret' }]]);
  assert.is(report.arguments, undefined);
});

test.run();
