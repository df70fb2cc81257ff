// TLS of the peer channel with certificates of the operator, between real listeners and clients.

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect as connectTls } from 'node:tls';
import * as assert from 'uvu/assert';
import {
  type CertificateFiles,
  readCertificates,
} from '../../../../src/cluster/channel/trust/peer-certificates.ts';
import { OperatorError } from '../../../../src/domain/errors/errors.ts';
import { systemClock } from '../../../../src/domain/time/clock.ts';
import { becomes } from '../../../helpers/eventually.ts';
import { folderOfEach } from '../../../helpers/folder.ts';
import { hasOpenssl, issueCertificate, makeAuthority } from '../../../helpers/network/certificates.ts';
import { messageOf } from '../../../helpers/outcome.ts';
import { suite } from '../../../helpers/suite.ts';
import { ask, Deployment, forward, type PeerNode } from '../peer-nodes.ts';

/** On Linux, of 256 TiB, though its size is 0. */
const ENDLESS = '/proc/self/pagemap';

const test = suite('certificates of the peer channel', { timeoutMs: 60_000 });
const openssl = test.needs(hasOpenssl(), 'no openssl here');
const [A, B] = ['AAAAAAAA', 'BBBBBBBB'] as const;
const served = (_request: IncomingMessage, response: ServerResponse) => response.end('served');

const folder = folderOfEach(test);
let deployment: Deployment;
/** Rings the timer of all certificates. */
let minute: (() => void)[] = [];
const warnings: string[] = [];
test.before.each(() => {
  deployment = new Deployment();
  minute = [];
  warnings.length = 0;
});
test.after.each(() => deployment.close());

openssl('nodes with certificates of one authority reach each other, and no other node does', async () => {
  authority('ca');
  authority('other');
  const own = await certificates('ca', 'a');
  const b = await deployment.node(B, { isSecure: true, serve: served, tls: await certificates('ca', 'b') });
  const a = await deployment.node(A, { isSecure: true, serve: served, tls: own });
  assert.equal([(await ask(a, B)).text, (await ask(b, A)).text], ['served', 'served']);
  assert.equal(b.refusals, []);
  // Its certificate is of another authority; its own list has both, so that it does not refuse first.
  const stranger = { ...files('other', 'stranger'), ca: await both('ca', 'other') };
  const strangers = [
    await deployment.node('CCCCCCCC', { isSecure: true, tls: await read(stranger) }),
    await deployment.node('DDDDDDDD', { isSecure: true }), // with a key of the secret
  ];
  for (const [at, node] of strangers.entries()) {
    await forward(node, B);
    await becomes(() => b.refusals.length > at, true);
  }
  assert.equal([...new Set(b.refusals.map(({ reason }) => reason))], ['failed handshake']);
});

openssl(
  'a client without a certificate, and one that does not know the authority of the node, are refused',
  async () => {
    authority('ca');
    authority('other');
    const b = await deployment.node(B, { isSecure: true, serve: served, tls: await certificates('ca', 'b') });
    await refusesWithoutCertificate(b);
    const a = await deployment.node(A, { isSecure: true, tls: await certificates('other', 'a') });
    await forward(a, B);
    await becomes(() => b.refusals.length > 1, true);
  },
);

openssl('a certificate is asked for, and shown, only after the name of a secret', async () => {
  authority('ca');
  const b = await deployment.node(B, { isSecure: true, serve: served, tls: await certificates('ca', 'b') });
  const own = await certificates('ca', 'a');
  const shown: unknown[] = [];
  for (const ALPNProtocols of [[], ['http/1.1'], ['stagedoor 0123456789abcdef']]) {
    const options = { ...own.connection('127.0.0.1'), port: b.listener.port, host: '127.0.0.1' };
    const socket = connectTls({ ...options, ALPNProtocols }).on('secureConnect', () =>
      shown.push('a certificate'),
    );
    const [error] = await once(socket, 'error');
    assert.match(String(error.code), /HANDSHAKE_FAILURE|NO_APPLICATION_PROTOCOL/);
  }
  const stranger = {
    isSecure: true,
    tls: own,
    secrets: ['another secret, which has 32 bytes or more'],
  } as const;
  await forward(await deployment.node(A, stranger), B);
  await becomes(() => b.refusals.length, 4);
  assert.equal([...new Set(b.refusals.map(({ reason }) => reason)), ...shown], ['failed handshake']);
});

