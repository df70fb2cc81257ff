// The conditional updates of rows that the rules of a node rely on. Source: ADR 146.

import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { EXPIRED, program, REFUSED, row } from './driven.ts';
import { beaten, claimed, ended, fenced, released, type SessionRow, taken } from './updates.ts';

const updates = suite('cluster rules: conditional updates');
const session = (more: Partial<SessionRow> = {}): SessionRow => ({
  session: 's',
  life: 'life-b',
  generation: 3,
  isUnsafe: false,
  ...more,
});

updates('a heartbeat adds one to the counter of a life that has not ended', () => {
  const news = { sees: ['life-c'], isDraining: true };
  assert.equal(beaten(row('b'), news), { ...row('b'), ...news, counter: 6 });
  assert.is(beaten(row('b', { end: REFUSED }), news), undefined);
  assert.is(beaten(undefined, news), undefined);
});

updates(
  'a life ends when its counter is the one that was seen, and its programs may end after its sessions',
  () => {
    assert.equal(ended(row('b'), 5, REFUSED)?.end, REFUSED);
    assert.equal(ended(row('b'), undefined, EXPIRED)?.end, EXPIRED);
    assert.is(ended(row('b'), 4, REFUSED), undefined);
    assert.equal(ended(row('b', { end: REFUSED }), 5, EXPIRED)?.end, EXPIRED);
    assert.is(ended(row('b', { end: REFUSED }), 5, REFUSED), undefined);
    assert.is(ended(row('b', { end: EXPIRED }), 5, EXPIRED), undefined);
  },
);

updates('a lease is taken and released by its generation', () => {
  assert.equal(taken(program(), 7, 'life-b'), program({ life: 'life-b', generation: 8 }));
  assert.is(taken(program(), 6, 'life-b'), undefined);
  const held = program({ life: 'life-b' });
  assert.equal(released(held, 7, 'life-b', 'b'), program({ failedOn: ['b'] }));
  assert.is(released(held, 7, 'life-c', undefined), undefined);
  assert.is(released(held, 6, 'life-b', undefined), undefined);
});

updates('a claim names life, generation and mark as they were read, and adds one to the generation', () => {
  assert.equal(claimed(session(), session(), 'life-a'), session({ life: 'life-a', generation: 4 }));
  for (const stored of [
    session({ life: 'life-c' }),
    session({ generation: 4 }),
    session({ isUnsafe: true }),
    undefined,
  ])
    assert.is(claimed(stored, session(), 'life-a'), undefined);
});

updates('the mark unsafe is set by the holder only', () => {
  assert.equal(fenced(session(), 3, 'life-b'), session({ isUnsafe: true }));
  assert.is(fenced(session(), 3, 'life-a'), undefined);
  assert.is(fenced(session(), 2, 'life-b'), undefined);
  assert.is(fenced(undefined, 3, 'life-b'), undefined);
});
updates.run();
