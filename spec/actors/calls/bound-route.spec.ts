// Calls on a route that is bound to one instance, through the conversation of one client: yet calls like any other.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { BoundRoute } from '../../../src/actors/calls/routes.ts';
import type { InstanceRef } from '../../../src/actors/instances/instance-ref.ts';
import type { ClientProfile } from '../../../src/domain/client.ts';
import type { Upstream } from '../../../src/transports/transport.ts';
import { Harness, listen, silent, toolCall } from '../../helpers/failing-backend.ts';
import { suite } from '../../helpers/suite.ts';
import { openOwn } from '../instances/instance-harness.ts';

const test = suite('bound route: within a conversation');
let harness = new Harness();

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  harness = new Harness({ callTimeoutMs: 5_000 });
});
test.after.each(() => {
  mock.timers.reset();
  return harness.close();
});

test('waits in line when the instance is full, and goes through its upstream then', async () => {
  const { ref, upstream } = await opened();
  for (let place = 0; place < ref.capacity; place += 1) harness.call('write');
  const call = within(ref, upstream);
  assert.equal([upstream.asked, harness.fleet.group('t').queue.length], [[], 1]);
  harness.backend('a').open[0]?.result();
  assert.equal(upstream.asked, ['tools/call']);
  upstream.last.result();
  assert.is(await call.end, 'a');
});

test.run();

/** A call of that tool at this instance only, and through the upstream if there is one. */
function within(
  ref: InstanceRef,
  upstream: Upstream | undefined,
  tool = 'write',
  { goesOn = false, timeoutMs = 5_000 } = {},
) {
  const request = toolCall(tool);
  const group = harness.fleet.group('t');
  const route = new BoundRoute(ref, request, { goesOn, upstream });
  const order = { group, request, route, wantedTool: undefined, timeoutMs };
  return listen(harness.dispatcher.carry('t', request, () => order));
}

const PROFILE: ClientProfile = { protocolVersion: '2025-11-25', capabilities: { roots: {} }, clientInfo: {} };

/** An instance whose own conversation is silent, with one for a client. */
async function opened(script = silent) {
  const ref = await harness.add('a', script);
  await openOwn(ref, PROFILE);
  const [upstream] = harness.backend('a').upstreams;
  if (upstream === undefined) throw new Error('nothing was opened');
  upstream.onExchange = undefined;
  return { ref, upstream };
}
