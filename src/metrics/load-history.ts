// The history of the load: the totals of each 10 s of the last hour, with or without readers. Source: ADR 126.

import { mayDo, type Principal } from '../domain/accounts/principal.ts';
import { hasAllTemplates } from '../domain/accounts/rights.ts';
import type { Clock } from '../domain/time/clock.ts';
import { Sample, type SampledGateway, type Totals } from './samples.ts';

export const HISTORY_INTERVAL_MS = 10_000;
export const HISTORY_POINTS = 360;

/** The totals of the 10 s before `at`. */
interface HistoryPoint {
  readonly at: string;
  readonly interval_ms: number;
  readonly totals: Totals;
}

/** A point for another node, or to be added to those of others. */
interface HistoryPart extends HistoryPoint {
  /** The age of the point in ms: clocks of nodes are not compared. */
  readonly age_ms: number;
  /** The buckets of the percentiles. */
  readonly durations: readonly [bucket: number, count: number][];
}

/** The totals of the last hour, for pages that open or are loaded again. */
export class LoadHistory {
  readonly #clock: Clock;
  readonly #points: ReturnType<Sample['kept']>[] = [];

  /** `isAdded`: whether the history is added to that of other nodes. */
  constructor(gateway: SampledGateway, { isAdded = false } = {}) {
    const { clock } = gateway.internals;
    this.#clock = clock;
    let before = new Sample(gateway, undefined);
    const stop = clock.background.every(HISTORY_INTERVAL_MS, () => {
      before = new Sample(gateway, before);
      this.#points.push(before.kept(isAdded));
      if (this.#points.length > HISTORY_POINTS) this.#points.shift();
    });
    gateway.events$.subscribe({ complete: () => stop() });
  }

  /**
   * The points, oldest first. None for a viewer of some templates, because percentiles of all templates say nothing
   * about these.
   */
  read(viewer: Principal): readonly HistoryPoint[] {
    return this.#visible(viewer, ({ point }) => point);
  }

  /** The points in parts that can be added to those of other nodes. See `read`. */
  parts(viewer: Principal): readonly HistoryPart[] {
    return this.#visible(viewer, ({ point, atMs, elsewhere, durations = [] }) => ({
      ...point,
      age_ms: Math.round(this.#clock.now() - atMs),
      totals: { ...point.totals, in_flight: point.totals.in_flight - elsewhere },
      durations: pairsOf(durations),
    }));
  }

  #visible<P extends HistoryPoint>(
    viewer: Principal,
    pointOf: (kept: ReturnType<Sample['kept']>) => P,
  ): readonly P[] {
    if (!hasAllTemplates(viewer)) return [];
    const points = this.#points.map(pointOf);
    if (mayDo(viewer, ['admin'])) return points;
    return points.map(({ totals: { sessions: _, ...totals }, ...point }) => ({ ...point, totals }) as P);
  }
}

function pairsOf(flat: ArrayLike<number>): [number, number][] {
  return Array.from({ length: flat.length / 2 }, (_, index) => [
    flat[2 * index] ?? 0,
    flat[2 * index + 1] ?? 0,
  ]);
}
