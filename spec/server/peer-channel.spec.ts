// The address of the listener for other nodes, and when it is encrypted.

import * as assert from 'uvu/assert';
import type { Member } from '../../src/cluster/members.ts';
import { ByteBudget } from '../../src/domain/held-bytes.ts';
import { openPeerChannel } from '../../src/server/peer-channel.ts';
import { anonymousAuth } from '../helpers/anonymous-auth.ts';
import { sendRaw } from '../helpers/http-raw.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('address of the peer channel');

/** The advertised address, and the answer to plain HTTP there. */
async function opened(cluster: { readonly listen?: string; readonly advertise?: string }) {
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
        ...cluster,
      },
      requestHeaderBytes: 16_384,
    },
    ...{ nodeId: 'n', life: 'AAAAAAAA', secret: Buffer.alloc(32), database: undefined, audit: auth.audit },
    log: { info: () => {}, warn: () => {} },
    serve: (_request, response) => response.end(),
    host: {
      requestBytes: new ByteBudget({ totalBytes: 0, ownerBytes: 0 }),
      has: () => false,
      open: async () => undefined,
    },
    hasSession: () => false,
    join: (own: Member) => {
      address = own.address;
      return { life: own.life, find: () => undefined, runsOn: () => undefined, refresh: async () => {} };
    },
  });
  try {
    const { protocol, port } = new URL(address);
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

test.run();
