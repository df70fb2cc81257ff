// `connect` without changing files: its output for each kind of client, and which gateway, key and program it names.

import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { verify } from '../../../src/cli/connect/verify.ts';
import { CommandFailure } from '../../../src/cli/failures.ts';
import { CONNECT_KINDS } from '../../../src/connect/index.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { rejects } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { scripted } from '../../transports/stdio/open-stdio.ts';
import { ADMIN_PASSWORD, complaint, gatewayFor, HANDLER } from './against-gateway.ts';

const test = suite('connect');
const folder = folderOfAll(test);
const gateway = gatewayFor(test, { withAccounts: true, more: { oauth: false } }, async ({ server }) => {
  await server.gateway.register('weather', { id: 'one', handler: HANDLER });
  await server.gateway.register('own', { id: 'one', command: '/bin/own-server', args: ['--flag'] });
  await server.gateway.register('relative', { id: 'one', command: 'node ./server.js' });
});

const LONG = 'a'.repeat(55);
const open = gatewayFor(test, {}, async ({ server }) => {
  await server.gateway.register('weather', { id: 'one', handler: HANDLER });
  const tools = [LONG, 'short'].map((name) => ({ name, inputSchema: { type: 'object' } }));
  await server.gateway.register('long', { id: 'one', handler: () => ({ tools }) });
});

/** Clients may send their user to sign in. */
const signingIn = gatewayFor(test, { withAccounts: true }, ({ server }) =>
  server.gateway.register('weather', { id: 'one', handler: HANDLER }),
);

const connect = (line: string, ...words: string[]) => gateway.run(`connect ${line}`, ...words);

test('shows every kind of client with steps, troubleshooting and documentation', async () => {
  const { code, out } = await connect('weather');
  assert.is(code, 0);
  for (const { title, documentation } of CONNECT_KINDS) {
    for (const text of [title, ...documentation]) assert.ok(out.includes(text), text);
  }
  assert.is(out.split('\nSteps:\n1. ').length - 1, CONNECT_KINDS.length);
  assert.is(out.split('\nIf it does not work:\n- ').length - 1, CONNECT_KINDS.length);
});

test('names the key by its variable and never prints it', async () => {
  const { out } = await connect('weather --llm claude-code --http --json');
  const [{ snippet }] = JSON.parse(out).integrations;
  assert.equal(JSON.parse(snippet), {
    mcpServers: {
      weather: {
        type: 'http',
        url: `${gateway.url}/mcp/weather`,
        headers: { 'X-API-Key': `\${STAGEDOOR_API_KEY}` },
      },
    },
  });
  const all = [await connect('weather'), await connect('weather --http'), await connect('weather --json')];
  for (const each of all) assert.not.match(each.out + each.err, /sd_[0-9a-z]/);
});

test('writes the key into the snippet when it is given', async () => {
  const { out, err } = await connect('weather --llm vscode --http --key sd_given_key');
  assert.match(out, '"X-API-Key": "sd_given_key"');
  assert.match(err, '--key - reads standard input');
  assert.is((await connect('weather --llm vscode --key sd_given_key --quiet')).err, '');
  const piped = await gateway.runAt({ line: 'sd_piped_key' }, 'connect weather --llm curl --key -');
  assert.match(piped.out, "'X-API-Key: sd_piped_key'");
  assert.is(piped.err, '');
});

