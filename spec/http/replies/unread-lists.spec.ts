// A caller that does not read its answers: requests for lists of servers are refused as calls are; streams and other answers are not.

import * as assert from 'uvu/assert';
import { head, openRaw, readUntil } from '../../helpers/clients/raw-http.ts';
import { appFor, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('lists for a caller that does not read');
/** Enough for one of the large answers. */
const unreadBounds = { totalBytes: 25_000_000, ownerBytes: 25_000_000 };
const app = appFor(test, () => startApp({ unreadBounds }));
const LARGE = 'x'.repeat(23_000_000);

test('are refused near the limit of unread bytes, and no streams', async () => {
  await app.serve('demo', 'one', ({ method }) =>
    method === 'tools/call' ? { content: [{ type: 'text', text: LARGE }] } : { tools: [{ name: 'large' }] },
  );
  const body = JSON.stringify({ name: 'large' });
  const length = { 'Content-Type': 'application/json', 'Content-Length': String(body.length) };
  const silent = await openRaw(app.port);
  silent.write(head('POST /mcp/demo/tools/call', length) + body);
  await readUntil(silent, 'HTTP/1.1 200');
  silent.pause();
  for (const path of ['/mcp/demo/tools/list', '/mcp/demo/prompts/list', '/gateway/templates/demo/tools']) {
    const refused = await app.ask('GET', path);
    assert.is(refused.outcome, '429 QUEUE_FULL', path);
    assert.match(String(refused.body.detail), 'earlier answers unread');
    assert.is(refused.headers.get('retry-after'), '1');
  }
  assert.is((await app.ask('POST', '/mcp/demo/tools/call', { body: { name: 'large' } })).status, 429);
  assert.is((await app.ask('GET', '/servers')).status, 200);
  const stream = await openRaw(app.port);
  stream.write(head('GET /mcp/demo/sse', { Accept: 'text/event-stream' }));
  await readUntil(stream, 'HTTP/1.1 200');
  silent.destroy();
  stream.destroy();
  while ((await app.ask('GET', '/mcp/demo/tools/list')).status !== 200);
});

test.run();
