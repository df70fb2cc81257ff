// The commands of views, against a gateway.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { folderOfAll } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { complaint, gatewayFor } from './against-gateway.ts';

const test = suite('view list, show, set, delete and preview');
const gateway = gatewayFor(test);
const folder = folderOfAll(test)();

const YAML = `id: support
title: Support desk
from:
  - template: none
    tools:
      - issues_*
names: bare`;

test('what is shown can be set again', async () => {
  assert.match((await gateway.run('view list')).out, 'There are no views');
  const file = join(folder, 'support.yaml');
  writeFileSync(file, YAML);
  const made = await gateway.run('view set', file);
  assert.equal(made.out.split('\n'), [
    'The view support is served at /mcp/support.',
    'problem: There is no template "none".',
  ]);
  const shown = await gateway.run('view show support');
  assert.is(shown.out, YAML);
  writeFileSync(file, shown.out);
  assert.is((await gateway.run('view set', file)).code, 0);
  const { views } = JSON.parse((await gateway.run('view list --json')).out);
  assert.equal([views.length, views[0].title, views[0].problems.length], [1, 'Support desk', 1]);
  assert.match((await gateway.run('view preview support')).out, /0 tools, about 1 tokens/);
  assert.is((await gateway.run('view delete support')).out, 'the view support is deleted');
  assert.match(await complaint(gateway.run('view show support')), 'There is no view "support"');
});

test('a file that is no view is refused', async () => {
  const file = join(folder, 'odd.yaml');
  writeFileSync(file, '- a');
  assert.match(await complaint(gateway.run('view set', file)), 'is not the definition of a view');
  writeFileSync(file, 'title: x');
  assert.match(await complaint(gateway.run('view set', file)), 'the view has no id');
});

test.run();
