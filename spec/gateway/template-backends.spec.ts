// One template as the endpoint sees it: who is there, what they list, and only its own sessions.

import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ListField } from '../../src/domain/mcp.ts';
import { TemplateBackends } from '../../src/gateway/template-backends.ts';
import { PEER } from '../helpers/scripted-transport.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('template backends');

type Parts = ConstructorParameters<typeof TemplateBackends>[1];
type Ref = { state: string; peer?: unknown; lastPeer?: unknown; tools?: unknown };

/** Backends of the template `t` over these instances; what is not asked for here is not there. */
function over(refs: readonly Ref[], sessions: readonly object[] = []) {
  const listChanged$ = new Subject<{ template: string; list: ListField }>();
  const fleet = { refs: () => refs, listChanged$ };
  const found = { find: () => sessions[0] };
  const parts: Partial<Record<keyof Parts, unknown>> = { fleet, sessions: found };
  return { backends: new TemplateBackends('t', Object(parts)), listChanged$ };
}

test('asks the healthy who they are, and remembers while nobody is', () => {
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

test('finds a tool with whoever lists it', () => {
  const listing = (name: string) => ({
    state: 'healthy',
    tools: { find: (asked: string) => (asked === name ? { name } : undefined) },
  });
  const { backends } = over([{ state: 'starting' }, listing('x'), listing('y')]);
  assert.equal(backends.tool('y'), { name: 'y' });
  assert.is(backends.tool('z'), undefined);
});

test('knows only sessions of its template', () => {
  const own = { template: 't' };
  assert.is(over([], [own]).backends.session('id'), own);
  assert.is(over([], [{ template: 'other' }]).backends.session('id'), undefined);
  assert.is(over([]).backends.session('id'), undefined);
});

test('tells of its own lists only', () => {
  const { backends, listChanged$ } = over([]);
  const lists: ListField[] = [];
  backends.listChanged$.subscribe((list) => lists.push(list));
  listChanged$.next({ template: 'other', list: 'tools' });
  listChanged$.next({ template: 't', list: 'prompts' });
  assert.equal(lists, ['prompts']);
});

test.run();
