// The HTTP client of the commands, against real sockets.

import type { RequestListener, ServerResponse } from 'node:http';
import * as assert from 'uvu/assert';
import { trustUrl } from '../../../src/cli/accounts/stored-tokens.ts';
import { DEFAULT_URLS, filesIn, writeDaemon } from '../../../src/cli/background/daemon-files.ts';
import { CommandInput } from '../../../src/cli/command.ts';
import { CommandFailure, GatewayRefusal, UsageError } from '../../../src/cli/failures.ts';
import { answeringUrl, answerOfGateway } from '../../../src/cli/remote/answering-url.ts';
import { findGateway as find, requireGateway } from '../../../src/cli/remote/find-gateway.ts';
import { pagedEntries } from '../../../src/cli/remote/paged-entries.ts';
import { type Remote, StreamBroken } from '../../../src/cli/remote/remote.ts';
import { lockFile } from '../../../src/persistence/file-lock.ts';
import { credentialsPath } from '../../../src/templates/command-exposure.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { fetchFor } from '../../helpers/network/replaced-fetch.ts';
import { messageOf, rejects } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { serverFor } from '../commands/against-gateway.ts';
import { recordingTerminal } from '../recording-terminal.ts';

const test = suite('remote');
const folder = folderOfEach(test);
const serve = serverFor(test);
const replaceFetch = fetchFor(test);

test('shows only the beginning of a very long refusal', async () => {
  const long = await serveJson(400, { detail: 'x'.repeat(1_000_000), error_code: 'y'.repeat(1_000_000) });
  const remote = await findGateway(long);
  await rejects(remote.request('/x'), CommandFailure, /^x{32768} \(y{128}\)$/);
});

test('fails with one line that names the cause', async () => {
  const page = await serve((_, response) => void response.end('<html>'));
  const redirect = await serve((_, response) => void response.writeHead(302, { Location: '/y' }).end());
  const levels = 100_000;
  const nested = `{"status":${'['.repeat(levels)}${']'.repeat(levels)}}`;
  const deep = await serve((_, response) => void response.end(nested));
  const closed = `http://127.0.0.1:${await freePort()}`;
  const silent = await serve(() => {});
  const detail = [
    { loc: ['body', 'instance', 'weight'], msg: 'too large', type: 'x' },
    { loc: ['body', 'instance', 'id'], msg: 'too long', type: 'x' },
  ];
  const invalid = await serveJson(422, { detail, error_code: 'VALIDATION_ERROR' });
  const unknown = { detail: 'No template named "x".', error_code: 'TEMPLATE_NOT_FOUND', request_id: 'r-1' };
  const cases: [string, RegExp][] = [
    [await serveJson(404, unknown), /^No template named "x" \(TEMPLATE_NOT_FOUND\)$/],
    [invalid, /^body\.instance\.weight: too large; body\.instance\.id: too long \(VALIDATION_ERROR\)$/],
    [await serveJson(400, { detail: 'no\r\nok: done.', error_code: 'A\n\u202eB' }), /^no ok: done \(A B\)$/],
    [deep, /^the answer of http:\S+ \(status 200\) has more than 1000 levels$/],
    [page, /is not a gateway: its answer \(status 200\) is not JSON$/],
    [redirect, /cannot be reached: unexpected redirect$/],
    [page.replace('http:', 'https:'), / does not speak HTTPS; name it as http:\S+$/],
    [closed, /^nothing listens at http:\S+; start a gateway with "npx stagedoor gateway start"/],
    [silent, /did not answer within 0.2 s$/],
    ['http://127.0.0.1:9', /cannot be reached: bad port$/],
  ];
  for (const [url, message] of cases) {
    const remote = await findGateway(url);
    await rejects(remote.request('/x', url === silent ? { timeoutMs: 200 } : {}), CommandFailure, message);
  }
  await rejects(findGateway('localhost:8080'), UsageError, /^--url must be a URL/);
  await rejects(findGateway(undefined, { STAGEDOOR_URL: 'x' }), UsageError, /^STAGEDOOR_URL must be a URL/);
  replaceFetch(() => Promise.reject(new TypeError('fetch failed')));
  await rejects(findGateway(), CommandFailure, /^no gateway answers at .*gateway start/);
});

