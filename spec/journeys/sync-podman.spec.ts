// Sync with a real engine: containers become instances, are called, killed and removed. Where no engine can run, the tests
// are skipped with the reason.

import * as assert from 'uvu/assert';
import { freePort } from '../../src/cli/free-port.ts';
import { Podman, startPodman } from '../helpers/podman.ts';
import { Program } from '../helpers/program.ts';
import { suite } from '../helpers/suite.ts';
import { callTool, eventually, get, textOf } from './gateway-client.ts';

const { engine, skip } = await startPodman();
const test = suite('sync with podman', { timeoutMs: 60_000 });
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

async function instancesOf(url: string, template: string): Promise<Record<string, { healthy: boolean }>> {
  const { status, body } = await get(url, `/mcp/${template}/health`);
  return status === 404 ? {} : Object(body.instances);
}

const healthy = (instances: Record<string, { healthy: boolean }>) =>
  Object.entries(instances)
    .filter(([, one]) => one.healthy)
    .map(([id]) => id)
    .sort();

withEngine('an HTTP container is registered once, called, and removed when it is gone', async () => {
  const podman = engine as Podman;
  const gateway = open(podman);
  try {
    const url = await gateway.url();
    const id = await startHttp(podman, 'one');
    const instance = `web-${id.slice(0, 8)}`;
    const dry = await gateway.run('gateway', 'sync', '--dry-run', '--json');
    assert.is(dry.code, 0, dry.err);
    assert.equal(JSON.parse(dry.out).added[0].instance_id, instance);
    assert.equal(await instancesOf(url, 'web'), {});

    const first = await gateway.run('gateway', 'sync');
    assert.is(first.code, 0, first.err);
    assert.match(first.out, new RegExp(`added\\s+web\\s+${instance}`));
    const found = await eventually(
      () => instancesOf(url, 'web'),
      (all) => healthy(all).length === 1,
    );
    assert.equal(healthy(found), [instance]);
    assert.match(textOf(await callTool(url, 'web', 'echo', { text: 'hi' })), 'hi');
    const again = await gateway.run('gateway', 'sync');
    assert.is(again.out.trim(), '0 added, 0 changed, 0 removed, 0 skipped, 1 unchanged');

    await podman.podman('rm', '-f', '-t', '0', id);
    const last = await gateway.run('gateway', 'sync', '--json');
    assert.equal(JSON.parse(last.out).removed, [{ template_name: 'web', instance_id: instance }]);
    assert.equal(await instancesOf(url, 'web'), {});
  } finally {
    await gateway.remove();
  }
});

test.run();
