// The routes that several workers of one gateway answer together: a change is known to all of them before its answer, because
// the next request of the client may reach another one, and each scrape of the metrics has those of all. Source:
// ADR 174, 175.

import type { OwnWorker } from '../../domain/nodes/workers.ts';
import { joinedMetrics } from '../../metrics/joined-text.ts';
import type { Prometheus } from '../../metrics/prometheus.ts';
import type { HttpRoute } from './route.ts';

/** The route, whose answer waits until the other workers have applied its change. */
export function tellingOthers(route: HttpRoute, worker: OwnWorker): HttpRoute {
  if (route.method === 'GET' || route.changesNothing === true) return route;
  return {
    ...route,
    run: async (raw, services) => {
      const reply = await route.run(raw, services);
      await worker.ask({ kind: 'changes' });
      return reply;
    },
  };
}

/** The metrics of all workers of the gateway in one text; `own` are those of this one. */
export function metricsOfAll(own: Pick<Prometheus, 'text'>, worker: OwnWorker): Pick<Prometheus, 'text'> {
  return {
    text: async (viewer = {}) => {
      const { templates, tools } = viewer;
      const question = {
        kind: 'metrics',
        templates: templates && [...templates],
        tools: tools?.lists,
      } as const;
      const [text, others] = await Promise.all([own.text(viewer), worker.ask(question)]);
      return joinedMetrics([text, ...others]);
    },
  };
}