openssl('a name that a node advertises has to be in its certificate, an address need not be', async () => {
  authority('ca');
  const tls = await certificates('ca', 'b', 'node-b.example');
  const { checkServerIdentity: byName, servername } = tls.connection('node-b.example');
  assert.is(servername, 'node-b.example');
  const peer = { subject: { CN: 'b' }, subjectaltname: 'DNS:node-b.example' } as never;
  assert.is(byName?.('node-b.example', peer), undefined);
  assert.instance(byName?.('other.example', peer), Error);
  assert.is(tls.connection('10.0.0.1').checkServerIdentity?.('10.0.0.1', peer), undefined);
  assert.is(tls.connection('10.0.0.1').rejectUnauthorized, true);
});

openssl('renewed files are used for new connections, and unusable ones are named once', async () => {
  authority('ca');
  authority('next');
  const tls = await certificates('ca', 'b');
  const b = await deployment.node(B, { isSecure: true, serve: served, tls });
  await writeFile(folder('b.crt'), 'half of a file');
  for (const ring of [...minute, ...minute]) ring();
  await becomes(() => warnings.length, 1);
  assert.match(
    warnings[0] ?? '',
    /cluster\.tls: .* cannot be used .*; the previous certificate stays in use/,
  );
  const before = await deployment.node(A, { isSecure: true, tls: await certificates('ca', 'a') });
  assert.is((await ask(before, B)).text, 'served');
  issue('next', 'renewed');
  const { cert: former } = tls.listener();
  await copyFile(folder('renewed.key'), folder('b.key'));
  await copyFile(folder('renewed.crt'), folder('b.crt'));
  await copyFile(folder('next.crt'), folder('ca.crt'));
  for (const ring of minute) ring();
  await becomes(() => tls.listener().cert !== former, true);
  const after = await deployment.node('CCCCCCCC', { isSecure: true, tls: await certificates('next', 'c') });
  assert.equal([(await ask(after, B)).text, b.refusals], ['served', []]);
  await refusesWithoutCertificate(b);
});

openssl('files that are missing or do not fit are named at the start', async () => {
  authority('ca');
  const good = files('ca', 'a');
  const missing = await messageOf(read({ ...good, key: folder('none') }), OperatorError);
  assert.match(missing, /^cluster\.tls\.key: .*none cannot be read/);
  execFileSync('mkfifo', [folder('pipe')]);
  for (const path of [folder('pipe'), '/dev/zero', ...[ENDLESS].filter(existsSync)])
    assert.match(await messageOf(read({ ...good, key: path }), OperatorError), /not a file in PEM/);
  const mixed = await messageOf(read({ ...good, key: files('ca', 'b').key }), OperatorError);
  assert.match(mixed, /^cluster\.tls: the certificate, its key and the authority cannot be used/);
  // With an empty list of authorities Node would trust those of the public.
  for (const [name, text] of [
    ['ca', ''],
    ['ca', 'no certificate'],
    ['cert', ''],
    ['key', ''],
  ] as const) {
    await writeFile(folder('unusable'), text);
    const message = await messageOf(read({ ...good, [name]: folder('unusable') }), OperatorError);
    assert.match(message, /^cluster\.tls: the certificate, its key and the authority cannot be used/, name);
  }
});

openssl('a file of authorities that is empty while it is written anew is not used', async () => {
  authority('ca');
  const tls = await certificates('ca', 'b');
  const { ca } = tls.listener();
  await writeFile(folder('ca.crt'), '');
  for (const ring of minute) ring();
  await becomes(() => warnings.length, 1);
  assert.is(tls.listener().ca, ca);
});

test.run();

async function refusesWithoutCertificate({ listener, refusals }: PeerNode): Promise<void> {
  const socket = connectTls({ port: listener.port, host: '127.0.0.1', rejectUnauthorized: false });
  socket.on('error', () => {}).resume();
  await becomes(() => refusals.length, 1);
  socket.destroy();
}

const authority = (name: string) => makeAuthority(folder(), name);
const issue = (by: string, name: string, host?: string) => issueCertificate(folder(), by, name, host);

function files(by: string, name: string, host?: string): CertificateFiles {
  issue(by, name, host);
  return { cert: folder(`${name}.crt`), key: folder(`${name}.key`), ca: folder(`${by}.crt`) };
}

async function both(...names: string[]): Promise<string> {
  const all = folder('both.crt');
  await writeFile(all, (await Promise.all(names.map((name) => readFile(folder(`${name}.crt`))))).join('\n'));
  return all;
}

function certificates(by: string, name: string, host?: string) {
  return read(files(by, name, host));
}

function read(given: CertificateFiles) {
  const background = {
    alarm: () => () => {},
    every: (_ms: number, callback: () => void) => {
      minute.push(callback);
      return () => {};
    },
  };
  return readCertificates(given, {
    clock: { ...systemClock, background },
    onWarning: (line) => warnings.push(line),
  });
}
