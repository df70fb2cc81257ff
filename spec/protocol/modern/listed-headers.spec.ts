// By which list the headers of a call are judged: what is known, and before a refusal what is listed when it is asked again.

import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { Tool } from '../../../src/domain/mcp.ts';
import type { ModernCall } from '../../../src/protocol/modern/modern-call.ts';
import { ListedHeaders } from '../../../src/protocol/modern/param-headers.ts';
import { RpcFailure } from '../../../src/protocol/rpc.ts';
import { suite } from '../../helpers/suite.ts';
import { ModernScriptedBackends } from './modern-harness.ts';

const test = suite('listed headers');

function asking(header: string): Tool {
  return { name: 't', inputSchema: { properties: { a: { type: 'string', 'x-mcp-header': header } } } };
}

/** Checks calls of a tool that is known to ask for the header `Old`. */
function setUp() {
  const backends = new ModernScriptedBackends();
  backends.tools.set('t', asking('Old'));
  const listed = new ListedHeaders();
  const check = (headers: Record<string, string>, more: Partial<ModernCall> = {}) => {
    const params: JsonObject = { name: 't', arguments: { a: 'x' } };
    const call = { id: 1, method: 'tools/call', params, owner: { id: 'ann' }, template: 't', backends };
    return listed.check(Object.assign(call, { envelope: Object({}) }, more), headers);
  };
  return { backends, check };
}

/** What a check throws or rejects with; undefined when it finds nothing. */
async function refusalOf(check: () => Promise<void> | undefined): Promise<string | undefined> {
  try {
    await check();
    return undefined;
  } catch (thrown) {
    assert.instance(thrown, RpcFailure);
    return thrown instanceof RpcFailure ? `${thrown.status} ${thrown.message}` : '';
  }
}

const OLD = { 'mcp-param-old': 'x' };
const NEW = { 'mcp-param-new': 'x' };

test('that are right are so at once, and nobody is asked', () => {
  const { backends, check } = setUp();
  assert.is(check(OLD), undefined);
  assert.is(check({}, { method: 'prompts/get' }), undefined);
  assert.is(check({}, { params: { name: 7 } }), undefined);
  assert.is(check({}, { params: { name: 'unknown', arguments: { a: 'x' } } }), undefined);
  assert.equal(backends.relistings, []);
});

test('that are wrong by what is known are right when a new list says so', async () => {
  const { backends, check } = setUp();
  backends.onRelist = async () => [asking('New')];
  const checked = check(NEW);
  assert.instance(checked, Promise);
  assert.is(await checked, undefined);
  backends.onRelist = () => [asking('New')];
  assert.is(check(NEW), undefined);
  assert.equal(backends.relistings, ['t', 't']);
});

test('are right when they are for one of the instances, or when none lists the tool any more', async () => {
  const { backends, check } = setUp();
  for (const tools of [[asking('Old'), asking('New'), asking('Other')], []]) {
    backends.onRelist = async () => tools;
    assert.is(await refusalOf(() => check(NEW)), undefined);
  }
});

test('are refused when they are wrong by every list, in the words of the first', async () => {
  const { backends, check } = setUp();
  const refusal = (header: string) =>
    `400 Bad Request: the request headers and body disagree: mcp-param-${header} is missing, but the body has "a"`;
  assert.is(await refusalOf(() => check(NEW)), refusal('old'));
  backends.onRelist = async () => [asking('Other'), asking('Another')];
  assert.is(await refusalOf(() => check(NEW)), refusal('other'));
  backends.onRelist = async () => [asking('New')];
  assert.match((await refusalOf(() => check({ 'mcp-param-new': 'y' }))) ?? '', 'something else than "a"');
});

test.run();
