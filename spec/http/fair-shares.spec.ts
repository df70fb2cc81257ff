// The identity of a caller reaches the shares of an instance, over REST and MCP. The shares: spec/actors/calls/call-queue.spec.ts.

import * as assert from 'uvu/assert';
import { LIMITS } from '../../src/domain/limits.ts';
import { HeldTool, serving, text } from '../helpers/backends/function-backend.ts';
import { modern } from '../helpers/clients/mcp-messages.ts';
import { until } from '../helpers/eventually.ts';
import { type Credentials, startWithAccounts } from '../helpers/http/accounts.ts';
import { type Ask, appFor } from '../helpers/http/app.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('fair shares of a template');
const app = appFor(test, () => startWithAccounts());

/** The path and the message of a call of this tool. */
const SURFACES: Readonly<Record<string, (tool: string) => readonly [path: string, ask: Ask]>> = {
  REST: (name) => ['/mcp/demo/tools/call', { body: { name } }],
  MCP: (name) => ['/mcp/demo', modern('tools/call', { name, arguments: {} })],
};
for (const [surface, callOf] of Object.entries(SURFACES))
  test(`let calls of other keys and health checks succeed while one key uses the whole capacity, over ${surface}`, async () => {
    const held = new HeldTool();
    await app.serve('demo', 'one', serving({ held: held.body, other: () => text('served') }));
    const call = (key: Credentials, name: string) => app.as(key, 'POST', ...callOf(name));
    const [greedy, other] = [await app.key(['tools:call']), await app.key(['tools:call'])];
    const calls = Array.from({ length: LIMITS.inFlightPerInstance + 1 }, () => call(greedy, 'held'));
    await until(() => held.waiting === LIMITS.inFlightPerInstance, 'it is at capacity');
    assert.match((await call(other, 'other')).text, 'served');
    for (const path of ['/livez', '/readyz', '/health']) assert.is((await app.ask('GET', path)).status, 200);
    held.answerAll();
    await until(() => held.waiting === 1, 'the last one had to wait');
    held.answer();
    for (const { status } of await Promise.all(calls)) assert.is(status, 200);
  });

test.run();
