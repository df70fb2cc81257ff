import * as assert from 'uvu/assert';
import type { JsonObject } from '../../src/domain/json.ts';
import {
  type InputRequest,
  missingCapabilities,
  missingCapabilityError,
} from '../../src/protocol/input-requests.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('needed capabilities');

const form: InputRequest = { method: 'elicitation/create', params: { message: 'm' } };
const url: InputRequest = { method: 'elicitation/create', params: { mode: 'url' } };
const sampling: InputRequest = { method: 'sampling/createMessage', params: {} };
const tools: InputRequest = { method: 'sampling/createMessage', params: { tools: [] } };
const roots: InputRequest = { method: 'roots/list', params: {} };

test('are missing when the client did not declare them', () => {
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

test('are told together', () => {
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
