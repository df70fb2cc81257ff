// The fields that answers of legacy backends lack for modern clients, found in their bytes.

import * as assert from 'uvu/assert';
import { type JsonObject, JsonText } from '../../../src/domain/json/json.ts';
import {
  completed,
  modernError,
  requestedVisits,
  resultTypeOf,
} from '../../../src/protocol/modern/modern-over-legacy.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('modern over legacy');

const serverInfo = { name: 's', version: '1' };
const META = { _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo } };

const bytes = (text: string) => JsonText.ofBytes(Buffer.from(text));
const text = (result: JsonText) => Buffer.from(result.bytes).toString();
const finish = (method: string, result: string) =>
  text(completed(method, resultTypeOf(bytes(result)), bytes(result), () => serverInfo));
/** A field that makes a result larger than what is read. */
const LARGE = `"text":"${'x'.repeat(20_000)}"`;

test('a result gets the fields that it lacks, before its own fields', () => {
  const head = `{"resultType":"complete","_meta":${JSON.stringify(META._meta)}`;
  assert.is(finish('tools/call', '{"content":[]}'), `${head},"content":[]}`);
  assert.is(finish('tools/call', ' { "content" : [] } '), `${head},"content" : [] } `);
  assert.is(finish('tools/call', '{}'), `${head}}`);
  assert.is(finish('tools/call', '{ \n }'), `${head}}`);
});

test('the type of a result is that of its last field of this name, wherever it stands', () => {
  const types: Record<string, string | undefined> = {
    '{"resultType":"complete"}': 'complete',
    '{"content":[],"resultType":"complete"}': 'complete',
    '{"resultType":"input_required","resultType":"complete"}': 'complete',
    '{"x":[],"resultType":"complete","resultType":"input_required"}': 'input_required',
    '{"x":[],"resultType":"complete" ,"\\u0072esultType":"task"} ': 'task',
    '{"x":{"y":1,"resultType":"complete"}}': undefined,
    '{"x":"\\",\\"resultType\\":\\"complete\\"}"}': undefined,
    '{"x,\\"resultType":"complete"}': undefined,
    '{"x":[],"resultType":"complete","y":"task"}': 'complete',
  };
  for (const [result, type] of Object.entries(types)) assert.is(resultTypeOf(bytes(result)), type, result);
});

test('a list or resource without cache fields gets a ttl of 0 and the scope private', () => {
  const methods = [
    'tools/list',
    'prompts/list',
    'resources/list',
    'resources/templates/list',
    'resources/read',
  ];
  for (const method of methods) {
    const { ttlMs, cacheScope } = JSON.parse(finish(method, '{"x":[]}'));
    assert.equal([ttlMs, cacheScope], [0, 'private'], method);
  }
  assert.equal(JSON.parse(finish('prompts/get', '{"messages":[]}')), {
    resultType: 'complete',
    ...META,
    messages: [],
  });
});

test('fields that a result has are neither repeated nor changed', () => {
  const list = '{"tools":[],"ttlMs":5,"cacheScope":"public","_meta":{"a":1}}';
  assert.is(finish('tools/list', list), `{"resultType":"complete",${list.slice(1)}`);
  assert.is(finish('tools/call', '{"_meta":{"a":1}}'), '{"resultType":"complete","_meta":{"a":1}}');
  assert.match(finish('tools/call', '{"a":{"_meta":{}}}'), /^\{"resultType":"complete","_meta":/);
  const large = `{${LARGE},"ttlMs":5,"_meta":{}}`;
  assert.is(finish('tools/list', large), `{"resultType":"complete","cacheScope":"private",${large.slice(1)}`);
});

test('a modern result gets each field that it lacks or has in a form that clients refuse, and no others', () => {
  const typed = '"resultType":"complete","x":12345678901234567890';
  assert.is(finish('tools/call', `{${typed}}`), `{${typed}}`);
  assert.is(finish('tools/list', `{${typed}}`), `{"ttlMs":0,"cacheScope":"private",${typed}}`);
  assert.is(finish('tools/list', `{${typed},"ttlMs":5}`), `{"cacheScope":"private",${typed},"ttlMs":5}`);
  const whole = `{${typed},"ttlMs":5,"cacheScope":"public"}`;
  assert.is(finish('resources/read', whole), whole);
  for (const ttlMs of ['null', '-1', '1.5', '"5"', '[]', '1e400']) {
    const result = finish('prompts/list', `{${typed},"ttlMs":${ttlMs},"cacheScope":"public"}`);
    assert.is(result, `{${typed},"cacheScope":"public","ttlMs":0}`, ttlMs);
  }
  for (const scope of ['null', '"shared"', '1']) {
    const result = finish('tools/list', `{${LARGE},${typed},"ttlMs":5,"cacheScope":${scope}}`);
    assert.match(result, /"x":12345678901234567890,"ttlMs":5,"cacheScope":"private"\}$/, scope);
  }
  const untyped = finish('tools/call', '{"resultType":null,"content":[]}');
  assert.equal(JSON.parse(untyped), { content: [], resultType: 'complete', ...META });
});

test('an unknown resource is an invalid parameter: -32602 instead of -32002', () => {
  const error = { code: -32002, message: 'Resource not found' };
  const params = { uri: 'a://b' };
  assert.equal(modernError('resources/read', params, error), { ...error, code: -32602, data: params });
  assert.equal(modernError('resources/read', params, { ...error, data: { uri: 'other' } }), {
    ...error,
    code: -32602,
    data: { uri: 'other' },
  });
  assert.equal(modernError('tools/call', { name: 'x' }, error), { ...error, code: -32602 });
});

test('other errors are unchanged, except -32042, which becomes -32603', () => {
  for (const code of [-32601, -32602, -32603, -32021, 7]) {
    assert.equal(modernError('x', {}, { code, message: 'm', data: 1 }), { code, message: 'm', data: 1 });
  }
  assert.is(modernError('x', {}, { code: -32042, message: 'm' }).code, -32603);
});

test('URLs to visit are read from error -32042', () => {
  const visit = { mode: 'url', url: 'https://x', message: 'm' };
  const wanted = (data: JsonObject | undefined, code = -32042) =>
    requestedVisits({ code, message: '', ...(data === undefined ? {} : { data }) });
  assert.equal(wanted({ elicitations: [{ ...visit, elicitationId: 'e' }, null, {}] }), {
    'visit-1': { method: 'elicitation/create', params: visit },
  });
  for (const data of [undefined, {}, { elicitations: {} }, { elicitations: [] }, { elicitations: [7] }]) {
    assert.is(wanted(data), undefined);
  }
  assert.is(wanted({ elicitations: [visit] }, -32602), undefined);
});

test('the search for a field of a large result agrees with a parser', () => {
  const values = [
    '1',
    '"resultType"',
    '"\\"resultType\\":"',
    '{"resultType":1}',
    '[{"resultType":"}"}]',
    '"\\\\"',
    '"{["',
  ];
  for (const one of values) {
    for (const two of values) {
      for (const middle of ['', '"resultType":"task",']) {
        const found = `{"a":${one},${LARGE},${middle}"b":${two}}`;
        assert.is(resultTypeOf(bytes(found)), JSON.parse(found).resultType, found);
      }
    }
  }
  assert.is(resultTypeOf(bytes(`{${LARGE},"resultType":{}}`)), 'unknown');
});

test('the search takes linear time, however often the field occurs deeper', () => {
  const inside = '{"resultType":1},'.repeat(100_000);
  assert.is(resultTypeOf(bytes(`{"a":[${inside}0],"resultType":"x","b":[${inside}0]}`)), 'x');
});

test.run();
