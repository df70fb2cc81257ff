// The findings of `stagedoor doctor` on machines with problems.

import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import * as assert from 'uvu/assert';
import { folderOfEach } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { gatewayFor, runCommand, serverFor } from './against-gateway.ts';

const test = suite('doctor');

const folder = folderOfEach(test);
const serve = serverFor(test);
const gateway = gatewayFor(test);
const onPosix = test.needs(process.platform !== 'win32', 'Windows has no permissions by mode');

interface Seen {
  readonly check: string;
  readonly status: string;
  readonly text: string;
  readonly advice: string | null;
}

/** Nothing listens at that address, so that no gateway of this machine answers. */
const ENV = { STAGEDOOR_URL: 'http://127.0.0.1:2', PATH: process.env.PATH ?? '', MCP_GATEWAY_PORT: '0' };

/** The checks in the folder, and the exit code. */
async function examined(words: readonly string[] = [], env: Record<string, string> = {}) {
  const variables = { ...ENV, XDG_CONFIG_HOME: folder(), ...env };
  const { code, out } = await runCommand(['doctor', ...words, '--json'], variables, folder());
  const { ok, checks } = JSON.parse(out) as { ok: boolean; checks: readonly Seen[] };
  assert.is(code, ok ? 0 : 1);
  const of = (name: string) => checks.filter(({ check }) => check === name);
  return { code, checks, of };
}

test('finds no problem in an empty folder', async () => {
  const { code, checks } = await examined();
  assert.equal(
    checks.map(({ check, status }) => `${check} ${status}`),
    [
      'node',
      'settings',
      'database',
      'redis',
      'ports',
      'tls',
      'sign-in',
      'files',
      'templates',
      'proxy',
      'origins',
      'clock',
      'instances',
      'lists',
      'nodes',
      'roles',
      'views',
    ].map((check) => `${check} ok`),
  );
  assert.ok(checks.every(({ advice }) => advice === null));
  assert.is(code, 0);
});

test('shows a line for each check, with advice', async () => {
  const env = { ...ENV, HTTP_PROXY: 'http://proxy:3128' };
  const { code, out } = await runCommand(['doctor', '--database', 'memory://'], env, folder());
  assert.is(code, 0);
  assert.match(out, /^ok {4}node {7}v\d+\.\d+\.\d+, /m);
  assert.match(out, /^warn {2}proxy {6}HTTP_PROXY: [^\n]+\n {17}set NO_PROXY=localhost,127\.0\.0\.1$/m);
});

test('fails for invalid settings, one line each', async () => {
  writeFileSync(folder('gateway.yaml'), 'grace_seconds: soon\nlog_level: loud\n');
  const { code, checks } = await examined();
  const found = [code, checks.map(({ check, status }) => `${check} ${status}`)];
  assert.equal(found, [1, ['node ok', 'settings fail', 'settings fail']]);
  assert.match(checks[1]?.advice ?? '', 'stagedoor config');
});

test('names the instances of a running gateway that get no calls, ten of them', async () => {
  const instances = [
    { template_name: 't', id: 'good', state: 'healthy' },
    { template_name: 't', id: 'down', state: 'unhealthy', reason: 'connection refused.' },
    { template_name: 't', id: 'slow', state: 'healthy', ejection: { reason: 'its calls fail' } },
    ...Array.from({ length: 12 }, (_, index) => ({ template_name: 't', id: `s${index}`, state: 'starting' })),
  ];
  const url = await serve((request, answer) => {
    answer.setHeader('Content-Type', 'application/json');
    const registry = { templates: { t: { instances } } };
    answer.end(JSON.stringify(request.url === '/gateway/registry' ? registry : { build: '1' }));
  });
  const found = (await examined([], { STAGEDOOR_URL: url })).of('instances');
  const texts = found.map(({ status, text }) => `${status} ${text}`);
  assert.equal(texts.slice(0, 3), [
    'warn t/down is unhealthy: connection refused',
    'warn t/slow is ejected: its calls fail',
    'warn t/s0 is starting',
  ]);
  assert.equal(texts.slice(10), ['warn and 4 other instances not healthy']);
});

