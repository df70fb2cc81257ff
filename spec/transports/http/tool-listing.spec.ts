// Listing all tools once for everybody who waits for it, with an end.

import { mock } from 'node:test';
import { from, lastValueFrom, Observable, of, throwError } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ExchangeEvent } from '../../../src/domain/exchange.ts';
import { JsonText } from '../../../src/domain/json.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { toolListing } from '../../../src/transports/http/tool-headers.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('tool listing');

function page(nextCursor?: string): ExchangeEvent {
  return { kind: 'result', result: JsonText.ofValue({ tools: [], nextCursor }) };
}

/** Subscribes, and says what comes of it. */
function follow(listing$: Observable<never>) {
  const heard: string[] = [];
  const subscription = listing$.subscribe({
    next: () => heard.push('event'),
    error: () => heard.push('error'),
    complete: () => heard.push('end'),
  });
  return { heard, subscription };
}

test('ends when it fails, is refused, or has no end', async () => {
  const refusal: ExchangeEvent = { kind: 'error', error: { code: -32601, message: 'no' } };
  assert.equal(follow(toolListing(() => throwError(() => new Error('gone')))).heard, ['end']);
  assert.equal(follow(toolListing(() => of(refusal))).heard, ['end']);
  let pages = 0;
  const endless$ = toolListing(() => {
    pages += 1;
    return from(Promise.resolve(page(String(pages))));
  });
  await lastValueFrom(endless$, { defaultValue: undefined });
  assert.is(pages, LIMITS.listPages);
});

test('is not made again for a while, but for who comes later', () => {
  let [asked, nowMs] = [0, 0];
  const listing$ = toolListing(
    () => {
      asked += 1;
      return asked === 1 ? of(page()) : throwError(() => new Error('gone'));
    },
    () => nowMs,
  );
  const after = (ms: number) => {
    nowMs = ms;
    return [...follow(listing$).heard, asked];
  };
  const age = LIMITS.toolListAgeMs;
  assert.equal(
    [after(0), after(age - 1)],
    [
      ['end', 1],
      ['end', 1],
    ],
  );
  assert.equal(
    [after(age), after(2 * age - 1)],
    [
      ['end', 2],
      ['end', 2],
    ],
  );
  assert.equal(after(2 * age), ['end', 3]);
});

test('ends for a backend that does not answer, and is called off then, but not when nobody waits', () => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  try {
    let [isCalledOff, nowMs] = [false, 0];
    const listing$ = toolListing(
      () =>
        new Observable(() => () => {
          isCalledOff = true;
        }),
      () => nowMs,
    );
    const { heard } = follow(listing$);
    mock.timers.tick(LIMITS.toolLookupMs - 1);
    assert.equal(heard, []);
    mock.timers.tick(1);
    assert.equal(heard, ['end']);
    assert.ok(isCalledOff);
    isCalledOff = false;
    nowMs = LIMITS.toolListAgeMs;
    follow(listing$).subscription.unsubscribe();
    assert.not.ok(isCalledOff);
    mock.timers.tick(LIMITS.toolLookupMs);
    assert.ok(isCalledOff);
  } finally {
    mock.timers.reset();
  }
});

test.run();
