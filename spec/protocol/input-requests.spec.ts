// The requests of an `input_required` result, and the capabilities that they need. Their further handling is in
// legacy-over-modern.spec.ts.

import * as assert from 'uvu/assert';
import type { JsonObject } from '../../src/domain/json/json.ts';
import type { InputRequest } from '../../src/domain/mcp/client.ts';
import {
  missingCapabilities,
  missingCapabilityError,
  readInputRequired,
} from '../../src/protocol/input-requests.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('input requests');

function read(inputRequests: unknown, requestState?: unknown) {
  const required = readInputRequired({ resultType: 'input_required', inputRequests, requestState });
  return typeof required === 'string' ? required : { ...required, requests: [...required.requests] };
}

test('a question about a URL gets the id that legacy clients need', () => {
  const ids = ['x', undefined].map((elicitationId) => {
    const params = { mode: 'url', url: 'https://example.org', elicitationId };
    const required = readInputRequired({ inputRequests: { a: { method: 'elicitation/create', params } } });
    return typeof required === 'string' ? undefined : required.requests.get('a')?.params.elicitationId;
  });
  assert.is(ids[0], 'x');
  assert.match(String(ids[1]), /^[0-9a-f-]{36}$/);
});

test('an unanswerable result gives a reason', () => {
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

const form: InputRequest = { method: 'elicitation/create', params: { message: 'm' } };
const url: InputRequest = { method: 'elicitation/create', params: { mode: 'url' } };
const sampling: InputRequest = { method: 'sampling/createMessage', params: {} };
const tools: InputRequest = { method: 'sampling/createMessage', params: { tools: [] } };
const roots: InputRequest = { method: 'roots/list', params: {} };

test('each request needs a capability, which is missing when the client did not declare it', () => {
  const table: readonly [question: InputRequest, declared: JsonObject, missing: JsonObject | undefined][] = [
    [form, {}, { elicitation: { form: {} } }],
    [form, { elicitation: {} }, undefined],
    [form, { elicitation: { form: {} } }, undefined],
    [form, { elicitation: { url: {} } }, { elicitation: { form: {} } }],
    [url, { elicitation: {} }, { elicitation: { url: {} } }],
    [url, { elicitation: { url: {} } }, undefined],
    [sampling, {}, { sampling: {} }],
    [sampling, { sampling: {} }, undefined],
    [tools, { sampling: {} }, { sampling: { tools: {} } }],
    [tools, { sampling: { tools: {} } }, undefined],
    [roots, { sampling: {} }, { roots: {} }],
    [roots, { roots: { listChanged: true } }, undefined],
    [{ method: 'vendor/ask', params: {} }, {}, undefined],
  ];
  for (const [question, declared, missing] of table) {
    assert.equal(missingCapabilities([question], declared), missing, JSON.stringify([question, declared]));
  }
});

test('one error names all missing capabilities', () => {
  assert.equal(missingCapabilities([form, url, sampling, tools, roots], { roots: {} }), {
    elicitation: { form: {}, url: {} },
    sampling: { tools: {} },
  });
  assert.equal(missingCapabilityError({ sampling: {}, roots: {} }), {
    code: -32021,
    message: 'The server needs capabilities that the client did not declare: sampling, roots',
    data: { requiredCapabilities: { sampling: {}, roots: {} } },
  });
});

test.run();
