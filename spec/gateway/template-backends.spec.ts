// One template as the endpoint sees it: its peers, its instances, and the tools that they list.

import { of, Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { InstanceRef } from '../../src/actors/instances/instance-ref.ts';
import type { ExchangeEvent, ExchangeRequest } from '../../src/domain/exchange.ts';
import type { ListField } from '../../src/domain/mcp.ts';
import { TemplateBackends } from '../../src/gateway/template-backends.ts';
import { ListMemory } from '../../src/protocol/cached-lists.ts';
import { PEER } from '../helpers/scripted-transport.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('template backends');

const UNKNOWN: ExchangeEvent = { kind: 'error', error: { code: -32602, message: 'Unknown task' } };

type Parts = ConstructorParameters<typeof TemplateBackends>[1];
type Ref = { id?: string; state: string; peer?: unknown; lastPeer?: unknown; tools?: unknown };

/** Backends of the template `t` over these instances, with only the dependencies that these tests need. */
function over(refs: readonly Ref[]) {
  const listChanges$ = new Subject<{ template: string; list: ListField }>();
  const candidates = refs.filter(({ state }) => state === 'healthy');
  const fleet = { refs: () => refs, group: () => ({ pool: { candidates } }) };
  const now = () => 0;
  const parts: Partial<Record<keyof Parts, unknown>> = { fleet, listChanges$, now, memory: new ListMemory() };
  return { backends: new TemplateBackends('t', Object(parts)) };
}

test('has the peers of healthy instances, else the last known ones', () => {
  const other = { ...PEER, serverName: 'other' };
  const healthy = { state: 'healthy', peer: PEER, lastPeer: PEER };
  const { backends } = over([
    healthy,
    { state: 'unhealthy', peer: other, lastPeer: other },
    { state: 'starting' },
  ]);
  assert.equal(backends.peers(), [PEER]);
  assert.equal(over([{ state: 'unhealthy', lastPeer: other }, { state: 'starting' }]).backends.peers(), [
    other,
  ]);
  assert.equal(over([]).backends.peers(), []);
});

test('names the healthy and draining instances of the modern era', () => {
  const { backends } = over([
    { id: 'a', state: 'healthy', peer: { era: 'modern' } },
    { id: 'b', state: 'unhealthy', peer: { era: 'modern' } },
    { id: 'c', state: 'healthy', peer: { era: 'legacy' } },
    { id: 'd', state: 'draining', peer: { era: 'modern' } },
  ]);
  assert.equal(backends.modernInstanceIds(), ['a', 'd']);
});

test('sends a request of the gateway to an instance outside of its calls, on behalf of the owner', () => {
  const listened: ExchangeRequest[] = [];
  const listen = (request: ExchangeRequest) => {
    listened.push(request);
    return of(UNKNOWN);
  };
  const ref = Object.create(InstanceRef.prototype, { listen: { value: listen } });
  const fleet = { find: (_: string, id: string) => (id === 'a' ? ref : undefined) };
  const parts = { fleet, listChanges$: new Subject(), memory: new ListMemory() };
  const backends = new TemplateBackends('t', Object(parts));
  const received: unknown[] = [];
  for (const instanceId of ['a', 'b']) {
    backends
      .askInstance({ method: 'tasks/get' }, { owner: { id: 'ann' }, instanceId })
      .subscribe({ next: (event) => received.push(event), error: ({ code }) => received.push(code) });
  }
  assert.equal(
    [received, listened],
    [[UNKNOWN, 'SERVER_NOT_FOUND'], [{ method: 'tasks/get', caller: 'ann' }]],
  );
});

test('finds a tool at healthy instances first, and has the same one list its tools again', () => {
  const relisted: string[] = [];
  const listing = (state: string, title: string, mayRefresh = true) => ({
    state,
    tools: {
      find: (name: string) => (name === 'x' ? { name, title } : undefined),
      mayRefresh,
      refresh: async () => void relisted.push(title),
    },
  });
  const old = listing('unhealthy', 'old');
  const { backends } = over([old, listing('healthy', 'one'), listing('healthy', 'two')]);
  assert.equal([backends.tool('x'), backends.tool('z')], [{ name: 'x', title: 'one' }, undefined]);
  for (const name of ['x', 'z']) backends.relistTool(name);
  over([listing('healthy', 'just listed', false)]).backends.relistTool('x');
  assert.equal(relisted, ['one']);
});

test.run();
