// A parser for the text format of Prometheus, version 0.0.4, for specs only; stricter than Prometheus itself.
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

/** Metrics by name. Throws for the first invalid line. */
export function parseMetrics(text: string): ReadonlyMap<string, Family> {
  if (!text.endsWith('\n')) throw new Error('the last line does not end');
  const families = new Map<string, { name: string; type: string; help: string; samples: MetricSample[] }>();
  const seen = new Set<string>();
  let current = '';
  for (const line of text.slice(0, -1).split('\n')) {
    const fail = (why: string): never => {
      throw new Error(`${why}: ${line}`);
    };
    const [, help, helpText] = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line) ?? [];
    const [, typed, type] = /^# TYPE (\S+) (counter|gauge|histogram|summary|untyped)$/.exec(line) ?? [];
    if (help !== undefined) {
      if (families.has(help)) fail('a metric is there twice');
      families.set(help, { name: help, type: '', help: String(helpText), samples: [] });
      current = help;
    } else if (typed !== undefined) {
      const family = families.get(typed);
      if (typed !== current || family === undefined || family.type !== '') fail('a type in the wrong place');
      else family.type = String(type);
    } else if (line !== '') {
      const sample = sampleOf(line) ?? fail('no sample');
      const family = families.get(current) ?? fail('a sample without a metric');
      if (!namesOf(family).includes(sample.name)) fail(`a sample that is not one of ${current}`);
      const { name, labels } = sample;
      const key = JSON.stringify([name, Object.entries(labels).sort()]);
      if (seen.has(key)) fail('a sample is there twice');
      seen.add(key);
      family.samples.push(sample);
    }
  }
  for (const family of families.values()) check(family);
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

function namesOf({ name, type }: { readonly name: string; readonly type: string }): string[] {
  if (type === 'histogram') return [`${name}_bucket`, `${name}_sum`, `${name}_count`];
  return type === 'summary' ? [name, `${name}_sum`, `${name}_count`] : [name];
}

function check({ name, type, samples }: Family): void {
  if (type === '') throw new Error(`${name} has no type`);
  if (type === 'counter' && !name.endsWith('_total'))
    throw new Error(`the counter ${name} does not end in _total`);
  if (type === 'counter' && samples.some(({ value }) => value < 0)) throw new Error(`${name} is below 0`);
  if (type === 'histogram') checkHistogram(name, samples);
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
      throw new Error(`${name}${labels} is no histogram`);
  }
}
