// What cannot start says so in one line on standard error and ends with exit code 2.

import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import * as assert from 'uvu/assert';
import { folderOfAll } from '../../helpers/folder.ts';
import { Program, runProgram } from '../../helpers/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: bad start', { timeoutMs: 30_000 });
const cleanups: (() => unknown)[] = [];

const folder = folderOfAll(test);

test.after.each(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

test('refuses a setting that nobody knows, before anything is opened', async () => {
  await writeFile(folder('key.yaml'), 'prot: 9000\n');
  await refuses(['--config', 'key.yaml'], /^key\.yaml.*"?prot"?.*port/);
});

test('refuses a database that does not answer', () =>
  refuses(['--port', '0'], /127\.0\.0\.1:1/, {
    GATEWAY_DATABASE_URL: 'postgresql://me:planted@127.0.0.1:1/db',
  }));

test('names the place where a port that is taken was written, a line for each', async () => {
  const [first, second] = [await take(0), await take(0)];
  const line = (port: number, place: string) =>
    `port ${port} on 127.0.0.1 is already in use; choose another in ${place}, ` +
    'or with --port <port>, or --port 0 for a free one';
  const env = { MCP_GATEWAY_PORT: String(first), GATEWAY_PORT: String(second) };
  const both = await runProgram(['gateway', 'start'], { env, folder: folder() });
  const lines = [line(first, 'MCP_GATEWAY_PORT'), line(second, 'GATEWAY_PORT')];
  assert.equal([both.code, both.err], [2, `stagedoor: ${lines.join('\n')}\n`]);
  await writeFile(folder('taken.yaml'), `port: ${first}\n`);
  const yaml = await runProgram(['gateway', 'start', '--config', 'taken.yaml'], { folder: folder() });
  assert.equal([yaml.code, yaml.err], [2, `stagedoor: ${line(first, 'taken.yaml:1, port')}\n`]);
});

test('does without one default port that is taken', async () => {
  await takeOrFindTaken(8080);
  const program = new Program(['gateway', 'start']);
  cleanups.push(() => program.remove());
  // Another program may have port 8000 just now; then this is the story above.
  const first = await program.url().catch(String);
  if (!first.startsWith('http')) {
    assert.match(first, /stagedoor: ports 8080 and 8000/);
    return;
  }
  assert.match(first, /:8000$/);
  await program.complains(/"msg":"port 8080 is already in use; continuing without it"/);
  program.signal('SIGTERM');
  assert.equal(await program.end(), { code: 0, signal: null });
});

test.run();

async function refuses(
  words: readonly string[],
  message: RegExp,
  env: Record<string, string> = {},
): Promise<void> {
  const { code, out, err } = await runProgram(['gateway', 'start', ...words], { env, folder: folder() });
  assert.equal({ code, out }, { code: 2, out: '' }, err);
  const [line = '', ...rest] = err.split('\n');
  assert.equal(rest, [''], 'exactly one line');
  assert.match(line.replace(/^stagedoor: /, ''), message);
  assert.not.match(err, 'planted');
}

/** Occupies a port until the test ends. */
async function take(port: number): Promise<number> {
  // Whoever asks what it is hears nothing, and keeps no connection open.
  const server: Server = createServer((socket) => socket.destroy()).listen(port, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => once(server.close(), 'close'));
  return (server.address() as AddressInfo).port;
}

/** A default port may be in use on the machine that runs this; that is as good. */
async function takeOrFindTaken(port: number): Promise<void> {
  await take(port).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error;
  });
}