test('an answer without end fails while it is still small', async () => {
  const endless = await serve((_, response) => {
    const part = Buffer.alloc(1024 * 1024, 'a');
    const fill = () => {
      while (!response.destroyed && response.write(part));
    };
    response.on('drain', fill);
    fill();
  });
  const remote = await findGateway(endless);
  await rejects(remote.request('/x'), CommandFailure, /sent more than 128 MiB in one answer$/);
  await rejects(
    remote.follow('/x', {}, () => {}),
    CommandFailure,
    /sent more than 128 MiB in one answer$/,
  );
});

test('a stream that has to end does not go on without end', async () => {
  const event = `data: "${'a'.repeat(1024 * 1024)}"\n\n`;
  const endless = await serve((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const fill = () => {
      while (!response.destroyed && response.write(event));
    };
    response.on('drain', fill);
    fill();
  });
  const remote = await findGateway(endless);
  let events = 0;
  const count = () => {
    events += 1;
  };
  await rejects(remote.follow('/x', {}, count), CommandFailure, /sent more than 128 MiB in one answer$/);
  assert.is(events, 127);
  const ending = new AbortController();
  await remote.follow('/x', { signal: ending.signal }, () => {
    count();
    if (events === 260) ending.abort();
  });
  assert.ok(events >= 260);
  const late = remote.follow('/x', { longestMs: 0 }, () => {});
  await rejects(late, CommandFailure, /took more than 0 s for one answer$/);
});

test('an answer of more than ten million values is not read, however small they are', async () => {
  const values = 10_000_001;
  const texts = [
    `[${'{},'.repeat(values)}{}]`,
    '['.repeat(values) + ']'.repeat(values),
    `{"text":"${',[\\"'.repeat(values / 3)}"}`,
  ];
  const remote = await findGateway(await serve((_, response) => void response.end(texts.shift())));
  const asked = () => remote.request('/x').then(() => 'read'); // a failure of this spec would show the answer
  for (let count = 0; count < 2; count += 1)
    await rejects(
      asked(),
      CommandFailure,
      /^the answer of http:\S+ \(status 200\) has more than 10000000 values$/,
    );
  assert.is(Object(await remote.request('/x')).text.length, 3 * Math.floor(values / 3));
});

test('every part of an answer can be made a text, and has few levels', async () => {
  const odd = '{"toString":null,"valueOf":1}';
  const answer = `{"name":${odd},"list":[${odd}],"time":{"valueOf":null}}`;
  const remote = await findGateway(await serve((_, response) => void response.end(answer)));
  const found = Object(await remote.request('/x'));
  assert.equal([String(found.name), `${found.list}`, Number(found.time)], [odd, odd, Number.NaN]);
  assert.is(JSON.stringify(found), answer);
});

test('pages without end hold a command for a bounded time', async () => {
  let pages = 0;
  const endless = await serve((_, response) => {
    pages += 1;
    const next = pages > 500 ? {} : { next_cursor: String(pages) };
    response.end(JSON.stringify({ sessions: [{ id: 'a' }], ...next }));
  });
  const listing = pagedEntries(await findGateway(endless), '/gateway/sessions', 'sessions', { longestMs: 0 });
  await rejects(listing, CommandFailure, /took more than 0 s to answer with its pages$/);
  assert.is(pages, 1);
});

test('waits longer than the gateway for its database, and says what a timeout means for a change', async () => {
  const remote = await findGateway(await serveJson(200, {}));
  replaceFetch(() => Promise.reject(new DOMException('late', 'TimeoutError')));
  await rejects(remote.request('/x'), CommandFailure, /did not answer within 20 s$/);
  const note = /did not answer within 20 s; the request may have been carried out$/;
  await rejects(remote.request('/x', { method: 'DELETE' }), CommandFailure, note);
});

test('names the nodes that are missing in an answer, in one line', async () => {
  const terminal = recordingTerminal();
  const remote = await find(await serveJson(200, { partial: ['b', 'c'] }), terminal);
  for (const path of ['/x', '/y']) await remote?.request(path);
  const odd = await find(await serveJson(200, { partial: ['b\nstagedoor: all is well', 'c'] }), terminal);
  await odd?.request('/x');
  const note = 'without the part of nodes that did not answer: b';
  assert.equal(terminal.complaints, [`${note}, c`, `${note} stagedoor: all is well, c`]);
});

test('says after a broken connection that a change or a call may have been carried out', async () => {
  const remote = await findGateway(await serve(({ socket }) => void socket.destroy()));
  const broke = '^the connection to http:\\S+ broke \\(\\w+\\)';
  const note = new RegExp(`${broke}; the request may have been carried out$`);
  const call = remote.follow('/x', { text: '{}' }, () => {});
  await rejects(call, CommandFailure, note);
  await rejects(remote.request('/x', { method: 'POST' }), CommandFailure, note);
  await rejects(remote.request('/x'), CommandFailure, new RegExp(`${broke}$`));
});

