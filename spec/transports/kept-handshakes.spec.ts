// The memory of results of handshakes: a server may give each session another one, which is kept as long as the session.

import * as assert from 'uvu/assert';
import { hasCode } from '../../src/domain/errors/errors.ts';
import { UserShares } from '../../src/domain/memory/user-shares.ts';
import type { Transport } from '../../src/transports/transport.ts';
import { suite } from '../helpers/suite.ts';
import { withRawTransport } from './http/open-http.ts';
import { answerJson, messageOf } from './raw-server.ts';
import { openStdio, scripted } from './stdio/open-stdio.ts';

const test = suite('kept handshakes');

const KB = 1024;
const PROFILE = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a', version: '1' } };

/** The server gives its sessions these instructions, one after the other, the last one to all others. */
async function withServer(
  instructions: readonly string[],
  countHandshake: (bytes: number) => boolean,
  body: (transport: Transport, ended: () => number) => Promise<void>,
): Promise<void> {
  let [opened, ended] = [0, 0];
  await withRawTransport(
    async (request, response) => {
      if (request.method === 'DELETE') ended += 1;
      if (request.method !== 'POST') return void response.writeHead(200).end();
      const { id, method } = await messageOf(request);
      if (id === undefined) return void response.writeHead(202).end();
      if (method !== 'initialize') return void response.writeHead(404).end();
      const given = instructions[opened] ?? instructions.at(-1);
      opened += 1;
      const result = { ...PROFILE, serverInfo: PROFILE.clientInfo, instructions: given };
      answerJson(response, 200, { jsonrpc: '2.0', id, result }, { 'mcp-session-id': `s${opened}` });
    },
    (transport) => body(transport, () => ended),
    { countHandshake },
  );
}

function openOne(transport: Transport) {
  return transport.openConversation({
    profile: PROFILE,
    signal: new AbortController().signal,
    ownerId: 'ann',
  });
}

test('count each large one once, until its last conversation has ended', async () => {
  let counted = 0;
  const count = (bytes: number): boolean => {
    counted += bytes;
    return true;
  };
  const texts = ['small', 'a'.repeat(100 * KB), 'b'.repeat(100 * KB), 'a'.repeat(100 * KB)];
  await withServer(texts, count, async (transport) => {
    assert.is(counted, 0);
    const [first, second, third] = [
      await openOne(transport),
      await openOne(transport),
      await openOne(transport),
    ];
    assert.ok(counted > 400 * KB && counted < 420 * KB, `${counted} bytes for two`);
    assert.is(first?.handshake, third?.handshake);
    await first?.close();
    await second?.close();
    assert.ok(counted > 200 * KB && counted < 210 * KB, `${counted} bytes for one`);
    await third?.close();
    assert.is(counted, 0);
  });
});

test('end the session for which there is no room', async () => {
  await withServer(
    ['small', 'a'.repeat(100 * KB)],
    () => false,
    async (transport, ended) => {
      const refusal = await openOne(transport).catch((thrown: unknown) => thrown);
      assert.ok(hasCode(refusal, 'BACKEND_UNAVAILABLE'), String(refusal));
      await transport.close();
      assert.is(ended(), 2);
    },
  );
});

test('count those of programs until they end', async () => {
  const kept = new UserShares(500 * KB, 500 * KB);
  const countHandshake = (bytes: number): boolean => {
    if (bytes > 0) return kept.take('one', bytes);
    kept.add('one', bytes);
    return true;
  };
  const { args, ...program } = scripted("say({ jsonrpc: '2.0', id, result: {} })");
  const large = args.map((word) =>
    word.replace("version: '1' }", `version: '1', text: 'x'.repeat(${100 * KB}) }`),
  );
  const transport = await openStdio({ ...program, args: large }, { countHandshake });
  const first = await openOne(transport);
  assert.ok(kept.total > 400 * KB, `${kept.total} bytes for two`);
  const refusal = await openOne(transport).catch((thrown: unknown) => thrown);
  assert.ok(hasCode(refusal, 'BACKEND_UNAVAILABLE'), String(refusal));
  await first?.close();
  assert.ok(kept.total > 200 * KB && kept.total < 210 * KB, `${kept.total} bytes for one`);
  await transport.close();
  assert.is(kept.total, 0);
});

test.run();
