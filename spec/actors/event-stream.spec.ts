// The stream of facts: everybody hears the same order, and a listener that throws harms nobody but itself.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { EventStream } from '../../src/actors/event-stream.ts';
import type { GatewayEvent } from '../../src/domain/events.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('event stream');
const STARTED: GatewayEvent = { type: 'gateway.started', atMs: 1 };
const NOTHING = { calls: 0, unanswered: 0, sessions: 0, graceMs: 0 };
const CLOSING: GatewayEvent = { type: 'gateway.closing', atMs: 2, ...NOTHING };

test('turns an error of a listener into a warning, and continues', () => {
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
