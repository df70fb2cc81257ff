// Keeps the stdio fixture honest: every flag and every crime must look on the wire as it is described.
// That an SDK client can use it is in fixtures.spec.ts.

import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { Drive, modernMeta } from './fixtures/drive.ts';
import { multiByteText, nestedText } from './fixtures/misbehave.ts';
import { tools } from './fixtures/tools.ts';
import { type Json, objectOr } from './fixtures/wire.ts';
import { suite } from './helpers/suite.ts';

const drive = new Drive();
const toolNames = Object.keys(tools);

const stdio = suite('stdio fixture, its flags and crimes');
stdio.after.each(() => drive.closeAll());

stdio('pages tools/list with cursors', async () => {
  const client = await drive.stdioClient('--pages=4');
  const names: string[] = [];
  let pages = 0;
  let cursor: string | undefined;
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor });
    names.push(...page.tools.map((tool) => tool.name));
    pages += 1;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  assert.equal([pages, names], [4, toolNames]);
});

stdio('answers in the key order it was told', async () => {
  for (const [flags, expected] of [
    [[], '{"result":{},"jsonrpc":"2.0","id":"a"}'],
    [['--id-first'], '{"jsonrpc":"2.0","id":"a","result":{}}'],
  ] as const) {
    const server = drive.stdioServer(...flags);
    server.send({ id: 'a', method: 'ping' });
    await server.lines(1);
    assert.is(server.received[0], expected);
  }
});

stdio('knows the modern era and refuses the legacy one', async () => {
  const server = drive.stdioServer('--era=modern');
  server.send({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } });
  server.send({ id: 2, method: 'ping' });
  server.send({ id: 3, method: 'tools/list' });
  server.send({ id: 4, method: 'server/discover', params: { _meta: modernMeta } });
  const wrong = { ...modernMeta, 'io.modelcontextprotocol/protocolVersion': '2031-01-01' };
  server.send({ id: 5, method: 'tools/list', params: { _meta: wrong } });
  await server.lines(5);
  const answers = server.received.map((line): Json => JSON.parse(line));
  const codes = answers.map(({ id, error }) => [id, objectOr(error).code]);
  assert.equal(codes.sort(), [
    [1, -32601],
    [2, -32601],
    [3, -32602],
    [4, undefined],
    [5, -32022],
  ]);
  const discovered = objectOr(answers.find(({ id }) => id === 4)?.result);
  assert.equal(
    [discovered.supportedVersions, discovered.resultType, discovered.ttlMs],
    [['2026-07-28'], 'complete', 0],
  );
});

stdio('has no handshake when it is bare', async () => {
  const server = drive.stdioServer('--era=bare');
  server.send({ id: 1, method: 'initialize', params: {} });
  server.send({ id: 2, method: 'ping' });
  server.send({ id: 3, method: 'tools/call', params: { name: 'echo', arguments: { text: 'x' } } });
  await server.lines(3);
  assert.match(server.received.join('\n'), /"id":1,"error":\{"code":-32601/);
  assert.match(server.received.join('\n'), /\{"result":\{\},"jsonrpc":"2.0","id":2\}/);
  assert.match(server.received.join('\n'), /"text":"x"/);
});

stdio('commits each crime as described', async () => {
  const crimes: Record<string, (lines: readonly string[]) => boolean> = {
    garbage: ([line]) => line === 'this is not a JSON line',
    'two-answers': ([one, two]) => /first/.test(one ?? '') && /second/.test(two ?? ''),
    'unknown-id': ([line]) => /"id":987654321/.test(line ?? ''),
    'unknown-id-then-answer': ([one, two]) => /987654321/.test(one ?? '') && /"id":1\}/.test(two ?? ''),
    'huge-line': ([line]) => (line ?? '').includes('x'.repeat(100)),
    'no-result': ([line]) => line === '{"jsonrpc":"2.0","id":1}',
    'wrong-version': ([line]) => /"jsonrpc":"1.0"/.test(line ?? ''),
    'string-id': ([line]) => /"id":"1"\}/.test(line ?? ''),
    'split-utf8': ([line]) => (line ?? '').includes(multiByteText),
    crlf: ([line]) => /ended by CRLF/.test(line ?? ''),
    'nested-id': ([line]) => JSON.parse(line ?? '').result.content[0].text === nestedText,
  };
  for (const [how, holds] of Object.entries(crimes)) {
    const server = drive.stdioServer();
    server.call('misbehave', { how, bytes: 100 });
    await server.lines(/two|then/.test(how) ? 2 : 1);
    assert.ok(holds(server.received), `${how}: ${server.received}`);
  }
});

