// Several real gateways on one real PostgreSQL: a change on one applies on the others within ten seconds, a program belongs to
// its gateway, and a killed gateway takes down only its own programs. Revoked keys:
// mcp-revoked-elsewhere.spec.ts.

import { hostname } from 'node:os';
import * as assert from 'uvu/assert';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { field, type Listed, listed, toolText } from '../../helpers/clients/caller.ts';
import { becomes, eventually, untilStatus } from '../../helpers/eventually.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { isRunning } from '../../helpers/programs/processes.ts';
import { Program } from '../../helpers/programs/program.ts';
import { journey } from './journey.ts';
import { heardWithinMs, type McpNode, nodeEnv, startNode } from './mcp-nodes.ts';

const { test, onPostgresql, database } = await journey('journey: two gateways', {
  timeoutMs: 90_000,
  isForEach: true,
});

const programs: { remove(): Promise<void> }[] = [];
const backends: { close(): Promise<void> }[] = [];
test.after.each(async () => {
  for (const program of programs.splice(0)) await program.remove();
  for (const backend of backends.splice(0)) await backend.close();
});

onPostgresql('registrations on one apply on the other, and a program runs only on its own node', async () => {
  const [a, b] = await twoGateways();
  const endpoint = await backend('shared');
  const shared = { template_name: 'far', instance: { id: 'one', endpoint } };
  assert.is((await a.admin('POST /gateway/register?wait=10', shared)).status, 201);
  const child = await registerProgram(a);

  const callFar = () => b.admin('POST /mcp/far/tools/call', { name: 'name' });
  assert.is(toolText(await untilStatus(200, callFar, heardWithinMs)), 'shared');
  const foreign = await soonListed(b, 'near/program', (instance) => instance?.healthy === true);
  const owner = `${hostname()}:${a.port}`;
  assert.equal([foreign?.state, foreign?.node_id], ['healthy', owner]);
  assert.equal(b.program.descendants(), []);
  const called = await b.admin('POST /tools/call', { server_id: 'program', tool_name: 'pid' });
  assert.is(Number(toolText(called)), child);

  // Deregistered on one node, stopped on the other.
  assert.is((await b.admin('DELETE /gateway/deregister/near/program')).status, 204);
  await becomes(() => isRunning(child), false, heardWithinMs);
  assert.equal(a.program.descendants(), []);
  for (const { admin } of [a, b]) assert.equal(Object.keys(await listed(admin)), ['far/one']);
});

onPostgresql(
  'the other continues when one is killed, and the restarted one starts its programs again',
  async () => {
    const [a, b] = await twoGateways();
    const shared = { template_name: 'far', instance: { id: 'one', endpoint: await backend('shared') } };
    assert.is((await a.admin('POST /gateway/register?wait=10', shared)).status, 201);
    const child = await registerProgram(a);
    await untilStatus(200, () => b.admin('POST /mcp/far/tools/call', { name: 'name' }), heardWithinMs);

    a.program.signal('SIGKILL');
    assert.equal(await a.program.end(), { code: null, signal: 'SIGKILL' });
    for (let calls = 20; calls > 0; calls -= 1)
      assert.is(toolText(await b.admin('POST /mcp/far/tools/call', { name: 'name' })), 'shared');
    assert.is((await b.admin('GET /health')).status, 200);
    // The input of the program ended with its gateway.
    await becomes(() => isRunning(child), false, heardWithinMs);

    const again = await node(a.port);
    const back = await soonListed(again, 'near/program', (instance) => instance?.healthy === true);
    assert.equal([back?.state, back?.node_id], ['healthy', `${hostname()}:${a.port}`]);
    const pid = Number(
      toolText(await again.admin('POST /tools/call', { server_id: 'program', tool_name: 'pid' })),
    );
    assert.equal([again.program.descendants(), pid === child], [[pid], false]);
    const elsewhere = await soonListed(b, 'near/program', (instance) => instance?.healthy === true);
    assert.is(elsewhere?.state, 'healthy');
  },
);

onPostgresql('a second gateway with the same node id is refused until the first has stopped', async () => {
  const env = { GATEWAY_NODE_ID: 'twin' };
  const first = start(await freePort(), env);
  await first.url();
  const second = start(await freePort(), env);
  assert.equal(await second.end(), { code: 2, signal: null });
  assert.match(
    second.err,
    /^stagedoor: process \d+ on \S+ already runs as the node "twin" on the database \S+: stop it, .* --node-id/m,
  );
  assert.match(second.err, `process ${first.process.pid} on ${hostname()} already runs`);
  first.signal('SIGTERM');
  assert.equal(await first.end(), { code: 0, signal: null });
  const third = start(await freePort(), env);
  await third.url();
  assert.not.match(third.err, 'heartbeat');
});

test.run();

function start(port: number, env?: Readonly<Record<string, string>>): Program {
  const words = ['gateway', 'start', '--port', String(port), '--host', '127.0.0.1'];
  const program = new Program(words, { env: { ...nodeEnv(database), ...env } });
  programs.push(program);
  return program;
}

async function node(port?: number): Promise<McpNode> {
  const started = await startNode(database, port === undefined ? {} : { port });
  programs.push(started);
  return started;
}

/** They start concurrently: the first creates the tables and the admin. */
function twoGateways(): Promise<[McpNode, McpNode]> {
  return Promise.all([node(), node()]);
}

/** Registers the stdio fixture as `near/program` and returns its process id. */
async function registerProgram({ admin, program, id: node }: McpNode): Promise<number> {
  const instance = { id: 'program', node, command: process.execPath, args: [stdioServerPath] };
  const made = await admin('POST /gateway/register?wait=20', { template_name: 'near', instance });
  assert.equal([made.status, field(made, 'healthy')], [201, true]);
  const pid = Number(toolText(await admin('POST /tools/call', { server_id: 'program', tool_name: 'pid' })));
  assert.equal(program.descendants(), [pid]);
  return pid;
}

async function backend(name: string): Promise<string> {
  const started = await startHttpServer({ name });
  backends.push(started);
  return started.url;
}

function soonListed(
  { admin }: McpNode,
  name: string,
  isWanted: (instance: Listed | undefined) => boolean,
): Promise<Listed | undefined> {
  return eventually(async () => (await listed(admin))[name], isWanted, heardWithinMs);
}
