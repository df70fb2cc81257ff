// The sums of the statistics of all nodes.

import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../../src/domain/accounts/principal.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { OtherMembers } from '../../../src/http/all-nodes/other-members.ts';
import { ownStatistics, statisticsOf } from '../../../src/http/all-nodes/statistics.ts';
import { startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';
import { untimedScheduler } from '../../helpers/time/turns.ts';

const test = suite('statistics of all nodes');

test('a node that does not know a server yet adds nothing, whatever the name of the server is', async () => {
  const { gateway, serve, close } = await startApp();
  const scheduler = untimedScheduler();
  const services = { gateway, traffic: gateway.internals.traffic, scheduler };
  try {
    const before = await ownStatistics(ANONYMOUS, services);
    await serve('constructor', 'constructor');
    const answers = new Map([['b', before]]);
    const asked = { ask: async () => ({ answers, partial: [] }) };
    const otherMembers = Object.assign(
      new OtherMembers({ nodes: () => [], clock: systemClock, scheduler }),
      asked,
    );
    const both = await statisticsOf(ANONYMOUS, { ...services, otherMembers });
    const own = await ownStatistics(ANONYMOUS, services);
    // As texts, since the comparison of objects reads their field `constructor`.
    assert.is(JSON.stringify(both.instances), JSON.stringify(own.instances));
    assert.is(JSON.stringify(both.load_balancer.active_connections), '{"constructor":0}');
    assert.is(both.active_connections, 0);
  } finally {
    await close();
  }
});

test.run();
