// TLS of the ports for clients, with real certificates and sockets.

import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, readFile, writeFile } from 'node:fs/promises';
import { get } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect, type PeerCertificate, type TLSSocket } from 'node:tls';
import * as assert from 'uvu/assert';
import { OperatorError } from '../../../src/domain/errors/errors.ts';
import { type Clock, systemClock } from '../../../src/domain/time/clock.ts';
import { createProxies } from '../../../src/http/callers/proxies.ts';
import { type Listeners, openListeners } from '../../../src/server/sockets/listeners.ts';
import { OpenConnections } from '../../../src/server/sockets/open-connections.ts';
import { openPublicTls } from '../../../src/server/sockets/public-tls.ts';
import { readAll, sendRaw, untilClosed } from '../../helpers/clients/raw-http.ts';
import { becomes } from '../../helpers/eventually.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { hasOpenssl, issueCertificate, makeAuthority } from '../../helpers/network/certificates.ts';
import { renew, renewingEnd } from '../../helpers/network/key-updates.ts';
import { messageOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('TLS of the ports', { timeoutMs: 60_000 });
const openssl = test.needs(hasOpenssl(), 'no openssl here');
const onPosix = test.needs(hasOpenssl() && process.platform !== 'win32', 'no openssl, or no POSIX here');
const folder = folderOfEach(test);
const cleanups: (() => unknown)[] = [];
test.after.each(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

openssl('serves HTTPS, and handlers see a secure request', async () => {
  const { port, urls } = await opened();
  assert.equal(urls, [`https://127.0.0.1:${port}`]);
  const response = await ask(port);
  assert.equal([response.statusCode, await text(response)], [200, 'https']);
});

openssl('answers plain HTTP with the reason', async () => {
  const { port } = await opened();
  assert.match(await sendRaw(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'), /^HTTP\/1.1 400 .*speaks HTTPS/s);
});

openssl('speaks TLS 1.2 and newer', async () => {
  const { port } = await opened();
  const old = { port, host: '127.0.0.1', ca: await authority(), ciphers: 'DEFAULT@SECLEVEL=0' };
  const socket = connect({ ...old, minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1' });
  const [error] = await once(socket, 'error');
  assert.match(String(error.code), /^ERR_SSL_/);
});

openssl(
  'uses renewed files for new connections, and keeps those of before when they cannot be used',
  async () => {
    const { port, ring, logged } = await opened();
    const before = await certificateAt(port);
    await writeFile(folder('door.crt'), 'half of a file');
    ring();
    await becomes(() => logged.length, 1);
    ring();
    assert.match(
      logged[0] ?? '',
      /door\.crt and .* cannot be used .*; the previous certificate stays in use$/,
    );
    assert.is((await certificateAt(port)).fingerprint256, before.fingerprint256);

    issueCertificate(folder(), 'ca', 'next', '127.0.0.1');
    await copyFile(folder('next.crt'), folder('door.crt'));
    ring(); // its key is not there yet
    await becomes(() => logged.length, 2);
    assert.match(logged[1] ?? '', /key values mismatch/);
    await copyFile(folder('next.key'), folder('door.key'));
    ring();
    await becomes(() => logged.length, 3);
    assert.match(logged[2] ?? '', /door\.crt is in use now$/);
    assert.not.equal((await certificateAt(port)).fingerprint256, before.fingerprint256);
  },
);

openssl('does not take a key file that is being written, and serves with the key before it', async () => {
  const { port, ring, logged } = await opened();
  const before = await certificateAt(port);
  const key = await readFile(folder('door.key'), 'utf8');
  const rests = ['', '\n', key.slice(0, 20), key.slice(0, -20)];
  for (const [index, rest] of rests.entries()) {
    await writeFile(folder('door.key'), rest);
    ring();
    await becomes(() => logged.length, 2 * index + 1);
    assert.match(logged.at(-1) ?? '', /cannot be used .*; the previous certificate stays in use$/);
    assert.is((await certificateAt(port)).fingerprint256, before.fingerprint256);
    await writeFile(folder('door.key'), `${key}${'\n'.repeat(index + 1)}`);
    ring();
    await becomes(() => logged.length, 2 * index + 2);
    assert.match(logged.at(-1) ?? '', /is in use now$/);
  }
});

openssl(
  'refuses files that are missing, that are no certificates, and a key of another certificate',
  async () => {
    makeAuthority(folder(), 'ca');
    for (const name of ['a', 'b']) issueCertificate(folder(), 'ca', name);
    const refusal = (cert: string, key: string) => messageOf(open(folder(cert), folder(key)), OperatorError);
    assert.match(
      await refusal('none.crt', 'a.key'),
      /^tls\.cert: .*none\.crt cannot be used: there is no such file$/,
    );
    assert.match(
      await refusal('a.crt', 'none.key'),
      /^tls\.key: .*none\.key cannot be used: there is no such file$/,
    );
    assert.match(await refusal('a.crt', 'b.key'), /^tls: .* cannot be used .*mismatch/);
    assert.match(await refusal('a.key', 'a.key'), /^tls: .* cannot be used/);
    assert.match(await refusal('.', 'a.key'), /it is not a file in PEM$/);
    await writeFile(folder('b.key'), '');
    assert.match(await refusal('b.crt', 'b.key'), /^tls: .* cannot be used as certificate and key/);
  },
);

openssl('says that a key has a passphrase', async () => {
  makeAuthority(folder(), 'ca');
  issueCertificate(folder(), 'ca', 'door');
  for (const form of [
    ['pkcs8', '-topk8', '-v2', 'aes-256-cbc'],
    ['ec', '-aes256'],
    ['rsa', '-aes256', '-traditional'],
  ]) {
    const key = ['-in', folder('door.key'), '-out', folder('locked.key'), '-passout', 'pass:secret'];
    if (spawnSync('openssl', [...form, ...key]).status !== 0) continue; // of another kind of key
    await chmod(folder('locked.key'), 0o600);
    const message = await messageOf(open(folder('door.crt'), folder('locked.key')), OperatorError);
    assert.match(message, /^tls\.key: .*locked\.key has a passphrase, .* "openssl pkey -in /);
  }
});

onPosix('refuses a key that others can read', async () => {
  makeAuthority(folder(), 'ca');
  issueCertificate(folder(), 'ca', 'door');
  for (const mode of [0o644, 0o602, 0o620]) {
    await chmod(folder('door.key'), mode);
    const message = await messageOf(open(folder('door.crt'), folder('door.key')), OperatorError);
    assert.match(message, /^tls\.key: .*other users can read or change it; run "chmod 600" on it$/);
  }
  await chmod(folder('door.key'), 0o600);
  await chmod(folder('door.crt'), 0o644);
  await open(folder('door.crt'), folder('door.key'));
});

openssl('warns of a certificate that expires soon, and once a day, also when it has expired', async () => {
  const HOUR_MS = 3_600_000;
  let passedMs = 0;
  const clock = { wall: () => Date.now() + passedMs, now: () => passedMs };
  const { logged, ring } = await opened({ clock });
  // It is valid for a day.
  const after = (hours: number): string => {
    passedMs = hours * HOUR_MS;
    ring();
    return logged
      .splice(0)
      .map((line) => line.replace(/\d{4}-.*/, 'T'))
      .join();
  };
  const soon = 'tls.cert: the certificate must be renewed, it expires at T';
  const expired = 'tls.cert: the certificate expired at T';
  assert.equal([after(1), after(20), after(21), after(25)], ['', soon, '', expired]);
  assert.equal([after(48), after(49), after(50), after(73)], ['', expired, '', expired]);
});

openssl('counts a connection before its handshake, and closes it with the port', async () => {
  const { port, listeners } = await opened({ bounds: { perAddress: 2 } });
  const silent = connectPlain(port, '127.0.0.1');
  const closed = untilClosed(silent);
  await once(silent, 'connect');
  silent.write(Buffer.from([0x16])); // the first byte of a handshake
  const secure = [await secureSocket(port), await secureSocket(port)];
  await closed; // the third connection of this address
  assert.ok(secure.every(({ destroyed }) => !destroyed));
  const half = connectPlain(port, '127.0.0.1');
  await once(half, 'connect');
  half.write(Buffer.from([0x16]));
  await Promise.all([untilClosed(half), listeners.close(50)]);
});

openssl('closes a drained connection after its answer', async () => {
  const { port, listeners } = await opened();
  const socket = await secureSocket(port);
  const all = readAll(socket);
  listeners.drain();
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  assert.match(await all, /^HTTP\/1\.1 200 .*Connection: close.*https$/s);
});

openssl('a client may renew its keys, but not over and over', async () => {
  const { port } = await opened();
  const seen: string[] = [];
  const client = renewingEnd('s_client', '-connect', `127.0.0.1:${port}`, '-tls1_3');
  client.stdout?.on('data', (text) => seen.push(String(text)));
  try {
    await becomes(() => seen.join('').includes('Verify return code'), true, 5_000);
    await renew(client, 20);
    client.stdin?.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await becomes(() => seen.join('').includes('HTTP/1.1 200'), true, 5_000);
    const ended = once(client, 'exit');
    await renew(client, 40);
    await ended;
  } finally {
    client.kill('SIGKILL');
  }
});

openssl('handshakes that take long count for what they hold, and the oldest are closed', async () => {
  // One of which nothing comes holds 24 KiB.
  const { port } = await opened({ bounds: { unfinishedBytes: 100 * 1024 } });
  const done = connect({ port, host: '127.0.0.1', ca: await authority() });
  await once(done, 'secureConnect');
  const closed: number[] = [];
  const silent = Array.from({ length: 6 }, (_, index) =>
    connectPlain(port, '127.0.0.1')
      .on('error', () => {})
      .once('close', () => closed.push(index)),
  );
  try {
    await becomes(() => closed.length, 2, 5_000);
    assert.equal([closed.toSorted(), done.closed], [[0, 1], false]);
    assert.is((await ask(port)).statusCode, 200);
  } finally {
    for (const socket of [done, ...silent]) socket.destroy();
  }
});

test.run();

interface Opening {
  readonly clock?: Partial<Clock>;
  readonly bounds?: ConstructorParameters<typeof OpenConnections>[0];
}

/** A port with the certificate `door` of the authority `ca`. `ring`: the files are read again. */
async function opened({ clock = {}, bounds }: Opening = {}) {
  makeAuthority(folder(), 'ca');
  issueCertificate(folder(), 'ca', 'door', '127.0.0.1');
  const rings: (() => void)[] = [];
  const background = {
    ...systemClock.background,
    every: (_: number, ring: () => void) => later(rings, ring),
  };
  const logged: string[] = [];
  const tls = await open(folder('door.crt'), folder('door.key'), logged, {
    ...systemClock,
    background,
    ...clock,
  });
  const proxies = createProxies([]);
  const listeners: Listeners = await openListeners(
    { listeners: [{ host: '127.0.0.1', port: 0, label: 'gateway' }], portsDefaulted: false },
    { serve: (request, response) => response.end(proxies.scheme(request)) },
    { tls, connections: new OpenConnections(bounds) },
  );
  cleanups.push(() => listeners.close(0));
  const { urls } = listeners;
  const ring = () => {
    for (const each of rings) each();
  };
  return { listeners, urls, port: Number(new URL(urls[0] ?? '').port), ring, logged };
}

function later(rings: (() => void)[], ring: () => void): () => void {
  rings.push(ring);
  return () => {};
}

async function open(cert: string, key: string, logged: string[] = [], clock: Clock = systemClock) {
  const log = (line: unknown) => void logged.push(String(line));
  const tls = await openPublicTls({ cert, key }, { warn: log, info: log } as never, { clock });
  cleanups.push(() => tls.close());
  return tls;
}

const authority = () => readFile(folder('ca.crt'));

async function ask(port: number) {
  const [response] = await once(
    get({ port, host: '127.0.0.1', ca: await authority(), agent: false }),
    'response',
  );
  return response;
}

async function secureSocket(port: number): Promise<TLSSocket> {
  const socket = connect({ port, host: '127.0.0.1', ca: await authority() });
  cleanups.unshift(() => socket.destroy());
  await once(socket, 'secureConnect');
  return socket;
}

async function certificateAt(port: number): Promise<PeerCertificate> {
  const socket = await secureSocket(port);
  return socket.getPeerCertificate();
}
