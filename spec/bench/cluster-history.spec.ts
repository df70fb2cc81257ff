// The judge of `npm run cluster`: each kind of wrong history misses its bar, and what a fault excuses does not.

import * as assert from 'uvu/assert';
import { type Heard, NewsReader } from '../../bench/cluster/heard-news.ts';
import type { HerdSession } from '../../bench/cluster/herd-verdicts.ts';
import { type Bars, type Call, type Disturbance, type History, judge } from '../../bench/cluster/history.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the judge of the cluster run');

/** From second 10 to second 11; served again at 12. */
const KILL: Disturbance = { what: 'kill', fromMs: 10_000, untilMs: 11_000, servedMs: 12_000, backMs: 12_000 };
const WRITTEN = { token: 'a.1', tool: 'write', pid: 1, atMs: 0 };

function callOf(fields: Partial<Call>): Call {
  return {
    ...{ token: 'a.1', session: 'a/1', isUnsafe: true, isAfterUnsafe: false },
    ...{ sentMs: 1_000, endedMs: 2_000, ending: 'answered', reason: '' },
    ...fields,
  };
}

const FIRST_ANSWERS: Bars = { firstAnswerMs: [2_000, 5_000], programBackMs: 15_000 };

function missedIn(history: Partial<History>, bars = FIRST_ANSWERS): readonly string[] {
  const empty = {
    calls: [],
    carriedOut: [],
    disturbances: [],
    programs: [],
    failedOpenings: [],
    leftOver: 0,
  };
  return judge({ ...empty, ...history }, bars)
    .filter(({ isMet }) => !isMet)
    .map(({ bar }) => bar);
}

test('passes a history in which every call was answered and carried out once', () => {
  assert.equal(missedIn({ calls: [callOf({})], carriedOut: [WRITTEN] }), []);
});

test('finds calls that were lost, done twice, refused although done, or never answered', () => {
  const calls = [callOf({})];
  assert.equal(missedIn({ calls }), ['0 answered calls that no backend carried out']);
  assert.equal(missedIn({ calls, carriedOut: [WRITTEN, WRITTEN] }), ['0 unsafe calls carried out twice']);
  const refused = [callOf({ ending: 'refused', sentMs: 10_500 })];
  assert.equal(missedIn({ calls: refused, carriedOut: [WRITTEN], disturbances: [KILL] }), [
    '0 failed calls, besides those in flight at a fault',
    '0 calls refused as not delivered, but carried out',
  ]);
  const hung = [callOf({ ending: 'hung', sentMs: 10_500, endedMs: 30_500 })];
  assert.equal(missedIn({ calls: hung, disturbances: [KILL] }), ['0 calls without an answer within 20 s']);
});

test('excuses a failed opening only when a node is cut off from everything, and it says when to come again', () => {
  const cut = { ...KILL, lastsUntilMs: 40_000 };
  const opening = (reason: string) => ({ sentMs: 20_000, endedMs: 20_100, reason });
  const later = opening('503 {"error_code":"NODE_UNAVAILABLE","retry_after_seconds":5}');
  const bar = '0 failed openings of sessions, besides those in flight at a fault';
  const missed = (disturbance: Disturbance, failed = later) =>
    missedIn({ failedOpenings: [failed], disturbances: [disturbance] }).filter((one) => one === bar);
  assert.equal(missed({ ...cut, isolates: true }), []);
  assert.equal(missed(cut), [bar]);
  assert.equal(missed({ ...cut, isolates: true, lastsUntilMs: 20_000 }), [bar]);
  assert.equal(missed({ ...cut, isolates: true }, opening('500 INTERNAL_ERROR')), [bar]);
});

