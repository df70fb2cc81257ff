// Draws a chart with uPlot. In a separate file, because it is loaded after the page.

import uPlot from 'uplot';
import { clock } from '../format.ts';

export interface Line {
  readonly name: string;
  /** A colour of the style sheet: `--accent`. */
  readonly color: string;
  readonly dash?: readonly number[];
  readonly values: readonly (number | null)[];
}

interface PlotOptions {
  readonly height: number;
  readonly axisWidth: number;
  readonly format: (value: number) => string;
}

/** Makes the chart in an element of the page, without values. */
export function createPlot(
  element: HTMLElement,
  lines: readonly Line[],
  { height, axisWidth, format }: PlotOptions,
): uPlot {
  const text = colourOf(element, '--muted');
  const grid = { stroke: colourOf(element, '--line'), width: 1 };
  const axis = {
    stroke: text,
    grid,
    ticks: { show: false },
    font: `12px ${getComputedStyle(element).fontFamily}`,
  };
  return new uPlot(
    {
      width: element.clientWidth,
      height,
      legend: { show: false },
      cursor: { show: false },
      padding: [12, 24, 0, 0],
      scales: { y: { range: (_plot, _min, max) => [0, Math.max(max ?? 0, 1) * 1.1] } },
      axes: [
        // The gap keeps its labels below the zero of the other axis.
        {
          ...axis,
          size: 34,
          gap: 12,
          space: 76,
          incrs: [15, 30, 60, 120, 300, 600, 900],
          values: (_plot, splits) => splits.map(timeOf),
        },
        { ...axis, size: axisWidth, space: 36, values: (_plot, splits) => splits.map(format) },
      ],
      series: [
        {},
        ...lines.map(({ color, dash = [] }) => ({
          stroke: colourOf(element, color),
          width: 1.75,
          // Points are shown only for values without a neighbour: a line between two values needs none.
          points: { show: true, size: 5, filter: lonely },
          dash: [...dash],
        })),
      ],
    },
    [[], ...lines.map(() => [])],
    element,
  );
}

/** Indexes of the values of a line that have no value on either side. */
function lonely(plot: uPlot, line: number): number[] {
  const values = plot.data[line] ?? [];
  const isKnown = (index: number): boolean => values[index] !== null && values[index] !== undefined;
  return [...values.keys()].filter((index) => isKnown(index) && !isKnown(index - 1) && !isKnown(index + 1));
}

function timeOf(seconds: number): string {
  const text = clock(seconds * 1_000);
  return seconds % 60 === 0 ? text.slice(0, 5) : text;
}

/** A canvas needs the resolved colour: `light-dark()` depends on the element. */
function colourOf(element: HTMLElement, name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
