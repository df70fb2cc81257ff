// Which addresses may be connected to, literal and resolved.

import { once } from 'node:events';
import { createServer } from 'node:http';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import * as assert from 'uvu/assert';
import { DENIED_NETWORKS } from '../../../src/domain/endpoint.ts';
import { guardedConnector } from '../../../src/transports/http/http-connection.ts';
import { AddressDenied } from '../../../src/transports/network-guard.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('guarded connector');

const server = createServer();
test.before(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
test.after(() => server.close());

type Outcome = Socket | Error;

function connect(
  hostname: string,
  networks: readonly string[],
  answers: readonly string[] = [],
): Promise<Outcome> {
  const lookup: LookupFunction = (_, options, callback) => {
    const found = answers.map((address) => ({ address, family: isIP(address) }));
    const [first] = found;
    if (options.all || first === undefined) callback(null, found);
    else callback(null, first.address, first.family);
  };
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? String(address.port) : '';
  return new Promise((resolve) => {
    guardedConnector(
      networks,
      2_000,
      lookup,
    )({ hostname, protocol: 'http:', port }, (error, socket) => {
      socket?.destroy();
      resolve(error ?? socket);
    });
  });
}

test('connects to what is allowed', async () => {
  assert.not.instance(await connect('127.0.0.1', DENIED_NETWORKS), Error);
  assert.not.instance(await connect('name.example', DENIED_NETWORKS, ['127.0.0.1']), Error);
});

test('refuses a denied literal address before any packet is sent', async () => {
  for (const hostname of ['169.254.169.254', '127.0.0.1', '::ffff:127.0.0.1']) {
    const outcome = await connect(hostname, ['169.254.0.0/16', '127.0.0.0/8']);
    assert.instance(outcome, AddressDenied);
    assert.is((outcome as AddressDenied).message, `address ${hostname} is not allowed`);
  }
});

test('refuses a name that resolves to denied addresses only', async () => {
  const outcome = await connect('metadata.example', DENIED_NETWORKS, ['169.254.169.254', 'fe80::1']);
  assert.instance(outcome, AddressDenied);
  assert.is((outcome as AddressDenied).address, '169.254.169.254');
});

test('uses only the allowed addresses of a name that has both', async () => {
  const outcome = await connect('both.example', ['169.254.0.0/16'], ['169.254.169.254', '127.0.0.1']);
  assert.not.instance(outcome, Error);
});

test.run();
