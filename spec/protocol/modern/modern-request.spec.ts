// A modern request: its envelope, and the keys that bind texts to it.

import * as assert from 'uvu/assert';
import { type JsonFields, JsonText } from '../../../src/domain/json/json.ts';
import { checkVersion, EnvelopeReader, pathKey } from '../../../src/protocol/modern/modern-request.ts';
import { RpcFailure } from '../../../src/protocol/rpc.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('modern request');

test('keys of different purposes, owners and templates never collide', () => {
  const keys = [
    pathKey('p', { owner: { id: 'a' }, pathName: 'b' }),
    pathKey('p', { owner: { id: 'a","b' }, pathName: '' }),
    pathKey('p', { owner: { id: 'a' }, pathName: undefined }),
    pathKey('p","a', { owner: { id: 'a' }, pathName: 'b' }),
    pathKey('p', { owner: { id: 'a' }, pathName: 'null' }),
  ];
  assert.is(new Set(keys).size, keys.length);
});

const P = 'io.modelcontextprotocol/';
const good = {
  [`${P}protocolVersion`]: '2026-07-28',
  [`${P}clientCapabilities`]: { roots: {} },
  [`${P}clientInfo`]: { name: 'c', version: '1' },
};

function failure(act: () => unknown): RpcFailure {
  try {
    act();
  } catch (thrown) {
    if (thrown instanceof RpcFailure) return thrown;
    throw thrown;
  }
  throw new Error('it was accepted');
}

test('an invalid envelope is refused with the name of the field', () => {
  const table: readonly [change: Record<string, unknown>, key: string, problem: string][] = [
    [{ [`${P}protocolVersion`]: undefined }, `${P}protocolVersion`, 'missing'],
    [{ [`${P}protocolVersion`]: 20260728 }, `${P}protocolVersion`, 'must be a string'],
    [{ [`${P}clientCapabilities`]: undefined }, `${P}clientCapabilities`, 'missing'],
    [{ [`${P}clientCapabilities`]: null }, `${P}clientCapabilities`, 'must be an object'],
    [{ [`${P}clientCapabilities`]: [] }, `${P}clientCapabilities`, 'must be an object'],
    [{ [`${P}clientInfo`]: 'me' }, `${P}clientInfo`, 'must be an object'],
    [{ [`${P}logLevel`]: 'loud' }, `${P}logLevel`, 'must be a log level'],
    [{ progressToken: {} }, 'progressToken', 'must be a string or a number'],
  ];
  for (const [change, key, problem] of table) {
    const meta = JSON.parse(JSON.stringify({ ...good, ...change }));
    const { status, error } = failure(() => new EnvelopeReader().read({ _meta: meta }));
    assert.equal([status, error.code, error.data], [400, -32602, { envelope: { key, problem } }]);
  }
  for (const params of [{}, { _meta: null }, { _meta: [] }]) {
    const { status, error } = failure(() => new EnvelopeReader().read(params));
    assert.equal([status, error.code], [400, -32602]);
  }
});

test('a repeated profile is read once, and one that differs anywhere is another', () => {
  const reader = new EnvelopeReader();
  const profileOf = (version: string, capabilities: string, info?: JsonFields[string]) =>
    reader.read({
      _meta: {
        [`${P}protocolVersion`]: version,
        [`${P}clientCapabilities`]: JsonText.ofText(capabilities),
        ...(info === undefined ? {} : { [`${P}clientInfo`]: info }),
      },
    }).profile;
  const info = () => JsonText.ofText('{"name":"c"}');
  const first = profileOf('2026-07-28', '{"roots":{}}', info());
  assert.is(profileOf('2026-07-28', '{"roots":{}}', info()), first);
  assert.equal(profileOf('2026-07-28', '{}', info()).capabilities, {});
  assert.equal(profileOf('2026-07-28', '{}').clientInfo, {});
  assert.equal(profileOf('2026-07-28', '{}', JsonText.ofText('{"name":"d"}')).clientInfo, { name: 'd' });
  assert.is(profileOf('2026-07-29', '{}', JsonText.ofText('{"name":"d"}')).protocolVersion, '2026-07-29');
  // A value that is not kept as text is read each time.
  assert.equal(profileOf('2026-07-28', '{}', { name: 'e' }).clientInfo, { name: 'e' });
  assert.equal(profileOf('2026-07-28', '{}').clientInfo, {});
});

test('an envelope has at most 32 Ki units of capabilities and client', () => {
  const large = { x: 'x'.repeat(32 * 1024) };
  for (const [field, value] of [
    ['clientCapabilities', large],
    ['clientInfo', { ...good[`${P}clientInfo`], ...large }],
  ] as const) {
    const { status, error } = failure(() =>
      new EnvelopeReader().read({ _meta: { ...good, [`${P}${field}`]: value } }),
    );
    assert.equal([status, error.code], [400, -32602]);
  }
});

test('the refusal of an unsupported revision names the supported ones', () => {
  checkVersion('2026-07-28');
  for (const requested of ['v999.0.0', '2025-11-25', '2026-07-29', '']) {
    const { status, error } = failure(() => checkVersion(requested));
    assert.equal([status, error.code, error.data], [400, -32022, { supported: ['2026-07-28'], requested }]);
  }
});

test.run();