test('excuses a call that is refused during a cut only with a time to come again, and counts its first answer from the end of the cut', () => {
  const cut = { ...KILL, servedMs: 34_500, lastsUntilMs: 49_500, mayRefuse: true };
  const refused = callOf({
    ...{ token: 'a.2', ending: 'refused', sentMs: 20_000, endedMs: 35_000 },
    reason: '503 {"error_code":"DATABASE_UNAVAILABLE","retry_after_seconds":5}',
  });
  const answered = callOf({ token: 'a.3', sentMs: 35_100, endedMs: 36_000 });
  const carriedOut = [WRITTEN, { ...WRITTEN, token: 'a.3' }];
  const missed = (call: Call, last = answered) =>
    missedIn({ calls: [callOf({}), call, last], carriedOut, disturbances: [cut] });
  assert.equal(missed(refused), []);
  assert.equal(missed({ ...refused, reason: '503' }), ['0 failed calls, besides those in flight at a fault']);
  assert.equal(missed(refused, { ...answered, endedMs: 37_000 }), [
    'first answer after a fault p99 <= 2 s, at most 5 s',
  ]);
});

test('excuses an unknown outcome only for a call in flight at a fault', () => {
  const inFlight = callOf({ ending: 'unknown', sentMs: 9_900, endedMs: 10_100 });
  assert.equal(missedIn({ calls: [inFlight], disturbances: [KILL] }), []);
  const later = [
    callOf({ token: 'a.2', ending: 'unknown', sentMs: 11_001, endedMs: 11_002 }),
    callOf({ sentMs: 11_100, endedMs: 11_200 }),
  ];
  assert.equal(missedIn({ calls: later, carriedOut: [WRITTEN], disturbances: [KILL] }), [
    '0 failed calls, besides those in flight at a fault',
  ]);
});

test('excuses a lost session only after an unsafe call and a fault', () => {
  const answered = callOf({});
  const lost = { token: 'a.2', ending: 'lost session', sentMs: 13_000, endedMs: 13_001 } as const;
  const missed = (more: Partial<Call>, disturbances: readonly Disturbance[] = [KILL]) =>
    missedIn({ calls: [answered, callOf({ ...lost, ...more })], carriedOut: [WRITTEN], disturbances });
  assert.equal(missed({ isAfterUnsafe: true }), []);
  assert.equal(missed({}), ['0 sessions without unsafe calls that had to initialize again']);
  assert.equal(missed({ isAfterUnsafe: true }, []), [
    '0 sessions that had to initialize again without a fault',
  ]);
});

test('excuses a lost session only if a life that had it since its call before has ended', () => {
  const name = { opener: 'life-one', key: 'k' };
  const [before, lost] = [
    callOf({ name }),
    callOf({
      token: 'a.2',
      name,
      isAfterUnsafe: true,
      ending: 'lost session',
      sentMs: 13_000,
      endedMs: 13_001,
    }),
  ];
  const bar = '0 lost sessions of a life that had not ended';
  const missed = (
    endedMs: [string, number][],
    had: [string, number][] = [],
    more: Partial<Call> = {},
    fault: Disturbance = KILL,
  ) => {
    const lives = new Map([['k', had.map(([life, sinceMs]) => ({ life, sinceMs }))]]);
    const owners = { lives, endedMs: new Map(endedMs) };
    const calls = [before, { ...lost, ...more }];
    return missedIn({ calls, carriedOut: [WRITTEN], disturbances: [fault], owners });
  };
  assert.equal(missed([['life-one', 11_300]]), []);
  assert.equal(missed([['life-two', 11_300]]), [bar], 'the end of another life excuses nothing');
  assert.equal(missed([['life-one', 20_000]]), [bar], 'nor one that came later');
  const moved: [string, number][] = [
    ['life-one', 500],
    ['life-two', 800],
  ];
  assert.equal(missed([['life-one', 700]], moved), [bar], 'nor one that ended before');
  assert.equal(missed([['life-two', 11_300]], moved), []);
  assert.equal(missed([], [...moved, ['released', 12_500]]), []);
  assert.equal(missed([], [], { endsWithStream: true }), []);
  const moves = { ...KILL, endsProgram: true, lastsUntilMs: 14_000 };
  assert.equal(missed([], [], {}, moves), [], 'its program had its state');
  assert.equal(missed([], [], {}, { ...moves, lastsUntilMs: 12_900 }), [bar]);
});

