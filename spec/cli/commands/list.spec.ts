// Lists of instances, tools and sessions.

import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { fixtureHandler } from '../../helpers/backends/function-backend.ts';
import { suite } from '../../helpers/suite.ts';
import {
  cellsOf,
  complaint,
  gatewayFor,
  HANDLER,
  openSession,
  printed,
  serverFor,
} from './against-gateway.ts';

const test = suite('instance list, tools and sessions');
const gateway = gatewayFor(test);
const serve = serverFor(test);

test('list names the register command when there is no instance', async () => {
  const line = 'no instance is registered; "npx stagedoor instance register --help" shows how';
  assert.is(await printed(gateway.run('instance list')), line);
});

test('list shows every instance in a line, and the registry as JSON', async () => {
  const { gateway: facade } = gateway.server;
  const down = firstValueFrom(facade.on('instance.unhealthy'));
  const endpoint = 'http://127.0.0.1:9/mcp';
  await facade.register('demo', { id: 'one', weight: 3, handler: HANDLER }, { waitMs: 5_000 });
  await facade.register('far', { id: 'two', endpoint });
  await down;
  await openSession(gateway.url, 'demo');
  assert.equal(cellsOf((await gateway.run('instance list')).out), [
    [
      ...['TEMPLATE', 'INSTANCE', 'TRANSPORT', 'STATE', 'WEIGHT'],
      ...['IN FLIGHT', 'SESSIONS', 'DEDICATED PROCESSES', 'BACKEND', 'REASON'],
    ],
    ['demo', 'one', 'in-process', 'healthy', '3', '0', '1', '0'],
    ['far', 'two', 'http', 'unhealthy', '1', '0', '0', '0', endpoint, 'connection refused'],
  ]);
  const { templates } = JSON.parse((await gateway.run('instance list --json')).out);
  // Templates that come with the program are known without an instance.
  const used = Object.keys(templates).filter((name) => templates[name].instances.length > 0);
  assert.equal(used, ['demo', 'far']);
});

test('list shows the instances of one template with --template, and suggests one for an unknown name', async () => {
  const rows = cellsOf(await printed(gateway.run('instance list --template far')));
  assert.equal(
    rows.slice(1).map(([template, id]) => [template, id]),
    [['far', 'two']],
  );
  const { templates } = JSON.parse((await gateway.run('instance list --template far --json')).out);
  assert.equal(Object.keys(templates), ['far']);
  const unknown = await complaint(gateway.run('instance list --template fra'));
  assert.is(unknown, 'stagedoor: template "fra" not found; did you mean "far"?');
});

test('list names the node that runs each program, where there are several', async () => {
  const instances = [
    { id: 'one', transport: 'stdio', node_id: 'any', running_on: 'b', state: 'healthy' },
    { id: 'two', transport: 'stdio', node_id: 'any', running_on: null, state: 'starting' },
    { id: 'three', transport: 'stdio', node_id: 'a', state: 'healthy' },
    { id: 'four', transport: 'http', node_id: null, state: 'healthy' },
  ];
  let nodes: unknown[] = [
    { id: 'a', state: 'live' },
    { id: 'b', state: 'live' },
  ];
  const url = await serve((request, response) =>
    response.end(
      JSON.stringify(request.url === '/gateway/nodes' ? { nodes } : { templates: { demo: { instances } } }),
    ),
  );
  const out = await printed(gateway.run('instance list --url', url));
  assert.match(out, /^TEMPLATE +INSTANCE +TRANSPORT +NODE +STATE /m);
  assert.match(out, /^ +one +stdio +b +healthy/m);
  assert.match(out, /^ +two +stdio +starting/m);
  assert.match(out, /^ +three +stdio +a +healthy/m);
  assert.match(out, /^ +four +http +healthy/m);
  nodes = [
    { id: 'a', state: 'live' },
    { id: 'b', state: 'ended' },
  ];
  assert.not.match(await printed(gateway.run('instance list --url', url)), 'NODE');
});

test('tools shows each tool with its arguments and its description', async () => {
  const { gateway: facade } = gateway.server;
  await facade.register('tools', { handler: fixtureHandler('one') }, { waitMs: 5_000 });
  const out = await printed(gateway.run('tool list tools'));
  assert.match(out, /^TOOL +ARGUMENTS +DESCRIPTION$/m);
  assert.match(out, /^add +a:number b:number +Adds two numbers\.$/m);
  assert.match(out, /^progress +steps:number \[ms:number\] +Reports /m);
  const { tools, count } = JSON.parse((await gateway.run('tool list tools --json')).out);
  assert.equal([tools.length, tools[0].inputSchema.required], [count, ['text']]);
});

test('tools reports a template without tools, and each command a name like that of an unknown template', async () => {
  assert.is(await printed(gateway.run('tool list demo')), 'demo has no tools');
  assert.match(await complaint(gateway.run('tool list nothing')), /^[^\n]+\(TEMPLATE_NOT_FOUND\)$/);
  const slip = /^stagedoor: [^\n]+\(TEMPLATE_NOT_FOUND\); did you mean "demo"\?$/;
  const ofInstances = ['drain', 'resume', 'restart', 'deregister'].map((word) => `instance ${word} dmeo one`);
  const lines = ['tool list', 'template delete-settings', 'template show'].map((words) => `${words} dmeo`);
  for (const line of [...lines, ...ofInstances]) assert.match(await complaint(gateway.run(line)), slip, line);
});

test('session list shows owner, client and binding of a session; session end ends it', async () => {
  const [headings, row = []] = cellsOf((await gateway.run('session list')).out);
  assert.equal(headings, ['SESSION', 'OF', 'CLIENT', 'BOUND TO', 'OPEN FOR', 'UNUSED FOR']);
  const [id = ''] = row;
  assert.match(id, /^[0-9a-f]{12}$/);
  assert.equal(row.slice(1, 4), ['anonymous', 'spec 1', 'demo/one']);
  const { sessions } = JSON.parse((await gateway.run('session list --json')).out);
  assert.equal([sessions.length, sessions[0].id], [1, id]);
  const { sessions: ofDemo } = JSON.parse((await gateway.run('session list --template demo --json')).out);
  assert.equal(
    ofDemo.map((session: { id: string }) => session.id),
    [id],
  );
  assert.is(await printed(gateway.run('session list --template far')), 'no sessions are open');
  const end = () => gateway.run(`session end ${id}`);
  assert.is(await printed(end()), `the session ${id} is ended`);
  const advice = /not found; "npx stagedoor session list" lists the sessions \(SESSION_NOT_FOUND\)$/;
  assert.match(await complaint(end()), advice);
  assert.is(await printed(gateway.run('session list')), 'no sessions are open');
});

test.run();