test('a key that is refused is named by the place it comes from', async () => {
  const wrong = `sd_0123456789abcdef_${'w'.repeat(43)}`;
  const env = { XDG_CONFIG_HOME: folder(), STAGEDOOR_API_KEY: '', LAB_KEY: wrong };
  mkdirSync(folder('stagedoor'), { recursive: true });
  const lab = { url: gateway.url, key_variable: 'LAB_KEY' };
  const path = folder('stagedoor', 'environments.json');
  const named = { lab, home: { url: gateway.url, key: wrong } };
  writeFileSync(path, JSON.stringify(named), { mode: 0o600 });
  for (const [line, where] of [
    [`connect weather --key ${wrong}`, '--key'],
    ['connect weather --env lab', 'LAB_KEY'],
    ['connect weather --env home', path],
    ['connect weather', ''],
  ] as const) {
    const own = where === '' ? { ...env, STAGEDOOR_API_KEY: wrong } : env;
    const { code, err } = await gateway.runAt({ env: own }, line);
    assert.is(code, 1, line);
    const source = where || 'STAGEDOOR_API_KEY';
    assert.match(err, `did not prove that it knows the API key 0123456789abcdef in ${source}, which`, line);
    assert.is(err.includes('STAGEDOOR_API_KEY'), where === '', line);
    assert.is(err.includes('(then unset or replace it)'), where === '', line);
  }
  const unset = await gateway.runAt({ env: { ...env, LAB_KEY: '' } }, 'connect weather --env lab');
  assert.match(unset.err, /^stagedoor: not logged in at .*, or set LAB_KEY$/);
  const used = await connect(`weather --llm curl --verify --key ${wrong}`);
  rmSync(path);
  assert.match(used.err, 'curl (http) does not work: ');
  assert.match(used.err, 'knows the API key 0123456789abcdef in --key, which was not sent');
});

test('names the bridge, or the registered command if a client can start it in the same way', async () => {
  const entry = async (words: string) => {
    const { out, err } = await connect(`${words} --llm claude-code --output`, folder('entry.json'));
    assert.is(out, '', err);
    const text = readFileSync(folder('entry.json'), 'utf8');
    rmSync(folder('entry.json'));
    return Object.values(JSON.parse(text).mcpServers)[0];
  };
  const bin = join(process.cwd(), 'bin/stagedoor.mjs');
  const bridge = (template: string) => ({
    type: 'stdio',
    command: process.execPath,
    args: [bin, 'bridge', template, '--url', gateway.url],
  });
  const env = { STAGEDOOR_API_KEY: `\${STAGEDOOR_API_KEY}` };
  assert.equal(await entry('weather'), { ...bridge('weather'), env });
  assert.equal(await entry('relative'), { ...bridge('relative'), env });
  assert.equal(await entry('own --trust'), { type: 'stdio', command: '/bin/own-server', args: ['--flag'] });
  assert.equal(await entry('own --trust --env LEVEL=a=b'), {
    type: 'stdio',
    command: '/bin/own-server',
    args: ['--flag'],
    env: { LEVEL: 'a=b' },
  });
});

test('says that a program is not known here only where a client would start it', async () => {
  const said = 'not in the local catalogue';
  assert.match((await connect('own --llm claude-code')).err, said);
  assert.not.match((await connect('own --llm claude-code --http')).err, said);
});

test('names an address without a key for clients that sign their user in', async () => {
  const read = async (line: string) => {
    const { out, err } = await signingIn.run(`connect ${line} --json`);
    const [found] = JSON.parse(out).integrations;
    assert.not.match(out + err, /sd_[0-9a-z]/);
    return { snippet: String(found.snippet), steps: String(found.steps) };
  };
  const url = `${signingIn.url}/mcp/weather`;
  const { snippet, steps } = await read('weather --llm claude-code');
  assert.equal(JSON.parse(snippet), { mcpServers: { weather: { type: 'http', url } } });
  assert.match(steps, 'Authenticate');
  assert.not.match(steps, 'STAGEDOOR_API_KEY');
  for (const kind of CONNECT_KINDS.filter((each) => each.signIn !== undefined)) {
    const found = await read(`weather --llm ${kind.name}`);
    assert.match(found.snippet, url);
    assert.not.match(found.snippet, 'API', kind.name);
  }
  assert.match((await read('weather --llm claude-code --stdio')).snippet, 'STAGEDOOR_API_KEY');
  assert.match((await read('weather --llm claude-code --http --key written')).snippet, 'written');
  assert.match((await read('weather --llm curl')).snippet, 'STAGEDOOR_API_KEY');
});