test('asks the gateway that --url names, and not that of STAGEDOOR_URL', async () => {
  const url = await serve((_, answer) => {
    answer.setHeader('Content-Type', 'application/json').end(JSON.stringify({ build: '1', templates: {} }));
  });
  const { of } = await examined(['--url', url]);
  for (const check of ['clock', 'instances', 'lists', 'views'])
    assert.match(String(of(check)[0]?.text), url, check);
  assert.match((await runCommand(['doctor', '--url', 'x'], ENV, folder())).err, '--url must be a URL');
});

test('names the items that a running gateway withholds at /mcp', async () => {
  const item = { list: 'tools', name: 'tools[2]', reason: 'its name is empty' };
  const registry = { templates: { good: { instances: [] }, odd: { instances: [], withheld: [item] } } };
  const url = await serve((request, answer) => {
    answer.setHeader('Content-Type', 'application/json');
    answer.end(JSON.stringify(request.url === '/gateway/registry' ? registry : { build: '1' }));
  });
  const { code, of } = await examined([], { STAGEDOOR_URL: url });
  const found = of('lists').map(({ status, text }) => [status, text]);
  assert.equal(found, [['warn', 'odd: tools[2] is withheld from the tools at /mcp: its name is empty']]);
  assert.is(code, 0);
});