stdio('says nothing at all, or nothing more after half a line', async () => {
  const silent = drive.stdioServer();
  silent.call('misbehave', { how: 'nothing', bytes: 100 });
  silent.send({ id: 2, method: 'ping' });
  await silent.lines(1);
  assert.equal(silent.received, ['{"result":{},"jsonrpc":"2.0","id":2}']);

  const wedged = drive.stdioServer();
  let bytes = '';
  wedged.child.stdout.on('data', (chunk: Buffer) => {
    bytes += chunk.toString();
  });
  wedged.call('misbehave', { how: 'half-line', bytes: 100 });
  wedged.send({ id: 2, method: 'ping' });
  while (bytes === '') await delay(5);
  await delay(100);
  assert.match(bytes, /"text":"only/);
  assert.not.match(bytes, /\n|"id":2/);
});

stdio('exits when told: in a call, after half a line, after N calls, at the start', async () => {
  for (const how of ['exit', 'half-line-exit']) {
    const server = drive.stdioServer();
    server.call('misbehave', { how, bytes: 100 });
    assert.equal(await once(server.child, 'exit'), [7, null]);
    assert.match(server.stderr, /in the middle of a call/);
  }
  const counted = drive.stdioServer('--exit-after=2');
  for (const id of [1, 2]) counted.send({ id, method: 'tools/call', params: { name: 'pid' } });
  assert.equal(await once(counted.child, 'exit'), [1, null]);
  assert.is(counted.received.length, 2);
  const refusing = drive.stdioServer('--refuse-start');
  assert.equal(await once(refusing.child, 'exit'), [3, null]);
  assert.match(refusing.stderr, /refusing to start/);
  const barred = drive.stdioServer(`--refuse-while=${import.meta.filename}`);
  assert.equal(await once(barred.child, 'exit'), [4, null]);
  await drive.stdioServer('--refuse-while=/no/such/file').said('ready');
});

stdio('ends with its stdin, unless told to ignore that and SIGTERM', async () => {
  const polite = drive.stdioServer();
  await polite.said('ready');
  polite.child.stdin.end();
  assert.equal(await once(polite.child, 'exit'), [0, null]);

  const stubborn = drive.stdioServer('--ignore-stdin-end', '--ignore-sigterm');
  await stubborn.said('ready');
  stubborn.child.stdin.end();
  stubborn.child.kill('SIGTERM');
  await stubborn.said('ignored SIGTERM');
  await delay(100);
  assert.is(stubborn.child.exitCode, null);
  stubborn.child.kill('SIGKILL');
  assert.equal(await once(stubborn.child, 'exit'), [null, 'SIGKILL']);
});

stdio('has a grandchild that outlives it', async () => {
  const server = drive.stdioServer('--spawn-grandchild');
  await server.said('ready');
  const grandchildId = Number(/grandchild (\d+)/.exec(server.stderr)?.[1]);
  server.child.kill('SIGKILL');
  await once(server.child, 'exit');
  assert.ok(process.kill(grandchildId, 0));
  process.kill(grandchildId, 'SIGKILL');
});

stdio('drops a batch in silence', async () => {
  const server = drive.stdioServer();
  server.child.stdin.write('[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n');
  server.send({ id: 2, method: 'ping' });
  await server.lines(1);
  assert.equal(server.received, ['{"result":{},"jsonrpc":"2.0","id":2}']);
});

stdio.run();
