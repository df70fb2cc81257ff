// Sync with a real engine: containers become instances, are called, killed and removed. Where no engine can run, the tests
// are skipped with the reason.

import * as assert from 'uvu/assert';
import { type Caller, caller, callTool, field, toolText } from '../../helpers/clients/caller.ts';
import { Podman, startPodman } from '../../helpers/containers/podman.ts';
import { becomes } from '../../helpers/eventually.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { Program } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';

const { engine, skip } = await startPodman();
const test = suite('sync with podman', { timeoutMs: 120_000 });
const withEngine = test.needs(engine, skip);
test.after(() => engine?.close());

/** A gateway that sees the engine, and no other. */
function open(podman: Podman, ...words: string[]): Program {
  const { address } = podman;
  const env = { DOCKER_HOST: address, CONTAINER_HOST: address };
  return new Program(['gateway', 'start', '--port', '0', ...words], { env });
}

/** An HTTP server in a container of the host's network, and the id of the container. */
async function startHttp(podman: Podman, name: string): Promise<string> {
  const port = await freePort();
  const words = Podman.node('spec/fixtures/http-server.ts', `--port=${port}`, `--name=${name}`);
  return podman.start({ 'stagedoor.template': 'web', 'stagedoor.port': String(port) }, words);
}

async function instancesOf(who: Caller, template: string): Promise<Record<string, { healthy: boolean }>> {
  const answer = await who(`GET /mcp/${template}/health`);
  return answer.status === 404 ? {} : Object(field(answer, 'instances'));
}

async function healthyOf(who: Caller, template: string): Promise<string[]> {
  const instances = Object.entries(await instancesOf(who, template));
  return instances.flatMap(([id, { healthy }]) => (healthy ? [id] : [])).sort();
}

const idOf = (container: string): string => `web-${container.slice(0, 8)}`;

withEngine('an HTTP container is registered once, called, and removed when it is gone', async () => {
  const podman = engine as Podman;
  const gateway = open(podman);
  try {
    const who = caller(await gateway.url());
    const id = await startHttp(podman, 'one');
    const instance = idOf(id);
    const dry = await gateway.run('gateway', 'sync', '--dry-run', '--json');
    assert.is(dry.code, 0, dry.err);
    assert.equal(JSON.parse(dry.out).added[0].instance_id, instance);
    assert.equal(await instancesOf(who, 'web'), {});

    const first = await gateway.run('gateway', 'sync');
    assert.is(first.code, 0, first.err);
    assert.match(first.out, new RegExp(`added\\s+web\\s+${instance}`));
    await becomes(() => healthyOf(who, 'web'), [instance]);
    assert.match(toolText(await callTool(who, 'web', 'echo', { text: 'hi' })), 'hi');
    const again = await gateway.run('gateway', 'sync');
    assert.is(again.out.trim(), '0 added, 0 changed, 0 removed, 0 skipped, 1 unchanged');

    await podman.podman('rm', '-f', '-t', '0', id);
    const last = await gateway.run('gateway', 'sync', '--json');
    assert.equal(JSON.parse(last.out).removed, [{ template_name: 'web', instance_id: instance }]);
    assert.equal(await instancesOf(who, 'web'), {});
  } finally {
    await gateway.remove();
    await podman.podman('rm', '-f', '-a', '-t', '0');
  }
});

const STDIO = Podman.node('spec/fixtures/stdio-server.ts').join(' ');

/** A container with a program that speaks MCP on its standard input and output, and the id of the container. */
function startStdio(podman: Podman, ...flags: string[]): Promise<string> {
  return podman.start({ 'stagedoor.template': 'lines', 'stagedoor.command': [STDIO, ...flags].join(' ') });
}

withEngine('a killed container leaves the pool at once, and no call fails', async () => {
  const podman = engine as Podman;
  const ids = [await startHttp(podman, 'one'), await startHttp(podman, 'two'), await startStdio(podman)];
  const [one = '', two = ''] = ids;
  const gateway = open(podman, '--sync');
  try {
    const who = caller(await gateway.url());
    await becomes(() => healthyOf(who, 'web'), [one, two].map(idOf).sort());
    await becomes(async () => (await healthyOf(who, 'lines')).length, 1);
    assert.is(toolText(await callTool(who, 'lines', 'echo', { text: 'hi' })), 'hi');

    const killed = podman.podman('kill', one);
    let isDead = false;
    void killed.then(() => {
      isDead = true;
    });
    for (let after = 0; after < 20; after += isDead ? 1 : 0) {
      const { status, body } = await callTool(who, 'web', 'echo', { text: 'on' });
      assert.is(status, 200, JSON.stringify(body));
    }
    await killed;
    await becomes(async () => Object.keys(await instancesOf(who, 'web')), [idOf(two)], 5_000);

    // A started container is added, and a removed one is gone, without a command.
    await podman.podman('start', one);
    await becomes(() => healthyOf(who, 'web'), [one, two].map(idOf).sort());
    await podman.podman('rm', '-f', '-t', '0', one);
    await becomes(async () => Object.keys(await instancesOf(who, 'web')), [idOf(two)], 5_000);
  } finally {
    await gateway.remove();
    await podman.podman('rm', '-f', '-a', '-t', '0');
  }
});

withEngine('a program in a container ends with its gateway, even when the gateway is killed', async () => {
  const podman = engine as Podman;
  const ids = [await startStdio(podman), await startStdio(podman, '--ignore-stdin-end')];
  const running = async () => {
    const tables = await Promise.all(ids.map((id) => podman.podman('top', id, 'pid', 'args')));
    return tables.flatMap((table) => table.split('\n').filter((line) => line.includes('stdio-server')));
  };
  try {
    for (const end of ['SIGTERM', 'SIGKILL'] as const) {
      const gateway = open(podman, '--sync');
      try {
        const who = caller(await gateway.url());
        await becomes(async () => (await healthyOf(who, 'lines')).length, 2);
        assert.is((await running()).length, 2);
        gateway.signal(end);
        await gateway.end();
        await becomes(running, [], 20_000);
      } finally {
        await gateway.remove();
      }
    }
  } finally {
    await podman.podman('rm', '-f', '-a', '-t', '0');
  }
});

test.run();
