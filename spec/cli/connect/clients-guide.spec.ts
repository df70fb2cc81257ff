// The guide for MCP clients is the table of `connect`, as it is. `node spec/cli/connect/clients-guide.spec.ts --write` renews it.

import { readFileSync, writeFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { clientsGuide } from './clients-guide.ts';

const test = suite('the guide for clients');
const guide = new URL('../../../docs/guides/clients.md', import.meta.url);

test('is docs/guides/clients.md', () => {
  if (process.argv.includes('--write')) writeFileSync(guide, clientsGuide());
  const text = readFileSync(guide, 'utf8').replaceAll('\r\n', '\n');
  assert.ok(
    text === clientsGuide(),
    'docs/guides/clients.md is stale: run node spec/cli/connect/clients-guide.spec.ts --write',
  );
});

test.run();
