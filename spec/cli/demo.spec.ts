// The demo with fixture servers; with real ones it is a journey.
// That the lines work is proven by pasting them: spec/system/journeys/demo.spec.ts. Here is how they are written.

import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import type { Auth } from '../../src/auth/auth.ts';
import { demoCalls, openDemo } from '../../src/cli/demo.ts';
import { freePort, planDemo } from '../../src/cli/demo-servers.ts';
import { createGateway, type Gateway } from '../../src/gateway.ts';
import { stdioServerPath } from '../fixtures/programs.ts';
import { anonymousAuth } from '../helpers/anonymous-auth.ts';
import { folderOfEach } from '../helpers/folder.ts';
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

const calls = suite('demo calls');
const url = 'http://127.0.0.1:8080';
const all = new Set(['everything', 'memory']);

calls('are three lines for a POSIX shell, bodies in single quotes', () => {
  const calls = demoCalls({ url, folder: '/scratch', apiKey: undefined, healthy: all, platform: 'linux' });
  assert.equal(
    calls.map(({ line, file }) => [line, file]),
    [
      [`curl -s ${url}/mcp/everything/tools/list`, undefined],
      [
        `curl -s ${url}/mcp/everything/tools/call -H 'Content-Type: application/json' ` +
          `-d '{"name":"echo","arguments":{"message":"hello"}}'`,
        undefined,
      ],
      [
        `curl -sN ${url}/mcp/everything/tools/call -H 'Content-Type: application/json' ` +
          `-H 'Accept: text/event-stream' ` +
          `-d '{"name":"trigger-long-running-operation","arguments":{"duration":3,"steps":3}}'`,
        undefined,
      ],
    ],
  );
});

calls('take their bodies from files on Windows, so that no quote is inside quotes', () => {
  const options = { url, folder: 'scratch', healthy: all, platform: 'win32' } as const;
  const [listed, called] = demoCalls({ ...options, apiKey: undefined });
  assert.is(listed?.line, `curl.exe -s ${url}/mcp/everything/tools/list`);
  assert.equal(called?.file?.body, '{"name":"echo","arguments":{"message":"hello"}}');
  assert.match(String(called?.line), / -H "Content-Type: application\/json" -d "@scratch.echo\.json"$/);
  const [guarded] = demoCalls({ ...options, apiKey: 'sd_1' });
  assert.is(guarded?.line, `curl.exe -s ${url}/mcp/everything/tools/list -H "X-API-Key: sd_1"`);
});

calls('carry the key when there is one, all of them', () => {
  const calls = demoCalls({ url, folder: '/scratch', apiKey: 'sd_1', healthy: all, platform: 'linux' });
  assert.is(calls.length, 3);
  for (const { line } of calls) assert.match(line, / -H 'X-API-Key: sd_1'( |$)/);
});

calls('go only to templates that are healthy', () => {
  const lines = (...healthy: string[]) =>
    demoCalls({
      url,
      folder: '/scratch',
      apiKey: undefined,
      healthy: new Set(healthy),
      platform: 'linux',
    }).map(({ line }) => line);
  assert.equal(lines('memory'), [`curl -s ${url}/mcp/memory/tools/list`]);
  assert.equal(lines(), []);
});

calls.run();

const servers = suite('demo servers');

const scratchServers = folderOfEach(servers);

servers('run everything three times, once of these over HTTP, and the other templates once', async () => {
  const { servers, problems } = await planDemo(scratchServers());
  assert.equal(problems, []);
  assert.equal(
    servers.map(({ template, id, input }) => [template, id, input.endpoint === undefined ? 'stdio' : 'http']),
    [
      ['everything', 'everything-1', 'stdio'],
      ['everything', 'everything-2', 'stdio'],
      ['everything', 'everything-3', 'http'],
      ['filesystem', 'filesystem-1', 'stdio'],
      ['memory', 'memory-1', 'stdio'],
    ],
  );
});

servers('start the program directly with this Node, and tell the HTTP one to serve HTTP', async () => {
  const { servers } = await planDemo(scratchServers());
  const [first, , third] = servers;
  assert.is(first?.input.command, process.execPath);
  assert.equal([first?.input.args?.at(-1), third?.input.args?.at(-1)], ['stdio', 'streamableHttp']);
  assert.match(String(third?.input.endpoint), /^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
});

servers('keep their files in folders of their own', async () => {
  const { servers } = await planDemo(scratchServers());
  const inputOf = (id: string) => servers.find((server) => server.id === id)?.input;
  assert.is(inputOf('filesystem-1')?.args?.at(-1), scratchServers('filesystem-1'));
  assert.equal(await readdir(scratchServers('filesystem-1')), ['welcome.txt']);
  assert.match(String(inputOf('memory-1')?.env_vars?.MEMORY_FILE_PATH), scratchServers('memory-1'));
});

servers('leave out a template that cannot be used, and say why', async () => {
  const templates = scratchServers('templates');
  await mkdir(join(templates, 'broken'), { recursive: true });
  await writeFile(join(templates, 'broken', 'template.json'), '{}');
  const { servers, problems } = await planDemo(scratchServers(), templates);
  assert.equal(servers, []);
  assert.match(String(problems[0]), /^broken\/template\.json: /);
});

servers('say what npx downloads when a package is not installed beside the gateway', async () => {
  const templates = scratchServers('templates');
  await mkdir(join(templates, 'far'), { recursive: true });
  const definition = {
    id: 'far',
    name: 'Far',
    description: 'A package that nobody installed.',
    tags: ['demo'],
    version: '1.0.0',
    command: 'npx',
    args: ['-y', '@stagedoor/not-installed@1.2.3', 'x'],
  };
  await writeFile(join(templates, 'far', 'template.json'), JSON.stringify(definition));
  const near = (await planDemo(scratchServers())).servers.map(({ downloads }) => downloads);
  const far = (await planDemo(scratchServers(), templates)).servers.map(({ downloads }) => downloads);
  assert.equal([new Set(near), far], [new Set([undefined]), ['@stagedoor/not-installed@1.2.3']]);
});

servers.run();

const port = suite('free port');

port('finds a port that can be listened on', async () => {
  const port = await freePort();
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  server.close();
  assert.ok(port > 0);
});

port.run();
