import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { Peer } from '../../../src/domain/mcp.ts';
import {
  commonCapabilities,
  discoverResult,
  serverInfoOf,
} from '../../../src/protocol/modern/modern-discover.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('modern discover');

const own = { name: 'stagedoor', version: '9' };
const KEY = 'io.modelcontextprotocol/serverInfo';

function peer(capabilities: JsonObject, change: Partial<Peer> = {}): Peer {
  return {
    era: 'modern',
    protocolVersion: '2026-07-28',
    serverName: 'notes',
    serverVersion: '1',
    capabilities,
    greeting: {},
    ...change,
  };
}

test('one instance is enough to have news of a list, all are needed for subscriptions', () => {
  const full = { resources: { listChanged: true, subscribe: true } };
  const poor = { resources: {} };
  for (const peers of [
    [peer(full), peer(poor)],
    [peer(poor), peer(full)],
    [peer(poor), peer(full), peer(poor)],
  ]) {
    assert.equal(commonCapabilities(peers), { resources: { listChanged: true } });
  }
  assert.equal(commonCapabilities([peer(full), peer(full)]), full);
});

test('extensions are shared by name, with their equal fields', () => {
  const one = { extensions: { a: { x: 1, y: [1] }, b: {} } };
  const two = { extensions: { a: { x: 2, y: [1] }, c: {} } };
  assert.equal(commonCapabilities([peer(one), peer(two)]), { extensions: { a: { y: [1] } } });
});

test('a single server is named as in its handshake', () => {
  const legacy = { serverInfo: { name: 'notes', version: '1', title: 'Notes' } };
  const modern = { _meta: { [KEY]: { name: 'notes', version: '1', websiteUrl: 'https://x' } } };
  assert.equal(serverInfoOf([peer({}, { greeting: legacy })], own), legacy.serverInfo);
  assert.equal(serverInfoOf([peer({}, { greeting: modern })], own), modern._meta[KEY]);
  assert.equal(serverInfoOf([peer({}), peer({}, { serverVersion: '2' })], own), {
    name: 'notes',
    version: '1',
  });
  assert.equal(serverInfoOf([peer({}, { greeting: { serverInfo: { name: 'other' } } })], own), {
    name: 'notes',
    version: '1',
  });
});

test('instructions are those of all instances, or left out', () => {
  const peers = [
    peer({}, { greeting: { instructions: 'a' } }),
    peer({}, { greeting: { instructions: 'b' } }),
  ];
  assert.is(discoverResult([peer({}, { greeting: { instructions: 'a' } })], own).instructions, 'a');
  assert.is('instructions' in discoverResult(peers, own), false);
  assert.is('instructions' in discoverResult([peer({}), ...peers], own), false);
});

test.run();
