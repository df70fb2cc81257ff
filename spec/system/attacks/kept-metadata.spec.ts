// Metadata of instances, inside 1 GiB: as values it costs more memory than as bytes. The registry bounds it; the gateway survives, also
// its next start with a full registry, and serves other callers.

import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { field, newKey } from '../../helpers/clients/caller.ts';
import { register, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { canLimitMemory, MemoryLimit } from '../../helpers/programs/memory-limit.ts';
import { suite } from '../../helpers/suite.ts';
import { MIB, nothing, othersAreServed, startToolServer } from './attack.ts';

const test = suite('kept metadata in 1 GiB', { timeoutMs: 180_000 });
const withLimit = test.needs(canLimitMemory, 'needs the right to make control groups (root on Linux)');

const LARGE = 1_500;
const TOO_LARGE = 20;

withLimit('is bounded, and the next start survives', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'stagedoor-metadata-'));
  const env = { GATEWAY_DATABASE_URL: `sqlite:///${join(folder, 'gateway.db')}` };
  const backend = await startToolServer({ fast: nothing });
  const memory = new MemoryLimit(1024 * MIB);
  try {
    const first = await startGuarded({ memory, env });
    const answers = new Map<string, number>();
    const registerWith = async (id: string, values: number): Promise<void> => {
      const instance = { id, endpoint: 'http://127.0.0.1:1/mcp', metadata: { list: Array(values).fill({}) } };
      const answer = await first.admin('POST /gateway/register', { template_name: 'kept', instance });
      const outcome = `${answer.status} ${field(answer, 'error_code') ?? ''}`.trim();
      answers.set(outcome, (answers.get(outcome) ?? 0) + 1);
    };
    await register(first.admin, 'demo', [{ id: 'one', endpoint: backend.url }]);
    const { headers } = await newKey(first.admin, 'spec');
    await othersAreServed(first, headers, `metadata of ${LARGE} instances`, async () => {
      for (let index = 0; index < TOO_LARGE; index += 1) await registerWith(`t${index}`, 9_000);
      for (let index = 0; index < LARGE; index += 1) await registerWith(`i${index}`, 990);
    });
    process.stdout.write(`  the attacker was answered ${JSON.stringify(Object.fromEntries(answers))}\n`);
    assert.equal([...answers.keys()].sort(), ['201', '400 REGISTRY_FULL', '422 VALIDATION_ERROR']);
    await first.remove();

    const second = await startGuarded({ memory, env });
    await othersAreServed(second, headers, 'the next start', async () => {
      const listed = await second.admin('GET /servers?limit=1');
      assert.is(Number(listed.headers.get('x-total-count')), (answers.get('201') ?? 0) + 1);
    });
    await second.remove();
  } finally {
    await memory.remove();
    await backend.close();
    await rm(folder, { recursive: true });
  }
});

test.run();
