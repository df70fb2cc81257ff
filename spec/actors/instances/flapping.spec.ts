// An instance that ends 100 ms after each start, for ten minutes, beside one that works: its back-off bounds the starts, and every call has one answer.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { GatewayError } from '../../../src/domain/errors/errors.ts';
import { Harness } from '../../helpers/backends/harness.ts';
import { suite } from '../../helpers/suite.ts';
import { settled, simulateTime } from '../../helpers/time/simulated-time.ts';

const test = suite('an instance that flaps');
const FLAP_MS = 100;
const TEN_MINUTES_MS = 600_000;

let harness = new Harness();
simulateTime(test, () => {
  harness = new Harness();
});

test('for ten minutes: few starts, and each call is answered', async () => {
  await harness.add('steady');
  const reached: unknown[] = [];
  const ends: Promise<string | GatewayError>[] = [];
  await harness.add('flapping', ({ request }) => {
    reached.push(request.params?.name);
  });
  for (let passedMs = 0; passedMs < TEN_MINUTES_MS; passedMs += FLAP_MS) {
    if (passedMs % 1_000 === 0) ends.push(harness.call('write').end, harness.call('read').end);
    await settled();
    if (harness.ref('flapping').state === 'healthy') harness.backend('flapping').disconnect();
    mock.timers.tick(FLAP_MS);
    await settled();
  }
  const failed = (await Promise.all(ends)).filter((end) => end !== 'steady');
  assert.is(ends.length, 1_200);
  assert.ok(failed.every((end) => end instanceof GatewayError && end.delivered === 'unknown'));
  const writes = reached.filter((name) => name === 'write');
  assert.is(failed.length, writes.length, 'what may have been carried out there is not repeated; reads are');
  const starts = harness.transports.get('flapping')?.length ?? 0;
  assert.ok(starts > 5 && starts < 60, `${starts} starts`);
  assert.is(harness.ref('steady').state, 'healthy');
});

test.run();
