// A line chart of the last minutes, as SVG that the browser stretches: nothing is measured, and colours come from the style
// sheet. The newest values are also text above the lines, whose dashes differ; the text alternative of the picture adds the
// largest values.

import { clock } from '../format.ts';

export interface Line {
  readonly name: string;
  /** A colour of the style sheet: `--accent`. */
  readonly color: string;
  readonly dash?: string;
  readonly values: readonly (number | null)[];
}

interface ChartProps {
  readonly title: string;
  /** Seconds since 1970, one for each value. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  /** The time from the left edge to the newest value. */
  readonly shownSeconds: number;
}

/** The share of the height that two labels need at least. */
const APART = 0.28;

export function Chart({ title, times, lines, format, shownSeconds }: ChartProps) {
  const last = times.at(-1);
  const top = Math.max(1, ...lines.flatMap(({ values }) => values.map(Number))) * 1.1;
  const x = (time = 0): number => 100 + ((time - (last ?? 0)) / shownSeconds) * 100;
  const y = (value: number): number => 100 - (value / top) * 100;
  const levels = last === undefined ? [] : steps(0, top, roundStep(top * APART));
  const marks = last === undefined ? [] : steps(last - shownSeconds, last, shownSeconds > 600 ? 900 : 60);
  const grid = [...levels.map((level) => `M0 ${y(level)}h100`), ...marks.map((mark) => `M${x(mark)} 0v100`)];
  return (
    <figure class="panel chart">
      <figcaption>
        <span class="strong">{title}</span>
        {lines.map((line) => (
          <Legend key={line.name} line={line} format={format} />
        ))}
      </figcaption>
      <div
        class="plot"
        role="img"
        aria-label={`${title}: ${lines.map((line) => spoken(line, format)).join('; ')}`}
      >
        <svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true" focusable="false">
          <path class="grid" d={grid.join('')} />
          {lines.map(({ name, color, dash, values }) => (
            <path
              key={name}
              stroke={`var(${color})`}
              stroke-dasharray={dash}
              d={values.map((value, at) => piece(values, at, x(times[at]), y(value ?? 0))).join('')}
            />
          ))}
        </svg>
        {levels.map((level) => (
          <span key={level} class="level" style={{ top: `${y(level)}%` }}>
            {format(level)}
          </span>
        ))}
        {marks.map((mark) => (
          <span key={mark} class="mark" style={{ left: `${x(mark)}%` }}>
            {clock(mark * 1_000).slice(0, 5)}
          </span>
        ))}
      </div>
      {last === undefined && <p class="muted waiting">Collecting the first samples…</p>}
    </figure>
  );
}

/** The multiples of a step from `least` to `most`. */
function steps(least: number, most: number, step: number): readonly number[] {
  const first = Math.ceil(least / step);
  return Array.from({ length: Math.floor(most / step) - first + 1 }, (_, at) => (first + at) * step);
}

/** The smallest of 1, 2, 5, 10, 20, 50 and so on, and of 0.5, 0.2, that is not below `least`. */
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5].map((factor) => factor * power).find((step) => step >= least) ?? 10 * power;
}

/** The part of a line that leads to a value: nothing for none, and a dot for one without neighbours. */
function piece(values: Line['values'], at: number, x: number, y: number): string {
  const isGap = (index: number): boolean => (values[index] ?? null) === null;
  if (isGap(at)) return '';
  if (!isGap(at - 1)) return `L${x} ${y}`;
  return isGap(at + 1) ? `M${x - 0.3} ${y}h.6` : `M${x} ${y}`;
}

/** `p95 now 12 ms, at most 80 ms`. */
function spoken({ name, values }: Line, format: (value: number) => string): string {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return `${name} none yet`;
  const now = values.at(-1) ?? null;
  return `${name} now ${now === null ? 'none' : format(now)}, at most ${format(Math.max(...known))}`;
}

function Legend({ line, format }: { readonly line: Line; readonly format: (value: number) => string }) {
  const value = line.values.at(-1);
  return (
    <span class="legend">
      <svg viewBox="0 0 18 4" aria-hidden="true" focusable="false">
        <path d="M0 2h18" stroke={`var(${line.color})`} stroke-width="2.5" stroke-dasharray={line.dash} />
      </svg>
      {line.name} <b>{value === null || value === undefined ? '–' : format(value)}</b>
    </span>
  );
}
