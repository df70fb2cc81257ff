// The metrics of the gateway in the text format of Prometheus. What they are is metrics/metric-table.ts.

import Type from 'typebox';
import { METRICS_TYPE } from '../../metrics/prometheus.ts';
import { bytes } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';

export const metricsRoutes: readonly Route[] = [
  defineRoute('GET', '/metrics', {
    summary: 'Metrics for Prometheus',
    scope: 'gateway:read',
    answers: {
      200: {
        description:
          'Counts since the start, and the present state, in the text format of Prometheus. Without the other templates for a caller of some templates.',
        types: ['text/plain'],
        body: Type.String({ examples: ['stagedoor_queue_length{template="everything"} 0\n'] }),
      },
    },
    handler: async ({ principal }, { metrics }) => ({
      ...bytes(200, await metrics.text(principal)),
      type: METRICS_TYPE,
    }),
  }),
];
