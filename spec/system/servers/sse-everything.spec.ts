// server-everything in its `sse` mode, run by the gateway: its tools depend on the client's capabilities, and it asks clients.

import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import * as assert from 'uvu/assert';
import { freePort } from '../../../src/cli/demo-servers.ts';
import type { ExchangeEvent } from '../../../src/domain/exchange.ts';
import { isJsonObject } from '../../../src/domain/json.ts';
import { sse } from '../../../src/transports/sse/sse.ts';
import type { Upstream } from '../../../src/transports/transport.ts';
import { callTool, see, textOf, until } from '../../conformance/transport.ts';
import { openFor } from '../../conformance/upstream.ts';
import { suite } from '../../helpers/suite.ts';
import { httpDefinition, openOptions } from '../../transports/http/open-http.ts';

const test = suite('server-everything over sse', { timeoutMs: 30_000 });

const everything = join(
  dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/package.json')),
  'dist/index.js',
);

async function toolNames(conversation: Upstream): Promise<readonly unknown[]> {
  const { events } = await see(conversation.exchange({ method: 'tools/list' }));
  const [listed] = events;
  assert.ok(listed?.kind === 'result' && isJsonObject(listed.result.value));
  const { tools } = listed.result.value;
  return Array.isArray(tools) ? tools.map((tool) => isJsonObject(tool) && tool.name) : [];
}

test('lists, calls, reports progress, and sends elicitation to the client of the stream', async () => {
  const command = process.execPath;
  const endpoint = `http://127.0.0.1:${await freePort()}/sse`;
  const definition = httpDefinition(endpoint, { transport: 'sse', command, args: [everything, 'sse'] });
  const transport = await sse.open(definition, openOptions({ handshakeTimeoutMs: 20_000 }));
  try {
    assert.is(transport.kind, 'sse');
    assert.is(transport.peer.era, 'legacy');
    assert.ok(Number(transport.diagnostics().pid) > 0);
    const said = await see(transport.exchange(callTool('echo', { message: 'hello' })));
    assert.is(textOf(said.events[0]), 'Echo: hello');

    const upstream = await openFor(transport);
    const asking = 'trigger-elicitation-request';
    await until(
      async () => (await toolNames(upstream)).includes(asking),
      'it registered what the client can do',
    );
    assert.not.ok((await toolNames(transport)).includes(asking));
    const kinds: ExchangeEvent['kind'][] = [];
    await new Promise<void>((resolve, reject) => {
      upstream.exchange(callTool(asking, {})).subscribe({
        next: (event) => {
          kinds.push(event.kind);
          if (event.kind === 'request') event.answer({ result: { action: 'decline' } });
        },
        error: reject,
        complete: resolve,
      });
    });
    assert.equal(kinds, ['request', 'result']);
    const working = callTool(
      'trigger-long-running-operation',
      { duration: 0.2, steps: 2 },
      { progressToken: 7 },
    );
    const { events } = await see(upstream.exchange(working));
    assert.is(events.filter(({ kind }) => kind === 'notification').length, 2);
  } finally {
    await transport.close();
  }
});

test.run();
