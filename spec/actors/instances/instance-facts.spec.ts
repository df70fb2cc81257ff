import * as assert from 'uvu/assert';
import { emissionFact, factOf, stateFact } from '../../../src/actors/instances/instance-facts.ts';
import type { GatewayEvent } from '../../../src/domain/events.ts';
import { suite } from '../../helpers/suite.ts';
import { onStage, settled } from './instance-stage.ts';

const test = suite('instance facts');
const check = onStage(test);
const WHO = { template: 't', instanceId: 'a', serverId: 'a' };

check('says whom it is about, and when', async (stage) => {
  const before = Date.now();
  const { atMs, ...who } = factOf(stage.ref);
  assert.equal(who, WHO);
  assert.ok(atMs >= before && atMs <= Date.now());
});

check(
  'tells the era of a healthy one, the reason of an unhealthy one, and nothing of others',
  async (stage) => {
    const transport = await stage.healthy();
    assert.equal(timeless(stateFact(stage.ref, 'healthy')), {
      type: 'instance.healthy',
      ...WHO,
      era: 'legacy',
    });
    assert.equal(timeless(stateFact(stage.ref, 'draining')), { type: 'instance.draining', ...WHO });
    transport.lose('exited with code 7');
    await settled();
    const reason = 'exited with code 7';
    const fact = { type: 'instance.unhealthy', ...WHO, reason, isPlanned: false };
    assert.equal(timeless(stateFact(stage.ref, 'unhealthy')), fact);
  },
);

check('tells of an unhealthy one that it is to be: it was told to restart', async (stage) => {
  await stage.healthy();
  stage.ref.restart();
  const fact = { type: 'instance.unhealthy', ...WHO, reason: 'it is restarted', isPlanned: true };
  assert.equal(timeless(stateFact(stage.ref, stage.ref.state)), fact);
});

check('tells what it says under the names of the gateway', async ({ ref }) => {
  const probed = { passed: true, durationMs: 3 };
  const restarting = { reason: 'exited', delayMs: 500, isPlanned: false };
  assert.equal(
    [
      emissionFact(ref, { type: 'probed', ...probed }),
      emissionFact(ref, { type: 'restarting', ...restarting }),
      emissionFact(ref, { type: 'listChanged', list: 'tools' }),
      emissionFact(ref, { type: 'toolOmitted', tool: 'x', reason: 'it is bad' }),
    ].map((fact) => fact && timeless(fact)),
    [
      { type: 'probe.finished', ...WHO, ...probed },
      { type: 'instance.restarting', ...WHO, ...restarting, isProgram: false },
      { type: 'tools.changed', ...WHO },
      { type: 'tool.omitted', ...WHO, tool: 'x', reason: 'it is bad' },
    ],
  );
  assert.is(emissionFact(ref, { type: 'listChanged', list: 'prompts' }), undefined);
});

test.run();

function timeless({ atMs, ...fact }: GatewayEvent): object {
  assert.type(atMs, 'number');
  return fact;
}
