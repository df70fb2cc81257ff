// The written form of a session: what it keeps, and what cannot be written or read.

import * as assert from 'uvu/assert';
import {
  type AggregateSessionValue,
  readSession,
  SESSION_VERSION,
  type SessionValue,
  SessionValueError,
  writeSession,
} from '../../../src/domain/sessions/session-value.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('session value');
const PROFILE = { protocolVersion: '2025-06-18', capabilities: { sampling: {} }, clientInfo: { name: 'c' } };
const NEW: SessionValue = {
  version: SESSION_VERSION,
  kind: 'template',
  template: 't',
  ownerId: 'ann',
  profile: PROFILE,
  unsafe: 'no',
  uris: [],
};
const FULL: SessionValue = {
  ...NEW,
  greeted: {
    era: 'legacy',
    protocolVersion: '2025-06-18',
    serverInfo: { name: 'server', version: '1' },
    capabilities: { tools: { listChanged: true } },
  },
  binding: { instanceId: 'a', serverId: 's', isShared: false },
  unsafe: 'unknown',
  logLevel: 'info',
  uris: ['file:///a', 'file:///b'],
  endReason: 'closed',
};

const NEW_ALL: AggregateSessionValue = {
  version: SESSION_VERSION,
  kind: 'all',
  ownerId: 'ann',
  profile: PROFILE,
  uris: {},
};
const FULL_ALL: AggregateSessionValue = {
  ...NEW_ALL,
  templates: ['s', 't'],
  greeted: {
    era: 'legacy',
    protocolVersion: '2025-11-25',
    serverInfo: { name: 'stagedoor', version: '1' },
    capabilities: { tools: { listChanged: true } },
  },
  logLevel: 'info',
  uris: { t: ['file:///a'] },
  endReason: 'closed',
};

for (const [name, value] of [
  ['without optional fields', NEW],
  ['with all fields', FULL],
  ['with all templates, without optional fields', NEW_ALL],
  ['with all templates and all fields', FULL_ALL],
] as const) {
  test(`a session ${name} is the same when it is read`, () => {
    assert.equal(readSession(writeSession(value)), value);
  });
}

test('a session of more than 16 kB is neither written nor read', () => {
  const field = 'x'.repeat(16 * 1024);
  const large = { ...NEW, uris: [field] };
  for (const act of [() => writeSession(large), () => readSession(JSON.stringify(large))]) {
    const error = problemOf(act);
    assert.equal(
      [error.problem, /^the session takes \d+ bytes; at most 16384 are stored$/.test(error.message)],
      ['size', true],
    );
  }
  const bytes = Buffer.byteLength(writeSession({ ...NEW, uris: [''] }));
  const most = { ...NEW, uris: ['x'.repeat(16 * 1024 - bytes)] };
  assert.equal(readSession(writeSession(most)), most);
});

test('a session of another version is told from a damaged one', () => {
  const error = problemOf(() => readSession(JSON.stringify({ version: 2, all: 'different' })));
  const message = 'the session is stored in version 2; this release reads version 1';
  assert.equal([error.problem, error.message], ['version', message]);
});

for (const [name, text, field] of [
  ['no JSON', '{"version":1,"secret', 'it is not JSON'],
  ['no object', 'null', 'the value is not as it was written'],
  ['no version', JSON.stringify({ ...NEW, version: 'one' }), 'version is not as it was written'],
  ['a field that is missing', JSON.stringify({ ...NEW, uris: undefined }), 'uris is not as it was written'],
  ['no kind', JSON.stringify({ ...NEW, kind: 'some' }), 'kind is not as it was written'],
  [
    'fields of the other kind',
    JSON.stringify({ ...FULL_ALL, template: 't' }),
    'template is not as it was written',
  ],
  ['a field more', JSON.stringify({ ...NEW, secret: 1 }), 'secret is not as it was written'],
  [
    'a wrong value',
    JSON.stringify({ ...NEW, profile: { ...PROFILE, capabilities: 'secret' } }),
    'profile.capabilities is not as it was written',
  ],
] as const) {
  test(`what has ${name} is damaged, and the error repeats no value`, () => {
    const error = problemOf(() => readSession(text));
    assert.equal([error.problem, error.message], ['damage', `the stored session is damaged: ${field}`]);
    assert.is(error.cause, undefined);
  });
}

test.run();

function problemOf(act: () => unknown): SessionValueError {
  try {
    act();
  } catch (thrown) {
    if (thrown instanceof SessionValueError) return thrown;
    throw thrown;
  }
  throw new Error('nothing was thrown');
}
