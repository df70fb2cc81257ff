// A kind of transport takes two files: its row in domain/instances/transport-kinds.ts, and the module with its name.

import { readdir } from 'node:fs/promises';
import * as assert from 'uvu/assert';
import { TRANSPORT_KINDS } from '../../src/domain/instances/transport-kinds.ts';
import { loadTransport } from '../../src/transports/load-transport.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('kinds of transport');
const folder = new URL('../../src/transports/', import.meta.url);

test('each kind has a folder with a module of its name, which exports `open`, and there is no other', async () => {
  const entries = await readdir(folder, { withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  assert.equal(folders.sort(), [...TRANSPORT_KINDS].sort());
  for (const kind of TRANSPORT_KINDS) {
    const { open } = await import(new URL(`${kind}/${kind}.ts`, folder).href);
    assert.type(open, 'function', kind);
  }
});

test('is loaded in several turns of the event loop, so that calls go between', async () => {
  for (const kind of ['http', 'stdio', 'sse'] as const) {
    await loadTransport(kind);
    let turns = 0;
    let isLoaded = false;
    const count = (): void => {
      turns += 1;
      if (!isLoaded) setImmediate(count);
    };
    setImmediate(count);
    assert.type(await loadTransport(kind), 'function', kind);
    isLoaded = true;
    assert.ok(turns >= 2, `${kind}: ${turns} turns`);
  }
});

test.run();
