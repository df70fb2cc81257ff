// What the owner of a session may hear of: only of the templates that he may use, and that these are others.

import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import type { TemplateListChange } from '../../../src/protocol/aggregate/aggregate-lists.ts';
import { AggregateGrant } from '../../../src/protocol/aggregate/aggregate-session.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('joined grant');

const mayUse = (...templates: string[]) => ({ id: 'key:1', templates: new Set(templates) });

function setUp(grant: AggregateGrant) {
  const changes$ = new Subject<TemplateListChange>();
  const heard: string[] = [];
  const subscription = grant.changesIn(changes$).subscribe((list) => heard.push(list));
  return { changes$, heard, subscription };
}

test('passes on what changes on templates that its owner may use, as he is by then', () => {
  const grant = new AggregateGrant(mayUse('a'));
  const { changes$, heard } = setUp(grant);
  changes$.next({ template: 'a', list: 'tools' });
  changes$.next({ template: 'b', list: 'prompts' });
  grant.take(mayUse('b'));
  heard.length = 0;
  changes$.next({ template: 'a', list: 'tools' });
  changes$.next({ template: 'b', list: 'resourceTemplates' });
  assert.equal(heard, ['resourceTemplates']);
});

test('tells apart what he may use, not how often he was read', () => {
  const grant = new AggregateGrant(mayUse('a', 'b'));
  assert.is(grant.take(mayUse('b', 'a')), false);
  assert.is(grant.take(mayUse('a', 'c')), true);
  assert.is(grant.take({ id: 'key:1' }), true);
  assert.is(grant.take({ id: 'key:1' }), false);
  assert.is(grant.take(mayUse('a')), true);
  assert.equal(grant.owner, mayUse('a'));
});

test('looks at no more templates than it takes to tell', () => {
  let looks = 0;
  class Counted extends Set<string> {
    override *[Symbol.iterator]() {
      for (const name of super[Symbol.iterator]()) {
        looks += 1;
        yield name;
      }
      return undefined;
    }
  }
  const grant = new AggregateGrant(mayUse('a', 'b', 'c'));
  assert.is(grant.take({ id: 'key:1', templates: new Counted(['d', 'a', 'b']) }), true);
  assert.is(looks, 1);
  assert.is(grant.take({ id: 'key:1', templates: new Counted(['d', 'a']) }), true);
  assert.is(looks, 1);
});

test('says once, now or later, that all lists are others', () => {
  const grant = new AggregateGrant(mayUse('a'));
  grant.take(mayUse('b'));
  const { heard, subscription } = setUp(grant);
  assert.equal(heard.splice(0), ['tools', 'prompts', 'resources']);
  grant.take(mayUse('a'));
  assert.equal(heard, ['tools', 'prompts', 'resources']);
  subscription.unsubscribe();
  assert.equal(setUp(grant).heard, []);
});

test.run();
