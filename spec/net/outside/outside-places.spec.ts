// The places for requests to servers that outsiders name.

import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { OutsidePlaces } from '../../../src/net/outside/outside-places.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('places for requests to servers that outsiders name');

test('silent servers have few places, and leave the others to servers that answer', async () => {
  let nowMs = 0;
  const places = new OutsidePlaces({ ...systemClock, now: () => nowMs });
  const leaves = Array.from({ length: 100 }, (_, index) => places.take(`silent-${index}`));
  const taken = leaves.flatMap((leave) => leave ?? []);
  assert.is(taken.length, 40, 'of servers that were never asked');
  for (const leave of taken) leave(true);
  for (const [place, name] of [`silent-1`, `silent-2`, 'good'].entries()) {
    const leave = places.take(name);
    assert.ok(leave, `${place}`);
    leave(name !== 'good');
  }
  const again = Array.from({ length: 40 }, (_, index) => places.take(`silent-${index}`));
  assert.is(again.filter((leave) => leave !== undefined).length, 10);
  assert.ok(places.take('good'), 'one that answers has its places');
  for (const leave of again) leave?.(false);
  assert.is(
    Array.from({ length: 40 }, () => places.take('good')).filter(Boolean).length,
    19,
    'of one server',
  );
  nowMs = 60_000;
  const later = Array.from({ length: 40 }, (_, index) => places.take(`silent-${index}`));
  assert.is(later.filter(Boolean).length, 40, 'a minute later they may have recovered');
});

test.run();
