import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import * as assert from 'uvu/assert';
import { createProxies } from '../../src/http/proxies.ts';
import { suite } from '../helpers/suite.ts';

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

test('are not believed when nobody trusts them', () => {
  const proxies = createProxies([]);
  const request = from('10.0.0.1', forwarded);
  assert.is(proxies.address(request), '10.0.0.1');
  assert.is(proxies.host(request), 'direct.example');
  assert.is(proxies.scheme(request), 'http');
});

test('are believed when they are trusted, in what they wrote themselves', () => {
  const proxies = createProxies(['10.0.0.0/8']);
  const request = from('10.0.0.1', forwarded);
  assert.is(proxies.address(request), '198.51.100.7');
  assert.is(proxies.host(request), 'public.example');
  assert.is(proxies.scheme(request), 'https');
});

test('are told by the socket, never by a header', () => {
  const proxies = createProxies(['10.0.0.0/8']);
  assert.is(proxies.address(from('198.51.100.1', forwarded)), '198.51.100.1');
});

test('may be written as IPv4 in IPv6, or be IPv6', () => {
  const proxies = createProxies(['10.0.0.1', 'fd00::/8']);
  assert.is(proxies.host(from('::ffff:10.0.0.1', forwarded)), 'public.example');
  assert.is(proxies.host(from('fd12::1', forwarded)), 'public.example');
  assert.is(proxies.host(from('fe80::1', forwarded)), 'direct.example');
});

test('without headers of their own change nothing', () => {
  const proxies = createProxies(['10.0.0.1']);
  assert.is(proxies.address(from('10.0.0.1')), '10.0.0.1');
  assert.is(proxies.host(from('10.0.0.1')), 'direct.example');
});

test('that forward for this machine are not this machine', () => {
  const proxies = createProxies([]);
  assert.ok(proxies.isLocal(from('127.0.0.1')));
  assert.ok(proxies.isLocal(from('127.8.9.10')));
  assert.ok(proxies.isLocal(from('::1')));
  assert.ok(proxies.isLocal(from('::ffff:127.0.0.1')));
  assert.not(proxies.isLocal(from('10.0.0.1')));
  assert.not(proxies.isLocal(from(undefined)));
  assert.not(proxies.isLocal(from('127.0.0.1', { 'x-forwarded-for': '203.0.113.9' })));
  assert.not(proxies.isLocal(from('127.0.0.1', { 'x-forwarded-for': '127.0.0.1' })));
  assert.not(proxies.isLocal(from('127.0.0.1', { forwarded: 'for=203.0.113.9' })));
  assert.not(proxies.isLocal(from('127.0.0.1', { via: '1.1 proxy' })));
  assert.not(proxies.isLocal(from('127.0.0.1', { 'x-real-ip': '203.0.113.9' })));
  assert.not(proxies.isLocal(from('127.0.0.1', { 'x-forwarded-host': 'gateway.example' })));
});

test('that are trusted tell who is local', () => {
  const proxies = createProxies(['127.0.0.1']);
  assert.not(proxies.isLocal(from('127.0.0.1', { 'x-forwarded-for': '203.0.113.9' })));
  assert.not(proxies.isLocal(from('127.0.0.1', { 'x-forwarded-for': '127.0.0.1, 203.0.113.9' })));
  assert.ok(proxies.isLocal(from('127.0.0.1', { 'x-forwarded-for': '::1' })));
  for (const header of ['unknown', '127.0.0.1, unknown', '203.0.113.9, unknown', ''])
    assert.not(proxies.isLocal(from('127.0.0.1', { 'x-forwarded-for': header })), header);
  assert.not(proxies.isLocal(from('127.0.0.1')));
});

test('that are trusted may write ports and brackets, and what is no address counts as their own', () => {
  const proxies = createProxies(['10.0.0.0/8']);
  const cases: [string, string][] = [
    ['203.0.113.9:51234', '203.0.113.9'],
    ['[2001:db8::7]:443', '2001:db8::7'],
    ['[2001:db8::7]', '2001:db8::7'],
    ['2001:db8::7', '2001:db8::7'],
    ['203.0.113.9, unknown', '10.0.0.1'],
    ['unknown, 203.0.113.9', '203.0.113.9'],
    ['x'.repeat(1_000), '10.0.0.1'],
    ['10.0.0.7, 10.0.0.2:99', '10.0.0.7'],
  ];
  for (const [header, expected] of cases) {
    assert.is(proxies.address(from('10.0.0.1', { 'x-forwarded-for': header })), expected, header);
  }
});

test('cannot be written as anything but addresses and networks', () => {
  for (const entry of ['', 'proxy.example', '10.0.0.0/', '10.0.0.0/33', '10.0.0/8', '10.0.0.0/8/8', '*']) {
    assert.throws(() => createProxies([entry]), Error, entry);
  }
});

test.run();
