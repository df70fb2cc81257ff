// Joins the metrics of several processes into one text, in which the lines of a metric stand together, as Prometheus demands.
// Lines are not read one by one: each process may have tens of thousands.

/** The beginning of a metric: the line HELP, after which comes the line TYPE. */
const BEGIN = '# HELP ';

/** The metrics of all texts, in the order of the first one. The series of different texts differ in a label. */
export function joinedMetrics(texts: readonly string[]): string {
  const metrics = new Map<string, string[]>();
  for (const text of texts)
    for (let from = text.indexOf(BEGIN); from >= 0; ) {
      const next = text.indexOf(`\n${BEGIN}`, from);
      const end = next < 0 ? text.length : next;
      const typeAt = text.indexOf('\n', from) + 1;
      const typeEnd = text.indexOf('\n', typeAt);
      const seriesAt = typeEnd < 0 || typeEnd > end ? end : typeEnd;
      const heading = text.slice(from, seriesAt);
      const parts = metrics.get(heading) ?? [];
      metrics.set(heading, parts);
      const series = text.slice(seriesAt, end).trim();
      if (series !== '') parts.push(series);
      from = next < 0 ? next : next + 1;
    }
  return [...metrics].flatMap(([heading, parts]) => [heading, ...parts, '']).join('\n');
}
