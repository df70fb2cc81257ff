// What an endpoint may look like, what becomes of it, and which error names what is wrong.

import * as assert from 'uvu/assert';
import { readEndpoint } from '../../src/domain/endpoint.ts';
import { GatewayError } from '../../src/domain/errors.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('endpoint');

/** The code, and for VALIDATION_ERROR the type of its only finding. */
function refusalOf(written: string): string {
  try {
    return `accepted as ${readEndpoint(written, ['body', 'endpoint'])}`;
  } catch (thrown) {
    assert.instance(thrown, GatewayError);
    if (!(thrown instanceof GatewayError)) throw thrown;
    assert.not.match(JSON.stringify([thrown.message, thrown.facts]), 's3cret');
    return [thrown.code, ...(thrown.facts.items ?? []).map(({ type }) => type)].join(' ');
  }
}

test('adds /mcp when there is no path, and uses one as it is given, even the bare slash', () => {
  for (const [written, read] of [
    ['http://127.0.0.1:3001', 'http://127.0.0.1:3001/mcp'],
    [' HTTPS://Example.com ', 'https://example.com/mcp'],
    ['http://[::1]:3001?key=1', 'http://[::1]:3001/mcp?key=1'],
    ['http://example.com/', 'http://example.com/'],
    ['http://example.com/api/v1', 'http://example.com/api/v1'],
    ['http://example.com/sse?x=a/b', 'http://example.com/sse?x=a/b'],
  ] as const)
    assert.is(readEndpoint(written, []), read);
  assert.is(readEndpoint('http://127.0.0.1:3001', [], '/sse'), 'http://127.0.0.1:3001/sse');
});

test('refuses what is no URL with a finding at its location', () => {
  for (const written of [
    'example.com:80',
    'http:/example.com',
    'http:\\\\example.com',
    'http://',
    'http:///mcp',
    'http://a b/',
    'http://example.com:99999',
    'http://s3cret@example.com:99999/',
    '/mcp',
  ]) {
    assert.is(refusalOf(written), 'VALIDATION_ERROR url_parsing', written);
  }
  try {
    readEndpoint('x', ['body', 'instance', 'endpoint']);
    assert.unreachable();
  } catch (thrown) {
    assert.ok(thrown instanceof GatewayError);
    assert.equal(thrown.facts.items?.[0]?.loc, ['body', 'instance', 'endpoint']);
  }
});

test('refuses other schemes and fragments', () => {
  for (const written of ['ftp://example.com/mcp', 'ws://example.com', 'file:///etc/passwd']) {
    assert.is(refusalOf(written), 'VALIDATION_ERROR url_scheme', written);
  }
  assert.is(refusalOf('http://example.com/mcp#top'), 'VALIDATION_ERROR url_syntax_violation');
});

test('does not allow credentials, and does not repeat them', () => {
  assert.is(refusalOf('http://user:s3cret@example.com/mcp'), 'ENDPOINT_NOT_ALLOWED');
  assert.is(refusalOf('http://s3cret@example.com'), 'ENDPOINT_NOT_ALLOWED');
  assert.is(refusalOf('http://@example.com'), 'ENDPOINT_NOT_ALLOWED');
});

test.run();
