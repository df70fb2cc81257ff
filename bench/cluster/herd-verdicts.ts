// The judgement about many sessions, most of which have a stream each, and about the nodes that serve them.

import type { Heard } from './heard-news.ts';
import { none, seconds, type Verdict } from './verdict.ts';

/** One of many sessions with a stream each. */
export interface HerdSession {
  /** Of the node that opened it. */
  readonly port: number;
  /** That node was ended. */
  isOfEnded: boolean;
  /** From the fault to the answer to its first call after it; undefined when there was none. */
  servedAfterMs: number | undefined;
  /** It had to initialize again. */
  isLost: boolean;
  /** Undefined where its client does not read the stream. */
  readonly heard?: Heard | undefined;
}

export interface HerdRecord {
  readonly sessions: readonly HerdSession[];
  /** Streams that were opened since the fault: also those of sessions of other nodes, which ended with their way to the owner. */
  readonly streams: number;
  /** From the fault until the last of them was open. */
  readonly streamsOpenMs: number;
  /** The number of the last message for all streams; 0 without messages. */
  readonly told: number;
  /** Sessions that only waited, were asked at the end, and did not answer. */
  readonly unanswered: number;
  /** Answers other than 200, and broken connections, with their number: they were tried again. */
  readonly refusals: Readonly<Record<string, number>>;
}

/**
 * A node that went on: its memory before the fault and the most after it; from the fault until the last session was served its processor
 * time and the longest time in which its event loop did nothing else.
 */
export interface NodeLoad {
  readonly node: string;
  readonly beforeBytes: number;
  readonly mostBytes: number;
  readonly cpuMs: number;
  readonly lagMs: number;
}

/** The sessions of one node that only wait, and what they added to its live heap and to its memory. */
export interface IdleLoad {
  readonly node: string;
  readonly sessions: number;
  readonly heapBytes: number;
  readonly memoryBytes: number;
}

export interface HerdHistory {
  readonly herd?: HerdRecord | undefined;
  readonly load?: readonly NodeLoad[] | undefined;
  readonly idle?: readonly IdleLoad[] | undefined;
}

export interface HerdBars {
  /** Longest time from the end of a node until each session of the herd that it had is served, in ms. */
  readonly herdServedMs?: number;
  /** Most memory that a node which goes on takes more, in bytes: at all, and for each session of the ended node. */
  readonly herdBytes?: readonly [base: number, each: number];
  /** Most live heap of a session that waits, without a stream. */
  readonly idleBytes?: number;
}

export function judgeHerd(history: HerdHistory, bars: HerdBars): readonly Verdict[] {
  return [
    ...herdServed(history, bars),
    ...newsOf(history),
    ...memoryOf(history, bars),
    ...idleOf(history, bars),
  ];
}

function herdServed({ herd }: HerdHistory, { herdServedMs }: HerdBars): readonly Verdict[] {
  if (herd === undefined || herdServedMs === undefined) return [];
  const [ended, others] = [true, false].map((was) =>
    herd.sessions.filter(({ isOfEnded }) => isOfEnded === was),
  );
  const waits = (ended ?? []).map(({ servedAfterMs = Infinity }) => servedAfterMs).toSorted((a, b) => b - a);
  const longest = waits[0] ?? 0;
  const [half, p99] = [0.5, 0.01].map((share) => seconds(waits[Math.floor(waits.length * share)] ?? 0));
  const lost = herd.sessions.filter(({ isLost }) => isLost);
  const unserved = (others ?? []).filter(({ servedAfterMs }) => servedAfterMs === undefined);
  const refusals = Object.entries(herd.refusals).map(([what, count]) => `${count} times ${what}`);
  return [
    {
      bar: `sessions of the ended node served <= ${herdServedMs / 1_000} s`,
      found: `${waits.length} sessions: half ${half}, p99 ${p99}, longest ${seconds(longest)}`,
      isMet: waits.length > 0 && longest <= herdServedMs,
      examples: refusals,
    },
    none('sessions of the herd that had to initialize again', lost.map(exampleOf)),
    none('sessions of other nodes without an answer', unserved.map(exampleOf)),
  ];
}

/** A stream that begins anew, as in a session that another node took over, gets a notice; the others get each message once. */
function newsOf({ herd }: HerdHistory): readonly Verdict[] {
  if (herd === undefined || herd.told === 0) return [];
  const { sessions, told } = herd;
  const wrong = (isWrong: (heard: Heard, isOfEnded: boolean) => boolean): readonly string[] =>
    sessions
      .filter(({ heard, isOfEnded }) => heard === undefined || isWrong(heard, isOfEnded))
      .map((session) => `${exampleOf(session)}: ${JSON.stringify(session.heard)}`);
  return [
    none(
      `streams without the last of ${told} messages`,
      wrong(({ last }) => last !== told),
    ),
    none(
      'streams with a message twice',
      wrong(({ repeated }) => repeated > 0),
    ),
    none(
      'streams that missed a message without a notice',
      wrong(({ missed }) => missed > 0),
    ),
    none(
      'streams with a notice in vain, or begun anew without one',
      wrong(({ notices, begunAnew }, isOfEnded) => notices !== begunAnew || (isOfEnded && begunAnew === 0)),
    ),
  ];
}

function exampleOf({ port, isOfEnded }: HerdSession): string {
  return `of the ${isOfEnded ? 'ended ' : ''}node at port ${port}`;
}

function memoryOf({ herd, load = [] }: HerdHistory, { herdBytes }: HerdBars): readonly Verdict[] {
  if (herd === undefined || herdBytes === undefined) return [];
  const [base, each] = herdBytes;
  const mostBytes = base + each * herd.sessions.filter(({ isOfEnded }) => isOfEnded).length;
  const found = load.map(
    ({ node, beforeBytes, mostBytes: most }) =>
      `${node} from ${megabytes(beforeBytes)} to ${megabytes(most)}`,
  );
  return [
    {
      bar: `memory of a node that goes on: at most ${megabytes(mostBytes)} more (${megabytes(base)} and ${each / 1_000} kB for each session)`,
      found: found.join(', '),
      isMet: load.length > 0 && load.every((one) => one.mostBytes - one.beforeBytes <= mostBytes),
      examples: [],
    },
  ];
}

function idleOf({ idle = [], herd }: HerdHistory, { idleBytes }: HerdBars): readonly Verdict[] {
  if (idleBytes === undefined || herd === undefined) return [];
  const { unanswered } = herd;
  const found = idle.map(({ node, sessions, heapBytes, memoryBytes }) => {
    const [heap, memory] = [heapBytes, memoryBytes].map((bytes) => `${Math.round(bytes / sessions)} bytes`);
    return `${node}: ${sessions} sessions of ${heap}, with ${memory} of memory`;
  });
  return [
    {
      bar: `an idle session takes <= ${idleBytes} bytes of the heap`,
      found: found.join('; '),
      isMet: idle.length > 0 && idle.every(({ sessions, heapBytes }) => heapBytes <= sessions * idleBytes),
      examples: [],
    },
    none('idle sessions without an answer', unanswered === 0 ? [] : [`${unanswered} sessions`], unanswered),
  ];
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}
