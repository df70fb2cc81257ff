// Lists at `/mcp` after a restart while servers are down: those of their last healthy time, from the store.

import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { ANONYMOUS, type Principal } from '../../../src/domain/accounts/principal.ts';
import { isJsonObject, type JsonObject } from '../../../src/domain/json/json.ts';
import type { Gateway } from '../../../src/gateway/gateway.ts';
import type { ListStore } from '../../../src/persistence/store.ts';
import { type HttpFixture, startHttpServer } from '../../fixtures/http-server.ts';
import { livesFor } from '../../helpers/stores/lives.ts';
import { suite } from '../../helpers/suite.ts';
import { modernRequest, postTo } from './post.ts';

const test = suite('lists that outlive the gateway', { timeoutMs: 30_000 });
const ADA: Principal = { ...ANONYMOUS, id: 'user:ada' };
const BOB: Principal = { ...ANONYMOUS, id: 'user:bob' };
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

const lives = livesFor(test);
let other: HttpFixture;

test.before.each(async () => {
  other = await startHttpServer();
});
test.after.each(() => other.close());

/** A life that read the list of two templates; then it and the server of `t` are gone. */
async function afterRestart(capabilities?: JsonObject): Promise<Gateway> {
  const first = await lives.start();
  await first.register('t', { id: 'a', endpoint: lives.server.url }, { waitMs: 20_000 });
  await first.register('u', { id: 'a', endpoint: other.url }, { waitMs: 20_000 });
  const { tools } = await listed(first, ADA, capabilities);
  assert.ok(tools.includes('t__echo') && tools.includes('u__echo'));
  await stored();
  await first.close({ graceMs: 0 });
  await lives.server.close();
  return lives.start();
}

/** What is written behind is written. */
async function stored(): Promise<void> {
  const before = performance.now();
  while (performance.now() - before < 100) await turn();
}

async function listed(gateway: Gateway, principal: Principal, capabilities: JsonObject = {}) {
  const request = modernRequest('tools/list', {}, { [CAPABILITIES]: capabilities });
  const { answer } = await postTo(gateway, { ...request, template: undefined, principal });
  const { tools, ttlMs, _meta } = isJsonObject(answer.result) ? answer.result : {};
  const names = Array.isArray(tools) ? tools.map((tool) => isJsonObject(tool) && tool.name) : [];
  return { tools: names, ttlMs, meta: isJsonObject(_meta) ? _meta : {} };
}

function marks({ meta }: { readonly meta: JsonObject }) {
  const [missing, stale] = [meta['stagedoor/missing'], meta['stagedoor/stale']];
  const templates = (list: unknown) =>
    Array.isArray(list) ? list.map((each) => isJsonObject(each) && each.template) : [];
  return { missing: templates(missing), stale: templates(stale) };
}

test('the tools of a server that is down are listed as stale, also for other clients', async () => {
  const gateway = await afterRestart();
  for (const principal of [ADA, BOB]) {
    const list = await listed(gateway, principal);
    assert.ok(list.tools.includes('t__echo'), principal.id);
    assert.ok(list.tools.includes('u__echo'), principal.id);
    assert.equal(marks(list), { missing: [], stale: ['t'] }, principal.id);
    assert.is(list.ttlMs, 0);
  }
});

test('a client with other capabilities, which a server may have answered otherwise, gets none of them', async () => {
  const gateway = await afterRestart({ elicitation: {} });
  const list = await listed(gateway, ADA);
  assert.equal(marks(list), { missing: ['t'], stale: [] });
  assert.not.ok(list.tools.includes('t__echo'));
});

test('a store that fails makes a list no worse', async () => {
  const fail = () => Promise.reject(new Error('no disk'));
  const lists: ListStore = { find: fail, save: fail };
  lives.change({ lists });
  const gateway = await afterRestart();
  const list = await listed(gateway, ADA);
  assert.equal(marks(list), { missing: ['t'], stale: [] });
  assert.ok(list.tools.includes('u__echo'));
});

test('only a list that changed is written again', async () => {
  const saved: string[] = [];
  const { lists } = lives.store;
  const save: ListStore['save'] = async (list) => {
    saved.push(list.template);
    await lists.save(list);
  };
  lives.change({ lists: { ...lists, save } });
  const gateway = await lives.start();
  await gateway.register('t', { id: 'a', endpoint: lives.server.url }, { waitMs: 20_000 });
  for (const principal of [ADA, BOB, ADA]) await listed(gateway, principal);
  assert.equal(saved, ['t']);
});

test.run();
