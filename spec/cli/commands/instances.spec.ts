// Commands about an instance, and deleting a template.

import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { complaint, gatewayFor, HANDLER, printed } from './against-gateway.ts';

const test = suite('instance commands');
const gateway = gatewayFor(test, {}, async ({ server }) => {
  for (const id of ['one', 'two'])
    await server.gateway.register('demo', { id, handler: HANDLER }, { waitMs: 5_000 });
});
const now = () => gateway.server.gateway.instance('demo', 'one').snapshot;

test('drain takes an instance out of balancing, and resume brings it back', async () => {
  const drained = await printed(gateway.run('instance drain demo one'));
  assert.is(drained, 'one of demo gets no new calls until it is resumed');
  const { id, template_name, state } = JSON.parse((await gateway.run('instance drain demo one --json')).out);
  assert.equal([id, template_name, state, now().state], ['one', 'demo', 'draining', 'draining']);
  const resumed = await printed(gateway.run('instance resume demo one'));
  assert.equal([resumed, now().state], ['one of demo gets calls again: healthy', 'healthy']);
});

test('restart restarts an instance', async () => {
  const { restarts } = now();
  const found = await printed(gateway.run('instance restart demo one'));
  assert.match(found, /^one of demo restarts when its calls/);
  while (now().restarts === restarts) await new Promise(setImmediate);
  assert.is(now().restarts, restarts + 1);
});

test('instance set changes weight, metadata and era, and nothing without options', async () => {
  assert.is(
    await printed(gateway.run('instance set demo one --weight 7 --metadata zone=a')),
    'weight         7\nera            auto\nmetadata.zone  a',
  );
  assert.match(await printed(gateway.run('instance set demo one --era legacy')), /\nera +legacy\n/);
  assert.match(await printed(gateway.run('instance set demo one --era auto')), /\nera +auto\n/);
  const { weight, metadata } = gateway.server.gateway.instance('demo', 'one').definition;
  assert.equal([weight, { ...metadata }], [7, { zone: 'a' }]);
  assert.match(
    await complaint(gateway.run('instance set demo one'), 2),
    /nothing to change: give --weight, --metadata or --era$/,
  );
});

test('suggest the nearest instance', async () => {
  for (const line of ['instance drain demo onee', 'instance set demo onee --weight 2'])
    assert.match(await complaint(gateway.run(line)), /did you mean "one"\?$/);
});

test('each fails for an unknown instance, and for a missing argument', async () => {
  for (const verb of ['drain', 'resume', 'deregister']) {
    const unknown = await complaint(gateway.run(`instance ${verb} demo a/b?c`));
    assert.match(unknown, /^stagedoor: [^\n]+_NOT_FOUND\)$/);
    const line = `stagedoor: missing required argument <id>; see npx stagedoor instance ${verb} --help`;
    assert.is(await complaint(gateway.run(`instance ${verb} demo`), 2), line);
  }
});

test('deregister removes an instance, and delete-settings works only once all are removed', async () => {
  assert.is(await printed(gateway.run('instance deregister demo one')), 'one is deregistered from demo');
  const ids = gateway.server.gateway.template('demo').instances.map(({ id }) => id);
  assert.equal(ids, ['two']);
  const early = await complaint(gateway.run('template delete-settings demo'));
  assert.match(early, /^stagedoor: .*1 instance must be deregistered first/);
  const second = JSON.parse((await gateway.run('instance deregister demo two --json')).out);
  assert.equal(second, { template_name: 'demo', instance_id: 'two', deregistered: true });
  assert.is(await printed(gateway.run('template delete-settings demo')), 'demo is deleted');
  assert.not.ok(gateway.server.gateway.templates().includes('demo'));
  assert.not.match((await gateway.run('gateway status')).out, 'demo');
  await gateway.server.gateway.register('next', { id: 'one', handler: HANDLER });
  await gateway.run('instance deregister next one');
  const asJson = await gateway.run('template delete-settings next --json');
  assert.equal(JSON.parse(asJson.out), { template_name: 'next', deleted: true });
});

test.run();