test('verifies the sign-in as a client and a browser would, and leaves no grant', async () => {
  const line = 'connect weather --llm claude-code --verify';
  const begun = await signingIn.run(line);
  assert.is(begun.code, 0, begun.err);
  assert.match(begun.out, 'works: as far as the sign-in page; --user <name> tries the rest');
  const wrong = await signingIn.runAt({ line: 'not the password' }, `${line} --user admin --password -`);
  assert.is(wrong.code, 1);
  assert.match(wrong.err, 'the sign-in of admin was refused; user name or password may be wrong');
  const made = await signingIn.run('user create vera --password planted-password --scopes gateway:read');
  assert.is(made.code, 0, made.err);
  const viewer = await signingIn.runAt({ line: 'planted-password' }, `${line} --user vera --password -`);
  assert.match(
    viewer.err,
    'the sign-in of vera was refused; the browser got the page "Your account cannot allow this"',
  );
  const right = await signingIn.runAt({ line: ADMIN_PASSWORD }, `${line} --user admin --password -`);
  assert.is(right.code, 0, right.err);
  assert.match(right.out, /works: .*no tools/);
  assert.match(
    (await signingIn.run('connect weather --llm curl --verify --user admin --password x')).err,
    '--user is for',
  );
  assert.match(
    (await signingIn.run('connect weather --llm zed --user admin --password x')).err,
    '--user requires --verify',
  );
});

test('omits the key where authentication is off', async () => {
  const { code, out } = await open.run('connect weather --http');
  assert.is(code, 0);
  assert.not.match(out, 'API_KEY');
});

test('writes a file that only its owner can read, and replaces no existing file', async () => {
  const path = folder('client.mjs');
  const { code, out, err } = await connect('weather --llm nodejs --output', path);
  assert.equal([code, out], [0, '']);
  assert.match(err, `wrote ${path}`);
  assert.is(statSync(path).mode & 0o777, 0o600);
  const again = await complaint(connect('weather --llm curl --output', path));
  assert.is(again, `stagedoor: ${path} already exists`);
  assert.match(readFileSync(path, 'utf8'), 'StdioClientTransport');
  await complaint(connect('weather --output', folder('no', 'x')));
  assert.not.ok(existsSync(folder('no')));
});

test('reads gateway and variable of a named environment', async () => {
  const key = await gateway.newKey('tools:call');
  mkdirSync(folder('stagedoor'), { recursive: true });
  const environments = { lab: { url: gateway.url, key_variable: 'LAB_KEY' } };
  writeFileSync(folder('stagedoor', 'environments.json'), JSON.stringify(environments));
  const env = { XDG_CONFIG_HOME: folder(), STAGEDOOR_URL: '', LAB_KEY: key };
  const http = await gateway.runAt({ env }, 'connect weather --llm curl --env lab');
  assert.match(http.out, `-H "X-API-Key: $LAB_KEY"`);
  const stdio = await gateway.runAt({ env }, 'connect weather --llm vscode --env lab');
  assert.match(stdio.out, `"bridge",\n        "weather",\n        "--env",\n        "lab"`);
  assert.not.match(stdio.out, 'API_KEY"');
  const path = folder('stagedoor', 'environments.json');
  writeFileSync(path, JSON.stringify({ lab: { url: gateway.url, key } }), { mode: 0o644 });
  const readable = await complaint(gateway.runAt({ env }, 'connect weather --env lab'), 2);
  assert.match(readable, `run "chmod 600 ${path}"`);
  assert.not.match(readable, key);
  chmodSync(path, 0o600);
  const closed = await gateway.runAt({ env }, 'connect weather --llm vscode --env lab --verify');
  assert.is(closed.code, 0, closed.err);
  assert.not.match(closed.out, key);
  const unknown = gateway.runAt({ env }, 'connect weather --env lap');
  assert.match(await complaint(unknown, 2), 'there is no environment "lap"');
});

