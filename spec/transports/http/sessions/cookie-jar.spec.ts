// Which cookies go back to a server, and which do not: RFC 6265, for one origin.

import * as assert from 'uvu/assert';
import { systemClock } from '../../../../src/domain/time/clock.ts';
import { CookieJar } from '../../../../src/transports/http/sessions/cookie-jar.ts';
import { collectGarbage } from '../../../helpers/garbage.ts';
import { suite } from '../../../helpers/suite.ts';

const test = suite('cookie jar');

const setter = { host: 'mcp.example.com', path: '/a/mcp?x=1', isSecure: false };

/** The header for a path after these cookies were set. */
function header(lines: string | readonly string[], path = '/a/mcp', more: Partial<typeof setter> = {}) {
  const jar = new CookieJar();
  jar.keep(lines, { ...setter, ...more }, systemClock);
  return jar.headerFor(path, systemClock);
}

test('sends back the value as it was written, without the attributes', () => {
  assert.is(header('s="a b%20=c"; HttpOnly; SameSite=None; Path=/'), 's="a b%20=c"');
  assert.is(header(['one=1', 'two=2; Expires=Wed, 01 Jan 2110 00:00:00 GMT']), 'one=1; two=2');
  assert.is(header('plain'), 'plain');
});

test('keeps no cookie of another host, of no name, or for secure connections only', () => {
  for (const domain of ['example.org', 'other.example.com', 'com', 'x.mcp.example.com', 'p.example.com'])
    assert.is(header(`s=1; Domain=${domain}`), undefined, domain);
  for (const domain of ['mcp.example.com', '.Example.com', 'example.com', ''])
    assert.is(header(`s=1; Domain=${domain}`), 's=1', domain);
  assert.is(header('s=1; Domain=0.0.1', '/a', { host: '127.0.0.1' }), undefined);
  assert.is(header('s=1; Secure'), undefined);
  assert.is(header('s=1; Secure', '/a/mcp', { isSecure: true }), 's=1');
  for (const line of ['', ';', '=', 's=\u0001', 'кука=1', `s=${'x'.repeat(5_000)}`])
    assert.is(header(line), undefined, line);
});

test('sends a cookie below its path only, the longest path first', () => {
  const jar = new CookieJar();
  jar.keep(
    ['root=1; Path=/', 'own=1', 'deep=1; Path=/a/mcp', 'beside=1; Path=/a/mc', 'bad=1; Path=b'],
    setter,
    systemClock,
  );
  assert.is(jar.headerFor('/a/mcp?q', systemClock), 'deep=1; own=1; root=1; bad=1');
  assert.is(jar.headerFor('/a/mcp/x', systemClock), 'deep=1; own=1; root=1; bad=1');
  assert.is(jar.headerFor('/b', systemClock), 'root=1; bad=1');
  assert.is(header('s=1', '/other', { path: '/mcp' }), 's=1');
});

test('replaces a cookie of the same name and path, and removes an expired one', () => {
  for (const end of ['Max-Age=0', 'Max-Age=-1', 'Expires=Thu, 01 Jan 1970 00:00:00 GMT']) {
    assert.is(header(['s=1', 's=2', `t=1`, `t=; ${end}`]), 's=2', end);
    assert.is(header(['s=1', `s=; Path=/other; ${end}`]), 's=1', end);
  }
  assert.is(header('s=1; Expires=nonsense; Max-Age=x'), 's=1');
  assert.is(header('s=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT'), 's=1');
});

test('keeps nothing else of the headers that set cookies', () => {
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const jar = new CookieJar();
  for (let at = 0; at < 50; at += 1)
    jar.keep(
      `a-long-name-${at}=a-long-value-${at}; path=/a/mcp/long; x=${'y'.repeat(100_000)}`,
      setter,
      systemClock,
    );
  collectGarbage();
  const kept = process.memoryUsage().heapUsed - before;
  assert.ok(kept < 1_000_000, `${kept} bytes`);
  assert.ok(jar.headerFor('/a/mcp/long', systemClock)?.endsWith('a-long-name-49=a-long-value-49'));
});

test('a cookie ends at its time, also when the clock of the machine was set', () => {
  const atMs = { monotonic: 0, wall: Date.parse('2026-01-01T00:00:00Z') };
  const clock = { ...systemClock, now: () => atMs.monotonic, wall: () => atMs.wall };
  const jar = new CookieJar();
  const lines = ['age=1; Max-Age=60', 'date=1; Expires=Thu, 01 Jan 2026 00:01:00 GMT', 'session=1'];
  jar.keep(lines, setter, clock);
  atMs.wall += 3_600_000;
  atMs.monotonic += 59_999;
  assert.is(jar.headerFor('/a', clock), 'age=1; date=1; session=1');
  atMs.monotonic += 1;
  assert.is(jar.headerFor('/a', clock), 'session=1');
});

test('the cookies of the definition stay, unless the server sets another value', () => {
  const jar = new CookieJar();
  assert.is(jar.headerFor('/', systemClock, 'key=own; lang=en'), undefined);
  jar.keep('key=new; Path=/', setter, systemClock);
  assert.is(jar.headerFor('/', systemClock, 'key=own; lang=en'), 'lang=en; key=new');
  jar.keep('key=; Path=/; Max-Age=0', setter, systemClock);
  assert.is(jar.headerFor('/', systemClock, 'key=own; lang=en'), undefined);
});

test('is bounded: by cookies and by bytes, the oldest end first', () => {
  const many = Array.from({ length: 60 }, (_, index) => `c${index}=1; Path=/`);
  assert.is(header(many)?.split('; ').length, 50);
  assert.match(header(many) ?? '', /^c10=1; /);
  const large = Array.from({ length: 5 }, (_, index) => `c${index}=${'x'.repeat(3_000)}; Path=/`);
  assert.is(header(large)?.split('; ').length, 2);
  assert.is(header(Array.from({ length: 1_000 }, () => 's=1'))?.length, 3);
});

test.run();
