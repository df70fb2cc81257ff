// A registry file in YAML that is so long that a thread parses it: the program as users install it finds the module of the thread.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { until } from '../../helpers/eventually.ts';
import { AS_IT_COMES, Program } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('a long registry file', { timeoutMs: 60_000 });

test('is served, and a mistake in it is one line', async () => {
  const lines = Array.from(
    { length: 1_000 },
    (_, at) => `  t${at}: { load_balancer: { timeout: ${at + 1} } }`,
  );
  const text = ['templates:', ...lines, ''].join('\n');
  assert.ok(text.length > 32_768);
  const folder = mkdtempSync(join(tmpdir(), 'stagedoor-long-'));
  const file = join(folder, 'registry.yaml');
  writeFileSync(file, text);
  const env = { ...AS_IT_COMES, MCP_GATEWAY_REGISTRY_FILE: file };
  const program = new Program(['gateway', 'start', '--port', '0', '--no-auth'], { env });
  try {
    const url = await program.url();
    const last = async (): Promise<number> => (await fetch(`${url}/gateway/templates/t999`)).status;
    await until(async () => (await last()) === 200, 'the last template is registered');
    program.signal('SIGTERM');
    assert.equal(await program.end(), { code: 0, signal: null });
  } finally {
    await program.remove();
  }

  writeFileSync(file, `${text}  t0: {}\n`);
  const refused = new Program(['gateway', 'start', '--port', '0', '--no-auth'], { env });
  try {
    const { code } = await refused.end();
    assert.is(code, 2);
    assert.match(refused.err, 'Map keys must be unique at line 1002, column 3');
  } finally {
    await refused.remove();
    rmSync(folder, { recursive: true });
  }
});

test.run();
