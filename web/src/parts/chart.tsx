// A line chart of the last minutes. The library is loaded with the first chart; colours come from the style
// sheet. The newest values are also text above the lines, whose dashes differ; the text alternative of the
// picture adds the largest values.

import { useEffect, useRef, useState } from 'preact/hooks';
import type uPlot from 'uplot';
import { theme } from '../theme.ts';
import type { Line } from './plot.ts';

interface ChartProps {
  readonly title: string;
  /** Seconds since 1970, one for each value. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  /** The time from the left edge to the newest value. */
  readonly shownSeconds: number;
}

const HEIGHT = 176;
const AXIS_WIDTH = 62;

export function Chart({ title, times, lines, format, shownSeconds }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const [plot, setPlot] = useState<uPlot | undefined>();
  const [isMissing, setMissing] = useState(false);
  const colours = `${theme.value} ${useSystemTheme()}`;
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    let drawn: uPlot | undefined;
    let isGone = false;
    import('./plot.ts').then(
      ({ createPlot }) => {
        if (isGone) return;
        drawn = createPlot(element, lines, { height: HEIGHT, axisWidth: AXIS_WIDTH, format });
        setPlot(drawn);
      },
      () => setMissing(true),
    );
    const observer = new ResizeObserver(() => drawn?.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      isGone = true;
      observer.disconnect();
      drawn?.destroy();
      setPlot(undefined);
    };
  }, [colours]);
  useEffect(() => {
    const last = times.at(-1);
    if (last === undefined) return;
    plot?.setData([[...times], ...lines.map(({ values }) => [...values])], false);
    plot?.setScale('x', { min: last - shownSeconds, max: last });
  }, [plot, times, lines, shownSeconds]);
  return (
    <figure class="panel chart">
      <figcaption>
        <span class="strong">{title}</span>
        {lines.map((line) => (
          <Legend key={line.name} line={line} format={format} />
        ))}
      </figcaption>
      <div
        ref={box}
        class="plot"
        role="img"
        aria-label={`${title}: ${lines.map((line) => spoken(line, format)).join('; ')}`}
        style={{ height: `${HEIGHT}px` }}
      />
      {isMissing ? (
        <p class="muted waiting">The chart could not be loaded. Reload the page.</p>
      ) : (
        times.length === 0 && <p class="muted waiting">Collecting the first samples…</p>
      )}
    </figure>
  );
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
      <svg viewBox="0 0 18 4" aria-hidden="true" focusable="false" style={{ color: `var(${line.color})` }}>
        <path d="M0 2h18" stroke="currentcolor" stroke-width="2.5" stroke-dasharray={line.dash?.join(' ')} />
      </svg>
      {line.name} <b>{value === null || value === undefined ? '–' : format(value)}</b>
    </span>
  );
}

const darkQuery = matchMedia('(prefers-color-scheme: dark)');

function useSystemTheme(): boolean {
  const [isDark, setDark] = useState(darkQuery.matches);
  useEffect(() => {
    const follow = (): void => setDark(darkQuery.matches);
    darkQuery.addEventListener('change', follow);
    return () => darkQuery.removeEventListener('change', follow);
  }, []);
  return isDark;
}
