// A registry file: its instances run after a start, serve calls, and the file itself is never written.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { callTool, eventually, get, textOf } from '../../helpers/gateway-client.ts';
import { Program } from '../../helpers/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: registry file', { timeoutMs: 30_000 });
let folder = '';
let gateway: Program | undefined;
test.before.each(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stagedoor-registry-'));
});
test.after.each(async () => {
  await gateway?.remove();
  await rm(folder, { recursive: true, force: true });
});

const fixture = (name: string) => ({ command: process.execPath, args: [stdioServerPath, `--name=${name}`] });

test('runs what a JSON registry lists, with weights and settings', async () => {
  const backend = await startHttpServer({ name: 'far' });
  const document = JSON.stringify({
    templates: {
      demo: {
        instances: [
          { id: 'near', ...fixture('near') },
          { id: 'far', endpoint: backend.url, weight: 3 },
        ],
        load_balancer: { strategy: 'weighted', health_check_interval: 15, max_retries: 2, timeout: 30 },
      },
    },
  });
  const url = await begin('registry.json', document);
  await healthy(url, 'demo', 2);
  const names: string[] = [];
  for (let call = 0; call < 8; call += 1) names.push(textOf(await callTool(url, 'demo', 'name')));
  assert.equal(names.sort(), ['far', 'far', 'far', 'far', 'far', 'far', 'near', 'near']);

  const { body } = await get(url, '/gateway/registry');
  const { load_balancer, instances } = Object(body.templates).demo;
  assert.is(load_balancer.strategy, 'weighted_round_robin');
  assert.equal(
    instances.map(({ source }: { source: string }) => source),
    ['file', 'file'],
  );

  await gateway?.run('gateway', 'deregister', 'demo', 'near');
  assert.is(await readFile(join(folder, 'registry.json'), 'utf8'), document);
  await backend.close();
});

test('reads YAML, uses what it can and warns about the rest', async () => {
  const { command, args } = fixture('one');
  const document = [
    'servers:',
    '  one:',
    '    template_name: demo',
    `    command: ${JSON.stringify(command)}`,
    `    args: ${JSON.stringify(args)}`,
    '  two:',
    '    template_name: demo',
    '',
  ].join('\n');
  const url = await begin('registry.yaml', document);
  await healthy(url, 'demo', 1);
  assert.is(textOf(await callTool(url, 'demo', 'name')), 'one');
  await gateway?.complains(/"level":40,.*"msg":"registry file: servers\.two: /);
});

test('finds the file by its environment variable', async () => {
  await writeFile(
    join(folder, 'a.json'),
    JSON.stringify({ templates: { demo: { instances: [fixture('one')] } } }),
  );
  gateway = new Program(['gateway', 'start', '--port', '0'], {
    env: { MCP_GATEWAY_REGISTRY_FILE: 'a.json' },
    folder,
  });
  await healthy(await gateway.url(), 'demo', 1);
});

test.run();

async function begin(name: string, document: string): Promise<string> {
  await writeFile(join(folder, name), document);
  gateway = new Program(['gateway', 'start', '--port', '0', '--registry', name], { folder });
  return gateway.url();
}

async function healthy(url: string, template: string, wanted: number): Promise<void> {
  const { body } = await eventually(
    () => get(url, `/mcp/${template}/health`),
    (reply) => reply.body.healthy_instances === wanted,
  );
  assert.is(body.healthy_instances, wanted, JSON.stringify(body));
}