test('names the tools that wait for approval, and how they get it', async () => {
  const reason = 'its definition has changed since it was approved';
  const withheld = [{ list: 'tools', name: 'greet', reason }];
  const url = await serve((request, answer) => {
    answer.setHeader('Content-Type', 'application/json');
    const registry = { templates: { pinned: { instances: [], withheld } } };
    answer.end(JSON.stringify(request.url === '/gateway/registry' ? registry : { build: '1' }));
  });
  const [found] = (await examined([], { STAGEDOOR_URL: url })).of('lists');
  assert.is(found?.text, `pinned: greet is withheld: ${reason}`);
  assert.match(
    found?.advice ?? '',
    /template tools pinned" shows it, "[^"]*template approve pinned" approves it/,
  );
});

test('names what the nodes should have in common', async () => {
  const line =
    'the node "c" has another secret than this one, and is not a member: set the same GATEWAY_SECRET_KEY';
  const version = 'the node "d" has version 2 and protocol 2, this one 1 and protocol 1: it is not a member';
  const warnings = [line, version, 'the setting sessions.max of the node "b" is not that of this node'];
  const url = await serve((request, answer) => {
    answer.setHeader('Content-Type', 'application/json');
    answer.end(JSON.stringify(request.url === '/gateway/nodes' ? { nodes: [], warnings } : { build: '1' }));
  });
  const { code, of } = await examined([], { STAGEDOOR_URL: url });
  assert.equal(
    of('nodes').map(({ status, text }) => [status, text]),
    warnings.map((warning) => ['warn', warning]),
  );
  assert.is(code, 0);
});

test('names the problems of views of a running gateway', async () => {
  const message = 'The glob "x_*" matches none of the tools of files.';
  const problems = [{ code: 'glob_unmet', template: 'files', tool: '', message }];
  const views = [
    { id: 'good', problems: [] },
    { id: 'desk', problems },
  ];
  const url = await serve((request, answer) => {
    answer.setHeader('Content-Type', 'application/json');
    answer.end(JSON.stringify(request.url === '/gateway/views' ? { views } : { build: '1' }));
  });
  const { code, of } = await examined([], { STAGEDOOR_URL: url });
  assert.equal(
    of('views').map(({ status, text }) => [status, text]),
    [['warn', `desk: ${message}`]],
  );
  assert.is(code, 0);
});

test('warns that lists are not checked when the gateway does not show its templates', async () => {
  const refusal = { detail: 'Authentication required.', error_code: 'AUTHENTICATION_REQUIRED' };
  const url = await serve((request, answer) => {
    const isRefused = request.url === '/gateway/registry';
    answer.writeHead(isRefused ? 401 : 200, { 'Content-Type': 'application/json' });
    answer.end(JSON.stringify(isRefused ? refusal : { build: '1' }));
  });
  const [found, ...others] = (await examined([], { STAGEDOOR_URL: url })).of('lists');
  assert.equal([found?.status, others], ['warn', []]);
  assert.match(found?.text ?? '', /^not checked, since http.* does not show its templates: /);
  assert.match(found?.advice ?? '', 'gateway login');
});

test('says of a program on a port that does not answer that it may be a busy gateway', async () => {
  const { port } = new URL(await serve(() => undefined));
  const words = ['--host', '127.0.0.1', '--port', port, '--database', 'memory://'];
  const { of } = await examined(words, { STAGEDOOR_URL: gateway.url });
  const [found] = of('ports');
  assert.equal(
    [found?.status, found?.text],
    ['fail', `127.0.0.1:${port} is used by a program that did not answer within 2 s`],
  );
  assert.match(found?.advice ?? '', 'it may be a gateway that is busy');
});

test('distinguishes a port that another program uses from one that a gateway uses', async () => {
  let sentBytes = 0;
  function* endless() {
    for (; ; sentBytes += 65_536) yield Buffer.alloc(65_536, ' ');
  }
  const other = new URL(await serve((_request, response) => Readable.from(endless()).pipe(response))).port;
  const running = new URL(gateway.url).port;
  const env = { MCP_GATEWAY_PORT: other, GATEWAY_PORT: running, STAGEDOOR_URL: gateway.url };
  const { port } = new URL(await serve((_request, answer) => answer.end('# HELP stagedoor_a')));
  const words = ['--host', '127.0.0.1', '--database', 'memory://', '--metrics-port', port];
  const { code, of } = await examined(words, env);
  const found = of('ports').map(({ status, text }) => [status, text]);
  assert.equal(found, [
    ['fail', `127.0.0.1:${other} is used by another program`],
    ['ok', `127.0.0.1:${running} is used by a gateway that is running`],
    ['ok', `127.0.0.1:${port} is used by a gateway that is running`],
  ]);
  assert.is(of('clock')[0]?.text, `the same as at ${gateway.url}`);
  assert.ok(sentBytes < 16_000_000, `${sentBytes} bytes of the other program were read`);
  assert.is(code, 1);
});

test('fails for a broken or unreachable database, and shows a usable one', async () => {
  writeFileSync(folder('gateway.db'), 'this is not a database, whatever its name says. '.repeat(100), {
    mode: 0o600,
  });
  const broken = (await examined()).of('database');
  assert.equal([broken[0]?.status, broken[0]?.advice, broken.length], ['fail', null, 1]);
  rmSync(folder('gateway.db'));
  await runCommand(['db', 'migrate'], {}, folder());
  const [usable] = (await examined()).of('database');
  assert.equal([usable?.status, usable?.text.endsWith('gateway.db: migrated')], ['ok', true]);
  const [away] = (await examined(['--database', 'postgresql://127.0.0.1:2/none'])).of('database');
  assert.is(away?.status, 'fail');
  assert.match(away?.text ?? '', 'postgresql://127.0.0.1:2/none');
});

test('says why Redis does not answer, and shows no password', async () => {
  const { of } = await examined([], { GATEWAY_REDIS_URL: 'redis://user:hidden@127.0.0.1:2/0' });
  const [found] = of('redis');
  assert.is(found?.status, 'warn');
  assert.is(found?.text, 'Redis at 127.0.0.1:2: ECONNREFUSED');
  assert.match(found?.advice ?? '', /^start it, or correct redis_url/);
});

test('fails for a registry file that a start refuses, and warns of entries that it would leave out', async () => {
  const found = async () => (await examined(['--registry-file', 'registry.json'])).of('files').at(-1);
  assert.match((await found())?.text ?? '', /^registry file \S+: there is no such file$/);
  writeFileSync(folder('registry.json'), '{"servers":{"a":{}}}');
  assert.is((await found())?.status, 'warn');
  writeFileSync(folder('registry.json'), '{}');
  assert.is((await found())?.status, 'ok');
});

onPosix('reports files and folders with secrets that other users can read or write', async () => {
  await runCommand(['db', 'migrate'], {}, folder());
  writeFileSync(folder('gateway.key'), `${'a'.repeat(64)}\n`, { mode: 0o644 });
  chmodSync(folder('gateway.key'), 0o644);
  chmodSync(folder('gateway.db'), 0o644);
  chmodSync(folder(), 0o777);
  mkdirSync(folder('stagedoor'));
  writeFileSync(folder('stagedoor', 'credentials.json'), '{}');
  chmodSync(folder('stagedoor', 'credentials.json'), 0o640);
  const { of } = await examined();
  const advice = of('files').map(({ status, advice }) => [status, advice]);
  assert.equal(advice, [
    ['fail', `chmod go-w ${folder()}`],
    ['fail', `chmod 600 ${folder('gateway.key')}`],
    ['warn', `chmod 600 ${folder('stagedoor', 'credentials.json')}`],
  ]);
  assert.ok(of('database').some(({ text }) => text.endsWith(`"chmod 600 ${folder('gateway.db')}"`)));
});

test('warns of templates that are invalid, or whose program or Node version is missing', async () => {
  const facts = { name: 'A', description: 'A server.', version: '1.0.0' };
  const templates = {
    absent: { ...facts, id: 'absent', command: 'no-such-program --now' },
    old: { ...facts, id: 'old', command: 'node x.js', requires: ['node>=99'] },
    fine: { ...facts, id: 'fine', command: 'node x.js' },
    broken: { id: 'broken' },
  };
  for (const [id, template] of Object.entries(templates)) {
    mkdirSync(folder('templates', id), { recursive: true });
    writeFileSync(folder('templates', id, 'template.json'), JSON.stringify(template));
  }
  const { code, of } = await examined(['--templates-dir', folder('templates')]);
  const texts = of('templates').map(({ status, text }) => `${status} ${text}`);
  assert.match(texts.join('\n'), 'warn absent: there is no program "no-such-program" in PATH');
  assert.match(texts.join('\n'), /^warn old: its template requires node>=99, and /m);
  assert.match(texts.join('\n'), /^warn broken\/template\.json: /m);
  assert.not.match(texts.join('\n'), 'fine');
  assert.is(code, 0);
});

test('warns of proxy variables without NO_PROXY for loopback, and shows no credentials', async () => {
  const env = { HTTPS_PROXY: 'http://user:secret@proxy:3128', no_proxy: 'example.com, localhost' };
  const { of, checks } = await examined([], env);
  const [proxy, ...others] = of('proxy');
  assert.equal([proxy?.status, others], ['warn', []]);
  assert.match(proxy?.advice ?? '', 'stdio.pass_env');
  assert.not.match(JSON.stringify(checks), 'secret');
  const fine = await examined([], { http_proxy: 'http://proxy:3128', NO_PROXY: '127.0.0.1' });
  assert.is(fine.of('proxy')[0]?.status, 'ok');
});

test('tries public_url, and says what answers there', async () => {
  const about = { resource: '' };
  const url = await serve((request, answer) => {
    answer.setHeader('Content-Type', 'application/json');
    answer.end(JSON.stringify(request.url?.startsWith('/.well-known/') === true ? about : { build: '1' }));
  });
  const found = async (env: Record<string, string>) =>
    (await examined([], env)).of('sign-in').map(({ status, text }) => `${status} ${text}`);
  const there = { MCP_GATEWAY_PORT: new URL(url).port, GATEWAY_PUBLIC_URL: url };
  const other = `warn public_url ${url} answers 200, and not as a gateway with this address`;
  assert.equal(await found(there), [other]);
  about.resource = url;
  assert.equal(await found(there), [`ok at ${url}, which answers as this gateway`]);
  const nowhere = { GATEWAY_PUBLIC_URL: 'http://127.0.0.1:2' };
  const [running] = await found({ ...there, ...nowhere });
  assert.match(running ?? '', /^warn public_url http:\/\/127\.0\.0\.1:2 does not answer here: /);
  assert.equal(await found(nowhere), ['ok at http://127.0.0.1:2; not tried, since the gateway does not run']);
});

test('asks identity providers whether they know the gateway, and compares issuer and clock', async () => {
  const provider = { issuer: '', lateMs: 0, known: 'stagedoor', asked: '' };
  const url = await serve((request, answer) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://provider');
    if (pathname === '/authorize') {
      provider.asked = searchParams.get('redirect_uri') ?? '';
      const isKnown = searchParams.get('client_id') === provider.known;
      answer.writeHead(isKnown ? 302 : 400, { Location: `${provider.asked}?error=login_required` }).end();
      return;
    }
    answer.setHeader('Date', new Date(Date.now() + provider.lateMs).toUTCString());
    const { issuer } = provider;
    answer.end(JSON.stringify({ issuer, authorization_endpoint: `${url}/authorize` }));
  });
  const setting = { issuer: url, client_id: 'stagedoor', client_secret: 'any', label: 'Example Corp' };
  const found = async (more: object = {}) => {
    const providers = JSON.stringify([{ ...setting, everyone: { role: 'user' }, ...more }]);
    const env = { GATEWAY_PUBLIC_URL: 'https://gateway.example.com', GATEWAY_AUTH_PROVIDERS: providers };
    const [, ...others] = (await examined([], env)).of('sign-in');
    return others.map(({ status, text }) => `${status} ${text.replace(`Example Corp (${url})`, 'it')}`);
  };
  provider.issuer = `${url}/other`;
  assert.equal(await found(), [`fail it names itself ${url}/other`]);
  // The same URL, with which sign-ins work; identity assertions compare the texts.
  provider.issuer = `${url}/`;
  assert.equal(await found(), ['ok it knows this gateway as stagedoor']);
  assert.equal(await found({ id_jag: true }), [`fail it names itself ${url}/`]);
  provider.issuer = url;
  assert.equal(await found(), ['ok it knows this gateway as stagedoor']);
  const redirectUri = `https://gateway.example.com/oauth/callback/${new URL(url).host.replace(':', '-')}`;
  assert.is(provider.asked, redirectUri);
  provider.lateMs = 300_000;
  provider.known = 'another';
  const [clock = '', client] = await found();
  assert.match(clock, /^warn the clock of it is (299|300) s ahead of this one$/);
  assert.is(
    client,
    `warn it does not know the client stagedoor with the redirect URI ${redirectUri} (it answers 400)`,
  );
  const [away = ''] = await found({ issuer: 'http://127.0.0.1:2' });
  assert.match(away, /^warn Example Corp \(http:\/\/127\.0\.0\.1:2\) cannot be reached: /);
});

