// A server that answers `server/discover`, and no other request of the modern era, is used in the legacy one. With a real program and a
// real HTTP server, at every door (ADR 10).

import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { modernRequest, openSession, postTo } from '../../gateway/mcp/post.ts';
import { appFor, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';
import { answerJson, messageOf, withRawServer } from '../../transports/raw-server.ts';

const test = suite('a server that hangs in the modern era', { timeoutMs: 60_000 });
const app = appFor(test, () => startApp());

/** The result that answers a message; undefined: none. The program contains its text. */
function resultOf({ method, params }: { method?: unknown; params?: JsonObject }): object | undefined {
  const capabilities = { tools: {} };
  const isModern = Object.keys(Object(params?._meta)).some((key) => key.endsWith('/protocolVersion'));
  if (method === 'server/discover')
    return { supportedVersions: ['2026-07-28'], capabilities, resultType: 'complete' };
  if (isModern) return undefined;
  if (method === 'initialize')
    return { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'hanging', version: '1' } };
  if (method === 'tools/list') return { tools: [{ name: 'say', inputSchema: { type: 'object' } }] };
  return method === 'tools/call' ? { content: [{ type: 'text', text: 'said' }] } : {};
}

const PROGRAM = `
  const resultOf = ${resultOf};
  require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, ...message } = JSON.parse(line);
    const result = id === undefined ? undefined : resultOf(message);
    if (result !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
  });`;

test('is reached in the legacy era at every door, over stdio and HTTP', async () => {
  await withRawServer(
    async (request, response) => {
      const isPost = request.method === 'POST';
      const { id, ...message } = isPost ? await messageOf(request) : {};
      const result = id === undefined ? undefined : resultOf(message);
      if (result !== undefined) answerJson(response, 200, { jsonrpc: '2.0', id, result });
      else if (id === undefined) response.writeHead(isPost ? 202 : 405).end();
    },
    async ({ url: endpoint }) => {
      const backends = { http: { endpoint }, stdio: { command: process.execPath, args: ['-e', PROGRAM] } };
      const all = Object.entries(backends);
      await Promise.all(
        all.map(([template, backend]) =>
          app.gateway.register(template, { id: 'one', ...backend }, { waitMs: 20_000 }),
        ),
      );
      for (const [template] of all) {
        assert.is(app.gateway.instance(template, 'one').snapshot.era, 'legacy', template);
        assert.equal(await textsAt(template), new Array(5).fill('said'), template);
      }
    },
  );
});

/** What the tool says at the five doors. */
async function textsAt(template: string): Promise<unknown[]> {
  const answers: unknown[] = [];
  for (const where of [template, undefined]) {
    const name = where === undefined ? `${template}__say` : 'say';
    const params = { name, arguments: {} };
    const headers = await openSession(app.gateway, where);
    const message = { method: 'tools/call', params };
    answers.push((await postTo(app.gateway, { template: where, message, headers })).answer.result);
    const modern = modernRequest('tools/call', params);
    answers.push((await postTo(app.gateway, { template: where, ...modern })).answer.result);
  }
  answers.push((await app.ask('POST', `/mcp/${template}/tools/call`, { body: { name: 'say' } })).body);
  return answers.map((answer) => Object(answer).content?.[0].text);
}

test.run();
