// The accepted differences from the direct run when client and backend are of different eras, each with the reason why no
// gateway could do better. A difference that is only missing work does not belong here. Filled from real runs. See
// docs/adr/0031-limits-of-translation-between-eras.md.

import type { Allowance } from './compare.ts';

const NO_NAMES =
  'a legacy server asks without a name, so the key in inputRequests cannot be the one that the suite wants';
const NO_SUCH_ERROR =
  'a legacy server is told exactly what its client can be asked, and has no error for what it cannot: it answers in its own way';

const NOT_IN_TIME =
  'the suite waits for 600 ms, and a program for the capabilities of this client has to start first: a slow machine needs longer';

/** A modern client, and backends that support only the legacy era. */
export const MODERN_TO_LEGACY: readonly Allowance[] = (
  [
    ['input-required-result-basic-elicitation', 'sep-2322-elicitation-incomplete', 'FAILURE', NO_NAMES],
    ['input-required-result-basic-elicitation', 'sep-2322-elicitation-complete', 'absent', NO_NAMES],
    ['server-stateless', 'sep-2575-server-rejects-undeclared-capability', 'FAILURE', NO_SUCH_ERROR],
    ['server-stateless', 'sep-2575-missing-capability-http-400', 'FAILURE', NO_SUCH_ERROR],
    ['server-stateless', 'sep-2575-http-server-no-independent-requests-on-stream', 'FAILURE', NOT_IN_TIME],
  ] as const
).map(([scenario, id, here, reason]) => ({ suite: '2026-07-28', scenario, id, here, reason }));

/** A legacy client, and backends that support only the modern era. */
export const LEGACY_TO_MODERN: readonly Allowance[] = [
  {
    scenario: 'server-sse-polling',
    reason: 'a modern server has no event ids and no retry: it cannot close its stream and be polled',
  },
];
