// The checks that conformance runs leave behind in files.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { type Check, eachOnce, readChecks, scenarioOf } from './conformance-suite/checks.ts';
import { suite } from './helpers/suite.ts';

const files = suite('conformance files');

files('are read from the folder of each scenario', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'stagedoor-checks-'));
  const write = (name: string, content?: unknown): void => {
    mkdirSync(join(folder, name));
    if (content !== undefined) writeFileSync(join(folder, name, 'checks.json'), JSON.stringify(content));
  };
  try {
    assert.equal(await readChecks(folder), []);
    write('server-tools-list-2026-11-20T11-55-03-317Z', [
      { id: '1', name: 'One', status: 'WARNING', errorMessage: 'why', details: { port: 1 } },
      { id: '2', status: 'SUCCESS' },
    ]);
    write('server-broken-off-2026-11-20T11-55-04-317Z');
    write('something-else', [{ id: '3' }]);
    assert.equal(await readChecks(folder), [
      { scenario: 'tools-list', id: '1', name: 'One', status: 'WARNING', message: 'why' },
      { scenario: 'tools-list', id: '2', name: '2', status: 'SUCCESS', message: undefined },
    ]);
    write('server-strange-2026-11-20T11-55-05-317Z', [{ id: '3' }]);
    const failure = await readChecks(folder).catch((error: unknown) => error);
    assert.match(String(failure), 'a check of strange has no id or no status');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

files('tell what the client said of itself, as a check', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'stagedoor-checks-'));
  const write = (scenario: string, said: string): void => {
    const name = join(folder, `${scenario}-2026-11-20T11-55-03-317Z`);
    mkdirSync(name);
    writeFileSync(join(name, 'checks.json'), '[]');
    writeFileSync(join(name, 'stdout.txt'), said);
  };
  try {
    write('a', 'some words\ndone\n');
    write('b', 'done\nit broke\n');
    write('c', '');
    const client = { id: 'client', name: 'client' };
    assert.equal(await readChecks(folder), [
      { scenario: 'a', ...client, status: 'SUCCESS', message: undefined },
      { scenario: 'b', ...client, status: 'FAILURE', message: 'it broke' },
      { scenario: 'c', ...client, status: 'FAILURE', message: '' },
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

files('of clients are counted once for each status of a check', () => {
  const one: Check = { scenario: 'a', id: '1', name: '1', status: 'INFO', message: undefined };
  const other = { ...one, status: 'FAILURE' };
  assert.equal(eachOnce([one, one, other, one]), [one, other]);
});

files('tell their scenario by their names', () => {
  assert.is(scenarioOf('server-server-sse-polling-2026-11-20T11-54-59-746Z'), 'server-sse-polling');
  assert.is(scenarioOf('server-json-schema-2020-12-2026-11-20T11-54-59-746Z'), 'json-schema-2020-12');
  assert.is(scenarioOf('tools_call-2026-11-20T11-54-59-746Z'), 'tools_call');
  assert.is(scenarioOf('tools_call'), undefined);
});

files.run();
