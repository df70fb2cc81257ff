// Handshakes of TLS with backends that make them costly: other work goes on between them.

import type { ChildProcess } from 'node:child_process';
import { on, once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo, Socket } from 'node:net';
import type { Readable } from 'node:stream';
import tls from 'node:tls';
import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { guardedConnector } from '../../../src/net/http1/connector.ts';
import { BackendHandshakes } from '../../../src/net/tls/backend-handshakes.ts';
import { OutsideHandshakes } from '../../../src/net/tls/outside-handshakes.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import {
  hasOpenssl,
  issueCertificate,
  makeAuthority,
  makeCostlyChain,
} from '../../helpers/network/certificates.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { renew, renewingEnd } from '../../helpers/network/key-updates.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('handshakes with backends', { timeoutMs: 60_000 });
const openssl = test.needs(
  hasOpenssl() && 'setDefaultCACertificates' in tls,
  'no openssl here, or an older Node',
);
const folder = folderOfAll(test);
const pairOf = (name: string) => ({
  cert: readFileSync(folder(`${name}.crt`)),
  key: readFileSync(folder(`${name}.key`)),
});
const trusted = tls.getCACertificates?.();
test.before(() => {
  if (!hasOpenssl() || trusted === undefined) return;
  makeCostlyChain(folder(), 60); // 27 kB
  makeAuthority(folder(), 'ca');
  issueCertificate(folder(), 'ca', 'server', 'localhost', 'rsa');
  tls.setDefaultCACertificates([...trusted, readFileSync(folder('ca.crt'), 'utf8')]);
});
test.after(() => {
  if (trusted !== undefined) tls.setDefaultCACertificates(trusted);
});

const UNREAD = { buffer: Buffer.alloc(1), callback: () => true };

/** Two clients, each by what it does for one connection: for backends, and for servers that outsiders name. */
const CLIENTS: Readonly<Record<string, (port: number) => Socket>> = {
  backends: (port) => connectorTo(port).connect(UNREAD),
  outside: (port) =>
    new OutsideHandshakes(systemClock).connect({
      host: 'localhost',
      port,
      ca: readFileSync(folder('ca.crt'), 'utf8'),
    }),
};

openssl(
  'of eight at once, four are read together, then each has its own turn, and rests follow',
  async () => {
    await withServer(pairOf('costly'), undefined, async (port) => {
      const { connect } = connectorTo(port);
      let turns = 0;
      const counting = setInterval(() => (turns += 1), 1);
      const ends = await Promise.all(
        Array.from({ length: 8 }, async () => {
          const [error] = await once(connect(UNREAD), 'error');
          return { code: error.code, turn: turns };
        }),
      );
      clearInterval(counting);
      assert.equal([...new Set(ends.map(({ code }) => code))], ['CERT_SIGNATURE_FAILURE']);
      const at = ends.map(({ turn }) => turn).sort((a, b) => a - b);
      const between = at.slice(4).map((turn, index) => turn - (at[index + 3] ?? 0));
      assert.ok(Math.min(...between) >= 20, `turns of other work between two: ${between}`);
    });
  },
);

openssl('an origin that sends long chains delays no other one', async () => {
  const handshakes = new BackendHandshakes(systemClock);
  await withServer(pairOf('costly'), undefined, async (costly) => {
    await withServer(pairOf('server'), undefined, async (good) => {
      const first = connectorTo(costly, handshakes);
      await once(first.connect(UNREAD), 'error');
      const others = Array.from({ length: 8 }, () => once(first.connect(UNREAD), 'error'));
      let ended = 0;
      for (const other of others) void other.then(() => (ended += 1));
      const socket = connectorTo(good, handshakes).connect(UNREAD);
      await once(socket, 'secureConnect');
      assert.ok(ended < 8, `${ended} of the others were read before`);
      socket.destroy();
      await Promise.all(others);
    });
  });
});

for (const [name, connect] of Object.entries(CLIENTS)) {
  openssl(`${name}: keys of finite fields are not agreed upon`, async () => {
    const ciphers = { ciphers: 'DHE-RSA-AES128-GCM-SHA256', dhparam: 'auto' };
    await withServer({ ...pairOf('server'), ...ciphers, maxVersion: 'TLSv1.2' }, undefined, async (port) => {
      const [error] = await once(connect(port), 'error');
      assert.match(error.code, /HANDSHAKE_FAILURE/);
    });
  });

  openssl(`${name}: a server gets no second handshake on a connection`, async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const renegotiate = (socket: tls.TLSSocket) => void socket.on('error', resolve).renegotiate({}, resolve);
    await withServer({ ...pairOf('server'), maxVersion: 'TLSv1.2' }, renegotiate, async (port) => {
      const socket = connect(port).on('error', () => {});
      socket.resume();
      assert.match(String(await promise), /no renegotiation/);
      socket.destroy();
    });
  });

  openssl(`${name}: a server that renews its keys over and over is left`, async () => {
    const port = await freePort();
    const pair = ['-cert', folder('server.crt'), '-key', folder('server.key')];
    const server = renewingEnd('s_server', '-accept', String(port), ...pair, '-tls1_3');
    try {
      await untilAccepting(server);
      const socket = connect(port);
      await once(socket, 'secureConnect');
      const ended = once(socket, 'error');
      await renew(server, 20);
      assert.not.ok(socket.destroyed);
      await renew(server, 40);
      assert.match(String(await ended), /renews its keys too often/);
    } finally {
      server.kill('SIGKILL');
    }
  });
}

test.run();

/** Its first line is about something else, and may come before it listens. */
async function untilAccepting({ stdout }: ChildProcess): Promise<void> {
  for await (const [data] of on(stdout as Readable, 'data')) if (String(data).includes('ACCEPT')) return;
}

function connectorTo(port: number, handshakes = new BackendHandshakes(systemClock)) {
  return guardedConnector(new URL(`https://localhost:${port}`), () => false, handshakes);
}

async function withServer(
  options: tls.TlsOptions,
  onSocket: (socket: tls.TLSSocket) => void = () => {},
  run: (port: number) => Promise<void>,
): Promise<void> {
  const server = tls.createServer(options, (socket) => onSocket(socket.on('error', () => {}).resume()));
  server.on('tlsClientError', () => {});
  await once(server.listen(0), 'listening');
  try {
    await run((server.address() as AddressInfo).port);
  } finally {
    server.close();
  }
}
