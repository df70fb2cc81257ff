import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import * as assert from 'uvu/assert';
import { createProxies } from '../../../src/http/callers/proxies.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('proxies');

/** A request from an address, with headers. */
function from(remoteAddress: string | undefined, headers: Record<string, string> = {}): IncomingMessage {
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', { value: remoteAddress });
  const request = new IncomingMessage(socket);
  Object.assign(request.headers, { host: 'direct.example', ...headers });
  return request;
}

const forwarded = {
  'x-forwarded-for': '203.0.113.9, 198.51.100.7, 10.0.0.2',
  'x-forwarded-host': 'spoofed.example, public.example',
  'x-forwarded-proto': 'http, https',
};

test('set client address, host and scheme by their X-Forwarded headers only if their socket address is trusted', () => {
  const named = ['198.51.100.7', 'public.example', 'https'];
  const networks = ['10.0.0.0/8', 'fd00::/8'];
  for (const [trusted, address, headers, seen] of [
    [[], '10.0.0.1', forwarded, ['10.0.0.1', 'direct.example', 'http']],
    [networks, '10.0.0.1', forwarded, named],
    [networks, '::ffff:10.0.0.1', forwarded, named],
    [networks, 'fd12::1', forwarded, named],
    [networks, 'fe80::1', forwarded, ['fe80::1', 'direct.example', 'http']],
    [networks, '198.51.100.1', forwarded, ['198.51.100.1', 'direct.example', 'http']],
    [['10.0.0.1/32'], '10.0.0.1', {}, ['10.0.0.1', 'direct.example', 'http']],
  ] as const) {
    const proxies = createProxies(trusted);
    const request = from(address, headers);
    assert.equal([proxies.address(request), proxies.host(request), proxies.scheme(request)], seen, address);
  }
});

test('on loopback make a request local only if they are trusted and forward for a loopback address', () => {
  const to = (header: string) => ({ 'x-forwarded-for': header });
  const there = '203.0.113.9';
  for (const [trusted, address, headers, isLocal] of [
    ...['127.0.0.1', '127.8.9.10', '::1', '::ffff:127.0.0.1'].map((each) => [[], each, {}, true] as const),
    ...['10.0.0.1', undefined].map((each) => [[], each, {}, false] as const),
    ...[
      ...[to(there), to('127.0.0.1'), { forwarded: `for=${there}` }, { via: '1.1 proxy' }],
      ...[{ 'x-real-ip': there }, { 'x-forwarded-host': 'gateway.example' }],
    ].map((headers) => [[], '127.0.0.1', { ...headers }, false] as const),
    [['127.0.0.1/32'], '127.0.0.1', to('::1'), true],
    ...[there, `127.0.0.1, ${there}`, 'unknown', '127.0.0.1, unknown', `${there}, unknown`, ''].map(
      (header) => [['127.0.0.1/32'], '127.0.0.1', to(header), false] as const,
    ),
    [['127.0.0.1/32'], '127.0.0.1', {}, false],
  ] as const)
    assert.is(
      createProxies(trusted).isLocal(from(address, headers)),
      isLocal,
      JSON.stringify([address, headers]),
    );
});

test('that are trusted may forward addresses with ports and brackets; an invalid one counts as the address of the proxy', () => {
  const proxies = createProxies(['10.0.0.0/8']);
  for (const [header, expected] of [
    ['203.0.113.9:51234', '203.0.113.9'],
    ['[2001:db8::7]:443', '2001:db8::7'],
    ['[2001:db8::7]', '2001:db8::7'],
    ['2001:db8::7', '2001:db8::7'],
    ['203.0.113.9, unknown', '10.0.0.1'],
    ['unknown, 203.0.113.9', '203.0.113.9'],
    ['x'.repeat(1_000), '10.0.0.1'],
    ['10.0.0.7, 10.0.0.2:99', '10.0.0.7'],
  ] as const)
    assert.is(proxies.address(from('10.0.0.1', { 'x-forwarded-for': header })), expected, header);
});

test.run();
