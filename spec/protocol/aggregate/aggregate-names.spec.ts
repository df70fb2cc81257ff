// Joined names: they can be told apart, are never too long, and are always the same.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import {
  aggregateInstance,
  aggregateName,
  MOST_NAME_CHARACTERS,
  mayBeCut,
  seenFrom,
  splitInstance,
  splitName,
} from '../../../src/protocol/aggregate/aggregate-names.ts';
import { suite } from '../../helpers/suite.ts';
import { answered } from '../listing-backends.ts';

const test = suite('joined names');

const templates = fc.stringMatching(/^[a-z][a-z0-9-]{0,127}$/);
const names = fc.stringMatching(/^[A-Za-z0-9_.-]{1,128}$/);

test('joins and splits, whatever underscores a tool has', () => {
  assert.is(aggregateName({ template: 'files', name: 'read__all' }), 'files__read__all');
  assert.equal(splitName('files__read__all'), { template: 'files', name: 'read__all' });
  assert.equal(splitName('files____'), { template: 'files', name: '__' });
  for (const none of ['', 'files', 'files_read', '__read']) assert.is(splitName(none), undefined);
});

test('is never longer than clients accept, and is stable', () => {
  fc.assert(
    fc.property(templates, names, (template, name) => {
      const joined = aggregateName({ template, name });
      assert.ok(joined.length <= MOST_NAME_CHARACTERS);
      assert.is(joined, aggregateName({ template, name }));
      if (joined === `${template}__${name}`) assert.equal(splitName(joined), { template, name });
      else assert.ok(mayBeCut(joined), joined);
    }),
  );
});

test('tells long names apart', () => {
  const long = 'x'.repeat(100);
  const cut = [
    aggregateName({ template: 'a', name: `${long}1` }),
    aggregateName({ template: 'a', name: `${long}2` }),
    aggregateName({ template: 'y'.repeat(60), name: 'read' }),
    aggregateName({ template: `${'y'.repeat(60)}z`, name: 'read' }),
  ];
  assert.is(new Set(cut).size, 4);
  assert.equal(cut, [
    ...cut.slice(0, 2).map((name) => `a__${'x'.repeat(52)}${name.slice(-9)}`),
    ...cut.slice(2).map((name) => `${'y'.repeat(24)}__read${name.slice(-9)}`),
  ]);
});

test('never leaves half a character', () => {
  const joined = aggregateName({ template: 'a', name: `x${'😀'.repeat(60)}` });
  assert.is(joined.isWellFormed(), true);
  assert.ok(joined.length <= MOST_NAME_CHARACTERS);
});

test('names an instance with its template, and tells the two apart', () => {
  const seen = seenFrom('t')({ ...answered({}, 'a/b'), isRemembered: true });
  assert.equal([seen.instanceId, seen.isRemembered], ['t/a/b', true]);
  assert.is(aggregateInstance({ template: 't', instanceId: 'a/b' }), 't/a/b');
  assert.equal(splitInstance('t/a/b'), { template: 't', instanceId: 'a/b' });
  assert.is(splitInstance('one'), undefined);
});

test.run();
