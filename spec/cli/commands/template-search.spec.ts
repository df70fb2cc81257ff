// Searches a local server that speaks the API of the official registry, and imports what it has.

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as assert from 'uvu/assert';
import { CommandFailure } from '../../../src/cli/failures.ts';
import { searchRegistry } from '../../../src/cli/import/registry-client.ts';
import { suite } from '../../helpers/suite.ts';
import { complaint, gatewayFor, printed } from './against-gateway.ts';

const test = suite('template search');
const gateway = gatewayFor(test);
const serverNamed = (name: string) => ({
  server: {
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    ...{ name, description: `What ${name} does.`, version: '1.0.0' },
    packages: [
      { registryType: 'npm', identifier: '@acme/w', version: '1.0.0', transport: { type: 'stdio' } },
    ],
  },
  _meta: {},
});
const NAMES = Array.from(
  { length: 150 },
  (_, index) => `io.github.acme/weather-${String(index).padStart(3, '0')}`,
);
/** How the registry answers: as the official one, or with a fault. */
let fault:
  | 'none'
  | 'repeats'
  | 'text'
  | 'refuses'
  | 'guarded'
  | 'other'
  | 'endless'
  | 'empty'
  | 'many'
  | 'deep'
  | 'lines'
  | 'moved'
  | 'away' = 'none';
const asked: string[] = [];
let server: Server;
let registry = '';

test.before(async () => {
  server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://registry');
    asked.push(`${pathname} ${searchParams.get('search')} ${searchParams.get('version')}`);
    const send = (body: unknown, status = 200) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    if (fault === 'text') return response.end('<html>');
    if (fault === 'refuses') return send({ error: 'too many requests' }, 429);
    if (fault === 'guarded') return send({ error: 'Missing credentials' }, 401);
    if (fault === 'other') return send({ items: [] });
    if (fault === 'empty') return send({ servers: [], metadata: { nextCursor: `page-${asked.length}` } });
    if (fault === 'many') return response.end(`{"servers":[${'{},'.repeat(500_000)}{}]}`);
    if (fault === 'deep')
      return response.end(`{"servers":[{"server":${'['.repeat(100_000)}${']'.repeat(100_000)}}]}`);
    if (fault === 'lines') return send({ error: 'busy\nstagedoor: done' }, 503);
    if (fault === 'away')
      return response
        .writeHead(302, { Location: `${registry.replace('127.0.0.1', 'localhost')}/other` })
        .end();
    if (fault === 'moved' && !searchParams.has('moved'))
      return response.writeHead(308, { Location: `${request.url}&moved` }).end();
    if (fault === 'endless') {
      response.write('[');
      const fill = () => {
        while (!response.destroyed && response.write('"x",'.repeat(100_000)));
      };
      response.on('drain', fill);
      return fill();
    }
    const [, name] = /^\/v0\.1\/servers\/(.+)\/versions\/latest$/.exec(pathname) ?? [];
    if (name !== undefined) {
      const known = NAMES.find((each) => each === decodeURIComponent(name));
      return known === undefined ? send({ error: 'Server not found' }, 404) : send(serverNamed(known));
    }
    const after = fault === 'repeats' ? '' : (searchParams.get('cursor') ?? '');
    const found = NAMES.filter((each) => each.includes(searchParams.get('search') ?? '') && each > after);
    const page = found.slice(0, Number(searchParams.get('limit')));
    const nextCursor = page.length < found.length ? page.at(-1) : undefined;
    return send({ servers: page.map(serverNamed), metadata: { count: page.length, nextCursor } });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  registry = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
test.before.each(() => {
  fault = 'none';
  asked.length = 0;
});
test.after(() => {
  server.closeAllConnections();
  server.close();
});
const search = (words: string) => gateway.run(`template search ${words} --registry ${registry}`);

test('prints names, versions and kinds, over several pages', async () => {
  const out = await printed(search('weather-01'));
  assert.match(out, /^NAME +VERSION +KINDS +DESCRIPTION\nio\.github\.acme\/weather-010 +1\.0\.0 +npm +What/);
  assert.ok(out.includes(`template import <name> --from-registry --registry ${registry}`), out);
  assert.equal(asked, ['/v0.1/servers weather-01 latest']);
  const { servers } = JSON.parse((await search('weather --limit 120 --json')).out);
  assert.is(servers.length, 120);
  assert.match(await printed(search('none')), /no server at .* has "none" in its name/);
});

test('takes the registry of the settings', async () => {
  const out = await printed(
    gateway.runAt({ env: { GATEWAY_REGISTRY_URL: `${registry}/` } }, 'template search 149'),
  );
  assert.match(out, /weather-149/);
});

test('a name of the registry is imported like a file', async () => {
  const line = `template import io.github.acme/weather-007 --from-registry --registry ${registry}`;
  assert.match(await printed(gateway.run(`${line} --yes`)), /the template weather-007 is stored/);
  assert.ok(gateway.server.gateway.hasTemplate('weather-007'));
  assert.match(await complaint(gateway.run(`${line.replace('007', '999')} --yes`)), /has no server at/);
});

test('pages without end hold a search for a bounded time', async () => {
  fault = 'empty';
  const failure = await searchRegistry(registry, 'weather', 300, 0).catch((thrown) => thrown);
  assert.instance(failure, CommandFailure);
  assert.match(failure.message, /took more than 0 s to answer with its pages/);
});

test('every fault of a registry is one line', async () => {
  for (const [wrong, reason] of [
    ['repeats', /repeats the page after/],
    ['text', /is not a registry of MCP servers: its answer is not JSON/],
    ['refuses', /answered 429: too many requests/],
    ['guarded', /wants credentials \(401\).* where registry\.public is true/],
    ['other', /its answer has no list "servers"/],
    ['empty', /answers with more than 50 pages/],
    ['deep', /is nested deeper than \d+ levels/],
    ['lines', /answered 503: busy stagedoor: done$/],
    ['away', /redirects to http:\/\/localhost:\d+\/other, which is not asked/],
    ['endless', /sent more than 8 MiB in one answer/],
  ] as const) {
    fault = wrong;
    assert.match(await complaint(search('weather --limit 300')), reason);
  }
  const away = 'template search x --registry http://127.0.0.1:1';
  assert.match(await complaint(gateway.run(away)), /the registry http:\/\/127\.0\.0\.1:1 does not answer/);
  assert.is((await gateway.run('template search x --registry ftp://a')).code, 2);
});

test('follows redirects at its own origin only', async () => {
  fault = 'moved';
  assert.match(await printed(search('149')), /weather-149/);
  fault = 'away';
  asked.length = 0;
  await complaint(search('149'));
  assert.is(asked.length, 1);
});

test('a page with more servers than were asked for is cut', async () => {
  fault = 'many';
  assert.is(JSON.parse((await search('x --limit 3 --json')).out).servers.length, 3);
});

test.run();
