import * as assert from 'uvu/assert';
import { emissionEvent, stateEvent } from '../../../src/actors/instances/instance-events.ts';
import { type GatewayEvent } from '../../../src/domain/events.ts';
import { suite } from '../../helpers/suite.ts';
import { onHarness, settled } from './instance-harness.ts';

const test = suite('instance facts');
const check = onHarness(test);
const WHO = { template: 't', instanceId: 'a', serverId: 'a' };

check(
  'tells the era of a healthy one, the reason of an unhealthy one, and nothing of others',
  async (harness) => {
    const transport = await harness.healthy();
    assert.equal(timeless(stateEvent(harness.ref, 'healthy')), {
      type: 'instance.healthy',
      ...WHO,
      era: 'legacy',
    });
    assert.equal(timeless(stateEvent(harness.ref, 'draining')), { type: 'instance.draining', ...WHO });
    transport.lose('exited with code 7');
    await settled();
    const reason = 'exited with code 7';
    const fact = { type: 'instance.unhealthy', ...WHO, reason, isPlanned: false };
    assert.equal(timeless(stateEvent(harness.ref, 'unhealthy')), fact);
  },
);

check('tells what it says under the names of the gateway', async ({ ref }) => {
  const probed = { passed: true, durationMs: 3 };
  const restarting = { reason: 'exited', delayMs: 500, isPlanned: false };
  assert.equal(
    [
      emissionEvent(ref, { type: 'probed', ...probed }),
      emissionEvent(ref, { type: 'restarting', ...restarting }),
      emissionEvent(ref, { type: 'listChanged', list: 'tools' }),
      emissionEvent(ref, { type: 'toolOmitted', tool: 'x', reason: 'it is bad' }),
    ].map((fact) => fact && timeless(fact)),
    [
      { type: 'probe.finished', ...WHO, ...probed },
      { type: 'instance.restarting', ...WHO, ...restarting, isProgram: false },
      { type: 'tools.changed', ...WHO },
      { type: 'tool.omitted', ...WHO, tool: 'x', reason: 'it is bad' },
    ],
  );
  assert.is(emissionEvent(ref, { type: 'listChanged', list: 'prompts' }), undefined);
});

test.run();

function timeless({ atMs, ...fact }: GatewayEvent): object {
  assert.type(atMs, 'number');
  return fact;
}
