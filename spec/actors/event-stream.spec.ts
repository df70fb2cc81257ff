// The stream of facts: everybody hears the same order, and a listener that throws harms nobody but itself.

import { mock } from 'node:test';
import { map, take, toArray } from 'rxjs';
import * as assert from 'uvu/assert';
import { EventStream } from '../../src/actors/event-stream.ts';
import type { GatewayEvent } from '../../src/domain/events.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('event stream');
const STARTED: GatewayEvent = { type: 'gateway.started', atMs: 1 };
const NOTHING = { calls: 0, unanswered: 0, sessions: 0, graceMs: 0 };
const CLOSING: GatewayEvent = { type: 'gateway.closing', atMs: 2, ...NOTHING };
const CHANGED: GatewayEvent = { type: 'template.changed', atMs: 3, template: 't' };

test('tells what happens from now on, to everybody', () => {
  const events = new EventStream();
  const [early, late] = [heard(events), () => heard(events)];
  events.emit(STARTED);
  const second = late();
  events.emit(CLOSING);
  assert.equal(early, ['gateway.started', 'gateway.closing']);
  assert.equal(second, ['gateway.closing']);
});

test('tells the facts of one kind', () => {
  const events = new EventStream();
  const templates: string[] = [];
  events.on('template.changed').subscribe(({ template }) => templates.push(template));
  for (const event of [STARTED, CHANGED, CLOSING, CHANGED]) events.emit(event);
  assert.equal(templates, ['t', 't']);
});

test('tells everybody in the same order what happens because of an event', () => {
  const events = new EventStream();
  events.on('gateway.started').subscribe(() => {
    events.emit(CHANGED);
    events.emit(CLOSING);
  });
  const order = heard(events);
  events.emit(STARTED);
  assert.equal(order, ['gateway.started', 'template.changed', 'gateway.closing']);
});

test('completes for everybody when it closes, and says nothing more', () => {
  const events = new EventStream();
  let completions = 0;
  const complete = () => {
    completions += 1;
  };
  events.events$.subscribe({ complete });
  events.on('gateway.started').subscribe({ complete });
  const order = heard(events);
  events.close();
  events.emit(STARTED);
  events.events$.subscribe({ complete });
  assert.equal([completions, order], [3, []]);
});

test('makes a warning of what a listener throws, and goes on', () => {
  const events = new EventStream();
  const warnings = warningsDuring(() => {
    events.events$.subscribe(() => {
      throw new Error('thrown by next');
    });
    events.on('gateway.started').subscribe({
      next: () => {
        throw 'a text, thrown by next';
      },
      complete: () => {
        throw new Error('thrown by complete');
      },
    });
    const order = heard(events);
    events.emit(STARTED);
    events.emit(CLOSING);
    events.close();
    assert.equal(order, ['gateway.started', 'gateway.closing']);
  });
  assert.equal(warnings, [
    'Error: thrown by next',
    'Error: a text, thrown by next',
    'Error: thrown by next',
    'Error: thrown by complete',
  ]);
});

test('can be used with operators, without and with a partial observer', () => {
  const events = new EventStream();
  const types: string[][] = [];
  events.events$
    .pipe(
      map(({ type }) => type),
      take(2),
      toArray(),
    )
    .subscribe((taken) => types.push(taken));
  events.events$.subscribe();
  events.events$.subscribe({});
  for (const event of [STARTED, CHANGED, CLOSING]) events.emit(event);
  assert.equal(types, [['gateway.started', 'template.changed']]);
});

test('forgets who unsubscribes', () => {
  const events = new EventStream();
  const order: string[] = [];
  const subscription = events.events$.subscribe(({ type }) => {
    order.push(type);
    subscription.unsubscribe();
  });
  events.emit(STARTED);
  events.emit(CLOSING);
  assert.equal(order, ['gateway.started']);
});

test.run();

function heard(events: EventStream): string[] {
  const types: string[] = [];
  events.events$.subscribe(({ type }) => types.push(type));
  return types;
}

/** Texts of the warnings that the stream makes meanwhile. */
function warningsDuring(body: () => void): string[] {
  const { mock: warned } = mock.method(process, 'emitWarning', () => {});
  try {
    body();
    return warned.calls.map((call) => String(call.arguments[0]));
  } finally {
    warned.restore();
  }
}
