// The commands of views, against a gateway.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { folderOfAll } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { complaint, gatewayFor, runCommand, serverFor } from './against-gateway.ts';

const test = suite('view list, show, set, delete, preview, tools and approve');
const gateway = gatewayFor(test);
const serve = serverFor(test);
const folder = folderOfAll(test)();

const YAML = `id: support
title: Support desk
from:
  - template: none
    tools:
      - issues_*
names: bare`;

test('what is shown can be set again', async () => {
  assert.match((await gateway.run('view list')).out, 'no view exists; "');
  const file = join(folder, 'support.yaml');
  writeFileSync(file, YAML);
  const made = await gateway.run('view set', file);
  assert.equal(made.out.split('\n'), [
    'the view support is served at /mcp/support',
    'problem: There is no template "none".',
  ]);
  const shown = await gateway.run('view show support');
  assert.is(shown.out, YAML);
  writeFileSync(file, shown.out);
  assert.is((await gateway.run('view set', file)).code, 0);
  const { views } = JSON.parse((await gateway.run('view list --json')).out);
  assert.equal([views.length, views[0].title, views[0].problems.length], [1, 'Support desk', 1]);
  assert.match((await gateway.run('view preview support')).out, /^no tools$/m);
  assert.is((await gateway.run('view delete support')).out, 'the view support is deleted');
  assert.match(await complaint(gateway.run('view show support')), 'There is no view "support"');
});

test('a view with many levels, which no gateway has, is refused in one line', async () => {
  const deep = `${'{"from":'.repeat(900)}1${'}'.repeat(900)}`;
  const url = await serve((_, response) => void response.end(deep));
  const complained = await complaint(runCommand(['view', 'show', 'support', '--url', url, '--trust']));
  assert.match(complained, /^stagedoor: .* is not a view: it has more than 128 levels$/m);
});

test('a mistyped name of a view is answered with the one that is near', async () => {
  await gateway.server.gateway.views.put({ id: 'support', from: [{ template: 'none' }] });
  for (const line of [
    'view show suport',
    'view delete suport',
    'view preview suport',
    'view tools suport',
    'view approve suport',
    'tool list suport',
    'connect suport',
  ])
    assert.match(await complaint(gateway.run(line)), /; did you mean "support"\?$/, line);
  await gateway.server.gateway.views.delete('support');
});

test('a file that is no view is refused', async () => {
  const file = join(folder, 'odd.yaml');
  writeFileSync(file, '- a');
  assert.match(await complaint(gateway.run('view set', file)), 'is not the definition of a view');
  writeFileSync(file, 'id: support\ntitle: [');
  assert.match(
    await complaint(gateway.run('view set', file)),
    /odd\.yaml is not YAML: .+ at line 2, column 9/,
  );
  writeFileSync(file, 'id: support\nid: sales');
  assert.match(await complaint(gateway.run('view set', file)), 'Map keys must be unique at line 2, column 1');
  writeFileSync(file, 'title: x');
  assert.match(await complaint(gateway.run('view set', file)), 'the view has no id');
  writeFileSync(file, 'id: Support Desk\nfrom: []\n');
  assert.match(await complaint(gateway.run('view set', file)), 'the id of a view has lower-case letters');
});

test('view tools shows what waits for approval in a pinned view, and view approve approves it', async () => {
  const tools = [{ name: 'find', inputSchema: { type: 'object' } as const }];
  await gateway.server.gateway.register('pinnable', { handler: () => ({ tools }) }, { waitMs: 5_000 });
  const file = join(folder, 'pinned.yaml');
  writeFileSync(file, 'id: pinned\nfrom:\n  - template: pinnable\napprove: pinned');
  assert.is((await gateway.run('view set', file)).code, 0);
  tools.push({ name: 'erase', inputSchema: { type: 'object' } });
  await gateway.server.gateway.list('pinnable', 'tools');
  const shown = await gateway.run('view tools pinned');
  assert.match(shown.out, /^erase +new +it is new and waits for approval$/m);
  assert.match(shown.out, /^find +approved$/m);
  assert.match((await gateway.run('view show pinned')).err, 'erase of pinnable is withheld: it is new');
  const { tools: listed } = JSON.parse((await gateway.run('view tools pinned --json')).out);
  assert.equal(listed[0].listed, tools[1]);
  assert.match(await complaint(gateway.run('view approve pinned fnd')), /no tool named "fnd"/);
  assert.is((await gateway.run('view approve pinned erase')).out, 'approved: erase');
  assert.is((await gateway.run('view approve pinned')).out, 'no tool waited for approval');
});

test('tools, call and connect take a view like a template', async () => {
  const { gateway: inner } = gateway.server;
  const handler = ({ method }: { readonly method: string }) =>
    method === 'tools/list'
      ? { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }
      : { content: [{ type: 'text', text: 'hello' }] };
  await inner.register('tools', { id: 'one', handler: handler as never }, { waitMs: 5_000 });
  await inner.views.put({ id: 'desk', from: [{ template: 'tools', rename: { echo: 'say' } }] });
  assert.match((await gateway.run('tool list desk')).out, 'say');
  assert.match((await gateway.run('tool call desk say')).out, 'hello');
  const { code, out, err } = await gateway.run('connect desk --llm curl');
  assert.is(code, 0, err);
  assert.match(out, '/mcp/desk');
  await inner.views.put({ id: 'asks', from: [{ template: 'tools' }], confirm: ['echo'] });
  assert.match((await gateway.run('view show asks')).out, 'confirm:\n  - echo');
  assert.match((await gateway.run('view preview asks')).out, /the user confirms: echo$/);
  assert.match(await complaint(gateway.run('tool call asks echo')), 'CONFIRMATION_REQUIRED');
});

test.run();
