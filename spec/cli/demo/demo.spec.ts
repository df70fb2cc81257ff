// The demo with fixture servers, and the lines that it prints. Pasting these lines, and real servers:
// spec/system/journeys/demo.spec.ts.

import { mkdir, readdir, writeFile } from 'node:fs/promises';
import * as assert from 'uvu/assert';
import type { Auth } from '../../../src/auth/auth.ts';
import { demoCalls, openDemo } from '../../../src/cli/demo/demo.ts';
import { planDemo } from '../../../src/cli/demo/demo-servers.ts';
import { CommandFailure } from '../../../src/cli/failures.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { anonymousAuth } from '../../helpers/http/anonymous-auth.ts';
import { messageOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { recordingTerminal } from '../recording-terminal.ts';

const test = suite('demo');
const folder = folderOfEach(test);
// biome-ignore lint/suspicious/noTemplateCurlyInString: it is a placeholder of template definitions.
const scratch = '${SCRATCH}';
let gateway: Gateway;
/** Callers need no credentials; the accounts still work. */
let auth: Auth;
test.before.each(async () => {
  auth = anonymousAuth();
  gateway = await createGateway();
});
test.after.each(async () => {
  await gateway.close({ graceMs: 0 });
  await auth.close();
});

test('reports the start of each server and continues when one fails', async () => {
  await define('good', scratch);
  await define('poor', '--refuse-start');
  const said = await play();
  assert.match(said, /^good-1 {2}starting…$/m);
  assert.match(said, /^good-1 {2}healthy after \d+\.\d s \(stdio\)$/m);
  assert.match(said, /^poor-1 {2}failed: .*exited with code 3.*refusing to start: the fixture was told so/m);
  assert.match(said, /^1 of 2 servers are healthy\./m);
  const calls = said.split('\n').filter((line) => line.startsWith('curl'));
  assert.match(calls.join('\n'), /^curl[^\n]* http:\/\/127\.0\.0\.1:1234\/mcp\/good\/tools\/list$/);
  assert.match(said, /^Console: http:\/\/127\.0\.0\.1:1234\/console$/m);
  assert.not.match(said, 'API');
});

test('creates an API key for its calls where authentication is on, for reading and calling only', async () => {
  await define('good', scratch);
  const said = await play({ isEnabled: true, accounts: auth.accounts });
  const [one, ...others] = await auth.accounts.apiKeys();
  assert.equal(others, []);
  const { name, permissions, expiresAt = '' } = one?.apiKey ?? {};
  assert.equal([name, permissions], ['demo', ['gateway:read', 'tools:call']]);
  assert.ok(Date.parse(expiresAt) > Date.now());
  assert.match(said, 'Those that sign in by a browser need no key; others send it in the header X-API-Key.');
  const [, key = ''] = /^curl.*-H .X-API-Key: (sd_\w+?_[\w-]{43})/m.exec(said) ?? [];
  assert.match(key, `sd_${one?.apiKey.id}_`);
  if (process.platform !== 'win32') assert.match(said, `\nexport STAGEDOOR_API_KEY=${key}\n`);
});

test('shows no calls and creates no key when no server is healthy', async () => {
  await define('poor', '--refuse-start');
  const said = await play({ isEnabled: true, accounts: auth.accounts });
  assert.match(said, /^0 of 1 servers are healthy\. The gateway keeps trying\.$/m);
  assert.not.match(said, /curl/);
  assert.equal(await auth.accounts.apiKeys(), []);
});

const url = 'http://127.0.0.1:8080';

test('reads bodies from files on Windows, which avoids nested quotes', () => {
  const [listed, called] = demoCalls({
    url,
    folder: 'scratch',
    apiKey: 'sd_1',
    healthy: ['everything', 'memory'],
    isWindows: true,
  });
  assert.is(listed?.line, `curl.exe -s ${url}/mcp/everything/tools/list -H "X-API-Key: sd_1"`);
  assert.equal(called?.file?.body, '{"name":"echo","arguments":{"message":"hello"}}');
  assert.match(String(called?.line), / -H "Content-Type: application\/json" -d "@scratch.echo\.json"$/);
});

test('needs a folder for temporary files', async () => {
  const { TMPDIR = '' } = process.env;
  process.env.TMPDIR = folder('nothing');
  try {
    const line = `${folder('nothing')} cannot be written (ENOENT)`;
    assert.is(await messageOf(play(), CommandFailure), line);
  } finally {
    process.env.TMPDIR = TMPDIR;
    if (TMPDIR === '') delete process.env.TMPDIR;
  }
});

test('keeps the files of each server in a separate folder', async () => {
  const { servers } = await planDemo(folder());
  const inputOf = (id: string) => servers.find((server) => server.id === id)?.input;
  assert.is(inputOf('filesystem-1')?.args?.at(-1), folder('filesystem-1'));
  assert.equal(await readdir(folder('filesystem-1')), ['welcome.txt']);
  assert.match(String(inputOf('memory-1')?.env_vars?.MEMORY_FILE_PATH), folder('memory-1'));
});

test('skips an invalid template, and reports it', async () => {
  await mkdir(folder('templates', 'broken'), { recursive: true });
  await writeFile(folder('templates', 'broken', 'template.json'), '{}');
  await define('good', scratch);
  const { servers, problems } = await planDemo(folder(), folder('templates'));
  const found = servers.map(({ id }) => id);
  assert.equal(found, ['good-1']);
  assert.match(String(problems[0]), /^broken\/template\.json: /);
});

test.run();

/** Plays the demo with the defined templates; returns its output. */
async function play(accounts: Pick<Auth, 'isEnabled' | 'accounts'> = auth): Promise<string> {
  const terminal = recordingTerminal();
  const setup = { gateway, auth: accounts, urls: ['http://127.0.0.1:1234'] };
  const demo = openDemo(setup, terminal, folder('templates'));
  await demo.play(new AbortController().signal);
  demo.remove();
  return terminal.printed.join('\n');
}

async function define(id: string, flag: string): Promise<void> {
  await mkdir(folder('templates', id), { recursive: true });
  const program = { command: process.execPath, args: [stdioServerPath, flag] };
  const definition = { id, name: id, description: 'A fixture.', version: '1.0.0', ...program };
  await writeFile(folder('templates', id, 'template.json'), JSON.stringify(definition));
}
