// The same as database-away.spec.ts with MariaDB, in short: its driver has other ways to fail.

import * as assert from 'uvu/assert';
import { listed, toolText, verdictOf } from '../../helpers/caller.ts';
import { mariadb } from '../../helpers/services.ts';
import { suite } from '../../helpers/suite.ts';
import { away, endsInTime, far, onHarness, tellsThatItIsAway, tellsThatItIsBack } from './database-away.ts';

const test = suite('journey: MariaDB away', { timeoutMs: 90_000 });
const onMariadb = onHarness(test, await mariadb());

onMariadb('it refuses, comes back, falls silent, comes back, and ends in silence', async (harness) => {
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
