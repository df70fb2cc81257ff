// Keeps the fixture servers honest: a real SDK client must be able to use them when they behave.
// Their flags and crimes are in fixtures-stdio.spec.ts and fixtures-http.spec.ts. Nothing of the gateway is tested.

import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  LoggingMessageNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import * as assert from 'uvu/assert';
import { Drive, failureOf, textOf } from './fixtures/drive.ts';
import type { HttpServerOptions } from './fixtures/http-options.ts';
import { tools } from './fixtures/tools.ts';
import { objectOr } from './fixtures/wire.ts';
import { suite } from './helpers/suite.ts';

const drive = new Drive();
const toolNames = Object.keys(tools);

async function httpUrl(options?: HttpServerOptions): Promise<string> {
  return (await drive.httpFixture(options)).url;
}

/** What every well-behaved fixture must do, whatever the transport. */
function behavesLikeAServer(name: string, connect: () => Promise<Client>): void {
  const test = suite(name);
  test.after.each(() => drive.closeAll());

  test('is initialized, lists its tools and calls them', async () => {
    const client = await connect();
    const listed = await client.listTools();
    assert.equal(
      listed.tools.map((tool) => tool.name),
      toolNames,
    );
    assert.equal(await textOf(client, 'echo', { text: 'hé' }), 'hé');
    assert.equal(await textOf(client, 'add', { a: 2, b: 3 }), '5');
    assert.equal(await textOf(client, 'count'), '1');
    assert.equal(await textOf(client, 'count'), '2');
    assert.ok(Number(await textOf(client, 'pid')) > 0);
    assert.ok('PATH' in JSON.parse(await textOf(client, 'env')));
    assert.equal((await client.callTool({ name: 'fail' })).isError, true);
    await client.ping();
  });

  test('offers resources, prompts and completions', async () => {
    const client = await connect();
    assert.is((await client.listResources()).resources[0]?.uri, 'test://greeting');
    assert.is((await client.listResourceTemplates()).resourceTemplates[0]?.name, 'item');
    const read = await client.readResource({ uri: 'test://greeting' });
    assert.match(JSON.stringify(read.contents), /content of test:\/\/greeting/);
    assert.is((await client.listPrompts()).prompts[0]?.name, 'greet');
    const prompt = await client.getPrompt({ name: 'greet', arguments: { who: 'Ada' } });
    assert.match(JSON.stringify(prompt.messages), /Hello, Ada/);
    const ref = { type: 'ref/prompt', name: 'greet' } as const;
    const { completion } = await client.complete({ ref, argument: { name: 'who', value: 'A' } });
    assert.equal(completion.values, ['A-completed']);
  });

  test('answers errors with their code', async () => {
    const client = await connect();
    const codeOf = (error: unknown): unknown => objectOr(error).code;
    for (const code of [-32602, -32000, 42]) {
      const error = await failureOf(textOf(client, 'error', { code }));
      assert.is(codeOf(error), code);
    }
    assert.is(codeOf(await failureOf(textOf(client, 'unknown'))), -32602);
  });

  test('stops a cancelled call and remembers its id', async () => {
    const client = await connect();
    const cancellation = new AbortController();
    const call = client.callTool({ name: 'sleep', arguments: { ms: 60_000 } }, undefined, {
      signal: cancellation.signal,
    });
    setTimeout(() => cancellation.abort('enough'), 50);
    await failureOf(call);
    await delay(50);
    assert.is(JSON.parse(await textOf(client, 'cancelled')).length, 1);
  });

  test.run();
}

/** What only a transport with a way back to the client can do: stdio, event streams. */
function talksBack(name: string, connect: () => Promise<Client>): void {
  const test = suite(name);
  test.after.each(() => drive.closeAll());

  test('reports progress, logs, and announces changes', async () => {
    const client = await connect();
    const progress: number[] = [];
    const notified: string[] = [];
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
      notified.push(String(params.data));
    });
    client.setNotificationHandler(ToolListChangedNotificationSchema, ({ method }) => {
      notified.push(method);
    });
    await client.callTool({ name: 'progress', arguments: { steps: 3, ms: 20 } }, undefined, {
      onprogress: (step) => progress.push(step.progress),
    });
    await textOf(client, 'log', { text: 'a line' });
    await textOf(client, 'notify', { method: 'notifications/tools/list_changed' });
    assert.equal(progress, [1, 2, 3]);
    assert.equal(notified, ['a line', 'notifications/tools/list_changed']);
  });

  test('asks the client for its roots and a ping before it answers', async () => {
    const client = await connect();
    const answered = JSON.parse(await textOf(client, 'misbehave', { how: 'server-request' }));
    assert.equal(answered, { roots: { result: { roots: [{ uri: 'file:///a' }] } }, ping: { result: {} } });
  });

  test.run();
}

const allOddities = { ids: true, priming: true, comments: true, crlf: true, multiline: true };
behavesLikeAServer('stdio fixture', () => drive.stdioClient());
behavesLikeAServer('stdio fixture with the id first', () => drive.stdioClient('--id-first'));
behavesLikeAServer('stdio fixture with noise', () => drive.stdioClient('--stdout-noise', '--slow-start=100'));
behavesLikeAServer('stdio fixture of both eras', () => drive.stdioClient('--era=dual'));
behavesLikeAServer('HTTP fixture', async () => drive.httpClient(await httpUrl()));
behavesLikeAServer('HTTP fixture without sessions', async () =>
  drive.httpClient(await httpUrl({ sessions: false })),
);
behavesLikeAServer('HTTP fixture with event streams', async () =>
  drive.httpClient(await httpUrl({ answers: 'sse' })),
);
behavesLikeAServer('HTTP fixture with odd event streams', async () =>
  drive.httpClient(await httpUrl({ answers: 'sse', sse: allOddities, era: 'dual' })),
);
talksBack('stdio fixture, back to the client', () => drive.stdioClient());
talksBack('HTTP fixture with event streams, back to the client', async () =>
  drive.httpClient(await httpUrl({ answers: 'sse', sse: allOddities })),
);
