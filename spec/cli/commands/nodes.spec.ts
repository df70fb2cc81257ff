// `node list`, `node drain` and `node resume`.

import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { cellsOf, complaint, gatewayFor, printed, runCommand, serverFor } from './against-gateway.ts';

const test = suite('the commands of nodes');
const gateway = gatewayFor(test, { withAccounts: true, more: { 'node-id': 'a' } });
const serve = serverFor(test);

const list = () => printed(gateway.run('node list'));

test('nodes lists the one node of a database that no other reaches', async () => {
  const [head, row, ...others] = cellsOf(await list());
  assert.equal(head, ['NODE', 'LIFE', 'STATE', 'ADDRESS', 'VERSION', 'UP', 'PROGRAMS', 'IN FLIGHT']);
  assert.equal([row?.[0], row?.[2], row?.[3], others], ['a', 'live', '-', []]);
  const { nodes } = JSON.parse(await printed(gateway.run('node list --json')));
  const names = ['id', 'life', 'address', 'version', 'since', 'programs', 'in_flight', 'draining', 'state'];
  assert.equal(Object.keys(nodes[0]), names);
});

test('nodes shows what the nodes should have in common, one line each', async () => {
  const warnings = ['the node "b" has version 2, this one 1', 'the setting sessions.max of the node "b"'];
  const url = await serve((_request, answer) => {
    answer.setHeader('Content-Type', 'application/json');
    answer.end(JSON.stringify({ nodes: [{ id: 'a' }, { id: 'b' }], warnings }));
  });
  const text = await printed(runCommand(['node', 'list', '--url', url]));
  assert.equal(
    text.split('\n').slice(3),
    warnings.map((line) => `warning: ${line}`),
  );
  const json = await printed(runCommand(['node', 'list', '--url', url, '--json']));
  assert.equal(JSON.parse(json).warnings, warnings);
});

test('drain and resume change a node, which the list shows', async () => {
  assert.is(await printed(gateway.run('node drain a')), 'the node a is draining');
  assert.match(await list(), 'live, draining');
  assert.is((await fetch(`${gateway.url}/readyz`)).status, 503);
  const node = JSON.parse(await printed(gateway.run('node resume a --json')));
  assert.equal([node.id, node.draining], ['a', false]);
  assert.not.match(await list(), 'draining');
});

test('drain waits with --wait until the calls of the node have ended', async () => {
  const text = await printed(gateway.run('node drain a --wait 5'));
  assert.is(text, 'the node a is drained: its calls have ended');
  await gateway.run('node resume a');
  let asked = 0;
  const url = await serve((request, answer) => {
    const node = { id: 'b', life: 'x', in_flight: 2 };
    const nodes = [
      { id: 'b', life: 'w', in_flight: 0 },
      { ...node, in_flight: asked },
    ];
    asked += request.url === '/gateway/nodes' ? 1 : 0;
    answer.end(JSON.stringify(request.method === 'POST' ? node : { nodes }));
  });
  const late = await complaint(runCommand(['node', 'drain', 'b', '--wait', '0', '--url', url]));
  assert.is(late, 'stagedoor: the node b has calls in flight after 0 s: 2; it stays drained');
  const last = await printed(runCommand(['node', 'drain', 'b', '--wait', '5', '--json', '--url', url]));
  assert.equal(JSON.parse(last), { id: 'b', life: 'x', in_flight: 0 });
  assert.is(asked, 1);
});

test('drain that waits says when the node has ended, or has started again', async () => {
  const node = { id: 'b', life: 'x', in_flight: 2 };
  const url = await serve((request, answer) => {
    const nodes = [{ id: 'b', life: 'y', in_flight: 1 }];
    answer.end(JSON.stringify(request.method === 'POST' ? node : { nodes }));
  });
  const text = await printed(runCommand(['node', 'drain', 'b', '--wait', '5', '--url', url]));
  assert.is(text, 'the node b has ended, and so have its calls');
});

test('drain names an unknown node, and needs gateway:write', async () => {
  assert.match(
    await complaint(gateway.run('node drain b')),
    /No node "b" is known; ".* node list" lists the nodes /,
  );
  const env = { STAGEDOOR_API_KEY: await gateway.newKey('gateway:read') };
  assert.match(await complaint(gateway.runAt({ env }, 'node drain a')), 'gateway:write');
});

test.run();
