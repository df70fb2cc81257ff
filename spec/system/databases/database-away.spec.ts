// A real gateway loses its database, by a line that is cut and by one that falls silent: who was known is served, what would
// change something is refused in bounded time and changes nothing, and all is well by itself afterwards.

import * as assert from 'uvu/assert';
import { listed, toolText, verdictOf } from '../../helpers/caller.ts';
import { mariadb, postgresql } from '../../helpers/services.ts';
import { suite } from '../../helpers/suite.ts';
import { together } from '../../helpers/together.ts';
import {
  away,
  endsInTime,
  far,
  loseAndFind,
  onHarness,
  tellsThatItIsAway,
  tellsThatItIsBack,
} from './database-away.ts';

const test = suite('journey: database away', { timeoutMs: 120_000 });
// Nearly all of their time is that of waiting for what does not answer.
const all = together(test, 3);
const onPostgresql = onHarness(test, all, await postgresql());
const onMariadb = onHarness(test, all, await mariadb());

onPostgresql(
  'PostgreSQL refuses: the known are served, changes are not, and all is well afterwards',
  (harness) => loseAndFind(harness, harness.line.cut),
);

onPostgresql(
  'PostgreSQL falls silent: the same, and a signal ends the gateway meanwhile',
  async (harness) => {
    await loseAndFind(harness, harness.line.silence);
    harness.line.silence();
    await endsInTime(harness);
  },
);

// In short: its driver has other ways to fail.
onMariadb('MariaDB refuses, comes back, falls silent, comes back, and ends in silence', async (harness) => {
  const { line, admin, key } = harness;
  for (const trouble of [line.cut, line.silence]) {
    await trouble();
    await tellsThatItIsAway(harness);
    const [refused, served] = await Promise.all([
      admin('POST /gateway/register', far('lost', 'http://127.0.0.1:1')),
      key('POST /mcp/far/tools/call', { name: 'name' }),
    ]);
    assert.equal([verdictOf(refused), toolText(served)], [away, 'one']);
    await line.mend();
    await tellsThatItIsBack(harness);
    assert.equal(Object.keys(await listed(admin)), ['far/one', 'near/one']);
  }
  line.silence();
  await endsInTime(harness);
});

test.run();
