// Items of lists that have no name, or no URI, which nobody can use: the answers over REST leave them out.

import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { LIST_METHODS } from '../../../src/domain/mcp/mcp.ts';
import { appFor, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';
import { answerJson, messageOf, startRawServer } from '../../transports/raw-server.ts';

const test = suite('items without a name');
const app = appFor(test, () => startApp());

const KEYS = { tools: 'name', prompts: 'name', resources: 'uri', resourceTemplates: 'uriTemplate' } as const;
const server = startRawServer(async (request, response) => {
  const { id, method } = await messageOf(request);
  const serverInfo = { name: 'odd', version: '1' };
  const capabilities = { tools: {}, prompts: {}, resources: {} };
  const results: Record<string, JsonObject> = {
    initialize: { protocolVersion: '2025-11-25', capabilities, serverInfo },
  };
  for (const [list, key] of Object.entries(KEYS))
    results[LIST_METHODS[list as keyof typeof KEYS]] = {
      [list]: [
        { [key]: 'x://a' },
        { title: 'none' },
        { [key]: '' },
        { [key]: 7 },
        { [key]: null },
        { [key]: 'x://b' },
      ],
    };
  const result = results[String(method)];
  if (id === undefined || request.method !== 'POST') response.writeHead(202).end();
  else
    answerJson(response, 200, {
      jsonrpc: '2.0',
      id,
      ...(result ? { result } : { error: { code: -32601, message: 'no' } }),
    });
});
test.after(async () => (await server).close());

test('are left out of the lists over REST, which count the others', async () => {
  const { url } = await server;
  await app.gateway.register('odd', { endpoint: url }, { waitMs: 20_000 });
  for (const [list, key] of Object.entries(KEYS)) {
    const { body } = await app.ask('GET', `/mcp/odd/${LIST_METHODS[list as keyof typeof KEYS]}`);
    const items = body[list] as readonly JsonObject[];
    assert.equal([items.map((item) => item[key]), body.count], [['x://a', 'x://b'], 2], list);
  }
});

test.run();