test('reads the keys of other issuers as a request with a token does, also while the own sign-in is off', async () => {
  let metadata: object = {};
  const url = await serve((request, answer) =>
    answer.end(JSON.stringify(request.url === '/keys' ? { keys: [] } : metadata)),
  );
  metadata = { issuer: url, jwks_uri: `${url}/keys` };
  const found = async (issuer: string, more: Record<string, string> = {}) => {
    const issuers = JSON.stringify([{ issuer, audience: 'a', roles: { staff: { role: 'user' } } }]);
    const env = { GATEWAY_PUBLIC_URL: 'https://gateway.example.com', GATEWAY_AUTH_ISSUERS: issuers, ...more };
    const [first, ...others] = (await examined([], env)).of('sign-in');
    assert.is(first?.text === 'off: auth.oauth is false', more.GATEWAY_OAUTH === 'false');
    return others.map(({ status, text }) => `${status} ${text}`);
  };
  assert.equal(await found(url), [`ok the keys of the issuer ${url} can be read`]);
  const fault = (issuer: string, reason: string) =>
    `warn the keys of the issuer ${issuer} (auth.issuers) cannot be read: ${reason}`;
  assert.equal(await found(`${url}/`, { GATEWAY_OAUTH: 'false' }), [
    fault(`${url}/`, 'its metadata names another issuer'),
  ]);
  const [away = ''] = await found('http://127.0.0.1:2');
  assert.match(away, fault('http://127.0.0.1:2', 'its server '));
});

test('warns when the clock of a gateway differs', async () => {
  const url = await serve((_request, response) => {
    response.setHeader('date', new Date(Date.now() - 3_600_000).toUTCString());
    response.end('{"status":"healthy","build":"1"}');
  });
  const { of } = await examined([], { STAGEDOOR_URL: url });
  const [clock] = of('clock');
  assert.is(clock?.status, 'warn');
  assert.match(clock?.text ?? '', /^the clock of \S+ is 3\d\d\d s behind this one$/);
});

test.run();
