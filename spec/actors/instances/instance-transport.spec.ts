// The transport of an instance: requests of the gateway itself, and lists that change.

import * as assert from 'uvu/assert';
import { RPC } from '../../../src/domain/mcp/jsonrpc.ts';
import { openOwn } from '../../helpers/backends/harness.ts';
import { ScriptedTransport } from '../../helpers/backends/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { settled, simulateTime } from '../../helpers/time/simulated-time.ts';
import { type InstanceHarness, onHarness } from './instance-harness.ts';

const test = suite('transport of an instance');
simulateTime(test);
const check = onHarness(test);
const changes = ({ emissions }: InstanceHarness) =>
  emissions.flatMap((emission) => (emission.type === 'list.changed' ? [emission.list] : []));

check('continues when a dedicated conversation ends', async (harness) => {
  const transport = await harness.healthy();
  const call = harness.call(undefined, undefined, await openOwn(harness.ref));
  transport.conversations[0]?.disconnect();
  await settled();
  assert.equal([call.error?.delivered, harness.ref.state, transport.isClosed], ['unknown', 'healthy', false]);
});

check('is closed when its actor is stopped, and its callers are answered', async (harness) => {
  const transport = await harness.healthy();
  const caller = harness.call();
  harness.close();
  const end = [caller.error?.code, transport.isClosed, harness.ref.state];
  assert.equal(end, ['BACKEND_UNAVAILABLE', true, 'stopped']);
});

check(
  'of an instance that leaves may end before its last call, and no restart is announced',
  async (harness) => {
    const transport = await harness.healthy();
    transport.conversationsAreIndependent = true;
    harness.call(undefined, undefined, await openOwn(harness.ref));
    harness.ref.leave(30_000);
    transport.disconnect();
    await settled();
    await harness.pass(30_000);
    assert.is(harness.ref.state, 'stopped');
    assert.not(harness.emissions.some(({ type }) => type === 'instance.restarting'));
  },
);

check('says how long a probe took that was refused', async (harness) => {
  const transport = await harness.healthy();
  await harness.pass(30_000);
  await harness.pass(20);
  transport.last.refuse(RPC.internalError);
  await settled();
  assert.equal(harness.emissions.at(-1), { type: 'probe.finished', passed: false, durationMs: 20 });
});

check('fails and cancels a probe that exceeds its timeout', async (harness) => {
  const transport = await harness.healthy();
  await harness.pass(30_000);
  transport.last.notify('notifications/progress');
  harness.clock.increment(9_999);
  assert.is(transport.last.isOpen, true);
  harness.clock.increment(1);
  await settled();
  assert.equal([transport.last.isCancelled, harness.ref.snapshot(0).consecutiveFailures], [true, 1]);
});

for (const leaves of [false, true])
  check(
    `of a modern server that answers nothing is ${leaves ? 'opened again' : 'used'} after 5 s`,
    async (harness) => {
      const transport = new ScriptedTransport({ era: 'modern', capabilities: { tools: {} } });
      let left = 0;
      const leaveEra = () => {
        left += 1;
        return leaves;
      };
      harness.scripted.last.succeed(Object.assign(transport, { leaveEra }));
      await settled();
      harness.clock.increment(4_999);
      await settled();
      assert.equal([harness.ref.state, left], ['starting', 0]);
      harness.clock.increment(1);
      await settled();
      assert.equal([harness.ref.state === 'healthy', left, transport.isClosed], [!leaves, 1, leaves]);
      if (leaves) assert.match(harness.ref.snapshot(0).reason ?? '', 'answers nothing in it');
    },
  );

check('lists the tools after the handshake, and again when they changed', async (harness) => {
  const transport = new ScriptedTransport({ capabilities: { tools: {} } });
  transport.onExchange = (exchange) =>
    exchange.result({ tools: [{ name: `tool ${transport.asked.length}` }, { name: 7 }, 'x'] });
  await harness.healthy(transport);
  assert.is(harness.ref.tools?.lists('tool 1'), 'yes');
  await harness.pass(1_000);
  for (const list of ['prompts', 'roots']) transport.sendNotification(`notifications/${list}/list_changed`);
  await settled();
  assert.equal(transport.asked, ['tools/list']);
  transport.sendNotification('notifications/tools/list_changed');
  await settled();
  const { tools } = harness.ref;
  assert.equal([tools?.lists('tool 1'), tools?.lists('tool 2')], ['no', 'yes']);
  assert.equal(changes(harness), ['prompts', 'tools']);
  assert.equal(transport.asked, ['tools/list', 'tools/list']);
});

check('lists count as changed after a time in which changes may have been missed', async (harness) => {
  const capabilities = { tools: {}, prompts: { listChanged: true } };
  const transport = new ScriptedTransport({ capabilities });
  transport.onExchange = (exchange) =>
    exchange.result({ tools: [{ name: `tool ${transport.asked.length}` }] });
  await harness.healthy(transport);
  await harness.pass(1_000);
  transport.resumed$.next();
  await settled();
  assert.is(harness.ref.tools?.lists('tool 2'), 'yes', 'also of a server that announces no changes');
  assert.equal(changes(harness), ['tools', 'prompts']);
});

check(
  'emits the tools that its transport omits from lists, and lists the tools again for it',
  async (harness) => {
    const { hooks } = harness.scripted.last;
    assert.is(hooks?.relistTools?.(), undefined);
    const transport = await harness.healthy(new ScriptedTransport({ capabilities: { tools: {} } }));
    const omitted = { tool: 'x', reason: 'it is bad' };
    hooks?.onWithheld?.(omitted);
    assert.equal(harness.emissions.at(-1), { type: 'tool.withheld', ...omitted });
    transport.last.result({ tools: [] });
    await settled();
    void hooks?.relistTools?.();
    assert.equal(transport.asked, ['tools/list', 'tools/list']);
  },
);

check('subscribes to changes at a modern backend, and survives a broken stream', async (harness) => {
  const transport = new ScriptedTransport({
    era: 'modern',
    capabilities: { tools: { listChanged: true }, prompts: { listChanged: true } },
  });
  transport.onExchange = (exchange) => {
    if (exchange.request.method === 'tools/list') exchange.result({ tools: [{ name: 'a' }] });
  };
  await harness.healthy(transport);
  assert.equal(transport.asked, ['tools/list', 'subscriptions/listen']);
  const listening = transport.last;
  await harness.pass(1_000);
  listening.notify('notifications/prompts/list_changed');
  listening.notify('notifications/tools/list_changed');
  await settled();
  assert.equal([changes(harness), transport.asked.slice(2)], [['prompts', 'tools'], ['tools/list']]);
  listening.fail(new Error('the stream broke'));
  await settled();
  assert.is(harness.ref.state, 'healthy');
  harness.ref.leave(0);
  await settled();
  assert.is(harness.ref.state, 'stopped');
});

test.run();
