// The demo with fixture servers; with real ones it is a journey.

import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import type { Auth } from '../../src/auth/auth.ts';
import { openDemo } from '../../src/cli/demo.ts';
import { createGateway, type Gateway } from '../../src/gateway.ts';
import { stdioServerPath } from '../fixtures/drive.ts';
import { anonymousAuth } from '../helpers/anonymous-auth.ts';
import { suite } from '../helpers/suite.ts';
import { recordingTerminal } from './recording-terminal.ts';

const test = suite('demo');
// biome-ignore lint/suspicious/noTemplateCurlyInString: it is a placeholder of template definitions.
const scratch = '${SCRATCH}';
let templates = '';
let gateway: Gateway;
/** Nobody has to say who they are; its accounts work all the same. */
let auth: Auth;
test.before.each(async () => {
  auth = anonymousAuth();
  templates = await mkdtemp(join(tmpdir(), 'stagedoor-templates-'));
  gateway = await createGateway();
});
test.after.each(async () => {
  await gateway.close({ graceMs: 0 });
  await auth.close();
  await rm(templates, { recursive: true, force: true });
});

test('tells how each server is doing and goes on when one fails', async () => {
  await define('good', scratch);
  await define('poor', '--refuse-start');
  const terminal = recordingTerminal();
  const demo = openDemo({ gateway, auth, urls: ['http://127.0.0.1:1234'] }, terminal, templates);
  await demo.play(new AbortController().signal);
  demo.remove();

  const said = terminal.printed.join('\n');
  assert.match(said, /^good-1 {2}starting…$/m);
  assert.match(said, /^good-1 {2}healthy after \d+\.\d s \(stdio\)$/m);
  assert.match(said, /^poor-1 {2}failed: .*exited with code 3.*refusing to start: the fixture was told so/m);
  assert.match(said, /^1 of 2 servers are healthy\./m);
  assert.match(said, /^curl.* http:\/\/127\.0\.0\.1:1234\/mcp\/good\/tools\/list$/m);
  assert.match(said, /^Console: http:\/\/127\.0\.0\.1:1234\/console$/m);
});

test('makes a key for its calls where one is needed, for reading and calling only', async () => {
  await define('good', scratch);
  const terminal = recordingTerminal();
  const guarded = { isEnabled: true, accounts: auth.accounts };
  const demo = openDemo({ gateway, auth: guarded, urls: ['http://127.0.0.1:1234'] }, terminal, templates);
  await demo.play(new AbortController().signal);
  demo.remove();
  const [one, ...others] = await auth.accounts.apiKeys();
  assert.equal(others, []);
  const { name, permissions, expiresAt = '' } = one?.apiKey ?? {};
  assert.equal([name, permissions], ['demo', ['gateway:read', 'tools:call']]);
  assert.ok(Date.parse(expiresAt) > Date.now());
  const said = terminal.printed.join('\n');
  const [, key = ''] = /^curl.*-H .X-API-Key: (sd_\w+?_[\w-]{43})/m.exec(said) ?? [];
  assert.match(key, `sd_${one?.apiKey.id}_`);
  if (process.platform !== 'win32') assert.match(said, `\nexport STAGEDOOR_API_KEY=${key}\n`);
});

test('makes no key when nobody asks for one, or nobody could be called', async () => {
  await define('poor', '--refuse-start');
  const guarded = { isEnabled: true, accounts: auth.accounts };
  const demo = openDemo(
    { gateway, auth: guarded, urls: ['http://127.0.0.1:1234'] },
    recordingTerminal(),
    templates,
  );
  await demo.play(new AbortController().signal);
  demo.remove();
  await define('good', scratch);
  const terminal = recordingTerminal();
  const open = openDemo({ gateway, auth, urls: ['http://127.0.0.1:1234'] }, terminal, templates);
  await open.play(new AbortController().signal);
  open.remove();
  assert.equal(await auth.accounts.apiKeys(), []);
  assert.not.match(terminal.printed.join('\n'), 'API');
});

test('shows no calls when there is nobody to answer them', async () => {
  await define('poor', '--refuse-start');
  const terminal = recordingTerminal();
  const demo = openDemo({ gateway, auth, urls: ['http://127.0.0.1:1234'] }, terminal, templates);
  await demo.play(new AbortController().signal);
  demo.remove();
  const said = terminal.printed.join('\n');
  assert.match(said, /^0 of 1 servers are healthy\. The gateway keeps trying\.$/m);
  assert.not.match(said, /curl/);
});

test('gives the servers a scratch folder and removes it', async () => {
  await define('good', scratch);
  const demo = openDemo({ gateway, auth, urls: [] }, recordingTerminal(), templates);
  await demo.play(new AbortController().signal);
  const folder = String(gateway.instance('good', 'good-1').definition.args.at(-1));
  assert.is(existsSync(join(folder, 'welcome.txt')), true);
  await gateway.close({ graceMs: 0 });
  demo.remove();
  assert.is(existsSync(folder), false);
});

test('says nothing more once it is stopped', async () => {
  await define('slow', '--slow-start=60000');
  const terminal = recordingTerminal();
  const stopping = new AbortController();
  const demo = openDemo({ gateway, auth, urls: [] }, terminal, templates);
  const played = demo.play(stopping.signal);
  gateway.on('instance.registered').subscribe(() => stopping.abort());
  await played;
  demo.remove();
  assert.equal(terminal.printed, ['slow-1  starting…']);
});

test.run();

async function define(id: string, flag: string): Promise<void> {
  await mkdir(join(templates, id));
  const definition = {
    id,
    name: id,
    description: 'A fixture.',
    version: '1.0.0',
    command: process.execPath,
    args: [stdioServerPath, flag],
  };
  await writeFile(join(templates, id, 'template.json'), JSON.stringify(definition));
}
