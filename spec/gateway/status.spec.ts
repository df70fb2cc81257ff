// What a gateway shows of itself, over a real fleet; what clients have open is made up.

import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import type { InstanceClients } from '../../src/actors/client-metrics.ts';
import type { GatewayEvent } from '../../src/domain/events.ts';
import { DEFAULT_POLICY } from '../../src/domain/policy.ts';
import { Status } from '../../src/gateway/status.ts';
import { Harness, silent } from '../helpers/failing-backend.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('status of a gateway');
const CLIENTS: Readonly<Record<string, InstanceClients>> = {
  's.a': { sessions: 3, ownProcesses: 1, processes: [] },
};
const NO_CLIENTS: InstanceClients = { sessions: 0, ownProcesses: 0, processes: [] };
const clientStats = { parkedSessions: 2, maxSessions: 10, templates: new Map() };

let harness = new Harness();
let events$ = new Subject<GatewayEvent>();
let status: Status;
test.before.each(() => {
  harness = new Harness();
  events$ = new Subject();
  const mcp = { clientsAt: (serverId: string) => CLIENTS[serverId] ?? NO_CLIENTS, stats: clientStats };
  status = new Status({ fleet: harness.fleet, mcp, events$ });
});
test.after.each(() => harness.close());

test('tells the health of a template now, and again when one of its instances changes', async () => {
  harness.fleet.setPolicy('s', DEFAULT_POLICY);
  const counts: string[] = [];
  const watching = status.health$('t').subscribe(({ healthy, total }) => counts.push(`${healthy}/${total}`));
  const ref = await harness.add('a', silent);
  const fact = { atMs: 0, instanceId: 'a', serverId: 'a' };
  events$.next({ type: 'instance.healthy', ...fact, template: 't', era: 'legacy' });
  events$.next({ type: 'instance.healthy', ...fact, template: 's', era: 'legacy' });
  ref.drain();
  events$.next({ type: 'instance.draining', ...fact, template: 't' });
  watching.unsubscribe();
  assert.equal(counts, ['0/0', '1/1', '0/0']);
  assert.is(await codeOf(() => status.health('x')), 'TEMPLATE_NOT_FOUND');
});

test('counts what the events tell, until its end', () => {
  const started: GatewayEvent = {
    type: 'exchange.started',
    atMs: 0,
    template: 't',
    call: 1,
    method: 'tools/call',
    principal: 'user:1',
  };
  events$.next(started);
  const { totalRequests, activeConnections, clients } = status.stats();
  assert.equal([totalRequests, activeConnections, clients], [1, 0, clientStats]);
  status.close();
  events$.next(started);
  assert.is(status.stats().totalRequests, 1);
});

test.run();
