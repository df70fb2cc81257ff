// What the output of a program shows: each fault at a program that has it, and nothing at one without faults.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { remedyOf } from '../../../src/gateway/doctor/faults.ts';
import { probeProgram } from '../../../src/gateway/doctor/program-probe.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the doctor of programs', { timeoutMs: 60_000 });

/** A program without faults, but for those that the code before it makes. */
const PROGRAM = `
const RESULTS = {
  initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'p', version: '1' } },
  ping: {},
  'tools/list': { tools: [{ name: 'a', inputSchema: { type: 'object' } }] },
};
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line);
  if (before(message) || message.id === undefined) return;
  const result = RESULTS[message.method];
  const error = { code: -32601, message: 'Method not found' };
  say(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...(result ? { result } : { error }) }));
});`;

async function codesOf({ before = '', say = 'process.stdout.write(text + "\\n")' }): Promise<string[]> {
  const code = `const say = (text) => { ${say} };\nconst before = ({ method }) => { ${before} };${PROGRAM}`;
  const program = { command: process.execPath, args: ['-e', code], env: {}, secretEnv: [] };
  const found = await probeProgram(program, [], { answerMs: 1_500 });
  for (const each of found) assert.ok(remedyOf(each.code), each.code);
  return found.map((each) => each.code);
}

test('nothing is found at a program without faults', async () => {
  assert.equal(await codesOf({}), []);
});

test('a program of the modern era alone refuses initialize without a fault', async () => {
  const result = { supportedVersions: ['2026-07-28'], capabilities: {}, resultType: 'complete', ttlMs: 0 };
  const discovered = JSON.stringify({ ...result, cacheScope: 'public' });
  const before = `delete RESULTS.initialize; RESULTS['server/discover'] = ${discovered};`;
  assert.equal(await codesOf({ before }), []);
});

test('a program that ends at a message is named with the message', async () => {
  const endsAt = (method: string) => codesOf({ before: `if (method === '${method}') process.exit(1);` });
  assert.equal(await endsAt('server/discover'), ['ends-at-discover']);
  assert.equal(await endsAt('stagedoor/unknown'), ['ends-at-unknown']);
  assert.equal(await endsAt('notifications/cancelled'), ['ends-at-cancelled']);
});

test('a program that does not answer server/discover is named', async () => {
  assert.equal(await codesOf({ before: 'return method === "server/discover";' }), ['discover-silent']);
});

test('a program that starts slowly for the second time is not called silent', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'stagedoor-doctor-'));
  try {
    const mark = JSON.stringify(join(folder, 'started'));
    // The first process leaves the mark, and the second one answers after 4 s.
    const isAgain = `(globalThis.isAgain ??= require('node:fs').existsSync(${mark}))`;
    const leaveMark = `require('node:fs').writeFileSync(${mark}, '')`;
    const late = `setTimeout(() => process.stdout.write(text + "\\n"), 4000 - process.uptime() * 1000)`;
    const say = `if (${isAgain}) ${late}; else { ${leaveMark}; process.stdout.write(text + "\\n"); }`;
    assert.equal(await codesOf({ say }), []);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('the form of the lines is named', async () => {
  assert.equal(await codesOf({ say: 'process.stdout.write("\\ufeff" + text + "\\n")' }), ['line-form']);
  assert.equal(await codesOf({ say: 'process.stdout.write(text + "\\r\\n")' }), ['line-form']);
  const invalid =
    'process.stdout.write(Buffer.from(text.replace("Method", "M\\u00e9thod") + "\\n", "latin1"))';
  assert.equal(await codesOf({ say: invalid }), ['invalid-utf8']);
  const twice = 'process.stdout.write(text + "\\n" + text + "\\n")';
  assert.equal(await codesOf({ say: twice }), ['answers-twice']);
});

test('a program that writes text and ends is named with the text', async () => {
  const findingsOf = (code: string) =>
    probeProgram({ command: process.execPath, args: ['-e', code], env: {}, secretEnv: [] }, [], {
      answerMs: 1_500,
    });
  for (const text of ['Usage: server --port N', 'Usage: server --port N\n\nOptions:\n'])
    assert.equal(await findingsOf(`process.stdout.write(${JSON.stringify(text)})`), [
      {
        code: 'stdout-text',
        message: 'It writes text in place of an answer, and ends: "Usage: server --port N".',
      },
    ]);
  assert.equal(await findingsOf('process.exit(1)'), []);
});

test('a program that cannot be started has no findings of its own', async () => {
  const program = { command: '/nowhere/at-all', args: [], env: {}, secretEnv: [] };
  assert.equal(await probeProgram(program, []), []);
});

test('a program that has answered nothing so far is not waited for a minute once more', async () => {
  const program = {
    command: process.execPath,
    args: ['-e', 'process.stdin.resume()'],
    env: {},
    secretEnv: [],
  };
  // The time of a test is shorter than the wait for a first answer.
  await probeProgram(program, [], { answerMs: 100, isSilent: true });
});

test.run();