test('requests no other path for a name that a URL resolves', async () => {
  const remote = await findGateway(await serveJson(200, {}));
  for (const path of ['/mcp/../health', '/mcp/./health', '/mcp//health', '/gateway/templates/']) {
    await rejects(remote.request(path), UsageError, /^a name must not be empty, "\." or "\.\."$/);
    await rejects(
      remote.follow(path, {}, () => {}),
      UsageError,
      /^a name must not/,
    );
  }
  await remote.request('/mcp/...?a=/../b');
});

test('shows the health of an unhealthy gateway, and fails for another status', async () => {
  const remote = await findGateway(await serveJson(200, { status: 'unhealthy' }));
  assert.equal(await remote.health(), { status: 'unhealthy' });
  const broken = await findGateway(await serveJson(503, { status: 'unhealthy' }));
  await rejects(broken.health(), CommandFailure, /no reason given \(status 503\)/);
  const starting = await serveJson(503, { detail: 'It is starting.', error_code: 'SHUTTING_DOWN' });
  await rejects((await findGateway(starting)).health(), GatewayRefusal, /^It is starting \(SHUTTING_DOWN\)$/);
  const other = await findGateway(await serveJson(200, {}));
  await rejects(other.health(), CommandFailure, /^http:\S+ is not a gateway: its health has no status$/);
});

test('names the time of Retry-After after a 429', async () => {
  const body = { detail: 'Too many attempts.', error_code: 'TOO_MANY_ATTEMPTS' };
  const url = await serve((_, response) => {
    response.writeHead(429, { 'Retry-After': '59' }).end(JSON.stringify(body));
  });
  const message = await messageOf((await findGateway(url)).request('/x'), GatewayRefusal);
  assert.is(message, 'Too many attempts; try again in 59 s (TOO_MANY_ATTEMPTS)');
});

test('recognises a gateway by its health answer, even an unhealthy one, within the given time', async () => {
  const gateway = await serveJson(200, { status: 'unhealthy', build: '1' });
  const other = await serveJson(200, { status: 'healthy' });
  const closed = `http://127.0.0.1:${await freePort()}`;
  const silent = await serve(() => {});
  const answers = [gateway, other, closed, silent].map((url) => answerOfGateway(url, 200));
  assert.equal((await Promise.all(answers)).map(Boolean), [true, false, false, false]);
});

test('uses the first default address where a gateway answers, and sends no credentials before', async () => {
  const seen: (string | null)[][] = [];
  replaceFetch(async (url, init = {}) => {
    seen.push([String(url), new Headers(init.headers).get('x-api-key')]);
    return String(url).startsWith(DEFAULT_URLS[0])
      ? new Response('<html>')
      : Response.json({ status: 'healthy', build: '1' });
  });
  const env = { STAGEDOOR_API_KEY: 'planted', XDG_CONFIG_HOME: folder(), APPDATA: folder() };
  trustUrl(credentialsPath(env), String(DEFAULT_URLS[1])); // no proof is asked for
  await (await find(undefined, recordingTerminal({ env })))?.request('/servers');
  assert.equal(seen, [
    [`${DEFAULT_URLS[0]}/gateway/health`, null],
    [`${DEFAULT_URLS[1]}/gateway/health`, null],
    [`${DEFAULT_URLS[1]}/servers`, 'planted'],
  ]);
});

test('asks only the background gateway of this folder, if its address is on loopback', async () => {
  const asked: string[] = [];
  replaceFetch(async (url) => {
    asked.push(new URL(String(url)).origin);
    return Response.error();
  });
  const urls = ['http://127.0.0.2:9001', 'http://[::1]:9001', 'http://127.example.test', 'http://192.0.2.1'];
  const files = filesIn(folder());
  const lock = await lockFile(files.lock); // it runs
  for (const url of urls) {
    writeDaemon(files, { pid: 1, url, words: [], folder: folder(), graceMs: 0 });
    await answeringUrl(recordingTerminal({ folder: folder() }));
  }
  await lock?.release();
  assert.equal(asked, [urls[0], urls[1], ...DEFAULT_URLS, ...DEFAULT_URLS]);
  const terminal = recordingTerminal({ folder: folder() });
  const refused = await messageOf(requireGateway(new CommandInput([], new Map()), terminal), CommandFailure);
  assert.match(refused, /name that of this folder with --url http:\/\/192\.0\.2\.1$/);
});

