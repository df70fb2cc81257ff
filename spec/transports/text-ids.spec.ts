// Servers that send ids and progress tokens back as texts ("7" for 7), over every transport.

import * as assert from 'uvu/assert';
import { open as http } from '../../src/transports/http/http.ts';
import { open as sse } from '../../src/transports/sse/sse.ts';
import type { Transport } from '../../src/transports/transport.ts';
import { callTool, cancelledOn, see, startAndUnsubscribe, textOf } from '../conformance/transport.ts';
import { startHttpServer } from '../fixtures/http-server.ts';
import type { Era } from '../fixtures/mcp.ts';
import { startSseServer } from '../fixtures/sse-server.ts';
import { until } from '../helpers/eventually.ts';
import { suite } from '../helpers/suite.ts';
import { httpDefinition, openOptions } from './http/open-http.ts';
import { fixture, openStdio } from './stdio/open-stdio.ts';

const test = suite('ids as texts');

interface Opened {
  readonly transport: Transport;
  close?(): Promise<void>;
}

const overHttp = async (era: Era, answers: 'json' | 'sse'): Promise<Opened> => {
  const server = await startHttpServer({ era, answers, idsAsText: true });
  const transport = await http(httpDefinition(server.url), openOptions());
  return { transport, close: () => server.close() };
};

const kinds: Readonly<Record<string, () => Promise<Opened>>> = {
  'stdio, legacy': async () => ({ transport: await openStdio(fixture('--ids-as-text')) }),
  'stdio, modern': async () => ({ transport: await openStdio(fixture('--ids-as-text', '--era=modern')) }),
  'http, bodies': () => overHttp('legacy', 'json'),
  'http, streams': () => overHttp('legacy', 'sse'),
  'http, modern': () => overHttp('modern', 'sse'),
  'http, bare': () => overHttp('bare', 'json'),
  sse: async () => {
    const server = await startSseServer({ idsAsText: true });
    const transport = await sse(httpDefinition(server.url, { transport: 'sse' }), openOptions());
    return { transport, close: () => server.close() };
  },
};

for (const [kind, open] of Object.entries(kinds)) {
  test(`answers, errors, progress and cancellations arrive: ${kind}`, async () => {
    const { transport, close } = await open();
    try {
      assert.is(textOf((await see(transport.exchange(callTool('echo', { text: 'x' })))).events[0]), 'x');
      const { events } = await see(transport.exchange(callTool('error', { code: -32050 })));
      assert.is(events[0]?.kind, 'error');
      const progress = await see(
        transport.exchange(callTool('progress', { steps: 3 }, { progressToken: 'mine' })),
      );
      const tokens = progress.events.flatMap((event) =>
        event.kind === 'notification' ? [event.params.progressToken] : [],
      );
      // Beside a body, progress comes on another stream, perhaps later than the answer, or not at all.
      const isBody = kind === 'http, bodies' || kind === 'http, bare';
      assert.equal(isBody ? [] : tokens, isBody ? [] : ['mine', 'mine', 'mine']);
      if (kind === 'http, bare') return;
      await startAndUnsubscribe(
        transport.exchange({ ...callTool('progress', { steps: 100_000, ms: 1 }), wantsProgress: true }),
      );
      await until(async () => (await cancelledOn(transport)).length === 1, 'the cancellation arrived');
    } finally {
      await transport.close();
      await close?.();
    }
  });
}

test.run();
