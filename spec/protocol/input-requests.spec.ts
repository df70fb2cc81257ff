// The questions of an `input_required` result. What becomes of them is in legacy-over-modern.spec.ts.

import * as assert from 'uvu/assert';
import { readInputRequired } from '../../src/protocol/input-requests.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('input requests');

function read(inputRequests: unknown, requestState?: unknown) {
  const required = readInputRequired({ resultType: 'input_required', inputRequests, requestState });
  return typeof required === 'string' ? required : { ...required, requests: [...required.requests] };
}

test('the three kinds of questions are read by their keys', () => {
  const form = { message: 'm', requestedSchema: {} };
  const inputRequests = {
    a: { method: 'elicitation/create', params: form },
    b: { method: 'sampling/createMessage', params: { messages: [] } },
    c: { method: 'roots/list' },
  };
  assert.equal(read(inputRequests, 's'), {
    requests: [
      ['a', { method: 'elicitation/create', params: form }],
      ['b', { method: 'sampling/createMessage', params: { messages: [] } }],
      ['c', { method: 'roots/list', params: {} }],
    ],
    requestState: 's',
  });
});

test('a question about a URL gets the id that legacy clients need', () => {
  const ids = ['x', undefined].map((elicitationId) => {
    const params = { mode: 'url', url: 'https://example.org', elicitationId };
    const required = readInputRequired({ inputRequests: { a: { method: 'elicitation/create', params } } });
    return typeof required === 'string' ? undefined : required.requests.get('a')?.params.elicitationId;
  });
  assert.is(ids[0], 'x');
  assert.match(String(ids[1]), /^[0-9a-f-]{36}$/);
});

test('state alone is enough, even an empty one', () => {
  assert.equal(read(undefined, ''), { requests: [], requestState: '' });
});

test('what nobody could answer is a sentence', () => {
  const roots = { method: 'roots/list' };
  const many = Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`k${index}`, roots]));
  const rows: unknown[] = [
    undefined,
    {},
    null,
    [],
    'x',
    many,
    { a: null },
    { a: {} },
    { a: { method: 'ping' } },
  ];
  for (const row of rows) assert.type(read(row), 'string', JSON.stringify(row));
  assert.type(read({ a: roots }, 7), 'string');
  assert.type(readInputRequired(null), 'string');
});

test.run();
