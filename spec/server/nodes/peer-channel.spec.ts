// The address of the listener for other nodes, and when it is encrypted.

import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import * as assert from 'uvu/assert';
import { openSocketFolder } from '../../../src/cli/workers/socket-folder.ts';
import { channelKeys } from '../../../src/cluster/channel/trust/channel-keys.ts';
import type { ReachableLife } from '../../../src/cluster/reachable-life.ts';
import { OperatorError } from '../../../src/domain/errors/errors.ts';
import { UserShares } from '../../../src/domain/memory/user-shares.ts';
import { openPeerChannel } from '../../../src/server/nodes/peer-channel.ts';
import { knownNodesIn } from '../../cluster/channel/known-nodes.ts';
import { sendRaw } from '../../helpers/clients/raw-http.ts';
import { anonymousAuth } from '../../helpers/http/anonymous-auth.ts';
import { messageOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('address of the peer channel');

/** The advertised address, and the answer to plain HTTP there. */
async function opened(cluster: { readonly listen?: string; readonly advertise?: string }, socket?: string) {
  const auth = anonymousAuth();
  let address = '';
  const channel = await openPeerChannel({
    config: {
      cluster: {
        listen: undefined,
        advertise: undefined,
        forward: true,
        recover: true,
        programs: true,
        ephemeralNodes: false,
        tls: { cert: undefined, key: undefined, ca: undefined },
        ...cluster,
      },
      requestHeaderBytes: 16_384,
    },
    ...{
      nodeId: 'n',
      life: 'AAAAAAAA',
      keys: channelKeys([Buffer.alloc(32)]),
      database: undefined,
      audit: auth.audit,
    },
    ...{ log: { info: () => {}, warn: () => {} }, socket },
    serve: (_request, response) => response.end(),
    host: {
      requestBytes: new UserShares(0, 0),
      has: () => false,
      open: async () => undefined,
    },
    hasSession: () => false,
    hasCertificates: false,
    join: async (own: ReachableLife) => {
      address = own.address;
      return knownNodesIn(new Map(), () => own.life);
    },
  });
  try {
    if (socket !== undefined) assert.match(await answerOn(socket), 'HTTP/1.1 401');
    const { protocol, port } = new URL(address);
    if (protocol === 'unix:') return [address];
    return [protocol, (await sendRaw(Number(port), 'GET / HTTP/1.1\r\nHost: x\r\n\r\n')).slice(0, 12)];
  } finally {
    await channel.close(0);
    await auth.close();
  }
}

test('only a listener on loopback answers plain HTTP', async () => {
  const advertise = '127.0.0.1';
  assert.equal(await opened({ advertise }), ['http:', 'HTTP/1.1 401']);
  assert.equal(await opened({ advertise, listen: '127.0.0.1' }), ['http:', 'HTTP/1.1 401']);
  assert.equal(await opened({ advertise, listen: '0.0.0.0' }), ['https:', '']);
  assert.equal(await opened({ advertise: 'node.example', listen: '127.0.0.1' }), ['https:', '']);
});

test('a start with an address that no node could use is refused', async () => {
  const wanted =
    /^other nodes cannot connect to this one at https:\/\/10\.0\.0\.256:8090: set cluster\.advertise/;
  assert.match(await messageOf(opened({ advertise: '10.0.0.256:8090' }), OperatorError), wanted);
});

const onPosix = test.needs(process.platform !== 'win32', 'Windows has no socket files');

onPosix('a worker listens on a socket file, where other nodes may come on an address, too', async () => {
  const folder = openSocketFolder();
  assert.ok(folder);
  const socket = join(folder.path, '1');
  assert.is(statSync(folder.path).mode & 0o777, 0o700);
  assert.equal(await opened({}, socket), [`unix:${socket}`]);
  assert.not(existsSync(socket), 'removed at the end');
  writeFileSync(socket, 'of a worker that was killed');
  assert.equal(await opened({ advertise: '127.0.0.1' }, socket), ['http:', 'HTTP/1.1 401']);
  folder.remove();
  assert.not(existsSync(folder.path));
});

test('a path that is too long for a socket file is not used', () => {
  const long = mkdtempSync(join(tmpdir(), 'x'.repeat(100)));
  try {
    assert.is(openSocketFolder([long]), undefined);
    assert.is(openSocketFolder([join(tmpdir(), 'there is no such folder')]), undefined);
  } finally {
    rmSync(long, { recursive: true });
  }
});

test.run();

/** The first line of the answer to a request without a token. */
async function answerOn(socket: string): Promise<string> {
  const connection = connect(socket);
  connection.end('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  const [first] = (await text(connection)).split('\r\n');
  return first ?? '';
}
