// The output of `stagedoor connect` works: against a live gateway with authentication each snippet that can run here runs
// unchanged, and `--verify` reports the real state.

import { execFile, spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import * as assert from 'uvu/assert';
import { CONNECT_KINDS } from '../../../src/connect/index.ts';
import { type GatewayUnderTest, type Outcome, startGateway } from '../../cli/commands/against-gateway.ts';
import type { EverythingHttp } from '../../fixtures/everything/http-face.ts';
import { everythingProgram, startEverything } from '../../fixtures/everything-server.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: connect', { timeoutMs: 60_000 });
const run = promisify(execFile);

const TOOL = 'test_simple_text';
let gateway: GatewayUnderTest;
let backend: EverythingHttp;
const folder = folderOfAll(test)();
let key = '';
test.before(async () => {
  backend = await startEverything({ name: 'far' });
  gateway = await startGateway({ withAccounts: true });
  const { gateway: facade, auth } = gateway.server;
  await facade.register('far', { id: 'one', endpoint: backend.url }, { waitMs: 20_000 });
  await facade.register('near', { id: 'one', ...everythingProgram() }, { waitMs: 20_000 });
  key = (await auth.accounts.createApiKey({ name: 'client', permissions: ['gateway:read', 'tools:call'] }))
    .key;
});
test.after(async () => {
  await gateway.close();
  await backend.close();
});

/** Runs connect with the API key and the minimal environment of a client. */
function connect(...words: string[]): Promise<Outcome> {
  const env = { STAGEDOOR_API_KEY: key, PATH: process.env.PATH ?? '', HOME: folder };
  return gateway.runAt({ env, folder }, 'connect', ...words);
}

async function snippetOf(kind: string, ...words: string[]): Promise<string> {
  const { out, err } = await connect('far', '--llm', kind, '--json', ...words);
  assert.ok(out !== '', err);
  return JSON.parse(out).integrations[0].snippet;
}

function environment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: folder, STAGEDOOR_API_KEY: key };
}

const curl = test.needs(spawnSync('curl', ['--version'], { stdio: 'ignore' }).status === 0, 'no curl here');
curl('the shell snippet works unchanged', async () => {
  const { stdout } = await run('/bin/sh', ['-ec', await snippetOf('curl')], { env: environment() });
  assert.match(stdout, `"${TOOL}"`);
  const given = await snippetOf('curl', '--key', key);
  const { stdout: again } = await run('/bin/sh', ['-ec', given], { env: { PATH: process.env.PATH } });
  assert.match(again, `"${TOOL}"`);
});

for (const transport of ['--stdio', '--http']) {
  for (const kind of CONNECT_KINDS.filter(({ language }) => language === 'js')) {
    test(`the program for ${kind.name} works unchanged, ${transport}`, async () => {
      // In a folder where its packages are found.
      const path = join(process.cwd(), 'node_modules', `.snippet-${process.pid}.mjs`);
      writeFileSync(path, await snippetOf(kind.name, transport));
      try {
        const { stdout } = await run(process.execPath, [path], { env: environment() });
        assert.match(stdout, new RegExp(`^${TOOL}$`, 'm'));
      } finally {
        rmSync(path);
      }
    });
  }
}

test('the requests of the Postman collection work', async () => {
  const collection: Collection = JSON.parse(await snippetOf('postman', '--key', key));
  const variables = new Map(collection.variable.map((each) => [each.key, each.value]));
  const filled = (text: string) =>
    text.replace(/\{\{(\w+)\}\}/g, (_, name) => variables.get(name) ?? `no ${name}`);
  const outcomes: [string, number, boolean][] = [];
  for (const { name, request } of collection.item) {
    const response = await fetch(filled(request.url), {
      method: request.method,
      headers: Object.fromEntries(request.header.map((each) => [each.key, filled(each.value)])),
      ...(request.body === undefined ? {} : { body: request.body.raw.replace('NAME_OF_A_TOOL', TOOL) }),
    });
    const text = await response.text();
    outcomes.push([name, response.status, text.includes(TOOL)]);
  }
  assert.equal(outcomes, [
    ['List tools', 200, true],
    ['Call a tool', 200, false],
  ]);
});

interface Collection {
  readonly variable: readonly { readonly key: string; readonly value: string }[];
  readonly item: readonly {
    readonly name: string;
    readonly request: {
      readonly method: string;
      readonly url: string;
      readonly header: readonly { readonly key: string; readonly value: string }[];
      readonly body?: { readonly raw: string };
    };
  }[];
}

// A client that signs its user in, without a key: spec/system/identity/.
for (const [template, transport, program] of [
  ['far', '--stdio', 'bridge'],
  ['far', '--http', undefined],
  ['near', '--http', undefined],
] as const) {
  test(`--verify reports revision and tools of ${template} ${transport}`, async () => {
    const { code, out, err } = await connect(
      template,
      '--llm',
      'claude-code',
      transport,
      ...(transport === '--http' ? ['--key', key] : []),
      '--verify',
      '--json',
    );
    assert.is(code, 0, err);
    const [integration] = JSON.parse(out).integrations;
    assert.is(integration.program, program);
    assert.is(integration.verified.works, true);
    assert.is(integration.verified.protocolVersion, '2025-11-25');
    assert.ok(integration.verified.tools.includes(TOOL));
  });
}

test('--verify sends the request of a client of the HTTP API', async () => {
  const { code, out, err } = await connect('far', '--llm', 'curl', '--verify');
  assert.is(code, 0, err);
  assert.match(out.split('\n').at(-1) ?? '', /^curl \(http\) works: \d+ tools \(.*\), \d+ ms$/);
  const wrong = await connect('far', '--llm', 'postman', '--verify', '--key', 'sd_not_valid');
  assert.is(wrong.code, 1);
  assert.match(
    wrong.err,
    /^postman \(http\) does not work: the API key in --key was not sent to \S+: it does not have the form of a key, /m,
  );
});

test('--verify starts the registered command', async () => {
  const { code, out } = await gateway.run('connect near --llm vscode --stdio --verify --trust');
  assert.is(code, 0);
  assert.match(out, everythingProgram().args[0] ?? '');
  const found = out.split('\n').at(-1) ?? '';
  assert.match(found, /^vscode \(stdio\) works: everything .*, MCP .*, \d+ tools \(.*\), \d+ ms$/);
});

test('--verify fails for a broken command or an invalid key, and names the cause', async () => {
  await gateway.server.gateway.register('broken', { id: 'one', command: '/no/such/program' });
  const command = await gateway.run('connect broken --llm vscode --stdio --verify --trust');
  assert.is(command.code, 1);
  assert.match(command.err, /^vscode .* does not work: .* there is no program "\/no\/such\/program"/m);
  const wrong = await connect('far', '--llm', 'vscode', '--http', '--verify', '--key', 'sd_not_valid');
  assert.is(wrong.code, 1);
  assert.match(wrong.err, /vscode \(http\) does not work: .*(key|credentials)/i);
});

test.run();
