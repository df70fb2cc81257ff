// A parser for the text format of Prometheus, version 0.0.4, for specs only. promtool checks the format itself:
// spec/system/deploy/observability.spec.ts.
// Source: https://prometheus.io/docs/instrumenting/exposition_formats/.

/** One metric with its samples. */
export interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly MetricSample[];
}

interface MetricSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Metrics by name. Throws for a line that it cannot read, and for a histogram whose numbers contradict each other. */
export function parseMetrics(text: string): ReadonlyMap<string, Family> {
  type Reading = { readonly name: string; type: string; readonly help: string; samples: MetricSample[] };
  const families = new Map<string, Reading>();
  let current: Reading | undefined;
  for (const line of text.trimEnd().split('\n').filter(Boolean)) {
    const [, help, helpText = ''] = /^# HELP (\S+) (.+)$/.exec(line) ?? [];
    const [, type] = /^# TYPE \S+ (\w+)$/.exec(line) ?? [];
    const sample = sampleOf(line);
    if (help !== undefined) {
      current = { name: help, type: '', help: helpText, samples: [] };
      families.set(help, current);
    } else if (current === undefined) throw new Error(`no metric: ${line}`);
    else if (type !== undefined) current.type = type;
    else if (sample === undefined) throw new Error(`no sample: ${line}`);
    else current.samples.push(sample);
  }
  for (const { name, type, samples } of families.values())
    if (type === 'histogram') checkHistogram(name, samples);
  return families;
}

/** The value of one sample; undefined when it is missing. */
export function metricValue(
  families: ReadonlyMap<string, Family>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const family = families.get(name.replace(/_(?:bucket|sum|count)$/, '')) ?? families.get(name);
  return family?.samples.find(
    (sample) =>
      sample.name === name &&
      Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  )?.value;
}

function sampleOf(line: string): MetricSample | undefined {
  const [, name, inner = '', written = ''] =
    /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
  if (name === undefined) return undefined;
  const labels: Record<string, string> = {};
  let rest = inner;
  while (rest !== '') {
    const [pair, label, value] =
      /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\[\\"n])*)"(?:,(?=.)|$)/.exec(rest) ?? [];
    if (pair === undefined || label === undefined || label in labels) return undefined;
    labels[label] = String(value);
    rest = rest.slice(pair.length);
  }
  const value = numberIn(written);
  return Number.isNaN(value) && !/^nan$/i.test(written) ? undefined : { name, labels, value };
}

function numberIn(written: string): number {
  return Number(written.replace(/^([+-])Inf$/, '$1Infinity'));
}

/** Checks each series: rising bounds, counts that never fall, and a last bucket that equals the count. */
function checkHistogram(name: string, samples: readonly MetricSample[]): void {
  const series = Map.groupBy(samples, ({ labels: { le: _, ...labels } }) => JSON.stringify(labels));
  for (const [labels, lines] of series) {
    const buckets = lines.filter((line) => line.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels: { le } }) => numberIn(String(le)));
    const counts = buckets.map(({ value }) => value);
    const isRising = (numbers: readonly number[]): boolean =>
      numbers.every((number, index) => index === 0 || number >= (numbers[index - 1] ?? number));
    const count = lines.find((line) => line.name === `${name}_count`)?.value;
    const hasSum = lines.some((line) => line.name === `${name}_sum`);
    const isWhole = bounds.at(-1) === Number.POSITIVE_INFINITY && counts.at(-1) === count && hasSum;
    if (!isWhole || !isRising(bounds) || !isRising(counts))
      throw new Error(`${name}${labels} is not a histogram`);
  }
}
