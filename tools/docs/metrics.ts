// Every metric of the gateway: its kind, labels and meaning, from the table in src/metrics/metric-table.ts.

import { METRICS } from '../../src/metrics/metric-table.ts';
import { code, table } from './markdown.ts';

export function metricsReference(): string {
  const rows = METRICS.map(({ name, kind, labels, help }) => [
    code(name),
    kind,
    labels.map(code).join(', '),
    help,
  ]);
  return [
    table(['Metric', 'Kind', 'Labels', 'Meaning'], rows),
    'Also: `process_*` (CPU, memory, file descriptors, start time) and `nodejs_*` (event loop lag since the previous scrape, heap, garbage collection) of the process.',
  ].join('\n\n');
}
