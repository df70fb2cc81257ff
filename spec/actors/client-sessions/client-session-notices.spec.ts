// What of a client's notifications its backend hears.

import * as assert from 'uvu/assert';
import { passOn } from '../../../src/actors/client-sessions/client-session.ts';
import type { Era } from '../../../src/domain/mcp.ts';
import { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('client session: notices');

const SAID = ['initialized', 'cancelled', 'roots/list_changed', 'progress', 'custom'];
const HEARD: Readonly<Record<Exclude<Era, 'bare'>, readonly string[]>> = {
  legacy: ['roots/list_changed', 'progress', 'custom'],
  modern: ['custom'],
};

for (const era of ['legacy', 'modern'] as const) {
  test(`a ${era} backend hears what is meant for it`, () => {
    const backend = new ScriptedTransport({ era });
    for (const name of SAID) passOn(backend, `notifications/${name}`, { name });
    assert.equal(
      backend.notified,
      HEARD[era].map((name) => ({ method: `notifications/${name}`, params: { name } })),
    );
  });
}

test.run();
