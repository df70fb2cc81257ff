// What the console takes from an event at once, without reading anything.

import * as assert from 'uvu/assert';
import { newsOf } from '../../web/src/news.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the news of an event');

const at = '2026-11-21T12:00:00.000Z';
const event = (type: string, fields: object = {}) => ({ type: `instance.${type}`, at, ...fields });

test('an instance that lost its process is unhealthy, and says why', () => {
  for (const type of ['unhealthy', 'restarting', 'crashed'])
    assert.equal(newsOf(event(type, { reason: 'exited with code 1' }), 'healthy'), {
      ...{ state: 'unhealthy', healthy: false, reason: 'exited with code 1' },
    });
});

test('an instance that starts keeps the reason of its last failure, a healthy one has none', () => {
  assert.equal(newsOf(event('starting'), 'unhealthy'), { state: 'starting', healthy: false });
  assert.equal(newsOf(event('healthy', { era: 'modern' }), 'starting'), {
    ...{ state: 'healthy', healthy: true, reason: null },
  });
});

test('a drained instance stays drained, whatever its connection does, until it is stopped', () => {
  for (const type of ['healthy', 'unhealthy', 'starting', 'restarting'])
    assert.equal(newsOf(event(type), 'draining'), {});
  assert.equal(newsOf(event('stopped'), 'draining'), { state: 'stopped', healthy: false });
});

test('an ejected instance gets no calls for a time, and then again', () => {
  assert.equal(newsOf(event('ejected', { reason: 'five failures', for_ms: 30_000 }), 'healthy'), {
    ejection: { reason: 'five failures', until: '2026-11-21T12:00:30.000Z' },
  });
  assert.equal(newsOf(event('readmitted'), 'healthy'), { ejection: null });
});

test('other events only say that there is something to read', () => {
  for (const type of ['registered', 'changed']) assert.equal(newsOf(event(type), 'healthy'), {});
});

test.run();
