import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, openSession, startGateway } from './against-gateway.ts';

const test = suite('gateway list');
let gateway: GatewayUnderTest;
test.before(async () => {
  gateway = await startGateway();
});
test.after(() => gateway.close());

test('says how to register when there is nothing', async () => {
  const { code, out } = await gateway.run('gateway', 'list');
  assert.equal(
    { code, out },
    { code: 0, out: 'No instance is registered; "npx stagedoor gateway register --help" shows how.' },
  );
});

test('shows every instance in a line', async () => {
  const { gateway: facade } = gateway.server;
  const down = firstValueFrom(facade.on('instance.unhealthy'));
  const endpoint = 'http://127.0.0.1:9/mcp';
  await facade.register('demo', { id: 'one', weight: 3, handler: () => ({ tools: [] }) }, { waitMs: 5_000 });
  await facade.register('far', { id: 'two', endpoint });
  await down;
  await openSession(gateway.url, 'demo');
  const { out } = await gateway.run('gateway', 'list');
  const cells = out.split('\n').map((line) => line.split(/ {2,}/));
  assert.equal(cells, [
    [
      ...['TEMPLATE', 'INSTANCE', 'TRANSPORT', 'STATE', 'WEIGHT'],
      ...['IN FLIGHT', 'SESSIONS', 'OWN PROCESSES', 'BACKEND', 'REASON'],
    ],
    ['demo', 'one', 'in-process', 'healthy', '3', '0', '1', '0'],
    ['far', 'two', 'http', 'unhealthy', '1', '0', '0', '0', endpoint, 'connection refused'],
  ]);
});

test('shows a command whole to programs, and what tells it apart to people', async () => {
  const program = '/opt/a folder/of-some-depth/bin/program';
  const script = '/home/somebody/projects/a-server-with-a-long-name/dist/index.js';
  await gateway.server.gateway.register('cut', { id: 'one', command: program, args: [script, 'stdio'] });
  const piped = await gateway.run('gateway', 'list');
  assert.match(piped.out, `  ${program} ${script} stdio`);
  const wide = await gateway.runAt({ columns: 300 }, 'gateway', 'list');
  assert.match(wide.out, `  program …${script.slice(-31)} stdio`);
});

test('fits a terminal, without columns that are zero everywhere unless they are wanted', async () => {
  const all = await gateway.runAt({ columns: 300 }, 'gateway', 'list', '--wide');
  assert.match(all.out, /^TEMPLATE +INSTANCE +TRANSPORT +STATE +WEIGHT +IN FLIGHT +SESSIONS +OWN PROCESSES /);
  const { out } = await gateway.runAt({ columns: 80 }, 'gateway', 'list');
  const [headings = '', ...lines] = out.split('\n');
  assert.match(headings, /^TEMPLATE +INSTANCE +TRANSPORT +STATE +WEIGHT +SESSIONS? +BACKEND +REASON$/);
  for (const line of lines) assert.ok(line.length <= 80, line);
});

test('prints the registry as JSON', async () => {
  const { out } = await gateway.run('gateway', 'list', '--json');
  const { templates } = JSON.parse(out);
  // Templates that come with the program are known without an instance.
  const used = Object.keys(templates).filter((name) => templates[name].instances.length > 0);
  assert.equal(used, ['cut', 'demo', 'far']);
});

test.run();
