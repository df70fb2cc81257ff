// A real gateway loses PostgreSQL, by a line that is cut and by one that falls silent: who was known is served, what would
// change something is refused in bounded time and changes nothing, and all is well by itself afterwards.

import { postgresql } from '../../helpers/services.ts';
import { suite } from '../../helpers/suite.ts';
import { endsInTime, loseAndFind, onHarness } from './database-away.ts';

const test = suite('journey: PostgreSQL away', { timeoutMs: 90_000 });
const onPostgresql = onHarness(test, await postgresql());

onPostgresql(
  'it refuses: the known are served, changes are not, and all is well afterwards',
  async (harness) => {
    await loseAndFind(harness, harness.line.cut);
  },
);

onPostgresql('it falls silent: the same, and a signal ends the gateway meanwhile', async (harness) => {
  await loseAndFind(harness, harness.line.silence);
  harness.line.silence();
  await endsInTime(harness);
});

test.run();
