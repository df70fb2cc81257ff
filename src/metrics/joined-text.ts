// Joins the metrics of several processes into one text, in which the lines of a metric stand together, as Prometheus demands.

const HEAD = /^# (?:HELP|TYPE) (\S+)/;

/** In the order of the first text. The series of different texts differ in a label. */
export function joinedMetrics(texts: readonly string[]): string {
  const metrics = new Map<string, { readonly head: Set<string>; readonly series: string[] }>();
  for (const text of texts) {
    let metric = { head: new Set<string>(), series: [] as string[] };
    for (const line of text.split('\n')) {
      const name = HEAD.exec(line)?.[1];
      if (name !== undefined) {
        metric = metrics.get(name) ?? { head: new Set(), series: [] };
        metrics.set(name, metric);
        metric.head.add(line);
      } else if (line !== '') metric.series.push(line);
    }
  }
  return [...metrics.values()].flatMap(({ head, series }) => [...head, ...series, '']).join('\n');
}
