// The parts of a gateway, put together: they share one fleet, one stream of facts and one answer to whether calls are taken.

import * as assert from 'uvu/assert';
import { EventStream } from '../../src/actors/event-stream.ts';
import { DEFAULT_POLICY } from '../../src/domain/policy.ts';
import { composeGateway } from '../../src/gateway/compose.ts';
import { MemoryStore } from '../../src/persistence/memory-store.ts';
import { serving, text } from '../helpers/function-backend.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('parts of a gateway');

test('know each other', async () => {
  const events = new EventStream();
  const facts: string[] = [];
  events.events$.subscribe(({ type }) => facts.push(type));
  let isAccepting = true;
  const options = { policy: { maxRetries: 1 }, deniedNetworks: ['10.0.0.0/8'] };
  const deps = composeGateway(new MemoryStore(), options, events, () => isAccepting);
  const { policy, registry, fleet, status, mcp, database } = deps;
  assert.equal(policy, { ...DEFAULT_POLICY, maxRetries: 1 });

  const handler = serving({ say: () => text('said') });
  await registry.register('a', { id: 'one' }, { handler, waitMs: 5_000 });
  assert.equal(fleet.group('a').policy, policy);
  assert.equal(
    status.servers().map(({ snapshot }) => snapshot.healthy),
    [true],
  );
  assert.ok(facts.includes('instance.registered'));
  const endpoint = 'http://10.0.0.1/mcp';
  assert.is(await codeOf(registry.register('a', { endpoint })), 'ENDPOINT_NOT_ALLOWED');
  assert.is(await database.read(), 'connected');
  assert.equal([...mcp.owners], []);

  isAccepting = false;
  const refused = new Promise<unknown>((resolve) =>
    deps.dispatcher.exchange('a', { method: 'tools/list' }).subscribe({ error: resolve }),
  );
  assert.is(Object(await refused).code, 'SHUTTING_DOWN');
  await Promise.all([mcp.close(0), fleet.close(0)]);
});

test.run();