test('shows the last output of a program that ends while it lists its tools, and leaves no session behind', async () => {
  const script = folder('dying.mjs');
  const answer = `{ jsonrpc: '2.0', id, result: { ...params, capabilities: { tools: {} }, serverInfo: {} } }`;
  const reply = `if (method === 'initialize') console.log(JSON.stringify(${answer}));`;
  const end = `else if (id !== undefined) { console.error('no space'); process.exit(4); }`;
  const read = `const { id, method, params } = JSON.parse(line); ${reply} ${end}`;
  writeFileSync(
    script,
    `import { createInterface } from 'node:readline';
    for await (const line of createInterface(process.stdin)) { ${read} }`,
  );
  await gateway.server.gateway.register('dying', { command: process.execPath, args: [script] });
  const { err } = await connect('dying --llm cursor --verify --trust');
  assert.match(err, /^cursor \(stdio\) does not work: exited with code 4; last output: no space$/m);
  const { code, progress } = await connect('weather --llm cursor --http --verify');
  assert.equal([code, progress?.at(-1)], [0, 'verifying cursor']);
  assert.equal(gateway.server.gateway.sessions(), []);
});

test('a verification fails when the pages of tools take too long in all', async () => {
  const page = `{ jsonrpc: '2.0', id, result: { tools: [], nextCursor: String(id) } }`;
  const program = scripted(`setTimeout(() => say(${page}), 20);`);
  const base = { template: 'slow', url: gateway.url, key: undefined, transport: 'stdio' } as const;
  const verified = verify(
    { ...base, ...program, program: 'command' },
    { env: process.env, folder: folder() },
    200,
  );
  await rejects(verified, CommandFailure, /^its list of tools was not complete within 0.2 s$/);
});

test('without a template it connects to all of them', async () => {
  const { out } = await open.run('connect --llm cursor --http --verify');
  assert.match(out, `"url": "${open.url}/mcp"`);
  assert.match(out, /"stagedoor": \{/);
  assert.match(out, /cursor \(http\) works: /);
  const { integrations } = JSON.parse((await open.run('connect --json')).out);
  const kinds = integrations.map(({ kind }: { kind: string }) => kind);
  assert.equal([kinds.includes('cursor'), kinds.includes('curl')], [true, false]);
  const cursor = integrations.find(({ kind }: { kind: string }) => kind === 'cursor');
  assert.equal(cursor.args.slice(1), ['bridge', '--url', open.url]);
});

test('warns where the prefix of a client makes the names of tools too long', async () => {
  const { err, code } = await open.run('connect long --llm claude-code --http --verify');
  assert.is(code, 0);
  assert.match(
    err,
    `with the prefix of Claude Code these tools have more than 64 characters: ${LONG}; a view`,
  );
  assert.not.match((await open.run('connect long --llm cursor --http --verify')).err, 'characters');
});

test('refuses unknown names and incompatible options', async () => {
  const cases: [string, number, RegExp][] = [
    ['weather --llm claud-code', 2, /not "claud-code"; did you mean "claude-code"\?$/],
    ['--llm curl', 2, /curl calls the tools of one template: name it$/],
    ['weather --llm emacs', 2, /--llm must be one of claude, claude-code, .*curl.*, not "emacs"/],
    ['wether', 1, /template "wether" not found; did you mean "weather"\?$/],
    ['weather --http --stdio', 2, /--stdio cannot be combined with --http/],
    ['weather --llm curl --stdio', 2, /curl cannot use --stdio/],
    ['weather --http --env A=b', 2, /--env KEY=VALUE cannot be combined with --http/],
    ['weather --env A=1 --env A=2', 2, /--env A can be given only once/],
    ['weather --env 1A=b', 2, /--env must be KEY=VALUE, not "1A=b"/],
    ['weather --key ä', 2, /--key is not an API key/],
  ];
  for (const [words, code, message] of cases) {
    const lines = (await complaint(connect(words), code)).split('\n');
    assert.match(lines.at(-1) ?? '', message);
  }
});

test('works with a key that has only the scope tools:call', async () => {
  const env = { STAGEDOOR_API_KEY: await gateway.newKey('tools:call') };
  const known = await gateway.runAt({ env }, 'connect own --llm vscode');
  assert.is(known.code, 0, known.err);
  assert.match(known.out, '"bridge"');
  const unknown = await gateway.runAt({ env }, 'connect nobody');
  assert.match(unknown.err, 'No template named "nobody" is registered (TEMPLATE_NOT_FOUND)');
});

test.run();
