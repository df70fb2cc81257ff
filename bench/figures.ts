// What the benchmark finds: figures with an interval, each with its bar if it has one.

import { quartiles, sureMedian } from './statistics.ts';

/** One figure, measured several times. */
export interface Figure {
  readonly name: string;
  /** With the space before it: ` x`, ` MB`. */
  readonly unit: string;
  /** NaN for a round that gave none: a call failed, or the system does not tell. */
  readonly values: readonly number[];
  /** The bar; a figure without one is only shown. */
  readonly atMost?: number;
  readonly atLeast?: number;
}

/** A figure as shown. */
export interface Verdict {
  readonly name: string;
  readonly bar: string;
  readonly found: string;
  /** The 95 % interval of the median; of fewer than six values the quartiles. */
  readonly interval: string;
  readonly rounds: number;
  readonly verdict: 'reached' | 'missed' | 'not measured' | '';
}

/** Decimals of a figure by its unit. */
const digits: Readonly<Record<string, number>> = { ' x': 2, ' kB': 1 };

export function verdictOf({ name, unit, values, atMost, atLeast }: Figure): Verdict {
  const bar =
    atMost !== undefined ? `<= ${atMost}${unit}` : atLeast !== undefined ? `>= ${atLeast}${unit}` : '';
  const common = { name, bar, rounds: values.length };
  if (values.length === 0 || values.some(Number.isNaN))
    return { ...common, found: '-', interval: '-', verdict: bar === '' ? '' : 'not measured' };
  const shown = (figure: number): string => figure.toFixed(digits[unit] ?? 0);
  const { median, interval } = sureMedian(values);
  const [low, high] = interval ?? quartiles(values);
  const isReached = median <= (atMost ?? median) && median >= (atLeast ?? median);
  return {
    ...common,
    found: `${shown(median)}${unit}`,
    interval: `${shown(low)} to ${shown(high)}`,
    verdict: bar === '' ? '' : isReached ? 'reached' : 'missed',
  };
}
