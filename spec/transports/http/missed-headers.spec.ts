// Whether a call that was refused for want of a header is worth making again. How calls over HTTP fare with it is
// http-missed-headers.spec.ts.

import { EMPTY, NEVER, Observable } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ExchangeRequest } from '../../../src/domain/exchange.ts';
import { type JsonObject, JsonText } from '../../../src/domain/json.ts';
import type { Peer } from '../../../src/domain/mcp.ts';
import {
  areTooLarge,
  MOST_HEADER_BYTES,
  ToolHeaders,
  wouldWearMore,
} from '../../../src/transports/http/tool-headers.ts';
import { suite } from '../../helpers/suite.ts';
import { CALL, callWith, REGION, tool } from './tool-headers-harness.ts';

const test = suite('missed headers');

const PEER: Peer = {
  era: 'modern',
  protocolVersion: '2026-07-28',
  serverName: 'x',
  serverVersion: '1',
  capabilities: {},
  greeting: {},
};

/** What is known of a backend: `known` at first, `listed` after a listing. */
function backend(known: JsonObject, listed: JsonObject = known) {
  const toolHeaders = new ToolHeaders();
  const learn = (properties: JsonObject): void => {
    const page = JsonText.ofValue({ tools: [tool('one', properties)] });
    toolHeaders.checkTools({ method: 'tools/list' }, PEER, page);
  };
  let listings = 0;
  const toolListing$ = new Observable<never>((subscriber) => {
    listings += 1;
    learn(listed);
    subscriber.complete();
  });
  learn(known);
  return { toolHeaders, toolListing$, listings: () => listings };
}

function verdictOf(
  one: ReturnType<typeof backend>,
  request: ExchangeRequest,
  worn: ExchangeRequest['headers'],
) {
  const heard: (boolean | 'end')[] = [];
  wouldWearMore(one, { request, peer: PEER, worn }).subscribe({
    next: (isMore) => heard.push(isMore),
    complete: () => heard.push('end'),
  });
  return [...heard, one.listings()];
}

test('that are known already need no listing', () => {
  assert.equal(verdictOf(backend({ region: REGION }), CALL, undefined), [true, 'end', 0]);
  assert.equal(verdictOf(backend({ region: REGION }), CALL, { 'mcp-param-region': 'y' }), [true, 'end', 0]);
});

test('are looked for in a listing, which may bring some or none', () => {
  const worn = { 'mcp-param-region': 'x' };
  assert.equal(verdictOf(backend({}, { region: REGION }), CALL, undefined), [true, 'end', 1]);
  assert.equal(verdictOf(backend({}), CALL, undefined), [false, 'end', 1]);
  assert.equal(verdictOf(backend({ region: REGION }), CALL, worn), [false, 'end', 1]);
});

test('that the tool asks for no more are no reason to call again', () => {
  const worn = { 'mcp-param-region': 'x' };
  assert.equal(verdictOf(backend({ region: REGION }, {}), CALL, worn), [false, 'end', 1]);
});

test('are not looked for when they cannot be written, or are the business of others', () => {
  const number = { n: { type: 'integer', 'x-mcp-header': 'N' } };
  assert.equal(verdictOf(backend(number), callWith({ n: 2 ** 60 }), undefined), [false, 'end', 0]);
  assert.equal(verdictOf(backend({}), { ...CALL, headers: {} }, undefined), [false, 'end', 0]);
  assert.equal(verdictOf(backend({}), { method: 'prompts/get' }, undefined), [false, 'end', 0]);
});

test('are waited for as long as the listing takes', () => {
  const { toolHeaders } = backend({});
  const heard: boolean[] = [];
  const call = { request: CALL, peer: PEER, worn: undefined };
  wouldWearMore({ toolHeaders, toolListing$: NEVER }, call).subscribe((isMore) => heard.push(isMore));
  assert.equal(heard, []);
  wouldWearMore({ toolHeaders, toolListing$: EMPTY }, call).subscribe((isMore) => heard.push(isMore));
  assert.equal(heard, [false]);
});

test('are too large above a number of bytes, names and all', () => {
  const fitting = { 'mcp-param-a': 'x'.repeat(MOST_HEADER_BYTES - 'mcp-param-a: \r\n'.length) };
  assert.is(areTooLarge(fitting), false);
  assert.is(areTooLarge({ 'mcp-param-a': `${fitting['mcp-param-a']}x` }), true);
  assert.is(areTooLarge({ ...fitting, 'mcp-param-b': '' }), true);
});

test.run();
