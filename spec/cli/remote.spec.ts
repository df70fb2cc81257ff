// The HTTP client of the commands, against real sockets.

import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as assert from 'uvu/assert';
import { CommandFailure, UsageError } from '../../src/cli/failures.ts';
import { DEFAULT_URLS, findGateway } from '../../src/cli/remote.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('remote');
const cleanups: (() => void)[] = [];
test.after.each(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

test('sends JSON and hands back the parsed answer', async () => {
  const seen: unknown[] = [];
  const url = await serve((request, response) => {
    request.setEncoding('utf8').on('data', (body) => seen.push([request.method, request.url, body]));
    request.on('end', () => response.end('{"b":2}'));
  });
  const remote = await findGateway(url, {});
  assert.equal(await remote.request('/x?y=1', { method: 'POST', body: { a: 1 } }), { b: 2 });
  assert.equal(seen, [['POST', '/x?y=1', '{"a":1}']]);
});

test('keeps the path of a gateway behind a prefix', async () => {
  const url = await serve((request, response) => void response.end(JSON.stringify({ url: request.url })));
  const remote = await findGateway(`${url}/tools/`, {});
  assert.equal(await remote.request('/servers'), { url: '/tools/servers' });
});

test('prefers the option to the environment', async () => {
  const env = { STAGEDOOR_URL: 'http://127.0.0.1:2' };
  assert.is((await findGateway('http://127.0.0.1:1', env)).url, 'http://127.0.0.1:1');
  assert.is((await findGateway(undefined, env)).url, 'http://127.0.0.1:2');
});

test('takes the first default address where a gateway answers, not any program', async () => {
  const answers: Record<string, Response> = {
    [`${DEFAULT_URLS[0]}/gateway/health`]: new Response('<html>', { status: 404 }),
    [`${DEFAULT_URLS[1]}/gateway/health`]: Response.json({ status: 'healthy', build: '1.0.0' }),
  };
  const fetcher = async (url: unknown) => answers[String(url)] ?? Response.error();
  assert.is((await findGateway(undefined, {}, fetcher as typeof fetch)).url, DEFAULT_URLS[1]);
});

test('says how to start one when no default address answers', async () => {
  const fetcher = () => Promise.reject(new TypeError('fetch failed'));
  await fails(findGateway(undefined, {}, fetcher as typeof fetch), CommandFailure, /stagedoor gateway start/);
});

test('says that nothing listens, and how to start a gateway', async () => {
  const url = await serve(() => {}, 'and close it');
  const remote = await findGateway(url, {});
  await fails(remote.request('/servers'), CommandFailure, `nothing listens at ${url}; start a gateway with`);
});

test('gives up after the time it was given', async () => {
  const remote = await findGateway(await serve(() => {}), {});
  await fails(remote.request('/slow', { timeoutMs: 50 }), CommandFailure, /did not answer within 0.05 s/);
});

test('shows the reason and the code of a refusal on one line', async () => {
  const body = { detail: 'No template named "x".', error_code: 'TEMPLATE_NOT_FOUND', request_id: 'r-1' };
  const remote = await findGateway(await serveJson(404, body), {});
  const line = 'No template named "x" (TEMPLATE_NOT_FOUND)';
  await fails(remote.request('/x'), CommandFailure, line);
});

test('shows every finding about invalid input', async () => {
  const detail = [
    { loc: ['body', 'instance', 'weight'], msg: 'too large', type: 'x' },
    { loc: ['body', 'instance', 'id'], msg: 'too long', type: 'x' },
  ];
  const remote = await findGateway(await serveJson(422, { detail, error_code: 'VALIDATION_ERROR' }), {});
  const line = 'body.instance.weight: too large; body.instance.id: too long (VALIDATION_ERROR)';
  await fails(remote.request('/x'), CommandFailure, line);
});

test('notices that it speaks to something else than a gateway', async () => {
  const url = await serve((_, response) => void response.end('<html>'));
  const remote = await findGateway(url, {});
  await fails(remote.request('/x'), CommandFailure, `${url} answers (status 200), but not as a gateway does`);
});

test('looks at an unhealthy gateway, but asks nothing of it', async () => {
  const remote = await findGateway(await serveJson(503, { status: 'unhealthy' }), {});
  assert.equal(await remote.look('/gateway/health'), { status: 'unhealthy' });
  await fails(remote.request('/gateway/health'), CommandFailure, /no reason given \(status 503\)/);
});

test('does not follow a redirect', async () => {
  const url = await serve((_, response) => void response.writeHead(302, { Location: '/y' }).end());
  const remote = await findGateway(url, {});
  await fails(remote.request('/x'), CommandFailure, /cannot be reached: unexpected redirect/);
});

test('refuses what is no URL and says where it was written', async () => {
  await fails(findGateway('localhost:8080', {}), UsageError, /^--url must be a URL/);
  await fails(findGateway(undefined, { STAGEDOOR_URL: 'x' }), UsageError, /^STAGEDOOR_URL must be a URL/);
});

test.run();

async function serve(listener: RequestListener, thenClose?: string): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  if (thenClose) close();
  else cleanups.push(close);
  return `http://127.0.0.1:${port}`;
}

function serveJson(status: number, body: unknown): Promise<string> {
  return serve((_, response) => void response.writeHead(status).end(JSON.stringify(body)));
}

async function fails(
  promise: Promise<unknown>,
  kind: new (message: string) => Error,
  message: string | RegExp,
): Promise<void> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.instance(error, kind);
  assert.match((error as Error).message, message);
  assert.not.match((error as Error).message, '\n');
}
