// Which addresses are denied, in every spelling, and which may be connected to, literal and resolved.

import { once } from 'node:events';
import { createServer } from 'node:http';
import net, { isIP, type LookupFunction, type Socket } from 'node:net';
import * as assert from 'uvu/assert';
import { DENIED_NETWORKS } from '../../src/domain/registration/instance-endpoint.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { guardedConnector } from '../../src/net/http1/connector.ts';
import { AddressDenied, addressesIn, deniedAddress } from '../../src/net/network-guard.ts';
import { BackendHandshakes } from '../../src/net/tls/backend-handshakes.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('network guard');

test('denies link-local and metadata addresses by default, and nothing ordinary', () => {
  const isDenied = addressesIn(DENIED_NETWORKS);
  const denied = [
    '169.254.169.254',
    '169.254.0.1',
    'fe80::1',
    'fe80::1%eth0',
    'fd00:ec2::254',
    'fd20:ce::254',
    '100.100.100.200',
    '168.63.129.16',
    '::ffff:169.254.169.254',
    '::ffff:a9fe:a9fe',
    '64:ff9b::169.254.169.254',
    '64:ff9b:1::169.254.169.254',
    '2002:a9fe:a9fe::1',
    '::ffff:0:169.254.169.254',
    '::169.254.169.254',
    '::7f00:1',
    '::',
  ];
  for (const address of denied) assert.ok(isDenied(address), address);
  for (const address of [
    '127.0.0.1',
    '::1',
    '0:0:0:0:0:0:0:1',
    '2002:a9ff::1',
    '64:ff9b::8.8.8.8',
    '10.0.0.1',
    '192.168.1.1',
    '8.8.8.8',
    '169.253.1.1',
    'fd00::1',
  ]) {
    assert.not.ok(isDenied(address), address);
  }
});

test('denies the loopback address where a denied range includes it, by every address that reaches it', () => {
  assert.ok(addressesIn(['::/96', '::1/128'])('::1'));
  assert.ok(addressesIn(['::/0'])('::1'));
  for (const address of ['0.0.0.0', '::ffff:0.0.0.0', '::']) {
    assert.is(addressesIn(['127.0.0.0/8', '::1/128'])(address), true, address);
    assert.is(addressesIn(['10.0.0.0/8', 'fe80::/10'])(address), false, address);
  }
});

test('refuses invalid ranges', () => {
  for (const network of ['10.0.0.0', '10.0.0.0/33', 'fe80::/129', 'example.com/8', '10.0.0.0/', '/8', '']) {
    assert.throws(
      () => addressesIn([network]),
      (error: unknown) => error instanceof RangeError,
      network,
    );
  }
});

test('recognises a denied address in every spelling of an endpoint, and leaves names to the connection', () => {
  const isDenied = addressesIn(['169.254.0.0/16', 'fe80::/10']);
  for (const [host, address] of [
    ['169.254.169.254', '169.254.169.254'],
    ['169.254.169.254.', '169.254.169.254'],
    ['2852039166', '169.254.169.254'],
    ['0xa9.0376.169.254', '169.254.169.254'],
    ['[::ffff:169.254.169.254]', '::ffff:a9fe:a9fe'],
    ['[FE80::1]', 'fe80::1'],
    ['127.0.0.1', undefined],
    ['[::1]', undefined],
    ['metadata.example', undefined],
  ] as const) {
    assert.is(deniedAddress(`http://${host}:80/mcp`, isDenied), address, host);
  }
  assert.is(deniedAddress('no url', isDenied), undefined);
});

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
    const url = { hostname, protocol: 'http:', port };
    try {
      const handshakes = new BackendHandshakes(systemClock);
      const socket = guardedConnector(url, addressesIn(networks), handshakes, lookup).connect(UNREAD);
      socket.once('error', resolve).once('connect', () => {
        socket.destroy();
        resolve(socket);
      });
    } catch (thrown) {
      resolve(thrown as Error);
    }
  });
}

const UNREAD = { buffer: Buffer.alloc(1), callback: () => true };

test('connects to allowed addresses, literal and resolved', async () => {
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
  const asksForAll = net.getDefaultAutoSelectFamily();
  for (const all of [true, false]) {
    net.setDefaultAutoSelectFamily(all);
    const outcome = await connect('metadata.example', DENIED_NETWORKS, ['169.254.169.254', 'fe80::1']);
    assert.instance(outcome, AddressDenied);
    assert.is((outcome as AddressDenied).message, 'address 169.254.169.254 is not allowed');
  }
  net.setDefaultAutoSelectFamily(asksForAll);
});

test('uses only the allowed addresses of a name that has both', async () => {
  const outcome = await connect('both.example', ['169.254.0.0/16'], ['169.254.169.254', '127.0.0.1']);
  assert.not.instance(outcome, Error);
});

test.run();
