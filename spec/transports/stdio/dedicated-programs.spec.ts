// The dedicated processes of one instance: how many there are, when warm ones start and end. Time is simulated.

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../../src/domain/accounts/principal.ts';
import type { ExchangeRequest } from '../../../src/domain/calls/exchange.ts';
import { queueFull } from '../../../src/domain/errors/backend-errors.ts';
import { JsonText } from '../../../src/domain/json/json.ts';
import { LEGACY_VERSIONS, MODERN_VERSIONS } from '../../../src/domain/mcp/mcp.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { TaskScheduler } from '../../../src/domain/time/task-scheduler.ts';
import { Channel, type ExchangeObserver } from '../../../src/transports/channel.ts';
import {
  DedicatedPrograms,
  STARTS_AT_ONCE,
  STARTS_PER_OWNER,
} from '../../../src/transports/stdio/dedicated-programs.ts';
import { noCapability } from '../../conformance/conversation.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('dedicated programs');
const HANDSHAKE_MS = 30_000;
test.before.each(() => mock.timers.enable({ apis: ['setTimeout'] }));
test.after.each(() => mock.timers.reset());

test('starts no warm program before the first opening', async () => {
  const { started, pool, open } = make();
  assert.equal([started.length, pool.warm], [0, 0]);
  await open();
  assert.equal([started.length, pool.warm], [2, 1]);
});

test('a program for several clients is not a warm one, and leads to none', async () => {
  const { started, pool, open } = make();
  await open('ann', true);
  assert.equal([started.length, pool.warm], [1, 0]);
  await open('ann');
  await open('bo', true);
  assert.equal([started.length, pool.warm], [4, 1]);
});

test('ends a warm program that is not used for five minutes, and no program in use', async () => {
  const { started, pool, open } = make();
  await open();
  await open();
  mock.timers.tick(5 * 60_000 - 1);
  assert.equal(endings(started), [0, 0, 0]);
  mock.timers.tick(1);
  assert.equal(endings(started), [0, 0, 1]);
  assert.is(pool.warm, 0);
});

test('drops a warm program that exits, and does not start another for it', async () => {
  const { started, pool, open } = make();
  await open();
  started[1]?.die();
  assert.equal([started.length, pool.warm, started[1]?.endings], [2, 0, 1]);
  assert.is(await open(), started[2]);
});

test('does not use a warm program that has closed a pipe', async () => {
  const { started, open } = make();
  await open();
  for (const program of started) program.isDeaf = true;
  assert.is(await open(), started[2]);
});

test('starts no warm program for which there is no room', async () => {
  let room = 0;
  const { started, pool, open } = make({ room: () => room });
  await open();
  assert.equal([started.length, pool.warm], [1, 0]);
  room = 1;
  await open();
  assert.equal([started.length, pool.warm], [3, 1]);
});

test('hanging programs of one owner do not delay other owners', async () => {
  const { started, open, behave } = make({ onRequest: () => undefined });
  for (let count = 0; count < 16; count += 1) void open('ada');
  assert.is(started.length, STARTS_PER_OWNER);
  behave(answered);
  assert.is(await open('bo'), started.at(-1));
});

test('opens a modern program that refuses initialize in its own era', async () => {
  const { started, open } = make({ mayBeModern: true, onRequest: modernOnly });
  assert.is((await open()).handshake.era, 'modern');
  assert.equal(started[0]?.received, ['initialize', 'server/discover']);
});

test('starts no program for waiting openings once it is closed', async () => {
  const observers: ExchangeObserver[] = [];
  const { started, pool, open } = make({ onRequest: (observer) => void observers.push(observer) });
  const burst = Array.from({ length: STARTS_AT_ONCE + 2 }, () => codeOf(open()));
  void pool.close();
  for (const observer of observers) observer.error(queueFull('it was closed'));
  assert.equal((await Promise.all(burst)).slice(-2), ['BACKEND_UNAVAILABLE', 'BACKEND_UNAVAILABLE']);
  assert.is(started.length, STARTS_AT_ONCE);
});

test('closing ends warm programs, and no program starts after that', async () => {
  const { started, pool, open } = make();
  await open();
  let isOver = false;
  const closing = pool.close().then(() => {
    isOver = true;
  });
  assert.equal(endings(started), [0, 1]);
  await turn();
  assert.is(isOver, false, 'one is left');
  started[1]?.vanish();
  await closing;
  assert.is(await codeOf(open()), 'BACKEND_UNAVAILABLE');
  assert.is(started.length, 2);
});

test.run();

type OnRequest = (observer: ExchangeObserver, request: ExchangeRequest) => void;

/** Answers `initialize`. */
const answered: OnRequest = (observer) => {
  const result = JsonText.ofValue({ protocolVersion: LEGACY_VERSIONS[0], capabilities: {} });
  observer.next({ kind: 'result', result });
};

/** Refuses all requests except `server/discover`. */
const modernOnly: OnRequest = (observer, { method }) => {
  const result = JsonText.ofValue({ supportedVersions: MODERN_VERSIONS, capabilities: {} });
  const refusal = { kind: 'error', error: { code: -32601, message: 'no' } } as const;
  observer.next(method === 'server/discover' ? { kind: 'result', result } : refusal);
};

class Fake extends Channel {
  readonly received: string[] = [];
  readonly #onRequest: OnRequest;
  readonly #gone = Promise.withResolvers<void>();
  endings = 0;
  isDeaf = false;

  constructor(onRequest: OnRequest) {
    super(undefined, systemClock.now);
    this.#onRequest = onRequest;
  }

  override get isUsable(): boolean {
    return super.isUsable && !this.isDeaf && this.endings === 0;
  }

  send(request: ExchangeRequest, observer: ExchangeObserver): undefined {
    this.received.push(request.method);
    this.#onRequest(observer, request);
  }

  notify(): void {}

  protected reply(): void {}

  override close(): Promise<void> {
    this.endings += 1;
    return this.#gone.promise;
  }

  /** The program is dead; what it started may be left. */
  die(): void {
    this.end({ reason: 'exited with code 1', isExpected: false });
  }

  /** Nothing is left of it. */
  vanish = (): void => this.#gone.resolve();
}

interface Setup {
  readonly room?: () => number;
  readonly mayBeModern?: boolean;
  readonly onRequest?: OnRequest;
}

function make({ room, mayBeModern = false, onRequest = answered }: Setup = {}) {
  const started: Fake[] = [];
  let behaviour = onRequest;
  const start = () => {
    const program = new Fake((observer, request) => behaviour(observer, request));
    started.push(program);
    if (onRequest !== answered) program.vanish();
    return program;
  };
  const pool = new DedicatedPrograms(start, {
    client: { name: 'spec', version: '0' },
    clock: systemClock,
    handshakeTimeoutMs: HANDSHAKE_MS,
    scheduler: new TaskScheduler(),
    room,
  });
  const open = (ownerId: string = ANONYMOUS.id, isShared = false) =>
    pool.open({
      profile: noCapability,
      signal: new AbortController().signal,
      ...{ ownerId, mayBeModern, isShared },
    });
  const behave = (next: OnRequest) => {
    behaviour = next;
  };
  return { started, pool, open, behave };
}

function endings(started: readonly Fake[]): number[] {
  return started.map((program) => program.endings);
}
