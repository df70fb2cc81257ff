import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { Peer } from '../../../src/domain/mcp.ts';
import { commonCapabilities, discoverResult } from '../../../src/protocol/modern/modern-discover.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('modern discover');

const own = { name: 'stagedoor', version: '9' };
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
