// More large answers at the same time than a caller may leave unread: some get an error in their place, and none is cut after its 200.

import type { Socket } from 'node:net';
import * as assert from 'uvu/assert';
import { modern } from '../../helpers/clients/mcp-messages.ts';
import { head, openRaw, readAll } from '../../helpers/clients/raw-http.ts';
import { appFor, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('large answers that come at once');
const unreadBounds = { totalBytes: 40_000_000, ownerBytes: 40_000_000 };
const app = appFor(test, () => startApp({ unreadBounds }));
const TEXT = 'x'.repeat(16_000_000);
const CALLS = 8;

const POSTS: Readonly<Record<string, () => readonly [path: string, headers: object, body: string]>> = {
  REST: () => ['/mcp/demo/tools/call', { 'Content-Type': 'application/json' }, '{"name":"large"}'],
  MCP: () => {
    const { body, headers } = modern('tools/call', { name: 'large', arguments: {} });
    return ['/mcp/demo', headers, JSON.stringify(body)];
  },
};

for (const [door, post] of Object.entries(POSTS))
  test(`are answered in full or with 503, over ${door}`, async () => {
    const all = Promise.withResolvers<void>();
    let asked = 0;
    await app.serve('demo', door, async ({ method }) => {
      if (method !== 'tools/call') return { tools: [{ name: 'large', inputSchema: { type: 'object' } }] };
      asked += 1;
      if (asked === CALLS) all.resolve();
      await all.promise;
      return { content: [{ type: 'text', text: TEXT }] };
    });
    const [path, headers, body] = post();
    const sockets: Socket[] = [];
    for (let call = 0; call < CALLS; call += 1) {
      const socket = await openRaw(app.port);
      const length = { 'Content-Length': String(body.length), Connection: 'close' };
      socket.write(head(`POST ${path}`, { ...headers, ...length }) + body);
      sockets.push(socket);
    }
    // All have begun before any is read.
    await Promise.all(
      sockets.map((socket) => new Promise<void>((resolve) => socket.once('readable', resolve))),
    );
    const answers = await Promise.all(sockets.map((socket) => readAll(socket)));
    const ends = answers.map((answer) => {
      const isWhole = answer.startsWith('HTTP/1.1 200') && answer.length > TEXT.length;
      if (isWhole) return 'whole';
      const isRefused = answer.startsWith('HTTP/1.1 503') && /earlier answers unread/.test(answer);
      if (isRefused && door === 'MCP') assert.match(answer, `"id":${JSON.stringify(JSON.parse(body).id)}`);
      return isRefused ? 'refused' : answer.slice(0, 100);
    });
    assert.equal([...new Set(ends)].toSorted(), ['refused', 'whole']);
    await app.gateway.deregister('demo', door);
  });

test.run();
