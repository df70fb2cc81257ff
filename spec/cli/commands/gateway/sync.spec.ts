// `gateway sync` with a registry file: what it prints and its exit code. Containers and pods: spec/gateway, spec/system.

import { writeFile } from 'node:fs/promises';
import * as assert from 'uvu/assert';
import { folderOfEach } from '../../../helpers/folder.ts';
import { suite } from '../../../helpers/suite.ts';
import { type GatewayUnderTest, startGateway } from '../against-gateway.ts';

const test = suite('gateway sync');
const folder = folderOfEach(test);
let file = '';
let gateway: GatewayUnderTest;
test.before.each(async () => {
  file = folder('registry.yaml');
  await writeFile(file, 'servers: { web: { url: "http://127.0.0.1:1" } }');
  gateway = await startGateway({ more: { 'registry-file': file } });
});
test.after.each(() => gateway.close());

test('applies changes of the registry file, after a dry run that changes nothing', async () => {
  await writeFile(file, 'servers: { other: { url: "http://127.0.0.1:2", colour: red } }');
  const ids = () => gateway.server.gateway.servers().map(({ definition }) => definition.id);
  const dry = await gateway.run('gateway sync --dry-run');
  assert.match(dry.out, /added +other +other\nremoved +web +web/);
  assert.match(
    dry.out,
    '1 added, 0 changed, 1 removed, 0 skipped, 0 unchanged; nothing was changed (--dry-run)',
  );
  assert.match(dry.err, 'warning: registry file: servers.other.colour: unknown field');
  assert.is((await gateway.run('gateway sync --dry-run --quiet')).err, '');
  assert.equal(ids(), ['web']);

  const { code, out } = await gateway.run('gateway sync --json');
  const { added, removed, settings, reached } = JSON.parse(out);
  const of = (name: string) => [{ template_name: name, instance_id: name }];
  assert.equal([code, added, removed, settings], [0, of('other'), of('web'), []]);
  assert.ok(reached.includes(file));
  assert.equal(ids(), ['other']);
});

test('shows changed settings of a template, and warns of an invalid file', async () => {
  await writeFile(file, 'templates: { web: { load_balancer: { max_retries: 1 }, instances: [] } }');
  assert.match((await gateway.run('gateway sync')).out, /changed +web +settings of the template/);
  await writeFile(file, 'servers: [');
  const { err } = await gateway.run('gateway sync');
  assert.match(err, `warning: registry file ${file}: not YAML: `);
  assert.match(err, 'its instances are left unchanged');
  const failed = await gateway.run('gateway sync --quiet');
  assert.equal([failed.code, failed.err], [1, err], 'the warnings are the reason of the failure');
});

test.run();
