// What a program gets that listens at the address of a gateway: no key, no token, and no command of it is run or written.

import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { requestCredentials } from '../../../src/cli/accounts/request-credentials.ts';
import { GatewayLink } from '../../../src/cli/bridge/gateway-link.ts';
import { CommandFailure } from '../../../src/cli/failures.ts';
import { findGateway } from '../../../src/cli/remote/find-gateway.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { rejects } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { recordingTerminal } from '../recording-terminal.ts';
import {
  ADMIN_PASSWORD,
  gatewayFor,
  HANDLER,
  runAtTerminal,
  serverFor,
  startGateway,
} from './against-gateway.ts';

const test = suite('a program at the address of a gateway');
const folder = folderOfEach(test);
const gateway = gatewayFor(test, { withAccounts: true }, ({ server }) =>
  server.gateway.register('weather', { id: 'one', handler: HANDLER }),
);
const serve = serverFor(test);
const UNPROVEN =
  /^stagedoor: http:\/\/127\.0\.0\.\d:\d+ did not prove that it knows (the API key (\w+ )?in STAGEDOOR_API_KEY|the login of admin), which was not sent: .*--trust$/m;

const run = (line: string, env: Record<string, string>, stdin?: string) =>
  runAtTerminal(line.split(' '), {
    env: { XDG_CONFIG_HOME: folder(), APPDATA: folder(), PATH: process.env.PATH ?? '', ...env },
    folder: folder(),
    ...(stdin === undefined ? {} : { line: stdin }),
  });

