// The load of the last hour of all nodes: each node has its own points, one each 10 s, which are added up by their
// age. Source: ADR 172.

import Type, { type Static } from 'typebox';
import { DurationHistogram } from '../../counts/duration-histogram.ts';
import type { Principal } from '../../domain/accounts/principal.ts';
import { compileShape } from '../../domain/errors/validation.ts';
import { whenKnown } from '../../domain/time/when-known.ts';
import { HISTORY_INTERVAL_MS, HISTORY_POINTS } from '../../metrics/load-history.ts';
import { percentileOf } from '../../metrics/samples.ts';
import { integer, nullable, Time } from '../records/schemas.ts';
import type { Services } from '../services.ts';
import { MissingNodes, partialField } from './other-members.ts';

const Totals = Type.Object({
  requests: integer(120),
  failures: integer(1),
  in_flight: integer(2),
  queued: integer(0),
  sessions: Type.Optional(Type.Integer()),
  p50_ms: nullable(Type.Number(), 2),
  p95_ms: nullable(Type.Number(), 6),
  p99_ms: nullable(Type.Number(), 12),
});
const Point = { at: Time, interval_ms: integer(10_000), totals: Totals };

/** Body of GET /gateway/history. */
export const HistoryRecord = Type.Object({ points: Type.Array(Type.Object(Point)), partial: MissingNodes });
type HistoryRecord = Static<typeof HistoryRecord>;

/** The answer of a node to another one. */
const PeerHistory = Type.Object({
  points: Type.Array(
    Type.Object({
      ...Point,
      age_ms: Type.Integer(),
      durations: Type.Array(Type.Tuple([Type.Integer(), Type.Integer()])),
    }),
  ),
});
type PeerHistory = Static<typeof PeerHistory>;
const PEER_HISTORY = compileShape(PeerHistory, 'body');

type Point = HistoryRecord['points'][number];

/** The history of the deployment. */
export function historyOf(
  viewer: Principal,
  { history, otherMembers }: Pick<Services, 'history' | 'otherMembers'>,
): HistoryRecord | Promise<HistoryRecord> {
  const question = { target: '/gateway/history', principal: viewer, shape: PEER_HISTORY };
  return whenKnown(otherMembers.ask(question), ({ answers, partial }): HistoryRecord => {
    const points =
      answers.size === 0
        ? history.read(viewer)
        : added([ownHistory(viewer, { history }), ...answers.values()]);
    return { points: [...points], ...partialField(partial) };
  });
}

/** The history of this node, for another one. */
export function ownHistory(viewer: Principal, { history }: Pick<Services, 'history'>): PeerHistory {
  return { points: history.parts(viewer).map((point) => ({ ...point, durations: [...point.durations] })) };
}

interface Slot {
  readonly point: Point;
  readonly times: DurationHistogram;
}

/**
 * The points of all nodes added up, oldest first. A point has its place by its age, and the time of this node, whose part is the
 * first.
 */
function added(parts: readonly PeerHistory[]): readonly Point[] {
  const slots = new Map<number, Slot>();
  for (const { points } of parts) {
    const seen = new Set<number>();
    for (const { durations, age_ms, ...point } of points.toReversed()) {
      const place = Math.max(0, Math.floor(age_ms / HISTORY_INTERVAL_MS));
      if (place >= HISTORY_POINTS) continue;
      const slot = slots.get(place);
      const times = (slot?.times ?? new DurationHistogram()).withBuckets(durations);
      const { at } = slot?.point ?? point;
      const totals = sumOfPoints(slot?.point, point, seen.has(place));
      slots.set(place, { times, point: { ...point, at, totals } });
      seen.add(place);
    }
  }
  const ordered = [...slots].sort(([one], [other]) => other - one);
  return ordered.map(([, { point, times }]) => ({
    ...point,
    totals: { ...point.totals, ...percentilesOf(times) },
  }));
}

/**
 * The sum of the totals with another point. `isSecond`: true for another point of the same node, whose present counts are in the
 * sum.
 */
function sumOfPoints(sum: Point | undefined, { totals }: Point, isSecond: boolean): Point['totals'] {
  if (sum === undefined) return totals;
  const { requests, failures, in_flight, queued, sessions } = sum.totals;
  const counted = {
    ...sum.totals,
    requests: requests + totals.requests,
    failures: failures + totals.failures,
  };
  if (isSecond) return counted;
  return {
    ...counted,
    in_flight: in_flight + totals.in_flight,
    queued: queued + totals.queued,
    ...(sessions === undefined ? {} : { sessions: sessions + (totals.sessions ?? 0) }),
  };
}

function percentilesOf(times: DurationHistogram): Pick<Point['totals'], 'p50_ms' | 'p95_ms' | 'p99_ms'> {
  return {
    p50_ms: percentileOf(times, 0.5),
    p95_ms: percentileOf(times, 0.95),
    p99_ms: percentileOf(times, 0.99),
  };
}
