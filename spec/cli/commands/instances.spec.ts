// Commands about an instance, and deleting a template.

import { writeFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { HeldTool, serving } from '../../helpers/backends/function-backend.ts';
import { until } from '../../helpers/eventually.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { complaint, gatewayFor, HANDLER, printed, serverFor } from './against-gateway.ts';

const test = suite('instance commands');
const gateway = gatewayFor(test, {}, async ({ server }) => {
  for (const id of ['one', 'two'])
    await server.gateway.register('demo', { id, handler: HANDLER }, { waitMs: 5_000 });
});
const serve = serverFor(test);
const folder = folderOfAll(test);
const STDIO_SERVER = new URL('../../fixtures/stdio-server.ts', import.meta.url).href;
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
  await until(() => now().restarts !== restarts);
  assert.is(now().restarts, restarts + 1);
});

test('drain and restart wait with --wait until the calls have ended and the instance is healthy', async () => {
  const held = new HeldTool();
  const handler = serving({ hold: held.body });
  await gateway.server.gateway.register('slow', { id: 'one', handler }, { waitMs: 5_000 });
  const calling = gateway.run('tool call slow hold');
  await until(() => held.waiting !== 0);
  assert.is(
    await complaint(gateway.run('instance drain slow one --wait 0')),
    'stagedoor: one of slow has calls in flight after 0 s: 1; it gets no new ones',
  );
  assert.is(
    await complaint(gateway.run('instance restart slow one --wait 0')),
    'stagedoor: one is not healthy after 0 s; it stays registered',
  );
  const draining = printed(gateway.run('instance drain slow one --wait 10'));
  held.answer();
  await calling;
  assert.is(await draining, 'one of slow is drained: its calls have ended');
  const restarted = await printed(gateway.run('instance restart slow one --wait 10'));
  assert.is(restarted, 'one of slow is restarted: draining');
  await gateway.run('instance resume slow one');
  assert.is(
    await printed(gateway.run('instance restart slow one --wait 10')),
    'one of slow is restarted: healthy',
  );
  const { state } = JSON.parse(await printed(gateway.run('instance restart slow one --wait 10 --json')));
  assert.is(state, 'healthy');
});

test('a drained instance that does not open again is not restarted', async () => {
  const gone = folder('gone');
  const program = `fs.existsSync(${JSON.stringify(gone)}) ? process.exit(3) : import(${JSON.stringify(STDIO_SERVER)})`;
  const instance = { id: 'one', command: process.execPath, args: ['-e', program] };
  await gateway.server.gateway.register('gone', instance, { waitMs: 10_000 });
  await gateway.run('instance drain gone one');
  writeFileSync(gone, '');
  assert.match(
    await complaint(gateway.run('instance restart gone one --wait 3')),
    /^stagedoor: one is not healthy after 3 s: exited with code 3/,
  );
});

test('a program that never started is restarted when it is healthy', async () => {
  const there = folder('there');
  const program = `fs.existsSync(${JSON.stringify(there)}) ? import(${JSON.stringify(STDIO_SERVER)}) : process.exit(3)`;
  const instance = { id: 'one', command: process.execPath, args: ['-e', program] };
  await gateway.server.gateway.register('late', instance);
  await until(() => gateway.server.gateway.instance('late', 'one').snapshot.restarts > 0);
  writeFileSync(there, '');
  assert.is(
    await printed(gateway.run('instance restart late one --wait 10')),
    'one of late is restarted: healthy',
  );
});

test('a drained instance whose account is not connected is restarted, and says that it waits for it', async () => {
  const record = { id: 'one', state: 'draining', command: null, endpoint: 'https://mail.example/mcp' };
  const before = { ...record, restarts: 0, reason: 'it is restarting' };
  const after = { ...record, restarts: 1, reason: 'it waits until its account is connected' };
  const url = await serve(({ method }, response) =>
    response.end(JSON.stringify(method === 'POST' ? before : after)),
  );
  assert.is(
    await printed(gateway.run('instance restart mail one --wait 3 --url', url)),
    'one of mail is restarted: draining, it waits until its account is connected',
  );
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

test('show shows the state of an instance, the reason, its counts and the last lines of its program', async () => {
  const record = {
    ...{ template_name: 'demo', id: 'one', state: 'unhealthy', reason: 'the program ended with code 1.' },
    ...{
      transport: 'stdio',
      command: 'node',
      args: ['server.js'],
      working_dir: '/srv',
      pid: null,
      node_id: 'a',
    },
    ...{ weight: 1, in_flight: 0, sessions: 2, own_processes: 1, restarts: 3, metadata: { zone: 'a' } },
    ...{
      last_check: '2027-01-31T12:00:00.000Z',
      next_attempt_at: '2027-01-31T12:05:10.000Z',
      ejection: null,
    },
    ...{ created_at: '2027-01-30T08:00:00.000Z', source: 'api', warnings: ['no such folder'] },
    stderr: Array.from({ length: 30 }, (_, line) => `line ${line}`),
  };
  const paths: (string | undefined)[] = [];
  const url = await serve((request, response) => {
    paths.push(request.url);
    response.end(JSON.stringify(record));
  });
  const out = await printed(gateway.run('instance show demo one --url', url));
  assert.equal(out.split('\n').slice(0, 21), [
    'instance             demo/one',
    'state                unhealthy',
    'reason               the program ended with code 1',
    'next attempt         2027-01-31 12:05Z',
    'last check           2027-01-31 12:00Z',
    'transport            stdio',
    'backend              node server.js',
    'folder               /srv',
    'node                 a',
    'weight               1',
    'in flight            0',
    'sessions             2',
    'dedicated processes  1',
    'restarts             3',
    'registered           2027-01-30 08:00Z, by api',
    'metadata.zone        a',
    'warning              no such folder',
    '',
    'last lines on standard error:',
    '  line 10',
    '  line 11',
  ]);
  assert.is(out.split('\n').at(-1), '  line 29');
  assert.equal(paths, ['/gateway/instances/demo/one']);
  const { id, state } = JSON.parse(await printed(gateway.run('instance show demo one --json')));
  assert.equal([id, state], ['one', 'healthy']);
});

test('suggest the nearest instance', async () => {
  for (const line of [
    'instance drain demo onee',
    'instance show demo onee',
    'instance set demo onee --weight 2',
  ])
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
  assert.is(await printed(gateway.run('template delete-settings demo')), 'the settings of demo are deleted');
  assert.not.ok(gateway.server.gateway.templates().includes('demo'));
  assert.not.match((await gateway.run('gateway status')).out, 'demo');
  await gateway.server.gateway.register('next', { id: 'one', handler: HANDLER });
  await gateway.run('instance deregister next one');
  const asJson = await gateway.run('template delete-settings next --json');
  assert.equal(JSON.parse(asJson.out), { template_name: 'next', deleted: true });
});

test.run();