/** Forwards everything to the gateway, and records the credentials and paths that it gets. */
async function relay(address = '127.0.0.1', port = 0) {
  const [paths, secrets]: [string[], unknown[]] = [[], []];
  const server = createServer((incoming, response) => {
    paths.push(String(incoming.url));
    secrets.push(...secretsOf(incoming));
    const { method, headers } = incoming;
    const to = request(`${gateway.url}${incoming.url}`, { method: String(method), headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(to);
  }).listen(port, address);
  await once(server, 'listening');
  const url = `http://${address}:${(server.address() as AddressInfo).port}`;
  return { url, paths, secrets, close: () => server.close().closeAllConnections() };
}

function secretsOf({ headers }: IncomingMessage): unknown[] {
  return [headers['x-api-key'], headers.authorization].filter((value) => value !== undefined);
}

test('gets no key when it relays to the gateway, from another port or another address', async () => {
  const STAGEDOOR_API_KEY = await gateway.newKey('admin');
  const own = await run('instance list', { STAGEDOOR_URL: gateway.url, STAGEDOOR_API_KEY });
  assert.is(own.code, 0, own.err);
  const port = Number(new URL(gateway.url).port);
  const others = process.platform === 'linux' ? [{ address: '127.0.0.2', port }] : [];
  const addresses = [{ address: '127.0.0.1', port: 0 }, ...others];
  for (const { address, port } of addresses) {
    const between = await relay(address, port);
    try {
      for (const line of ['instance list', 'gateway stats', 'user list', 'connect weather --verify']) {
        const { code, err } = await run(line, { STAGEDOOR_URL: between.url, STAGEDOOR_API_KEY });
        assert.is(code, 1, line);
        assert.match(err, UNPROVEN, line);
      }
      assert.equal(between.secrets, []);
      assert.ok(between.paths.includes('/auth/proof'));
    } finally {
      between.close();
    }
  }
});

test('gets no token, neither a relay nor a gateway of which the token does not say how to check it', async () => {
  const between = await relay();
  const login = await run('gateway login admin --password -', { STAGEDOOR_URL: gateway.url }, ADMIN_PASSWORD);
  assert.is(login.code, 0, login.err);
  const path = folder('stagedoor', 'credentials.json');
  const { tokens } = JSON.parse(readFileSync(path, 'utf8'));
  const [token] = Object.values(tokens) as [Record<string, unknown>];
  assert.is((await run('user list', { STAGEDOOR_URL: gateway.url })).code, 0);
  writeFileSync(path, JSON.stringify({ tokens: { [between.url]: token } }));
  const { err: proxied } = await run('user list', { STAGEDOOR_URL: between.url });
  assert.match(proxied, UNPROVEN);
  assert.match(proxied, 'a proxy or a mapped port may be in between');
  const { proof_secret, ...earlier } = token;
  assert.type(proof_secret, 'string');
  writeFileSync(path, JSON.stringify({ tokens: { [gateway.url]: earlier, [between.url]: token } }));
  assert.match((await run('user list', { STAGEDOOR_URL: gateway.url })).err, UNPROVEN);
  const logout = await run(`gateway logout --url ${between.url}`, {});
  assert.match(
    logout.err,
    /the token was not ended at .* did not prove .* the login of admin, .* "npx stagedoor gateway login <name> --url http:\S+"\)/,
  );
  assert.equal(between.secrets, []);
  between.close();
});

test('is asked for the health of the gateway without credentials', async () => {
  const between = await relay();
  const env = { STAGEDOOR_URL: between.url, STAGEDOOR_API_KEY: await gateway.newKey('admin') };
  const { code, out, err } = await run('gateway status', env);
  assert.is(code, 0, err);
  assert.match(out, /^status +healthy$/m);
  assert.match(err, /^only its health is shown: http\S+ did not prove that it knows the API key /);
  assert.is((await run('gateway health', env)).code, 0);
  assert.equal(between.secrets, []);
  between.close();
});

test('names no other address that is written, or gets a password, unread', async () => {
  const address = 'https://else.example/mcp';
  const url = await serve(({ url: path = '' }, response) => {
    const isDocument = path.startsWith('/.well-known/oauth-protected-resource');
    const document = { resource: address, authorization_servers: ['https://else.example'] };
    response.end(JSON.stringify(isDocument ? document : { status: 'healthy', build: '1' }));
  });
  const file = folder('mcp.json');
  const line = `connect --llm vscode --url ${url}`;
  for (const [more, stdin] of [
    [`--write --yes --file ${file}`],
    ['--verify --user ada --password -', 'a password'],
  ] as const) {
    const { code, err } = await run(`${line} ${more}`, {}, stdin);
    assert.is(code, 1, more);
    assert.match(err, `${url} names ${address} as its address, which is another one`);
  }
  assert.not.ok(existsSync(file));
  assert.is((await run(`${line} --write --yes --file ${file} --trust`, {})).code, 0);
  assert.match(readFileSync(file, 'utf8'), address);
});

test('fails the command when it switches to another protocol', async () => {
  const url = await serve((_, response) => {
    response.socket?.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n');
  });
  const STAGEDOOR_API_KEY = await gateway.newKey('admin');
  const { code, err } = await run('instance list', { STAGEDOOR_URL: url, STAGEDOOR_API_KEY });
  assert.is(code, 1);
  assert.match(err, 'the connection was closed');
});

test('gets neither a key nor a start of its program, whatever it answers', async () => {
  const mark = folder('mark');
  const script = folder('evil.cjs');
  writeFileSync(script, `require('node:fs').writeFileSync(${JSON.stringify(mark)}, '')`);
  const record = { transport: 'stdio', command: process.execPath, args: [script], env_vars: {} };
  const secrets: unknown[] = [];
  for (const proof of ['0'.repeat(64), undefined, 404]) {
    const url = await serve((incoming, response) => {
      secrets.push(...secretsOf(incoming));
      const status = incoming.url === '/auth/proof' && proof === 404 ? 404 : 200;
      const templates = { weather: { instances: [record] } };
      response
        .writeHead(status, { 'Content-Type': 'application/json' })
        .end(JSON.stringify({ proof, templates, environment: [], tools: [], build: '1', status: 'healthy' }));
    });
    const keys = [
      {},
      { STAGEDOOR_API_KEY: await gateway.newKey('admin') },
      { STAGEDOOR_API_KEY: 'of another form' },
    ];
    const file = folder('mcp.json');
    for (const key of keys)
      for (const words of ['--verify', `--write --yes --file ${file}`]) {
        const { code, err } = await run(`connect weather --llm cursor ${words}`, {
          STAGEDOOR_URL: url,
          ...key,
        });
        if ('STAGEDOOR_API_KEY' in key) {
          assert.is(code, 1, err);
          const isKey = key.STAGEDOOR_API_KEY?.startsWith('sd_') === true;
          assert.match(err, isKey ? UNPROVEN : /was not sent to \S+: it does not have the form of a key, /);
        } else assert.match(err, 'is named by http://', `${proof} ${words}`);
      }
    assert.not.match(readFileSync(file, 'utf8'), 'evil.cjs');
    assert.is(existsSync(mark), false);
  }
  assert.equal(secrets, []);
});

test('gets no key from the bridge', async () => {
  const between = await relay();
  const env = { XDG_CONFIG_HOME: folder(), STAGEDOOR_API_KEY: await gateway.newKey('tools:call') };
  const ask = { method: 'POST', headers: {}, body: '{}', isRepeatable: false } as const;
  const send = (url: string) =>
    new GatewayLink(
      `${url}/mcp/weather`,
      () => requestCredentials(url, { env, folder: folder() }),
      () => {},
    ).send({
      ...ask,
      signal: AbortSignal.timeout(5_000),
    });
  await rejects(send(between.url), Error, /did not prove that it knows the API key \w+ in STAGEDOOR_API_KEY/);
  assert.equal(between.secrets, []);
  assert.not.equal((await send(gateway.url)).status, 401);
  between.close();
});

test('gets no key a second after the gateway that was there before has ended', async () => {
  const other = await startGateway({ withAccounts: true });
  const env = { XDG_CONFIG_HOME: folder(), STAGEDOOR_API_KEY: await other.newKey('admin') };
  const terminal = recordingTerminal({ env, folder: folder() });
  const remote = await findGateway(other.url, terminal);
  const link = new GatewayLink(
    `${other.url}/mcp/x`,
    () => requestCredentials(other.url, { env, folder: folder() }),
    () => {},
    50,
  );
  const ask = { method: 'POST', headers: {}, body: '{}', isRepeatable: false } as const;
  await remote?.request('/servers');
  await link.send({ ...ask, signal: AbortSignal.timeout(5_000) });
  await other.close();
  const secrets: unknown[] = [];
  await serve(
    (incoming, response) => {
      secrets.push(...secretsOf(incoming));
      response.end('{}');
    },
    Number(new URL(other.url).port),
  );
  const now = mock.method(performance, 'now', () => Number.MAX_SAFE_INTEGER);
  try {
    await rejects(remote?.request('/servers') ?? Promise.resolve(), CommandFailure, /did not prove/);
    await rejects(
      remote?.follow('/events', {}, () => {}) ?? Promise.resolve(),
      CommandFailure,
      /did not prove/,
    );
    await rejects(link.send({ ...ask, signal: AbortSignal.timeout(5_000) }), CommandFailure, /did not prove/);
  } finally {
    now.mock.restore();
  }
  assert.equal(secrets, []);
});

test('gets the key with --trust, and from then on without, until a logout', async () => {
  const between = await relay();
  const key = await gateway.newKey('admin');
  const list = (more = '') =>
    run(`instance list${more}`, { STAGEDOOR_URL: between.url, STAGEDOOR_API_KEY: key });
  assert.is((await list()).code, 1);
  const trusting = await list(' --trust');
  assert.equal([trusting.code, trusting.err.includes('now gets keys and tokens without a proof')], [0, true]);
  const later = await list();
  assert.equal([later.code, later.err], [0, '']);
  assert.equal(new Set(between.secrets), new Set([key]));
  await run(`gateway logout --url ${between.url}`, {});
  assert.match((await list()).err, UNPROVEN);
  between.close();
});

test.run();