test('excuses a client that cannot continue a stream only when the stream ended', () => {
  const answered = callOf({});
  const missed = (more: Partial<Call>, disturbances: readonly Disturbance[] = [KILL]) =>
    missedIn({
      calls: [answered, callOf({ token: 'a.2', endsWithStream: true, ...more })],
      carriedOut: [WRITTEN],
      disturbances,
    });
  const lost = { ending: 'lost session', sentMs: 13_000, endedMs: 13_001 } as const;
  assert.equal(missed(lost), []);
  assert.equal(missed(lost, []), ['0 sessions that had to initialize again without a fault']);
  assert.equal(missed({ ending: 'hung', sentMs: 10_500, endedMs: 30_500 }), []);
  assert.equal(missed({ ending: 'hung', sentMs: 13_000, endedMs: 33_000 }), [
    '0 calls without an answer within 20 s',
    'first answer after a fault p99 <= 2 s, at most 5 s',
  ]);
});

test('finds a life that ended where none may', () => {
  const owners = { lives: new Map(), endedMs: new Map([['life-one', 5_000]]) };
  assert.equal(missedIn({ owners }, { endsNoLife: true }), ['0 lives of nodes that ended']);
  assert.equal(missedIn({ owners }, {}), []);
});

test('finds two processes of one program, one that stays away, and slow first answers', () => {
  const life = (pid: number, firstSeenMs: number, lastSeenMs: number) => ({ pid, firstSeenMs, lastSeenMs });
  const restarted = [life(1, 0, 10_900), life(2, 14_000, 20_000)];
  assert.equal(missedIn({ programs: restarted, disturbances: [KILL] }), []);
  const both = [life(1, 0, 14_100), life(2, 14_000, 20_000)];
  assert.equal(missedIn({ programs: both, disturbances: [KILL] }), [
    '0 moments with two processes of the shared program',
  ]);
  assert.equal(missedIn({ programs: [life(1, 0, 10_900)], disturbances: [KILL] }), [
    'the shared program runs again <= 15 s after a fault',
  ]);
  const cut = { ...KILL, lastsUntilMs: 40_000 };
  assert.equal(
    missedIn({ programs: [life(1, 0, 17_000), life(2, 30_000, 50_000)], disturbances: [cut] }),
    [],
  );
  for (const moved of [[life(1, 0, 17_000), life(2, 33_000, 50_000)], [life(1, 0, 17_000)]])
    assert.equal(missedIn({ programs: moved, disturbances: [cut] }), [
      'the shared program runs again <= 15 s after a fault',
    ]);
  const slow = [callOf({}), callOf({ token: 'a.2', sentMs: 11_500, endedMs: 15_000 })];
  const carriedOut = [WRITTEN, { ...WRITTEN, token: 'a.2' }];
  assert.equal(missedIn({ calls: slow, carriedOut, disturbances: [KILL] }), [
    'first answer after a fault p99 <= 2 s, at most 5 s',
  ]);
});

const NO_STREAMS = { streams: 0, streamsOpenMs: 0, told: 0, refusals: {} };

