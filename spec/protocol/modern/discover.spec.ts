import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import type { Handshake } from '../../../src/domain/mcp/mcp.ts';
import { commonCapabilities, discoverResult } from '../../../src/protocol/modern/discover.ts';
import { MODERN_HANDSHAKE } from '../../helpers/backends/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('discover');

const handshake = (capabilities: JsonObject): Handshake => ({ ...MODERN_HANDSHAKE, capabilities });
const instructing = (instructions: string): Handshake => ({
  ...MODERN_HANDSHAKE,
  greeting: { instructions },
});

test('listChanged is announced if one instance has it, subscribe only if all have it', () => {
  const full = { resources: { listChanged: true, subscribe: true } };
  const poor = { resources: {} };
  for (const handshakes of [
    [handshake(full), handshake(poor)],
    [handshake(poor), handshake(full)],
    [handshake(poor), handshake(full), handshake(poor)],
  ]) {
    assert.equal(commonCapabilities(handshakes), { resources: { listChanged: true } });
  }
  assert.equal(commonCapabilities([handshake(full), handshake(full)]), full);
});

test('instructions are left out unless all instances have the same', () => {
  const handshakes = [instructing('a'), instructing('b')];
  assert.is(discoverResult(handshakes.slice(0, 1)).instructions, 'a');
  assert.is('instructions' in discoverResult(handshakes), false);
  assert.is('instructions' in discoverResult([handshake({}), ...handshakes]), false);
});

test.run();
