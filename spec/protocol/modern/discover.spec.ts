import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import type { Peer } from '../../../src/domain/mcp/mcp.ts';
import { commonCapabilities, discoverResult } from '../../../src/protocol/modern/discover.ts';
import { MODERN_PEER } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('discover');

const peer = (capabilities: JsonObject): Peer => ({ ...MODERN_PEER, capabilities });
const instructing = (instructions: string): Peer => ({ ...MODERN_PEER, greeting: { instructions } });

test('listChanged is announced if one instance has it, subscribe only if all have it', () => {
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

test('instructions are left out unless all instances have the same', () => {
  const peers = [instructing('a'), instructing('b')];
  assert.is(discoverResult(peers.slice(0, 1)).instructions, 'a');
  assert.is('instructions' in discoverResult(peers), false);
  assert.is('instructions' in discoverResult([peer({}), ...peers]), false);
});

test.run();