test('finds sessions of a herd that are late, lost or unserved, and memory beyond the bar', () => {
  const session: HerdSession = { port: 1, isOfEnded: true, servedAfterMs: 2_000, isLost: false };
  const load = { node: 'b', beforeBytes: 100e6, mostBytes: 160e6, cpuMs: 0, lagMs: 0 };
  const missed = (sessions: readonly Partial<HerdSession>[], mostBytes = 160e6) =>
    judge(
      {
        ...{ calls: [], carriedOut: [], disturbances: [], programs: [], failedOpenings: [], leftOver: 0 },
        herd: {
          sessions: sessions.map((one) => ({ ...session, ...one })),
          ...NO_STREAMS,
          unanswered: 0,
        },
        load: [{ ...load, mostBytes }],
      },
      { herdServedMs: 30_000, herdBytes: [60e6, 1_000] },
    )
      .filter(({ isMet }) => !isMet)
      .map(({ bar }) => bar.split(/:| [<(]/)[0]);
  const other = { isOfEnded: false };
  assert.equal(missed([{}, other]), []);
  assert.equal(missed([other]), ['sessions of the ended node served']);
  assert.equal(missed([{ servedAfterMs: 30_001 }]), ['sessions of the ended node served']);
  assert.equal(missed([{}, { ...other, isLost: true }]), [
    '0 sessions of the herd that had to initialize again',
  ]);
  assert.equal(missed([{}, { ...other, servedAfterMs: undefined }]), [
    '0 sessions of other nodes without an answer',
  ]);
  assert.equal(missed([{}], 161e6), ['memory of a node that goes on']);
});

test('finds streams that miss or repeat a message, or get a notice in vain', () => {
  const heardIn = (...parts: readonly string[]) => {
    const reader = new NewsReader();
    reader.begin();
    for (const part of parts) reader.read(part);
    return { ...reader.heard, after: reader.lastEventId };
  };
  const event = (uri: string, id: number): string =>
    `id: 0-get-1.${id}\ndata: {"params":{"uri":"news://all${uri}"}}\n\n`;
  const framed = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
  const whole =
    framed(event('/1', 1)) + framed(event('/2', 2).slice(0, 20)) + framed(event('/2', 2).slice(20));
  assert.equal(heardIn(whole), {
    last: 2,
    missed: 0,
    repeated: 0,
    notices: 0,
    begunAnew: 0,
    after: '0-get-1.2',
  });
  assert.equal(heardIn(framed(event('/1', 1)), framed(event('/3', 2))).missed, 1);
  assert.equal(heardIn(framed(event('/1', 1)), framed(event('/1', 2))).repeated, 1);
  const noticed = heardIn(
    framed(event('/1', 1)),
    framed('id: 1-get-2.0\ndata: \n\n'),
    framed(event('', 1)).replace('0-get-1', '1-get-2'),
    framed(event('/3', 2)).replace('0-get-1', '1-get-2'),
  );
  assert.equal([noticed.missed, noticed.notices, noticed.begunAnew, noticed.last], [0, 1, 1, 3]);

  const missed = (heard: Partial<Heard>, isOfEnded = false) =>
    judge(
      {
        ...{ calls: [], carriedOut: [], disturbances: [], programs: [], failedOpenings: [], leftOver: 0 },
        herd: {
          ...{ ...NO_STREAMS, told: 3, unanswered: 0 },
          sessions: [
            {
              ...{ port: 1, isOfEnded, servedAfterMs: 1, isLost: false },
              heard: { last: 3, missed: 0, repeated: 0, notices: 0, begunAnew: 0, ...heard },
            },
          ],
        },
      },
      {},
    )
      .filter(({ isMet }) => !isMet)
      .map(({ bar }) => bar);
  assert.equal(missed({}), []);
  assert.equal(missed({ notices: 1, begunAnew: 1 }, true), []);
  assert.equal(missed({ last: 2 }), ['0 streams without the last of 3 messages']);
  assert.equal(missed({ repeated: 1 }), ['0 streams with a message twice']);
  assert.equal(missed({ missed: 1 }), ['0 streams that missed a message without a notice']);
  const inVain = ['0 streams with a notice in vain, or begun anew without one'];
  const others = [missed({ notices: 1 }), missed({ begunAnew: 1 }), missed({}, true)];
  assert.equal(others, [inVain, inVain, inVain]);
});

test('finds idle sessions that take more memory than the bar, or do not answer', () => {
  const missed = (heapBytes: number, unanswered = 0) =>
    judge(
      {
        ...{ calls: [], carriedOut: [], disturbances: [], programs: [], failedOpenings: [], leftOver: 0 },
        herd: { ...NO_STREAMS, sessions: [], unanswered },
        idle: [{ node: 'b', sessions: 10, heapBytes, memoryBytes: 0 }],
      },
      { idleBytes: 6_000 },
    )
      .filter(({ isMet }) => !isMet)
      .map(({ bar }) => bar);
  assert.equal(missed(60_000), []);
  assert.equal(missed(60_010), ['an idle session takes <= 6000 bytes of the heap']);
  assert.equal(missed(60_000, 1), ['0 idle sessions without an answer']);
});

test.run();