test('asks by https where a port says so, and by the name of its certificate on this machine', async () => {
  const [first] = DEFAULT_URLS;
  const secure = first.replace('http:', 'https:');
  const local = secure.replace('127.0.0.1', 'localhost');
  const refusals: Record<string, string | undefined>[] = [
    {},
    { [secure]: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
    { [secure]: 'ERR_TLS_CERT_ALTNAME_INVALID' },
    { [secure]: 'ERR_TLS_CERT_ALTNAME_INVALID', [local]: 'ERR_TLS_CERT_ALTNAME_INVALID' },
    { [secure]: 'ECONNRESET' },
  ];
  const found: (string | undefined)[] = [];
  for (const refused of refusals) {
    replaceFetch(async (url) => {
      const { origin, protocol } = new URL(String(url));
      if (origin !== first && !origin.startsWith('https:')) return Response.error();
      if (protocol === 'http:') return new Response('This port speaks HTTPS: use https://', { status: 400 });
      const code = refused[origin];
      if (code === undefined) return Response.json({ status: 'healthy', build: '1' });
      throw new TypeError('fetch failed', { cause: Object.assign(new Error('x'), { code }) });
    });
    found.push(await answeringUrl(recordingTerminal({ folder: folder() })));
  }
  // A gateway whose certificate is refused is still the gateway here: its first request says why.
  assert.equal(found, [secure, secure, local, secure, undefined]);
});

test('says that the background gateway of this folder has ended, and asks no other one', async () => {
  replaceFetch(async () => Response.json({ build: 'of another gateway' }));
  const files = filesIn(folder());
  writeDaemon(files, { pid: 77, url: 'http://127.0.0.1:8080', words: [], folder: folder(), graceMs: 0 });
  const terminal = recordingTerminal({ folder: folder() });
  assert.is(await answeringUrl(terminal), undefined);
  const failed = await messageOf(requireGateway(new CommandInput([], new Map()), terminal), CommandFailure);
  assert.match(
    failed,
    /^the gateway in the background here \(http:\/\/127\.0\.0\.1:8080, process 77\) has ended; \S+gateway\.log says why; start it again with ".* gateway start --background", or name another one with --url$/,
  );
});

test('resolves --url and STAGEDOOR_URL without a request', async () => {
  const env = { STAGEDOOR_URL: 'http://me:planted@c' };
  assert.is((await findGateway('http://127.0.0.1:1/tools/', env)).url, 'http://127.0.0.1:1/tools');
  assert.is((await findGateway(undefined, env)).url, 'http://c');
});

test('fails with one line when a stream fails', async () => {
  const stream = (end: (response: ServerResponse) => void): RequestListener => {
    return (_, response) => end(response.writeHead(200, { 'content-type': 'text/event-stream' }));
  };
  const left = 'event: error\ndata: {"detail":"It left.","error_code":"BACKEND_UNAVAILABLE"}\n\n';
  const refused = '{"detail":"None.","error_code":"TOOL_NOT_FOUND"}';
  const cases: [RequestListener, new (...words: never[]) => Error, RegExp][] = [
    [(_, response) => void response.writeHead(404).end(refused), GatewayRefusal, /^None \(TOOL_NOT_FOUND\)$/],
    [stream((response) => response.end(left)), GatewayRefusal, /^It left \(BACKEND_UNAVAILABLE\)$/],
    [
      stream((response) => response.write('event: a\n', () => response.destroy())),
      ...([StreamBroken, /^lost the connection to http:\S+$/] as const),
    ],
    [(_, response) => void response.end('{}'), CommandFailure, /answered \/events without an event stream$/],
    [(_, response) => void response.end('<p>'), CommandFailure, /its answer \(status \d+\) is not JSON$/],
  ];
  for (const [listener, kind, message] of cases) {
    const remote = await findGateway(await serve(listener));
    const following = remote.follow('/events', {}, () => {});
    await rejects(following, kind, message);
  }
});

test.run();

/** Without a login. */
function findGateway(url?: string, env: Record<string, string> = {}): Promise<Remote> {
  const options = new Map(url === undefined ? [] : [['url', url] as const]);
  return requireGateway(new CommandInput([], options), recordingTerminal({ env }));
}

function serveJson(status: number, body: unknown): Promise<string> {
  return serve((_, response) => void response.writeHead(status).end(JSON.stringify(body)));
}
