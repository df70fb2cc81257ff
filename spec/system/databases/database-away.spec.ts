// A real gateway loses its database, by a connection that is cut and by one that goes silent: callers with cached credentials
// are served, changes are refused in bounded time and have no effect, and the gateway recovers by itself.

import * as assert from 'uvu/assert';
import { listed, statusAndCode, toolText } from '../../helpers/clients/caller.ts';
import { mariadb, postgresql } from '../../helpers/services/services.ts';
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
// They spend nearly all of their time waiting for answers that do not come.
const all = together(test, 3);
const onPostgresql = onHarness(test, all, await postgresql());
const onMariadb = onHarness(test, all, await mariadb());

onPostgresql(
  'PostgreSQL refuses connections: cached callers are served, changes get 503, and the gateway recovers',
  (harness) => loseAndFind(harness, harness.line.cut),
);

onPostgresql(
  'PostgreSQL goes silent: cached callers are served, changes get 503, and SIGTERM ends the gateway in time',
  async (harness) => {
    await loseAndFind(harness, harness.line.silence);
    harness.line.silence();
    await endsInTime(harness);
  },
);

// A shorter test: this driver fails in other ways.
onMariadb('MariaDB is cut or silent: changes get 503, and the gateway recovers or stops', async (harness) => {
  const { line, admin, key } = harness;
  for (const trouble of [line.cut, line.silence]) {
    await trouble();
    await tellsThatItIsAway(harness);
    const [refused, served] = await Promise.all([
      admin('POST /gateway/register', far('lost', 'http://127.0.0.1:1')),
      key('POST /mcp/far/tools/call', { name: 'name' }),
    ]);
    assert.equal([statusAndCode(refused), toolText(served)], [away, 'one']);
    await line.mend();
    await tellsThatItIsBack(harness);
    assert.equal(Object.keys(await listed(admin)), ['far/one', 'near/one']);
  }
  line.silence();
  await endsInTime(harness);
});

test.run();
